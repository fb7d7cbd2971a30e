//! The words of `fairway show`, `clear` and `explain`: one language with vtysh, its help, and what is wrong with a line.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use fairway_show::language::{self, Misread, NextWords, Question, Vocabulary};

use super::output;

/// In place of a word: what may stand here?
const WHAT_NEXT: &str = "?";

/// What to do about the words of a command.
pub(super) enum Read {
    /// They are this question.
    Question(Question),
    /// They are answered without a daemon.
    Done(ExitCode),
}

/// Reads `words` behind `verb`.
pub(super) fn read(verb: &str, words: &[String]) -> Result<Read> {
    let line: Vec<&str> = std::iter::once(verb).chain(words.iter().map(String::as_str)).collect();
    if let Some((&WHAT_NEXT, before)) = line.split_last() {
        output::print(&listed(&language::next_words(Vocabulary::CommandLine, before)))?;
        return Ok(Read::Done(ExitCode::SUCCESS));
    }
    Ok(match language::understand(Vocabulary::CommandLine, &line) {
        Ok(question) => Read::Question(question),
        Err(why) => {
            output::say(&format!("error: {}", fault(&line, why)));
            Read::Done(ExitCode::from(2))
        }
    })
}

/// The commands that begin with `verb`, for its `--help`.
pub(super) fn help(verb: &str, examples: &str) -> String {
    let mut help =
        "Commands, in FRR's words, each of which may be abbreviated (`sh bgp sum`):\n".to_owned();
    for (pattern, meaning) in language::commands_of(verb) {
        let _ = writeln!(help, "  {pattern}\n      {meaning}");
    }
    let _ = write!(
        help,
        "\nWith `?` in place of a word: what may stand there.\n\nExamples:\n{examples}"
    );
    help
}

/// What may follow, a line for each.
fn listed(next: &NextWords) -> String {
    let words = next.words.iter().copied();
    let values = next.values.iter().map(|value| (value.name(), value.help()));
    let mut lines: Vec<(&str, &str)> = words.chain(values).collect();
    if next.is_command {
        lines.push(("<Enter>", "The command is complete"));
    }
    let width = lines.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
    lines.iter().map(|(word, meaning)| format!("  {word:width$}  {meaning}\n")).collect()
}

/// What is wrong with `line`, and what is allowed.
fn fault(line: &[&str], why: Misread) -> String {
    let good = (1..=line.len()).rev().find_map(|length| {
        let before = line.get(..length)?;
        let next = language::next_words(Vocabulary::CommandLine, before);
        (!next.words.is_empty() || !next.values.is_empty() || next.is_command)
            .then_some((before, next))
    });
    let Some((before, next)) = good else {
        return format!("`{}` is unknown", line.join(" "));
    };
    let shown = before.join(" ");
    match (why, line.get(before.len())) {
        (Misread::Ambiguous, _) => format!("`{}` is ambiguous: {}", line.join(" "), meanings(line)),
        (_, Some(bad)) if next.words.is_empty() && next.values.is_empty() => {
            format!("`{shown}` takes no more words, such as {bad:?}")
        }
        (_, Some(bad)) => {
            format!("{bad:?} is unknown after `{shown}`; allowed: {}", allowed(&next))
        }
        (_, None) => format!("`{shown}` is incomplete; allowed next: {}", allowed(&next)),
    }
}

/// The words that the first ambiguous one may stand for.
fn meanings(line: &[&str]) -> String {
    let ambiguous = (1..line.len()).find_map(|length| {
        let (word, before) = line.get(..=length)?.split_last()?;
        let next = language::next_words(Vocabulary::CommandLine, before);
        let words = next.words.into_iter().map(|(name, _)| name);
        let words: Vec<_> = words.filter(|name| name.starts_with(word)).collect();
        (words.len() > 1 && !words.contains(word)).then(|| (*word, words.join(", ")))
    });
    let Some((word, words)) = ambiguous else { return "write its words in full".to_owned() };
    format!("{word:?} may be {words}")
}

fn allowed(next: &NextWords) -> String {
    let words = next.words.iter().map(|(word, _)| *word);
    let values = next.values.iter().map(|value| value.name());
    let mut all: Vec<&str> = words.chain(values).collect();
    if next.is_command {
        all.push("nothing more");
    }
    all.join(", ")
}
