//! What must hold when everything is quiet, whatever happened before.
//!
//! I3: what is wanted is announced. I6 and I7: a process that starts now, from the API server or from
//! the disk, reaches the present state. I1 and I2 once more, without any grace.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairway_allocator::{Allocator, PoolLookup, PoolUse};
use fairway_cluster::{POOL_ANNOTATION, SpeakerCore, status_addresses};
use fairway_ground::{Instant, Prefix};
use fairway_model::{Changes, Kind, ObjectName};
use fairway_model_api::Request as ApiRequest;
use fairway_plan::Reason;

use crate::objects::resource;
use crate::process::from_disk;
use crate::router::router_of;
use crate::rules::{Violation, broken, condition};
use crate::schedule::Who;
use crate::truth::may_share;
use crate::world::{SILENCE, World};

impl World {
    pub(crate) fn check_quiet(&mut self) {
        let statuses = self.check_statuses();
        let result = self
            .check_leaders()
            .and_then(|()| self.check_sharing())
            .and(statuses)
            .and_then(|()| self.check_routers())
            .and_then(|()| self.check_owners())
            .and_then(|()| self.check_disks());
        self.judge(result);
    }

    fn check_leaders(&self) -> Result<(), Violation> {
        let leading = |it: &&crate::process::Process| {
            it.controller().is_some_and(fairway_cluster::ControllerCore::is_leading)
        };
        let leaders = self.processes.values().filter(leading).count();
        if leaders != 1 {
            return Err(broken("I3", format!("{leaders} controllers lead")));
        }
        if self.last_write + SILENCE > self.now {
            let ago = self.now.since(self.last_write);
            return Err(broken("I11", format!("the last write was {ago:?} ago")));
        }
        Ok(())
    }

    fn check_sharing(&self) -> Result<(), Violation> {
        if self.truth.index.pools.is_empty() {
            return Ok(()); // Nothing is announced, and all addresses stay.
        }
        for (address, users) in &self.truth.users {
            let services: Vec<_> =
                users.iter().filter_map(|name| self.truth.index.services.get(name)).collect();
            for (place, one) in services.iter().enumerate() {
                for other in services.iter().skip(place + 1) {
                    if !may_share(one, other) {
                        let what = format!("{} and {} both have {address}", one.name, other.name);
                        return Err(broken("I1", what));
                    }
                }
            }
        }
        Ok(())
    }

    /// A controller without memory must leave everything as it is, and find nothing to assign.
    fn check_statuses(&mut self) -> Result<(), Violation> {
        let index = Arc::clone(&self.truth.index);
        let mut allocator = Allocator::new(None);
        allocator.converge(Instant::ZERO, &index, &Changes::default());
        for (name, service) in &self.truth.services {
            let has = status_addresses(service);
            let outcome = allocator.outcomes().get(name);
            if outcome.is_some() && index.pools.is_empty() {
                continue; // All addresses stay.
            }
            let wanted: BTreeSet<IpAddr> =
                outcome.into_iter().flat_map(|it| it.addresses.iter().copied()).collect();
            if has != wanted {
                let what = format!("{name} has {has:?}, and should have {wanted:?}");
                return Err(broken("I3", what));
            }
            let pool = outcome.and_then(|it| it.pool.as_deref());
            let annotations = service.get("metadata").and_then(|it| it.get("annotations"));
            let written = annotations.and_then(|it| it.get(POOL_ANNOTATION)?.as_str());
            if written != pool {
                let what =
                    format!("{name} has the pool annotation {written:?}, and its pool is {pool:?}");
                return Err(broken("I3", what));
            }
            let lacks = outcome.is_some_and(|it| it.reason.is_some());
            if condition(service).is_some() != lacks {
                let what = format!("{name} has the condition {:?}", condition(service));
                return Err(broken("I3", what));
            }
        }
        self.check_pools(&allocator)
    }

    /// The status of each pool has the number of its assigned addresses.
    fn check_pools(&mut self, allocator: &Allocator) -> Result<(), Violation> {
        let used = PoolUse::of_all(&self.truth.index, allocator.outcomes());
        for PoolUse { pool, used, .. } in used {
            let resource = resource(Kind::IpAddressPool);
            let request = ApiRequest::get(&resource, &pool.namespace, &pool.name);
            let stored = self.api.handle(self.timestamp(), 0, &request).body;
            let said = |field| stored["status"][field].as_u64().map(u128::from);
            let (ipv4, ipv6) = (said("assignedIPv4"), said("assignedIPv6"));
            if (ipv4, ipv6) != (Some(used.ipv4), Some(used.ipv6)) {
                let what = format!(
                    "{pool} has {ipv4:?} and {ipv6:?} in its status, and {used:?} are assigned"
                );
                return Err(broken("I3", what));
            }
        }
        Ok(())
    }

