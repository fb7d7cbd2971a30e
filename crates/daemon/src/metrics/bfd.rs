//! The metrics of BFD. Pure: a view in, text out.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_seam::bfd::{BfdSessionView, BfdView, Drops, Realtime, State};

use super::families::{
    BFD_CONTROL_IN, BFD_CONTROL_OUT, BFD_DROPPED, BFD_ECHO_IN, BFD_ECHO_OUT, BFD_NOTIFICATIONS,
    BFD_PUT_OFF, BFD_REALTIME, BFD_SESSION_DOWNS, BFD_SESSION_UP, BFD_SESSION_UPS, BFD_STALLS,
};
use super::page::{Family, Page};

/// A counter or gauge of a session.
type Number = fn(&BfdSessionView) -> u64;

const NUMBERS: [(Family, Number); 10] = [
    (BFD_SESSION_UP, |it| u64::from(it.state == State::Up)),
    (BFD_CONTROL_IN, |it| it.counters.control_in),
    (BFD_CONTROL_OUT, |it| it.counters.control_out),
    (BFD_ECHO_IN, |it| it.counters.echo_in),
    (BFD_ECHO_OUT, |it| it.counters.echo_out),
    (BFD_SESSION_UPS, |it| it.counters.ups),
    (BFD_SESSION_DOWNS, |it| it.counters.downs),
    (BFD_NOTIFICATIONS, |it| it.counters.events),
    (BFD_STALLS, |it| it.counters.stalls),
    (BFD_PUT_OFF, |it| it.counters.detections_put_off),
];

/// Writes the metrics of the sessions. Two with the same labels (from two local addresses to one router)
/// would be one series for Prometheus: only the first of them is shown.
pub(super) fn write(page: &mut Page, bfd: Option<&BfdView>) {
    // A gap means that the value is unknown; a zero would look like a counter reset.
    let bfd = bfd.filter(|it| !it.unanswered);
    let all = bfd.map(|it| it.sessions.as_slice()).unwrap_or_default();
    let mut sessions: BTreeMap<(String, String), &BfdSessionView> = BTreeMap::new();
    for session in all.iter().filter(|it| !it.is_closing) {
        let vrf = session.path.vrf.map(|it| it.to_string()).unwrap_or_default();
        sessions.entry((peer(session), vrf)).or_insert(session);
    }
    for (family, number) in &NUMBERS {
        let mut samples = page.family(family);
        for ((peer, vrf), session) in &sessions {
            samples.add(&[peer, vrf], number(session));
        }
    }
    let mut samples = page.family(&BFD_DROPPED);
    let Some(bfd) = bfd else { return };
    for (reason, count) in dropped(bfd) {
        samples.add(&[reason], count);
    }
    let is_granted = bfd.realtime == Realtime::Granted;
    page.family(&BFD_REALTIME).add(&[], u8::from(is_granted));
}

/// The address of the router, with its interface if the address alone is ambiguous.
fn peer(session: &BfdSessionView) -> String {
    match (session.path.remote, session.path.interface) {
        (IpAddr::V6(address), Some(interface)) if address.is_unicast_link_local() => {
            format!("{address}%{interface}")
        }
        (address, _) => address.to_string(),
    }
}

/// Dropped packets, of all sessions past and present, and of none.
fn dropped(bfd: &BfdView) -> BTreeMap<&'static str, u64> {
    let drops = bfd.sessions.iter().map(|it| &it.drops).chain([&bfd.drops]);
    let mut total = BTreeMap::new();
    for (reason, count) in drops.flat_map(Drops::iter) {
        let sum: &mut u64 = total.entry(reason).or_default();
        *sum = sum.saturating_add(count);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_said_to_be_zero() {
        let text = |bfd: &BfdView| {
            let mut page = Page::default();
            write(&mut page, Some(bfd));
            page.into_text()
        };
        let idle = BfdView::default();
        assert!(text(&idle).contains("fairway_bfd_dropped_packets_total{reason=\"ttl\"} 0\n"));
        assert!(text(&idle).contains("fairway_bfd_realtime 0\n"));
        assert_eq!(text(&BfdView { unanswered: true, ..idle }), "");
    }
}
