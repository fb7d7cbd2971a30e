//! The questions of `kubectl fairway`: which resource of the node API answers each, and how that is printed.

use std::io::{IsTerminal, stderr};
use std::net::IpAddr;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fairway_show::language::Question;
use fairway_show::side_by_side::{NodeAnswers, Subject};
use fairway_show::{Explained, Query, ShowCommand};
use ipnet::IpNet;
use tokio::time::timeout;

use super::{Format, Options, print_value};
use crate::cli::output;
use crate::cli::words::{self, Read};
use crate::kubernetes::{NodeQuery, User};

/// Answers are usually there before.
const NOTICE_AFTER: Duration = Duration::from_secs(2);

pub(super) async fn peers(options: &Options) -> Result<ExitCode> {
    let user = User::connect(&options.user()).await?;
    let answers = ask(&user, "peers", &[], options).await?;
    show(&answers, Subject::Peers, options)
}

pub(super) async fn services(options: &Options) -> Result<ExitCode> {
    let user = User::connect(&options.user()).await?;
    let answers = ask(&user, "services", &[], options).await?;
    show(&answers, Subject::Services, options)
}

pub(super) async fn pools(options: &Options) -> Result<ExitCode> {
    let user = User::connect(&options.user()).await?;
    let answers = ask(&user, "pools", &[], options).await?;
    show(&answers, Subject::Pools, options)
}

/// Of both families at once; to a prefix, or to the longest one around an address, of its family.
pub(super) async fn routes(wanted: Option<&str>, options: &Options) -> Result<ExitCode> {
    let user = User::connect(&options.user()).await?;
    let of_family = async |family: &str| {
        let words: Vec<String> = [family, "unicast"].map(str::to_owned).to_vec();
        ask(&user, "routes", &words, options).await
    };
    let answers = match wanted {
        None => {
            let (ipv4, ipv6) = tokio::join!(of_family("ipv4"), of_family("ipv6"));
            NodeAnswers::of_families(ipv4?, ipv6?)
        }
        Some(wanted) => {
            let address: Option<IpAddr> = wanted.split('/').next().and_then(|it| it.parse().ok());
            let is_prefix = wanted.parse::<IpNet>().is_ok() || wanted.parse::<IpAddr>().is_ok();
            let address = address.filter(|_| is_prefix);
            let address = address.with_context(|| {
                format!(
                    "{wanted:?}: expected a prefix or an address, as in 192.0.2.0/24 or 192.0.2.1"
                )
            })?;
            let family = if address.is_ipv4() { "ipv4" } else { "ipv6" };
            let words: Vec<String> = [family, "unicast", wanted].map(str::to_owned).to_vec();
            ask(&user, "routes", &words, options).await?
        }
    };
    show(&answers, Subject::Routes, options)
}

/// What each node says first; the whole of it if that is wanted, or of one node.
pub(super) async fn explain(words: &[String], options: &Options) -> Result<ExitCode> {
    let question = match words::read("explain", words)? {
        Read::Question(question) => question,
        Read::Done(code) => return Ok(code),
    };
    let user = User::connect(&options.user()).await?;
    let nodes = match question {
        // Each node knows itself.
        Question::Show(Query { what: ShowCommand::Explain(Explained::Node(name)), .. })
            if options.nodes.is_empty() =>
        {
            vec![name]
        }
        _ => options.nodes.clone(),
    };
    let is_text = match options.output {
        None => nodes.len() == 1,
        Some(format) => format == Format::Wide,
    };
    let query = NodeQuery { resource: "explanations", words, nodes: &nodes, is_text };
    let answers = read(&user, query).await?;
    if !is_text {
        return show(&answers, Subject::Verdicts, options);
    }
    if let Some(why) = answers.refusal() {
        bail!("{}", why.trim_start_matches("% "));
    }
    output::print(&answers.texts())?;
    Ok(code_of(&answers, Subject::Verdicts))
}

/// Exit code 1 if there are faults.
pub(super) async fn check(options: &Options) -> Result<ExitCode> {
    let user = User::connect(&options.user()).await?;
    let answers = ask(&user, "faults", &[], options).await?;
    let code = show(&answers, Subject::Faults, options)?;
    Ok(if answers.have_faults() { ExitCode::FAILURE } else { code })
}

async fn ask(
    user: &User,
    resource: &str,
    words: &[String],
    options: &Options,
) -> Result<NodeAnswers> {
    let nodes = &options.nodes;
    read(user, NodeQuery { resource, words, nodes, is_text: false }).await
}

async fn read(user: &User, query: NodeQuery<'_>) -> Result<NodeAnswers> {
    let list = noticed(user.ask(query)).await?;
    let answers = NodeAnswers::of(&list);
    answers.context("unexpected answer: check that the controller has the version of this program")
}

/// Says on a terminal that it takes a while.
async fn noticed<T>(asking: impl Future<Output = T>) -> T {
    let mut asking = pin!(asking);
    match timeout(NOTICE_AFTER, &mut asking).await {
        Ok(answer) => answer,
        Err(_) => {
            if stderr().is_terminal() {
                output::say("waiting for the answers of the nodes (--request-timeout limits it)");
            }
            asking.await
        }
    }
}

fn show(answers: &NodeAnswers, subject: Subject, options: &Options) -> Result<ExitCode> {
    if let Some(why) = answers.refusal() {
        bail!("{}", why.trim_start_matches("% "));
    }
    match options.output {
        None => output::print(&answers.text(subject, false))?,
        Some(Format::Wide) => output::print(&answers.text(subject, true))?,
        Some(format) => print_value(&answers.json(), format)?,
    }
    Ok(code_of(answers, subject))
}

/// A node without an answer is no success.
fn code_of(answers: &NodeAnswers, subject: Subject) -> ExitCode {
    if answers.are_whole(subject) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
