//! Recorded answers of two real releases.

use std::time::Duration;

use fairway_ground::{AddressFamily, FamilySet};
use fairway_seam::bfd::State;
use fairway_seam::capability::Capability;
use fairway_seam::{
    DecisionStep, Desired, DrainState, Liveness, Refusal, ResetCause, SessionState, StalePhase,
};

use super::{RELEASES, Recording, desired, find};
use crate::status::Digest;

fn both(story: impl Fn(&str, &Recording)) {
    for release in RELEASES {
        story(release, &Recording::of(release, "steady"));
    }
}

#[test]
fn every_neighbour_of_the_desired_state_is_there_in_the_order_of_the_keys() {
    both(|release, recording| {
        let view = recording.view(&desired());
        let shown: Vec<_> =
            view.peers.iter().map(|it| (it.config.key.to_string(), it.state)).collect();
        let state_of = |name: &str| shown.iter().find(|(it, _)| it == name).unwrap().1;
        assert!(view.peers.is_sorted_by_key(|peer| peer.config.key), "{release}");
        assert_eq!(shown.len(), 9, "{release}: {shown:?}");
        for up in ["10.1.1.2", "10.2.0.2", "fd01::2", "e3"] {
            assert_eq!(state_of(up), SessionState::Established, "{release}: {up}");
        }
        assert_eq!(state_of("10.1.1.98"), SessionState::Idle);
        assert_eq!(state_of("10.1.1.96"), SessionState::Idle, "FRR does not know it");
        assert_eq!(state_of("10.9.1.2 vrf red"), SessionState::Idle, "there is no such VRF");
        assert_eq!((view.generation, view.faults.len()), (7, 0));
        assert!(
            view.prefixes.ipv4 >= 4 && view.prefixes.ipv6 >= 2,
            "{release}: {:?}",
            view.prefixes
        );
    });
}

#[test]
fn a_session_is_what_both_sides_agreed_on() {
    both(|release, recording| {
        let view = recording.view(&desired());
        let session = find(&view, "10.1.1.2").session.as_ref().unwrap();
        assert_eq!(session.remote_router_id.to_string(), "10.0.0.2");
        assert_eq!((session.remote_asn.get(), session.hold_time_seconds), (65_010, 9));
        assert_eq!(session.keepalive_interval, Some(Duration::from_secs(3)));
        assert_eq!(session.families, FamilySet::only(AddressFamily::Ipv4Unicast));
        assert!(session.remote.port() == 179 || session.local.port() == 179);
        assert!(session.end_of_rib_sent.ipv4 && session.end_of_rib_received.ipv4, "{release}");
        assert!(!session.end_of_rib_sent.ipv6);
        let theirs = &session.capabilities_received;
        for capability in [Capability::RouteRefresh, Capability::FourOctetAs(65_010)] {
            assert!(theirs.contains(&capability), "{release}: {theirs:?}");
        }
        let offer = theirs.iter().find_map(|it| match it {
            Capability::GracefulRestart(offer) => Some(offer),
            _ => None,
        });
        assert_eq!(offer.map(|it| it.restart_time_seconds), Some(60));
        assert!(offer.is_some_and(|it| it.families.iter().all(|kept| kept.forwarding)));
        // It sends several paths, and the neighbour accepts none of that.
        let paths = |end: &[Capability]| {
            let found = end.iter().find_map(|it| match it {
                Capability::AddPath(offers) => offers.first().copied(),
                _ => None,
            });
            found.map(|it| (it.send, it.receive))
        };
        assert_eq!(paths(&session.capabilities_sent), Some((true, true)), "{release}");
        assert_eq!(paths(theirs), Some((false, true)), "{release}");
        // Over an interface, with next hops of the other family.
        let unnumbered = find(&view, "e3").session.as_ref().unwrap();
        assert!(unnumbered.remote.ip().to_string().starts_with("fe80::"));
        assert_eq!(unnumbered.families, FamilySet::BOTH);
        assert!(
            unnumbered.capabilities_received.iter().any(
                |it| matches!(it, Capability::ExtendedNextHop(families) if families.len() == 1)
            )
        );
    });
}

