//! `fairway clear bgp`: which sessions the name stands for, and the outcome of each.

use std::fmt::Write;

use fairway_ground::AddressFamily;
use fairway_seam::{Backend, BgpView, Clear, PeerView, ViewScope};
use fairway_show::language::ClearOrder;
use fairway_show::{VRF_DEFAULT, VrfSelection, neighbors_called, remote_asn};

use super::Answer;

/// All neighbours, as `clear bgp *` means them on a router.
const EVERYBODY: &str = "*";

/// All neighbours of another AS.
const EXTERNAL: &str = "external";

/// Clears the sessions that `order` names, and reports each in a line. Ours: a family chooses neighbours; a refresh is one of
/// all families of the session, where FRR refreshes that one.
pub(super) async fn clear(backend: &dyn Backend, order: &ClearOrder) -> Answer {
    let view = match backend.view(ViewScope::SESSIONS).await {
        Ok(view) => view,
        Err(error) => return Answer::Error(error.to_string()),
    };
    let peers = wanted(&view, order);
    if peers.is_empty() {
        let known: Vec<_> = view.peers.iter().map(|it| it.config.key.to_string()).collect();
        let known = if known.is_empty() { "there are none".to_owned() } else { known.join(", ") };
        return Answer::Error(format!("% No such neighbor: {}; known: {known}", described(order)));
    }
    let (mut done, mut failed) = (String::new(), String::new());
    for PeerView { config, .. } in peers {
        let (key, name) = (config.key, &config.name);
        let _ = match backend.clear(key, order.how).await {
            Ok(()) => writeln!(done, "{key} ({name}): {}", outcome(order.how)),
            Err(error) => writeln!(failed, "{key} ({name}): {error}"),
        };
    }
    // If some of several are down, the command still succeeds for the others.
    match (done.is_empty(), failed.is_empty()) {
        (true, _) => Answer::Error(failed.trim_end().to_owned()),
        (false, _) => Answer::Output(done + &failed),
    }
}

fn wanted<'a>(view: &'a BgpView, order: &ClearOrder) -> Vec<&'a PeerView> {
    let is_external = |peer: &&PeerView| remote_asn(peer) != peer.config.local_asn.get();
    let mut peers = match order.wanted.as_str() {
        EVERYBODY => neighbors_called(view, None),
        EXTERNAL => view.peers.iter().filter(is_external).collect(),
        name => neighbors_called(view, Some(name)),
    };
    // A BGPPeer may have a number for a name.
    if let (true, Ok(asn)) = (peers.is_empty(), order.wanted.parse::<u32>()) {
        peers = view.peers.iter().filter(|peer| remote_asn(peer) == asn && asn != 0).collect();
    }
    peers.retain(|peer| is_in_vrf(peer, &order.vrf));
    peers.retain(|peer| order.family.is_none_or(|family| is_configured_for(peer, family)));
    peers
}

fn is_in_vrf(peer: &PeerView, selection: &VrfSelection) -> bool {
    match (selection, peer.config.key.vrf) {
        (VrfSelection::Undivided | VrfSelection::All, _) => true,
        (VrfSelection::Named(name), None) => name == VRF_DEFAULT,
        (VrfSelection::Named(name), Some(vrf)) => vrf.as_str() == name,
    }
}

fn is_configured_for(peer: &PeerView, family: AddressFamily) -> bool {
    peer.config.families.contains(family)
}

/// The neighbours that were asked for, in the words of the command.
fn described(order: &ClearOrder) -> String {
    let vrf = match &order.vrf {
        VrfSelection::Undivided | VrfSelection::All => String::new(),
        VrfSelection::Named(name) => format!(" in VRF {name}"),
    };
    let family = order.family.map_or_else(String::new, |family| format!(" with {family}"));
    format!("{}{family}{vrf}", order.wanted)
}

fn outcome(how: Clear) -> &'static str {
    match how {
        Clear::Hard => "session reset",
        Clear::SoftIn => "asked for all routes again",
        Clear::SoftOut => "sending all routes again",
        Clear::Soft => "asked for all routes again, sending all routes again",
    }
}
