//! Router discovery on the link of an unnumbered neighbour.

use std::net::Ipv6Addr;

use fairway_bgp::ndp::{Discovery, Message, NdpFault, Packet};
use fairway_ground::Instant;

use crate::{Answer, Outcome};

const SOURCES: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 9),
    Ipv6Addr::UNSPECIFIED,
    Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 9),
];

/// A packet, after an octet for its source and one for its hop limit.
pub fn router_discovery(input: &[u8]) -> Outcome {
    let [source, hop_limit, bytes @ ..] = input else { return Outcome::ACCEPTED };
    let source = SOURCES[usize::from(*source) % SOURCES.len()];
    let read = Message::parse(Packet { source, hop_limit: *hop_limit, bytes });
    assert_eq!(read.is_ok(), is_valid(source, *hop_limit, bytes), "{read:?}");
    let message = match read {
        Ok(message) => message,
        Err(fault) => {
            assert!(!fault.to_string().is_empty());
            return Outcome { answer: Answer::Ignored, code: 0, what: name(fault) };
        }
    };
    let mut discovery = Discovery::new(Instant::ZERO, u64::from(*hop_limit));
    discovery.sent(Instant::ZERO);
    discovery.hear(Instant::ZERO, message);
    assert!(
        discovery.next_deadline(Instant::ZERO) > Instant::ZERO,
        "the deadline is in the past: a busy loop"
    );
    match message {
        Message::Solicitation => Outcome::accepted("solicitation"),
        Message::Advertisement { source: router, .. } => {
            assert_eq!(discovery.neighbour(Instant::ZERO), Some(router));
            Outcome::accepted("advertisement")
        }
    }
}

/// A second implementation of the validation in RFC 4861 §6.1.
fn is_valid(source: Ipv6Addr, hop_limit: u8, bytes: &[u8]) -> bool {
    let (fixed, link_local) = match bytes {
        [133, 0, ..] => (8, false),
        [134, 0, ..] => (16, true),
        _ => return false,
    };
    let Some(mut options) = bytes.get(fixed..) else { return false };
    let mut names = false;
    while let [kind, rest @ ..] = options {
        let units = rest.first().copied().map_or(0, usize::from);
        if units == 0 || units * 8 > options.len() {
            return false;
        }
        names |= *kind == 1;
        options = &options[units * 8..];
    }
    hop_limit == 255
        && (!link_local || source == SOURCES[0])
        && (link_local || !names || source != Ipv6Addr::UNSPECIFIED)
}

fn name(fault: NdpFault) -> &'static str {
    match fault {
        NdpFault::HopLimit(_) => "hop limit",
        NdpFault::Type(_) => "type",
        NdpFault::Code(_) => "code",
        NdpFault::Length { .. } => "length",
        NdpFault::Option => "option",
        NdpFault::Source(_) => "source",
        NdpFault::SourceOption => "source option",
    }
}
