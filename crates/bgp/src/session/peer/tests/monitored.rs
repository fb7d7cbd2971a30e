//! What those that monitor this node are told of a neighbour.

use super::*;
use crate::session::{Monitored, SessionDown};
use crate::wire::Update;
use fairway_ground::{BmpTables, ImportPolicy, PrefixFilter};

const ALL: BmpTables = BmpTables {
    adj_rib_in_pre_policy: true,
    adj_rib_in_post_policy: true,
    adj_rib_out_post_policy: true,
    loc_rib: true,
};

fn told(pair: &mut Pair, side: usize) -> Vec<String> {
    let events = pair.sides[side].peer.take_monitored().unwrap_or_default();
    let word = |event: &Monitored| match event {
        Monitored::Up(up) => {
            let parse = |message: &Bytes| Open::parse(&message[19..]).unwrap().asn;
            format!("up {} sent {} heard {}", up.remote, parse(&up.opens[0]), parse(&up.opens[1]))
        }
        Monitored::Down(SessionDown::Sent(message)) => format!("down sent {:?}", &message[19..]),
        Monitored::Down(SessionDown::Received(message)) => {
            format!("down received {:?}", &message[19..])
        }
        Monitored::Down(why) => format!("down {why:?}"),
        Monitored::AllAccepted(family) => format!("all accepted {family}"),
        Monitored::Received(message) => format!("received {}", update(message)),
        Monitored::Sent(message) => format!("sent {}", update(message)),
        Monitored::Accepted(changes) => {
            let nlri: Vec<_> = changes.iter().map(|it| it.nlri.to_string()).collect();
            format!("accepted {}", nlri.join(" "))
        }
    };
    events.iter().map(word).collect()
}

/// Whether it is a whole UPDATE, and what for; these sessions have four-octet AS numbers.
fn update(message: &[u8]) -> String {
    assert_eq!(usize::from(u16::from_be_bytes([message[16], message[17]])), message.len());
    let context = crate::wire::UpdateContext {
        kind: fairway_ground::PeerKind::External,
        four_octet_as: true,
        families: FamilySet::BOTH,
        extended_next_hop: false,
        add_path: FamilySet::EMPTY,
    };
    let update = Update::parse(&message[19..], context).unwrap();
    let announced: usize = update.announced.iter().map(|it| it.prefixes.len()).sum();
    format!("{announced} and {}", update.withdrawn.len())
}

#[test]
fn nothing_is_noted_where_nobody_monitors() {
    let mut pair = Pair::ebgp();
    pair.run_for(seconds(5));
    pair.originate(0, &["198.51.100.0/24"]);
    pair.run_for(seconds(5));
    assert!(pair.sides[0].peer.take_monitored().is_none());
    assert!(pair.sides[1].peer.take_monitored().is_none());
}

//= RFC 7854 §3.3 MUST: sessions that come up are told as Peer Up, and as Peer Down when they end.
//= RFC 7854 §4.9 MAY: routes of a session that has ended are not withdrawn one by one.
//= RFC 7854 §5 MUST: a route that is withdrawn is withdrawn in each table that it was told of.
#[test]
fn a_session_its_routes_and_its_end_are_told_in_order() {
    let import = ImportPolicy { allowed: PrefixFilter::Everything, ..ImportPolicy::default() };
    let accepting = PeerConfig { import, ..config(65002, 65001, 2) };
    let mut pair = Pair::new(config(65001, 65002, 1), accepting);
    pair.sides.iter_mut().for_each(|it| it.peer.monitor(Some(ALL)));
    pair.run_for(seconds(5));
    pair.originate(0, &["198.51.100.0/24"]);
    pair.run_for(seconds(5));
    pair.originate(0, &[]);
    pair.run_for(seconds(5));
    pair.originate(0, &["198.51.100.0/24"]);
    pair.run_for(seconds(5));
    pair.sides[0].peer.reset(pair.now);
    pair.settle();
    let sent = told(&mut pair, 0);
    let heard = told(&mut pair, 1);
    let is_route = |it: &&String| it.starts_with("received") || it.starts_with("accepted");
    let count = |what: &str| heard.iter().filter(|it| *it == what).count();
    let (received, accepted) = (count("received 0 and 1"), count("accepted 198.51.100.0/24"));
    assert_eq!((received, accepted), (1, 3), "announced, withdrawn and announced: {heard:#?}");
    let after = heard.iter().skip_while(|it| !it.starts_with("down"));
    assert_eq!(after.filter(is_route).count(), 0, "{heard:#?}");
    assert_eq!(sent[0], "up 192.0.2.2:179 sent 65001 heard 65002");
    assert_eq!(heard[0], "up 192.0.2.1:179 sent 65002 heard 65001");
    for expected in ["sent 1 and 0", "sent 0 and 1", "down sent [6, 4]"] {
        assert!(sent.iter().any(|it| it == expected), "{expected}: {sent:#?}");
    }
    for expected in [
        "received 1 and 0",
        "accepted 198.51.100.0/24",
        "all accepted IPv4 Unicast",
        "received 0 and 1",
        "down received [6, 4]",
    ] {
        assert!(heard.iter().any(|it| it == expected), "{expected}: {heard:#?}");
    }
}

