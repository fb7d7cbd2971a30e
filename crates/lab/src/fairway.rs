//! How does a test drive fairway? As an operator does: resource files that come, change and go
//! (each by one rename), signals, and `fairway show`. Used by every case.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::namespace::Place;
use super::process::{Process, bounded, output_of};
use super::wait::{PATIENCE, now, wait_until};
use super::{Lab, make_directory};

const STOP_LIMIT: Duration = Duration::from_secs(10);

/// The daemon under test, with its directory of resources.
pub struct Fairway {
    process: Option<Process>,
    program: PathBuf,
    directory: PathBuf,
    /// How much it logs.
    pub log_level: &'static str,
    /// Extra words for `fairway run`, such as `--bgp-listen`.
    pub extra_arguments: Vec<String>,
}

/// What `show bgp summary` says about one neighbour.
#[derive(Debug)]
pub struct Neighbour {
    pub state: String,
    pub connections_established: u64,
}

impl Neighbour {
    pub fn is_established(&self) -> bool {
        self.state == "Established"
    }
}

/// The binary under test: `FAIRWAY_BIN`, else the one that cargo has built beside this test.
pub fn program() -> PathBuf {
    // A path from the checkout on: it is run in other folders, too.
    std::env::var_os("FAIRWAY_BIN").map_or_else(built_beside, |path| crate::checkout().join(path))
}

/// The binary of the folder that cargo has built this test into.
pub fn built_beside() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    // target/PROFILE/deps/TEST
    let folder = test.parent().and_then(Path::parent).unwrap_or(Path::new("target/debug"));
    folder.join("fairway")
}

/// The binary under test; an error when there is none says how to get one.
pub fn existing_program() -> Result<PathBuf> {
    let program = program();
    ensure!(
        program.exists(),
        "the program under test, {}, does not exist; run `cargo build --bin fairway`, or set \
         FAIRWAY_BIN to the path of one",
        program.display()
    );
    Ok(program)
}

impl Fairway {
    /// Prepares the directories; nothing runs yet.
    pub fn prepare(lab: &Lab) -> Result<Self> {
        Self::prepare_in(&lab.directory)
    }

    /// The same, for a place that is no lab.
    pub fn prepare_in(directory: &Path) -> Result<Self> {
        let fairway = Self {
            process: None,
            program: program(),
            directory: directory.to_owned(),
            log_level: "debug",
            extra_arguments: Vec::new(),
        };
        for folder in ["config", "staging", "state"] {
            make_directory(&fairway.directory.join(folder))?;
        }
        Ok(fairway)
    }

    /// Starts `fairway run` and waits until it answers on its socket.
    pub fn start(&mut self, node: &impl Place) -> Result<()> {
        let config = self.path("config");
        self.start_as(node, &["run", "--config", &config, "--node", "node-a"])
    }

    /// Starts `fairway WORDS`, with socket and state in this directory, and waits until it answers.
    pub fn start_as(&mut self, node: &impl Place, words: &[&str]) -> Result<()> {
        let mut arguments: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        for (option, value) in [
            ("--socket", self.path("fairway.sock")),
            ("--state-dir", self.path("state")),
            ("--log-level", self.log_level.to_owned()),
        ] {
            arguments.extend([option.to_owned(), value]);
        }
        arguments.extend(self.extra_arguments.iter().cloned());
        let process = Process::spawn(node, &self.program, &arguments, &log_in(&self.directory))?;
        self.process = Some(process);
        wait_until("fairway answers on its socket", PATIENCE, || {
            self.check_running()?;
            self.show(&["bgp", "summary"])
        })
        .map(drop)
    }

    /// SIGTERM; an exit code other than 0 is a fault.
    pub fn stop(&mut self) -> Result<()> {
        let mut process = self.process.take().context("fairway was not started")?;
        let status = process.stop(STOP_LIMIT)?;
        ensure!(
            status.success(),
            "expected exit code 0 after SIGTERM, fairway ended with {status}"
        );
        Ok(())
    }

    /// SIGKILL: fairway cannot shut down in order.
    pub fn kill(&mut self) -> Result<()> {
        self.process.take().context("fairway was not started")?.kill();
        Ok(())
    }

    /// Puts another build in the place of the program, as a package manager does: a running process keeps
    /// the file that it was started from.
    pub fn install(&mut self, build: &Path) -> Result<()> {
        let folder = self.directory.join("bin");
        make_directory(&folder)?;
        let (staged, program) = (folder.join("fairway.new"), folder.join("fairway"));
        fs::copy(build, &staged).with_context(|| format!("copying {}", build.display()))?;
        fs::rename(&staged, &program).context("replacing the program")?;
        self.program = program;
        Ok(())
    }

    /// Whether the announcement of this prefix is on disk: the next run will know of it.
    pub fn keeps_announced(&self, prefix: &str) -> Result<bool> {
        let file = self.directory.join("state/announced.json");
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        Ok(text.contains(&format!("\"{prefix}\"")))
    }

