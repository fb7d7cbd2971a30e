//! Which parts of the wanted configuration are not in force, and why?
//!
//! Part of [`Application`].

use super::Application;
use crate::configuration::without_secrets;
use crate::daemon::Daemon;

/// Attempts on a locked daemon after which the lock is a fault: FRR 10's mgmtd has one for a moment with each commit, and
/// while it starts.
const LOCKED_MAX: u32 = 6;

impl Application {
    /// The parts of the wanted configuration that are not in force, and why.
    pub fn faults(&self) -> Vec<String> {
        let away = self.known.iter().flat_map(|known| &known.away);
        let away = away.filter(|(daemon, _)| self.needs(**daemon));
        let awaited = self.awaited();
        let awaited = awaited.into_iter().filter(|(daemon, _)| !self.needs(*daemon));
        let away = away.map(|(daemon, why)| (*daemon, why)).chain(awaited);
        let away = away.map(|(daemon, why)| unreachable(daemon, why));
        let stubborn = self.memory.iter().flat_map(|(daemon, memory)| {
            let name = daemon.name();
            let left = memory.stubborn.iter().map(move |(_, line)| (name, without_secrets(line)));
            left.map(|(name, line)| {
                format!("FRR's {name} does not apply `{line}`: the setting is still configured")
            })
        });
        let (locked, attempts) = &self.locked;
        let locked = locked.iter().filter(|_| *attempts > LOCKED_MAX).map(|(daemon, words)| {
            let name = daemon.name();
            format!("FRR's {name} is locked by another client, and is tried each second: {words}")
        });
        let other_owner = self.other_owner.map(|it| {
            format!(
                "this FRR is configured by another Fairway, {it}; stop that one, and remove its \
                 lines with `fairway frr-forget --owner {it}`"
            )
        });
        let faults = other_owner
            .into_iter()
            .chain(self.load_fault())
            .chain(away)
            .chain(locked)
            .chain(self.obstacles.faults());
        let faults = faults.chain(self.recording.faults());
        faults.chain(self.refusals.faults()).chain(stubborn).collect()
    }

    /// Why no neighbor is configured in FRR at all.
    pub fn unready(&self) -> Option<String> {
        self.unready.clone()
    }
}

/// What is said of a daemon that does not answer.
pub(super) fn unreachable(daemon: Daemon, why: &str) -> String {
    format!("FRR's {} is unreachable: {why}", daemon.name())
}
