//! `show bgp neighbors [PEER]`: which neighbours are meant, and what is said of nobody.

use super::object::Object;
use super::{ShowError, Snapshot, neighbor, neighbors_json, neighbors_text};

/// One neighbour after the other.
pub(super) fn text(snapshot: &Snapshot<'_>, wanted: Option<&str>) -> Result<String, ShowError> {
    let peers = neighbor::find(snapshot, wanted);
    if !peers.is_empty() {
        let texts: Vec<_> = peers.into_iter().map(neighbors_text::one).collect();
        return Ok(texts.join("\n"));
    }
    match wanted {
        Some(_) => Err(ShowError::NoSuchNeighbor),
        None => Ok("% No BGP neighbors found\n".to_owned()),
    }
}

/// An object by address.
pub(super) fn json(snapshot: &Snapshot<'_>, wanted: Option<&str>) -> Object {
    let peers = neighbor::find(snapshot, wanted);
    if peers.is_empty() && wanted.is_some() {
        return Object::new().field("bgpNoSuchNeighbor", true);
    }
    peers
        .into_iter()
        .map(|peer| {
            let fields = neighbors_json::one(peer, snapshot.now_epoch_seconds);
            (peer.config.key.to_string(), fields.into())
        })
        .collect()
}
