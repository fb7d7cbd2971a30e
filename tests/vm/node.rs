//! A node under test: a namespace, the fairway in it, and what both report. Used by every case.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use lab::fairway::{Fairway, Neighbour};
use lab::make_directory;
use lab::namespace::Namespace;
use lab::wait::{PATIENCE, holds_for, wait_until};

/// An emulated machine is slow, and a neighbour redials after a while.
pub(crate) const LIMIT: Duration = Duration::from_secs(4 * PATIENCE.as_secs());

/// How long a case watches that what must not happen does not: two dials that stay unanswered.
pub(crate) const DISTRUST: Duration = Duration::from_secs(12);

/// Daemons first, then the namespace that they live in.
pub(crate) struct Node {
    pub(crate) fairway: Fairway,
    pub(crate) namespace: Namespace,
}

impl Node {
    /// Nothing runs yet.
    pub(crate) fn prepare(number: usize, role: &str, directory: &Path) -> Result<Self> {
        let directory = directory.join(role);
        make_directory(&directory)?;
        let namespace = Namespace::create(number, role)?;
        Ok(Self { fairway: Fairway::prepare_in(&directory)?, namespace })
    }

    pub(crate) fn start(&mut self) -> Result<()> {
        self.fairway.start(&self.namespace)
    }

    /// Waits until the session with `peer` is up.
    pub(crate) fn established(&mut self, peer: &str) -> Result<Neighbour> {
        wait_until(&format!("the session with {peer} is up"), LIMIT, || {
            self.fairway.check_running()?;
            let neighbour = self.fairway.neighbour(peer)?;
            ensure!(neighbour.is_established(), "fairway says {}", neighbour.state);
            Ok(neighbour)
        })
    }

    /// Watches that there is no session with `peer`.
    pub(crate) fn expect_no_session(&mut self, peer: &str) -> Result<()> {
        holds_for(&format!("no session with {peer}"), DISTRUST, || {
            self.fairway.check_running()?;
            let neighbour = self.fairway.neighbour(peer)?;
            ensure!(!neighbour.is_established(), "fairway says {}", neighbour.state);
            Ok(())
        })
    }

    /// The prefixes that neighbours have announced to it.
    pub(crate) fn learned(&self) -> Result<BTreeSet<String>> {
        let table = self.fairway.show(&["bgp", "ipv4", "unicast"])?;
        let routes = table.get("routes").and_then(Value::as_object).context("no routes")?;
        Ok(routes.keys().cloned().collect())
    }

    /// Waits until neighbours have announced these prefixes to it, beside others.
    pub(crate) fn learns(&mut self, prefixes: &[&str]) -> Result<()> {
        wait_until(&format!("it has the routes {prefixes:?}"), LIMIT, || {
            self.fairway.check_running()?;
            let learned = self.learned()?;
            let missing = prefixes.iter().find(|prefix| !learned.contains(**prefix));
            ensure!(missing.is_none(), "{missing:?} is not among {learned:?}");
            Ok(())
        })
    }
}
