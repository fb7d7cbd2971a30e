//! The lab: node-a, AS 65001, with two routers in three states and two services.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_allocator::Outcomes;
use fairway_ground::{
    AddressFamily, AsPath, Asn, FamilySet, HoldTime, NextHop, Password, PathId, PeerKey, PerFamily,
    Prefix, RemoteAs, RouterId,
};
use fairway_model::{ClusterIndex, Node};
use fairway_node::drain::DrainStatus;
use fairway_node::history::History;
use fairway_plan::NodePlan;
use fairway_resources::{Finding, StaleObject};
use fairway_seam::capability::Capability;
use fairway_seam::{
    BgpView, DesiredRoute, LastReset, MessageCounters, MessageCounts, PathAttributes, PeerConfig,
    PeerRoute, PeerView, ResetCause, RouteAttributes, SessionState, SessionView,
};

use super::super::{ShowCommand, Snapshot};

pub(super) const PASSWORD: &str = "canary-in-the-lab";
pub(super) const NOW_EPOCH_SECONDS: u64 = 1_795_192_683;

/// Owns what a snapshot borrows.
pub(crate) struct Lab {
    pub(super) node: Node,
    pub(crate) bgp: BgpView,
    pub(super) index: ClusterIndex,
    pub(super) outcomes: Outcomes,
    pub(super) plan: NodePlan,
    pub(super) history: History,
    pub(super) findings: Vec<Finding>,
    pub(super) stale: Vec<StaleObject>,
    pub(super) sources: Vec<String>,
    pub(super) layer2: Option<fairway_seam::Layer2View>,
    pub(super) drain: DrainStatus,
}

impl Lab {
    pub(crate) fn without_peers() -> Self {
        Self {
            node: Node::assumed("node-a", vec![address("10.0.0.1")]),
            bgp: BgpView::default(),
            index: ClusterIndex::default(),
            outcomes: Outcomes::default(),
            plan: NodePlan::default(),
            history: History::default(),
            findings: Vec::new(),
            stale: Vec::new(),
            sources: Vec::new(),
            layer2: None,
            drain: DrainStatus::InService,
        }
    }

    pub(crate) fn new() -> Self {
        let peers = vec![router_one(), silent(), router_two(), unreachable(), router_one_ipv6()];
        let told: BTreeSet<PeerKey> = peers.iter().map(|peer| peer.config.key).collect();
        let routes = ROUTES.map(|(prefix, local_pref)| DesiredRoute {
            prefix: self::prefix(prefix),
            peers: Arc::new(told.clone()),
            attributes: Arc::new(attributes(local_pref)),
        });
        let prefixes = PerFamily { ipv4: 2, ipv6: 1 };
        let bgp = BgpView {
            generation: 10,
            peers,
            routes: routes.to_vec(),
            prefixes,
            ..BgpView::default()
        };
        Self { bgp, ..Self::without_peers() }
    }

    pub(crate) fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            now_epoch_seconds: NOW_EPOCH_SECONDS,
            commit: "unknown",
            vrf_name: super::super::VRF_DEFAULT,
            started_epoch_seconds: NOW_EPOCH_SECONDS - 60,
            node: &self.node,
            router_id: router_id("10.0.0.1"),
            bgp: &self.bgp,
            layer2: self.layer2.as_ref(),
            members: None,
            index: &self.index,
            outcomes: &self.outcomes,
            plan: &self.plan,
            history: &self.history,
            findings: &self.findings,
            stale: &self.stale,
            sources: &self.sources,
            outage: None,
            drain: self.drain,
        }
    }

    /// The first neighbour, to be changed.
    pub(super) fn router_one(&mut self) -> &mut PeerView {
        &mut self.bgp.peers[0]
    }
}

/// The routes that node-a originates. Of the second there are two versions.
const ROUTES: [(&str, Option<u32>); 4] = [
    ("203.0.113.10/32", None),
    ("203.0.113.11/32", None),
    ("203.0.113.11/32", Some(200)),
    ("2001:db8:aaaa::10/128", None),
];

fn attributes(local_pref: Option<u32>) -> RouteAttributes {
    RouteAttributes {
        local_pref,
        communities: vec!["65001:100".parse().unwrap(), "no-export".parse().unwrap()],
        large_communities: vec!["65001:1:10".parse().unwrap()],
        ..RouteAttributes::default()
    }
}

pub(super) fn table_ipv4(prefix: Option<&str>) -> ShowCommand {
    let family = AddressFamily::Ipv4Unicast;
    ShowCommand::BgpUnicast { family, prefix: prefix.map(str::to_owned) }
}

pub(super) fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(super) fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

