//! Which routes outlive a session and for how long, in FRR's words: a part of `show bgp neighbors`, and `show
//! bgp neighbors [PEER] graceful-restart`.
//!
//! Each neighbour has its own setting, so FRR's mark for the setting of the instance, `*`, never appears.
//! Ours: `staleRoutes` and its line, since FRR shows only the timers.

use std::fmt::Write;
use std::time::Duration;

use fairway_ground::{AddressFamily, GracefulRestart, PerFamily};
use fairway_seam::capability::{Capability, LongLivedOffer, RestartOffer};
use fairway_seam::{PeerView, SessionView, StalePhase, StaleView};

use super::family_key::family_key;
use super::neighbor::is_established;
use super::object::Object;
use super::time::milliseconds;

/// The graceful restart capability of the neighbour's OPEN.
pub(super) fn offered(session: &SessionView) -> Option<&RestartOffer> {
    session.capabilities_received.iter().find_map(|capability| match capability {
        Capability::GracefulRestart(offer) => Some(offer),
        _ => None,
    })
}

/// Its long-lived graceful restart capability (RFC 9494).
pub(super) fn offered_long_lived(session: &SessionView) -> Option<&[LongLivedOffer]> {
    session.capabilities_received.iter().find_map(|capability| match capability {
        Capability::LongLivedGracefulRestart(offers) => Some(offers.as_slice()),
        _ => None,
    })
}

/// The families of an offer that are known here, and their F bits (forwarding state preserved).
pub(super) fn families(offer: &RestartOffer) -> impl Iterator<Item = (AddressFamily, bool)> + '_ {
    offer.families.iter().filter_map(|it| Some((it.family.family()?, it.forwarding)))
}

/// The session and the neighbour's offer for it, while it is up.
fn in_force(peer: &PeerView) -> Option<(&SessionView, &RestartOffer)> {
    let session = peer.session.as_ref().filter(|_| is_established(peer))?;
    Some((session, offered(session)?))
}

/// The configured restart support; `None` if no route outlives a session.
fn wanted(peer: &PeerView) -> Option<GracefulRestart> {
    peer.config.graceful_restart
}

fn local_mode(peer: &PeerView) -> &'static str {
    if wanted(peer).is_some() { "Restart" } else { "Disable" }
}

fn remote_mode(peer: &PeerView) -> &'static str {
    match in_force(peer) {
        _ if !is_established(peer) => "NotApplicable",
        None => "Disable",
        Some((_, offer)) if offer.families.is_empty() => "Helper",
        Some(_) => "Restart",
    }
}

/// How long the neighbour may still stay away.
fn restart_time_left(peer: &PeerView) -> Option<Duration> {
    peer.stale.as_ref().filter(|it| it.phase == StalePhase::Away).map(|it| it.phase_ends_in)
}

/// How long the neighbour may still take to send its routes again.
fn stale_path_time_left(peer: &PeerView) -> Option<Duration> {
    peer.stale.as_ref().filter(|it| it.phase == StalePhase::Back).map(|it| it.phase_ends_in)
}

/// The times of both sides in seconds: our restart time, our long-lived time, its restart time.
fn times(peer: &PeerView) -> (u16, u32, u16) {
    let offer = peer.session.as_ref().and_then(offered);
    (
        wanted(peer).map_or(0, GracefulRestart::restart_time_seconds),
        wanted(peer).map_or(0, GracefulRestart::long_lived_stale_time_seconds),
        offer.map_or(0, |it| it.restart_time_seconds),
    )
}

/// The state of a family with graceful restart on both sides.
struct FamilyFacts {
    family: AddressFamily,
    forwarding: bool,
    end_of_rib_sent: bool,
    end_of_rib_received: bool,
    long_lived_seconds: u32,
    deferral: Duration,
}

fn family_facts(peer: &PeerView) -> Vec<FamilyFacts> {
    let Some(((session, offer), wanted)) = in_force(peer).zip(wanted(peer)) else {
        return Vec::new();
    };
    let facts = |family: AddressFamily| {
        let mut offers = offered_long_lived(session).unwrap_or_default().iter();
        let long_lived = offers.find(|it| it.family.family() == Some(family));
        FamilyFacts {
            family,
            forwarding: families(offer).any(|it| it == (family, true)),
            end_of_rib_sent: *session.end_of_rib_sent.of(family),
            end_of_rib_received: *session.end_of_rib_received.of(family),
            long_lived_seconds: long_lived.map_or(0, |it| it.stale_time_seconds),
            deferral: wanted.deferral_time(),
        }
    };
    session.families.iter().map(facts).collect()
}

