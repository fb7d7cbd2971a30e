//! Routes as UPDATEs for stations: all of a table, or those that have changed.
//!
//! Knows no socket. Called by the thread.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use fairway_bgp::session::{Best, SessionUp};
use fairway_bgp::wire::announce::{AttributeBlock, Unsent, announcement, end_of_rib, withdrawal};
use fairway_bgp::wire::{Capability, EXTENDED_MESSAGE_LENGTH_BYTES_MAX, NextHopEncoding, Open};
use fairway_bmp::Tables;
use fairway_bmp::message::{Monitored, Stamp, Table, loc_rib_up, route_monitoring};
use fairway_ground::{
    AddressFamily, AsPath, BmpTables, FamilySet, HoldTime, NextHop, Nlri, PeerKey, Prefix, RouterId,
};
use fairway_seam::{BgpView, PathAttributes, PeerRoute, RouteAttributes, RouteChange};

/// A session that is up, and how stations know its neighbour.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) monitored: Monitored,
    pub(super) up: SessionUp,
}

/// The name of the only table of best routes (RFC 9069 §5.2.1).
pub(super) const LOC_RIB_NAME: &str = "global";

/// One prefix that waits.
struct Single(Option<Nlri>);

impl Unsent for Single {
    fn next(&mut self) -> Option<Nlri> {
        self.0
    }

    fn pop(&mut self) {
        self.0 = None;
    }
}

/// An UPDATE that announces a route, or withdraws it. `None` if its attributes fit into no message, which no neighbour can
/// have sent.
pub(super) fn update(
    nlri: Nlri,
    attributes: Option<&PathAttributes>,
    four_octet_as: bool,
    path_ids: FamilySet,
) -> Option<Bytes> {
    let family = nlri.prefix.family();
    let path_ids = path_ids.contains(family);
    let mut message = BytesMut::new();
    match attributes {
        Some(attributes) => {
            let most = EXTENDED_MESSAGE_LENGTH_BYTES_MAX;
            let block = AttributeBlock::encode_within(most, attributes, four_octet_as).ok()?;
            announcement(family, path_ids, &block, &mut Single(Some(nlri)), &mut message);
        }
        None => withdrawal(family, path_ids, &mut Single(Some(nlri)), &mut message),
    }
    Some(message.freeze())
}

/// Changes of what was accepted from a neighbour.
pub(super) fn accepted<'a>(
    peer: &'a Peer,
    at: Stamp,
    changes: &'a [RouteChange],
) -> impl Iterator<Item = Bytes> + 'a {
    let path_ids = peer.up.add_path_received;
    let updates = changes
        .iter()
        .filter_map(move |it| update(it.nlri, it.attributes.as_deref(), true, path_ids));
    updates.map(move |it| route_monitoring(&peer.monitored, Table::AdjRibInPostPolicy, at, &it))
}

/// A change of the best route to a prefix.
pub(super) fn best(node: &Node, at: Stamp, prefix: Prefix, best: Option<&Best>) -> Option<Bytes> {
    let own;
    let attributes = match best {
        None => None,
        Some(Best::Learned(attributes)) => Some(&**attributes),
        Some(Best::Originated(chosen)) => {
            own = originated(node, prefix, chosen);
            Some(&own)
        }
    };
    let update = update(Nlri::from(prefix), attributes, true, FamilySet::EMPTY)?;
    Some(route_monitoring(&node.monitored, Table::LocRib, at, &update))
}

/// This node, for the table of its best routes.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) monitored: Monitored,
    pub(super) at: Stamp,
}

impl Node {
    /// As its first neighbour knows it; `None` without one: nobody says what it is in BGP.
    pub(super) fn of(view: &BgpView, at: Stamp) -> Option<Self> {
        let config = view.peers.first().map(|it| &it.config)?;
        let address = Ipv4Addr::UNSPECIFIED.into();
        let asn = config.router_asn.get();
        let router_id = config.router_id.get().into();
        let monitored =
            Monitored { address, asn, router_id, vrf: None, interface: None, two_octet_as: false };
        Some(Self { monitored, at })
    }

    fn open(&self) -> Option<Bytes> {
        let asn = self.monitored.asn;
        let families =
            AddressFamily::ALL.into_iter().map(|it| Capability::Multiprotocol(it.into()));
        // A received IPv4 route may have such a next hop, also one that comes later.
        let next_hop = Capability::ExtendedNextHop(vec![NextHopEncoding::IPV4_OVER_IPV6]);
        let capabilities = families.chain([next_hop, Capability::FourOctetAs(asn)]).collect();
        let router_id = RouterId::new(self.monitored.router_id.into())?;
        let open = Open { asn, hold_time: HoldTime::default(), router_id, capabilities };
        Some(open.encode())
    }
}

