//! The last message to a neighbour, by why we leave and by what both sides agreed on for restarts.

use super::scripted::{Scripted, words_of};
use super::*;
use crate::session::OwnRestart;
use crate::session::negotiate::our_open;
use crate::wire::{Capability, RestartOffer};
use fairway_ground::{
    GracefulRestart, ImportPolicy, MaximumPrefixes, PrefixFilter, ShutdownMessage,
};
use fairway_seam::{Leave, ResetCause};

/// What two neighbours agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreed {
    /// Routes go with the session.
    Nothing,
    /// Graceful restart of RFC 4724.
    Restarts,
    /// That of RFC 8538, too: the N bit of both.
    Notifications,
}

const ALL: [Agreed; 3] = [Agreed::Nothing, Agreed::Restarts, Agreed::Notifications];

fn ours(agreed: Agreed) -> PeerConfig {
    let graceful_restart = (agreed != Agreed::Nothing).then(GracefulRestart::default);
    PeerConfig { graceful_restart, ..config(65001, 65002, 1) }
}

/// The neighbour's OPEN.
fn theirs(agreed: Agreed) -> Vec<u8> {
    let graceful_restart = (agreed != Agreed::Nothing).then(GracefulRestart::default);
    let config = PeerConfig { graceful_restart, ..config(65002, 65001, 2) };
    let mut open = our_open(&config, OwnRestart::default());
    for capability in &mut open.capabilities {
        if let Capability::GracefulRestart(offer) = capability {
            let notifications = agreed == Agreed::Notifications;
            *offer = RestartOffer { notifications, ..offer.clone() };
        }
    }
    open.encode().to_vec()
}

/// A session that is up, and a peer that has sent everything.
fn established(agreed: Agreed) -> (Scripted, ConnectionId) {
    let mut scripted = Scripted::new(ours(agreed));
    let id = scripted.accept();
    scripted.receive(id, &theirs(agreed));
    scripted.receive(id, &keepalive());
    assert_eq!(scripted.peer.state(), SessionState::Established);
    scripted.said();
    (scripted, id)
}

/// The last message of a session under `agreed` that `end` ends, and the reason for its end.
fn last_words(agreed: Agreed, end: impl FnOnce(&mut Peer, Instant)) -> (String, DownReason) {
    let (mut scripted, id) = established(agreed);
    let sent = scripted.peer.messages.sent.notifications;
    end(&mut scripted.peer, scripted.now);
    // Only what is due at this moment: the next dial comes later.
    scripted.listen();
    assert!(scripted.has_closed(id), "TCP ends");
    let said = scripted.said();
    let sent = scripted.peer.messages.sent.notifications - sent;
    assert_eq!(sent, u64::from(!said.is_empty()), "what is said is counted");
    let (_, reason) = scripted.peer.last_reset.clone().unwrap();
    (said, reason)
}

fn hard(notification: &Notification) -> String {
    words_of(&notification.as_hard_reset())
}

//+ RFC 4486 §4: sessions that end because the daemon stops end with 6/2.
#[test]
fn a_daemon_that_will_be_back_is_silent_to_those_who_keep_its_routes() {
    let leave = |peer: &mut Peer, now| peer.leave(now, Leave::ForRestart);
    assert_eq!(last_words(Agreed::Nothing, leave).0, "6/2");
    for agreed in [Agreed::Restarts, Agreed::Notifications] {
        let (said, reason) = last_words(agreed, leave);
        assert_eq!(said, "", "{agreed:?}");
        assert_eq!(reason, DownReason::Left("fairway is stopping".to_owned()));
        assert_eq!(reason.cause(), ResetCause::Left);
        let text = "closed without a notification, so that the neighbor keeps our routes: \
                    fairway is stopping";
        assert_eq!(reason.to_string(), text);
    }
}

//= RFC 8538 §4 SHOULD NOT: a Hard Reset is sent to a neighbour that has not said N.
//= RFC 8538 §5.1 MAY: a session that ends for good ends with a Hard Reset.
//+ RFC 8538 §3.1: the data of a Hard Reset is code, subcode and data of the NOTIFICATION that it stands for.
#[test]
fn who_leaves_for_good_is_forgotten() {
    let message = ShutdownMessage::new("racks move").unwrap();
    let shutdown = Notification::cease_with_message(2, &message);
    for agreed in ALL {
        let words = |notification: &Notification| match agreed {
            Agreed::Notifications => hard(notification),
            _ => words_of(notification),
        };
        let (said, reason) = last_words(agreed, |peer, now| peer.leave(now, Leave::ForGood));
        assert_eq!(said, words(&Notification::cease(2)), "{agreed:?}");
        // The operator reads the cause and not its envelope.
        assert_eq!(reason.cause(), ResetCause::NotificationSent(6, 2));
        let (said, _) = last_words(agreed, |peer, now| peer.stop(now, 3, "it was removed"));
        assert_eq!(said, words(&Notification::cease(3)), "{agreed:?}");
        let (said, reason) = last_words(agreed, |peer, now| {
            let shutdown = Some(message.clone());
            peer.reconfigure(now, PeerConfig { shutdown, ..ours(agreed) });
        });
        assert_eq!(said, words(&shutdown), "{agreed:?}");
        assert!(reason.to_string().contains("\"racks move\""), "{reason}");
        let (said, _) = last_words(agreed, |peer, now| {
            peer.set_aside(now, Some("no keys here".to_owned()));
        });
        assert_eq!(said, words(&Notification::cease(6)), "{agreed:?}");
    }
    assert_eq!(hard(&Notification::cease(2)), "6/9:0602");
    assert_eq!(hard(&shutdown), "6/9:06020a7261636b73206d6f7665");
}

