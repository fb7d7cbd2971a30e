//! `show bgp neighbors [PEER] [graceful-restart]`: selects the neighbours, and answers if there are none.

use fairway_ground::AddressFamily;
use fairway_seam::PeerView;

use super::drain::DrainView;
use super::object::Object;
use super::{ShowError, Snapshot, graceful_restart, neighbor, neighbors_json, neighbors_text};

/// Those that `wanted` names, or all that are configured for `family`.
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

/// All selected neighbours as text.
pub(super) fn text(
    snapshot: &Snapshot<'_>,
    wanted: Option<&str>,
    family: Option<AddressFamily>,
) -> Result<String, ShowError> {
    let peers = find(snapshot, wanted, family);
    if peers.is_empty() {
        return nobody(wanted);
    }
    let one = |peer| neighbors_text::one(peer) + &DrainView::of(snapshot).line();
    Ok(peers.into_iter().map(one).collect::<Vec<_>>().join("\n"))
}

/// An object keyed by address.
pub(super) fn json(
    snapshot: &Snapshot<'_>,
    wanted: Option<&str>,
    family: Option<AddressFamily>,
) -> Object {
    let one = |peer: &PeerView| {
        neighbors_json::one(peer, snapshot.now_epoch_seconds)
            .optional("drain", DrainView::of(snapshot).json())
    };
    by_address(&find(snapshot, wanted, family), wanted, one)
}

/// Their graceful restart state as text.
pub(super) fn graceful_restart_text(
    snapshot: &Snapshot<'_>,
    wanted: Option<&str>,
    family: Option<AddressFamily>,
) -> Result<String, ShowError> {
    let peers = find(snapshot, wanted, family);
    if peers.is_empty() {
        return nobody(wanted);
    }
    let texts = peers.into_iter().map(graceful_restart::one_text);
    Ok(graceful_restart::HEAD.to_owned() + &texts.collect::<String>())
}

/// The same as an object keyed by address.
pub(super) fn graceful_restart_json(
    snapshot: &Snapshot<'_>,
    wanted: Option<&str>,
    family: Option<AddressFamily>,
) -> Object {
    by_address(&find(snapshot, wanted, family), wanted, graceful_restart::one_json)
}

fn nobody(wanted: Option<&str>) -> Result<String, ShowError> {
    match wanted {
        Some(_) => Err(ShowError::NoSuchNeighbor),
        None => Ok("% No BGP neighbors found\n".to_owned()),
    }
}

fn by_address(
    peers: &[&PeerView],
    wanted: Option<&str>,
    one: impl Fn(&PeerView) -> Object,
) -> Object {
    if peers.is_empty() && wanted.is_some() {
        return Object::new().field("bgpNoSuchNeighbor", true);
    }
    peers.iter().map(|peer| (peer.config.key.to_string(), one(peer).into())).collect()
}
