//! `explain service`: one chain of reasons, from what a Service asks for to what each router was sent, and
//! what is missing.
//!
//! ```text
//!  asks for ─► pools ─► addresses ─► endpoints, node ─► BGP: each prefix × each peer ─► missing
//!                                                    └► layer 2
//! ```
//!
//! The plan and the allocator decide; this module reports their reasons, and compares them with what the
//! backend has sent. Where they only name the chosen pool or advertisement, `pools` and `matching` give the
//! reason against each of the others. Covers this node only.

mod matching;
mod output;
mod pools;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;

use super::absence::causes;
use fairway_allocator::Outcome;
use fairway_ground::{PeerKey, Prefix};
use fairway_model::{FamilyPolicy, ObjectName, Service, TrafficPolicy};
use fairway_node::history::ServiceHistory;
use fairway_plan::{Announcement, PrefixAnnouncement, Reason};
use fairway_seam::{PathAttributes, PeerConfig, SessionState};
use matching::Mismatch;
pub(super) use matching::peers_elsewhere;
use pools::PoolVerdict;

use super::{faults_of, outdated};
use crate::object::Object;
use crate::told::Told;
use crate::{ShowError, Snapshot, layer2, services};

/// Everything that is reported of one Service.
struct Explanation<'a> {
    snapshot: &'a Snapshot<'a>,
    told: Told<'a>,
    service: &'a Service,
    /// `None` if it is of another class.
    outcome: Option<&'a Outcome>,
    announcement: Option<&'a Announcement>,
    history: Option<&'a ServiceHistory>,
    pools: Vec<PoolVerdict<'a>>,
    endpoints: EndpointCounts,
    prefixes: Vec<PrefixVerdict<'a>>,
    /// Advertisements that announce nothing of it here.
    mismatches: Vec<Mismatch<'a>>,
    /// Peers that this node has no session with, and why.
    elsewhere: Vec<(&'a ObjectName, String)>,
    /// Faults of its document, if the last good version is in force.
    faults: Vec<String>,
    /// Faults of objects that decide about Services.
    faults_elsewhere: Vec<String>,
    missing: Vec<String>,
}

/// Endpoints that can receive traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct EndpointCounts {
    slices: usize,
    all: usize,
    usable: usize,
    usable_here: usize,
}

/// One prefix of one address, and every peer of the node.
struct PrefixVerdict<'a> {
    address: IpAddr,
    planned: &'a PrefixAnnouncement,
    peers: Vec<PeerVerdict<'a>>,
}

/// The state of one prefix at one peer.
struct PeerVerdict<'a> {
    key: PeerKey,
    name: String,
    state: PeerState<'a>,
}

impl PeerVerdict<'_> {
    /// Itself and why it waits, if it does.
    fn waiting(&self) -> Option<(&Self, &str)> {
        match &self.state {
            PeerState::Waits(why) => Some((self, why)),
            PeerState::Told(_) | PeerState::NotMeant(_) => None,
        }
    }
}

/// A reason as the end of a sentence.
fn because(reason: Option<impl Display>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

enum PeerState<'a> {
    /// An UPDATE has been sent.
    Told(&'a PathAttributes),
    /// It is planned and not sent yet.
    Waits(String),
    /// It is not planned.
    NotMeant(String),
}

/// As text.
pub(super) fn text(snapshot: &Snapshot<'_>, wanted: &str) -> Result<String, ShowError> {
    Ok(output::text(&Explanation::new(snapshot, find(snapshot, wanted)?)))
}

/// As JSON.
pub(super) fn json(snapshot: &Snapshot<'_>, wanted: &str) -> Result<Object, ShowError> {
    Ok(output::json(&Explanation::new(snapshot, find(snapshot, wanted)?)))
}

/// The Service called `wanted`: `NAMESPACE/NAME`, or a name that only one has, or one in `default`.
fn find<'a>(snapshot: &Snapshot<'a>, wanted: &str) -> Result<&'a Service, ShowError> {
    let called: Vec<&Arc<Service>> = match wanted.split_once('/') {
        Some((namespace, name)) => {
            let name = ObjectName::new(namespace, name);
            snapshot.index.services.get(&name).into_iter().collect()
        }
        None => snapshot.index.services.values().filter(|it| it.name.name == wanted).collect(),
    };
    let in_default = called.iter().find(|it| it.name.namespace == "default");
    match (called.as_slice(), in_default) {
        ([only], _) => Ok(only),
        (_, Some(first)) => Ok(first),
        ([], None) => {
            let name = wanted.rsplit('/').next().unwrap_or_default();
            Err(ShowError::NoSuchService {
                wanted: wanted.to_owned(),
                outdated: outdated(snapshot),
                faults: faults(snapshot, name),
            })
        }
        (several, None) => Err(ShowError::SeveralServices {
            wanted: wanted.to_owned(),
            names: several.iter().map(|it| it.name.to_string()).collect(),
        }),
    }
}

