//! Stories of a machine on two segments.

use super::*;
use crate::ndp::{ALL_NODES, solicited_node};

const ETH0: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const ETH1: MacAddress = MacAddress([2, 0, 0, 0, 1, 1]);
const HOST: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const FOREIGN: MacAddress = MacAddress([2, 0, 0, 0, 0, 3]);

fn segment(index: u32, name: &str, mac: MacAddress) -> Segment {
    Segment { index, name: name.to_owned(), alternative_names: Vec::new(), mac, is_router: true }
}

fn seconds(count: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(count)
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn named(names: &[&str]) -> Terms {
    let interfaces = Some(names.iter().map(|it| (*it).to_owned()).collect());
    Terms { interfaces, bind: false }
}

fn anywhere() -> Terms {
    Terms::default()
}

/// Owns 192.0.2.10 and 2001:db8::10 everywhere, 192.0.2.11 on eth1 alone, all announced long ago.
fn responder() -> Responder {
    let mut responder = Responder::new(1, None);
    responder.set_segments(vec![segment(1, "eth0", ETH0), segment(2, "eth1", ETH1)]);
    let addresses = BTreeMap::from([
        (ip("192.0.2.10"), anywhere()),
        (ip("192.0.2.11"), named(&["eth1"])),
        (ip("2001:db8::10"), anywhere()),
    ]);
    responder.set_addresses(Instant::ZERO, addresses);
    sent(&mut responder, seconds(100));
    responder
}

/// Everything that is announced up to `end`.
fn sent(responder: &mut Responder, end: Instant) -> Vec<(u32, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(now) = responder.next_deadline().filter(|it| *it <= end) {
        while let Some((index, frames)) = responder.poll_transmit(now) {
            all.extend(frames.into_iter().map(|frame| (index, frame)));
        }
    }
    all
}

fn question(sender_mac: MacAddress, sender: &str, target: &str) -> ArpFrame {
    ArpFrame {
        destination: MacAddress::BROADCAST,
        source: sender_mac,
        operation: Operation::Request,
        sender_mac,
        sender: sender.parse().unwrap(),
        target_mac: MacAddress::ZERO,
        target: target.parse().unwrap(),
    }
}

fn answers(responder: &mut Responder, index: u32, frame: &ArpFrame) -> Vec<ArpFrame> {
    let frames = responder.receive(seconds(100), index, &frame.encode());
    frames.iter().map(|it| ArpFrame::parse(it).unwrap()).collect()
}

#[test]
fn a_request_is_answered_with_the_address_of_its_interface() {
    let mut responder = responder();
    let asked = question(HOST, "192.0.2.1", "192.0.2.10");
    assert_eq!(answers(&mut responder, 1, &asked), [asked.answer(ETH0)]);
    assert_eq!(answers(&mut responder, 2, &asked), [asked.answer(ETH1)]);
    // A check of an entry goes to one node.
    let check = ArpFrame { destination: ETH0, ..asked };
    assert_eq!(answers(&mut responder, 1, &check), [check.answer(ETH0)]);
    // Nobody has the address of a probe yet (RFC 5227 §2.1.1); it is told that the address is taken.
    let probe = question(HOST, "0.0.0.0", "192.0.2.10");
    assert_eq!(answers(&mut responder, 1, &probe), [probe.answer(ETH0)]);
    let view = &responder.view(seconds(100))[&ip("192.0.2.10")];
    assert_eq!((view.requests, view.responses, view.conflicts), (4, 4, 0));
}

#[test]
fn what_is_not_for_us_is_not_answered() {
    let mut responder = responder();
    let asked = question(HOST, "192.0.2.1", "192.0.2.10");
    for (what, index, frame) in [
        ("an address of nobody", 1, question(HOST, "192.0.2.1", "192.0.2.12")),
        ("an address of another interface", 1, question(HOST, "192.0.2.1", "192.0.2.11")),
        ("an interface that cannot be answered on", 3, asked),
        ("a frame to another host", 1, ArpFrame { destination: FOREIGN, ..asked }),
        ("our own request, over another interface", 1, question(ETH1, "192.0.2.9", "192.0.2.10")),
        ("a sender that is a group", 1, question(MacAddress::BROADCAST, "192.0.2.1", "192.0.2.10")),
        ("a reply", 1, ArpFrame { operation: Operation::Reply, ..asked }),
    ] {
        assert_eq!(answers(&mut responder, index, &frame), [], "{what}");
    }
    responder.set_addresses(seconds(101), BTreeMap::new());
    assert_eq!(answers(&mut responder, 1, &asked), [], "withdrawn");
}

#[test]
fn a_foreign_claim_is_found_and_defended_once_in_ten_seconds() {
    let mut responder = responder();
    let claim = ArpFrame::gratuitous(FOREIGN, "192.0.2.10".parse().unwrap(), Operation::Reply);
    let frames = responder.receive(seconds(100), 1, &claim.encode());
    let defence = ArpFrame::gratuitous(ETH0, "192.0.2.10".parse().unwrap(), Operation::Request);
    assert_eq!(frames, [defence.encode()]);
    let conflict =
        Conflict { address: ip("192.0.2.10"), interface: "eth0".to_owned(), mac: FOREIGN };
    assert_eq!(responder.poll_conflict(), Some(conflict));
    for second in 101..110 {
        assert!(responder.receive(seconds(second), 1, &claim.encode()).is_empty(), "{second}");
    }
    assert_eq!(responder.poll_conflict(), None);
    assert_eq!(responder.receive(seconds(110), 1, &claim.encode()).len(), 1);
    // A host with the address that asks for another one claims it as well.
    let asks = question(FOREIGN, "192.0.2.10", "192.0.2.1");
    assert_eq!(responder.receive(seconds(120), 1, &asks.encode()), [defence.encode()]);
    let view = &responder.view(seconds(125))[&ip("192.0.2.10")];
    assert_eq!((view.age, view.conflicts), (Duration::from_secs(125), 12));
    let age = Duration::from_secs(5);
    let last = ForeignClaim { mac: FOREIGN, interface: "eth0".to_owned(), age };
    assert_eq!(view.last_conflict, Some(last));
}

#[test]
fn what_members_and_own_interfaces_say_is_no_conflict() {
    let mut responder = responder();
    responder.set_members(BTreeSet::from([HOST]));
    for mac in [HOST, ETH1] {
        let claim = ArpFrame::gratuitous(mac, "192.0.2.10".parse().unwrap(), Operation::Request);
        assert!(responder.receive(seconds(100), 1, &claim.encode()).is_empty());
    }
    assert_eq!(responder.poll_conflict(), None);
}

#[test]
fn a_take_over_is_announced_on_each_of_its_interfaces() {
    let mut responder = Responder::new(1, None);
    responder.set_segments(vec![segment(1, "eth0", ETH0), segment(2, "eth1", ETH1)]);
    let addresses =
        BTreeMap::from([(ip("192.0.2.10"), named(&["eth1"])), (ip("2001:db8::10"), anywhere())]);
    responder.set_addresses(seconds(1), addresses);
    let at_once: BTreeSet<(u32, Vec<u8>)> = {
        let mut all = BTreeSet::new();
        while let Some((index, frames)) = responder.poll_transmit(seconds(1)) {
            all.extend(frames.into_iter().map(|it| (index, it)));
        }
        all
    };
    let arp = |operation| ArpFrame::gratuitous(ETH1, "192.0.2.10".parse().unwrap(), operation);
    let advertisement = |mac| {
        let address = "2001:db8::10".parse().unwrap();
        Advertisement { address, mac, is_router: true, asker: None }.encode()
    };
    let expected = BTreeSet::from([
        (2, arp(Operation::Request).encode()),
        (2, arp(Operation::Reply).encode()),
        (1, advertisement(ETH0)),
        (2, advertisement(ETH1)),
    ]);
    assert_eq!(at_once, expected);
    let later = sent(&mut responder, seconds(60));
    assert_eq!(later.len(), 4 * expected.len());
    assert_eq!(responder.next_deadline(), None);
}

#[test]
fn what_is_given_up_is_not_announced_again() {
    let mut responder = Responder::new(1, None);
    responder.set_segments(vec![segment(1, "eth0", ETH0)]);
    responder.set_addresses(seconds(1), BTreeMap::from([(ip("192.0.2.10"), anywhere())]));
    assert!(responder.poll_transmit(seconds(1)).is_some());
    responder.set_addresses(seconds(1), BTreeMap::new());
    assert_eq!(sent(&mut responder, seconds(100)), []);
}

#[test]
fn an_interface_that_comes_or_changes_its_address_announces() {
    let mut responder = responder();
    responder.set_segments(vec![segment(1, "eth0", ETH0), segment(2, "eth1", ETH1)]);
    assert_eq!(responder.next_deadline(), None, "nothing has changed");
    responder.set_segments(vec![segment(1, "eth0", FOREIGN), segment(2, "eth1", ETH1)]);
    let frames = sent(&mut responder, seconds(1_000));
    assert_eq!(frames.len(), 5 * 3, "two addresses are on eth0, one of them IPv4");
    assert!(frames.iter().all(|(index, frame)| *index == 1 && frame[6..12] == FOREIGN.0));
    responder.set_segments(vec![segment(2, "eth1", ETH1)]);
    assert_eq!(responder.view(seconds(0))[&ip("192.0.2.10")].interfaces, ["eth1"]);
    responder.set_segments(vec![segment(4, "eth0", ETH0), segment(2, "eth1", ETH1)]);
    assert!(sent(&mut responder, seconds(2_000)).iter().all(|(index, _)| *index == 4));
    assert_eq!(responder.view(seconds(0))[&ip("192.0.2.10")].interfaces, ["eth0", "eth1"]);
}

#[test]
fn solicitations_are_answered_with_and_without_a_sender() {
    let mut responder = responder();
    let target: Ipv6Addr = "2001:db8::10".parse().unwrap();
    let asked = Solicitation {
        destination_mac: MacAddress([0x33, 0x33, 0xFF, 0, 0, 0x10]),
        source: "fe80::2".parse().unwrap(),
        source_mac: HOST,
        target,
    };
    assert_eq!(solicited_node(target).to_string(), "ff02::1:ff00:10");
    let detected = Solicitation { source: Ipv6Addr::UNSPECIFIED, ..asked };
    for (solicitation, to) in [(asked, asked.source), (detected, ALL_NODES)] {
        let frames = responder.receive_solicitation(seconds(100), 2, &solicitation);
        assert_eq!(frames, [Advertisement::answering(&solicitation, ETH1, true).encode()]);
        assert_eq!(&frames[0][38..54], &to.octets());
    }
    let other = Solicitation { target: "2001:db8::11".parse().unwrap(), ..asked };
    assert!(responder.receive_solicitation(seconds(100), 2, &other).is_empty());
    let claim = Advertisement { address: target, mac: FOREIGN, is_router: false, asker: None };
    let defence = Advertisement { address: target, mac: ETH0, is_router: true, asker: None };
    assert_eq!(responder.receive(seconds(100), 1, &claim.encode()), [defence.encode()]);
    assert_eq!(responder.poll_conflict().unwrap().mac, FOREIGN);
}

#[test]
fn the_kernel_hands_over_what_is_answered_on_an_interface() {
    let wanted = responder().wanted();
    let ipv6 = vec!["2001:db8::10".parse().unwrap()];
    let first = Wanted {
        ipv4: vec!["192.0.2.10".parse().unwrap()],
        ipv6: ipv6.clone(),
        ..Wanted::default()
    };
    assert_eq!(wanted[&1], first);
    let both = vec!["192.0.2.10".parse().unwrap(), "192.0.2.11".parse().unwrap()];
    assert_eq!(wanted[&2], Wanted { ipv4: both, ipv6, ..Wanted::default() });
}

#[test]
fn no_frame_makes_it_fail() {
    let mut responder = responder();
    let good = question(HOST, "192.0.2.1", "192.0.2.10").encode();
    let claim = Advertisement {
        address: "2001:db8::10".parse().unwrap(),
        mac: FOREIGN,
        is_router: false,
        asker: Some(("fe80::1".parse().unwrap(), ETH0)),
    };
    let mut rng = Rng::seeded(7);
    for round in 0..200_000_u64 {
        let mut frame = if round % 2 == 0 { good.clone() } else { claim.encode() };
        for _ in 0..rng.next_u64() % 4 {
            let place = usize::try_from(rng.next_u64()).unwrap() % frame.len();
            frame[place] = rng.next_u64().to_le_bytes()[0];
        }
        frame.truncate(usize::try_from(rng.next_u64()).unwrap() % (frame.len() + 1));
        assert!(responder.receive(seconds(100), 1, &frame).len() <= 2);
    }
}

#[test]
fn who_hands_over_answers_until_the_next_owner_announces() {
    let mut responder = responder();
    responder.announce_all_again();
    responder.hand_over(true);
    assert_eq!(responder.next_deadline(), None, "clients would come back");
    let asked = question(HOST, "192.0.2.1", "192.0.2.10");
    assert_eq!(answers(&mut responder, 1, &asked), [asked.answer(ETH0)]);
    let claim = ArpFrame::gratuitous(FOREIGN, "192.0.2.10".parse().unwrap(), Operation::Request);
    assert!(responder.receive(seconds(100), 1, &claim.encode()).is_empty());
    assert_eq!(answers(&mut responder, 1, &asked), [], "another one owns it");
    let other = question(HOST, "192.0.2.1", "192.0.2.11");
    assert_eq!(answers(&mut responder, 2, &other), [other.answer(ETH1)], "nobody has announced it");
    responder.hand_over(false);
    assert_eq!(answers(&mut responder, 1, &asked), [asked.answer(ETH0)]);
    assert!(responder.next_deadline().is_some(), "it is announced again");
}

#[test]
fn an_address_is_to_be_bound_until_its_next_owner_announces_it() {
    let mut responder = Responder::new(1, None);
    responder.set_segments(vec![segment(1, "eth0", ETH0), segment(2, "eth1", ETH1)]);
    let bound = Terms { bind: true, ..named(&["eth1"]) };
    let addresses = BTreeMap::from([(ip("192.0.2.10"), bound), (ip("192.0.2.11"), anywhere())]);
    responder.set_addresses(seconds(1), addresses);
    let to_bind = |responder: &Responder| responder.to_bind().collect::<Vec<_>>();
    assert_eq!(to_bind(&responder), [(ip("192.0.2.10"), vec![2])]);
    responder.hand_over(true);
    assert_eq!(to_bind(&responder).len(), 1, "nobody else has it yet");
    let next = ArpFrame::gratuitous(HOST, "192.0.2.10".parse().unwrap(), Operation::Request);
    responder.receive(seconds(2), 2, &next.encode());
    assert_eq!(to_bind(&responder), []);
}
