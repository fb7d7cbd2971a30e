//! Replays a log to a real speaker: its inputs, at the times at which they came.

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;

use super::log::{Line, Log, What};
use super::router::{Effect, Router};
use crate::session::ConnectionId;
use fairway_ground::Instant;
use fairway_seam::PeerConfig;

/// The first line of a session with a real router.
#[derive(Debug, Deserialize)]
pub(super) struct Heading {
    /// Its name and version.
    pub(super) router: String,
    /// What happened, in a sentence.
    pub(super) story: String,
}

/// A recorded session: its heading, and a line for each event.
pub(super) fn parse(text: &str) -> serde_json::Result<(Heading, Vec<Line>)> {
    let (heading, lines) = text.split_once('\n').unwrap_or((text, ""));
    let lines = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    Ok((serde_json::from_str(heading)?, lines))
}

/// A speaker that replays a log.
#[derive(Debug)]
pub(super) struct Replay {
    pub(super) router: Router,
    pub(super) now: Instant,
    /// The log contains every tick and dial: it is of a simulated speaker. One that was taken from the
    /// network does not; there, the speaker has its own timers, and dials without a recorded answer are
    /// refused.
    is_complete: bool,
    /// Numbers of dials that the log contains.
    dials: VecDeque<usize>,
    connections: BTreeMap<usize, ConnectionId>,
}

impl Replay {
    /// A speaker that has just started; `seed` decides its jitter.
    pub(super) fn new(side: usize, config: PeerConfig, seed: u64, lines: &[Line]) -> Self {
        let dials = lines.iter().filter(|line| line.what == What::Dials);
        Self {
            router: Router::new(side, config, seed, Log::of_side(side, true)),
            now: Instant::ZERO,
            is_complete: lines.iter().any(|line| line.what == What::Tick),
            dials: dials.map(|line| line.connection).collect(),
            connections: BTreeMap::new(),
        }
    }

    /// Processes one line. The speaker's own outputs are skipped.
    pub(super) fn hear(&mut self, line: &Line) {
        let at = Instant::from_micros(line.at_micros);
        self.tick_until(at, (line.what == What::Connected).then_some(line.connection));
        self.now = at;
        let known = self.connections.get(&line.connection).copied();
        // A simulated speaker also gets events of connections that it never had.
        let known = known.or_else(|| self.is_complete.then(ConnectionId::default));
        let router = &mut self.router;
        match (&line.what, known) {
            (What::Accepted, _) => {
                let id = router.accept(at, 0);
                self.connections.insert(line.connection, id);
            }
            (What::Tick, _) => router.tick(at),
            (What::Connected, Some(id)) => router.connected(at, id, 0),
            (What::ConnectFailed { why }, Some(id)) => drop(router.connect_failed(at, id, why)),
            (What::Received { bytes }, Some(id)) => router.received(at, id, &bytes.0),
            (What::Closed { why }, Some(id)) => router.closed(at, id, why.as_deref()),
            (What::Started | What::Stopped { .. }, _) => {}
            (what, _) if what.is_done() => {}
            (what, _) => panic!("{what:?} of connection {}, which is not there", line.connection),
        }
        if !line.what.is_done() {
            self.settle(None);
        }
    }

    /// Lets the speaker's own timers expire up to `end`; a dial is answered by the line of
    /// connection `answered`, if there is such a line next.
    fn tick_until(&mut self, end: Instant, answered: Option<usize>) {
        while !self.is_complete {
            self.settle(answered);
            match self.router.peer().next_deadline() {
                Some(deadline) if deadline <= end => self.now = self.now.max(deadline),
                _ => return,
            }
            self.router.tick(self.now);
        }
    }

    fn settle(&mut self, answered: Option<usize>) {
        for effect in self.router.settle(self.now) {
            let Effect::Dial(id) = effect else { continue };
            if self.is_complete {
                if let Some(number) = self.dials.pop_front() {
                    self.connections.insert(number, id);
                }
            } else if let Some(number) = answered {
                self.connections.insert(number, id);
            } else {
                self.router.connect_failed(self.now, id, "refused");
            }
        }
    }
}
