//! The monitor: one open `ip monitor route` in the router's namespace.

#![allow(clippy::disallowed_methods, reason = "it records when it has read a line")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::namespace::{Namespace, Place};
use crate::wait::wait_until;

/// Timeout for one change. Some of the programs that are measured for comparison are slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// A documentation address that no announcer here uses.
const PROBE: &str = "192.0.2.99";

/// Route changes of a namespace, each with the time it was read.
pub struct Monitor {
    child: Child,
    lines: Receiver<(Instant, String)>,
}

impl Monitor {
    pub fn start(namespace: &Namespace) -> Result<Self> {
        let mut child = namespace
            .command("ip".as_ref())
            .args(["-o", "monitor", "route"])
            .stdout(Stdio::piped())
            .spawn()
            .context("starting ip monitor")?;
        let stdout = child.stdout.take().context("ip monitor has no output")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        let monitor = Self { child, lines };
        monitor.wait_until_listening(namespace)?;
        Ok(monitor)
    }

    /// Changes a route of our own until the monitor has seen it.
    fn wait_until_listening(&self, namespace: &Namespace) -> Result<()> {
        wait_until("ip monitor listens", PATIENCE, || {
            namespace.ip(&["route", "add", "blackhole", PROBE])?;
            namespace.ip(&["route", "del", "blackhole", PROBE])?;
            self.lines.try_recv().map(drop).context("nothing seen yet")
        })
    }

    /// Waits until a route to the host `address` is installed; returns when.
    pub fn wait_for(&mut self, address: &str) -> Result<Instant> {
        self.wait_for_line(address, |_| true)
    }

    /// The same, for a route with a matching line of `ip`.
    pub fn wait_for_line(
        &mut self,
        address: &str,
        is_it: impl Fn(&str) -> bool,
    ) -> Result<Instant> {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let (when, line) = self
                .lines
                .recv_timeout(left)
                .with_context(|| format!("no route to {address} came to the router's kernel"))?;
            if line.split_whitespace().next() == Some(address) && is_it(&line) {
                return Ok(when);
            }
        }
    }
}

impl Monitor {
    /// Waits until each of these hosts has had a matching line; returns when. The line of a deleted route
    /// begins with `Deleted`.
    pub fn wait_for_all(
        &mut self,
        addresses: &BTreeSet<String>,
        is_it: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, Instant>> {
        let end = Instant::now() + PATIENCE;
        let mut seen = BTreeMap::new();
        while seen.len() < addresses.len() {
            let left = end.saturating_duration_since(Instant::now());
            let (when, line) = self.lines.recv_timeout(left).with_context(|| {
                let missing = addresses.iter().find(|address| !seen.contains_key(*address));
                let count = addresses.len() - seen.len();
                format!("{count} routes did not change at the router; one of them is {missing:?}")
            })?;
            let address = line.strip_prefix("Deleted ").unwrap_or(&line).split_whitespace().next();
            if let Some(address) = address.filter(|it| addresses.contains(*it) && is_it(&line)) {
                seen.entry(address.to_owned()).or_insert(when);
            }
        }
        Ok(seen)
    }

    /// Discards the lines that were received.
    pub fn forget(&self) {
        self.lines.try_iter().for_each(drop);
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // It may have ended with its namespace.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