#[test]
fn counters_and_times_are_those_of_frr() {
    both(|release, recording| {
        let view = recording.view(&desired());
        let peer = find(&view, "10.1.1.2");
        assert!(peer.messages.received.opens >= 1 && peer.messages.sent.keepalives >= 1);
        assert!(peer.connections_established >= 1, "{release}");
        assert!(peer.since.is_some_and(|it| it < Duration::from_secs(60)));
        assert_eq!((peer.prefixes_accepted.ipv4, peer.prefixes_advertised.ipv4), (2, 2));
        let never = find(&view, "10.1.1.97");
        assert_eq!((never.since, never.last_read, never.last_write), (None, None, None));
        let reset = never.last_reset.as_ref();
        assert_eq!(reset.map(|it| &it.cause), Some(&ResetCause::ConnectFailed), "{release}");
        // Waiting for something before the first session is not a reset of the session.
        assert_eq!(find(&view, "fd01::2").last_reset, None, "{release}");
        let shut = find(&view, "10.1.1.98").last_reset.as_ref();
        assert_eq!(shut.map(|it| &it.cause), Some(&ResetCause::NotificationSent(6, 2)));
    });
    // 8.4 does not count refusals.
    let view = Recording::of("10.3", "notified").view(&desired());
    assert!(find(&view, "e3").refusals.iter().any(|(why, _)| *why == Refusal::AsLoop));
}

#[test]
fn a_range_has_its_members() {
    both(|release, recording| {
        let view = recording.view(&desired());
        let [range] = view.listen_ranges.as_slice() else { panic!("{release}: no range") };
        assert_eq!((range.limit, range.members), (7, 1));
        let member = find(&view, "10.2.0.2");
        assert!(member.config.is_dynamic() && member.config.name == "range");
        assert_eq!(member.config.route_key(), range.config.key);
    });
    for release in RELEASES {
        let view = Recording::of(release, "notified").view(&desired());
        assert_eq!(view.listen_ranges[0].members, 0, "{release}: it left");
    }
}

#[test]
fn learned_routes_have_the_best_first_and_the_step_at_which_others_lost() {
    both(|release, recording| {
        let view = recording.view(&desired());
        assert!(view.learned.is_sorted_by_key(|route| route.prefix));
        let of = |prefix: &str| {
            let routes = view.learned.iter().filter(|it| it.prefix.to_string() == prefix);
            routes.map(|it| (it.path.source.key.to_string(), it.lost_at)).collect::<Vec<_>>()
        };
        let shared = of("198.51.100.0/24");
        assert_eq!(shared.len(), 3, "{release}: {shared:?}");
        assert_eq!(shared[0].1, None);
        let long = shared.iter().find(|(key, _)| key == "10.1.1.2").unwrap();
        assert_eq!(long.1, Some(DecisionStep::AsPathLength), "{release}");
        assert!(shared.iter().any(|(key, _)| key == "e3"), "an unnumbered one is its interface");
        assert_eq!(of("2001:db8:100::/48"), [("fd01::2".to_owned(), None)]);
        assert!(of("203.0.113.10/32").is_empty(), "our own routes are not learned");

        let labelled = view.learned.iter().find(|it| it.prefix.length() == 25).unwrap();
        let attributes = &labelled.path.attributes;
        assert_eq!(attributes.med, Some(50));
        assert_eq!(attributes.as_path.to_string(), "65010");
        assert_eq!(attributes.communities.len(), 3);
        let large: Vec<_> = attributes.large_communities.iter().map(ToString::to_string).collect();
        assert_eq!(large, ["65010:1:2", "65010:7:9"]);
        assert_eq!(attributes.extended_communities[0].to_string(), "RT:65010:77");
        assert_eq!(find(&view, "10.1.1.2").received.len(), 2);
    });
}

#[test]
fn advertised_routes_are_as_they_were_sent() {
    both(|release, recording| {
        let view = recording.view(&desired());
        let sent = &find(&view, "10.1.1.2").advertised;
        let prefixes: Vec<_> = sent.iter().map(|it| it.prefix.to_string()).collect();
        assert_eq!(prefixes, ["203.0.113.10/32", "203.0.113.11/32"], "{release}");
        let attributes = &sent[0].attributes;
        assert_eq!(attributes.as_path.to_string(), "65001 65001", "{release}: prepended once more");
        assert_eq!(attributes.next_hop.to_string(), "10.1.1.1");
        assert_eq!(attributes.med, Some(20));
        let communities: Vec<_> = attributes.communities.iter().map(ToString::to_string).collect();
        assert_eq!(communities, ["65001:100", "no-export"], "{release}");
        assert_eq!(attributes.large_communities.len(), 1);
        // IPv4 via a link-local IPv6 address.
        let over_link = &find(&view, "e3").advertised;
        assert!(over_link.len() >= 4, "{release}");
        assert!(over_link[0].attributes.next_hop.is_link_local(), "{release}");
        let six = &find(&view, "fd01::2").advertised[0].attributes.next_hop;
        assert_eq!(six.to_string(), "fd01::1");
    });
}

