//! One JSON object: the neighbors by number, and a line for each path.

use std::borrow::Cow;

use fairway_ground::Prefix;
use fairway_seam::PathAttributes;
use serde_json::{Value, json};

use super::peers::Peers;
use super::{RibPieces, Route};
use crate::Stamp;
use crate::json::hex;

/// After the last route.
pub(super) const TAIL: &str = "\n]}\n";

pub(super) fn head(peers: &Peers, now: Stamp) -> String {
    let list = peers.list.iter().enumerate().map(|(number, peer)| {
        json!({
            "peer": number, "address": peer.address, "as": peer.asn, "routerId": peer.router_id,
        })
    });
    let list: Vec<_> = list.map(|it| it.to_string()).collect();
    let (taken_at, router_id) = (json!(now.rfc3339()), json!(peers.collector));
    format!(
        "{{\"takenAt\":{taken_at},\"routerId\":{router_id},\"peers\":[\n{}\n],\"routes\":[",
        list.join(",\n")
    )
}

/// Appends the paths to a prefix. How many do not fit.
pub(super) fn put_routes(
    rib: &mut RibPieces<'_>,
    prefix: Prefix,
    routes: &[Route<'_>],
    out: &mut Vec<u8>,
) -> u64 {
    let mut left_out = 0_u64;
    for route in routes {
        let Some(path) = path(rib, prefix, *route) else {
            left_out = left_out.saturating_add(1);
            continue;
        };
        out.extend_from_slice(if rib.sequence == 0 { b"\n" } else { b",\n" });
        rib.sequence = rib.sequence.saturating_add(1);
        out.extend_from_slice(path.to_string().as_bytes());
    }
    left_out
}

fn path(rib: &RibPieces<'_>, prefix: Prefix, route: Route<'_>) -> Option<Value> {
    let (peer, path_id, is_best, is_stale, attributes) = match route {
        Route::Originated(route) => {
            (Peers::OURSELVES, 0, true, false, Cow::Owned(rib.originated(route)))
        }
        Route::Learned(learned) => {
            let path = &learned.path;
            let peer = rib.peers.number(&path.source)?;
            let is_best = learned.lost_at.is_none();
            (peer, path.path_id.get(), is_best, learned.stale, Cow::Borrowed(&*path.attributes))
        }
    };
    let mut path = json!({
        "prefix": prefix.to_string(), "peer": peer, "pathId": path_id, "best": is_best,
        "stale": is_stale,
    });
    if let (Some(path), Value::Object(attributes)) = (path.as_object_mut(), values(&attributes)) {
        path.extend(attributes);
    }
    Some(path)
}

/// The attributes; one that is not there is null or empty.
fn values(attributes: &PathAttributes) -> Value {
    let texts = |texts: Vec<String>| Value::from(texts);
    let unknown: Vec<_> = attributes
        .unknown
        .iter()
        .map(|it| json!({"code": it.code, "flags": it.flags, "hex": hex(&it.value)}))
        .collect();
    json!({
        "origin": attributes.origin.name(),
        "asPath": attributes.as_path.to_string(),
        "nextHop": attributes.next_hop.address(),
        "med": attributes.med,
        "localPref": attributes.local_pref,
        "atomicAggregate": attributes.atomic_aggregate,
        "aggregator": attributes.aggregator.map(|it| json!({"as": it.asn, "routerId": it.router})),
        "communities": texts(attributes.communities.iter().map(ToString::to_string).collect()),
        "extendedCommunities":
            texts(attributes.extended_communities.iter().map(ToString::to_string).collect()),
        "largeCommunities":
            texts(attributes.large_communities.iter().map(ToString::to_string).collect()),
        "onlyToCustomer": attributes.only_to_customer,
        "otherAttributes": unknown,
    })
}
