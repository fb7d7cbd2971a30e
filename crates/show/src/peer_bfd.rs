//! The BFD state of the path to a neighbour, in `show bgp neighbors`.
//!
//! FRR prints bgpd's own defaults for the intervals here, whatever the profile sets; these are those of the
//! profile. Ours: `strict`, if there is no session before BFD is Up.

use std::time::Duration;

use fairway_seam::PeerView;

use super::object::Object;
use super::time::{clock_with_days, milliseconds};

fn kind(peer: &PeerView) -> &'static str {
    let multihop = peer.bfd_path.map_or(!peer.config.is_next_door(), |path| path.multihop);
    if multihop { "multi hop" } else { "single hop" }
}

fn last_update(peer: &PeerView) -> String {
    clock_with_days(peer.liveness_since.unwrap_or(Duration::ZERO))
}

/// As JSON; `None` if BFD does not monitor the path.
pub(super) fn json(peer: &PeerView) -> Option<Object> {
    let bfd = peer.config.bfd.as_ref()?;
    let object = Object::new()
        .field("type", kind(peer))
        .field("detectMultiplier", bfd.settings.detect_multiplier.get())
        .field("rxMinInterval", milliseconds(bfd.settings.receive_interval))
        .field("txMinInterval", milliseconds(bfd.settings.transmit_interval))
        .field("status", peer.bfd_status())
        .field("lastUpdate", last_update(peer))
        .flag("strict", bfd.strict);
    Some(object)
}

/// As text; empty if BFD does not monitor the path.
pub(super) fn text(peer: &PeerView) -> String {
    let Some(bfd) = &peer.config.bfd else { return String::new() };
    format!(
        "\n  BFD: Type: {}\n  Detect Multiplier: {}, Min Rx interval: {}, Min Tx interval: {}\n  \
         Status: {}, Last update: {}\n",
        kind(peer),
        bfd.settings.detect_multiplier,
        milliseconds(bfd.settings.receive_interval),
        milliseconds(bfd.settings.transmit_interval),
        peer.bfd_status(),
        last_update(peer),
    )
}
