//! Which node answers on the local segment (ARP, NDP) for the addresses of a Service, and on which
//! interfaces.
//!
//! The rule and the order of nodes are MetalLB's, down to the hash, so that its speakers and ours,
//! running together during a roll-out, choose the same node. All nodes compute it independently from
//! the same facts. Knows no session and no route, nor which nodes are alive: the candidates
//! are an argument. Called by the planner for each Service.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_allocator::PoolLookup;
use fairway_ground::Abstention;
use fairway_model::{
    ClusterIndex, Layer2Advertisement, Node, ObjectName, Pool, Service, TrafficPolicy,
};
use sha2::{Digest, Sha256};

use super::abstention::{from_address, from_advertisement};
use super::deciding::by_pool;
use super::local::Obstacles;
use super::reason::{Because, NextOwner, Obstacle};
use super::{DataPath, Local, PlanOptions, Reason};

/// What this node does for the addresses that a Service has from one pool. The same node answers for
/// all of them: the first one decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer2Verdict {
    /// The addresses, the one that decides first.
    pub addresses: Vec<IpAddr>,
    /// The advertisements that select the Service and its pool, on this node or another, in name
    /// order.
    pub advertisements: Vec<ObjectName>,
    /// How this node answers, or why it does not.
    pub answer: Result<Answer, Reason>,
}

/// How a node answers for an address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// On which interfaces; all when `None`.
    pub interfaces: Option<BTreeSet<String>>,
    /// The address is to be on one of them, too (`bind`).
    pub bind: bool,
}

/// A member that owns layer 2 addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// The node that is assumed where there is no object.
    pub(super) assumed: Node,
    /// What it is no candidate for.
    pub(super) abstentions: BTreeSet<Abstention>,
}

/// The node for which it is planned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own<'a> {
    pub(super) node: &'a Node,
    pub(super) local: &'a Local,
    pub(super) obstacles: &'a Obstacles,
    /// What its service proxy says, where one is followed.
    pub(super) data_path: Option<&'a DataPath>,
}

impl<'a> Own<'a> {
    /// What the service proxy says that is to serve this Service; `None` if it is another one's.
    pub(super) fn data_path_of(self, service: &Service) -> Option<&'a DataPath> {
        self.data_path.filter(|_| !service.is_of_another_proxy())
    }
}

/// A node that may answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) node: &'a Node,
    abstentions: &'a BTreeSet<Abstention>,
}

/// The sum of preferences of each candidate; `None` where it may not answer.
type Scores = Vec<Option<u32>>;

/// The rule, as seen from one node.
pub(super) struct Layer2<'a> {
    index: &'a ClusterIndex,
    own: Own<'a>,
    candidates: Vec<Candidate<'a>>,
    options: PlanOptions,
    /// The scores of the candidates for each advertisement, computed once for each.
    scores: BTreeMap<&'a ObjectName, Scores>,
}

/// The nodes that may answer: those of `index`, with the own one in place of the entry of the same name. Of these only
/// `members`, where it is known which are alive; a member without an object is one that is assumed. Where it is not
/// known, only nodes that are ready, unless none is: then it is the control plane that does not hear them.
///
/// A node that is out of service is none of them: an operator says that it is shut down.
///
/// Where members are not known, it is not known what others are no candidates for.
///
/// `Ours:` without its member list, MetalLB takes all known nodes, so that an address of a node that is down stays there.
pub(super) fn candidates<'a>(
    index: &'a ClusterIndex,
    own: Own<'a>,
    members: Option<&'a BTreeMap<String, Member>>,
) -> Vec<Candidate<'a>> {
    const NONE: &BTreeSet<Abstention> = &BTreeSet::new();
    let Own { node, obstacles, .. } = own;
    let of = |it: &'a Node, said: &'a BTreeSet<Abstention>| match it.name == node.name {
        true => Candidate { node, abstentions: &obstacles.abstentions },
        false => Candidate { node: it, abstentions: said },
    };
    let Some(members) = members else {
        let others = index.nodes.values().filter(|it| it.name != node.name);
        let all: Vec<&Node> = others.chain([node]).filter(|it| !it.is_out_of_service).collect();
        let ready: Vec<&Node> = all.iter().filter(|it| !it.is_unready).copied().collect();
        let candidates = if ready.is_empty() { all } else { ready };
        return candidates.into_iter().map(|it| of(it, NONE)).collect();
    };
    let of = |(name, member): (&'a String, &'a Member)| {
        of(index.nodes.get(name).unwrap_or(&member.assumed), &member.abstentions)
    };
    members.iter().map(of).filter(|it| !it.node.is_out_of_service).collect()
}

impl<'a> Layer2<'a> {
    /// `candidates` are the nodes that are alive; the own one is among them, unless it owns nothing now.
    pub(super) fn new(
        index: &'a ClusterIndex,
        own: Own<'a>,
        candidates: Vec<Candidate<'a>>,
        options: PlanOptions,
    ) -> Self {
        Self { index, own, candidates, options, scores: BTreeMap::new() }
    }

