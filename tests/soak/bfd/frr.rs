//! FRR on a cable with many sessions: each daemon with a file of its own, which it reads as it starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use lab::namespace::Place;
use lab::process::{Process, bounded, output_of};
use lab::wait::wait_until;

pub(crate) const ZEBRA: &str = "/usr/lib/frr/zebra";
pub(crate) const BFDD: &str = "/usr/lib/frr/bfdd";
pub(crate) const BGPD: &str = "/usr/lib/frr/bgpd";

/// How long it may read a file of a thousand neighbours.
const LONG: Duration = Duration::from_secs(60);

/// Daemons that share a directory, in the order in which they are ended.
pub(crate) struct Frr {
    daemons: Vec<Process>,
    directory: PathBuf,
}

impl Frr {
    /// FRR without daemons yet, with this directory.
    pub(crate) fn prepare(directory: &Path) -> Self {
        Self { daemons: Vec::new(), directory: directory.to_owned() }
    }

    /// Starts one more daemon, and waits until vtysh can reach it.
    pub(crate) fn start(
        &mut self,
        place: &impl Place,
        program: &str,
        configuration: &str,
    ) -> Result<()> {
        let file = |name: &str| self.directory.join(name).to_string_lossy().into_owned();
        let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
        let own = file(&format!("{name}.conf"));
        fs::write(&own, configuration).with_context(|| format!("writing {own}"))?;
        output_of(bounded("chown").args(["-R", "frr:frr", &file("")]))?;
        let mut words =
            ["-f", &own, "-i", &file(&format!("{name}.pid"))].map(str::to_owned).to_vec();
        words.extend(["-z".to_owned(), file("zserv.api"), "--vty_socket".to_owned(), file("")]);
        words.extend(["-A", "127.0.0.1", "-P", "0", "--log", "stdout"].map(str::to_owned));
        if program == BFDD {
            words.extend(["--bfdctl".to_owned(), file("bfdd.sock")]);
        }
        let log = file(&format!("{name}.log"));
        let mut process = Process::spawn(place, Path::new(program), &words, Path::new(&log))?;
        let socket = file(&format!("{name}.vty"));
        wait_until(&format!("{name} opens its socket"), LONG, || {
            process.check_running()?;
            ensure!(Path::new(&socket).exists(), "no {socket} yet");
            Ok(())
        })?;
        self.daemons.insert(0, process);
        Ok(())
    }

    /// The daemon that was started last.
    pub(crate) fn process_id(&self) -> Result<u32> {
        Ok(self.daemons.first().context("no daemon of FRR was started")?.id())
    }

    pub(crate) fn check_running(&mut self) -> Result<()> {
        self.daemons.iter_mut().try_for_each(Process::check_running)
    }

    /// The answer to a command that prints JSON.
    pub(crate) fn ask(&self, command: &str) -> Result<Value> {
        let directory = self.directory.as_os_str();
        let words = ["--vty_socket".as_ref(), directory, "-c".as_ref(), command.as_ref()];
        let text = output_of(bounded("vtysh").args(words))?;
        serde_json::from_str(&text).with_context(|| format!("expected JSON from {command}"))
    }
}