/// `gracefulRestartInfo`.
pub(super) fn json(peer: &PeerView) -> Object {
    let markers = |of: fn(&SessionView) -> PerFamily<bool>| -> Object {
        let session = in_force(peer).map(|(session, _)| session);
        let families = AddressFamily::ALL.into_iter();
        let said = families.filter(|family| session.is_some_and(|it| *of(it).of(*family)));
        said.map(|family| (family_key(family).to_owned(), true.into())).collect()
    };
    Object::new()
        .field("endOfRibSend", markers(|session| session.end_of_rib_sent))
        .field("endOfRibRecv", markers(|session| session.end_of_rib_received))
        .optional("gracefulRestartTimerMsecs", restart_time_left(peer).map(milliseconds))
        .optional("gracefulStalepathTimerMsecs", stale_path_time_left(peer).map(milliseconds))
        .extend(modes_and_timers(peer))
        .optional("staleRoutes", peer.stale.as_ref().map(stale_routes))
}

/// One neighbour of `show bgp neighbors graceful-restart`.
pub(super) fn one_json(peer: &PeerView) -> Object {
    Object::new().field("neighborAddr", peer.config.key.to_string()).extend(modes_and_timers(peer))
}

fn modes_and_timers(peer: &PeerView) -> Object {
    let offer = in_force(peer).map(|(_, offer)| offer);
    let (configured, long_lived, received) = times(peer);
    let timers = Object::new()
        .field("configuredRestartTimer", configured)
        .field("configuredLlgrStaleTime", long_lived)
        .field("receivedRestartTimer", received)
        .optional("restartTimerRemaining", restart_time_left(peer).map(|it| it.as_secs()));
    let families = family_facts(peer).into_iter();
    let families = families.map(|it| (family_key(it.family).to_owned(), it.json(peer).into()));
    Object::new()
        .field("localGrMode", local_mode(peer))
        .field("remoteGrMode", remote_mode(peer))
        .field("rBit", offer.is_some_and(|it| it.restarted))
        .field("nBit", offer.is_some_and(|it| it.notifications))
        .field("timers", timers)
        .extend(families.collect())
}

impl FamilyFacts {
    /// All routes are sent before End-of-RIB, so it is always sent after the update.
    fn json(&self, peer: &PeerView) -> Object {
        let markers = Object::new()
            .field("endOfRibSend", self.end_of_rib_sent)
            .field("endOfRibSentAfterUpdate", self.end_of_rib_sent)
            .field("endOfRibRecv", self.end_of_rib_received);
        let left = stale_path_time_left(peer).map(|it| it.as_secs());
        let timers = Object::new()
            .field("stalePathTimer", GracefulRestart::STALE_PATH_TIME.as_secs())
            .field("llgrStaleTime", self.long_lived_seconds)
            .optional("stalePathTimerRemaining", left)
            .field("selectionDeferralTimer", self.deferral.as_secs());
        Object::new()
            .field("fBit", self.forwarding)
            .field("endOfRibStatus", markers)
            .field("timers", timers)
    }

    fn text(&self, peer: &PeerView) -> String {
        let yes = |is_so: bool| if is_so { "Yes" } else { "No" };
        let (sent, received) = (yes(self.end_of_rib_sent), yes(self.end_of_rib_received));
        let mut text = format!(
            "    {}:\n      F bit: {}\n      End-of-RIB sent: {sent}\n      \
             End-of-RIB sent after update: {sent}\n      End-of-RIB received: {received}\n      \
             Timers:\n        Configured Stale Path Time(sec): {}\n",
            self.family,
            flag(self.forwarding),
            GracefulRestart::STALE_PATH_TIME.as_secs()
        );
        if let Some(left) = stale_path_time_left(peer) {
            let _ = writeln!(text, "      Stale Path Remaining(sec): {}", left.as_secs());
        }
        let deferral = self.deferral.as_secs();
        let _ = writeln!(text, "        Configured Selection Deferral Time(sec): {deferral}");
        if self.long_lived_seconds > 0 {
            let _ =
                writeln!(text, "        LLGR Stale Path Time(sec): {}", self.long_lived_seconds);
        }
        text
    }
}

