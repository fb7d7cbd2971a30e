//! The thread that asks RPKI caches, and what the core has of it.
//!
//! A thread and not a task: the answer of a cache has half a million payloads, for which no session may wait. It hands over a
//! table that is complete, and says which prefixes it concerns.

mod connection;
mod thread;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use fairway_ground::{Instant, RpkiServer};
use fairway_rpki::{CacheView, Concerned, OriginTable};
use fairway_seam::RpkiServerView;
use tokio::sync::{mpsc, watch};
use tracing::error;

use super::clock::Clock;

type Servers = Arc<BTreeSet<RpkiServer>>;
type Views = Arc<[(RpkiServer, CacheView)]>;

/// What routes are judged by from now on, and which of them concerns that.
pub(super) type Verdicts = (Arc<OriginTable>, Concerned);

/// The core's end. Without servers there is no thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Caches {
    clock: Clock,
    running: Option<Running>,
    /// The thread could not be started, which was logged.
    has_failed: bool,
}

#[derive(Debug)]
struct Running {
    servers: watch::Sender<Servers>,
    verdicts: mpsc::Receiver<Verdicts>,
    views: watch::Receiver<Views>,
}

impl Caches {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, running: None, has_failed: false }
    }

    /// These are to be asked.
    pub(super) fn want(&mut self, servers: &Servers) {
        if self.running.is_none() && !servers.is_empty() && !self.has_failed {
            match start(self.clock) {
                Ok(running) => self.running = Some(running),
                Err(error) => {
                    self.has_failed = true;
                    error!(%error, "cannot start the thread that asks RPKI caches: none is asked");
                }
            }
        }
        if let Some(running) = &self.running {
            running.servers.send_if_modified(|known| {
                let is_other = known != servers;
                known.clone_from(servers);
                is_other
            });
        }
    }

    /// The next table. Cancel-safe.
    pub(super) async fn verdicts(&mut self) -> Verdicts {
        let next = match &mut self.running {
            Some(running) => running.verdicts.recv().await,
            None => return std::future::pending().await,
        };
        next.unwrap_or_else(|| {
            error!(
                "internal error: the thread that asks RPKI caches ended; what they said does not count any more, and they \
                 are not asked until a restart; please report it"
            );
            (self.running, self.has_failed) = (None, true);
            (Arc::default(), Concerned::everything())
        })
    }

    /// For an operator.
    pub(super) fn view(&self, now: Instant) -> Vec<RpkiServerView> {
        let Some(running) = &self.running else { return Vec::new() };
        let views = running.views.borrow();
        let view = |(server, it): &(RpkiServer, CacheView)| RpkiServerView {
            server: server.clone(),
            is_connected: it.is_connected,
            version: it.version.into(),
            payloads: it.payloads,
            serial: it.serial,
            synchronized_ago: it.synchronized_at.map(|at| now.since(at)),
            expires_in: it.expires_at.map(|at| at.since(now)),
            failure: it.failure.clone(),
        };
        views.iter().map(view).collect()
    }
}

/// Starts the thread, in the network namespace of this one.
fn start(clock: Clock) -> io::Result<Running> {
    let (servers, wanted) = watch::channel(Servers::default());
    let (tell, verdicts) = mpsc::channel(1);
    let (show, views) = watch::channel(Views::from([]));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let work = move || runtime.block_on(thread::run(clock, wanted, tell, show));
    std::thread::Builder::new().name("rpki".to_owned()).spawn(work)?;
    Ok(Running { servers, verdicts, views })
}
