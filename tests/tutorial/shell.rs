//! How is a page typed? Into one bash, whose network, mounts and processes are its own: what it leaves running ends with it.
//! Used by main; knows nothing of the page.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use lab::make_directory;
use lab::printed::lacking;
use lab::wait::{PATIENCE, wait_until};

/// How long one command may take; a drain of the page waits for seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// What a command's exit code stands behind, on a line of its own.
const MARK: &str = "-- typed: ";

/// Empty folders in place of those of this machine, where names are that other runs use, too.
const PRELUDE: &str = "mount --make-rprivate /; mkdir -p /run/netns /run/frr; for it in /run/netns /etc/frr /run/frr; do \
                       mount -t tmpfs tmpfs $it; done; chown frr:frr /run/frr";

pub(crate) struct Shell {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Shell {
    /// A root shell in an empty folder, with `fairway` in its path.
    pub(crate) fn start(directory: &Path) -> Result<Self> {
        let (home, programs) = (directory.join("home"), directory.join("bin"));
        make_directory(&home)?;
        make_directory(&programs)?;
        symlink(lab::fairway::program(), programs.join("fairway")).context("bin/fairway")?;
        let path = std::env::var("PATH").unwrap_or_default();
        let mut child = Command::new("unshare")
            .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
            .args(["bash", "--noprofile", "--norc"])
            .current_dir(&home)
            .env("PATH", format!("{}:{path}", programs.display()))
            .env_remove("FAIRWAY_SOCKET")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting a shell of its own")?;
        let output = child.stdout.take().context("the shell's output")?;
        let input = child.stdin.take().context("the shell's input")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut shell = Self { child, input, lines };
        shell.succeeds("exec 2>&1")?;
        shell.succeeds(PRELUDE)?;
        Ok(shell)
    }

    /// Types it; the exit code of its last command, and all that is seen.
    fn type_in(&mut self, text: &str) -> Result<(i32, String)> {
        writeln!(self.input, "{text}\necho \"{MARK}$?\"").context("typing")?;
        let mut seen = String::new();
        loop {
            let line = self.lines.recv_timeout(LIMIT).with_context(|| {
                format!("{text}: no end within {} s; seen:\n{seen}", LIMIT.as_secs())
            })?;
            // What runs in the background may print in the middle of a line.
            if let Some((before, code)) = line.split_once(MARK) {
                seen += before;
                return Ok((code.parse().with_context(|| line.clone())?, seen));
            }
            seen += &line;
            seen.push('\n');
        }
    }

    pub(crate) fn succeeds(&mut self, text: &str) -> Result<()> {
        let (code, seen) = self.type_in(text)?;
        ensure!(code == 0, "exit code {code}:\n{text}\n{seen}");
        Ok(())
    }

    /// Saves a file as an editor does, in the folder where the shell is.
    pub(crate) fn save(&mut self, path: &str, text: &str) -> Result<()> {
        ensure!(!text.contains("\nEND\n"), "the file has the line that ends it here");
        self.succeeds(&format!("cat > {path}.new <<'END'\n{text}END\nmv {path}.new {path}"))
    }

    /// Types a command until its output is as printed.
    pub(crate) fn shows(&mut self, command: &str, answer: &[String]) -> Result<()> {
        wait_until(command, PATIENCE, || {
            let (_, seen) = self.type_in(command)?;
            let lacking = lacking(&seen, answer);
            ensure!(lacking.is_none(), "expected the line {lacking:?} in\n{seen}");
            Ok(())
        })
    }

    /// Whether the page has taken away what it made.
    pub(crate) fn is_clean(&mut self) -> Result<()> {
        for (what, command) in [
            ("namespaces", "ip netns list"),
            ("files", "ls"),
            ("files of FRR", "ls /etc/frr"),
            ("jobs", "jobs -p"),
        ] {
            let (_, seen) = self.type_in(command)?;
            if !seen.trim().is_empty() {
                bail!("{what} are left behind: {seen}");
            }
        }
        Ok(())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // With it ends every process that it has started.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
