//! Which routers a node peers with, and with which settings.
//!
//! Knows no Service and no route. Called by `for_node`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_sessions::types::{FamilySet, Password, PeerConfig, PeerKey, RemoteAs, RouterId};

use crate::model::{ClusterIndex, Node, ObjectName, Peer, PeerPassword, any_matches};

use super::Fault;

/// The neighbours of `node` in the order of their keys, and the peers that had to be left out.
pub(super) fn of_node(index: &ClusterIndex, node: &Node) -> (Vec<PeerConfig>, Vec<Fault>) {
    let mut faults = Vec::new();
    let mut owners: BTreeMap<PeerKey, &ObjectName> = BTreeMap::new();
    let mut configs: BTreeMap<PeerKey, PeerConfig> = BTreeMap::new();
    let selected = |peer: &&Peer| any_matches(&peer.node_selectors, &node.labels);
    for peer in index.peers.values().filter(selected) {
        let key = PeerKey::from(peer.address);
        // A peer that is left out for its Secret keeps its address: were its double to take over
        // now, it would have to go again when the Secret appears.
        if let Some(owner) = owners.get(&key) {
            let (peer, other, address) = (peer.name.clone(), (*owner).clone(), peer.address);
            faults.push(Fault::SameAddress { peer, other, address });
            continue;
        }
        owners.insert(key, &peer.name);
        match password(index, peer) {
            Ok(password) => {
                configs.insert(key, config(peer, node, password));
            }
            Err(secret) => {
                faults.push(Fault::MissingSecret { peer: peer.name.clone(), secret });
            }
        }
    }
    (configs.into_values().collect(), faults)
}

fn config(peer: &Peer, node: &Node, password: Option<Password>) -> PeerConfig {
    let router_id = peer.router_id.unwrap_or_else(|| router_id(node));
    let remote_as = RemoteAs::Asn(peer.peer_asn);
    let basis = PeerConfig::new(PeerKey::from(peer.address), peer.my_asn, remote_as, router_id);
    PeerConfig {
        name: peer.name.name.clone(),
        port: peer.port,
        source_address: peer.source_address,
        hold_time: peer.hold_time,
        keepalive_interval: peer.keepalive_interval,
        connect_retry_interval: peer.connect_interval.unwrap_or(basis.connect_retry_interval),
        password,
        multihop: peer.ebgp_multihop,
        families: if peer.dual_stack { FamilySet::BOTH } else { basis.families },
        import: peer.import.clone(),
        pass_on: peer.pass_on.clone(),
        ..basis
    }
}

/// The key to use, or the Secret that should hold it and does not.
fn password(index: &ClusterIndex, peer: &Peer) -> Result<Option<Password>, ObjectName> {
    match &peer.password {
        PeerPassword::None => Ok(None),
        PeerPassword::Text(password) => Ok(Some(password.clone())),
        PeerPassword::Secret(name) => match index.secrets.get(name) {
            Some(password) => Ok(Some(password.clone())),
            None => Err(name.clone()),
        },
    }
}

/// The BGP identifier of a node towards peers that set none: its first IPv4 address, else a hash
/// of its name, which is as stable as the name and differs between nodes well enough.
pub fn router_id(node: &Node) -> RouterId {
    let address = node.addresses.iter().find_map(|address| match address {
        IpAddr::V4(address) => RouterId::new(u32::from(*address)),
        IpAddr::V6(_) => None,
    });
    address.unwrap_or_else(|| hashed(&node.name))
}

/// FNV-1a, 32 bits.
fn hashed(name: &str) -> RouterId {
    const OFFSET_BASIS: u32 = 0x811C_9DC5;
    const PRIME: u32 = 0x0100_0193;
    let mut hash =
        name.bytes().fold(OFFSET_BASIS, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(PRIME));
    loop {
        match RouterId::new(hash) {
            Some(router_id) => return router_id,
            // One name in four thousand million hashes to the forbidden zero.
            None => hash = OFFSET_BASIS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(addresses: &[&str]) -> Node {
        Node::assumed("node-1", addresses.iter().map(|text| text.parse().unwrap()).collect())
    }

    #[test]
    fn a_router_id_is_the_first_ipv4_address_or_else_a_hash_of_the_name() {
        let id = |addresses: &[&str]| router_id(&node(addresses)).to_string();
        assert_eq!(id(&["2001:db8::1", "192.0.2.7", "192.0.2.8"]), "192.0.2.7");
        assert_eq!(id(&["0.0.0.0", "192.0.2.8"]), "192.0.2.8");
        assert_eq!(id(&["2001:db8::1"]), id(&[]));
    }

    #[test]
    fn the_hash_is_that_of_the_published_test_vectors() {
        assert_eq!(hashed("a").get(), 0xE40C_292C);
        assert_eq!(hashed("foobar").get(), 0xBF9C_F968);
    }
}
