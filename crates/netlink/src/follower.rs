//! Keeps a snapshot equal to the kernel's tables: reads them once, follows events, reads again when events
//! were lost.
//!
//! Pure: `now` is an argument, bytes go in and out. The edge calls [`Follower::handle`] with what the socket
//! delivers, sends what [`Follower::poll_request`] returns, and wakes it at [`Follower::next_deadline`].
//!
//! Events and answers come over one socket, in the order in which the kernel made them, so events that arrive
//! during a read are applied to what has been read so far. A read in which the kernel saw a change may lack an
//! entry: it is repeated, and used only when there is nothing better. After lost events (the socket's buffer
//! overran) every table is read again; a deadline that doubles bounds how often, so that a machine that changes
//! constantly is read at most every ten seconds.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::decode::{Envelope, Fact, messages};
use crate::kind::{Kind, Kinds};
use crate::machine::{Applied, Machine};
use crate::request;
use crate::scope::Scope;

/// The wait before the second repetition of a read; the first is at once.
const REPEAT_WAIT_MIN: Duration = Duration::from_millis(50);
/// The longest wait: as long as a change may be missing while a machine never stands still.
const REPEAT_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long messages are collected that leave a table unclear: an interface that goes down is a burst.
const SETTLE: Duration = Duration::from_millis(50);
/// The kernel answers within the call that sends the request. Silence for this long means a lost answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How often every table is read without a reason, since a few changes are reported by no message: the
/// kernel lists addresses without its lock, so that one that goes at that moment can be listed after its
/// event. A read of a thousand addresses takes a millisecond.
const AUDIT_INTERVAL: Duration = Duration::from_secs(60);

/// Reads in a row that a change interrupted until one is used all the same: the snapshot follows events
/// meanwhile, but what was lost before stays lost.
const INTERRUPTIONS_MAX: u32 = 5;

/// What the socket delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input<'a> {
    /// Bytes of the kernel.
    Datagram(&'a [u8]),
    /// The kernel dropped events, because the socket's buffer was full.
    Overrun,
    /// Nothing waits in the socket. After an overrun the kernel keeps dropping events until then.
    Drained,
    /// A deadline may have passed.
    Tick,
}

/// An event that an operator may want to know of. The edge logs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// Events were lost, for this time in a row; all tables are read again after the wait.
    Lost {
        /// How many times in a row.
        attempt: u32,
        /// Until it is read again.
        wait: Duration,
    },
    /// A read without a reason found a table other than the events had left it.
    Missed(Kind),
    /// The kernel refused to list a table, with this error number.
    Refused(Kind, i32),
    /// The kernel did not list a table in time.
    Silent(Kind),
    /// There are more entries in a table than are kept.
    Truncated(Kind),
}

/// A read that is under way.
#[derive(Debug)]
struct Reading {
    kind: Kind,
    sequence: u32,
    /// What was listed so far, and changed since.
    fresh: Machine,
    is_interrupted: bool,
    is_audit: bool,
    deadline: Duration,
}

/// When a table is to be read, and whether only to make sure.
#[derive(Debug, Clone, Copy)]
struct Due {
    at: Duration,
    is_audit: bool,
}

/// See the module. Times are since any fixed moment.
#[derive(Debug)]
pub struct Follower {
    scope: Scope,
    /// The number of the socket, which answers carry.
    port: u32,
    machine: Machine,
    due: BTreeMap<Kind, Due>,
    reading: Option<Reading>,
    sequence: u32,
    is_drained: bool,
    /// Reads in a row that were of no use.
    attempt: u32,
    /// Tables that were never read.
    unread: Kinds,
    /// Tables with a last read that was not usable, or that changed meanwhile.
    troubled: Kinds,
    changed: Kinds,
    notes: Vec<Note>,
}

impl Follower {
    /// Follows what `scope` asks for, over the socket of this number.
    pub fn new(now: Duration, scope: Scope, port: u32) -> Self {
        let kinds = scope.kinds();
        Self {
            scope,
            port,
            machine: Machine::default(),
            due: kinds.iter().map(|kind| (kind, Due { at: now, is_audit: false })).collect(),
            reading: None,
            sequence: 0,
            is_drained: true,
            attempt: 0,
            unread: kinds,
            troubled: Kinds::NONE,
            changed: Kinds::NONE,
            notes: Vec::new(),
        }
    }

