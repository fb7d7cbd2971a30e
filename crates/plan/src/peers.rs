//! Which routers a node peers with, and with which settings.
//!
//! Knows no Service and no route. Called by the planner.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairway_ground::{
    AoKey, AoKeys, BmpStation, FamilySet, ListenRange, Password, PeerKey, Remote, RouterId,
    RpkiServer,
};
use fairway_model::{
    AoKeyReference, BgpConfiguration, ClusterIndex, Node, ObjectName, Peer, PeerPassword, Secret,
    any_matches,
};
use fairway_seam::{PeerBfd, PeerConfig};

use super::{Fault, Gateways};

/// The neighbours of `node` in the order of their keys, and the peers that had to be left out. Without `gateways`, which
/// only the node itself knows, a neighbour that is one of them has no address.
pub(super) fn of_node(
    index: &ClusterIndex,
    node: &Node,
    gateways: Option<&Gateways>,
) -> (Vec<PeerConfig>, Vec<Fault>) {
    let mut faults = Vec::new();
    let mut owners: BTreeMap<PeerKey, &ObjectName> = BTreeMap::new();
    let mut configs: BTreeMap<PeerKey, PeerConfig> = BTreeMap::new();
    let selected = |peer: &&Peer| any_matches(&peer.node_selectors, &node.labels);
    // One that is named by its address precedes another that turns out to be at that address.
    let (found, named): (Vec<&Peer>, Vec<&Peer>) =
        index.peers.values().filter(selected).partition(|it| it.is_default_gateway());
    for peer in named.into_iter().chain(found) {
        let key = match resolved(peer, gateways) {
            Ok(key) => key,
            Err(fault) => {
                faults.push(*fault);
                continue;
            }
        };
        // A peer that is left out for its Secret keeps its place: if another with the same key took over
        // now, it would have to go again when the Secret appears.
        if let Some(owner) = owners.get(&key) {
            let (peer, other) = (peer.name.clone(), (*owner).clone());
            faults.push(Fault::SameRemote { peer, other, key: Box::new(key) });
            continue;
        }
        owners.insert(key, &peer.name);
        match config(index, peer, key, node) {
            Ok(config) => {
                configs.insert(key, config);
            }
            Err(MissingKey { secret, key }) => {
                let peer = peer.name.clone();
                faults.push(Fault::MissingSecret { peer, secret: secret.clone(), key: key.into() });
            }
        }
    }
    (configs.into_values().collect(), faults)
}

/// The key of the peer on a node with these default gateways.
fn resolved(peer: &Peer, gateways: Option<&Gateways>) -> Result<PeerKey, Box<Fault>> {
    let key = peer.key();
    let (Remote::DefaultGateway(family), Some(gateways)) = (key.remote, gateways) else {
        return Ok(key);
    };
    let (name, vrf) = (peer.name.clone(), key.vrf);
    match gateways.get(&(vrf, family)).copied() {
        None => Err(Box::new(Fault::NoGateway { peer: name, family, vrf })),
        Some(address @ IpAddr::V6(it)) if it.is_unicast_link_local() => {
            Err(Box::new(Fault::LinkLocalGateway { peer: name, address }))
        }
        Some(address) => Ok(PeerKey { remote: Remote::Address(address), vrf }),
    }
}

/// Those that select `node`.
fn configurations<'a>(
    index: &'a ClusterIndex,
    node: &'a Node,
) -> impl Iterator<Item = &'a BgpConfiguration> {
    let all = index.bgp_configurations.values();
    all.filter(|it| any_matches(&it.node_selectors, &node.labels))
}

/// Whether one of them compares the MED of all paths.
pub(super) fn always_compares_med(index: &ClusterIndex, node: &Node) -> bool {
    configurations(index, node).any(|it| it.always_compare_med)
}

/// The RPKI caches that `node` asks, up to their maximum, and those that had to be left out.
pub(super) fn rpki_servers(
    index: &ClusterIndex,
    node: &Node,
) -> (BTreeSet<RpkiServer>, Vec<Fault>) {
    let (mut servers, mut faults) = (BTreeSet::new(), Vec::new());
    for configuration in configurations(index, node) {
        for server in &configuration.rpki_servers {
            if servers.len() < RpkiServer::COUNT_MAX || servers.contains(server) {
                servers.insert(server.clone());
                continue;
            }
            let configuration = configuration.name.clone();
            faults.push(Fault::TooManyRpkiServers { configuration, server: server.clone() });
        }
    }
    (servers, faults)
}

/// The BMP stations that `node` connects to, and those that had to be left out.
pub(super) fn bmp_stations(
    index: &ClusterIndex,
    node: &Node,
) -> (BTreeSet<BmpStation>, Vec<Fault>) {
    let (mut stations, mut faults) = (BTreeSet::<BmpStation>::new(), Vec::new());
    for configuration in configurations(index, node) {
        for station in &configuration.bmp_stations {
            if stations.contains(station) {
                continue;
            }
            let why = if stations.iter().any(|it| it.is_at(station)) {
                "another BGPConfiguration tells it something else"
            } else if stations.len() >= BmpStation::COUNT_MAX {
                "one node connects to at most 8"
            } else {
                stations.insert(station.clone());
                continue;
            };
            let configuration = configuration.name.clone();
            let station = station.to_string();
            faults.push(Fault::BmpStationLeftOut { configuration, station, why });
        }
    }
    (stations, faults)
}

