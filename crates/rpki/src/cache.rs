//! One cache: when it is asked, what for, and how long its data lasts (RFC 8210 §8).
//!
//! The payloads of an answer take effect together when it is complete: nothing is invalid for a moment because an answer is
//! read in parts. A cache that is away keeps its data for its expire time.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use fairway_ground::{Instant, RoaPayload};

use crate::payloads::PayloadChange;
use crate::pdu::{self, Malformed, Pdu, Query, Timing, Version, code};

/// Defaults of RFC 8210 §6, of version 0 as well.
const TIMING_DEFAULT: Timing =
    Timing { refresh_seconds: 3600, retry_seconds: 600, expire_seconds: 7200 };
/// A connection that sends nothing of an answer for so long is given up.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// The shortest time between two questions: a cache that notifies all the time is asked this often.
const QUERY_GAP: Duration = Duration::from_secs(1);
/// The first wait after a connection that was lost or did not come about; doubles up to the retry interval.
///
/// `Ours:` the retry interval of RFC 8210 §6 is for questions that failed. A cache that restarts is back in seconds.
const RECONNECT_WAIT_MIN: Duration = Duration::from_secs(5);
/// The most payloads of one cache, and changes of one answer: three times what the Internet has.
const PAYLOADS_MAX: usize = 2_000_000;

const TOO_MANY: &str = "it says more than 2000000 payloads";

/// What happens to a cache.
#[derive(Debug)]
pub enum Event<'a> {
    /// The connection is there.
    Connected,
    /// Bytes were received.
    Received(&'a [u8]),
    /// The connection has ended, or did not come about, for this reason.
    Closed(&'a str),
    /// A deadline has passed.
    Tick,
}

/// What the edge does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Connect to the cache; [`Event::Connected`] or [`Event::Closed`] follows.
    Connect,
    /// Send these bytes.
    Send(Vec<u8>),
    /// End the connection; no event follows.
    Close,
    /// What the cache says has changed.
    Changed(Vec<PayloadChange>),
    /// Something for the log.
    Report(Report),
}

/// What an operator wants to read in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// All that the cache says is known: so many payloads.
    Synchronized(usize),
    /// It is not reached, or its answers are of no use: its data is used for as long as it lasts.
    Failed(String),
    /// Its data is too old.
    Expired,
}

/// A cache as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheView {
    /// Whether there is a connection.
    pub is_connected: bool,
    /// The version in use.
    pub version: Version,
    /// How many payloads it says.
    pub payloads: usize,
    /// The number of its data.
    pub serial: Option<u32>,
    /// When its data was last complete.
    pub synchronized_at: Option<Instant>,
    /// When its data is too old.
    pub expires_at: Option<Instant>,
    /// Why it has not worked since.
    pub failure: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    /// None; the next attempt is due then.
    Down(Instant),
    /// On its way.
    Dialling,
    /// There, with nothing asked.
    Idle,
    /// A question was asked, and its answer has not begun. Whether all was asked for.
    Asked { all: bool },
    /// An answer is read.
    Answering { all: bool },
}

/// Data that is complete.
#[derive(Debug, Clone, Copy)]
struct Known {
    session: u16,
    serial: u32,
    at: Instant,
}

/// See the module.
#[derive(Debug)]
pub struct Cache {
    connection: Connection,
    version: Version,
    /// Nothing was received on this connection yet, so that the version is not settled.
    is_fresh: bool,
    buffer: Vec<u8>,
    known: Option<Known>,
    /// What is known cannot be continued: the next question is for all.
    needs_all: bool,
    payloads: BTreeSet<RoaPayload>,
    /// Of an answer that is read: all payloads, or the changes in their order.
    pending: Vec<PayloadChange>,
    timing: Timing,
    /// When the cache is asked again.
    refresh_at: Instant,
    /// When an answer is overdue.
    answer_until: Instant,
    /// When it was last asked.
    asked_at: Option<Instant>,
    /// What it said of its data while an answer was awaited.
    notified: Option<(u16, u32)>,
    /// How many connections were lost since its data was complete.
    losses: u32,
    /// Why it does not work; `None` if it does.
    failure: Option<String>,
    actions: VecDeque<Action>,
}

