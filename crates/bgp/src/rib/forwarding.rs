//! By which routers do packets to a prefix go? Those of the best learned path, and of the paths that lost only to the last
//! steps of the selection, which decide between equals; while none of these can be reached, those of the next best.
//!
//! Knows no kernel. The speaker calls it for prefixes that have changed.

use std::collections::BTreeSet;

use super::decision::decide;
use super::routes::Routes;
use fairway_ground::InterfaceName;
use fairway_seam::{DecisionStep, GATEWAYS_MAX, Gateway, Path, PathSource, TrackedNextHop};

/// Ranks of routers: who has more paths than that has lost more routers at once.
const RANKS_MAX: u8 = 8;

/// The routers for packets in `vrf`, sorted; only paths of neighbours for which `is_installed` holds count. None for a prefix
/// that is originated here: its packets are for this machine.
///
/// `Ours:` paths with different neighbouring ASes are equals, as in FRR with `bestpath as-path multipath-relax`: the two
/// routers of a rack mostly have an AS each.
pub fn gateways(
    routes: &Routes,
    vrf: Option<InterfaceName>,
    is_installed: impl Fn(&PathSource) -> bool,
) -> Vec<Gateway> {
    if !routes.offers().is_empty() {
        return Vec::new();
    }
    let candidates = routes.paths().iter();
    let mut candidates: Vec<&Path> =
        candidates.filter(|it| it.source.key.vrf == vrf && is_installed(&it.source)).collect();
    // What nearly all prefixes have.
    if let [only] = candidates.as_slice() {
        return vec![gateway(0, only)];
    }
    let mut all: Vec<Gateway> = Vec::new();
    for rank in 0..RANKS_MAX {
        let steps = decide(&candidates, routes.meds());
        let (equals, others) = candidates.into_iter().zip(steps).partition::<Vec<_>, _>(is_equal);
        let gateways: BTreeSet<Gateway> =
            equals.into_iter().map(|(path, _)| gateway(rank, path)).collect();
        let is_new = |it: &Gateway| {
            !all.iter()
                .any(|known| (known.address, known.on_link_of) == (it.address, it.on_link_of))
        };
        let new: Vec<Gateway> = gateways.into_iter().filter(is_new).take(GATEWAYS_MAX).collect();
        all.extend(new);
        candidates = others.into_iter().map(|(path, _)| path).collect();
        if candidates.is_empty() {
            break;
        }
    }
    all
}

/// Whether a path is as good as the best one.
fn is_equal((_, lost_at): &(&Path, Option<DecisionStep>)) -> bool {
    use DecisionStep::{PathId, PeerAddress, RouterId};
    matches!(lost_at, None | Some(RouterId | PeerAddress | PathId))
}

fn gateway(rank: u8, path: &Path) -> Gateway {
    let TrackedNextHop { address, on_link_of, .. } = tracked(path);
    Gateway { rank, address, on_link_of }
}