fn router_id(text: &str) -> RouterId {
    text.parse().unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A neighbour in its initial state.
pub(crate) fn fresh(key: &str, remote_asn: u32, name: &str) -> PeerView {
    let key = address(key);
    PeerView::idle(PeerConfig {
        name: name.to_owned(),
        hold_time: HoldTime::from_seconds(9).unwrap(),
        ..PeerConfig::new(
            PeerKey::from(key),
            Asn::new(65001).unwrap(),
            RemoteAs::Asn(Asn::new(remote_asn).unwrap()),
            router_id("10.0.0.1"),
        )
    })
}

fn counts(opens: u64, notifications: u64, updates: u64, keepalives: u64) -> MessageCounts {
    MessageCounts { opens, notifications, updates, keepalives, route_refreshes: 0 }
}

fn session(local: &str, remote: &str, family: AddressFamily) -> SessionView {
    let other = |code, value: &[u8]| Capability::Other { code, value: value.to_vec() };
    let ours = [Capability::Multiprotocol(family.into()), Capability::RouteRefresh];
    let theirs = [
        Capability::Multiprotocol(family.into()),
        Capability::RouteRefresh,
        other(128, b""),
        Capability::EnhancedRouteRefresh,
        Capability::HostName { host: b"r1".to_vec(), domain: Vec::new() },
        Capability::FourOctetAs(65010),
        other(99, b"\x01\xff"),
    ];
    SessionView {
        local: local.parse().unwrap(),
        remote: remote.parse().unwrap(),
        remote_router_id: router_id("10.0.0.2"),
        remote_asn: Asn::new(65010).unwrap(),
        hold_time_seconds: 9,
        keepalive_interval: Some(seconds(3)),
        families: FamilySet::only(family),
        capabilities_received: theirs.to_vec(),
        capabilities_sent: [&ours[..], &[Capability::FourOctetAs(65001)]].concat(),
        end_of_rib_sent: PerFamily::default(),
        end_of_rib_received: PerFamily::default(),
    }
}

fn advertised(prefix: &str, next_hop: NextHop) -> PeerRoute {
    let RouteAttributes { communities, large_communities, .. } = attributes(None);
    let path = AsPath::sequence(vec![65001]);
    let sent = PathAttributes::originated(path, next_hop);
    let (communities, large_communities) = (communities.into(), large_communities.into());
    let attributes = Arc::new(PathAttributes { communities, large_communities, ..sent });
    PeerRoute { prefix: self::prefix(prefix), path_id: PathId::NONE, attributes, stale: false }
}

/// Established for the second time, with a password.
fn router_one() -> PeerView {
    let mut peer = fresh("10.1.1.2", 65010, "router one over IPv4");
    peer.config.password = Some(Password::new(PASSWORD).unwrap());
    peer.state = SessionState::Established;
    peer.session = Some(session("10.1.1.1:50296", "10.1.1.2:179", AddressFamily::Ipv4Unicast));
    peer.since = Some(seconds(21));
    peer.messages = MessageCounters { sent: counts(2, 1, 2, 8), received: counts(2, 2, 7, 9) };
    (peer.connections_established, peer.connections_dropped) = (2, 1);
    peer.prefixes_refused.ipv4 = 6;
    let next_hop = NextHop::Ipv4("10.1.1.1".parse().unwrap());
    peer.advertised =
        ["203.0.113.10/32", "203.0.113.11/32"].map(|it| advertised(it, next_hop)).to_vec();
    peer.prefixes_advertised.ipv4 = 2;
    peer.last_reset = Some(LastReset {
        ago: seconds(22),
        cause: ResetCause::NotificationReceived(6, 0, None),
        text: "notification received: Cease (6/0)".to_owned(),
    });
    peer.last_read = Some(seconds(2));
    peer.last_write = Some(seconds(3));
    peer
}

/// Established, over IPv6.
fn router_one_ipv6() -> PeerView {
    let mut peer = fresh("2001:db8:1:1::2", 65010, "router one over IPv6");
    peer.state = SessionState::Established;
    let ends = ("[2001:db8:1:1::1]:179", "[2001:db8:1:1::2]:35353");
    peer.session = Some(session(ends.0, ends.1, AddressFamily::Ipv6Unicast));
    peer.since = Some(seconds(21));
    peer.messages = MessageCounters { sent: counts(2, 0, 2, 8), received: counts(2, 2, 5, 9) };
    (peer.connections_established, peer.connections_dropped) = (2, 1);
    let global = "2001:db8:1:1::1".parse().unwrap();
    let next_hop = NextHop::Ipv6 { global, link_local: "fe80::1".parse().ok() };
    peer.advertised = vec![advertised("2001:db8:aaaa::10/128", next_hop)];
    peer.prefixes_advertised.ipv6 = 1;
    peer
}

/// Never up: the neighbour does not answer.
fn silent() -> PeerView {
    let mut peer = fresh("10.1.1.97", 65097, "nobody answers here either");
    peer.state = SessionState::Connect;
    peer.last_reset = Some(LastReset {
        ago: seconds(26),
        cause: ResetCause::ConnectFailed,
        text: "cannot connect: no answer".to_owned(),
    });
    peer.next_connect_in = Some(Duration::ZERO);
    peer
}

/// Was up, until it sent a NOTIFICATION.
fn router_two() -> PeerView {
    let mut peer = fresh("10.1.2.2", 65020, "router-two");
    peer.state = SessionState::Idle;
    peer.since = Some(seconds(2));
    peer.messages = MessageCounters { sent: counts(2, 1, 2, 12), received: counts(2, 2, 8, 11) };
    (peer.connections_established, peer.connections_dropped) = (2, 2);
    peer.last_reset = Some(LastReset {
        ago: seconds(2),
        cause: ResetCause::NotificationReceived(6, 2, Some("planned work".to_owned())),
        text: "notification received: Cease/Administrative Shutdown (6/2): \"planned work\""
            .to_owned(),
    });
    peer.next_connect_in = Some(Duration::from_millis(1_500));
    (peer.last_read, peer.last_write) = (Some(seconds(3)), Some(seconds(3)));
    peer
}

/// Not tried yet.
fn unreachable() -> PeerView {
    let mut peer = fresh("10.9.9.9", 65096, "");
    peer.state = SessionState::Active;
    peer.next_connect_in = Some(seconds(98));
    peer
}