    /// Processes what the socket delivers.
    pub fn handle(&mut self, now: Duration, input: Input<'_>) {
        match input {
            Input::Datagram(bytes) => {
                for message in messages(bytes) {
                    match message {
                        Ok((envelope, fact)) => self.take(now, envelope, fact),
                        // The rest of the datagram is lost.
                        Err(_) => self.lose(now),
                    }
                }
            }
            Input::Overrun => {
                self.is_drained = false;
                self.lose(now);
            }
            Input::Drained => self.is_drained = true,
            Input::Tick => {}
        }
        if let Some(Reading { kind, deadline, .. }) = self.reading
            && deadline <= now
        {
            self.reading = None;
            self.notes.push(Note::Silent(kind));
            self.repeat(now, kind);
        }
    }

    /// The next request to send, if one is due.
    pub fn poll_request(&mut self, now: Duration) -> Option<Vec<u8>> {
        if self.reading.is_some() || !self.is_drained {
            return None;
        }
        let (kind, due) =
            self.due.iter().find(|(_, due)| due.at <= now).map(|(it, due)| (*it, *due))?;
        self.due.remove(&kind);
        self.sequence = self.sequence.wrapping_add(1).max(1);
        self.reading = Some(Reading {
            kind,
            sequence: self.sequence,
            fresh: Machine::default(),
            is_interrupted: false,
            is_audit: due.is_audit,
            deadline: now.saturating_add(ANSWER_TIMEOUT),
        });
        Some(request::dump(kind, self.sequence))
    }

    /// When there is something to do, if the socket delivers nothing.
    pub fn next_deadline(&self) -> Option<Duration> {
        let reading = self.reading.as_ref().map(|it| it.deadline);
        let due = self.due.values().map(|due| due.at).min();
        reading.or(due)
    }

    /// Whether every table was read at least once: until then the snapshot is incomplete.
    pub fn is_complete(&self) -> bool {
        self.unread.is_empty()
    }

    /// The snapshot.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The tables that changed since the last call.
    pub fn take_changed(&mut self) -> Kinds {
        std::mem::take(&mut self.changed)
    }

