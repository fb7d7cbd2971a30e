//! Keeps the plan of one node up to date, at the cost of the changes.
//!
//! Keeps data derived from the facts, never the facts themselves: they are passed with each call.
//! After every update its plan equals that of [`super::for_node`] for the same facts, which is this
//! planner, called once. Called by the speaker.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairway_allocator::Outcomes;
use fairway_ground::{Abstention, InterfaceName, Prefix};
use fairway_model::{ClusterIndex, DeliveryUpdate, FrrExtras, Kind, Node, ObjectName};
use fairway_seam::{DesiredRoute, Extras};

use super::basis::Basis;
use super::decision::{Decision, Facts};
use super::layer2::{Member, Own};
use super::local::Obstacles;
use super::peers::{always_compares_med, bmp_stations, rpki_servers};
use super::routes::{RouteTable, Settled};
use super::{
    Announcement, DataPath, Fault, Layer2Announcement, Local, NodePlan, PlanChanges, PlanDiff,
    PlanOptions, PlanUpdate, PrefixAnnouncement, Reason, RouteDiff, diff,
};

/// The plan of one node, and the data needed to update it.
#[derive(Debug)]
pub struct NodePlanner {
    node: Node,
    options: PlanOptions,
    /// The members that own layer 2 addresses; `None` where it is not known which nodes are alive.
    members: Option<BTreeMap<String, Member>>,
    local: Local,
    /// What the service proxy says, where one is followed.
    data_path: Option<Arc<DataPath>>,
    obstacles: Obstacles,
    /// The plan is for another node, or for none.
    is_outdated: bool,
    basis: Basis,
    routes: RouteTable,
    plan: NodePlan,
}

/// What an update has affected so far.
#[derive(Debug, Default)]
struct Touched {
    /// The earlier announcements of Services.
    services: BTreeMap<ObjectName, Option<Arc<Announcement>>>,
    prefixes: BTreeSet<Prefix>,
    /// The Services with layer 2 announcements, by address.
    answered: BTreeMap<IpAddr, BTreeSet<ObjectName>>,
}

impl NodePlanner {
    /// For a node without routes yet.
    pub fn new(node: Node, options: PlanOptions) -> Self {
        Self {
            node,
            options,
            members: None,
            local: Local::default(),
            data_path: None,
            obstacles: Obstacles::default(),
            is_outdated: true,
            basis: Basis::default(),
            routes: RouteTable::default(),
            plan: NodePlan::default(),
        }
    }

    /// Sets the facts of the node. If they changed, the next update recomputes everything.
    pub fn set_node(&mut self, node: Node) {
        if self.node != node {
            self.node = node;
            self.is_outdated = true;
        }
    }

    /// Sets which members own layer 2 addresses, each with what it is no candidate for; `None` if that is not known,
    /// and all nodes count as alive. What is said of the node itself does not count: [`Self::set_local`] does. If it
    /// changed, the next update recomputes everything.
    pub fn set_members(&mut self, members: Option<&BTreeMap<String, BTreeSet<Abstention>>>) {
        let own = &self.node.name;
        let of = |(name, abstentions): (&String, &BTreeSet<Abstention>)| {
            let abstentions = if name == own { BTreeSet::new() } else { abstentions.clone() };
            (name.clone(), Member { assumed: Node::assumed(name, Vec::new()), abstentions })
        };
        let members = members.map(|all| all.iter().map(of).collect());
        if self.members != members {
            self.members = members;
            self.is_outdated = true;
        }
    }

    /// Sets what this machine has found out about itself. If it changed, the next update recomputes everything.
    pub fn set_local(&mut self, local: Local) {
        if self.local != local {
            self.local = local;
            self.is_outdated = true;
        }
    }

    /// From now on an address is announced only while the service proxy of this machine delivers packets to it.
    fn await_data_path(&mut self) {
        if self.data_path.is_none() {
            self.data_path = Some(Arc::default());
            self.is_outdated = true;
        }
    }