impl Cache {
    /// A cache that was never asked.
    pub fn new(now: Instant) -> Self {
        Self {
            connection: Connection::Down(now),
            version: Version::One,
            is_fresh: true,
            buffer: Vec::new(),
            known: None,
            needs_all: false,
            payloads: BTreeSet::new(),
            pending: Vec::new(),
            timing: TIMING_DEFAULT,
            refresh_at: now,
            answer_until: now,
            asked_at: None,
            notified: None,
            losses: 0,
            failure: None,
            actions: VecDeque::new(),
        }
    }

    /// Processes an event.
    pub fn handle(&mut self, now: Instant, event: Event<'_>) {
        match event {
            Event::Connected => {
                self.is_fresh = true;
                self.buffer.clear();
                self.ask(now);
            }
            Event::Received(bytes) => self.receive(now, bytes),
            Event::Closed(why) => self.lost(now, why),
            Event::Tick => {}
        }
        self.expire(now);
        match self.connection {
            Connection::Down(at) if at <= now => {
                self.connection = Connection::Dialling;
                self.actions.push_back(Action::Connect);
            }
            Connection::Idle if self.refresh_at <= now => self.ask(now),
            Connection::Asked { .. } | Connection::Answering { .. } if self.answer_until <= now => {
                self.give_up(now, "it does not answer");
            }
            _ => {}
        }
    }

