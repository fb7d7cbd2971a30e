//! `fairway show`: turns words into a query and prints the answer.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use fairway_show::language::Question;

use super::ask::AnswerArguments;
use super::words::{self, Read};

const EXAMPLES: &str = "  fairway show bgp summary
  fairway show bgp neighbors 192.0.2.1 advertised-routes json
  fairway show bgp ipv4 unicast 198.51.100.10/32
  fairway show ip bgp 198.51.100.0/24 longer-prefixes
  fairway show ip bgp regexp _65010$
  fairway show bgp summary failed
  fairway show services";

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
    answer("show", &arguments.words, &arguments.answer)
}

/// Asks what `words` behind `verb` ask, and prints the answer.
pub(super) fn answer(verb: &str, words: &[String], answer: &AnswerArguments) -> Result<ExitCode> {
    match words::read(verb, words)? {
        Read::Question(Question::Show(query)) => answer.show(query),
        Read::Question(_) => bail!("the words of another command"),
        Read::Done(code) => Ok(code),
    }
}
