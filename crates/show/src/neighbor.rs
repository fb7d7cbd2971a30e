//! Facts about one neighbour that several outputs need.

use std::net::IpAddr;
use std::num::NonZeroU8;
use std::time::Duration;

use fairway_ground::{AddressFamily, PeerKey, Remote, RemoteAs, Role};
use fairway_seam::{BgpView, PeerView, ResetCause, SessionState};

use super::{Snapshot, offer};

/// FRR's word for the family of an address in `idType` and `afi`.
pub(super) fn family_word(family: AddressFamily) -> &'static str {
    match family {
        AddressFamily::Ipv4Unicast => "ipv4",
        AddressFamily::Ipv6Unicast => "ipv6",
    }
}

/// See [`called`].
pub(super) fn find<'a>(snapshot: &Snapshot<'a>, wanted: Option<&str>) -> Vec<&'a PeerView> {
    called(snapshot.bgp, wanted)
}

/// The neighbours that `wanted` names: those with this address (one for each VRF), else all with this name
/// (peers of several namespaces may share one) or on this interface. All neighbours without `wanted`.
pub fn called<'a>(view: &'a BgpView, wanted: Option<&str>) -> Vec<&'a PeerView> {
    let peers = view.peers.iter();
    match wanted {
        None => peers.collect(),
        Some(text) => match text.parse::<IpAddr>() {
            Ok(address) => {
                peers.filter(|peer| peer.config.key.address() == Some(address)).collect()
            }
            Err(_) => peers
                .filter(|peer| {
                    peer.config.name == text || peer.config.key.remote.to_string() == text
                })
                .collect(),
        },
    }
}

/// Its AS: from its OPEN, else from the configuration; 0 if that leaves it open, as FRR has it.
pub fn remote_asn(peer: &PeerView) -> u32 {
    match (&peer.session, peer.config.remote_as) {
        (Some(session), _) => session.remote_asn.get(),
        (None, RemoteAs::Asn(asn)) => asn.get(),
        (None, RemoteAs::Internal) => peer.config.local_asn.get(),
        (None, RemoteAs::External) => 0,
    }
}

/// What FRR prints for a role that is neither configured nor received.
const NO_ROLE: &str = "undefined";

/// The local role (RFC 9234), in FRR's word.
pub(super) fn local_role(peer: &PeerView) -> &'static str {
    peer.config.external_role().map_or(NO_ROLE, Role::name)
}

/// The remote role from its OPEN.
pub(super) fn remote_role(peer: &PeerView) -> &'static str {
    peer.session.as_ref().and_then(offer::remote_role).unwrap_or(NO_ROLE)
}

/// The address of an unnumbered neighbour, in FRR's words; `None` for one that is named by its address.
pub(super) fn address_on_link(peer: &PeerView) -> Option<String> {
    peer.config.key.interface()?;
    let session = peer.session.as_ref();
    Some(session.map_or_else(|| "none".to_owned(), |it| it.remote.ip().to_string()))
}

/// The kind of its key, in FRR's word.
pub(super) fn id_type(key: PeerKey) -> &'static str {
    match key.remote {
        Remote::Address(address) => family_word(AddressFamily::of(address)),
        Remote::Range(range) => family_word(range.family()),
        Remote::DefaultGateway(family) => family_word(family),
        Remote::Interface(_) => "interface",
    }
}

/// Whether the session is up.
pub(super) fn is_established(peer: &PeerView) -> bool {
    peer.state == SessionState::Established
}

/// Whether the session is up and carries `family`.
pub(super) fn carries(peer: &PeerView, family: AddressFamily) -> bool {
    let session = peer.session.as_ref().filter(|_| is_established(peer));
    session.is_some_and(|session| session.families.contains(family))
}

/// How many routes of `family` were sent to it.
pub(super) fn sent(peer: &PeerView, family: AddressFamily) -> u32 {
    *peer.prefixes_advertised.of(family)
}

/// How many routes of `family` were accepted from it.
pub(super) fn accepted(peer: &PeerView, family: AddressFamily) -> u32 {
    *peer.prefixes_accepted.of(family)
}

/// Whether its session is down because it announced too many prefixes.
pub(super) fn exceeded_maximum(peer: &PeerView) -> bool {
    let cause = peer.last_reset.as_ref().map(|reset| &reset.cause);
    peer.state < SessionState::OpenSent && cause == Some(&ResetCause::NotificationSent(6, 1))
}

/// FRR's word for a neighbour that restarts while its routes are kept.
const RESTARTING: &str = "NSF passive";

/// Whether it is away while its routes are kept.
pub(super) fn is_restarting(peer: &PeerView) -> bool {
    !is_established(peer) && peer.stale.is_some()
}

/// Why it is down, in FRR's words for the column of the summary.
pub(super) fn peer_state(peer: &PeerView) -> &'static str {
    match peer {
        peer if peer.config.shutdown.is_some() => "Admin",
        peer if exceeded_maximum(peer) => "PfxCt",
        peer if is_restarting(peer) => RESTARTING,
        _ => "OK",
    }
}

/// The state as the tables print it.
pub(super) fn state_name(peer: &PeerView) -> String {
    let name = peer.state.name();
    match peer_state(peer) {
        "OK" | RESTARTING => name.to_owned(),
        why => format!("{name} ({why})"),
    }
}

/// Its key, with FRR's mark for a dynamic neighbour.
pub(super) fn marked_key(peer: &PeerView) -> String {
    let mark = if peer.config.is_dynamic() { "*" } else { "" };
    format!("{mark}{}", peer.config.key)
}

/// How many hops away it may be, as FRR counts them.
pub(super) fn hops_away(peer: &PeerView) -> u8 {
    peer.config.ttl_security_hops.map_or_else(|| peer.config.ttl(), NonZeroU8::get)
}

/// The keepalive interval that is offered: the configured one, else a third of the hold time.
pub(super) fn keepalive_configured(peer: &PeerView) -> Duration {
    let hold_time = peer.config.hold_time.duration().unwrap_or_default();
    peer.config.keepalive_interval.unwrap_or(hold_time / 3)
}

/// Hold time and keepalive interval in use; those that would be offered if there is no session.
pub(super) fn timers_in_use(peer: &PeerView) -> (Duration, Duration) {
    match &peer.session {
        Some(session) => (
            Duration::from_secs(u64::from(session.hold_time_seconds)),
            session.keepalive_interval.unwrap_or_default(),
        ),
        None => (peer.config.hold_time.duration().unwrap_or_default(), keepalive_configured(peer)),
    }
}
