//! `fairway explain`: asks the daemon for the reason of a state, and prints the answer.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::ask::AnswerArguments;
use super::{show, words};

const EXAMPLES: &str = "  fairway explain service shop/web
  fairway explain service web          if the name is unique, or the one in default
  fairway explain service web json
  fairway explain peer tor-1               why there is no session, or what it was sent
  fairway explain address 198.51.100.10    whose it is, and which routes lead to it
  fairway explain prefix 198.51.100.0/24
  fairway explain pool public
  fairway explain node node-1";

#[derive(Debug, Args)]
#[command(after_help = words::help("explain", EXAMPLES))]
pub(super) struct ExplainArguments {
    /// The words of the command, as below
    #[arg(value_name = "WORD")]
    words: Vec<String>,

    #[command(flatten)]
    answer: AnswerArguments,
}

pub(super) fn run(arguments: &ExplainArguments) -> Result<ExitCode> {
    show::answer("explain", &arguments.words, &arguments.answer)
}
