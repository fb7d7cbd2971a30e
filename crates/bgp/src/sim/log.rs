//! What a speaker received, did and sent, as JSON lines: printed when a schedule fails, and the form in
//! which sessions with real routers are kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::session::ConnectionId;
use fairway_ground::Instant;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Line {
    /// Microseconds since the beginning.
    pub(super) at_micros: u64,
    /// Which of two speakers.
    #[serde(default)]
    pub(super) side: usize,
    /// Which of its connections, counted in the order in which they appear.
    #[serde(default)]
    pub(super) connection: usize,
    #[serde(flatten)]
    pub(super) what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum What {
    /// Input: the process starts.
    Started,
    /// Input: the process ends.
    Stopped { how: String },
    /// Input: the neighbour dialled.
    Accepted,
    /// Input: a dial succeeded.
    Connected,
    /// Input: a dial failed.
    ConnectFailed { why: String },
    /// Input: bytes.
    Received { bytes: Hex },
    /// Input: the end of the connection.
    Closed { why: Option<String> },
    /// Input: a deadline may have passed.
    Tick,
    /// Output: a dial.
    Dials,
    /// Output: bytes written.
    Sends { bytes: Hex },
    /// Output: the connection closed.
    Closes,
}

impl What {
    /// Whether this is an output of the speaker.
    pub(super) fn is_done(&self) -> bool {
        matches!(self, Self::Dials | Self::Sends { .. } | Self::Closes)
    }
}

/// Bytes, as hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Hex(pub(super) Vec<u8>);

impl From<Hex> for String {
    fn from(hex: Hex) -> Self {
        hex.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl TryFrom<String> for Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let pairs = text.as_bytes().chunks(2);
        let byte = |pair: &[u8]| {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2);
            pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())
        };
        let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
        bytes.map(Self).ok_or_else(|| format!("{text:?} is not hexadecimal"))
    }
}

/// The lines of one speaker. Keeps none unless asked to: a schedule that passes needs no log.
#[derive(Debug, Default)]
pub(super) struct Log {
    side: usize,
    lines: Option<Vec<Line>>,
    connections: BTreeMap<ConnectionId, usize>,
}

impl Log {
    pub(super) fn of_side(side: usize, keep: bool) -> Self {
        Self { side, lines: keep.then(Vec::new), connections: BTreeMap::new() }
    }

    /// Takes a note. `what` is only made when it will be printed.
    pub(super) fn note(
        &mut self,
        now: Instant,
        id: Option<ConnectionId>,
        what: impl FnOnce() -> What,
    ) {
        let Some(lines) = &mut self.lines else { return };
        let next = self.connections.len();
        let connection = id.map_or(0, |id| *self.connections.entry(id).or_insert(next));
        let line = Line { at_micros: now.as_micros(), side: self.side, connection, what: what() };
        lines.push(line);
    }

    pub(super) fn lines(&self) -> &[Line] {
        self.lines.as_deref().unwrap_or_default()
    }
}