//= RFC 8538 §5.1 MAY: a session that ends for a changed setting ends with a Cease that is no Hard Reset.
#[test]
fn a_changed_setting_costs_no_route() {
    let change = |agreed: Agreed| {
        let changed = PeerConfig { port: 1790, ..ours(agreed) };
        last_words(agreed, move |peer, now| peer.reconfigure(now, changed))
    };
    assert_eq!(change(Agreed::Nothing).0, "6/6");
    assert_eq!(change(Agreed::Notifications).0, "6/6");
    // It would drop our routes for a NOTIFICATION: it does not learn why.
    let (said, reason) = change(Agreed::Restarts);
    assert_eq!(said, "");
    assert_eq!(reason, DownReason::Left("the configuration of the peer changed".to_owned()));
}

#[test]
fn what_the_operator_clears_hears_so_in_any_case() {
    for agreed in ALL {
        assert_eq!(last_words(agreed, |peer, now| peer.reset(now)).0, "6/4", "{agreed:?}");
    }
}

//+ RFC 8538 §5.1: a session that ends for good ends with a Hard Reset.
//+ RFC 4486 §4: the data of 6/1 has the family and the bound.
#[test]
fn a_flood_ends_with_a_hard_reset_where_that_is_known() {
    for agreed in ALL {
        let (mut scripted, id) = established(agreed);
        let maximum = Some(MaximumPrefixes { limit: 1, warn_percent: 75, attribute_bytes: None });
        let import =
            ImportPolicy { allowed: PrefixFilter::Everything, maximum, ..ImportPolicy::default() };
        let now = scripted.now;
        scripted.peer.reconfigure(now, PeerConfig { import, ..ours(agreed) });
        scripted.listen();
        scripted.said();
        scripted.receive(id, &two_routes());
        let flood = Notification::maximum_prefixes(AddressFamily::Ipv4Unicast, 1);
        let expected = match agreed {
            Agreed::Notifications => hard(&flood),
            _ => words_of(&flood),
        };
        assert_eq!(scripted.said(), expected, "{agreed:?}");
        let (_, reason) = scripted.peer.last_reset.clone().unwrap();
        assert_eq!(reason.cause(), ResetCause::NotificationSent(6, 1));
    }
}

/// A neighbour that is not up yet may keep routes of the session before.
#[test]
fn an_attempt_that_is_given_up_for_a_restart_says_nothing_either() {
    for (agreed, expected) in
        [(Agreed::Nothing, "6/2"), (Agreed::Restarts, ""), (Agreed::Notifications, "")]
    {
        for has_heard in [false, true] {
            let mut scripted = Scripted::new(ours(agreed));
            let id = scripted.accept();
            if has_heard {
                scripted.receive(id, &theirs(agreed));
            }
            scripted.said();
            scripted.peer.leave(scripted.now, Leave::ForRestart);
            scripted.listen();
            assert!(scripted.has_closed(id));
            assert_eq!(scripted.said(), expected, "{agreed:?}, {has_heard}");
            let sent = scripted.peer.messages.sent.notifications;
            assert_eq!(sent, u64::from(!expected.is_empty()));
        }
    }
    // When we leave for good a NOTIFICATION is sent, as far as it is known what it supports.
    let mut scripted = Scripted::new(ours(Agreed::Notifications));
    let id = scripted.accept();
    scripted.receive(id, &theirs(Agreed::Notifications));
    scripted.said();
    scripted.peer.leave(scripted.now, Leave::ForGood);
    scripted.listen();
    assert_eq!(scripted.said(), "6/9:0602");
}

fn two_routes() -> Vec<u8> {
    let attributes =
        [&[0x40, 1, 1, 0][..], &[0x40, 2, 6, 2, 1, 0, 0, 0xFD, 0xEA], &[0x40, 3, 4, 192, 0, 2, 2]]
            .concat();
    let length = u16::try_from(attributes.len()).unwrap().to_be_bytes();
    let prefixes = [24, 198, 51, 100, 24, 198, 51, 101];
    let body = [&[0, 0][..], &length, &attributes, &prefixes].concat();
    framed(MessageType::Update, &body).unwrap().to_vec()
}
