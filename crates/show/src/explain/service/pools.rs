//! Why each pool gave a Service its address, or why it did not.
//!
//! These are the allocator's rules, reported one by one; a test compares the two.

use fairway_allocator::Outcome;
use fairway_ground::AddressFamily;
use fairway_model::{FamilyPolicy, Pool, Service, ServiceAllocation, any_matches};

use crate::Snapshot;
use crate::pools::{self, Item};

/// The verdict on one pool for a Service.
pub(super) struct PoolVerdict<'a> {
    pub(super) name: &'a str,
    pub(super) stand: Stand,
    /// The addresses that it gave, or why it gave none.
    pub(super) why: String,
}

/// The verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    /// It gave an address.
    Gave,
    /// It could give one.
    Possible,
    /// It has none left.
    Full,
    /// It does not serve the Service.
    Refused,
}

impl Stand {
    /// The word in JSON, and in the text before the reason.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Gave => "gave",
            Self::Possible => "possible",
            Self::Full => "full",
            Self::Refused => "refused",
        }
    }
}

/// All pools, in the order in which the allocator tries them: dedicated pools by priority, general pools by
/// name, and those without autoAssign.
pub(super) fn verdicts<'a>(
    snapshot: &Snapshot<'a>,
    service: &Service,
    outcome: Option<&Outcome>,
) -> Vec<PoolVerdict<'a>> {
    let mut items = pools::items(snapshot);
    items.sort_by_key(|item| {
        let priority = item.pool.allocation.as_ref().map(|it| (it.priority == 0, it.priority));
        (!item.pool.auto_assign, priority.is_none(), priority, &item.pool.name)
    });
    let verdict = |item: &Item<'a>| {
        let pool = item.pool;
        let (stand, why) = stand(snapshot, service, outcome, item);
        PoolVerdict { name: &pool.name.name, stand, why }
    };
    items.iter().map(verdict).collect()
}

fn stand(
    snapshot: &Snapshot<'_>,
    service: &Service,
    outcome: Option<&Outcome>,
    item: &Item<'_>,
) -> (Stand, String) {
    let pool = item.pool;
    let addresses = outcome.map(|it| it.addresses.as_slice()).unwrap_or_default();
    let given: Vec<_> =
        addresses.iter().filter(|it| pool.contains(**it)).map(ToString::to_string).collect();
    if !given.is_empty() {
        return (Stand::Gave, given.join(" and "));
    }
    if let Some(why) = refusal(snapshot, service, pool) {
        return (Stand::Refused, why);
    }
    let held = families(service.families).into_iter().filter(|family| pool.has_family(*family));
    let full: Vec<AddressFamily> =
        held.clone().filter(|family| *item.usage.free.of(*family) == 0).collect();
    if !full.is_empty() && full.len() == held.count() {
        let counts = full.into_iter().map(|family| {
            let (used, total) = (item.usage.used.of(family), item.usage.total.of(family));
            format!("{used} of {total} {} addresses are in use", family.ip_version())
        });
        return (Stand::Full, counts.collect::<Vec<_>>().join(", "));
    }
    let why = if addresses.is_empty() { "has free addresses" } else { "was not needed" };
    (Stand::Possible, why.to_owned())
}

fn families(policy: FamilyPolicy) -> Vec<AddressFamily> {
    match policy {
        FamilyPolicy::Single(family) => vec![family],
        FamilyPolicy::PreferDual(first) | FamilyPolicy::RequireDual(first) => {
            vec![first, first.other()]
        }
    }
}

/// Why `pool` does not serve `service`, regardless of its free addresses.
fn refusal(snapshot: &Snapshot<'_>, service: &Service, pool: &Pool) -> Option<String> {
    let wanted = &service.requested_pools;
    if !wanted.is_empty() && !wanted.contains(&pool.name.name) {
        return Some(format!("the Service asks for pool {}", wanted.join(" and ")));
    }
    if let Some(why) =
        pool.allocation.as_ref().and_then(|it| kept_for_others(snapshot, it, service))
    {
        return Some(why);
    }
    let requested = &service.requested_addresses;
    if !requested.is_empty() {
        let holds_one = requested.iter().any(|address| pool.contains(*address));
        return (!holds_one).then(|| "holds none of the requested addresses".to_owned());
    }
    if wanted.is_empty() && !pool.auto_assign {
        return Some("autoAssign is false, and the Service does not ask for it".to_owned());
    }
    let families = families(service.families);
    if !families.iter().any(|family| pool.has_family(*family)) {
        let names: Vec<_> = families.into_iter().map(AddressFamily::ip_version).collect();
        return Some(format!("holds no {} addresses", names.join(" or ")));
    }
    None
}

/// Which part of `serviceAllocation` excludes the Service.
fn kept_for_others(
    snapshot: &Snapshot<'_>,
    allocation: &ServiceAllocation,
    service: &Service,
) -> Option<String> {
    let namespace = &service.name.namespace;
    if allocation.matches(service, &snapshot.index.namespace_labels(namespace)) {
        return None;
    }
    if !any_matches(&allocation.service_selectors, &service.labels) {
        let why = "serviceAllocation.serviceSelectors do not select the labels of the Service";
        return Some(why.to_owned());
    }
    let names: Vec<_> = allocation.namespaces.iter().map(String::as_str).collect();
    Some(match (names.is_empty(), allocation.namespace_selectors.is_empty()) {
        (false, true) => format!("serviceAllocation is for namespace {}", names.join(", ")),
        (false, false) => format!(
            "serviceAllocation is for namespace {} and the namespaces that namespaceSelectors \
             select; {namespace} is neither",
            names.join(", ")
        ),
        (true, _) => {
            format!("serviceAllocation.namespaceSelectors do not select namespace {namespace}")
        }
    })
}
