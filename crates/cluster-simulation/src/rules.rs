//! The invariants I1 to I13.
//!
//! | | after every step |
//! |---|---|
//! | I1 | no address is assigned to two Services, unless both allow it |
//! | I2, I4 | what is announced is the address of a Service and in a pool, or written in an advertisement |
//! | I5 | no healthy Service loses its address |
//! | I9 | a speaker without connection to the API server withdraws nothing |
//! | I10 | no router loses a wanted route, whatever process restarts |
//! | I11 | nothing is written in a loop, or without a change |
//! | I12 | no session is reset for anything but its own settings |
//! | I13 | no address is assigned to another Service before routers can have forgotten it |
//!
//! I3, I6, I7 and I8 are checked when everything is quiet (`quiet`). Knows the actual state and the
//! actions; not their causes. A violation is returned instead of a panic: finding the shortest
//! schedule needs many.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::IpAddr;

use fairway_allocator::Allocator;
use fairway_cluster::{
    ADDRESS_CONDITION, ObjectWrite, POOL_ANNOTATION, WINDOW, WITHDRAWAL_BOUND, WRITES_MAX,
    WrittenKind, status_addresses,
};
use fairway_ground::Instant;
use fairway_model::{Changes, ClusterIndex, ObjectName, Service};
use serde_json::Value;

use crate::truth::{Truth, may_share};

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// `I1` to `I13`.
    pub rule: &'static str,
    /// The observation.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

/// A rule does not hold.
pub(crate) fn broken(rule: &'static str, what: String) -> Violation {
    Violation { rule, what }
}

/// The writes of each controller, for I11.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteCounts(BTreeMap<(usize, WrittenKind, ObjectName), VecDeque<Instant>>);

impl WriteCounts {
    /// A controller requests a write.
    pub(crate) fn note(
        &mut self,
        now: Instant,
        controller: usize,
        write: &ObjectWrite,
    ) -> Result<(), Violation> {
        let times = self.0.entry((controller, write.kind, write.name.clone())).or_default();
        times.push_back(now);
        while times.front().is_some_and(|at| *at + WINDOW < now) {
            times.pop_front();
        }
        // Pools report their usage, once a second.
        let most = if write.kind == WrittenKind::Service { WRITES_MAX } else { 60 };
        // One more: the first of them may be at the edge of the window.
        if times.len() > most + 1 {
            let what = format!("{} is written {} times within a minute", write.name, times.len());
            return Err(broken("I11", what));
        }
        Ok(())
    }
}

/// A controller's write was accepted: the Service before and now. `truth` is the state before;
/// `belief` is the state that the controller decided by, where it is excused for that.
pub(crate) fn check_write(
    now: Instant,
    truth: &Truth,
    belief: Option<&ClusterIndex>,
    name: &ObjectName,
    before: &Value,
    after: &Value,
) -> Result<(), Violation> {
    if users_part(before) != users_part(after) {
        return Err(broken(
            "I11",
            format!("a write of {name} reverted the change of another writer"),
        ));
    }
    let (had, has) = (status_addresses(before), status_addresses(after));
    if had == has
        && annotation(before) == annotation(after)
        && condition(before) == condition(after)
    {
        return Err(broken("I11", format!("{name} is written without a change")));
    }
    for address in has.difference(&had) {
        check_given(now, truth, belief, name, *address)?;
    }
    for address in had.difference(&has) {
        check_taken(truth, belief, name, *address)?;
    }
    Ok(())
}

/// All fields but those of a controller.
fn users_part(service: &Value) -> Value {
    let mut service = service.clone();
    let others: Vec<Value> = conditions(&service).filter(|it| !is_ours(it)).cloned().collect();
    if let Some(fields) = service.as_object_mut() {
        fields.insert("status".to_owned(), others.into());
    }
    if let Some(metadata) = service.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(POOL_ANNOTATION);
        }
        if metadata.get("annotations").and_then(Value::as_object).is_some_and(|it| it.is_empty()) {
            metadata.remove("annotations");
        }
    }
    service
}

fn conditions(service: &Value) -> impl Iterator<Item = &Value> {
    let conditions = service.get("status").and_then(|it| it.get("conditions")?.as_array());
    conditions.into_iter().flatten()
}

fn is_ours(condition: &Value) -> bool {
    condition.get("type").is_some_and(|it| it == ADDRESS_CONDITION)
}

/// The address condition of a Service.
pub(crate) fn condition(service: &Value) -> Option<&Value> {
    conditions(service).find(|it| is_ours(it))
}

