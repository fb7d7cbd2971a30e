//! What do fingers meet? vtysh and bash on a pseudo-terminal: lines cut short, Tab and `?`, for every command of the page.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lab::terminal::Terminal;

/// Words as people type them: the shortest that FRR takes for this word alone.
const CUT: [(&str, &str); 11] = [
    ("show", "sh"),
    ("summary", "sum"),
    ("neighbors", "nei"),
    ("unicast", "uni"),
    ("advertised-routes", "adv"),
    ("received-routes", "received-r"),
    ("filtered-routes", "filt"),
    ("prefix-counts", "prefix-c"),
    ("longer-prefixes", "lon"),
    ("counters", "cou"),
    ("failed", "fai"),
];

/// No line is so long that it is broken.
const SIZE: (u16, u16) = (200, 400);
/// What looks like an error.
const ERRORS: [&str; 3] = ["%", "error", "There is no matched command"];
/// Deletes the line.
const CONTROL_U: &str = "\u{15}";

/// `word` as people type it.
fn cut(word: &str) -> &str {
    CUT.iter().find(|(whole, _)| *whole == word).map_or(word, |(_, cut)| cut)
}

/// A line with each word cut short.
pub(crate) fn cut_short(words: &str) -> String {
    words.split(' ').map(cut).collect::<Vec<_>>().join(" ")
}

/// The same with Tab behind each word that is cut, which completes it and adds a blank.
fn tabbed(words: &str) -> String {
    let typed = words.split(' ').map(|word| match cut(word) {
        cut if cut != word => format!("{cut}\t"),
        whole => format!("{whole} "),
    });
    typed.collect()
}

fn start(command: &mut Command) -> Result<Terminal> {
    command.env("TERM", "dumb").env("VTYSH_PAGER", "cat");
    Terminal::start(command, SIZE)
}

/// Waits until all of `parts` are there, and nothing that looks like an error.
fn wait_for(terminal: &Terminal, typed: &str, parts: &[&str]) -> Result<()> {
    terminal.wait_for(&format!("the answer to {typed:?}"), parts)?;
    let written = terminal.written();
    for sign in ERRORS {
        ensure!(!written.contains(sign), "{typed:?}: {sign:?} in:\n{written}");
    }
    Ok(())
}

/// vtysh: each command with Tab behind its words, and `?` at its end.
pub(crate) fn check_vtysh<'a>(
    command: &mut Command,
    lines: impl Iterator<Item = &'a str>,
) -> Result<()> {
    let mut terminal = start(command)?;
    wait_for(&terminal, "nothing", &["# "])?;
    for words in lines {
        terminal.wipe();
        terminal.press(&tabbed(words))?;
        terminal.press("?")?;
        wait_for(&terminal, words, &["<cr>", &format!("# {words} ")])?;
        terminal.press(CONTROL_U)?;
    }
    // What this daemon knows.
    terminal.wipe();
    terminal.press("show bgp neighbors ?")?;
    wait_for(&terminal, "neighbors", &["10.1.1.2 ", "router-one-over-ipv4", "2001:db8:1:1::2"])?;
    terminal.press(CONTROL_U)?;
    terminal.wipe();
    terminal.press("show bgp neighbors 10.1.2\t")?;
    wait_for(&terminal, "a neighbor", &["10.1.2.2 "])
}

/// bash with the script of `fairway completions`: the same.
pub(crate) fn check_bash<'a>(
    program: &Path,
    socket: &Path,
    directory: &Path,
    lines: impl Iterator<Item = &'a str>,
) -> Result<()> {
    let empty = directory.join("empty");
    fs::create_dir_all(&empty).context("an empty folder")?;
    let output =
        Command::new(program).args(["completions", "bash"]).output().context("a script")?;
    let text = format!(
        "PS1='$ '\nbind 'set enable-bracketed-paste off' 2>/dev/null\nfairway() {{ {} \"$@\"; }}\n\
         export FAIRWAY_SOCKET={}\n{}",
        program.display(),
        socket.display(),
        String::from_utf8(output.stdout).context("a script")?,
    );
    let script = directory.join("bashrc");
    fs::write(&script, text).context("bashrc")?;
    let mut command = Command::new("bash");
    command.arg("--noprofile").arg("--rcfile").arg(&script).arg("-i").current_dir(&empty);
    let mut terminal = start(&mut command)?;
    wait_for(&terminal, "nothing", &["$ "])?;
    for words in lines {
        // The name of a subcommand is clap's to complete.
        let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
        terminal.wipe();
        terminal.press(&format!("fairway {verb} {}", tabbed(rest)))?;
        terminal.press("?\n")?;
        wait_for(&terminal, words, &["<Enter>", &format!("fairway {words} ?")])?;
    }
    terminal.wipe();
    terminal.press("fairway show bgp neighbors 2001:db\t")?;
    wait_for(&terminal, "a neighbor", &["2001:db8:1:1::2 "])?;
    terminal.press(CONTROL_U)?;
    terminal.wipe();
    terminal.press("fairway clear bgp router-t\t")?;
    wait_for(&terminal, "a BGPPeer", &["router-two "])
}
