//! The input of the templates.
//!
//! Every value, by its place in the configuration. Decides nothing. Created by `render`.

use std::collections::BTreeSet;

use fairway_ground::{AddressFamily, GracefulRestart};
use fairway_seam::{DrainState, Extras};
use serde::Serialize;

use super::attributes::{Dialect, SetLines};
use super::classes::{Class, LEARNED_TAG, Network};
use super::names;
use super::neighbour::Neighbour;
use super::profiles::Profile;
use super::rules::{GATE_LAST, PASS};
use super::words::{Word, Words};

/// First sequence number of entries for learned routes, after those of all classes.
const LEARNED_SEQUENCE: u32 = 65_000;
/// The same where rules decide about them, which are more.
const RULED_SEQUENCE: u32 = 61_000;
/// FRR's default, which it does not show.
const LISTEN_LIMIT_DEFAULT: u32 = 100;

/// The whole document.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    /// The tags of all announced classes.
    pub(super) tags: Vec<u32>,
    pub(super) instances: Vec<Instance>,
    pub(super) profiles: Vec<Profile>,
    pub(super) extras: Option<RawLines>,
    pub(super) learned_tag: u32,
    /// The families whose next hops have to be resolved by a default route, as the words of lines.
    pub(super) tracked: BTreeSet<&'static str>,
    /// How all names begin.
    pub(super) mark: String,
    /// The view in place of the default instance.
    pub(super) view: Option<&'static str>,
    pub(super) places: Places,
}

/// Places in route maps with rules.
#[derive(Debug, Serialize)]
pub(super) struct Places {
    /// What is added to them in a map for routes that are sent.
    out: u32,
    /// The last entry that asks whether a route is allowed.
    gate_last: u32,
    /// The first entry of rules.
    rules: u32,
    /// The entry for routes that pass.
    pass: u32,
}

impl Default for Places {
    fn default() -> Self {
        let rules = GATE_LAST.saturating_add(1);
        Self { out: RULED_SEQUENCE, gate_last: GATE_LAST, rules, pass: PASS }
    }
}

/// One BGP instance.
#[derive(Debug, Serialize)]
pub(super) struct Instance {
    asn: u32,
    vrf: Option<Word>,
    router_id: String,
    cluster_id: Option<String>,
    restart_seconds: Option<u16>,
    long_lived_seconds: Option<u32>,
    listen_limit: Option<u32>,
    ranges: Vec<(String, Word)>,
    /// The route map for routes to the kernel, and the neighbours whose routes it permits.
    kernel: String,
    installing: Vec<Word>,
    neighbours: Vec<NeighbourSection>,
    families: Vec<Family>,
}

/// A neighbour with the entries of its outgoing route map.
#[derive(Debug, Serialize)]
pub(super) struct NeighbourSection {
    #[serde(flatten)]
    pub(super) neighbour: Neighbour,
    pub(super) out: Vec<Entry>,
    /// What becomes of learned routes behind its rules; `None` where no rule decides about any.
    ruled: Option<SetLines>,
}

/// An entry of an outgoing route map.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    sequence: u32,
    tag: u32,
    /// The family word of the prefix list that must match, if any.
    list: Option<&'static str>,
    #[serde(flatten)]
    set: SetLines,
    /// Rules decide what follows.
    is_gate: bool,
}

/// One address family of an instance.
#[derive(Debug, Serialize)]
struct Family {
    name: &'static str,
    networks: Vec<Network>,
    /// The indices of its neighbours in the instance.
    neighbours: Vec<usize>,
}

/// The operator's own lines of FRR configuration.
#[derive(Debug, Serialize)]
pub(super) struct RawLines {
    origin: Option<Words>,
    lines: Vec<String>,
}

impl NeighbourSection {
    pub(super) fn new(
        neighbour: Neighbour,
        dialect: &Dialect,
        classes: &[Class],
        drain: DrainState,
    ) -> Self {
        let own = classes.iter().filter_map(|class| {
            let set = class.told.get(&neighbour.key)?.clone();
            let (sequence, tag) = (class.sequence, class.tag);
            Some(Entry { sequence, tag, list: None, set, is_gate: false })
        });
        let passes_on = (drain != DrainState::Drained).then_some(&neighbour.passes_on);
        let is_ruled = passes_on.is_some_and(|it| !it.entries.is_empty())
            && !neighbour.pass_on_rules.is_empty();
        let (first, set) = match is_ruled {
            true => (RULED_SEQUENCE, dialect.next_hops()),
            false => (LEARNED_SEQUENCE, dialect.of_learned()),
        };
        let learned = passes_on.into_iter().flat_map(|it| &it.entries).map(|permit| Entry {
            sequence: first.saturating_add(permit.place),
            tag: LEARNED_TAG,
            list: permit.list,
            set: set.clone(),
            is_gate: is_ruled,
        });
        let out = own.chain(learned).collect();
        Self { neighbour, out, ruled: is_ruled.then(|| dialect.of_drain()) }
    }
}