    /// The notes since the last call.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    fn take(&mut self, now: Duration, envelope: Envelope, fact: Option<Fact>) {
        let is_answer = envelope.port == self.port;
        let of_reading = |it: &&mut Reading| is_answer && it.sequence == envelope.sequence;
        let Some(reading) = self.reading.as_mut().filter(of_reading) else {
            // The answer to a request that was given up is ignored; everything else is an event.
            if let Some(fact) = fact.filter(|_| !is_answer) {
                self.apply(now, &fact);
            }
            return;
        };
        reading.is_interrupted |= envelope.is_interrupted;
        match fact {
            None => {}
            Some(Fact::Done { code: 0 }) => self.finish(now),
            Some(Fact::Done { code } | Fact::Refused { code }) => {
                let kind = reading.kind;
                self.reading = None;
                self.notes.push(Note::Refused(kind, code.saturating_neg()));
                self.repeat(now, kind);
            }
            Some(fact) if covers(&self.scope, &self.machine, &fact) => reading.fresh.list(&fact),
            Some(_) => {}
        }
    }

    /// An event.
    fn apply(&mut self, now: Duration, fact: &Fact) {
        if !covers(&self.scope, &self.machine, fact) {
            return;
        }
        let was_truncated = self.machine.truncated();
        let Applied { changed, unclear } = self.machine.apply(fact);
        self.changed.add(changed);
        self.note_truncated(was_truncated);
        if let Some(reading) = &mut self.reading {
            reading.fresh.apply(fact);
        }
        let followed = self.scope.kinds();
        for kind in unclear.iter().filter(|kind| followed.contains(*kind)) {
            self.read_by(kind, now.saturating_add(SETTLE));
            // A list that is being read may be from before the event.
            if let Some(reading) = self.reading.as_mut().filter(|it| it.kind == kind) {
                reading.is_interrupted = true;
            }
        }
    }

    /// A table was listed.
    fn finish(&mut self, now: Duration) {
        let Some(reading) = self.reading.take() else { return };
        let Reading { kind, fresh, is_interrupted, is_audit, .. } = reading;
        let (vrf_tables, is_first) = (self.vrf_tables(), self.unread.contains(kind));
        if is_interrupted && !is_first && self.attempt < INTERRUPTIONS_MAX {
            self.repeat(now, kind);
            return;
        }
        let was_truncated = self.machine.truncated();
        let differs = self.machine.replace(kind, fresh);
        self.note_truncated(was_truncated);
        self.unread = self.unread.without(kind.into());
        if differs {
            self.changed.add(kind.into());
            if is_audit && !is_interrupted {
                self.notes.push(Note::Missed(kind));
            }
        }
        let routes_are_followed = self.scope.routes.is_some() && !is_first;
        if kind == Kind::Link && routes_are_followed && vrf_tables != self.vrf_tables() {
            self.read_by(Kind::Route, now);
        }
        if is_interrupted {
            self.repeat(now, kind);
            return;
        }
        self.troubled = self.troubled.without(kind.into());
        if self.troubled.is_empty() {
            self.attempt = 0;
        }
        let audit = Due { at: now.saturating_add(AUDIT_INTERVAL), is_audit: true };
        self.due.entry(kind).or_insert(audit);
    }

    /// Events were lost: every table is read again.
    fn lose(&mut self, now: Duration) {
        self.reading = None;
        let wait = self.next_wait();
        self.notes.push(Note::Lost { attempt: self.attempt, wait });
        self.troubled = self.scope.kinds();
        // An earlier read would be of no use.
        let due = Due { at: now.saturating_add(wait), is_audit: false };
        self.due = self.troubled.iter().map(|kind| (kind, due)).collect();
    }

    /// The last read of a table was not usable.
    /// Whether a table changed while it was read last, and is to be read again.
    pub(crate) fn was_interrupted(&self) -> bool {
        !self.troubled.is_empty()
    }

    fn repeat(&mut self, now: Duration, kind: Kind) {
        self.troubled.add(kind.into());
        let wait = self.next_wait();
        self.due.insert(kind, Due { at: now.saturating_add(wait), is_audit: false });
    }

    fn next_wait(&mut self) -> Duration {
        let doublings = self.attempt.checked_sub(1);
        self.attempt = self.attempt.saturating_add(1);
        let wait = doublings.map(|it| REPEAT_WAIT_MIN.saturating_mul(2_u32.saturating_pow(it)));
        wait.unwrap_or_default().min(REPEAT_WAIT_MAX)
    }

    /// Has a table read at `at`, unless it is going to be read sooner.
    fn read_by(&mut self, kind: Kind, at: Duration) {
        let due = self.due.entry(kind).or_insert(Due { at, is_audit: false });
        // While reads are not usable, a need does not make them more frequent.
        if due.is_audit || !self.troubled.contains(kind) && at < due.at {
            *due = Due { at: at.min(due.at), is_audit: false };
        }
    }

    fn vrf_tables(&self) -> Vec<u32> {
        self.machine.links().filter_map(|link| link.vrf_table).collect()
    }

    fn note_truncated(&mut self, before: Kinds) {
        let since = self.machine.truncated().without(before);
        self.notes.extend(since.iter().map(Note::Truncated));
    }
}

/// Whether a fact is about what is followed.
fn covers(scope: &Scope, machine: &Machine, fact: &Fact) -> bool {
    match fact {
        Fact::Route { route, .. } | Fact::RouteGone(route) => {
            let routes = scope.routes.as_ref();
            routes.is_some_and(|it| it.covers(route)) && machine.follows_table(route.table)
        }
        Fact::Neighbour(_) | Fact::NeighbourGone(..) => scope.neighbours,
        _ => true,
    }
}

#[cfg(test)]
mod tests;