/// Which routes are kept, why, and for how long.
fn stale_routes(stale: &StaleView) -> Object {
    let phase = match stale.phase {
        StalePhase::Away => "away",
        StalePhase::LongLived => "longLived",
        StalePhase::Back => "back",
    };
    let count = |family: AddressFamily| {
        let routes = *stale.routes.of(family);
        (routes > 0).then(|| (family_key(family).to_owned(), routes.into()))
    };
    Object::new()
        .field("phase", phase)
        .field("removedInMsecs", milliseconds(stale.removed_in))
        .extend(AddressFamily::ALL.into_iter().filter_map(count).collect())
}

/// FRR's word for a bit.
fn flag(is_set: bool) -> &'static str {
    if is_set { "True" } else { "False" }
}

/// The lines under `Graceful restart information:`.
pub(super) fn text(peer: &PeerView) -> String {
    let mut text = "  Graceful restart information:\n".to_owned();
    if let Some((session, _)) = in_force(peer) {
        for (title, said) in
            [("send", session.end_of_rib_sent), ("received", session.end_of_rib_received)]
        {
            let families = AddressFamily::ALL.into_iter().filter(|family| *said.of(*family));
            let families: Vec<_> = families.map(|family| family.to_string()).collect();
            let _ = writeln!(text, "    End-of-RIB {title}: {}", families.join(", "));
        }
    }
    for (timer, left) in
        [("restart", restart_time_left(peer)), ("stalepath", stale_path_time_left(peer))]
    {
        if let Some(left) = left {
            let left = left.as_secs();
            let _ = writeln!(text, "    The remaining time of {timer} timer is {left}");
        }
    }
    text.push_str(&modes_and_timers_text(peer));
    if let Some(stale) = &peer.stale {
        text.push_str(&stale_line(stale));
    }
    text
}

fn modes_and_timers_text(peer: &PeerView) -> String {
    let offer = in_force(peer).map(|(_, offer)| offer);
    let (configured, long_lived, received) = times(peer);
    let mut text = format!(
        "    Local GR Mode: {}\n    Remote GR Mode: {}\n    R bit: {}\n    N bit: {}\n    Timers:\n      \
         Configured Restart Time(sec): {configured}\n      Received Restart Time(sec): {received}\n",
        local_mode(peer),
        remote_mode(peer),
        flag(offer.is_some_and(|it| it.restarted)),
        flag(offer.is_some_and(|it| it.notifications)),
    );
    if long_lived > 0 {
        let _ = writeln!(text, "      Configured LLGR Stale Path Time(sec): {long_lived}");
    }
    if let Some(left) = restart_time_left(peer) {
        let _ = writeln!(text, "      Restart Time Remaining(sec): {}", left.as_secs());
    }
    for facts in family_facts(peer) {
        text.push_str(&facts.text(peer));
    }
    text
}

fn stale_line(stale: &StaleView) -> String {
    let phase = match stale.phase {
        StalePhase::Away => "the neighbor is away",
        StalePhase::LongLived => {
            "the neighbor is away, long-lived stale routes are used as a last resort"
        }
        StalePhase::Back => "the neighbor is back and has not sent them again",
    };
    let count = |family: AddressFamily| {
        let routes = *stale.routes.of(family);
        (routes > 0).then(|| format!("{routes} {family}"))
    };
    let counts: Vec<_> = AddressFamily::ALL.into_iter().filter_map(count).collect();
    let removed_in = stale.removed_in.as_secs();
    format!("    Stale routes: {}; {phase}; removed in {removed_in} seconds\n", counts.join(", "))
}

/// What precedes the neighbours in `show bgp neighbors graceful-restart`. The instance has no mode here,
/// which FRR shows as Disable.
pub(super) const HEAD: &str = "
Codes: GR - Graceful Restart, * -  Inheriting Global GR Config,
       Restart - GR Mode-Restarting, Helper - GR Mode-Helper,
       Disable - GR Mode-Disable.

Global BGP GR Mode :  Disable
";

/// One neighbour below [`HEAD`].
pub(super) fn one_text(peer: &PeerView) -> String {
    let key = peer.config.key;
    format!("\nBGP neighbor is {key}\n{}", modes_and_timers_text(peer))
}
