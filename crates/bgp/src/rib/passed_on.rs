//! Which attributes does a received path have when it is passed on, to another AS or inside ours (RFC 4271 §5)? Knows no
//! policy. Used by [`super::Exporter`].

use super::decision::LOCAL_PREF_DEFAULT;
use crate::wire::attribute::{code, flag};
use fairway_ground::{ExtendedCommunity, NextHop};
use fairway_seam::{PathAttributes, UnknownAttribute};

/// Received attributes for a neighbour in another AS: our AS prepended, our next hop, without those that must
/// stay in our AS (RFC 4271 §5.1.2 to §5.1.5).
pub(super) fn to_external(
    heard: &PathAttributes,
    local_asn: u32,
    next_hop: NextHop,
) -> PathAttributes {
    let extended_communities = transitive(&heard.extended_communities);
    let mut partial = heard.partial.clone();
    // An attribute that is left out has no Partial bit.
    partial.retain(|it| *it != code::EXTENDED_COMMUNITIES || !extended_communities.is_empty());
    PathAttributes {
        as_path: heard.as_path.prepended(local_asn),
        next_hop,
        med: None,
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
fn transitive(communities: &[ExtendedCommunity]) -> Vec<ExtendedCommunity> {
    communities.iter().filter(|it| it.is_transitive()).copied().collect()
}
