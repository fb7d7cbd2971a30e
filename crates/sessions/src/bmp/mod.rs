//! The thread that tells BMP stations what happens, and what the core has of it.
//!
//! A thread and not a task: a full table is written for each station, for which no session may wait. The core tells what
//! happened as it happens; what the thread has no room for ends all connections to stations, which begin again with all there
//! is. Without a station there is no thread, and the speaker notes nothing.

mod connection;
mod numbers;
mod tables;
#[cfg(test)]
mod tests;
mod thread;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fairway_bgp::session::{Best, Monitored};
use fairway_bmp::StationView;
use fairway_ground::{BmpStation, BmpTables, Instant, PeerKey, Prefix};
use fairway_seam::{BgpView, BmpStationView};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{error, warn};

use super::clock::Clock;

/// What may wait for the thread, in bytes: that the core has read in a second or two.
const FEED_BYTES_MAX: usize = 16 << 20;
/// Why a station is told nothing, if no thread is there to do so.
const FAILED: &str =
    "the thread for BMP stations does not run, see the log: a restart of Fairway starts it again";
/// How long the last messages to stations may take when the process ends.
const LEAVE_WAIT: Duration = Duration::from_secs(1);

type Wanted = Arc<BTreeSet<BmpStation>>;
type Views = Arc<[(BmpStation, StationView)]>;

/// What the core tells.
#[derive(Debug)]
enum Feed {
    /// Something happened to a neighbour.
    Peer(PeerKey, Vec<Monitored>),
    /// Best routes have changed.
    LocRib(Vec<(Prefix, Option<Best>)>),
    /// The tables that were asked for.
    Tables(Box<BgpView>),
    /// The numbers that were asked for.
    Statistics(Box<BgpView>),
    /// Something was lost: all that follows begins from scratch.
    Lost,
}

/// What the thread asks of the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// All routes of these tables. What neighbours announced is not kept: they are asked for it.
    Tables(BmpTables),
    /// How many there are.
    Statistics,
}

/// The core's end. The thread ends when this is dropped.
#[derive(Debug)]
pub(super) struct Stations {
    clock: Clock,
    wanted: Wanted,
    running: Option<Running>,
    /// The thread could not be started, or ended, which was logged.
    has_failed: bool,
}

#[derive(Debug)]
struct Running {
    wanted: watch::Sender<Wanted>,
    feed: mpsc::UnboundedSender<(usize, Feed)>,
    /// Bytes in `feed`, which bounds it.
    waiting_bytes: Arc<AtomicUsize>,
    has_lost: bool,
    asks: mpsc::Receiver<Ask>,
    views: watch::Receiver<Views>,
    ended: oneshot::Receiver<()>,
}