    /// The next action.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Event::Tick`] is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        let next = match self.connection {
            Connection::Down(at) => Some(at),
            Connection::Dialling => None,
            Connection::Idle => Some(self.refresh_at),
            Connection::Asked { .. } | Connection::Answering { .. } => Some(self.answer_until),
        };
        next.into_iter().chain(self.expires_at()).min()
    }

    /// The cache is not used any more: what it said is taken back.
    pub fn forget(&mut self) {
        self.replace(BTreeSet::new());
        self.known = None;
    }

    /// For an operator.
    pub fn view(&self) -> CacheView {
        CacheView {
            is_connected: !matches!(self.connection, Connection::Down(_) | Connection::Dialling),
            version: self.version,
            payloads: self.payloads.len(),
            serial: self.known.map(|known| known.serial),
            synchronized_at: self.known.map(|known| known.at),
            expires_at: self.expires_at(),
            failure: self.failure.clone(),
        }
    }

    /// When its data is too old; `None` without any.
    pub fn expires_at(&self) -> Option<Instant> {
        self.known.map(|known| known.at + seconds(self.timing.expire_seconds))
    }

    fn expire(&mut self, now: Instant) {
        if self.expires_at().is_some_and(|at| at <= now) {
            self.forget();
            self.actions.push_back(Action::Report(Report::Expired));
            let is_partial = matches!(
                self.connection,
                Connection::Asked { all: false } | Connection::Answering { all: false }
            );
            if is_partial {
                self.begin_again(now, "its data expired before it had answered");
            }
        }
    }

    fn ask(&mut self, now: Instant) {
        let query = match self.known.filter(|_| !self.needs_all) {
            Some(Known { session, serial, .. }) => Query::Serial { session, serial },
            None => Query::Reset,
        };
        self.ask_for(now, query);
    }

    fn ask_for(&mut self, now: Instant, query: Query) {
        self.connection = Connection::Asked { all: query == Query::Reset };
        self.answer_until = now + ANSWER_WAIT;
        self.asked_at = Some(now);
        self.actions.push_back(Action::Send(query.encode(self.version)));
    }

    fn receive(&mut self, now: Instant, bytes: &[u8]) {
        if matches!(self.connection, Connection::Down(_) | Connection::Dialling) {
            return; // What was on its way when it was closed.
        }
        self.buffer.extend_from_slice(bytes);
        let buffer = std::mem::take(&mut self.buffer);
        let mut rest = buffer.as_slice();
        loop {
            match pdu::decode(rest) {
                Ok(Some((version, pdu, length))) => {
                    let message = rest.get(..length).unwrap_or_default();
                    rest = rest.get(length..).unwrap_or_default();
                    self.message(now, version, pdu, message);
                    if matches!(self.connection, Connection::Down(_)) {
                        return;
                    }
                }
                Ok(None) => break,
                Err(malformed) => return self.malformed(now, malformed, rest),
            }
        }
        self.buffer = rest.to_vec();
    }

    fn malformed(&mut self, now: Instant, malformed: Malformed, cause: &[u8]) {
        self.refuse(now, malformed.code(), cause, &malformed.to_string());
    }

    /// Reports an error to the cache, and ends the connection.
    fn refuse(&mut self, now: Instant, code: u16, cause: &[u8], why: &str) {
        let report = pdu::encode_error(self.version, code, cause, why);
        self.actions.push_back(Action::Send(report));
        self.give_up(now, why);
    }

    fn message(&mut self, now: Instant, version: Version, pdu: Pdu, message: &[u8]) {
        if let Pdu::Error { code, text } = pdu {
            return self.error(now, version, code, &text);
        }
        if version != self.version {
            // A cache that knows version 0 only answers in it (RFC 8210 §7).
            if !self.is_fresh || version > self.version {
                let why = "it has changed the version of the protocol";
                return self.refuse(now, code::UNEXPECTED_VERSION, message, why);
            }
            self.version = version;
            self.needs_all = true;
        }
        let is_notify = matches!(pdu, Pdu::SerialNotify { .. });
        self.is_fresh &= is_notify;
        if self.is_answer(&pdu) {
            self.answer_until = now + ANSWER_WAIT;
        }
        match (self.connection, pdu) {
            (Connection::Idle, Pdu::SerialNotify { session, serial }) => {
                self.notified(now, session, serial);
            }
            // It comes at any time: perhaps the answer that is read has it.
            (_, Pdu::SerialNotify { session, serial }) => self.notified = Some((session, serial)),
            (_, Pdu::RouterKey) => {}
            (Connection::Asked { all }, Pdu::CacheResponse { session }) => {
                self.respond(now, all, session, message);
            }
            (Connection::Asked { all: false }, Pdu::CacheReset) => self.ask_for(now, Query::Reset),
            (Connection::Answering { .. }, Pdu::Payload { is_announced, payload }) => {
                if self.pending.len() >= PAYLOADS_MAX {
                    return self.give_up(now, TOO_MANY);
                }
                self.pending.push(match is_announced {
                    true => PayloadChange::Announced(payload),
                    false => PayloadChange::Withdrawn(payload),
                });
            }
            (Connection::Answering { all }, Pdu::EndOfData { session, serial, timing }) => {
                self.complete(now, all, Known { session, serial, at: now }, timing, message);
            }
            (_, _) => {
                self.refuse(now, code::CORRUPT_DATA, message, "a message that nothing asked for");
            }
        }
    }

    /// Whether it belongs to the answer that is awaited.
    fn is_answer(&self, pdu: &Pdu) -> bool {
        match pdu {
            Pdu::CacheResponse { .. } => true,
            Pdu::Payload { .. } | Pdu::RouterKey => {
                matches!(self.connection, Connection::Answering { .. })
            }
            _ => false,
        }
    }

    fn notified(&mut self, now: Instant, session: u16, serial: u32) {
        let is_new = self.known.is_none_or(|it| (it.session, it.serial) != (session, serial));
        if is_new {
            let earliest = self.asked_at.map_or(now, |at| at + QUERY_GAP);
            self.refresh_at = self.refresh_at.min(earliest);
        }
    }

    fn respond(&mut self, now: Instant, all: bool, session: u16, message: &[u8]) {
        // Another session means that the cache has started again: its numbers mean something else.
        if !all && self.known.is_some_and(|known| known.session != session) {
            let why = "it answers with another session than it had";
            let report = pdu::encode_error(self.version, code::CORRUPT_DATA, message, why);
            self.actions.push_back(Action::Send(report));
            return self.begin_again(now, why);
        }
        self.pending.clear();
        self.connection = Connection::Answering { all };
    }

    fn complete(
        &mut self,
        now: Instant,
        all: bool,
        known: Known,
        timing: Option<Timing>,
        message: &[u8],
    ) {
        let pending = std::mem::take(&mut self.pending);
        let mut payloads = if all { BTreeSet::new() } else { self.payloads.clone() };
        for change in pending {
            let (is_fine, code) = match change {
                PayloadChange::Announced(payload) => (payloads.insert(payload), code::DUPLICATE),
                PayloadChange::Withdrawn(payload) => {
                    (payloads.remove(&payload), code::UNKNOWN_WITHDRAWAL)
                }
            };
            if !is_fine {
                // What is known may be wrong: all of it is asked for over the next connection.
                self.needs_all = true;
                let why = match change {
                    PayloadChange::Announced(_) => "it says a payload twice",
                    PayloadChange::Withdrawn(_) => "it takes back a payload that it did not say",
                };
                return self.refuse(now, code, message, why);
            }
        }
        if payloads.len() > PAYLOADS_MAX {
            self.needs_all = true;
            return self.give_up(now, TOO_MANY);
        }
        self.needs_all = false;
        self.replace(payloads);
        self.timing = bounded(timing.unwrap_or(TIMING_DEFAULT));
        self.refresh_at = now + seconds(self.timing.refresh_seconds);
        self.connection = Connection::Idle;
        if self.known.is_none() || self.failure.take().is_some() {
            self.actions.push_back(Action::Report(Report::Synchronized(self.payloads.len())));
        }
        self.known = Some(known);
        self.losses = 0;
        if let Some((session, serial)) = self.notified.take() {
            self.notified(now, session, serial);
        }
    }

    /// Only what differs is a change.
    fn replace(&mut self, payloads: BTreeSet<RoaPayload>) {
        let gone = self.payloads.difference(&payloads).map(|it| PayloadChange::Withdrawn(*it));
        let new = payloads.difference(&self.payloads).map(|it| PayloadChange::Announced(*it));
        let changes: Vec<PayloadChange> = gone.chain(new).collect();
        self.payloads = payloads;
        if !changes.is_empty() {
            self.actions.push_back(Action::Changed(changes));
        }
    }

    fn error(&mut self, now: Instant, version: Version, code: u16, text: &str) {
        match code {
            code::NO_DATA_AVAILABLE => {
                // The connection stays; it is asked again later.
                self.fail("it has no data yet");
                self.connection = Connection::Idle;
                self.refresh_at = now + seconds(self.timing.retry_seconds);
            }
            code::UNSUPPORTED_VERSION if self.version > Version::Zero => {
                self.version = version.min(Version::Zero);
                self.needs_all = true;
                self.end(now, Duration::ZERO);
            }
            // It does not know the session of the question.
            code::CORRUPT_DATA if self.connection == (Connection::Asked { all: false }) => {
                self.begin_again(now, &format!("it reports error {code}: {text}"));
            }
            code => self.give_up(now, &format!("it reports error {code}: {text}")),
        }
    }

    /// Ends the connection, which is tried again later.
    fn give_up(&mut self, now: Instant, why: &str) {
        self.fail(why);
        // One that has never answered has not said how long to wait.
        let wait = match self.known {
            Some(_) => seconds(self.timing.retry_seconds),
            None => self.reconnect_wait(),
        };
        self.end(now, wait);
    }

    /// Ends the connection; the next one is soon, and asks for all.
    ///
    /// `Ours:` what is known stays until then, and no longer than its expire time: RFC 8210 §5.1 drops it at once, and routes
    /// would have no state for some seconds, because a cache was restarted.
    fn begin_again(&mut self, now: Instant, why: &str) {
        self.needs_all = true;
        self.fail(why);
        self.end(now, RECONNECT_WAIT_MIN);
    }

    fn end(&mut self, now: Instant, wait: Duration) {
        self.actions.push_back(Action::Close);
        self.down(now, wait);
    }

    fn lost(&mut self, now: Instant, why: &str) {
        if matches!(self.connection, Connection::Down(_)) {
            return;
        }
        self.fail(why);
        let wait = self.reconnect_wait();
        self.down(now, wait);
    }

    fn reconnect_wait(&mut self) -> Duration {
        let doubled = RECONNECT_WAIT_MIN.saturating_mul(1 << self.losses.min(16));
        self.losses = self.losses.saturating_add(1);
        doubled.min(seconds(self.timing.retry_seconds))
    }

    fn down(&mut self, now: Instant, wait: Duration) {
        self.notified = None;
        self.connection = Connection::Down(now + wait);
        self.buffer.clear();
        self.pending = Vec::new();
    }

    /// Once, until it works again.
    fn fail(&mut self, why: &str) {
        if self.failure.replace(why.to_owned()).is_none() {
            self.actions.push_back(Action::Report(Report::Failed(why.to_owned())));
        }
    }
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}

/// Within the bounds of RFC 8210 §6; what is outside counts as the nearest one inside. Data is asked for again, and again after
/// a failure, while it lasts.
fn bounded(timing: Timing) -> Timing {
    let expire_seconds = timing.expire_seconds.clamp(600, 172_800);
    let half = expire_seconds / 2;
    Timing {
        refresh_seconds: timing.refresh_seconds.clamp(1, 86_400).min(half),
        retry_seconds: timing.retry_seconds.clamp(1, 7_200).min(half),
        expire_seconds,
    }
}
