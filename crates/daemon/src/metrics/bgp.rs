//! The metrics of the BGP sessions. Pure: a view in, text out.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_ground::{AddressFamily, PeerKey, PerFamily, Remote};
use fairway_plan::NodePlan;
use fairway_seam::{BgpView, DesiredRoute, DrainState, PeerConfig, PeerView, SessionState};

use super::bfd;
use super::families::{
    BGP_ACCEPTED, BGP_ANNOUNCED, BGP_ATTRIBUTE_BYTES, BGP_DROPPED, BGP_ESTABLISHED, BGP_FAULTS,
    BGP_KEEPALIVES_RECEIVED, BGP_KEEPALIVES_SENT, BGP_LIMIT_EXCEEDED, BGP_MALFORMED,
    BGP_NOTIFICATIONS_RECEIVED, BGP_NOTIFICATIONS_SENT, BGP_OPENS_RECEIVED, BGP_OPENS_SENT,
    BGP_PEER, BGP_PENDING, BGP_RECEIVED, BGP_REFRESHES_RECEIVED, BGP_REFRESHES_SENT, BGP_REFUSED,
    BGP_SENT, BGP_SESSION_UP, BGP_SHUTDOWN, BGP_STALE, BGP_UNANNOUNCED, BGP_UPDATES_RECEIVED,
    BGP_UPDATES_SENT, DRAIN, EVENT_TO_UPDATE, NOT_IN_FORCE, RIB_PREFIXES,
};
use super::page::{Family, Page};

/// A counter or gauge of a neighbour.
type Number = fn(&PeerView) -> u64;
/// Such values, by the value of one more label.
type PerLabel<const COUNT: usize> = [(&'static str, Number); COUNT];

const NUMBERS: [(Family, Number); 21] = [
    (BGP_SESSION_UP, |peer| u64::from(peer.state == SessionState::Established)),
    (BGP_ANNOUNCED, |peer| {
        let told = peer.prefixes_advertised;
        u64::from(told.ipv4).saturating_add(told.ipv6.into())
    }),
    (BGP_UPDATES_SENT, |peer| peer.messages.sent.updates),
    (BGP_UPDATES_RECEIVED, |peer| peer.messages.received.updates),
    (BGP_OPENS_SENT, |peer| peer.messages.sent.opens),
    (BGP_OPENS_RECEIVED, |peer| peer.messages.received.opens),
    (BGP_NOTIFICATIONS_SENT, |peer| peer.messages.sent.notifications),
    (BGP_KEEPALIVES_SENT, |peer| peer.messages.sent.keepalives),
    (BGP_KEEPALIVES_RECEIVED, |peer| peer.messages.received.keepalives),
    (BGP_REFRESHES_SENT, |peer| peer.messages.sent.route_refreshes),
    (BGP_SENT, |peer| peer.messages.sent.total()),
    (BGP_RECEIVED, |peer| peer.messages.received.total()),
    (BGP_SHUTDOWN, |peer| u64::from(peer.config.shutdown.is_some())),
    (BGP_ESTABLISHED, |peer| peer.connections_established),
    (BGP_DROPPED, |peer| peer.connections_dropped),
    (BGP_NOTIFICATIONS_RECEIVED, |peer| peer.messages.received.notifications),
    (BGP_REFRESHES_RECEIVED, |peer| peer.messages.received.route_refreshes),
    (BGP_UNANNOUNCED, |peer| u64::try_from(peer.unannounced.len()).unwrap_or(u64::MAX)),
    (BGP_ATTRIBUTE_BYTES, |peer| peer.attribute_bytes),
    (BGP_FAULTS, |peer| peer.panics),
    (BGP_LIMIT_EXCEEDED, |peer| peer.limit_exceeded),
];

const SPLIT_NUMBERS: [(Family, PerLabel<2>); 3] = [
    (
        BGP_ACCEPTED,
        [
            ("ipv4", |peer| peer.prefixes_accepted.ipv4.into()),
            ("ipv6", |peer| peer.prefixes_accepted.ipv6.into()),
        ],
    ),
    (
        BGP_STALE,
        [
            ("ipv4", |peer| peer.stale.as_ref().map_or(0, |it| it.routes.ipv4.into())),
            ("ipv6", |peer| peer.stale.as_ref().map_or(0, |it| it.routes.ipv6.into())),
        ],
    ),
    (
        BGP_REFUSED,
        [("ipv4", |peer| peer.prefixes_refused.ipv4), ("ipv6", |peer| peer.prefixes_refused.ipv6)],
    ),
];

const MALFORMED: PerLabel<3> = [
    ("attribute-discard", |peer| peer.malformed.attribute_discards),
    ("treat-as-withdraw", |peer| peer.malformed.treated_as_withdraw),
    ("session-reset", |peer| peer.malformed.resets),
];

/// The labels of a neighbour.
struct Named<'a> {
    peer: String,
    vrf: String,
    view: &'a PeerView,
}

/// The label `peer` of a neighbour's metrics: that of a mode of MetalLB, so that its dashboards work unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PeerLabel {
    /// `ADDRESS:PORT`, as in the modes native and FRR.
    #[default]
    Metallb,
    /// The address alone, as in the mode frr-k8s.
    FrrK8s,
}