fn annotation(service: &Value) -> Option<&str> {
    service.get("metadata")?.get("annotations")?.get(POOL_ANNOTATION)?.as_str()
}

/// I1, I2 and I13.
fn check_given(
    now: Instant,
    truth: &Truth,
    belief: Option<&ClusterIndex>,
    name: &ObjectName,
    address: IpAddr,
) -> Result<(), Violation> {
    let is_in_pool = |index: &ClusterIndex| index.pools.values().any(|it| it.contains(address));
    if !worlds(truth, belief).any(is_in_pool) {
        return Err(broken("I2", format!("{name} is assigned {address}, which no pool holds")));
    }
    let might_share_with =
        |other: &ObjectName| worlds(truth, belief).any(|index| share(index, name, other));
    // A third one may have joined the two: it was assigned the address before the former released it.
    let would_share_with = |former: Option<&Service>| {
        let mut services = worlds(truth, belief).filter_map(|index| index.services.get(name));
        former.is_some_and(|former| services.any(|it| may_share(it, former)))
    };
    for other in truth.users.get(&address).into_iter().flatten().filter(|it| *it != name) {
        if !might_share_with(other) {
            return Err(broken("I1", format!("{name} is assigned {address}, which {other} has")));
        }
    }
    if truth.users.contains_key(&address) {
        return Ok(());
    }
    if let Some(released) = truth.released.get(&address)
        && released.former != *name
        && !might_share_with(&released.former)
        && !would_share_with(released.service.as_deref())
        && now < released.at + WITHDRAWAL_BOUND
    {
        let (former, ago) = (&released.former, now.since(released.at));
        let what = format!("{name} is assigned {address}, which {former} had {ago:?} ago");
        return Err(broken("I13", what));
    }
    Ok(())
}

/// The states of the cluster that a process may decide by.
fn worlds<'a>(
    truth: &'a Truth,
    belief: Option<&'a ClusterIndex>,
) -> impl Iterator<Item = &'a ClusterIndex> {
    truth.lately().map(|index| &**index).chain(belief)
}

/// I5: in the present state, or in a recent one, there is a reason for it.
fn check_taken(
    truth: &Truth,
    belief: Option<&ClusterIndex>,
    name: &ObjectName,
    address: IpAddr,
) -> Result<(), Violation> {
    let keeps = |index: &ClusterIndex| {
        // Of two that can no longer share, the changed one gives way.
        let names_it = |it: &Service| it.name != *name && it.status_addresses.contains(&address);
        let this = index.services.get(name);
        let conflicts = |other: &Service| this.is_none_or(|this| !may_share(this, other));
        let mut services = index.services.values().map(|it| &**it);
        let is_disputed = services.any(|other| names_it(other) && conflicts(other));
        !is_disputed && adopted(index).get(name).is_some_and(|it| it.contains(&address))
    };
    // An invalid pool may hold what no other holds.
    let is_unknown = belief.is_some_and(|it| {
        !it.unknown_pools.is_empty() && !it.pools.values().any(|pool| pool.contains(address))
    });
    let keep = truth.lately().all(|index| keeps(index)) && (is_unknown || belief.is_none_or(keeps));
    if keep && !has_left_a_share(truth, name) {
        return Err(broken("I5", format!("{name} loses {address}, without a reason")));
    }
    Ok(())
}

/// Whether a Service recently lost the property that lets it share: it gives way to another that was
/// about to be assigned the same address, without a status that shows it yet.
fn has_left_a_share(truth: &Truth, name: &ObjectName) -> bool {
    let others = truth.index.services.keys().filter(|other| *other != name);
    others
        .filter(|other| !share(&truth.index, name, other))
        .any(|other| truth.lately().any(|index| share(index, name, other)))
}

/// Whether both exist and may have the same address.
fn share(index: &ClusterIndex, one: &ObjectName, other: &ObjectName) -> bool {
    let services = (index.services.get(one), index.services.get(other));
    matches!(services, (Some(one), Some(other)) if may_share(one, other))
}

/// The addresses of every Service, after an allocator without memory has adopted the statuses.
pub(crate) fn adopted(index: &ClusterIndex) -> BTreeMap<ObjectName, BTreeSet<IpAddr>> {
    let mut allocator = Allocator::new(None);
    allocator.converge(Instant::ZERO, index, &Changes::default());
    let outcomes = allocator.outcomes().iter();
    outcomes.map(|(name, it)| (name.clone(), it.addresses.iter().copied().collect())).collect()
}
