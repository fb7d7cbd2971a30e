//! One station: when it is connected to, what waits for it, and when it is given up.
//!
//! Nothing is lost silently: what does not fit, and what a station does not take in time, ends its connection. The next one
//! begins with an Initiation and all tables.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fairway_ground::{Instant, Rng};

/// What may wait for one station, in bytes: some seconds of a full table.
pub const QUEUE_BYTES_MAX: usize = 16 << 20;
/// A station that takes nothing for so long is given up: its host sleeps, or it hangs.
pub const STALL_WAIT: Duration = Duration::from_secs(30);
/// A station that has not taken all tables after so long is given up: they are kept in memory for it.
pub(crate) const TABLES_WAIT: Duration = Duration::from_secs(600);
/// Given to the socket at once, in bytes, and the rest of a message.
pub const CHUNK_BYTES_MAX: usize = 64 << 10;
/// The first wait after a connection that was lost or did not come about; it doubles. `Ours:` RFC 7854 §3.2 suggests 30 s, and 720
/// at most: what happens meanwhile is lost to the station.
const RECONNECT_WAIT_MIN: Duration = Duration::from_secs(1);
/// The longest of them.
const RECONNECT_WAIT_MAX: Duration = Duration::from_secs(120);

/// What happens to a station.
#[derive(Debug)]
pub enum Event<'a> {
    /// The connection is there.
    Connected,
    /// The last chunk was written.
    Written,
    /// The connection has ended, or did not come about, for this reason.
    Closed(&'a str),
    /// A deadline has passed.
    Tick,
}

/// What the edge does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Connect to the station; [`Event::Connected`] or [`Event::Closed`] follows.
    Connect,
    /// The connection is new: what is there is due, from the Initiation on, before anything else.
    Begin,
    /// End the connection; no event follows.
    Close,
    /// Something for the log.
    Report(Report),
}

/// What an operator wants to read in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The station is connected.
    Connected,
    /// It is not reached, or was given up, for this reason.
    Failed(String),
}

/// A station as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StationView {
    /// Whether there is a connection, and since when.
    pub connected_at: Option<Instant>,
    /// What waits, in bytes.
    pub queued_bytes: usize,
    /// Messages that were handed over since the daemon started.
    pub messages: u64,
    /// Why it does not work, or why the connection before this one ended.
    pub failure: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// None; the next attempt is due then.
    Down(Instant),
    Dialling,
    /// There, since then.
    Up(Instant),
}

/// Tables on their way to a station, message by message: none of them is made before the station has taken the one before.
pub struct Tables(Box<dyn Iterator<Item = Bytes> + Send>);

impl Tables {
    /// Of these messages.
    pub fn new(messages: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Self(Box::new(messages))
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tables")
    }
}

/// See the module.
#[derive(Debug)]
pub struct Station {
    link: Link,
    /// What goes before the tables.
    head: VecDeque<Bytes>,
    tables: Option<Tables>,
    /// They are on their way since then.
    tables_since: Option<Instant>,
    /// What goes after them.
    queue: VecDeque<Bytes>,
    /// In `head` and `queue`.
    queued_bytes: usize,
    /// A chunk is on its way since then.
    writing_since: Option<Instant>,
    /// Connections that failed one after the other.
    failures: u32,
    messages: u64,
    failure: Option<String>,
    rng: Rng,
    actions: VecDeque<Action>,
}

impl Station {
    /// A station that is connected to at once. `seed` decides the jitter of the waits.
    pub fn new(now: Instant, seed: u64) -> Self {
        Self {
            link: Link::Down(now),
            head: VecDeque::new(),
            tables: None,
            tables_since: None,
            queue: VecDeque::new(),
            queued_bytes: 0,
            writing_since: None,
            failures: 0,
            messages: 0,
            failure: None,
            rng: Rng::seeded(seed),
            actions: VecDeque::new(),
        }
    }

    /// Processes an event.
    pub fn handle(&mut self, now: Instant, event: Event<'_>) {
        match event {
            Event::Connected => {
                self.link = Link::Up(now);
                self.actions.push_back(Action::Report(Report::Connected));
                self.actions.push_back(Action::Begin);
            }
            Event::Written => self.writing_since = None,
            Event::Closed(why) => self.lost(now, why),
            Event::Tick => {}
        }
        match self.link {
            Link::Down(at) if at <= now => {
                self.link = Link::Dialling;
                self.actions.push_back(Action::Connect);
            }
            Link::Up(_) if self.stalls_at().is_some_and(|at| at <= now) => {
                let why = match self.tables_since.is_some_and(|since| since + TABLES_WAIT <= now) {
                    true => {
                        format!(
                            "it has not taken all tables in {} minutes",
                            TABLES_WAIT.as_secs() / 60
                        )
                    }
                    false => format!("it has taken nothing for {} s", STALL_WAIT.as_secs()),
                };
                self.give_up(now, &why);
            }
            _ => {}
        }
    }