impl PeerLabel {
    /// The label; the interface of a neighbour without an address.
    fn of(self, config: &PeerConfig) -> String {
        match (config.key.remote, self) {
            (Remote::Address(address), Self::Metallb) => {
                std::net::SocketAddr::new(address, config.port).to_string()
            }
            (remote, _) => remote.to_string(),
        }
    }
}

impl<'a> Named<'a> {
    fn new(label: PeerLabel, view: &'a PeerView) -> Self {
        let key = view.config.key;
        let vrf = key.vrf.map(|vrf| vrf.to_string()).unwrap_or_default();
        Self { peer: label.of(&view.config), vrf, view }
    }
}

/// Writes the metrics of the sessions, and of what `plan` contains for them.
pub(super) fn write(page: &mut Page, label: PeerLabel, bgp: &BgpView, plan: &NodePlan) {
    let peers: Vec<Named<'_>> = bgp.peers.iter().map(|it| Named::new(label, it)).collect();
    // A sample that is not known would be a session that is down, and a counter that went back.
    let known: Vec<&Named<'_>> =
        peers.iter().filter(|it| it.view.state != SessionState::Unknown).collect();
    for (family, number) in &NUMBERS {
        let mut samples = page.family(family);
        known.iter().for_each(|it| samples.add(&[&it.peer, &it.vrf], number(it.view)));
    }
    let wanted = wanted(plan, bgp.drain);
    let mut samples = page.family(&BGP_PENDING);
    for it in &peers {
        samples.add(&[&it.peer, &it.vrf], wanted_by(&it.view.config, &wanted));
    }
    let mut samples = page.family(&BGP_PEER);
    for it in &peers {
        let state = it.view.state.name();
        samples.add(&[&it.peer, &it.vrf, &it.view.config.name, state], 1);
    }
    for (family, numbers) in &SPLIT_NUMBERS {
        write_split(page, family, numbers, &known);
    }
    write_split(page, &BGP_MALFORMED, &MALFORMED, &known);
    let mut samples = page.family(&RIB_PREFIXES);
    for (family, word) in AddressFamily::ALL.into_iter().zip(["ipv4", "ipv6"]) {
        samples.add(&[word], bgp.prefixes.of(family));
    }
    let states = [
        (DrainState::InService, "in-service"),
        (DrainState::Draining, "draining"),
        (DrainState::Drained, "drained"),
    ];
    let mut samples = page.family(&DRAIN);
    states.iter().for_each(|(state, word)| samples.add(&[word], u8::from(*state == bgp.drain)));
    page.number(&NOT_IN_FORCE, bgp.faults.len());
    page.histogram(&EVENT_TO_UPDATE, &bgp.changes_told);
    bfd::write(page, bgp.bfd.as_ref());
}

