//! Routinator as an RPKI cache, without trust anchors: what it says are the exceptions in a file (RFC 8416).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use anyhow::{Context, Result, anyhow};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::namespace::Namespace;
use super::process::Process;

/// Its port, on 127.0.0.1.
pub const PORT: u16 = 3323;

/// A prefix, the longest one in it, and the AS that may originate them.
pub type Payload = (&'static str, u8, u32);

/// The program; `None` where this machine has none.
pub fn program() -> Option<&'static Path> {
    static FOUND: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let script = crate::checkout().join("scripts/routinator.sh");
        let output = Command::new(script).arg("--find").stderr(Stdio::inherit()).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| PathBuf::from(path.trim_end()))
    });
    FOUND.as_deref()
}

/// One that runs.
pub struct Routinator {
    process: Process,
    exceptions: PathBuf,
}

impl Routinator {
    /// Starts it in `node`, with its files in `directory`.
    pub fn start(node: &Namespace, directory: &Path, payloads: &[Payload]) -> Result<Self> {
        let program = program().context("there is no routinator; run: scripts/routinator.sh")?;
        let exceptions = directory.join("exceptions.json");
        let repository = directory.join("rpki-repository");
        std::fs::create_dir_all(&repository).context("a folder for routinator")?;
        write(&exceptions, payloads)?;
        let [exceptions_text, repository] =
            [&exceptions, &repository].map(|it| it.to_string_lossy().into_owned());
        let rtr = format!("127.0.0.1:{PORT}");
        let arguments = [
            "--no-rir-tals",
            "--disable-rsync",
            "--exceptions",
            &exceptions_text,
            "--repository-dir",
            &repository,
            "server",
            "--rtr",
            &rtr,
        ]
        .map(str::to_owned);
        let log = directory.join("routinator.log");
        let process = Process::spawn(node, program, &arguments, &log)?;
        Ok(Self { process, exceptions })
    }

    /// It says this from now on.
    pub fn say(&self, payloads: &[Payload]) -> Result<()> {
        write(&self.exceptions, payloads)?;
        let pid = i32::try_from(self.process.id()).context("a process id")?;
        // It reads its file again.
        kill(Pid::from_raw(pid), Signal::SIGUSR1).map_err(|error| anyhow!("routinator: {error}"))
    }

    /// It is gone.
    pub fn kill(&mut self) {
        self.process.kill();
    }
}

fn write(file: &Path, payloads: &[Payload]) -> Result<()> {
    let assertion = |(prefix, length_max, asn): &Payload| -> Value {
        json!({"prefix": prefix, "maxPrefixLength": length_max, "asn": asn})
    };
    let assertions: Vec<Value> = payloads.iter().map(assertion).collect();
    let exceptions = json!({
        "slurmVersion": 1,
        "validationOutputFilters": {"prefixFilters": [], "bgpsecFilters": []},
        "locallyAddedAssertions": {"prefixAssertions": assertions, "bgpsecAssertions": []},
    });
    std::fs::write(file, exceptions.to_string()).context("writing the exceptions of routinator")
}
