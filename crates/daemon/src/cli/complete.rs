//! `fairway __complete`: which words may stand at the end of a line? For the scripts that `fairway completions` prints.
//!
//! Prints a word and its meaning in each line, with a tab between them. Says nothing where there is nothing to say: the
//! user is typing.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use fairway_show::language::{self, Completed, Form, ValueName, Vocabulary};

use super::{output, paths};
use crate::admin::{Request, client};

/// How long the shell may wait for the daemon.
const PATIENCE: Duration = Duration::from_secs(1);

/// The other options of these commands that have a value.
const OTHER_OPTIONS: [&str; 2] = ["--log-level", "--log-format"];

#[derive(Debug, Args)]
#[command(after_help = "Example: fairway __complete show bgp neighbors ''")]
pub(super) struct CompleteArguments {
    /// The words of the command line behind `fairway`; the last one is to be completed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<String>,
}

pub(super) fn run(arguments: &CompleteArguments) -> Result<ExitCode> {
    let (words, socket) = without_options(&arguments.words);
    let Some((start, before)) = words.split_last() else { return Ok(ExitCode::SUCCESS) };
    let next = language::next_words(Vocabulary::CommandLine, before);
    let mut lines = String::new();
    for (word, meaning) in next.words.iter().filter(|(word, _)| word.starts_with(start)) {
        let _ = writeln!(lines, "{word}\t{meaning}");
    }
    for value in next.values {
        for known in values(value, start, socket) {
            let _ = writeln!(lines, "{known}\t{}", value.help());
        }
    }
    output::print_for_programs(&lines)?;
    Ok(ExitCode::SUCCESS)
}

/// The words of the command, and the socket if one is named.
fn without_options(words: &[String]) -> (Vec<&str>, Option<&str>) {
    let (mut kept, mut socket) = (Vec::new(), None);
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some(("--socket", path)) => socket = Some(path),
            _ if word == "--socket" => socket = words.next(),
            _ if OTHER_OPTIONS.contains(&word) => drop(words.next()),
            _ if word.starts_with('-') => {}
            _ => kept.push(word),
        }
    }
    (kept, socket)
}

/// What the daemon knows that begins like this; nothing if it does not answer.
fn values(value: ValueName, start: &str, socket: Option<&str>) -> Vec<String> {
    let completed = Completed { value: Some(value), form: Form::Any, start: start.to_owned() };
    let request = Request::Complete(completed);
    let from_environment = std::env::var_os("FAIRWAY_SOCKET");
    let socket = socket.map(Into::into).or(from_environment);
    let answer = paths::socket_of_daemon(socket.as_deref().map(AsRef::as_ref))
        .ok()
        .and_then(|path| client::ask_within(PATIENCE, &path, &request).ok());
    answer.unwrap_or_default().lines().map(str::to_owned).collect()
}