impl Stations {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, wanted: Wanted::default(), running: None, has_failed: false }
    }

    /// These are to be told. Returns the tables that the speaker is to monitor.
    pub(super) fn want(&mut self, stations: &Wanted) -> Option<BmpTables> {
        self.wanted.clone_from(stations);
        if stations.is_empty() {
            self.running = None;
            return None;
        }
        if self.running.is_none() && !self.has_failed {
            match start(self.clock) {
                Ok(running) => self.running = Some(running),
                Err(error) => {
                    self.has_failed = true;
                    error!(%error, "cannot start the thread for BMP stations: none is told anything");
                }
            }
        }
        let running = self.running.as_ref()?;
        running.wanted.send_if_modified(|known| {
            let is_other = known != stations;
            known.clone_from(stations);
            is_other
        });
        stations.iter().map(|it| it.tables).reduce(BmpTables::and)
    }

    pub(super) fn tell(&mut self, key: PeerKey, events: Vec<Monitored>) {
        let bytes = events.iter().map(Monitored::size_bytes).fold(64, usize::saturating_add);
        self.feed(bytes, Feed::Peer(key, events));
    }

    pub(super) fn tell_best(&mut self, changes: Vec<(Prefix, Option<Best>)>) {
        self.feed(size_of_val(&*changes).saturating_add(64), Feed::LocRib(changes));
    }

    /// The answer to [`Ask::Tables`], or to [`Ask::Statistics`].
    pub(super) fn answer(&mut self, ask: Ask, view: BgpView) {
        let view = Box::new(view);
        // Its attributes are shared with the tables.
        self.feed(
            64,
            match ask {
                Ask::Tables(_) => Feed::Tables(view),
                Ask::Statistics => Feed::Statistics(view),
            },
        );
    }

    fn feed(&mut self, bytes: usize, feed: Feed) {
        let Some(running) = self.running.as_mut().filter(|it| !it.has_lost) else { return };
        let waiting = running.waiting_bytes.load(Ordering::Relaxed).saturating_add(bytes);
        if waiting > FEED_BYTES_MAX {
            running.has_lost = true;
            let mebibytes = FEED_BYTES_MAX >> 20;
            warn!(
                "more than {mebibytes} MiB wait for the thread for BMP stations: they are told all of it again"
            );
            return;
        }
        running.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        if running.feed.send((bytes, feed)).is_err() {
            error!(
                "internal error: the thread for BMP stations ended: none is told anything until a restart; please report it"
            );
            (self.running, self.has_failed) = (None, true);
        }
    }

    /// Whether something was lost and there is room again: the speaker is to tell everything from the beginning.
    pub(super) fn starts_over(&mut self) -> bool {
        let Some(running) = self.running.as_mut().filter(|it| it.has_lost) else { return false };
        if running.waiting_bytes.load(Ordering::Relaxed) > 0 {
            return false;
        }
        running.has_lost = false;
        self.feed(64, Feed::Lost);
        true
    }

    /// What the thread asks next. Cancel-safe.
    pub(super) async fn ask(&mut self) -> Ask {
        let ask = match &mut self.running {
            Some(running) => running.asks.recv().await,
            None => None,
        };
        match ask {
            Some(ask) => ask,
            None => std::future::pending().await,
        }
    }

    /// The process ends: stations are told so.
    pub(super) async fn leave(&mut self) {
        let Some(Running { ended, .. }) = self.running.take() else { return };
        // One that does not read in time notices the end of the connection.
        let _ = tokio::time::timeout(LEAVE_WAIT, ended).await;
    }

    /// For an operator.
    pub(super) fn view(&self, now: Instant) -> Vec<BmpStationView> {
        let Some(running) = &self.running else {
            let view = |station: &BmpStation| BmpStationView {
                station: station.clone(),
                connected_for: None,
                queued_bytes: 0,
                messages: 0,
                failure: Some(FAILED.to_owned()),
            };
            return self.wanted.iter().filter(|_| self.has_failed).map(view).collect();
        };
        let views = running.views.borrow();
        let view = |(station, it): &(BmpStation, StationView)| BmpStationView {
            station: station.clone(),
            connected_for: it.connected_at.map(|at| now.since(at)),
            queued_bytes: it.queued_bytes,
            messages: it.messages,
            failure: it.failure.clone(),
        };
        views.iter().map(view).collect()
    }
}

/// Starts the thread, in the network namespace of this one.
fn start(clock: Clock) -> io::Result<Running> {
    let (wanted, changed) = watch::channel(Wanted::default());
    let (feed, told) = mpsc::unbounded_channel();
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    let (ask, asks) = mpsc::channel(1);
    let (show, views) = watch::channel(Views::from([]));
    let (end, ended) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ends = thread::Ends {
        wanted: changed,
        feed: told,
        waiting_bytes: Arc::clone(&waiting_bytes),
        ask,
        views: show,
    };
    let work = move || {
        runtime.block_on(thread::run(clock, ends));
        // The core may be gone.
        let _ = end.send(());
    };
    std::thread::Builder::new().name("bmp".to_owned()).spawn(work)?;
    Ok(Running { wanted, feed, waiting_bytes, has_lost: false, asks, views, ended })
}
