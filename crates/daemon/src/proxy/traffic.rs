//! What each Service has carried, for metrics: a counter that never falls while the Service is there, although virtual
//! servers of it come and go.

use std::collections::BTreeMap;

use fairway_dataplane::ipvs::Traffic;
use fairway_model::ObjectName;
use fairway_proxy::{Entry, VirtualAddress};

use crate::metrics::ServiceTraffic;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct TrafficLog {
    seen: BTreeMap<VirtualAddress, Traffic>,
    services: BTreeMap<ObjectName, ServiceTraffic>,
}

impl TrafficLog {
    /// Adds what virtual servers have carried since the last call.
    pub(super) fn read(
        &mut self,
        now: BTreeMap<VirtualAddress, Traffic>,
        wanted: &BTreeMap<VirtualAddress, Entry>,
    ) {
        for (at, entry) in wanted {
            let Some(now) = now.get(at) else { continue };
            let before = self.seen.get(at).copied().unwrap_or_default();
            // One that was made again begins at zero.
            let is_same = now.connections >= before.connections && now.bytes_in >= before.bytes_in;
            let before = if is_same { before } else { Traffic::default() };
            let service = self.services.entry(entry.service.clone()).or_default();
            service.add(
                now.connections.saturating_sub(before.connections),
                (
                    now.packets_in.saturating_sub(before.packets_in),
                    now.packets_out.saturating_sub(before.packets_out),
                ),
                (
                    now.bytes_in.saturating_sub(before.bytes_in),
                    now.bytes_out.saturating_sub(before.bytes_out),
                ),
            );
        }
        let is_served: std::collections::BTreeSet<&ObjectName> =
            wanted.values().map(|it| &it.service).collect();
        self.services.retain(|name, _| is_served.contains(name));
        self.seen = now;
        self.seen.retain(|at, _| wanted.contains_key(at));
    }

    pub(super) fn by_service(&self) -> BTreeMap<String, ServiceTraffic> {
        self.services.iter().map(|(name, it)| (name.to_string(), *it)).collect()
    }
}
