//! `show bgp neighbors [PEER]`: which neighbours are meant, and what is said of nobody.

use fairway_sessions::backend::PeerView;
use fairway_sessions::types::AddressFamily;

use super::object::Object;
use super::{ShowError, Snapshot, drain, neighbor, neighbors_json, neighbors_text};

/// Those called `wanted`, or everybody who is configured for `family`.
fn find<'a>(
    snapshot: &Snapshot<'a>,
    wanted: Option<&str>,
    family: Option<AddressFamily>,
) -> Vec<&'a PeerView> {
    let mut peers = neighbor::find(snapshot, wanted);
    if wanted.is_none() {
        peers.retain(|peer| family.is_none_or(|family| peer.config.families.contains(family)));
    }
    peers
}

/// One neighbour after the other.
pub(super) fn text(
    snapshot: &Snapshot<'_>,
    wanted: Option<&str>,
    family: Option<AddressFamily>,
) -> Result<String, ShowError> {
    let peers = find(snapshot, wanted, family);
    if !peers.is_empty() {
        let one = |peer| neighbors_text::one(peer) + &drain::line(snapshot.drain);
        let texts: Vec<_> = peers.into_iter().map(one).collect();
        return Ok(texts.join("\n"));
    }
    match wanted {
        Some(_) => Err(ShowError::NoSuchNeighbor),
        None => Ok("% No BGP neighbors found\n".to_owned()),
    }
}

/// An object by address.
pub(super) fn json(
    snapshot: &Snapshot<'_>,
    wanted: Option<&str>,
    family: Option<AddressFamily>,
) -> Object {
    let peers = find(snapshot, wanted, family);
    if peers.is_empty() && wanted.is_some() {
        return Object::new().field("bgpNoSuchNeighbor", true);
    }
    peers
        .into_iter()
        .map(|peer| {
            let fields = neighbors_json::one(peer, snapshot.now_epoch_seconds)
                .optional("drain", drain::json(snapshot.drain));
            (peer.config.key.to_string(), fields.into())
        })
        .collect()
}
