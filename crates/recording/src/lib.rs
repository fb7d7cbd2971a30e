//! What was said on the sessions of a neighbour, and the routes of a node, in formats that other programs read.
//!
//! Answers a recording as MRT (RFC 6396), pcap or JSON, and a view as MRT or JSON. Pure: bytes out. Knows no clock but the
//! moment that it is told, no file and no speaker. Called by the daemon for `fairway dump`, and when a session ends.

mod json;
mod mrt;
mod pcap;
mod rib;
mod stamp;

use std::fmt;
use std::str::FromStr;

use fairway_seam::Recording;

pub use rib::{RIB_SCOPE, RibFormat, RibPieces};
pub use stamp::Stamp;

/// The format of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpFormat {
    /// MRT with microseconds (BGP4MP_ET): bgpdump, bgpkit-parser and gobgp read it.
    Mrt,
    /// Packets as tcpdump and Wireshark read them; their TCP is made up.
    Pcap,
    /// One object.
    Json,
}

impl DumpFormat {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Mrt, Self::Pcap, Self::Json];

    /// The recording in this format. `now` is when it was copied.
    pub fn write(self, recording: &Recording, now: Stamp) -> Vec<u8> {
        match self {
            Self::Mrt => mrt::write(recording, now),
            Self::Pcap => pcap::write(recording, now),
            Self::Json => json::write(recording, now).into_bytes(),
        }
    }
}

impl fmt::Display for DumpFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mrt => "mrt",
            Self::Pcap => "pcap",
            Self::Json => "json",
        })
    }
}

impl FromStr for DumpFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|it| it.to_string() == text);
        found.ok_or_else(|| format!("{text:?} is not a format; expected mrt, pcap or json"))
    }
}

#[cfg(test)]
mod tests;