/// A route of our own as FRR has it in its table: without an AS, and without a next hop.
fn originated(node: &Node, prefix: Prefix, chosen: &RouteAttributes) -> PathAttributes {
    let next_hop = match prefix.family() {
        AddressFamily::Ipv4Unicast => NextHop::Ipv4(Ipv4Addr::UNSPECIFIED),
        AddressFamily::Ipv6Unicast => {
            NextHop::Ipv6 { global: Ipv6Addr::UNSPECIFIED, link_local: None }
        }
    };
    let bandwidth = chosen.link_bandwidth.map(|it| it.community(node.monitored.asn, false));
    PathAttributes {
        local_pref: chosen.local_pref,
        med: chosen.med,
        communities: chosen.communities.as_slice().into(),
        extended_communities: bandwidth.into_iter().collect(),
        large_communities: chosen.large_communities.as_slice().into(),
        ..PathAttributes::originated(AsPath::default(), next_hop)
    }
}

/// All routes of `tables` in `view`, which is shared by the stations that are told them, and after each table its End-of-RIB
/// (RFC 7854 §5). When a route came is not known any more; `at` is for the Peer Up of this node.
pub(super) fn all(
    view: Arc<BgpView>,
    peers: &BTreeMap<PeerKey, Peer>,
    tables: BmpTables,
    at: Stamp,
) -> Tables {
    let known: Vec<(usize, Peer)> = view
        .peers
        .iter()
        .enumerate()
        .filter_map(|(place, it)| Some((place, peers.get(&it.config.key)?.clone())))
        .collect();
    let of_peers = {
        let view = Arc::clone(&view);
        known.into_iter().flat_map(move |(place, peer)| {
            let peer = Arc::new(peer);
            let accepted = tables.adj_rib_in_post_policy.then_some(Table::AdjRibInPostPolicy);
            let sent = tables.adj_rib_out_post_policy.then_some(Table::AdjRibOutPostPolicy);
            let view = Arc::clone(&view);
            accepted
                .into_iter()
                .chain(sent)
                .flat_map(move |table| of_peer(Arc::clone(&view), place, Arc::clone(&peer), table))
        })
    };
    // Without a Peer Up none of its routes may be told (RFC 9069 §5.2).
    let node = Node::of(&view, at).filter(|_| tables.loc_rib);
    Tables::new(of_peers.chain(node.map(|node| of_node(view, node)).into_iter().flatten()))
}

fn of_peer(
    view: Arc<BgpView>,
    place: usize,
    peer: Arc<Peer>,
    table: Table,
) -> impl Iterator<Item = Bytes> + Send {
    let at = Stamp::UNAVAILABLE;
    let (path_ids, four_octet_as) = match table {
        Table::AdjRibOutPostPolicy => (peer.up.add_path_sent, peer.up.four_octet_as),
        _ => (peer.up.add_path_received, true),
    };
    let route = move |number: usize| -> Option<PeerRoute> {
        let peer = view.peers.get(place)?;
        let routes = match table {
            Table::AdjRibOutPostPolicy => &peer.advertised,
            _ => &peer.received,
        };
        routes.get(number).cloned()
    };
    let updates = (0..).map_while(route).filter_map(move |route| {
        let nlri = Nlri { prefix: route.prefix, path_id: route.path_id };
        update(nlri, Some(&route.attributes), four_octet_as, path_ids)
    });
    let families = peer.up.families;
    let marks = AddressFamily::ALL.into_iter().filter(move |it| families.contains(*it));
    updates
        .chain(marks.map(marker))
        .map(move |it| route_monitoring(&peer.monitored, table, at, &it))
}

fn of_node(view: Arc<BgpView>, node: Node) -> impl Iterator<Item = Bytes> + Send {
    let up = node.open().map(|open| loc_rib_up(&node.monitored, node.at, LOC_RIB_NAME, &open));
    let at = Stamp::UNAVAILABLE;
    let marks = AddressFamily::ALL.into_iter().map({
        let monitored = node.monitored.clone();
        move |family| route_monitoring(&monitored, Table::LocRib, at, &marker(family))
    });
    let (own_view, own_node) = (Arc::clone(&view), node.clone());
    let own = (0..).map_while(move |number: usize| {
        let route = own_view.routes.get(number)?;
        let before = number.checked_sub(1).and_then(|it| own_view.routes.get(it));
        if before.is_some_and(|it| it.prefix == route.prefix) {
            // Others are for other neighbours.
            return Some(None);
        }
        let chosen = Best::Originated(Arc::clone(&route.attributes));
        Some(best(&own_node, at, route.prefix, Some(&chosen)))
    });
    let learned = (0..).map_while(move |number: usize| {
        let route = view.learned.get(number)?;
        let chosen = Best::Learned(Arc::clone(&route.path.attributes));
        let is_best = route.lost_at.is_none();
        Some(is_best.then(|| best(&node, at, route.prefix, Some(&chosen))).flatten())
    });
    up.into_iter().chain(own.flatten()).chain(learned.flatten()).chain(marks)
}

pub(super) fn marker(family: AddressFamily) -> Bytes {
    let mut message = BytesMut::new();
    end_of_rib(family, &mut message);
    message.freeze()
}