    /// What `node` does for `service`, which has these addresses: one verdict for each pool that an
    /// L2Advertisement selects. `Ours:` two, where each family comes from a pool of its own, since the
    /// nodes that advertise one pool need not advertise the other.
    pub(super) fn verdicts(
        &mut self,
        service: &Service,
        addresses: &[IpAddr],
        pools: &PoolLookup<'_>,
    ) -> Vec<Layer2Verdict> {
        let by_pool = by_pool(service, addresses, pools).into_iter();
        by_pool.filter_map(|(pool, addresses)| self.verdict(service, pool, addresses)).collect()
    }

    /// `None` where no L2Advertisement applies.
    fn verdict(
        &mut self,
        service: &Service,
        pool: &Pool,
        addresses: Vec<IpAddr>,
    ) -> Option<Layer2Verdict> {
        let first = *addresses.first()?;
        let index = self.index;
        let speaking = index.layer2_advertisements.values();
        let speaking: Vec<_> =
            speaking.filter(|it| it.selects_pool(pool) && it.selects_service(service)).collect();
        if speaking.is_empty() {
            return None;
        }
        let advertisements = speaking.iter().map(|it| it.name.clone()).collect();
        let answer = self.answer(service, first, pool, &speaking);
        Some(Layer2Verdict { addresses, advertisements, answer })
    }

