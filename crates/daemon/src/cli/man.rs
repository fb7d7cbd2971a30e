//! `fairway man`: a page for each command, from the same definitions as `--help`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Command};
use clap_mangen::Man;

use super::output;
use crate::build_info;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway man | man -l -                     the overview
  fairway man run | man -l -                 one command
  fairway man --dir /usr/local/share/man/man1")]
pub(super) struct ManArguments {
    /// The command to show the page of [default: fairway itself]
    #[arg(conflicts_with = "dir")]
    command: Vec<String>,

    /// Write the pages of all commands into this folder, which must exist
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn run(arguments: &ManArguments, command: Command) -> Result<ExitCode> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    match &arguments.dir {
        Some(dir) => write_all(&command, dir)
            .with_context(|| format!("cannot write the pages into {}", dir.display()))?,
        None => output::print_for_programs(&page(command, &arguments.command)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The page of the command that `words` name, below a command that has been built. The words of `show`, `clear` and
/// `explain` are all on the page of the verb.
fn page(mut named: Command, words: &[String]) -> Result<String> {
    for word in words {
        if !named.has_subcommands() {
            break;
        }
        let Some(next) = named.find_subcommand(word).cloned() else {
            let known: Vec<_> = below(&named).map(Command::get_name).collect();
            bail!("there is no command {word:?} here, only: {}", known.join(", "));
        };
        named = next;
    }
    let mut page = Vec::new();
    about(&named).render(&mut page)?;
    Ok(String::from_utf8(page)?)
}

/// One file for `command`, and one for each below it.
fn write_all(command: &Command, dir: &Path) -> io::Result<()> {
    for command in below(command) {
        write_all(command, dir)?;
    }
    about(command).generate_to(dir).map(drop)
}

/// The commands that people type.
fn below(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|it| !it.is_hide_set())
}

fn about(command: &Command) -> Man {
    Man::new(command.clone()).source(format!("fairway {}", build_info::RELEASE)).manual("Fairway")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn fairway() -> Command {
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        command
    }

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_overview_names_every_command_and_its_page() {
        let page = page(fairway(), &[]).unwrap();
        for command in below(&Cli::command()) {
            let name = format!("fairway\\-{}(1)", command.get_name().replace('-', "\\-"));
            assert!(page.contains(&name), "{name} is missing from: {page}");
        }
    }

    #[test]
    fn the_page_of_a_command_has_its_options_variables_and_examples() {
        let page = page(fairway(), &words("run")).unwrap();
        for expected in [
            ".TH fairway-run 1  \"fairway ",
            "\\-\\-bgp\\-listen",
            "FAIRWAY_BGP_LISTEN",
            "Examples:",
        ] {
            assert!(page.contains(expected), "{expected} is missing from: {page}");
        }
    }

    #[test]
    fn an_unknown_command_has_no_page() {
        let error = page(fairway(), &words("shew bgp")).unwrap_err().to_string();
        assert!(error.contains("\"shew\"") && error.contains("explain"), "{error}");
        assert!(!error.contains("__complete"), "{error}");
    }

    #[test]
    fn the_page_of_show_has_every_command_behind_it() {
        let show = page(fairway(), &words("show")).unwrap();
        for words in ["longer\\-prefixes", "graceful\\-restart", "show services"] {
            assert!(show.contains(words), "{words} is missing from: {show}");
        }
        assert_eq!(page(fairway(), &words("show bgp summary")).unwrap(), show);
    }
}