impl Instance {
    /// From neighbours that agree on the settings of their instance. There is at least one.
    pub(super) fn new(mut neighbours: Vec<NeighbourSection>, classes: &[Class]) -> Option<Self> {
        neighbours.sort_by_key(|it| it.neighbour.rank());
        let vrf = neighbours.first()?.neighbour.vrf.clone();
        let vrf_name = neighbours.first()?.neighbour.key.vrf;
        let shared = neighbours.iter().map(|it| it.neighbour.shared);
        let first = shared.clone().next()?;
        let restart = shared.clone().find_map(|it| it.graceful_restart);
        let cluster_id = shared.clone().find_map(|it| it.cluster_id);
        let default = GracefulRestart::default();
        let ranges: Vec<_> = neighbours.iter().filter_map(|it| it.neighbour.range()).collect();
        let limits = shared.filter_map(|it| it.listen_limit).reduce(u32::saturating_add);
        let installing = neighbours.iter().filter(|it| it.neighbour.installs);
        let installing: Vec<Word> = installing.map(|it| it.neighbour.name.clone()).collect();
        let keys: Vec<_> = neighbours.iter().map(|it| it.neighbour.key).collect();
        let told = |class: &&Class| keys.iter().any(|key| class.told.contains_key(key));
        let classes: Vec<&Class> = classes.iter().filter(told).collect();
        Some(Self {
            asn: first.asn,
            vrf,
            router_id: first.router_id.to_string(),
            cluster_id: cluster_id
                .filter(|it| *it != first.router_id.into())
                .map(|it| it.to_string()),
            restart_seconds: restart
                .map(GracefulRestart::restart_time_seconds)
                .filter(|it| *it != default.restart_time_seconds()),
            long_lived_seconds: restart
                .map(GracefulRestart::long_lived_stale_time_seconds)
                .filter(|it| *it != 0),
            listen_limit: limits.filter(|it| *it != LISTEN_LIMIT_DEFAULT),
            ranges,
            kernel: names::of_kernel_map(vrf_name, !installing.is_empty()),
            installing,
            families: AddressFamily::ALL
                .into_iter()
                .filter_map(|family| Family::new(family, &neighbours, &classes))
                .collect(),
            neighbours,
        })
    }
}

impl Instance {
    /// Whether it is that of the default VRF.
    pub(super) fn is_default(&self) -> bool {
        self.vrf.is_none()
    }

    /// The line that opens it as the default instance, and as a view.
    pub(super) fn router(&self, view: &str) -> (String, String) {
        let default = format!("router bgp {}", self.asn);
        let here = format!("{default} view {view}");
        (default, here)
    }
}

impl Family {
    fn new(
        family: AddressFamily,
        neighbours: &[NeighbourSection],
        classes: &[&Class],
    ) -> Option<Self> {
        let carrying = neighbours.iter().enumerate();
        let carrying = carrying.filter(|(_, it)| it.neighbour.carries(family));
        let carrying: Vec<usize> = carrying.map(|(place, _)| place).collect();
        let mut networks: Vec<Network> =
            classes.iter().flat_map(|class| class.networks(family)).collect();
        networks.sort_unstable_by_key(|network| network.order);
        let name = match family {
            AddressFamily::Ipv4Unicast => "ipv4",
            AddressFamily::Ipv6Unicast => "ipv6",
        };
        (!carrying.is_empty()).then_some(Self { name, networks, neighbours: carrying })
    }
}

impl RawLines {
    /// Comments are left out: ours mark the origin of lines.
    ///
    /// `own`: the router of the default VRF as others name it, and as it is named here. Extras are written for an
    /// FRR that has nobody else's.
    pub(super) fn new(extras: &Extras, own: Option<&(String, String)>) -> Self {
        let is_comment = |line: &&str| line.trim_start().starts_with(['!', '#']);
        let lines = extras.text.lines().map(str::trim_end).filter(|line| !line.is_empty());
        Self {
            origin: Words::new(extras.origin.as_bytes()).ok(),
            lines: lines
                .filter(|line| !is_comment(line))
                .map(|line| match own {
                    Some((named, here)) if line.split_ascii_whitespace().eq(named.split(' ')) => {
                        here
                    }
                    _ => line,
                })
                .map(str::to_owned)
                .collect(),
        }
    }
}
