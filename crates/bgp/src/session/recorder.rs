//! The last messages of a neighbour and the states of its connections, in bounded memory.
//!
//! Answers what was said before something happened. Knows no file and no format; [`super::Peer`] records, a view copies.

use std::collections::VecDeque;
use std::sync::Arc;

use super::connection::Connection;
use crate::wire::header::whole_messages;
use fairway_ground::Instant;
use fairway_seam::{ConnectionEnds, Record, Recorded, SessionState};

/// As many records of a neighbour are kept: an hour of KEEPALIVEs with the default timers, both ways.
const RECORDS_MAX: usize = 1000;
/// As many bytes, if there are few neighbours: an UPDATE has 4096 at most.
const BYTES_MAX: usize = 256 * 1024;
/// As many with any number of neighbours: the last session to come up and its KEEPALIVEs.
const BYTES_MIN: usize = 4 * 1024;
/// As many of all neighbours together, as long as that leaves each the minimum.
const ALL_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What a record takes beside its message.
const RECORD_BYTES: usize = 64;
/// The longest text about the end of a connection; a neighbour may have written it.
const TEXT_BYTES_MAX: usize = 256;

/// A record without its bytes, which are in the ring.
#[derive(Debug, Clone)]
struct Entry {
    at: Instant,
    ends: Option<Arc<ConnectionEnds>>,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Message { is_received: bool, four_octet_as: bool, length: usize },
    State { from: SessionState, to: SessionState, why: Box<str> },
}

/// What is kept of a neighbour.
#[derive(Debug, Clone)]
pub(super) struct Recorder {
    entries: VecDeque<Entry>,
    /// The bytes of the messages in `entries`, one after the other.
    bytes: VecDeque<u8>,
    room_bytes: usize,
    overwritten: u64,
}

impl Default for Recorder {
    fn default() -> Self {
        let (entries, bytes) = Default::default();
        Self { entries, bytes, room_bytes: BYTES_MAX, overwritten: 0 }
    }
}

impl Recorder {
    /// There are so many neighbours.
    pub(super) fn share_among(&mut self, neighbours: usize) {
        let share = ALL_BYTES_MAX.checked_div(neighbours).unwrap_or(BYTES_MAX);
        self.room_bytes = share.clamp(BYTES_MIN, BYTES_MAX);
        self.make_room(0);
        if self.bytes.capacity() > self.room_bytes.saturating_mul(2) {
            self.bytes.shrink_to(self.room_bytes);
        }
    }

    /// A message came, or is about to be written. One that is longer than what is kept in all is not kept.
    pub(super) fn message(
        &mut self,
        at: Instant,
        connection: &Connection,
        is_received: bool,
        parts: [&[u8]; 2],
    ) {
        let four_octet_as = connection.has_four_octet_as();
        self.keep(at, connection.ends.as_ref(), is_received, four_octet_as, parts);
    }

    /// A connection had the state `from`, and may have another one now.
    pub(super) fn state(
        &mut self,
        at: Instant,
        connection: &Connection,
        from: SessionState,
        why: &str,
    ) {
        if connection.state != from {
            self.note(at, connection.ends.as_ref(), from, connection.state, why);
        }
    }

    /// A connection has ended, perhaps with a message.
    pub(super) fn end(
        &mut self,
        at: Instant,
        connection: &Connection,
        why: &str,
        last_words: Option<&[u8]>,
    ) {
        for message in last_words.into_iter().flat_map(whole_messages) {
            self.message(at, connection, false, [message, &[]]);
        }
        self.note(at, connection.ends.as_ref(), connection.state, SessionState::Idle, why);
    }

