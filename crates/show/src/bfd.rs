//! `show bfd peers [brief|counters]` and `show bfd peer`: the BFD sessions.
//!
//! FRR's keys and lines, in FRR's order. Left out are FRR's `label`, and `interface` if a session is not
//! bound to one. Sessions that are no longer configured and only announce AdminDown are not shown.
//!
//! Ours, after FRR's: in JSON `agreed-...`, `detection-time`, `polling`, `remote-demand`,
//! `remote-control-plane-independent`, `authentication`, `stalls`, `detections-put-off`, `dropped` and
//! `realtime`; among the counters `transmit-failures`, `echo-looped`, `stalls`, `detections-put-off` and
//! `dropped`; in both `trouble` and `ended`, which hold for all sessions, as `realtime` does: FRR's JSON has
//! no place beside them. In the text the lines below `Agreed`, and those on stalls, dropped packets, the
//! real-time class, and failures.

mod json;
mod text;

use std::net::IpAddr;

use fairway_seam::BgpView;
use fairway_seam::bfd::{BfdSessionView, BfdView};
use serde_json::Value;

use super::object::Object;
use super::{BfdDetail, ShowError, Snapshot, neighbor};

/// The sessions that are shown.
fn sessions(bgp: &BgpView) -> impl Iterator<Item = &BfdSessionView> {
    let all = bgp.bfd.as_ref().map(|it| it.sessions.as_slice()).unwrap_or_default();
    all.iter().filter(|it| !it.is_closing)
}

/// The session with the neighbour at this address, or of this name.
fn find<'a>(snapshot: &Snapshot<'a>, peer: &str) -> Result<&'a BfdSessionView, ShowError> {
    let is_it: Box<dyn Fn(&&BfdSessionView) -> bool> = match peer.parse::<IpAddr>() {
        Ok(address) => Box::new(move |it| it.path.remote == address),
        Err(_) => {
            let called = neighbor::find(snapshot, Some(peer));
            Box::new(move |it| called.iter().any(|peer| peer.bfd_path == Some(it.path)))
        }
    };
    sessions(snapshot.bgp).find(is_it).ok_or_else(|| ShowError::NoSuchBfdPeer(peer.to_owned()))
}

/// `text`, followed by what holds for all sessions.
fn with_node(snapshot: &Snapshot<'_>, text: String) -> String {
    let node = snapshot.bgp.bfd.as_ref().map(text::node).filter(|node| !node.is_empty());
    node.map_or_else(|| text.clone(), |node| format!("{text}\n{node}"))
}

/// All sessions as text.
pub(super) fn text(snapshot: &Snapshot<'_>, detail: BfdDetail) -> String {
    let all = sessions(snapshot.bgp);
    let blocks: Vec<String> = match detail {
        BfdDetail::Full => all.map(text::one).collect(),
        BfdDetail::Counters => all.map(text::counters).collect(),
        BfdDetail::Brief => {
            return with_node(snapshot, text::brief(&all.collect::<Vec<_>>()));
        }
    };
    with_node(snapshot, format!("BFD Peers:\n{}", blocks.join("\n")))
}

/// All sessions as JSON.
pub(super) fn json(snapshot: &Snapshot<'_>, detail: BfdDetail) -> Value {
    let node = snapshot.bgp.bfd.as_ref();
    let of = |it| Value::from(object(it, detail, node));
    Value::Array(sessions(snapshot.bgp).map(of).collect())
}

/// One session as text.
pub(super) fn peer_text(
    snapshot: &Snapshot<'_>,
    peer: &str,
    detail: BfdDetail,
) -> Result<String, ShowError> {
    let session = find(snapshot, peer)?;
    let one = match detail {
        BfdDetail::Counters => text::counters(session),
        BfdDetail::Full | BfdDetail::Brief => text::one(session),
    };
    Ok(with_node(snapshot, format!("BFD Peer:\n{one}")))
}

/// One session as JSON.
pub(super) fn peer_json(
    snapshot: &Snapshot<'_>,
    peer: &str,
    detail: BfdDetail,
) -> Result<Object, ShowError> {
    Ok(object(find(snapshot, peer)?, detail, snapshot.bgp.bfd.as_ref()))
}

fn object(session: &BfdSessionView, detail: BfdDetail, node: Option<&BfdView>) -> Object {
    match detail {
        BfdDetail::Counters => json::counters(session, node),
        // FRR has no JSON of its own for `brief`.
        BfdDetail::Full | BfdDetail::Brief => json::one(session, node),
    }
}
