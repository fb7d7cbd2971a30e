//! Real servers that get no new connections and keep those they have, until these end.
//!
//! Answers which of them may go. Knows no kernel: who counts connections says when there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::Instant;
use fairway_model::ObjectName;

use crate::wanted::{RealServer, VirtualAddress};

/// A real server of a virtual one.
pub type Place = (VirtualAddress, RealServer);

#[derive(Debug, Clone)]
struct Leaving {
    since: Instant,
    /// Whose it was.
    service: Option<ObjectName>,
    /// It has no connection, or its address is another Pod's by now.
    is_over: bool,
}

/// All that are leaving.
#[derive(Debug, Clone, Default)]
pub(super) struct Draining {
    leaving: BTreeMap<Place, Leaving>,
    by_address: BTreeMap<IpAddr, BTreeSet<Place>>,
    /// In the order in which their time is up.
    by_time: BTreeSet<(Instant, Place)>,
}

impl Draining {
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        self.leaving.keys().copied()
    }

    pub(super) fn has(&self, place: Place) -> bool {
        self.leaving.contains_key(&place)
    }

    pub(super) fn begin(&mut self, place: Place, service: Option<ObjectName>, now: Instant) {
        if !self.has(place) {
            self.leaving.insert(place, Leaving { since: now, service, is_over: false });
            self.by_address.entry(place.1.address).or_default().insert(place);
            self.by_time.insert((now, place));
        }
    }

    pub(super) fn end(&mut self, place: Place) {
        let Some(leaving) = self.leaving.remove(&place) else { return };
        self.by_time.remove(&(leaving.since, place));
        if let Some(places) = self.by_address.get_mut(&place.1.address) {
            places.remove(&place);
            if places.is_empty() {
                self.by_address.remove(&place.1.address);
            }
        }
    }

    /// Ends all of one virtual server.
    pub(super) fn end_server(&mut self, at: VirtualAddress) {
        let first = RealServer { address: IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), port: 0 };
        let of_it = self.leaving.range((at, first)..).take_while(|((it, _), _)| *it == at);
        let places: Vec<Place> = of_it.map(|(place, _)| *place).collect();
        for place in places {
            self.end(place);
        }
    }

    /// It has no connection any more.
    pub(super) fn is_idle(&mut self, place: Place) {
        if let Some(leaving) = self.leaving.get_mut(&place) {
            leaving.is_over = true;
        }
    }

    /// The address is a Pod's of this Service now: connections to a Pod of another one that had it must not reach it.
    /// Returns what is over by that.
    pub(super) fn is_taken(&mut self, address: IpAddr, by: &ObjectName) -> Vec<Place> {
        let places = self.by_address.get(&address).into_iter().flatten();
        let mut over = Vec::new();
        for place in places {
            let Some(leaving) = self.leaving.get_mut(place) else { continue };
            if leaving.service.as_ref() != Some(by) && !leaving.is_over {
                leaving.is_over = true;
                over.push(*place);
            }
        }
        over
    }

    /// Whether it may go.
    pub(super) fn is_over(&self, place: Place, limit: Duration, now: Instant) -> bool {
        self.leaving.get(&place).is_some_and(|it| it.is_over || it.since + limit <= now)
    }

    /// When the time of the next one is up. Those whose time was up before wait for something else.
    pub(super) fn next_deadline(&self, limit: Duration, now: Instant) -> Option<Instant> {
        self.by_time.iter().map(|(since, _)| *since + limit).find(|at| *at > now)
    }

    /// Those whose time is up.
    pub(super) fn expired(&self, limit: Duration, now: Instant) -> impl Iterator<Item = Place> {
        self.by_time.iter().take_while(move |(since, _)| *since + limit <= now).map(|(_, it)| *it)
    }
}
