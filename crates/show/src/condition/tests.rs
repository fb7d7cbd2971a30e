//! The lab's router in several states, and the resulting condition.

use std::net::Ipv4Addr;

use crate::tests::lab::Lab;
use fairway_ground::PeerKey;

use super::*;

const SECONDS: fn(u64) -> Duration = Duration::from_secs;

/// The lab's first router, Established, under another name; all routes sent.
fn told(number: u8) -> PeerView {
    let mut peer = Lab::new().bgp.peers.remove(0);
    peer.config.key = PeerKey::from(std::net::IpAddr::from(Ipv4Addr::new(192, 0, 2, number)));
    peer.config.name = format!("tor-{number}");
    peer.prefixes_advertised.ipv4 = 1000;
    peer.prefixes_advertised.ipv6 = 234;
    peer.session.as_mut().unwrap().end_of_rib_sent.ipv4 = true;
    peer
}

fn with_session_but_not_told(number: u8) -> PeerView {
    let mut peer = told(number);
    peer.session.as_mut().unwrap().end_of_rib_sent.ipv4 = false;
    peer
}

fn silent(number: u8) -> PeerView {
    PeerView {
        state: SessionState::Active,
        session: None,
        prefixes_advertised: fairway_ground::PerFamily::default(),
        ..told(number)
    }
}

/// A daemon with these neighbours, the lab's routes, and this long since its sources were read.
fn look(peers: &[PeerView], since_sources: Option<Duration>) -> Condition {
    look_with(peers, since_sources, |_| {})
}

fn look_with(
    peers: &[PeerView],
    since_sources: Option<Duration>,
    change: impl FnOnce(&mut (NodePlan, BgpView, Facts<'static>)),
) -> Condition {
    static NO_PLAN: std::sync::LazyLock<NodePlan> = std::sync::LazyLock::new(NodePlan::default);
    static NO_VIEW: std::sync::LazyLock<BgpView> = std::sync::LazyLock::new(BgpView::default);
    let mut plan = NodePlan { routes: Lab::new().bgp.routes.into(), ..NodePlan::default() };
    plan.peers = peers.iter().map(|it| it.config.clone()).collect();
    let view = BgpView { peers: peers.to_vec(), ..BgpView::default() };
    let facts = Facts { since_sources, plan: &NO_PLAN, view: &NO_VIEW, faults: 0, drain: None };
    let mut all = (plan, view, facts);
    change(&mut all);
    let (plan, view, facts) = all;
    let (plan, view) = (&plan, &view);
    condition(&Facts { plan, view, ..facts })
}

#[test]
fn nothing_is_ready_before_the_sources_have_spoken() {
    let condition = look(&[told(1)], None);
    assert_eq!(condition.text, "reading the configuration");
    assert!(!condition.is_ready);
}

#[test]
fn ready_when_every_neighbor_was_told_everything() {
    let condition = look(&[told(1), told(2)], Some(Duration::ZERO));
    assert_eq!(condition.text, "2 of 2 neighbors Established, 2,468 routes announced");
    assert!(condition.is_ready);
}

#[test]
fn a_session_without_its_end_of_rib_is_waited_for() {
    let condition = look(&[told(1), with_session_but_not_told(2)], Some(SECONDS(3)));
    assert_eq!(
        condition.text,
        "2 of 2 neighbors Established, 2,468 routes announced; waiting for tor-2 (not all routes \
         sent yet)"
    );
    assert!(!condition.is_ready);
}

#[test]
fn a_neighbor_that_is_off_is_waited_for_so_long_and_then_named() {
    let peers = [told(1), silent(2)];
    let text = "1 of 2 neighbors Established, 1,234 routes announced; waiting for tor-2 (Active)";
    for (since, is_ready) in [(Duration::ZERO, false), (SECONDS(9), false), (PATIENCE, true)] {
        let condition = look(&peers, Some(since));
        assert_eq!(condition, Condition { is_ready, text: text.to_owned() }, "{since:?}");
    }
}

#[test]
fn a_neighbor_that_the_core_has_not_heard_of_yet_is_waited_for() {
    let condition = look_with(&[told(1)], Some(Duration::ZERO), |(_, view, _)| view.peers.clear());
    assert_eq!(condition.text, "no neighbors; waiting for tor-1 (Idle)");
    assert!(!condition.is_ready);
}

#[test]
fn nobody_to_tell_or_nothing_to_say_is_ready_at_once() {
    assert!(look(&[], Some(Duration::ZERO)).is_ready);
    assert_eq!(look(&[], Some(Duration::ZERO)).text, "no neighbors");
    let nothing =
        look_with(&[silent(1)], Some(Duration::ZERO), |(plan, ..)| plan.routes = Vec::new().into());
    assert!(nothing.is_ready, "{nothing:?}");
}

#[test]
fn who_is_shut_down_is_not_waited_for() {
    let mut peer = silent(2);
    peer.config.shutdown = Some(fairway_ground::ShutdownMessage::default());
    let condition = look(&[told(1), peer], Some(Duration::ZERO));
    assert_eq!(condition.text, "1 of 2 neighbors Established, 1,234 routes announced");
    assert!(condition.is_ready);
}

#[test]
fn who_is_set_aside_is_not_waited_for_but_named() {
    let mut peer = silent(2);
    peer.set_aside = Some("this kernel has no TCP-AO".to_owned());
    let condition = look(&[told(1), peer], Some(Duration::ZERO));
    assert!(condition.is_ready);
    assert!(condition.text.ends_with("; tor-2 is set aside"), "{}", condition.text);
}

#[test]
fn a_line_names_three_and_counts_the_others() {
    let peers: Vec<_> = (1..=12).map(silent).collect();
    let condition = look(&peers, Some(Duration::ZERO));
    assert_eq!(
        condition.text,
        "0 of 12 neighbors Established, 0 routes announced; waiting for tor-1 (Active), tor-2 \
         (Active), tor-3 (Active), 9 more"
    );
}

#[test]
fn a_line_says_what_an_operator_should_look_into() {
    let condition = look_with(&[told(1)], Some(Duration::ZERO), |(_, view, facts)| {
        facts.faults = 1;
        view.faults = vec!["bgpd does not answer".to_owned()];
        facts.drain = Some("this node is draining".to_owned());
    });
    assert_eq!(
        condition.text,
        "1 of 1 neighbor Established, 1,234 routes announced; this node is draining; 2 faults: fairway show \
         config"
    );
}

#[test]
fn a_name_cannot_say_something_else_to_the_service_manager() {
    let mut peer = silent(1);
    peer.config.name = "tor\nREADY=1".to_owned();
    let condition = look(&[peer], Some(Duration::ZERO));
    assert!(condition.text.ends_with("waiting for tor\\nREADY=1 (Active)"), "{}", condition.text);
}
