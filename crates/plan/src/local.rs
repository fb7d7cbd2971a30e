//! What this machine finds out about itself and no object says: which Services it does not serve, and which
//! interfaces it can answer on.
//!
//! Facts only; handed to the planner by the daemon.

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::Abstention;
use fairway_model::{ClusterIndex, ObjectName};

use super::abstention::{from_advertisement, from_service};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Local {
    /// Services with a health check that fails here, and how.
    pub failing: BTreeMap<ObjectName, String>,
    /// The names of the interfaces that layer 2 can answer on; `None` while that is not known.
    pub interfaces: Option<BTreeSet<String>>,
}

impl Local {
    /// What this machine is no candidate for on layer 2.
    pub(super) fn abstentions(&self, index: &ClusterIndex) -> BTreeSet<Abstention> {
        let checked = self.failing.keys().filter(|it| index.services.contains_key(*it));
        let services = checked.map(from_service);
        let is_out_of_reach = |interfaces: &BTreeSet<String>| {
            let reached = self.interfaces.as_ref();
            let is_reached = |it: &BTreeSet<String>| !it.is_disjoint(interfaces);
            !interfaces.is_empty() && reached.is_some_and(|it| !is_reached(it))
        };
        let advertisements = index.layer2_advertisements.values();
        let advertisements = advertisements.filter(|it| is_out_of_reach(&it.interfaces));
        services.chain(advertisements.map(|it| from_advertisement(&it.name))).collect()
    }
}