    /// The service proxy has answered. Returns the Services that the next update has to plan, unless that is all.
    pub fn follow_data_path(&mut self, update: DeliveryUpdate) -> BTreeSet<ObjectName> {
        if update == DeliveryUpdate::OfAnotherProxy {
            self.is_outdated |= self.data_path.take().is_some();
            return BTreeSet::new();
        }
        if matches!(update, DeliveryUpdate::All(_) | DeliveryUpdate::Awaited) {
            self.await_data_path();
        }
        let Some(data_path) = self.data_path.as_mut().map(Arc::make_mut) else {
            // Where there is no condition, only all that is delivered makes one.
            return BTreeSet::new();
        };
        self.is_outdated |= match update {
            DeliveryUpdate::OfAnotherProxy | DeliveryUpdate::Awaited => false,
            DeliveryUpdate::Silent => data_path.fell_silent(),
            _ => data_path.answered(),
        };
        match update {
            DeliveryUpdate::OfAnotherProxy | DeliveryUpdate::Awaited | DeliveryUpdate::Silent => {
                BTreeSet::new()
            }
            DeliveryUpdate::All(deliveries) => data_path.replace(deliveries),
            DeliveryUpdate::Some(deliveries) => data_path.extend(deliveries),
            DeliveryUpdate::Changed(deliveries) => data_path.follow(deliveries),
        }
    }

    /// Whether the next update recomputes everything.
    pub fn is_outdated(&self) -> bool {
        self.is_outdated
    }

    /// What the node is no candidate for, by the last update.
    pub fn abstentions(&self) -> &BTreeSet<Abstention> {
        &self.obstacles.abstentions
    }

    /// The plan in force.
    pub fn plan(&self) -> &NodePlan {
        &self.plan
    }

    /// The plan in force, for one-time use.
    pub(super) fn into_plan(self) -> NodePlan {
        self.plan
    }

    /// Recomputes the plan as far as `changes` require, and returns what changed.
    pub fn update(
        &mut self,
        index: &ClusterIndex,
        outcomes: &Outcomes,
        changes: &PlanChanges,
    ) -> PlanUpdate {
        let obstacles = self.obstacles_in(index, outcomes);
        // They may concern other Services with the same address.
        let has_other_obstacles = self.obstacles != obstacles;
        if std::mem::take(&mut self.is_outdated) || changes.all || has_other_obstacles {
            return self.replan(index, outcomes);
        }
        let blackholes = Arc::clone(&self.plan.blackholes);
        let mut touched = self.decide(index, outcomes, &changes.services);
        let routes = self.settle_routes(&mut touched);
        let layer2 = self.settle_layer2(touched.answered);
        let mut diff = RouteDiff::default();
        for (prefix, now) in &routes {
            diff.add(*prefix, routes_of(&self.plan.routes, *prefix), now);
        }
        if !routes.is_empty() {
            let old = self.plan.routes.iter().cloned();
            self.plan.routes = spliced(old, routes, |it| it.prefix).into();
        }
        let is_layer2_other = !layer2.is_empty();
        if is_layer2_other {
            let old = std::mem::take(&mut self.plan.layer2).into_iter();
            self.plan.layer2 = spliced(old, layer2, |it| it.address);
        }
        let mut services = touched.services;
        services.retain(|name, before| self.plan.services.get(name) != before.as_ref());
        PlanUpdate {
            services,
            routes: diff,
            layer2: is_layer2_other,
            speaker: blackholes != self.plan.blackholes,
            ..PlanUpdate::default()
        }
    }

    fn obstacles_in(&self, index: &ClusterIndex, outcomes: &Outcomes) -> Obstacles {
        self.local.obstacles(index, &self.node, outcomes, self.data_path.as_deref())
    }

    /// Recomputes everything, and returns what changed.
    fn replan(&mut self, index: &ClusterIndex, outcomes: &Outcomes) -> PlanUpdate {
        let before = std::mem::take(&mut self.plan);
        self.make(index, outcomes);
        let PlanDiff { routes, sessions } = diff(&before, &self.plan);
        let is_new = |fault: &&Fault| !before.faults.contains(fault);
        PlanUpdate {
            services: differences(&before.services, &self.plan.services),
            routes,
            sessions,
            layer2: before.layer2 != self.plan.layer2,
            extras: before.extras != self.plan.extras,
            speaker: before.rpki_servers != self.plan.rpki_servers
                || before.bmp_stations != self.plan.bmp_stations
                || before.always_compare_med != self.plan.always_compare_med
                || before.blackholes != self.plan.blackholes,
            faults: self.plan.faults.iter().filter(is_new).cloned().collect(),
        }
    }

