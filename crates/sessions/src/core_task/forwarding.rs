//! What this machine forwards by, on its way to the thread that installs it.
//!
//! A busy thread does not hold up sessions: what it has no room for waits here, each prefix once.

use std::collections::BTreeMap;

use fairway_fib::{Input, Installer};
use fairway_ground::{InterfaceName, Prefix};
use fairway_seam::{Forward, ForwardingChange, Leave, TrackedNextHop};
use tokio::sync::oneshot;
use tracing::error;

/// Routes of one message.
const CHANGES_MAX: usize = 4_096;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Forwarding {
    installer: Option<Installer>,
    /// The thread could not be started, or has ended, which was logged.
    has_failed: bool,
    waiting: BTreeMap<(Option<InterfaceName>, Prefix), Forward>,
    /// Said after all that waits.
    untracked: Vec<TrackedNextHop>,
    /// The same.
    completes: bool,
}

impl Forwarding {
    /// What is forwarded by has changed.
    pub(super) fn want(&mut self, changes: Vec<ForwardingChange>) {
        let waiting = changes.into_iter().map(|it| ((it.vrf, it.prefix), it.forward));
        self.waiting.extend(waiting);
        self.pass_on();
    }

    /// These next hops need not be followed any more.
    pub(super) fn untrack(&mut self, next_hops: Vec<TrackedNextHop>) {
        self.untracked.extend(next_hops);
        self.pass_on();
    }

    /// Waits until the reachability of next hops changes. Cancel-safe.
    pub(super) async fn next_hops(&self) -> Vec<(TrackedNextHop, bool)> {
        match &self.installer {
            Some(installer) => installer.next_hops().await,
            None => std::future::pending().await,
        }
    }

    /// All of it is known.
    pub(super) fn complete(&mut self) {
        self.completes = true;
        self.pass_on();
    }

    /// Whether something waits for room.
    pub(super) fn waits(&self) -> bool {
        self.completes || !self.waiting.is_empty() || !self.untracked.is_empty()
    }

    /// Waits until there may be room. Cancel-safe.
    pub(super) async fn has_room(&self) {
        match &self.installer {
            Some(installer) => drop(installer.inputs().reserve().await),
            None => std::future::pending().await,
        }
    }

    /// Passes on what there is room for.
    pub(super) fn pass_on(&mut self) {
        if self.installer.as_ref().is_some_and(|it| it.inputs().is_closed()) {
            return self.fail();
        }
        let Some(installer) = Self::started(&mut self.installer, &mut self.has_failed) else {
            (self.waiting, self.untracked, self.completes) = <_>::default();
            return;
        };
        while self.completes || !self.waiting.is_empty() || !self.untracked.is_empty() {
            let Ok(room) = installer.inputs().try_reserve() else { return };
            if self.waiting.is_empty() && !self.untracked.is_empty() {
                room.send(Input::Untrack(std::mem::take(&mut self.untracked)));
                continue;
            }
            if self.waiting.is_empty() {
                self.completes = false;
                room.send(Input::Complete);
                return;
            }
            let mut changes = Vec::with_capacity(self.waiting.len().min(CHANGES_MAX));
            while changes.len() < CHANGES_MAX
                && let Some(((vrf, prefix), forward)) = self.waiting.pop_first()
            {
                changes.push(ForwardingChange { vrf, prefix, forward });
            }
            room.send(Input::Want(changes));
        }
    }

    /// The thread has ended: it has no room any more, and nothing waits for some.
    fn fail(&mut self) {
        error!(
            "internal error: the thread that installs routes ended; the kernel keeps those that it has, and gets \
             no others until a restart; please report it"
        );
        *self = Self { has_failed: true, ..Self::default() };
    }

    /// The process ends: routes stay for the next one, or are removed.
    pub(super) async fn leave(&mut self, how: Leave) {
        let Some(installer) = self.installer.take() else { return };
        let (done, ended) = oneshot::channel();
        let leave = Input::Leave { removes: how == Leave::ForGood, done };
        if installer.inputs().send(leave).await.is_ok() {
            // It ends with its last order, or has ended.
            let _ = ended.await;
        }
    }

    fn started<'a>(
        installer: &'a mut Option<Installer>,
        has_failed: &mut bool,
    ) -> Option<&'a Installer> {
        if installer.is_none() && !*has_failed {
            match Installer::start() {
                Ok(started) => *installer = Some(started),
                Err(error) => {
                    *has_failed = true;
                    error!(%error, "cannot start the thread that installs routes: none is installed");
                }
            }
        }
        installer.as_ref()
    }
}