    fn answer(
        &mut self,
        service: &Service,
        first: IpAddr,
        pool: &Pool,
        speaking: &[&'a Layer2Advertisement],
    ) -> Result<Answer, Reason> {
        let name = || self.own.node.name.clone();
        if self.own.node.network_unavailable {
            return Err(Reason::NodeNetworkUnavailable(name()));
        }
        if self.is_excluded(self.own.node) {
            return Err(Reason::NodeExcluded(name()));
        }
        let served = Served::of(service, self.index, self.options);
        served.check(service, self.own.node)?;
        // Services that share the address may have other labels, and so another node.
        if service.sharing_key.is_some()
            && let Some(selective) = speaking.iter().find(|it| !it.service_selectors.is_empty())
        {
            return Err(Reason::SharedAddressWithServiceSelectors(selective.name.clone()));
        }
        let here = speaking.iter().filter(|it| it.selects_node(&self.own.node.labels));
        let here: Vec<&Layer2Advertisement> = here.copied().collect();
        if here.is_empty() {
            let pool = pool.name.name.clone();
            return Err(Reason::NoMatchingLayer2Advertisement { pool, node: name() });
        }
        let interfaces = match here.iter().any(|it| it.interfaces.is_empty()) {
            true => None,
            false => Some(here.iter().flat_map(|it| it.interfaces.iter().cloned()).collect()),
        };
        let answer = Answer { interfaces, bind: here.iter().any(|it| it.bind) };
        let obstacle = self.obstacle(service, first, &here);
        self.elect(service, first, speaking, &served, (answer, obstacle))
    }

    /// What this machine has found out about itself that rules it out; `here` are the advertisements that select it.
    fn obstacle(
        &self,
        service: &Service,
        first: IpAddr,
        here: &[&Layer2Advertisement],
    ) -> Option<Obstacle> {
        let Obstacles { of_addresses, abstentions } = self.own.obstacles;
        // Others that have the address are served meanwhile.
        if self.own.local.pending.contains(&service.name) {
            return Some(Obstacle::NotCheckedYet);
        }
        let data_path = self.own.data_path_of(service);
        if let Some(obstacle) = data_path.and_then(|it| it.layer2_obstacle(&service.name, first)) {
            return Some(obstacle);
        }
        if let Some(obstacle) = of_addresses.get(&first) {
            return Some(obstacle.clone());
        }
        let mut out_of_reach =
            here.iter().filter(|it| abstains(abstentions, || from_advertisement(&it.name)));
        let first = out_of_reach.next()?.name.clone();
        let is_all = out_of_reach.count().saturating_add(1) == here.len();
        is_all.then_some(Obstacle::NoUsableInterface(first))
    }

    fn is_excluded(&self, node: &Node) -> bool {
        node.is_excluded() && !self.options.ignore_exclude_label
    }

    /// Succeeds with `answer` if this node comes first among the candidates: the highest sum of preferences, then
    /// the lowest hash.
    fn elect(
        &mut self,
        service: &Service,
        first: IpAddr,
        speaking: &[&'a Layer2Advertisement],
        served: &Served<'_>,
        (answer, obstacle): (Answer, Option<Obstacle>),
    ) -> Result<Answer, Reason> {
        let mut totals: Scores = vec![None; self.candidates.len()];
        for advertisement in speaking {
            for (total, score) in totals.iter_mut().zip(self.scores_of(advertisement)) {
                if let Some(score) = score {
                    *total = Some(total.unwrap_or(0).saturating_add(*score));
                }
            }
        }
        let scored = self.candidates.iter().zip(totals).filter_map(|(candidate, score)| {
            let Candidate { node, abstentions } = *candidate;
            let is_obstructed = node.name == self.own.node.name && obstacle.is_some();
            let may_answer = !is_obstructed
                && !abstains(abstentions, || from_address(first))
                && !node.network_unavailable
                && !self.is_excluded(node)
                && served.may_answer(service, node);
            score.filter(|_| may_answer).map(|score| (node, score))
        });
        let scored: Vec<(&Node, u32)> = scored.collect();
        let mut in_order: Vec<_> =
            scored.iter().map(|it| ((Reverse(it.1), hash(it.0, first)), it)).collect();
        in_order.sort_unstable_by_key(|(key, _)| *key);
        let mut in_order = in_order.into_iter().map(|(_, it)| it);
        let (owner, next) = (in_order.next(), in_order.next());
        match owner {
            Some((owner, score)) if owner.name != self.own.node.name => {
                let ours = scored.iter().find(|(node, _)| node.name == self.own.node.name);
                let because = match (ours, obstacle) {
                    (Some((_, ours)), _) if ours == score => Because::Hash,
                    (Some((_, ours)), _) => Because::Preference { owner: *score, ours: *ours },
                    (None, Some(obstacle)) => Because::Obstructed(obstacle),
                    (None, None) if self.own.node.is_out_of_service => Because::OutOfService,
                    (None, None) if self.own.node.is_unready => Because::Unready,
                    (None, None) => Because::NotMember,
                };
                let is_next = next.is_some_and(|(it, _)| it.name == self.own.node.name);
                let next = is_next.then_some(NextOwner { interfaces: answer.interfaces });
                Err(Reason::NotOwner { owner: owner.name.clone(), address: first, because, next })
            }
            Some(_) => Ok(answer),
            None => Err(match obstacle {
                Some(obstacle) => Reason::Obstructed(obstacle),
                None => Reason::NotMember(self.own.node.name.clone()),
            }),
        }
    }

    /// Weights count only on nodes that the advertisement selects.
    fn scores_of(&mut self, advertisement: &'a Layer2Advertisement) -> &Scores {
        let candidates = &self.candidates;
        self.scores.entry(&advertisement.name).or_insert_with(|| {
            let score = |candidate: &Candidate<'_>| {
                let Candidate { node, abstentions } = *candidate;
                if abstains(abstentions, || from_advertisement(&advertisement.name)) {
                    return None;
                }
                let preferred = advertisement.preferred_nodes.iter();
                let matching = preferred.filter(|it| it.preference.matches(&node.labels));
                let weight = matching.map(|it| u32::from(it.weight)).sum();
                advertisement.selects_node(&node.labels).then_some(weight)
            };
            candidates.iter().map(score).collect()
        })
    }
}

/// Whether what `of` gives is among these, which are mostly none.
fn abstains(abstentions: &BTreeSet<Abstention>, of: impl FnOnce() -> Abstention) -> bool {
    !abstentions.is_empty() && abstentions.contains(&of())
}

/// The position of a node for an address; the lowest one answers. The address is written as by Go's
/// `net.IP`, which is the same as in Rust, except for IPv4-mapped IPv6 addresses: Go shows those as
/// IPv4.
pub(super) fn hash(node: &Node, address: IpAddr) -> [u8; 32] {
    let text = format!("{}#{}", node.name, address.to_canonical());
    Sha256::digest(text.as_bytes()).into()
}

/// Which nodes have a usable endpoint of a Service.
enum Served<'a> {
    /// It has no slices: each machine serves it itself.
    Everywhere,
    /// On these nodes, and perhaps on some without a name.
    By { anybody: bool, nodes: BTreeSet<&'a str> },
}

impl<'a> Served<'a> {
    fn of(service: &Service, index: &'a ClusterIndex, options: PlanOptions) -> Self {
        let mut slices = index.slices_of(&service.name).peekable();
        if slices.peek().is_none() && options.unsliced_services_are_served {
            return Self::Everywhere;
        }
        let usable = slices.flat_map(|slice| &slice.endpoints).filter(|it| it.usable);
        let (mut anybody, mut nodes) = (false, BTreeSet::new());
        for endpoint in usable {
            anybody = true;
            nodes.extend(endpoint.node.as_deref());
        }
        Self::By { anybody, nodes }
    }

    /// Whether it is served at all, and by `node` where only nodes that serve it may answer.
    fn check(&self, service: &Service, node: &Node) -> Result<(), Reason> {
        match self {
            Self::By { anybody: false, .. } => Err(Reason::NoEndpoints),
            _ if self.may_answer(service, node) => Ok(()),
            _ => Err(Reason::NoLocalEndpoints(node.name.clone())),
        }
    }

    fn may_answer(&self, service: &Service, node: &Node) -> bool {
        match (self, service.traffic_policy) {
            (Self::Everywhere, _) | (_, TrafficPolicy::Cluster) => true,
            (Self::By { nodes, .. }, TrafficPolicy::Local) => nodes.contains(node.name.as_str()),
        }
    }
}