/// Faults of documents of Services with this name.
fn faults(snapshot: &Snapshot<'_>, name: &str) -> Vec<String> {
    faults_of(snapshot, |it| it.kind == "Service" && it.name == name)
}

/// The kinds that decide where a Service is announced. A faulty one is not in force, or an earlier version is.
const ADVERTISEMENTS: [&str; 2] = ["BGPAdvertisement", "L2Advertisement"];

impl<'a> Explanation<'a> {
    fn new(snapshot: &'a Snapshot<'a>, service: &'a Service) -> Self {
        let told = Told::new(snapshot);
        let name = &service.name;
        let outcome = snapshot.outcomes.get(name);
        let announcement: Option<&Announcement> =
            snapshot.plan.services.get(name).map(|announcement| &**announcement);
        let prefixes = prefixes(&told, announcement);
        let pool = outcome.and_then(|it| it.pool.as_ref());
        Self {
            snapshot,
            service,
            outcome,
            announcement,
            history: snapshot.history.of(name),
            pools: pools::verdicts(snapshot, service, outcome),
            endpoints: endpoints(snapshot, name),
            mismatches: matching::mismatches(snapshot, service, outcome, announcement),
            elsewhere: peers_elsewhere(snapshot),
            faults: faults(snapshot, &name.name),
            faults_elsewhere: faults_of(snapshot, |it| {
                // Another pool than its own makes no difference to a Service that has its address.
                let is_pool =
                    it.kind == "IPAddressPool" && pool.is_none_or(|pool| *pool == it.name);
                is_pool || ADVERTISEMENTS.contains(&it.kind.as_str())
            }),
            missing: outcome.map(|it| services::missing(&told, name, it)).unwrap_or_default(),
            prefixes,
            told,
        }
    }

    /// How many pairs of prefix and peer are advertised, and how many are planned.
    fn told_count(&self) -> (usize, usize) {
        let states = || self.prefixes.iter().flat_map(|prefix| &prefix.peers).map(|it| &it.state);
        let told = states().filter(|it| matches!(it, PeerState::Told(_))).count();
        let waiting = states().filter(|it| matches!(it, PeerState::Waits(_))).count();
        (told, told.saturating_add(waiting))
    }

    /// The node that answers for its first address on the local segment.
    fn layer2_owner(&self) -> Option<&str> {
        let verdict = self.announcement?.layer2.first()?;
        match &verdict.answer {
            Ok(_) => Some(&self.snapshot.node.name),
            Err(Reason::NotOwner { owner, .. }) => Some(owner),
            Err(_) => None,
        }
    }

    /// The summary as one sentence, without a subject.
    fn verdict(&self) -> String {
        let first = self.faults.iter().chain(&self.faults_elsewhere).next();
        let fault = first.map(|fault| format!("; not in force: {fault}")).unwrap_or_default();
        let stranger = self.stranger().map(|it| format!("; {it}")).unwrap_or_default();
        self.state() + &stranger + &fault + &outdated(self.snapshot)
    }

    /// Another host that has one of its addresses on the local segment, too.
    fn stranger(&self) -> Option<String> {
        let verdicts = self.announcement?.layer2.iter();
        let found =
            verdicts.flat_map(|verdict| verdict.addresses.iter().map(move |it| (verdict, *it)));
        let mut strangers = found.filter_map(|(verdict, address)| match verdict.answer {
            Ok(_) => layer2::claim(self.snapshot, address),
            Err(_) => layer2::failed_check(self.snapshot, address),
        });
        strangers.next()
    }

