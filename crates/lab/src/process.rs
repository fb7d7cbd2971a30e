//! How is a program run inside a namespace, watched, frozen and ended? Each long-running program is
//! the leader of its own process group, so that its children are frozen and ended with it, by id.
//! Used for fairway and for every router.

use std::fs::{File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::namespace::Place;
use super::wait::{Hopeless, wait_until};

/// How long one short command (ip, vtysh, gobgp) may take before it counts as hung.
const COMMAND_LIMIT_SECONDS: &str = "10";

/// A running program and the file that its output goes to.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts `program` in `place`; what it prints is appended to `log`.
    pub fn spawn(
        place: &impl Place,
        program: &Path,
        arguments: &[String],
        log: &Path,
    ) -> Result<Self> {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let output = append_to(log)?;
        let errors = output.try_clone().context("second handle of a log file")?;
        let child = place
            .command(program.as_os_str())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        Ok(Self { name, child, log: log.to_owned(), ended: None })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails permanently when the program has ended.
    pub fn check_running(&mut self) -> Result<()> {
        match self.exit_status()? {
            None => Ok(()),
            Some(status) => Err(Hopeless(format!(
                "{} should be running but ended with {status}; its log is {}",
                self.name,
                self.log.display()
            ))
            .into()),
        }
    }

    /// Sends SIGTERM and waits for the end; a program that does not leave is killed and reported.
    pub fn stop(&mut self, patience: Duration) -> Result<ExitStatus> {
        if self.exit_status()?.is_none() {
            self.signal(Signal::SIGTERM)?;
        }
        let name = self.name.clone();
        wait_until(&format!("{name} ends after SIGTERM"), patience, || {
            self.exit_status()?.context("it still runs")
        })
        .inspect_err(|_| self.kill())
    }

    /// Ends the program and its children at once.
    pub fn kill(&mut self) {
        if self.ended.is_none() {
            // The group may have ended between two checks; there is nothing to do about it then.
            let _ = self.signal(Signal::SIGKILL);
            self.ended = self.child.wait().ok();
        }
    }

    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::SIGSTOP)
    }

    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::SIGCONT)
    }

    fn exit_status(&mut self) -> Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended =
                self.child.try_wait().with_context(|| format!("asking for {}", self.name))?;
        }
        Ok(self.ended)
    }

    /// The program leads its group, so the group's id is its own.
    fn signal(&self, signal: Signal) -> Result<()> {
        let group = Pid::from_raw(i32::try_from(self.child.id()).context("a process id")?);
        killpg(group, signal).with_context(|| format!("sending {signal} to {}", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a short command to its end; its output, or an error with everything that it printed.
pub fn output_of(command: &mut Command) -> Result<String> {
    let line = format!("{command:?}").replace('"', "");
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("running {line}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{line}: {}: {} {}", output.status, errors.trim(), text.trim());
    }
    Ok(text.into_owned())
}

/// A command that is ended when it hangs, so that no cell can.
pub fn bounded(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=1", COMMAND_LIMIT_SECONDS]).arg(program);
    command
}

/// The last lines of a log, for a person who reads why a cell failed.
pub fn tail(log: &Path, lines: usize) -> String {
    let Ok(bytes) = std::fs::read(log) else {
        return format!("(no file {})\n", log.display());
    };
    let text = String::from_utf8_lossy(&bytes);
    let skipped = text.lines().count().saturating_sub(lines);
    text.lines().skip(skipped).map(|line| format!("    {line}\n")).collect()
}

fn append_to(log: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("opening the log {}", log.display()))
}