/// The next hop of a path, where its neighbour is.
pub(super) fn tracked(path: &Path) -> TrackedNextHop {
    let (key, next_hop) = (path.source.key, path.attributes.next_hop);
    let on_link_of = next_hop.is_link_local().then_some(key.remote);
    TrackedNextHop { vrf: key.vrf, address: next_hop.address(), on_link_of }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use super::*;
    use fairway_ground::{AsPath, Asn, NextHop, PeerKey, PeerKind, Prefix, RouterId};
    use fairway_seam::{DesiredRoute, PathAttributes, RouteAttributes, RouteChange};

    use crate::rib::LocRib;

    const PREFIX: &str = "203.0.113.0/24";

    fn source(number: u8, kind: PeerKind, vrf: Option<&str>) -> Arc<PathSource> {
        let address = IpAddr::from([192, 0, 2, number]);
        let vrf = vrf.map(|name| name.parse().unwrap());
        Arc::new(PathSource {
            key: PeerKey { vrf, ..PeerKey::from(address) },
            address,
            kind,
            remote_asn: Asn::new(65_000 + u32::from(number)).unwrap(),
            router_id: RouterId::new(u32::from(number)).unwrap(),
            is_client: false,
        })
    }

    /// Learned from `source` by way of so many ASes, with its address as the next hop.
    fn learn(rib: &mut LocRib, source: &Arc<PathSource>, hops: usize) {
        let IpAddr::V4(address) = source.address else { panic!() };
        let as_path = AsPath::sequence(vec![source.remote_asn.get(); hops]);
        let attributes = PathAttributes::originated(as_path, NextHop::Ipv4(address));
        let nlri = PREFIX.parse().unwrap();
        rib.learn(source, [RouteChange { nlri, attributes: Some(Arc::new(attributes)) }]);
        rib.take_changes();
    }

    fn of(rib: &LocRib, vrf: Option<&str>, is_installed: impl Fn(u8) -> bool) -> Vec<String> {
        let routes = rib.routes_to(PREFIX.parse::<Prefix>().unwrap()).unwrap();
        let number = |it: &PathSource| u8::try_from(it.router_id.get()).unwrap();
        let vrf = vrf.map(|name| name.parse().unwrap());
        let gateways = gateways(routes, vrf, |it| is_installed(number(it)));
        let text = |it: &Gateway| format!("{}{}", "+".repeat(it.rank.into()), it.address);
        gateways.iter().map(text).collect()
    }

    #[test]
    fn equals_share_the_packets_whatever_their_as() {
        let mut rib = LocRib::default();
        for (number, hops) in [(1, 2), (2, 2), (3, 3)] {
            learn(&mut rib, &source(number, PeerKind::External, None), hops);
        }
        assert_eq!(of(&rib, None, |_| true), ["192.0.2.1", "192.0.2.2", "+192.0.2.3"]);
        // An internal path loses before that, and comes before a longer one.
        learn(&mut rib, &source(4, PeerKind::Internal, None), 2);
        let expected = ["192.0.2.1", "192.0.2.2", "+192.0.2.4", "++192.0.2.3"];
        assert_eq!(of(&rib, None, |_| true), expected);
    }

    #[test]
    fn a_neighbour_whose_routes_are_not_installed_does_not_win() {
        let mut rib = LocRib::default();
        learn(&mut rib, &source(1, PeerKind::External, None), 1);
        learn(&mut rib, &source(2, PeerKind::External, None), 2);
        assert_eq!(of(&rib, None, |number| number == 2), ["192.0.2.2"]);
        assert_eq!(of(&rib, None, |_| false), [""; 0]);
    }

    #[test]
    fn each_vrf_has_its_own_best_paths() {
        let mut rib = LocRib::default();
        learn(&mut rib, &source(1, PeerKind::External, None), 1);
        learn(&mut rib, &source(2, PeerKind::External, Some("red")), 2);
        assert_eq!(of(&rib, None, |_| true), ["192.0.2.1"]);
        assert_eq!(of(&rib, Some("red"), |_| true), ["192.0.2.2"]);
        assert_eq!(of(&rib, Some("blue"), |_| true), [""; 0]);
    }

    #[test]
    fn what_is_originated_here_is_not_forwarded() {
        let mut rib = LocRib::default();
        learn(&mut rib, &source(1, PeerKind::External, None), 1);
        rib.set(vec![DesiredRoute {
            prefix: PREFIX.parse().unwrap(),
            peers: Arc::default(),
            attributes: Arc::new(RouteAttributes::default()),
        }]);
        assert_eq!(of(&rib, None, |_| true), [""; 0]);
    }

    #[test]
    fn an_address_of_a_link_names_the_neighbour_there() {
        let mut rib = LocRib::default();
        let source = source(1, PeerKind::External, None);
        let next_hop = NextHop::Ipv6 { global: "fe80::1".parse().unwrap(), link_local: None };
        let attributes = PathAttributes::originated(AsPath::default(), next_hop);
        let attributes = Some(Arc::new(attributes));
        rib.learn(&source, [RouteChange { nlri: PREFIX.parse().unwrap(), attributes }]);
        let routes = rib.routes_to(PREFIX.parse().unwrap()).unwrap();
        let gateway = Gateway {
            rank: 0,
            address: "fe80::1".parse().unwrap(),
            on_link_of: Some(source.key.remote),
        };
        assert_eq!(gateways(routes, None, |_| true), [gateway]);
    }
}
