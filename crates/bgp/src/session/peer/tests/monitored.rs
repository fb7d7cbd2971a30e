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
    pair.sides[0].peer.reset(pair.now);
    pair.settle();
    let sent = told(&mut pair, 0);
    let heard = told(&mut pair, 1);
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

#[test]
fn a_panic_is_the_end_of_a_monitored_session() {
    let mut pair = Pair::ebgp();
    pair.sides[0].peer.monitor(Some(ALL));
    pair.run_for(seconds(5));
    told(&mut pair, 0);
    let (now, at) = (pair.now, pair.now + seconds(30));
    let after = pair.sides[0].peer.after_panic(now, at, 1, 7);
    let before = std::mem::replace(&mut pair.sides[0].peer, after);
    pair.sides[0].peer.inherit_monitor(before);
    assert_eq!(told(&mut pair, 0), ["down Left"]);
}
