//! FRR's constraints between all peers of a node.
//!
//! FRR has one BGP instance for each VRF, with one AS, one router ID and one set of restart times;
//! and BFD's echo packets are for IPv4 only, as MetalLB has it. The native backend has none of these
//! constraints. Knows no files.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_ground::{AddressFamily, Asn, GracefulRestart, InterfaceName, Remote, RouterId};
use fairway_model::{ObjectKey, Peer};

use super::advertisements::pools_of;
use super::nodes::Nodes;
use super::pools::PoolFacts;
use super::settle::Problem;
use super::version::Version;
use crate::field_path::FieldPath;

/// The settings that an FRR instance has once.
#[derive(PartialEq)]
struct Settings {
    my_asn: Asn,
    router_id: Option<RouterId>,
    graceful_restart: Option<GracefulRestart>,
    listen_limit: Option<u32>,
}

impl Settings {
    fn of(it: &Peer) -> Self {
        Self {
            my_asn: it.my_asn,
            router_id: it.router_id,
            graceful_restart: it.graceful_restart,
            listen_limit: matches!(it.remote, Remote::Range(_)).then_some(it.listen_limit),
        }
    }

    /// The first conflicting field, with both values.
    fn difference(&self, other: &Self) -> Option<(&'static str, [String; 2])> {
        fn shown<T: ToString>(values: [Option<&T>; 2]) -> [String; 2] {
            values.map(|value| value.map_or_else(|| "unset".to_owned(), ToString::to_string))
        }
        if self.my_asn != other.my_asn {
            return Some(("myASN", shown([Some(&self.my_asn), Some(&other.my_asn)])));
        }
        if self.router_id != other.router_id {
            return Some(("routerID", shown([self.router_id.as_ref(), other.router_id.as_ref()])));
        }
        if let (Some(this), Some(that)) = (self.listen_limit, other.listen_limit)
            && this != that
        {
            return Some(("listenLimit", shown([Some(&this), Some(&that)])));
        }
        let (this, that) = (self.graceful_restart?, other.graceful_restart?);
        let times = |it: GracefulRestart| {
            let restart = it.restart_time().as_secs();
            format!("{restart}s and {}s", it.long_lived_stale_time().as_secs())
        };
        (this != that).then(|| ("gracefulRestart", [times(this), times(that)]))
    }
}

/// Peers by their settings for the instance of their VRF. Most are equal.
type Groups = Vec<(Settings, Vec<Arc<Version>>)>;

/// FRR's rules, and the facts that they need.
pub(super) struct FrrRules {
    instances: BTreeMap<Option<InterfaceName>, Groups>,
    /// BFDProfiles with echoMode, by name.
    echoing: BTreeMap<String, Arc<ObjectKey>>,
    /// Advertisements of pools with IPv6 addresses, and the first such pool of each.
    over_ipv6: Vec<(Arc<Version>, Arc<ObjectKey>)>,
}

impl FrrRules {
    /// With the objects that are in force already.
    pub(super) fn new<'a>(
        in_force: impl Iterator<Item = &'a Arc<Version>> + Clone,
        pools: &BTreeMap<String, PoolFacts>,
    ) -> Self {
        let echoing = in_force
            .clone()
            .filter(|version| version.profile().is_some_and(|profile| profile.echo_mode));
        let echoing =
            echoing.map(|version| (version.key.name.name.clone(), Arc::clone(&version.key)));
        let over_ipv6 = in_force.filter_map(|version| {
            let mut covered = pools_of(version.advertisement()?, pools);
            let pool =
                covered.find(|it| it.families().any(|it| it == AddressFamily::Ipv6Unicast))?;
            Some((Arc::clone(version), Arc::clone(&pool.key)))
        });
        Self {
            instances: BTreeMap::new(),
            echoing: echoing.collect(),
            over_ipv6: over_ipv6.collect(),
        }
    }

    /// Why FRR cannot have this peer beside those admitted before it.
    pub(super) fn problems(
        &self,
        version: &Version,
        it: &Peer,
        nodes: &Nodes,
    ) -> impl Iterator<Item = Problem> {
        let instance = self.instance_problem(version, it, nodes);
        instance.into_iter().chain(self.echo_problem(it, &version.key, nodes))
    }

    fn instance_problem(&self, version: &Version, it: &Peer, nodes: &Nodes) -> Option<Problem> {
        let settings = Settings::of(it);
        for (others, members) in self.instances.get(&it.vrf).into_iter().flatten() {
            let Some((field, [this, that])) = settings.difference(others) else { continue };
            let mut members = members.iter().filter_map(|member| Some((member, member.peer()?)));
            let rival = members
                .find(|(_, other)| nodes.may_share(&it.node_selectors, &other.node_selectors));
            let Some((rival, _)) = rival else { continue };
            let path = || FieldPath::of("spec").key(field);
            let message = |this: &str, that: &str, other: &ObjectKey| {
                format!(
                    "is {this}, but {that} in {other}, and FRR has one for all peers of a VRF; \
                     expected the same value, or nodeSelectors that exclude each other"
                )
            };
            let problem = Problem::new(path(), message(&this, &that, &rival.key));
            return Some(problem.because(&rival.key, path(), message(&that, &this, &version.key)));
        }
        None
    }

    fn echo_problem(&self, it: &Peer, key: &ObjectKey, nodes: &Nodes) -> Option<Problem> {
        let profile = it.bfd_profile.as_ref().and_then(|name| self.echoing.get(name))?;
        let reaches = |version: &Version| {
            version.advertisement().is_some_and(|advertisement| {
                (advertisement.peers.is_empty() || advertisement.peers.contains(&it.name.name))
                    && nodes.may_share(&advertisement.node_selectors, &it.node_selectors)
            })
        };
        let (advertisement, pool) =
            self.over_ipv6.iter().find(|(advertisement, _)| reaches(advertisement))?;
        let advertisement = &advertisement.key;
        let why = "FRR echoes for IPv4 only";
        let problem = Problem::new(
            FieldPath::of("spec.bfdProfile"),
            format!(
                "{profile} has echoMode, and {advertisement} may announce IPv6 addresses of {pool} \
                 to this peer; {why}: expected a profile without echoMode"
            ),
        );
        let problem = problem.because(
            profile,
            FieldPath::of("spec.echoMode"),
            format!(
                "is not supported for {key}: {advertisement} may announce IPv6 addresses of {pool} \
                 to it; {why}: expected false"
            ),
        )
        .because(
            advertisement,
            FieldPath::of("spec"),
            format!(
                "may announce IPv6 addresses of {pool} to {key}, which uses {profile} with \
                 echoMode; {why}: expected other peers or pools"
            ),
        )
        .because(
            pool,
            FieldPath::of("spec.addresses"),
            format!(
                "has IPv6 addresses, which {advertisement} may announce to {key}, which uses \
                 {profile} with echoMode; {why}: expected IPv4 addresses"
            ),
        );
        Some(problem)
    }

    /// Later peers must be compatible with this one.
    pub(super) fn remember(&mut self, version: &Arc<Version>, it: &Peer) {
        let settings = Settings::of(it);
        let groups = self.instances.entry(it.vrf).or_default();
        match groups.iter_mut().find(|(others, _)| *others == settings) {
            Some((_, members)) => members.push(Arc::clone(version)),
            None => groups.push((settings, vec![Arc::clone(version)])),
        }
    }
}