/// A Secret that lacks a required key.
struct MissingKey<'a> {
    secret: &'a ObjectName,
    key: &'a str,
}

fn config<'a>(
    index: &'a ClusterIndex,
    peer: &'a Peer,
    key: PeerKey,
    node: &Node,
) -> Result<PeerConfig, MissingKey<'a>> {
    let router_id = peer.router_id.unwrap_or_else(|| router_id(node));
    let local_asn = peer.local_asn.unwrap_or(peer.my_asn);
    let basis = PeerConfig::new(key, local_asn, peer.remote_as, router_id);
    Ok(PeerConfig {
        name: peer.name.name.clone(),
        listen_range: match peer.remote {
            Remote::Range(prefix) => Some(ListenRange { prefix, limit: peer.listen_limit }),
            Remote::Address(_) | Remote::Interface(_) | Remote::DefaultGateway(_) => None,
        },
        router_asn: peer.my_asn,
        passive: peer.passive,
        shutdown: peer.shutdown.clone(),
        port: peer.port,
        source_address: peer.source_address,
        hold_time: peer.hold_time,
        keepalive_interval: peer.keepalive_interval,
        connect_retry_interval: peer.connect_interval.unwrap_or(basis.connect_retry_interval),
        password: password(index, peer)?,
        tcp_ao: ao_keys(index, peer)?,
        multihop: peer.ebgp_multihop,
        ttl_security_hops: peer.ttl_security_hops,
        families: if peer.dual_stack { FamilySet::BOTH } else { basis.families },
        extended_next_hop: peer.extended_next_hop,
        add_path: peer.add_path,
        client: peer.client,
        cluster_id: peer.cluster_id,
        role: peer.role,
        role_strict: peer.role_strict,
        graceful_restart: peer.graceful_restart,
        import: peer.import.clone(),
        pass_on: peer.pass_on.clone(),
        pass_on_rules: Arc::clone(&peer.pass_on_rules),
        next_hops: peer.next_hops,
        install_routes: peer.install_routes,
        bfd: bfd(index, peer)?,
        ..basis
    })
}

/// The TCP-MD5 key to use.
fn password<'a>(index: &ClusterIndex, peer: &'a Peer) -> Result<Option<Password>, MissingKey<'a>> {
    match &peer.password {
        PeerPassword::None => Ok(None),
        PeerPassword::Text(password) => Ok(Some(password.clone())),
        PeerPassword::Secret(name) => {
            let password = index.secrets.get(name).and_then(|secret| secret.password.clone());
            password.map(Some).ok_or(MissingKey { secret: name, key: "password" })
        }
    }
}

/// The keys of TCP-AO to use.
fn ao_keys<'a>(index: &ClusterIndex, peer: &'a Peer) -> Result<AoKeys, MissingKey<'a>> {
    let value = |it: &AoKeyReference| -> Option<AoKey> {
        let secret: &Secret = index.secrets.get(&it.secret)?;
        let value = secret.values.get(&it.key)?;
        AoKey::new(it.send_id, it.recv_id, it.algorithm, value.expose()).ok()
    };
    let Some(last) = peer.tcp_ao.last() else { return Ok(AoKeys::default()) };
    let mut keys = Vec::with_capacity(peer.tcp_ao.len());
    for it in &peer.tcp_ao {
        keys.push(value(it).ok_or(MissingKey { secret: &it.secret, key: &it.key })?);
    }
    // `resources` refuses invalid lists. If one got here, no session is better than one without a
    // signature.
    AoKeys::new(keys).map_err(|_| MissingKey { secret: &last.secret, key: &last.key })
}

/// How BFD monitors the path. The parser has checked that the profile exists.
fn bfd<'a>(index: &'a ClusterIndex, peer: &Peer) -> Result<Option<PeerBfd>, MissingKey<'a>> {
    let Some(name) = &peer.bfd_profile else { return Ok(None) };
    let profile = index.bfd_profiles.values().find(|it| it.name.name == *name);
    let Some(profile) = profile else { return Ok(None) };
    let authentication = profile.authentication.as_ref().map(|it| {
        let value = index.secrets.get(&it.secret).and_then(|secret| secret.values.get(&it.key));
        // Without its key there is no session: a requested signature is never dropped silently.
        value
            .and_then(|value| it.with(value))
            .ok_or(MissingKey { secret: &it.secret, key: &it.key })
    });
    let settings = profile.settings(authentication.transpose()?);
    Ok(Some(PeerBfd { profile: name.clone(), settings, strict: peer.bfd_strict }))
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
            // One name in four thousand million hashes to zero, which is not allowed.
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