    fn keep(
        &mut self,
        at: Instant,
        ends: Option<&Arc<ConnectionEnds>>,
        is_received: bool,
        four_octet_as: bool,
        parts: [&[u8]; 2],
    ) {
        let length = parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.len()));
        if length.saturating_add(RECORD_BYTES) > self.room_bytes {
            self.overwritten = self.overwritten.saturating_add(1);
            return;
        }
        self.make_room(length);
        for part in parts {
            self.bytes.extend(part);
        }
        let what = What::Message { is_received, four_octet_as, length };
        self.entries.push_back(Entry { at, ends: ends.cloned(), what });
    }

    fn note(
        &mut self,
        at: Instant,
        ends: Option<&Arc<ConnectionEnds>>,
        from: SessionState,
        to: SessionState,
        why: &str,
    ) {
        self.make_room(0);
        // A text that is shorter has no boundary beyond its end.
        let end = (0..=TEXT_BYTES_MAX).rev().find(|at| why.is_char_boundary(*at));
        let why = end.and_then(|it| why.get(..it)).unwrap_or_default().into();
        let what = What::State { from, to, why };
        self.entries.push_back(Entry { at, ends: ends.cloned(), what });
    }

    fn used_bytes(&self) -> usize {
        self.entries.len().saturating_mul(RECORD_BYTES).saturating_add(self.bytes.len())
    }

    fn make_room(&mut self, length: usize) {
        let limit = self.room_bytes.saturating_sub(length).saturating_sub(RECORD_BYTES);
        while self.entries.len() >= RECORDS_MAX || self.used_bytes() > limit {
            let Some(oldest) = self.entries.pop_front() else { return self.bytes.clear() };
            if let What::Message { length, .. } = oldest.what {
                self.bytes.drain(..length.min(self.bytes.len()));
            }
            self.overwritten = self.overwritten.saturating_add(1);
        }
    }

    /// What is left, oldest first, and how many are not.
    pub(super) fn records(&self) -> (Vec<Record>, u64) {
        let mut rest = self.bytes.iter().copied();
        let mut record = |entry: &Entry| {
            let what = match &entry.what {
                What::Message { is_received, four_octet_as, length } => {
                    let bytes = rest.by_ref().take(*length).collect();
                    let (is_received, four_octet_as) = (*is_received, *four_octet_as);
                    Recorded::Message { is_received, four_octet_as, bytes }
                }
                What::State { from, to, why } => {
                    Recorded::State { from: *from, to: *to, why: why.to_string() }
                }
            };
            Record { at: entry.at, ends: entry.ends.clone(), what }
        };
        (self.entries.iter().map(&mut record).collect(), self.overwritten)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(recorder: &mut Recorder, number: u8, length: usize) {
        let bytes = vec![number; length];
        let (head, body) = bytes.split_at(length / 2);
        recorder.keep(Instant::from_micros(number.into()), None, true, true, [head, body]);
    }

    fn numbers(recorder: &Recorder) -> Vec<(u8, usize)> {
        let (records, _) = recorder.records();
        let first = |record: Record| match record.what {
            Recorded::Message { bytes, .. } => (bytes[0], bytes.len()),
            Recorded::State { .. } => (0, 0),
        };
        records.into_iter().map(first).collect()
    }

    #[test]
    fn the_oldest_messages_make_room_for_new_ones() {
        let mut recorder = Recorder::default();
        recorder.share_among(1_000_000);
        message(&mut recorder, 1, 2900);
        message(&mut recorder, 2, 1000);
        assert_eq!(numbers(&recorder), [(1, 2900), (2, 1000)]);
        message(&mut recorder, 3, 97);
        assert_eq!(numbers(&recorder), [(2, 1000), (3, 97)]);
        message(&mut recorder, 4, 4097);
        assert_eq!(numbers(&recorder), [(2, 1000), (3, 97)], "longer than everything that is kept");
        assert_eq!(recorder.records().1, 2);
    }

    #[test]
    fn a_thousand_records_are_kept_and_no_more() {
        let mut recorder = Recorder::default();
        for number in 0..1_200_u64 {
            let at = Instant::from_micros(number);
            recorder.note(at, None, SessionState::Idle, SessionState::Connect, "");
        }
        let (records, overwritten) = recorder.records();
        assert_eq!((records.len(), overwritten), (1000, 200));
        assert_eq!(records[0].at, Instant::from_micros(200));
    }

    #[test]
    fn another_number_of_neighbours_leaves_each_its_share() {
        let mut recorder = Recorder::default();
        for number in 0..100 {
            message(&mut recorder, number, 2000);
        }
        assert_eq!(numbers(&recorder).len(), 100);
        recorder.share_among(512);
        assert_eq!(numbers(&recorder).len(), 3, "8 KiB");
        recorder.share_among(0);
        message(&mut recorder, 100, 2000);
        assert_eq!(numbers(&recorder).len(), 4);
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let mut recorder = Recorder::default();
        let why = "ä".repeat(200);
        recorder.note(Instant::ZERO, None, SessionState::Established, SessionState::Idle, &why);
        let (records, _) = recorder.records();
        assert!(matches!(&records[0].what, Recorded::State { why, .. } if why.len() == 256));
    }
}