/// The UPDATEs that a side sent, or that it received.
fn updates(pair: &mut Pair, side: usize) -> Vec<Bytes> {
    let events = pair.sides[side].peer.take_monitored().unwrap_or_default();
    let update = |event| match event {
        Monitored::Sent(update) | Monitored::Received(update) => Some(update),
        _ => None,
    };
    events.into_iter().filter_map(update).collect()
}

//= RFC 8671 §5.1 MUST: what a neighbor was sent is told as it was sent.
#[test]
fn what_was_sent_is_what_the_neighbor_hears() {
    let sent = BmpTables { adj_rib_out_post_policy: true, ..BmpTables::NONE };
    let mut pair = Pair::ebgp();
    pair.sides[0].peer.monitor(Some(sent));
    pair.sides[1].peer.monitor(Some(BmpTables::DEFAULT));
    pair.run_for(seconds(5));
    pair.originate(0, &["198.51.100.0/24", "2001:db8:7::/48"]);
    pair.run_for(seconds(5));
    pair.originate(0, &["198.51.100.0/24"]);
    pair.run_for(seconds(5));
    let (told, heard) = (updates(&mut pair, 0), updates(&mut pair, 1));
    // Two that announce, one that withdraws, and End-of-RIB of each family.
    assert!(told.len() >= 5, "{told:?}");
    assert_eq!(told, heard);
}

//= RFC 7854 §5 MUST: a change of a route is told, also where an error makes it a withdrawal.
#[test]
fn an_update_that_is_treated_as_withdrawn_is_told_as_a_withdrawal() {
    let mut pair = Pair::ebgp();
    pair.sides[1].peer.monitor(Some(BmpTables::DEFAULT));
    pair.run_for(seconds(5));
    updates(&mut pair, 1);
    // ORIGIN 9 does not exist.
    let attributes = [0x40, 1, 1, 9, 0x40, 2, 6, 2, 1, 0, 0, 0xFD, 0xE9, 0x40, 3, 4, 192, 0, 2, 1];
    let body = [&[0, 0, 0, 20][..], &attributes, &[24, 203, 0, 113]].concat();
    let length = u16::try_from(19 + body.len()).unwrap().to_be_bytes();
    let malformed = [&[0xFF; 16][..], &length, &[2], &body].concat();
    let id = pair.sides[1].peer.established.as_ref().unwrap().connection;
    pair.sides[1].peer.handle(pair.now, Event::Received(id, &malformed));
    pair.settle();
    let [told] = &updates(&mut pair, 1)[..] else { panic!() };
    assert_eq!(told[19..], [0, 4, 24, 203, 0, 113, 0, 0]);
}

//= RFC 7854 §3.3 MUST: a session that is up when a station connects is told first.
#[test]
fn a_session_that_was_there_before_comes_first_and_once() {
    let mut pair = Pair::ebgp();
    pair.run_for(seconds(5));
    pair.sides[0].peer.monitor(Some(ALL));
    assert_eq!(told(&mut pair, 0), ["up 192.0.2.2:179 sent 65001 heard 65002"]);
    pair.sides[0].peer.monitor(Some(BmpTables { loc_rib: false, ..ALL }));
    assert!(told(&mut pair, 0).is_empty());
    pair.sides[0].peer.monitor(None);
    pair.sides[0].peer.reset(pair.now);
    assert!(told(&mut pair, 0).is_empty());
}

//+ RFC 7854 §3.3: sessions that come up are told as Peer Up, and as Peer Down when they end.
#[test]
fn a_panic_is_the_end_of_a_monitored_session() {
    let mut pair = Pair::ebgp();
    pair.sides[0].peer.monitor(Some(ALL));
    pair.run_for(seconds(5));
    told(&mut pair, 0);
    let (now, at) = (pair.now, pair.now + seconds(30));
    let after = pair.sides[0].peer.after_panic(now, at, 1, 7);
    let before = std::mem::replace(&mut pair.sides[0].peer, after);
    let farewell = Notification::cease(cease::UNSPECIFIC).encode();
    pair.sides[0].peer.inherit_monitor(before, &farewell);
    assert_eq!(told(&mut pair, 0), ["down sent [6, 0]"]);
}