    /// Whether the assignment of this address is on disk: the next run will know of it, however this one ends.
    pub fn keeps_assigned(&self, address: &str) -> Result<bool> {
        let file = self.directory.join("state/assignments.json");
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        Ok(text.contains(&format!("\"{address}\"")))
    }

    pub fn check_running(&mut self) -> Result<()> {
        self.process.as_mut().map_or(Ok(()), Process::check_running)
    }

    /// The process id of the daemon.
    pub fn process_id(&self) -> Result<u32> {
        Ok(self.process.as_ref().context("fairway was not started")?.id())
    }

    /// Writes or replaces the resource file `name`; readers see the old text or the new one.
    pub fn apply(&self, name: &str, text: &str) -> Result<()> {
        self.apply_timed(name, text).map(drop)
    }

    /// The same; says when the file took its place.
    pub fn apply_timed(&self, name: &str, text: &str) -> Result<Instant> {
        let staged = self.directory.join("staging").join(name);
        fs::write(&staged, text).with_context(|| format!("writing {}", staged.display()))?;
        let moment = now();
        fs::rename(&staged, self.resource(name))
            .with_context(|| format!("moving {name} in place"))?;
        Ok(moment)
    }

    /// Removes the resource file `name`.
    pub fn remove(&self, name: &str) -> Result<()> {
        fs::remove_file(self.resource(name)).with_context(|| format!("removing {name}"))
    }

    /// The socket of `fairway show`.
    pub fn socket(&self) -> PathBuf {
        self.path("fairway.sock").into()
    }

    /// Runs `fairway show WORDS --json`.
    pub fn show(&self, words: &[&str]) -> Result<Value> {
        let mut command = bounded(&self.program);
        command.arg("show").args(words).args(["--json", "--socket"]).arg(self.path("fairway.sock"));
        let text = output_of(&mut command)?;
        serde_json::from_str(&text)
            .with_context(|| format!("expected JSON from show {}: {text}", words.join(" ")))
    }

    /// Runs `fairway show WORDS`, as text.
    pub fn show_text(&self, words: &[&str]) -> Result<String> {
        let mut command = bounded(&self.program);
        output_of(command.arg("show").args(words).arg("--socket").arg(self.path("fairway.sock")))
    }

    /// Runs `fairway explain KIND NAME`, as text.
    pub fn explain(&self, kind: &str, name: &str) -> Result<String> {
        let mut command = bounded(&self.program);
        command.args(["explain", kind, name, "--socket"]).arg(self.path("fairway.sock"));
        output_of(&mut command)
    }

    /// Runs `fairway clear bgp WORDS`; what it printed.
    pub fn clear(&self, words: &[&str]) -> Result<String> {
        let mut command = bounded(&self.program);
        command.args(["clear", "--socket"]).arg(self.path("fairway.sock")).arg("bgp").args(words);
        output_of(&mut command)
    }

    /// What `fairway render` makes of the folder of resources: a configuration for FRR.
    pub fn render(&self) -> Result<String> {
        let mut command = bounded(&self.program);
        command.args(["render", "--show-secrets", "--node", "node-a", "--config"]);
        output_of(command.arg(self.path("config")))
    }

    /// A command that will run `fairway drain WORDS`.
    pub fn drain(&self, words: &[&str]) -> Command {
        let mut command = bounded(&self.program);
        command.arg("drain").args(words).arg("--socket").arg(self.path("fairway.sock"));
        command
    }

    /// The neighbour as the summary of either family shows it.
    pub fn neighbour(&self, address: &str) -> Result<Neighbour> {
        let summary = self.show(&["bgp", "summary"])?;
        let peer = ["ipv4Unicast", "ipv6Unicast"]
            .into_iter()
            .find_map(|family| summary.get(family)?.get("peers")?.get(address))
            .with_context(|| format!("expected {address} in fairway's summary: {summary}"))?;
        let text = |key| peer.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key| peer.get(key).and_then(Value::as_u64);
        Ok(Neighbour {
            state: text("state").with_context(|| format!("no state of {address}: {peer}"))?,
            connections_established: number("connectionsEstablished")
                .with_context(|| format!("no connectionsEstablished of {address}: {peer}"))?,
        })
    }

    /// Where the resource file `name` is.
    pub fn resource(&self, name: &str) -> PathBuf {
        self.directory.join("config").join(format!("{name}.yaml"))
    }

    /// A folder of it: `config`, `state`.
    pub fn directory_of(&self, name: &str) -> String {
        self.path(name)
    }

    fn path(&self, name: &str) -> String {
        self.directory.join(name).to_string_lossy().into_owned()
    }
}

/// Where fairway's log of the cell in `directory` is.
pub fn log_in(directory: &Path) -> PathBuf {
    directory.join("fairway.log")
}
