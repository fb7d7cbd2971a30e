//! When to look again at the state of bgpd.
//!
//! bgpd hands out its log on request (`terminal monitor`), and a log record means that something may have
//! changed; the summary shows what. Changes that are not logged are noticed by a look every few seconds.
//! Increments a counter when two looks differ, and logs which sessions of ours began and ended. Used by the observer.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::{Allowance, Allowances, Bound, PeerKey, Remote, nonzero};
use fairway_seam::{Desired, PeerConfig};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, info, warn};

use super::daemon::Daemon;
use super::log::Log;
use crate::status::{Digest, SUMMARY, SessionChange};

/// Timeout for a summary, and the interval between two looks if nothing happens.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Delay of a look after an event: bgpd logs some events before it has handled them.
const LOOK_DELAY: Duration = Duration::from_millis(10);
/// Minimum interval between two looks because of the log. A look costs bgpd a millisecond, and a bgpd that
/// logs for debugging logs without end.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Number of looks after a configuration change, and the first interval between them: bgpd collects changes
/// before it advertises them, for a second at most.
const LOOKS_AFTER_CHANGE: u32 = 6;
const FIRST_LOOK_AFTER_CHANGE: Duration = Duration::from_millis(40);

/// Log lines about the sessions of one neighbour: one that comes and goes each minute is logged in full.
const LINES: Allowance = Allowance { burst: 60, interval: Duration::from_secs(5) };

/// Watches, until it is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    task: JoinHandle<()>,
    requests: mpsc::Sender<()>,
}

impl Watch {
    /// Watches bgpd at `socket`. The number counts changes.
    pub(super) fn start(
        socket: PathBuf,
        desired: watch::Receiver<Option<Arc<Desired>>>,
    ) -> (Self, watch::Receiver<u64>) {
        let (changes, receiver) = watch::channel(1);
        // One pending request is enough.
        let (requests, asked) = mpsc::channel(1);
        let watching = Watching {
            bgpd: Daemon::new(socket.clone(), LOOK_INTERVAL),
            socket,
            log: None,
            looked_at: Instant::now(),
            seen: None,
            sessions: Digest::default(),
            lines: Allowances::new(LINES, Bound::LogLine),
            begun: Instant::now(),
            desired,
            changes,
        };
        let task = tokio::spawn(watching.run(asked));
        (Self { task, requests }, receiver)
    }

    /// FRR was configured.
    pub(super) fn look_again(&self) {
        let _ = self.requests.try_send(());
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Watching {
    socket: PathBuf,
    bgpd: Daemon,
    log: Option<Log>,
    looked_at: Instant,
    /// The last answer; `None` if there was none.
    seen: Option<Digest>,
    /// The last that there was.
    sessions: Digest,
    /// Log lines of each neighbour.
    lines: Allowances<PeerKey>,
    begun: Instant,
    desired: watch::Receiver<Option<Arc<Desired>>>,
    changes: watch::Sender<u64>,
}

/// Why it is time to look.
enum Cause {
    Time,
    Log,
    Configured,
    Over,
}

impl Watching {
    async fn run(mut self, mut asked: mpsc::Receiver<()>) {
        let mut looks_left = 0u32;
        loop {
            if self.log.is_none() {
                self.log = Log::open(&self.socket, LOOK_INTERVAL).await.ok();
            }
            let looks_done = LOOKS_AFTER_CHANGE.saturating_sub(looks_left);
            let patience = match looks_left {
                0 => LOOK_INTERVAL,
                _ => FIRST_LOOK_AFTER_CHANGE.saturating_mul(1 << looks_done.min(8)),
            };
            looks_left = looks_left.saturating_sub(1);
            match self.cause(Instant::now() + patience, &mut asked).await {
                Cause::Time | Cause::Log => self.look(false).await,
                Cause::Configured => {
                    looks_left = LOOKS_AFTER_CHANGE;
                    self.look(true).await;
                }
                Cause::Over => return,
            }
        }
    }

    async fn cause(&mut self, at: Instant, asked: &mut mpsc::Receiver<()>) -> Cause {
        let log = async {
            match &mut self.log {
                Some(log) => log.record().await,
                None => std::future::pending().await,
            }
        };
        let is_open = tokio::select! {
            () = sleep_until(at) => return Cause::Time,
            request = asked.recv() => {
                return request.map_or(Cause::Over, |()| Cause::Configured);
            }
            is_open = log => is_open,
        };
        if !is_open {
            // The daemon went down; the next look reports that, and a later one may find it up again.
            self.log = None;
        }
        // Records in quick succession are one event.
        sleep_until((self.looked_at + LOOK_INTERVAL_MIN).max(Instant::now() + LOOK_DELAY)).await;
        if let Some(log) = &mut self.log {
            while timeout(Duration::ZERO, log.record()).await == Ok(true) {}
        }
        Cause::Log
    }

    /// Counts if anything differs from before, or surely changed.
    async fn look(&mut self, has_changed: bool) {
        self.looked_at = Instant::now();
        let answer = timeout(LOOK_INTERVAL, self.bgpd.ask(SUMMARY)).await;
        let now = answer.ok().and_then(Result::ok).and_then(|it| Digest::of(&it.text).ok());
        if has_changed || now != self.seen {
            self.changes.send_modify(|count| *count = count.saturating_add(1));
        }
        if let Some(now) = &now {
            for change in now.sessions_since(&self.sessions) {
                self.log(&change);
            }
            self.sessions.clone_from(now);
        }
        self.seen = now;
    }

    /// Sessions of others are not logged.
    fn log(&mut self, change: &SessionChange) {
        let desired = self.desired.borrow().clone();
        let Some((key, config)) = desired.as_ref().and_then(|it| ours(it, change)) else { return };
        let now = fairway_ground::Instant::ZERO + self.begun.elapsed();
        let name = &config.name;
        match (self.lines.take(now, key).map(nonzero), change.is_up) {
            (Some(lines_left_out), true) => info!(peer = %key, name, lines_left_out, "session up"),
            (Some(lines_left_out), false) => warn!(
                peer = %key, name, lines_left_out,
                "session down; `fairway explain peer` has the reason"
            ),
            (None, true) => debug!(peer = %key, name, "session up"),
            (None, false) => debug!(peer = %key, name, "session down"),
        }
    }
}

/// The neighbour of ours that this is, or the range of ours that it is from.
fn ours<'a>(desired: &'a Desired, change: &SessionChange) -> Option<(PeerKey, &'a PeerConfig)> {
    let vrf = match change.vrf.as_str() {
        "default" => None,
        name => Some(name.parse().ok()?),
    };
    let remote = match change.peer.parse() {
        Ok(address) => Remote::Address(address),
        Err(_) => Remote::Interface(change.peer.parse().ok()?),
    };
    let key = PeerKey { remote, vrf };
    let is_it = |config: &&PeerConfig| match (config.key.remote, remote) {
        (Remote::Range(range), Remote::Address(address)) => {
            config.key.vrf == vrf && range.contains(address)
        }
        _ => config.key == key,
    };
    Some((key, desired.peers.iter().find(is_it)?))
}
