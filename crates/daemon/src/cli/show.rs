//! `fairway show`: turns words into a query and prints the answer.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use fairway_show::language::Question;

use super::ask::AnswerArguments;
use super::output;
use super::words::{self, Read};

const EXAMPLES: &str = "  fairway show bgp summary
  fairway show bgp neighbors 192.0.2.1 advertised-routes json
  fairway show bgp ipv4 unicast 198.51.100.10/32
  fairway show ip bgp 198.51.100.0/24 longer-prefixes
  fairway show ip bgp regexp _65010$
  fairway show bgp summary failed
  fairway show services
  fairway show proxy
  fairway show proxy shop/web json";

#[derive(Debug, Args)]
#[command(after_help = words::help("show", EXAMPLES))]
pub(super) struct ShowArguments {
    /// The words of the command, as below
    #[arg(value_name = "WORD")]
    words: Vec<String>,

    #[command(flatten)]
    answer: AnswerArguments,
}

pub(super) fn run(arguments: &ShowArguments) -> Result<ExitCode> {
    if let Some(("proxy", words)) = arguments.words.split_first().map(|(it, rest)| (&**it, rest)) {
        return proxy(words, &arguments.answer);
    }
    answer("show", &arguments.words, &arguments.answer)
}

/// `show proxy [NAMESPACE/NAME] [json]`: the service proxy has a socket of its own, since it is often a process of its own.
fn proxy(words: &[String], answer: &AnswerArguments) -> Result<ExitCode> {
    let (json, services): (Vec<&String>, _) = words.iter().partition(|it| *it == "json");
    let is_one = |it: &&String| it.split('/').filter(|part| !part.is_empty()).count() == 2;
    match services.as_slice() {
        [] => answer.show_proxy(None, !json.is_empty()),
        [service] if is_one(service) => {
            answer.show_proxy(Some((*service).clone()), !json.is_empty())
        }
        _ => {
            output::say("error: expected show proxy [NAMESPACE/NAME] [json]");
            Ok(ExitCode::from(2))
        }
    }
}

/// Asks what `words` behind `verb` ask, and prints the answer.
pub(super) fn answer(verb: &str, words: &[String], answer: &AnswerArguments) -> Result<ExitCode> {
    match words::read(verb, words)? {
        Read::Question(Question::Show(query)) => answer.show(query),
        Read::Question(_) => bail!("the words of another command"),
        Read::Done(code) => Ok(code),
    }
}
