//! Which Service names which address in its status, and since when nobody names it any more.
//!
//! Answers from what was seen alone, so a follower knows as much as the leader: an address that was
//! named a moment ago is still on its way out of routers. Reads raw objects, since an address that
//! an unreadable Service names is taken, too. Decides nothing. The controller owns one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::Instant;
use fairway_model::ObjectName;
use serde_json::Value;

/// Of so many released addresses at most the time is known; the oldest are forgotten first. What
/// a /16 holds.
const RELEASED_MAX: usize = 65_536;

/// The addresses in `status.loadBalancer.ingress`.
pub fn status_addresses(service: &Value) -> BTreeSet<IpAddr> {
    let ingress = || service.get("status")?.get("loadBalancer")?.get("ingress")?.as_array();
    let texts = ingress().into_iter().flatten().filter_map(|it| it.get("ip")?.as_str());
    texts.filter_map(|text| text.parse().ok()).collect()
}

/// Who had an address, and when that was seen to be over.
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
    /// `service` names these addresses now; none when it is gone. Answers which it no longer names.
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

    /// Whether nobody names any address.
    pub(super) fn is_empty(&self) -> bool {
        self.by_address.is_empty()
    }

    /// Who names `address`.
    pub(super) fn users(&self, address: IpAddr) -> impl Iterator<Item = &ObjectName> {
        self.by_address.get(&address).into_iter().flatten()
    }

    /// Every address that is named, with those who name it.
    pub(super) fn named(&self) -> impl Iterator<Item = (IpAddr, &BTreeSet<ObjectName>)> {
        self.by_address.iter().map(|(address, users)| (*address, users))
    }

    /// Since when nobody names `address`, if that was seen.
    pub(super) fn released(&self, address: IpAddr) -> Option<&Released> {
        self.released.get(&address)
    }

    /// Every address that was seen to be released and is not named since, oldest first.
    pub(super) fn all_released(&self) -> impl Iterator<Item = (IpAddr, &Released)> {
        self.by_time.iter().filter_map(|(_, address)| Some((*address, self.released.get(address)?)))
    }
}