    /// Computes the first plan.
    pub(super) fn make(&mut self, index: &ClusterIndex, outcomes: &Outcomes) {
        self.routes = RouteTable::default();
        self.obstacles = self.obstacles_in(index, outcomes);
        let (mut basis, peers, mut faults) =
            Basis::new(index, &self.node, &self.local, self.options);
        faults.extend(basis.originate(&mut self.routes));
        self.basis = basis;
        let mut touched = self.decide(index, outcomes, outcomes.keys());
        touched.prefixes = self.routes.prefixes();
        let routes = self.settle_routes(&mut touched);
        let layer2 = self.settle_layer2(touched.answered);
        self.plan.peers = peers;
        self.plan.faults = faults;
        self.plan.routes = routes.into_values().flatten().collect();
        self.plan.layer2 = layer2.into_values().flatten().collect();
        self.plan.extras = index.frr_extras.values().next().map(extras);
        let (rpki_servers, too_many) = rpki_servers(index, &self.node);
        self.plan.rpki_servers = Arc::new(rpki_servers);
        self.plan.faults.extend(too_many);
        let (bmp_stations, left_out) = bmp_stations(index, &self.node);
        self.plan.bmp_stations = Arc::new(bmp_stations);
        self.plan.faults.extend(left_out);
        self.plan.always_compare_med = always_compares_med(index, &self.node);
    }

    /// Decides about Services as if none conflicted with another, and notes what that affects.
    fn decide<'a>(
        &mut self,
        index: &ClusterIndex,
        outcomes: &Outcomes,
        services: impl IntoIterator<Item = &'a ObjectName>,
    ) -> Touched {
        let node = self.node.clone();
        let (members, local) = (self.members.clone(), self.local.clone());
        let obstacles = self.obstacles.clone();
        let data_path = self.data_path.clone();
        let own = Own {
            node: &node,
            local: &local,
            obstacles: &obstacles,
            data_path: data_path.as_deref(),
        };
        let mut facts = Facts::new(index, own, members.as_ref(), self.options);
        let mut touched = Touched::default();
        for name in services {
            self.retract(name, &mut touched);
            let Some((service, outcome)) = index.services.get(name).zip(outcomes.get(name)) else {
                continue;
            };
            let decision = facts.decide(&mut self.basis, service, outcome);
            self.announce(name, decision, &mut touched);
        }
        touched
    }

    /// Removes the prefixes of a Service.
    fn retract(&mut self, name: &ObjectName, touched: &mut Touched) {
        let before = self.plan.services.remove(name);
        if let Some(before) = &before {
            for prefix in before.prefixes() {
                self.routes.remove(prefix, name);
                touched.prefixes.insert(prefix);
            }
            for address in before.answered() {
                self.answered(touched, address).remove(name);
            }
        }
        touched.services.insert(name.clone(), before);
    }

    fn announce(&mut self, name: &ObjectName, decision: Decision, touched: &mut Touched) {
        let Decision { announcement, said, endpoints } = decision;
        for (prefix, combination) in said {
            self.routes.add(prefix, name, combination, endpoints);
            touched.prefixes.insert(prefix);
        }
        for address in announcement.answered() {
            self.answered(touched, address).insert(name.clone());
        }
        self.plan.services.insert(name.clone(), Arc::new(announcement));
    }

    /// The Services with an address, for modification.
    fn answered<'a>(
        &self,
        touched: &'a mut Touched,
        address: IpAddr,
    ) -> &'a mut BTreeSet<ObjectName> {
        let layer2 = &self.plan.layer2;
        touched.answered.entry(address).or_insert_with(|| {
            let position = layer2.binary_search_by(|it| it.address.cmp(&address));
            let found = position.ok().and_then(|position| layer2.get(position));
            found.map(|it| it.services.clone()).unwrap_or_default()
        })
    }

    /// The routes of the affected prefixes, as far as they changed; updates Services of which the
    /// conflicts with others changed.
    fn settle_routes(&mut self, touched: &mut Touched) -> BTreeMap<Prefix, Vec<DesiredRoute>> {
        let mut edits = BTreeMap::new();
        for prefix in std::mem::take(&mut touched.prefixes) {
            let Settled { routes, drops_in, verdicts } =
                self.routes.settle(prefix, &mut self.basis.combinations);
            if routes_of(&self.plan.routes, prefix) != routes {
                edits.insert(prefix, routes);
            }
            self.drop_in(prefix, &drops_in);
            for (name, verdict) in verdicts {
                self.pass_on(prefix, &name, verdict, touched);
            }
        }
        edits
    }

    /// Packets to the prefix are dropped in these VRFs and in no other.
    fn drop_in(&mut self, prefix: Prefix, vrfs: &[Option<InterfaceName>]) {
        let from_prefix = self.plan.blackholes.range((prefix, None)..);
        let before: Vec<_> = from_prefix.take_while(|(of, _)| *of == prefix).copied().collect();
        if before.iter().map(|(_, vrf)| vrf).eq(vrfs) {
            return;
        }
        let blackholes = Arc::make_mut(&mut self.plan.blackholes);
        for dropped in &before {
            blackholes.remove(dropped);
        }
        blackholes.extend(vrfs.iter().map(|vrf| (prefix, *vrf)));
    }

    /// A Service is not announced with a prefix, for this reason, or is announced again.
    fn pass_on(
        &mut self,
        prefix: Prefix,
        name: &ObjectName,
        verdict: Option<Reason>,
        touched: &mut Touched,
    ) {
        let Some(announcement) = self.plan.services.get_mut(name) else { return };
        let before = touched.services.entry(name.clone());
        before.or_insert_with(|| Some(Arc::clone(announcement)));
        let said = self.routes.said(prefix, name);
        let addresses = &mut Arc::make_mut(announcement).addresses;
        let prefixes = addresses.iter_mut().flat_map(|it| &mut it.prefixes);
        for it in prefixes.filter(|it| it.prefix == prefix) {
            match (verdict.clone(), said) {
                (Some(reason), _) => it.silence(reason),
                (None, Some(said)) => *it = PrefixAnnouncement::new(prefix, said, &self.node),
                (None, None) => {}
            }
        }
    }

    /// The layer 2 announcements of the addresses, as far as they changed.
    fn settle_layer2(
        &self,
        answered: BTreeMap<IpAddr, BTreeSet<ObjectName>>,
    ) -> BTreeMap<IpAddr, Vec<Layer2Announcement>> {
        let mut edits = BTreeMap::new();
        for (address, services) in answered {
            let now = (!services.is_empty()).then(|| {
                let answers = services.iter().filter_map(|it| self.plan.services.get(it));
                let answers: Vec<_> = answers.filter_map(|it| it.layer2_answer(address)).collect();
                let interfaces = answers.iter().map(|it| it.interfaces.as_ref());
                let interfaces =
                    interfaces.into_iter().try_fold(BTreeSet::new(), |mut all, some| {
                        all.extend(some?.iter().cloned());
                        Some(all)
                    });
                let bind = answers.iter().any(|it| it.bind);
                Layer2Announcement { address, interfaces, bind, services }
            });
            let position = self.plan.layer2.binary_search_by(|it| it.address.cmp(&address));
            let before = position.ok().and_then(|position| self.plan.layer2.get(position));
            if before != now.as_ref() {
                edits.insert(address, now.into_iter().collect());
            }
        }
        edits
    }
}