    /// A message for the station. Without a connection it is dropped: the next one begins with all there is.
    pub fn push(&mut self, now: Instant, message: Bytes) {
        if !self.is_up() {
            return;
        }
        let queued_bytes = self.queued_bytes.saturating_add(message.len());
        if queued_bytes > QUEUE_BYTES_MAX {
            let most = QUEUE_BYTES_MAX >> 20;
            return self.give_up(now, &format!("it is too slow: more than {most} MiB wait for it"));
        }
        self.queued_bytes = queued_bytes;
        self.queue.push_back(message);
    }

    /// All that is known at this moment, after what was pushed before and before what is pushed from now on.
    pub fn begin_tables(&mut self, tables: Tables) {
        if self.is_up() {
            // Tables that were not finished are older than these.
            self.head.append(&mut self.queue);
            self.tables = Some(tables);
            self.tables_since = None;
        }
    }

    /// What is written next: whole messages. `None` while the chunk before is on its way; [`Event::Written`] says that it
    /// is not any more.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Bytes> {
        if !self.is_up() || self.writing_since.is_some() {
            return None;
        }
        let mut chunk = BytesMut::new();
        while chunk.len() < CHUNK_BYTES_MAX
            && let Some(message) = self.next_message()
        {
            chunk.extend_from_slice(&message);
        }
        self.tables_since = self.tables.as_ref().map(|_| self.tables_since.unwrap_or(now));
        let is_empty = chunk.is_empty();
        self.writing_since = (!is_empty).then_some(now);
        (!is_empty).then(|| chunk.freeze())
    }

    /// What waits, whole messages, when nothing follows any more; without tables that were not finished.
    pub fn take_rest(&mut self) -> Option<Bytes> {
        self.tables = None;
        let mut rest = BytesMut::new();
        while let Some(message) = self.next_message().filter(|_| self.is_up()) {
            rest.extend_from_slice(&message);
        }
        (!rest.is_empty()).then(|| rest.freeze())
    }

    fn next_message(&mut self) -> Option<Bytes> {
        let queued = match self.head.pop_front() {
            Some(message) => Some(message),
            None => {
                if let Some(message) = self.tables.as_mut().and_then(|it| it.0.next()) {
                    self.messages = self.messages.saturating_add(1);
                    return Some(message);
                }
                self.tables = None;
                self.queue.pop_front()
            }
        }?;
        self.messages = self.messages.saturating_add(1);
        self.queued_bytes = self.queued_bytes.saturating_sub(queued.len());
        Some(queued)
    }

    /// Something was lost on the way to this machine: the connection restarts, and with it all that is known.
    pub fn start_over(&mut self, now: Instant, why: &str) {
        if self.is_up() {
            self.give_up(now, why);
        }
    }

    /// The next action.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Event::Tick`] is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        match self.link {
            Link::Down(at) => Some(at),
            Link::Dialling => None,
            Link::Up(_) => self.stalls_at(),
        }
    }

    /// Whether there is a connection.
    pub fn is_up(&self) -> bool {
        matches!(self.link, Link::Up(_))
    }

    /// For an operator.
    pub fn view(&self) -> StationView {
        let connected_at = match self.link {
            Link::Up(since) => Some(since),
            Link::Down(_) | Link::Dialling => None,
        };
        let Self { queued_bytes, messages, .. } = *self;
        StationView { connected_at, queued_bytes, messages, failure: self.failure.clone() }
    }

    fn stalls_at(&self) -> Option<Instant> {
        let stalls = self.writing_since.map(|since| since + STALL_WAIT);
        let tables = self.tables_since.map(|since| since + TABLES_WAIT);
        stalls.into_iter().chain(tables).min()
    }

    fn give_up(&mut self, now: Instant, why: &str) {
        self.actions.push_back(Action::Close);
        self.lost(now, why);
    }

    fn lost(&mut self, now: Instant, why: &str) {
        if let Link::Up(since) = self.link
            && now.since(since) >= RECONNECT_WAIT_MAX
        {
            // It worked: this is the first failure.
            self.failures = 0;
        }
        (self.head, self.queue, self.tables) = Default::default();
        (self.queued_bytes, self.writing_since, self.tables_since) = (0, None, None);
        let times = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let doubled = RECONNECT_WAIT_MIN.saturating_mul(times);
        let wait = self.rng.jittered(doubled.min(RECONNECT_WAIT_MAX));
        self.failures = self.failures.saturating_add(1);
        self.link = Link::Down(now + wait);
        self.failure = Some(why.to_owned());
        self.actions.push_back(Action::Report(Report::Failed(why.to_owned())));
    }
}

#[cfg(test)]
mod tests;
