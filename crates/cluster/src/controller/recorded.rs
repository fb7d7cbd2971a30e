//! Which addresses the next leader will know of: those that the Lease names.
//!
//! A status gets an address only once the Lease names it, so whatever a router can still send to a Service
//! that has lost it is known to the next leader, even one that has seen nothing of it. Owns what the Lease
//! contains; the controller computes what it should contain.

use std::net::IpAddr;

use crate::address_record::{self, Addresses};

/// What a Lease names: these addresses; or it has no record, and the next leader waits.
type Named = Option<Addresses>;

/// The record of addresses in the Lease.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorded {
    /// In the Lease for certain.
    stored: Named,
    /// In a write that has no answer yet.
    sent: Option<Named>,
}

impl Recorded {
    /// The Lease is ours; this is what it contains.
    pub(super) fn begin(text: Option<&str>) -> Self {
        Self { stored: text.and_then(address_record::parse), sent: None }
    }

    /// The addresses of an earlier leader, if it left a record.
    pub(super) fn stored(&self) -> Option<&Addresses> {
        self.stored.as_ref()
    }

    /// The Lease is being written with these. Returns its line.
    pub(super) fn send(&mut self, addresses: Addresses) -> Option<String> {
        let text = address_record::text(&addresses);
        self.sent = Some(text.is_some().then_some(addresses));
        text
    }

    /// The last write succeeded.
    pub(super) fn written(&mut self) {
        if let Some(sent) = self.sent.take() {
            self.stored = sent;
        }
    }

    /// It may have succeeded: only what both name is certain.
    pub(super) fn in_doubt(&mut self) {
        let Some(sent) = self.sent.take() else { return };
        self.stored = match (self.stored.take(), sent) {
            (Some(mut stored), Some(sent)) => {
                stored.retain(|address, _| sent.contains_key(address));
                Some(stored)
            }
            (stored, sent) => stored.or(sent),
        };
    }

    /// Whether a status may get `address`: the Lease names it, or the next leader waits anyway.
    pub(super) fn names(&self, address: IpAddr) -> bool {
        let named = |it: &Named| it.as_ref().is_none_or(|it| it.contains_key(&address));
        named(&self.stored) && self.sent.as_ref().is_none_or(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(addresses: &[&str]) -> Addresses {
        addresses.iter().map(|it| (it.parse().unwrap(), None)).collect()
    }

    fn named(recorded: &Recorded) -> [bool; 2] {
        ["192.0.2.1", "192.0.2.2"].map(|it| recorded.names(it.parse().unwrap()))
    }

    #[test]
    fn an_address_counts_once_its_write_is_answered_and_not_longer_than_until_it_is_left_out() {
        let mut recorded = Recorded::begin(Some("192.0.2.1"));
        assert_eq!(named(&recorded), [true, false]);
        assert_eq!(recorded.send(set(&["192.0.2.1", "192.0.2.2"])).unwrap(), "192.0.2.1-192.0.2.2");
        assert_eq!(named(&recorded), [true, false]);
        recorded.written();
        assert_eq!(named(&recorded), [true, true]);
        recorded.send(set(&["192.0.2.2"]));
        assert_eq!(named(&recorded), [false, true], "the write may have arrived");
        recorded.in_doubt();
        assert_eq!(named(&recorded), [false, true]);
    }

    #[test]
    fn without_a_record_the_next_leader_waits_and_nothing_is_held_back() {
        let mut recorded = Recorded::begin(None);
        assert_eq!(named(&recorded), [true, true]);
        recorded.send(set(&["192.0.2.1"]));
        assert_eq!(named(&recorded), [true, false]);
        recorded.in_doubt();
        assert_eq!(named(&recorded), [true, false], "the Lease may name it alone");
        assert_eq!(Recorded::begin(Some("nonsense")).stored(), None);
    }
}