/// The lines of a ConfigMap for FRR.
fn extras(FrrExtras { name, text }: &FrrExtras) -> Arc<Extras> {
    Arc::new(Extras { origin: format!("{} {name}", Kind::ConfigMap), text: text.clone() })
}

/// The routes for one prefix, among routes by prefix.
fn routes_of(routes: &[DesiredRoute], prefix: Prefix) -> &[DesiredRoute] {
    let from = routes.partition_point(|it| it.prefix < prefix);
    let rest = routes.get(from..).unwrap_or_default();
    let count = rest.iter().take_while(|it| it.prefix == prefix).count();
    rest.get(..count).unwrap_or_default()
}

/// The content of `old`, in the order of keys, with the values of `edits` for their keys.
fn spliced<T, K: Ord>(
    old: impl Iterator<Item = T>,
    edits: BTreeMap<K, Vec<T>>,
    key: impl Fn(&T) -> K,
) -> Vec<T> {
    let mut all = Vec::with_capacity(old.size_hint().0.saturating_add(edits.len()));
    let mut old = old.peekable();
    for (edited, values) in edits {
        while let Some(it) = old.next_if(|it| key(it) < edited) {
            all.push(it);
        }
        while old.next_if(|it| key(it) == edited).is_some() {}
        all.extend(values);
    }
    all.extend(old);
    all
}

fn differences(
    before: &BTreeMap<ObjectName, Arc<Announcement>>,
    now: &BTreeMap<ObjectName, Arc<Announcement>>,
) -> BTreeMap<ObjectName, Option<Arc<Announcement>>> {
    let gone = before.iter().filter(|(name, _)| !now.contains_key(*name));
    let gone = gone.map(|(name, before)| (name.clone(), Some(Arc::clone(before))));
    let other = now.iter().filter(|(name, it)| before.get(*name) != Some(*it));
    let other = other.map(|(name, _)| (name.clone(), before.get(name).cloned()));
    gone.chain(other).collect()
}
