//! `fairway explain`: why is it so? A question to the daemon, and its answer to stdout.

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
    /// Which pool and why, whether this node announces it, what each router was told, what is
    /// missing
    #[command(after_help = "Examples:
  fairway explain service shop/web
  fairway explain service web         where only one is called so, or the one in default")]
    Service {
        /// Its name, with its namespace where several have the name
        #[arg(value_name = "[NAMESPACE/]NAME")]
        service: String,
    },
}

pub(super) fn run(arguments: &ExplainArguments) -> Result<ExitCode> {
    let What::Service { service } = arguments.what.clone();
    arguments.answer.show(ShowCommand::ExplainService { service })
}
