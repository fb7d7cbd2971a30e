//! What does MetalLB refuse in one of its modes? As long as one object has a setting that its mode lacks, its daemons apply no
//! configuration at all: no peer, no pool. Called by `super` for the modes that `fairway check --for` names.

use fairway_ground::AddressFamily;
use fairway_model::{
    BgpAdvertisement, ClusterIndex, CommunityReference, CommunityValue, Kind, ObjectName, Peer,
    Pool, any_matches,
};
use fairway_resources::{Finding, Severity};

use super::Report;

/// How MetalLB's speakers speak BGP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Mode {
    /// By themselves.
    Native,
    /// By an FRR beside each speaker.
    Frr,
}

/// A field, and whether a peer has a value of it that counts.
type PeerField = (&'static str, fn(&Peer) -> bool);

/// What the native mode lacks of a BGPPeer.
const PEER_FIELDS: [PeerField; 9] = [
    ("spec.bfdProfile", |it| it.bfd_profile.is_some()),
    ("spec.keepaliveTime", |it| it.keepalive_interval.is_some()),
    ("spec.vrf", |it| it.vrf.is_some()),
    ("spec.connectTime", |it| it.connect_interval.is_some()),
    ("spec.enableGracefulRestart", |it| it.graceful_restart.is_some()),
    ("spec.dualStackAddressFamily", |it| it.dual_stack),
    ("spec.localASN", |it| it.local_asn.is_some()),
    ("spec.dynamicASN", |_| true),
    ("spec.interface", |_| true),
];

impl Report<'_> {
    pub(super) fn refused(&self, mode: Mode, index: &ClusterIndex) -> Vec<Finding> {
        let mut findings = self.prepends(mode, index);
        match mode {
            Mode::Native => findings.extend(self.refused_by_native(index)),
            Mode::Frr => findings.extend(self.peers_that_do_not_go_together(index)),
        }
        findings
    }

    fn refusal(&self, kind: Kind, name: &ObjectName, field: Option<&str>, why: &str) -> Finding {
        let message = format!(
            "{why}: MetalLB refuses it in this mode, and its daemons apply no configuration as long as it is there; \
             change it before"
        );
        self.finding(Severity::Fault, kind, name, field, message)
    }

    /// Neither of these modes has it; that of frr-k8s does.
    fn prepends(&self, mode: Mode, index: &ClusterIndex) -> Vec<Finding> {
        let field = "spec.asPathPrepend";
        let all = index.bgp_advertisements.values().filter(|it| it.as_path_prepend > 0);
        let why = match mode {
            Mode::Native => "only the mode frr-k8s has it",
            Mode::Frr => "only the mode frr-k8s has it, not that with FRR in the speaker's Pod",
        };
        all.map(|it| self.refusal(Kind::BgpAdvertisement, &it.name, Some(field), why)).collect()
    }

    fn refused_by_native(&self, index: &ClusterIndex) -> Vec<Finding> {
        let mut findings = Vec::new();
        let why = "the native mode has no such setting";
        for peer in index.peers.values() {
            let set = PEER_FIELDS.iter().filter(|(field, is_set)| {
                is_set(peer) && self.is_written(Kind::BgpPeer, &peer.name, field)
            });
            let set = set.map(|(field, _)| *field);
            // Fairway ignores it, so the peer does not have it.
            let ignored = Some("spec.disableMP");
            let ignored = ignored.filter(|field| self.is_set(Kind::BgpPeer, &peer.name, field));
            findings.extend(
                set.chain(ignored)
                    .map(|field| self.refusal(Kind::BgpPeer, &peer.name, Some(field), why)),
            );
        }
        for name in index.bfd_profiles.keys() {
            findings.push(self.refusal(Kind::BfdProfile, name, None, "the native mode has no BFD"));
        }
        let is_announced = |pool: &Pool| {
            let all = &mut index.bgp_advertisements.values();
            all.any(|it| it.selects_pool(&pool.name.name, &pool.labels))
        };
        let has_ipv6 =
            |pool: &&Pool| pool.ranges.iter().any(|it| it.family() == AddressFamily::Ipv6Unicast);
        for pool in index.pools.values().filter(has_ipv6).filter(|it| is_announced(it)) {
            let why = "has IPv6 addresses that a BGPAdvertisement announces, which the native mode cannot";
            findings.push(self.refusal(
                Kind::IpAddressPool,
                &pool.name,
                Some("spec.addresses"),
                why,
            ));
        }
        let why = "the native mode has no large communities";
        let has_large = |it: &&BgpAdvertisement| {
            let large = |it: &CommunityReference| {
                matches!(it, CommunityReference::Value(CommunityValue::Large(_)))
            };
            it.communities.iter().any(large)
        };
        for it in index.bgp_advertisements.values().filter(has_large) {
            let field = Some("spec.communities");
            findings.push(self.refusal(Kind::BgpAdvertisement, &it.name, field, why));
        }
        for it in index.communities.values() {
            if it.aliases.values().any(|value| matches!(value, CommunityValue::Large(_))) {
                let field = Some("spec.communities");
                findings.push(self.refusal(Kind::Community, &it.name, field, why));
            }
        }
        findings
    }

    /// FRR has one router ID, and one AS for each VRF; other peers are for other nodes.
    fn peers_that_do_not_go_together(&self, index: &ClusterIndex) -> Vec<Finding> {
        let mut findings = Vec::new();
        let peers: Vec<&Peer> = index.peers.values().collect();
        for (position, peer) in peers.iter().enumerate() {
            let earlier = peers.iter().take(position).filter(|it| share_a_node(index, it, peer));
            for other in earlier {
                let name = &other.name.name;
                let different = if peer.router_id != other.router_id {
                    Some(("spec.routerID", "router ID"))
                } else if peer.my_asn != other.my_asn && peer.vrf == other.vrf {
                    Some(("spec.myASN", "AS of its own"))
                } else {
                    None
                };
                if let Some((field, what)) = different {
                    let why = format!("has another {what} than the peer {name} on the same node");
                    findings.push(self.refusal(Kind::BgpPeer, &peer.name, Some(field), &why));
                    break;
                }
            }
        }
        findings
    }
}

/// Whether some node has both. Without Nodes in the files: whether they may.
fn share_a_node(index: &ClusterIndex, one: &Peer, other: &Peer) -> bool {
    if one.node_selectors == other.node_selectors || index.nodes.is_empty() {
        return one.node_selectors == other.node_selectors
            || one.node_selectors.is_empty()
            || other.node_selectors.is_empty();
    }
    index.nodes.values().any(|node| {
        let takes = |it: &Peer| {
            it.node_selectors.is_empty() || any_matches(&it.node_selectors, &node.labels)
        };
        takes(one) && takes(other)
    })
}