    fn state(&self) -> String {
        let node = &self.snapshot.node.name;
        let Some(outcome) = self.outcome else {
            let class = self.service.load_balancer_class.as_deref();
            return format!(
                "is not served by this daemon: its loadBalancerClass, {}, is another one",
                class.unwrap_or("none")
            );
        };
        if outcome.is_pending() {
            return format!("has no address{}", because(outcome.reason.as_ref()));
        }
        match self.told_count() {
            (0, 0) => match self.layer2_owner() {
                Some(owner) => format!("has its address, and {owner} answers for it on layer 2"),
                None => {
                    let why = because(self.why_nobody());
                    format!("has its address, and {node} announces it to no peer{why}")
                }
            },
            (0, planned) => {
                let why = because(self.why_waiting());
                format!("has its address, and is announced by {node} to 0 of {planned}{why}")
            }
            (told, planned) if told == planned => {
                let but = self.stalled().map(|it| format!(", but peer {it}")).unwrap_or_default();
                format!("is announced by {node} to all planned peers: {planned} of {planned}{but}")
            }
            (told, planned) => {
                let why = because(self.why_waiting());
                format!("is announced by {node} to {told} of {planned}{why}")
            }
        }
    }

    /// A peer that was sent it and does not acknowledge what it is sent.
    fn stalled(&self) -> Option<String> {
        let told = self.prefixes.iter().flat_map(|prefix| &prefix.peers);
        let mut told = told.filter(|it| matches!(it.state, PeerState::Told(_)));
        told.find_map(|peer| {
            let bgp = self.snapshot.bgp;
            let neighbour = bgp.peers.iter().find(|it| it.config.route_key() == peer.key)?;
            neighbour.stall?;
            let causes = causes(neighbour, bgp.rejected_segments);
            Some(format!("{} {}", peer.name, causes.first()?.what))
        })
    }

    /// Why it is planned for no peer.
    fn why_nobody(&self) -> Option<String> {
        let announcement = self.announcement?;
        let addresses = || announcement.addresses.iter();
        let prefixes = || self.prefixes.iter().map(|it| it.planned);
        let reason = announcement.reason.as_ref();
        let reason = reason.or_else(|| addresses().find_map(|it| it.reason.as_ref()));
        let reason = reason.or_else(|| prefixes().find_map(|it| it.reason.as_ref()));
        let mismatch = || {
            let first = self.mismatches.first()?;
            Some(format!("BGPAdvertisement {}: {}", first.name, first.why))
        };
        let elsewhere = || {
            let (peer, why) = self.elsewhere.first()?;
            Some(format!("BGPPeer {peer}: {why}"))
        };
        let reason = reason.map(|reason| match (reason, mismatch()) {
            (
                Reason::NoAdvertisementHere { .. } | Reason::NoMatchingAdvertisement { .. },
                Some(mismatch),
            ) => format!("{reason} ({mismatch})"),
            _ => reason.to_string(),
        });
        reason.or_else(mismatch).or_else(elsewhere)
    }

    /// Why the first peer that it is planned for does not have it.
    fn why_waiting(&self) -> Option<String> {
        let peers = self.prefixes.iter().flat_map(|prefix| &prefix.peers);
        let (peer, why) = peers.filter_map(PeerVerdict::waiting).next()?;
        let bgp = self.snapshot.bgp;
        let neighbour = bgp.peers.iter().find(|it| it.config.route_key() == peer.key);
        let neighbour = neighbour.filter(|it| it.state != SessionState::Established);
        let causes = neighbour.map(|it| causes(it, bgp.rejected_segments)).unwrap_or_default();
        let cause = causes.first().map(|cause| format!("peer {} {}", peer.name, cause.what));
        Some(cause.unwrap_or_else(|| why.to_owned()))
    }

    /// What it asks for.
    fn wishes(&self) -> Vec<String> {
        let Service { families, requested_addresses, requested_pools, .. } = self.service;
        let mut wishes = vec![match families {
            FamilyPolicy::Single(family) => format!("one {} address", family.ip_version()),
            FamilyPolicy::PreferDual(_) => "one address of each family, or just one".to_owned(),
            FamilyPolicy::RequireDual(_) => "one address of each family".to_owned(),
        }];
        if !requested_addresses.is_empty() {
            let named: Vec<_> = requested_addresses.iter().map(ToString::to_string).collect();
            wishes.push(format!("namely {}", named.join(" and ")));
        }
        if !requested_pools.is_empty() {
            wishes.push(format!("from pool {}", requested_pools.join(" and ")));
        }
        if let Some(key) = self.service.sharing_key.as_deref().filter(|key| !key.is_empty()) {
            wishes.push(format!("shared with Services that have the key {key}"));
        }
        if let Some(class) = &self.service.load_balancer_class {
            wishes.push(format!("from loadBalancerClass {class}"));
        }
        wishes
    }