    fn check_routers(&self) -> Result<(), Violation> {
        for (node, (plan, adjacencies)) in
            self.truth.plans.iter().zip(&self.adjacencies).enumerate()
        {
            for (router, adjacency) in adjacencies.iter().enumerate() {
                let has_session = plan.peers.iter().any(|it| router_of(&it.key) == Some(router));
                if adjacency.is_up != has_session {
                    let what = format!(
                        "node {node} and router {router}: session up: {}, wanted: {has_session}",
                        adjacency.is_up
                    );
                    return Err(broken("I3", what));
                }
                let routes = plan
                    .routes
                    .iter()
                    .filter(|route| route.peers.iter().any(|key| router_of(key) == Some(router)));
                let wanted: BTreeMap<Prefix, _> =
                    routes.map(|route| (route.prefix, route.attributes.clone())).collect();
                if wanted != adjacency.routes || !adjacency.stale.is_empty() {
                    let names = |it: &mut dyn Iterator<Item = &Prefix>| {
                        it.map(ToString::to_string).collect::<Vec<_>>().join(" ")
                    };
                    let what = format!(
                        "router {router} has [{}] and stale [{}] of node {node}, wanted [{}]",
                        names(&mut adjacency.routes.keys()),
                        names(&mut adjacency.stale.keys()),
                        names(&mut wanted.keys()),
                    );
                    return Err(broken("I3", what));
                }
            }
        }
        Ok(())
    }

    /// I8: each address with layer 2 candidates has exactly one node that answers.
    fn check_owners(&self) -> Result<(), Violation> {
        let mut owners: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for (who, process) in &self.processes {
            let (Who::Speaker(node), Some(speaker)) = (*who, process.speaker()) else { continue };
            let answers = speaker.plan().map(|plan| plan.layer2.clone()).unwrap_or_default();
            let wanted = self.truth.plans.get(node).map(|plan| plan.layer2.clone());
            if wanted.is_some_and(|wanted| wanted != answers) {
                return Err(broken("I8", format!("{who} answers for {answers:?}")));
            }
            for address in answers.iter().map(|it| it.address) {
                if let Some(other) = owners.insert(address, node) {
                    let what = format!("nodes {other} and {node} both answer for {address}");
                    return Err(broken("I8", what));
                }
            }
        }
        // Nodes that do not answer because another does.
        let announcements = self.truth.plans.iter().flat_map(|plan| plan.services.values());
        let second = announcements
            .flat_map(|it| &it.layer2)
            .filter(|it| matches!(it.answer, Err(Reason::NotOwner { .. })));
        match second.flat_map(|it| &it.addresses).find(|it| !owners.contains_key(it)) {
            Some(address) => Err(broken("I8", format!("no node answers for {address}"))),
            None => Ok(()),
        }
    }

    /// I6: a speaker that starts from the disk announces what was announced.
    fn check_disks(&self) -> Result<(), Violation> {
        for (who, process) in &self.processes {
            let (Who::Speaker(node), Some(speaker)) = (*who, process.speaker()) else { continue };
            let again = from_disk(node, process.disk.clone());
            let routes = |it: &SpeakerCore| it.plan().map(|plan| plan.routes.clone());
            if routes(&again) != routes(speaker) && !process.has_lost_disk {
                return Err(broken("I6", format!("{who} would restart with other routes")));
            }
            let pools = PoolLookup::new(&self.truth.index);
            if *speaker.outcomes() != crate::truth::outcomes(&self.truth.index, &pools)
                && !self.truth.index.pools.is_empty()
            {
                let said = |it: &fairway_allocator::Outcome| it.addresses.clone();
                let one: Vec<_> = speaker.outcomes().values().map(said).collect();
                let truth = crate::truth::outcomes(&self.truth.index, &pools);
                if one != truth.values().map(said).collect::<Vec<_>>() {
                    return Err(broken("I7", format!("{who} has a different state")));
                }
            }
        }
        Ok(())
    }

    /// The content of the statuses and of the routers.
    pub(crate) fn outcome(&self) -> BTreeMap<String, String> {
        let mut outcome = BTreeMap::new();
        let text = |it: BTreeSet<IpAddr>| format!("{it:?}");
        for (name, service) in &self.truth.services {
            let name: &ObjectName = name;
            outcome.insert(name.to_string(), text(status_addresses(service)));
        }
        for (node, adjacencies) in self.adjacencies.iter().enumerate() {
            for (router, adjacency) in adjacencies.iter().enumerate() {
                let routes: Vec<_> = adjacency
                    .routes
                    .iter()
                    .map(|(prefix, it)| format!("{prefix} {it:?}"))
                    .collect();
                outcome.insert(format!("node {node} router {router}"), routes.join("; "));
            }
        }
        outcome
    }
}
