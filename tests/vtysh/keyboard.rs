//! What do fingers meet? vtysh and bash on a pseudo-terminal: lines cut short, Tab and `?`, for every command of the page.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, ensure};
use lab::wait::{PATIENCE, wait_until};
use nix::pty::{Winsize, openpty};

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

/// A program on a terminal of its own.
pub(crate) struct Terminal {
    keys: File,
    screen: Arc<Mutex<Vec<u8>>>,
    child: Child,
}

impl Terminal {
    fn start(command: &mut Command) -> Result<Self> {
        // No line is so long that it is broken.
        let size = Winsize { ws_row: 200, ws_col: 400, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).context("a pseudo-terminal")?;
        let far = File::from(pair.slave);
        command.env("TERM", "dumb").env("VTYSH_PAGER", "cat");
        command.stdin(Stdio::from(far.try_clone().context("the terminal")?));
        command.stdout(Stdio::from(far.try_clone().context("the terminal")?));
        let child = command.stderr(Stdio::from(far)).spawn().context("a program on a terminal")?;
        // The command has copies of the far end: without them the terminal ends with the program.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let keys = File::from(pair.master);
        let mut reader = keys.try_clone().context("the terminal")?;
        let screen: Arc<Mutex<Vec<u8>>> = Arc::default();
        let shown = Arc::clone(&screen);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                let read = buffer.get(..length).unwrap_or_default();
                shown.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(read);
            }
        });
        Ok(Self { keys, screen, child })
    }

    /// Forgets what is on the screen.
    fn wipe(&self) {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn shown(&self) -> String {
        let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&screen).replace(['\r', '\u{7}'], "")
    }

    fn press(&mut self, keys: &str) -> Result<()> {
        self.keys.write_all(keys.as_bytes()).with_context(|| format!("typing {keys:?}"))
    }

    /// Waits until all of `parts` are on the screen, and nothing that looks like an error.
    fn wait_for(&self, typed: &str, parts: &[&str]) -> Result<()> {
        wait_until(&format!("the answer to {typed:?}"), PATIENCE, || {
            let shown = self.shown();
            for part in parts {
                ensure!(shown.contains(part), "no {part:?} in:\n{shown}");
            }
            Ok(())
        })?;
        let shown = self.shown();
        for sign in ["%", "error", "There is no matched command"] {
            ensure!(!shown.contains(sign), "{typed:?}: {sign:?} in:\n{shown}");
        }
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// vtysh: each command with Tab behind its words, and `?` at its end.
pub(crate) fn check_vtysh<'a>(
    command: &mut Command,
    lines: impl Iterator<Item = &'a str>,
) -> Result<()> {
    let mut terminal = Terminal::start(command)?;
    terminal.wait_for("nothing", &["# "])?;
    for words in lines {
        terminal.wipe();
        terminal.press(&tabbed(words))?;
        terminal.press("?")?;
        terminal.wait_for(words, &["<cr>", &format!("# {words} ")])?;
        terminal.press(CONTROL_U)?;
    }
    // What this daemon knows.
    terminal.wipe();
    terminal.press("show bgp neighbors ?")?;
    terminal.wait_for("neighbors", &["10.1.1.2 ", "router-one-over-ipv4", "2001:db8:1:1::2"])?;
    terminal.press(CONTROL_U)?;
    terminal.wipe();
    terminal.press("show bgp neighbors 10.1.2\t")?;
    terminal.wait_for("a neighbor", &["10.1.2.2 "])
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
    let start = format!(
        "PS1='$ '\nbind 'set enable-bracketed-paste off' 2>/dev/null\nfairway() {{ {} \"$@\"; }}\n\
         export FAIRWAY_SOCKET={}\n{}",
        program.display(),
        socket.display(),
        String::from_utf8(output.stdout).context("a script")?,
    );
    let script = directory.join("bashrc");
    fs::write(&script, start).context("bashrc")?;
    let mut command = Command::new("bash");
    command.arg("--noprofile").arg("--rcfile").arg(&script).arg("-i").current_dir(&empty);
    let mut terminal = Terminal::start(&mut command)?;
    terminal.wait_for("nothing", &["$ "])?;
    for words in lines {
        // The name of a subcommand is clap's to complete.
        let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
        terminal.wipe();
        terminal.press(&format!("fairway {verb} {}", tabbed(rest)))?;
        terminal.press("?\n")?;
        terminal.wait_for(words, &["<Enter>", &format!("fairway {words} ?")])?;
    }
    terminal.wipe();
    terminal.press("fairway show bgp neighbors 2001:db\t")?;
    terminal.wait_for("a neighbor", &["2001:db8:1:1::2 "])?;
    terminal.press(CONTROL_U)?;
    terminal.wipe();
    terminal.press("fairway clear bgp router-t\t")?;
    terminal.wait_for("a BGPPeer", &["router-two "])
}
