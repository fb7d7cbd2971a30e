//! Which Services claim which address in their status, and since when an address is unclaimed.
//!
//! Answers only from received objects, so a follower knows as much as the leader: an address that was claimed
//! a moment ago is still being withdrawn from routers. Reads raw objects, since an address that an unreadable
//! Service claims is in use as well. Decides nothing. The controller owns one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::Instant;
use fairway_model::ObjectName;
use serde_json::Value;

/// How many released addresses are remembered at most, the oldest are forgotten first: the size of a /16.
const RELEASED_MAX: usize = 65_536;

/// The addresses in `status.loadBalancer.ingress`.
pub fn status_addresses(service: &Value) -> BTreeSet<IpAddr> {
    let ingress = || service.get("status")?.get("loadBalancer")?.get("ingress")?.as_array();
    let texts = ingress().into_iter().flatten().filter_map(|it| it.get("ip")?.as_str());
    texts.filter_map(|text| text.parse().ok()).collect()
}

/// The Services that had an address, and when its release was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Released {
    pub(super) former: ObjectName,
    pub(super) at: Instant,
}

/// All claims.
#[derive(Debug, Clone, Default)]
pub(super) struct Claims {
    by_service: BTreeMap<ObjectName, BTreeSet<IpAddr>>,
    by_address: BTreeMap<IpAddr, BTreeSet<ObjectName>>,
    released: BTreeMap<IpAddr, Released>,
    by_time: BTreeSet<(Instant, IpAddr)>,
}

impl Claims {
    /// `service` claims these addresses now; none if it is deleted. Returns those it no longer claims.
    pub(super) fn set(
        &mut self,
        now: Instant,
        service: &ObjectName,
        addresses: BTreeSet<IpAddr>,
    ) -> Vec<IpAddr> {
        let before = self.by_service.remove(service).unwrap_or_default();
        let dropped = before.difference(&addresses).copied().collect();
        for address in before.difference(&addresses) {
            let Some(users) = self.by_address.get_mut(address) else { continue };
            users.remove(service);
            if users.is_empty() {
                self.by_address.remove(address);
                self.release(now, *address, service);
            }
        }
        for address in addresses.difference(&before) {
            self.by_address.entry(*address).or_default().insert(service.clone());
            self.forget(*address);
        }
        if !addresses.is_empty() {
            self.by_service.insert(service.clone(), addresses);
        }
        dropped
    }

    fn release(&mut self, now: Instant, address: IpAddr, former: &ObjectName) {
        self.forget(address);
        self.released.insert(address, Released { former: former.clone(), at: now });
        self.by_time.insert((now, address));
        if self.by_time.len() > RELEASED_MAX
            && let Some((_, oldest)) = self.by_time.pop_first()
        {
            self.released.remove(&oldest);
        }
    }

    fn forget(&mut self, address: IpAddr) {
        if let Some(released) = self.released.remove(&address) {
            self.by_time.remove(&(released.at, address));
        }
    }

    /// Whether no address is claimed.
    pub(super) fn is_empty(&self) -> bool {
        self.by_address.is_empty()
    }

    /// The Services that claim `address`.
    pub(super) fn users(&self, address: IpAddr) -> impl Iterator<Item = &ObjectName> {
        self.by_address.get(&address).into_iter().flatten()
    }

    /// Every claimed address, with the Services that claim it.
    pub(super) fn named(&self) -> impl Iterator<Item = (IpAddr, &BTreeSet<ObjectName>)> {
        self.by_address.iter().map(|(address, users)| (*address, users))
    }

    /// Since when `address` is unclaimed, if its release was seen.
    pub(super) fn released(&self, address: IpAddr) -> Option<&Released> {
        self.released.get(&address)
    }

    /// When each address was released that is still unclaimed, the latest first.
    pub(super) fn latest_released(&self) -> impl Iterator<Item = (Instant, IpAddr)> {
        self.by_time.iter().rev().copied()
    }

    /// Every address that was seen to be released and is still unclaimed, oldest first.
    pub(super) fn all_released(&self) -> impl Iterator<Item = (IpAddr, &Released)> {
        self.by_time.iter().filter_map(|(_, address)| Some((*address, self.released.get(address)?)))
    }
}
