//! Which attributes does a received path have when it is passed on, to another AS or inside ours (RFC 4271 §5)? Knows no
//! policy. Used by [`super::Exporter`].

use super::decision::LOCAL_PREF_DEFAULT;
use crate::wire::attribute::{code, flag};
use fairway_ground::{ClusterId, ExtendedCommunity, NextHop, RouterId};
use fairway_seam::{PathAttributes, UnknownAttribute};
use thin_vec::ThinVec;

/// Received attributes for a neighbour in another AS: our AS prepended, our next hop, without those that must
/// stay in our AS (RFC 4271 §5.1.2 to §5.1.5).
pub(super) fn to_external(
    heard: &PathAttributes,
    local_asn: u32,
    next_hop: NextHop,
) -> PathAttributes {
    let as_path = heard.as_path.prepended(local_asn);
    PathAttributes { as_path, med: None, ..to_client_of_server(heard, next_hop) }
}

/// Received attributes for a client of our route server, in another AS: neither our AS nor our next hop, and
/// MULTI_EXIT_DISC stays (RFC 7947 §2.2). What must not leave an AS does not.
pub(super) fn to_client_of_server(heard: &PathAttributes, next_hop: NextHop) -> PathAttributes {
    let extended_communities = transitive(&heard.extended_communities);
    let mut partial = heard.partial.clone();
    // An attribute that is left out has no Partial bit.
    partial.retain(|it| *it != code::EXTENDED_COMMUNITIES || !extended_communities.is_empty());
    PathAttributes {
        next_hop,
        local_pref: None,
        extended_communities,
        partial,
        unknown: heard.unknown.iter().filter_map(passed_on).collect(),
        ..heard.clone()
    }
}

/// Attributes received from another AS, for a neighbour in ours: unchanged, with a LOCAL_PREF (RFC 4271
/// §5.1.5). A link-local next hop is valid only on its own link (RFC 2545 §3): it is replaced by ours.
pub(super) fn to_internal(heard: &PathAttributes, next_hop: NextHop) -> PathAttributes {
    PathAttributes {
        next_hop,
        local_pref: Some(heard.local_pref.unwrap_or(LOCAL_PREF_DEFAULT)),
        unknown: heard.unknown.iter().filter_map(passed_on).collect(),
        ..heard.clone()
    }
}

/// Attributes received from an internal neighbour with the identifier `from`, for another one: unchanged, with the router
/// that brought the route into the AS and the clusters that it has passed, ours first (RFC 4456 §8).
pub(super) fn reflected(
    heard: &PathAttributes,
    next_hop: NextHop,
    from: RouterId,
    cluster_id: Option<ClusterId>,
) -> PathAttributes {
    let originator = heard.originator().map_or(from.get(), u32::from).to_be_bytes().to_vec();
    let clusters = cluster_id.map(ClusterId::address).into_iter().chain(heard.clusters());
    let clusters = clusters.flat_map(|it| it.octets()).collect();
    let mut attributes = to_internal(heard, next_hop);
    for (code, value) in [(code::ORIGINATOR_ID, originator), (code::CLUSTER_LIST, clusters)] {
        attributes.unknown.push(UnknownAttribute { flags: flag::OPTIONAL, code, value });
    }
    attributes.unknown.sort_unstable_by_key(|it| it.code);
    attributes
}

/// An attribute that we do not interpret, as it is passed on: transitive ones with the Partial bit, others
/// not at all (RFC 4271 §5).
fn passed_on(attribute: &UnknownAttribute) -> Option<UnknownAttribute> {
    // The other bits are undefined and are sent as zero (RFC 4271 §4.3).
    let flags = flag::OPTIONAL | flag::TRANSITIVE | flag::PARTIAL;
    let is_transitive = attribute.flags & flag::TRANSITIVE != 0;
    is_transitive.then(|| UnknownAttribute {
        flags: attribute.flags & flags | flag::PARTIAL,
        ..attribute.clone()
    })
}

/// Each extended community determines itself whether it leaves the AS (RFC 4360 §6).
fn transitive(communities: &[ExtendedCommunity]) -> ThinVec<ExtendedCommunity> {
    communities.iter().filter(|it| it.is_transitive()).copied().collect()
}
