//! `fairway explain`: asks the daemon for the reason of a state, and prints the answer.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use fairway_show::ShowCommand;

use super::ask::AnswerArguments;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway explain service shop/web
  fairway explain service web --json")]
pub(super) struct ExplainArguments {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    answer: AnswerArguments,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// The pool and why it was chosen, whether this node announces the Service, what each router was sent,
    /// what is missing
    #[command(after_help = "Examples:
  fairway explain service shop/web
  fairway explain service web         if the name is unique, or the one in default")]
    Service {
        /// Its name, with its namespace if several Services have the name
        #[arg(value_name = "[NAMESPACE/]NAME")]
        service: String,
    },
}

pub(super) fn run(arguments: &ExplainArguments) -> Result<ExitCode> {
    let What::Service { service } = arguments.what.clone();
    arguments.answer.show(ShowCommand::ExplainService { service })
}