#[test]
fn bfd_is_what_bfdd_says() {
    both(|release, recording| {
        let view = recording.view(&desired());
        let bfd = view.bfd.as_ref().unwrap();
        assert_eq!(bfd.sessions.len(), 2, "{release}");
        let session = &bfd.sessions[0];
        assert_eq!(
            (session.path.remote.to_string().as_str(), session.state),
            ("10.1.1.2", State::Up)
        );
        // The neighbour asks for a packet at least every 300 ms, with a multiplier of 3.
        assert_eq!(session.transmit_interval, Duration::from_millis(200));
        assert_eq!(session.agreed_transmit_interval, Some(Duration::from_millis(300)));
        assert_eq!(session.detection_time, Some(Duration::from_millis(900)));
        assert!(session.counters.control_in > 0 && session.counters.ups >= 1);
        let peer = find(&view, "10.1.1.2");
        assert_eq!((peer.liveness, peer.bfd_path), (Liveness::Up, Some(session.path)));
        let silent = find(&view, "10.1.1.99");
        assert!(silent.bfd_path.is_some() && silent.liveness != Liveness::Up, "{release}");
        assert_eq!(bfd.sessions[1].detection_time, None);
    });
}

#[test]
fn routes_of_a_neighbour_that_restarts_are_stale() {
    for release in RELEASES {
        let view = Recording::of(release, "restarting").view(&desired());
        let peer = find(&view, "fd01::2");
        let stale = peer.stale.as_ref().unwrap();
        assert_eq!((stale.phase, stale.routes.ipv6), (StalePhase::Away, 1), "{release}");
        assert!(stale.phase_ends_in <= Duration::from_secs(60));
        assert_eq!(peer.last_reset.as_ref().map(|it| &it.cause), Some(&ResetCause::PeerClosed));
        assert_eq!((peer.received.len(), peer.received[0].stale), (1, true), "{release}");
        assert!(peer.session.is_none() && peer.since.is_some());
    }
}

#[test]
fn what_a_neighbour_wrote_when_it_left_is_kept() {
    for release in RELEASES {
        let view = Recording::of(release, "notified").view(&desired());
        let reset = find(&view, "e3").last_reset.clone().unwrap();
        let text = Some("planned work".to_owned());
        assert_eq!(reset.cause, ResetCause::NotificationReceived(6, 2, text), "{release}");
        assert!(reset.text.ends_with("planned work"), "{}", reset.text);
    }
}

#[test]
fn the_digest_changes_with_states_and_not_with_counters() {
    for release in RELEASES {
        let digest = |scene: &str| {
            Digest::of(Recording::of(release, scene).answer(crate::status::SUMMARY)).unwrap()
        };
        assert_ne!(digest("steady"), digest("restarting"));
        assert_eq!(digest("nothing"), Digest::default());
        let steady = Recording::of(release, "steady");
        let summary = steady.answer(crate::status::SUMMARY);
        let later = summary
            .replace("\"msgRcvd\":1", "\"msgRcvd\":4")
            .replace("\"peerUptimeMsec\":", "\"peerUptimeMsec\":9");
        assert_ne!(summary, later);
        assert_eq!(Digest::of(&later).unwrap(), digest("steady"));
    }
}

#[test]
fn a_route_that_cannot_get_there_says_why() {
    both(|release, recording| {
        let reasons = |desired: &Desired| {
            let peer = find(&recording.view(desired), "10.1.1.2").clone();
            peer.unannounced.into_iter().map(|(_, reason)| reason).collect::<Vec<_>>()
        };
        // Its session carries IPv4 only, as configured.
        assert!(reasons(&desired()).is_empty(), "{release}");
        let mut both = desired();
        both.peers[1].families = FamilySet::BOTH;
        assert_eq!(reasons(&both), ["the session does not carry IPv6 Unicast"], "{release}");
        both.drain = DrainState::Drained;
        assert!(reasons(&both).contains(&"the node is drained".to_owned()), "{release}");
        assert_eq!(reasons(&both).len(), 3);
    });
}