    /// Its endpoints, as one line.
    fn served(&self) -> String {
        let EndpointCounts { slices, all, usable, usable_here } = self.endpoints;
        let node = &self.snapshot.node.name;
        if slices == 0 {
            return format!("no EndpointSlice: {node} counts as its endpoint");
        }
        let policy = match self.service.traffic_policy {
            TrafficPolicy::Cluster => "externalTrafficPolicy Cluster: one on any node is enough",
            TrafficPolicy::Local => "externalTrafficPolicy Local: one on this node is required",
        };
        format!("{usable} of {all} ready, {usable_here} of them on {node}; {policy}")
    }
}

fn endpoints(snapshot: &Snapshot<'_>, service: &ObjectName) -> EndpointCounts {
    let mut counts = EndpointCounts::default();
    for slice in snapshot.index.slices_of(service) {
        counts.slices = counts.slices.saturating_add(1);
        for endpoint in &slice.endpoints {
            let is_here = endpoint.node.as_ref() == Some(&snapshot.node.name);
            counts.all = counts.all.saturating_add(1);
            counts.usable = counts.usable.saturating_add(usize::from(endpoint.usable));
            let here = usize::from(endpoint.usable && is_here);
            counts.usable_here = counts.usable_here.saturating_add(here);
        }
    }
    counts
}

fn prefixes<'a>(told: &Told<'a>, announcement: Option<&'a Announcement>) -> Vec<PrefixVerdict<'a>> {
    let addresses = announcement.into_iter().flat_map(|it| &it.addresses);
    let prefixes = addresses.flat_map(|address| {
        let prefixes = address.prefixes.iter();
        prefixes.map(|planned| PrefixVerdict {
            address: address.address,
            planned,
            peers: peers(told, planned),
        })
    });
    prefixes.collect()
}

/// Every peer of the node, the planned ones first.
fn peers<'a>(told: &Told<'a>, planned: &PrefixAnnouncement) -> Vec<PeerVerdict<'a>> {
    let meant = planned.peers.iter().map(|key| PeerVerdict {
        key: *key,
        name: told.name(*key),
        state: meant_state(told, *key, planned.prefix),
    });
    let all = told.snapshot().plan.peers.iter();
    let others =
        all.filter(|config| !planned.peers.contains(&config.key)).map(|config| PeerVerdict {
            key: config.key,
            name: told.name(config.key),
            state: PeerState::NotMeant(why_not_meant(told.snapshot(), config, planned)),
        });
    meant.chain(others).collect()
}

fn meant_state<'a>(told: &Told<'a>, key: PeerKey, prefix: Prefix) -> PeerState<'a> {
    if let Some(route) = told.sent(key, prefix) {
        return PeerState::Told(&route.attributes);
    }
    let mut reasons = told.silence(key, prefix);
    if reasons.is_empty() {
        reasons.push(format!("peer {} has not been sent the route yet", told.name(key)));
    }
    match told.last_failure(key, prefix) {
        Some(failure) => PeerState::Waits(format!("{} ({failure})", reasons.join("; "))),
        None => PeerState::Waits(reasons.join("; ")),
    }
}

fn why_not_meant(
    snapshot: &Snapshot<'_>,
    config: &PeerConfig,
    planned: &PrefixAnnouncement,
) -> String {
    if let Some(reason) = &planned.reason {
        return reason.to_string();
    }
    let index = snapshot.index;
    let advertisements =
        planned.advertisements.iter().filter_map(|name| index.bgp_advertisements.get(name));
    let named: BTreeSet<&str> = advertisements
        .filter(|it| !it.peers.is_empty() && !it.peers.contains(&config.name))
        .flat_map(|it| it.peers.iter().map(String::as_str))
        .collect();
    let names: Vec<_> = named.into_iter().collect();
    format!("the advertisements are for peers {}", names.join(", "))
}
