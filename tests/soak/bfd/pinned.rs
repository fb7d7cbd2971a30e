//! Which core does a program run on, and which others does it share it with? `taskset`, and busy loops.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use lab::namespace::{Network, Place};
use lab::process::{Process, bounded, output_of};

/// Where the program under test runs, and where the other end does.
pub(crate) const WATCHED_CORE: usize = 0;
pub(crate) const OTHER_CORE: usize = 1;

/// A place, on one core of the machine.
pub(crate) struct Pinned<'a, P: Place> {
    pub(crate) place: &'a P,
    pub(crate) core: usize,
    /// Before all that is not real-time: the other end must not be what is measured.
    pub(crate) first: bool,
}

impl<P: Place> Place for Pinned<'_, P> {
    fn command(&self, program: &OsStr) -> Command {
        let core = self.core.to_string();
        // Each replaces the one before: the process id stays.
        let mut command = if self.first && may_be_first() {
            let mut command = self.place.command("chrt".as_ref());
            command.args(["--fifo", "1", "taskset"]);
            command
        } else {
            self.place.command("taskset".as_ref())
        };
        command.args(["--cpu-list", &core]).arg(program);
        command
    }
}

/// Whether real-time priority can be requested.
fn may_be_first() -> bool {
    output_of(bounded("chrt").args(["--fifo", "1", "true"])).is_ok()
}

/// Two cores are needed: one to be busy, one for the other end.
pub(crate) fn expect_two_cores() -> Result<()> {
    let cores = std::thread::available_parallelism()?.get();
    ensure!(cores > OTHER_CORE, "expected two cores, this machine has {cores}");
    Ok(())
}

/// Loops that do nothing else, on the core of the program under test, for as long as this value lives.
pub(crate) struct Hogs {
    _processes: Vec<Process>,
}

impl Hogs {
    pub(crate) fn start(count: usize, log: &Path) -> Result<Self> {
        let place = Pinned { place: &Network::Own, core: WATCHED_CORE, first: false };
        let words = ["-c", "while :; do :; done"].map(str::to_owned);
        let start = |_| Process::spawn(&place, Path::new("/bin/sh"), &words, log);
        let processes = (0..count).map(start).collect::<Result<_>>()?;
        Ok(Self { _processes: processes })
    }
}
