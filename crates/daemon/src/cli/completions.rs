//! `fairway completions`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

use super::output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway completions bash > ~/.local/share/bash-completion/completions/fairway
  fairway completions zsh > ~/.zfunc/_fairway
  fairway completions fish > ~/.config/fish/completions/fairway.fish")]
pub(super) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(
    arguments: &CompletionsArguments,
    command: &mut clap::Command,
) -> Result<ExitCode> {
    // Into memory first: the generator panics when its output is closed.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, command, "fairway", &mut script);
    output::print_for_programs(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}