fn write_split(
    page: &mut Page,
    family: &Family,
    numbers: &[(&'static str, Number)],
    peers: &[&Named<'_>],
) {
    let mut samples = page.family(family);
    for it in peers {
        for (word, number) in numbers {
            samples.add(&[&it.peer, &it.vrf, word], number(it.view));
        }
    }
}

/// How many routes of each family are planned for each neighbour.
fn wanted(plan: &NodePlan, drain: DrainState) -> BTreeMap<PeerKey, PerFamily<u64>> {
    let mut wanted: BTreeMap<PeerKey, PerFamily<u64>> = BTreeMap::new();
    if drain == DrainState::Drained {
        return wanted;
    }
    // A thousand routes in a row name the same neighbours.
    let are_alike = |one: &DesiredRoute, next: &DesiredRoute| {
        Arc::ptr_eq(&one.peers, &next.peers) && one.prefix.family() == next.prefix.family()
    };
    for alike in plan.routes.chunk_by(are_alike) {
        let Some(first) = alike.first() else { continue };
        let count = u64::try_from(alike.len()).unwrap_or(u64::MAX);
        for peer in first.peers.iter() {
            let of_peer = wanted.entry(*peer).or_default().of_mut(first.prefix.family());
            *of_peer = of_peer.saturating_add(count);
        }
    }
    wanted
}

/// Those of the families that its session is to carry: no other reaches it, and none is missing.
fn wanted_by(peer: &PeerConfig, wanted: &BTreeMap<PeerKey, PerFamily<u64>>) -> u64 {
    let Some(of_peer) = wanted.get(&peer.route_key()) else { return 0 };
    let carried = AddressFamily::ALL.into_iter().filter(|it| peer.families.contains(*it));
    carried.map(|family| *of_peer.of(family)).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::IpAddr;

    use fairway_ground::{Asn, RemoteAs};
    use fairway_seam::RouteAttributes;

    use super::*;

    #[test]
    fn a_peer_is_labelled_as_the_mode_of_metallb_has_it() {
        let asn = Asn::new(65_001).unwrap();
        let peer = |text: &str| {
            let key = PeerKey::from(text.parse::<IpAddr>().unwrap());
            PeerConfig::new(key, asn, RemoteAs::Asn(asn), "192.0.2.9".parse().unwrap())
        };
        for (address, metallb) in
            [("192.0.2.1", "192.0.2.1:179"), ("2001:db8::1", "[2001:db8::1]:179")]
        {
            assert_eq!(PeerLabel::Metallb.of(&peer(address)), metallb);
            assert_eq!(PeerLabel::FrrK8s.of(&peer(address)), address);
        }
    }

    #[test]
    fn a_session_that_carries_one_family_lacks_no_route_of_the_other() {
        let asn = Asn::new(65_001).unwrap();
        let peer = |text: &str| {
            let key = PeerKey::from(text.parse::<IpAddr>().unwrap());
            PeerConfig::new(key, asn, RemoteAs::Asn(asn), "192.0.2.9".parse().unwrap())
        };
        let (four, six) = (peer("192.0.2.1"), peer("2001:db8::1"));
        let peers = Arc::new(BTreeSet::from([four.key, six.key]));
        let route = |prefix: &str| DesiredRoute {
            prefix: prefix.parse().unwrap(),
            peers: Arc::clone(&peers),
            attributes: Arc::<RouteAttributes>::default(),
        };
        let routes = ["203.0.113.1/32", "203.0.113.2/32", "2001:db8:1::1/128"].map(route);
        let plan = NodePlan { routes: routes.to_vec().into(), ..NodePlan::default() };
        let wanted = wanted(&plan, DrainState::InService);
        assert_eq!([wanted_by(&four, &wanted), wanted_by(&six, &wanted)], [2, 1]);
    }
}
