//! The messages as another program reads them.

use bgpkit_parser::models::BgpMessage;
use bgpkit_parser::parse_bmp_msg;
use bgpkit_parser::parser::bmp::messages::{
    BmpMessage, BmpMessageBody, BmpPeerType, InitiationTlvType, PeerDownReason, PerPeerFlags,
    StatType, StatsData, TerminationReason, TerminationTlvValue,
};

use super::*;

const AT: Stamp = Stamp(1_795_000_000_250_000);

fn peer(address: &str) -> Monitored {
    Monitored {
        address: address.parse().unwrap(),
        asn: 4_200_000_001,
        router_id: [10, 0, 0, 2].into(),
        vrf: None,
        interface: None,
        two_octet_as: false,
    }
}

/// This node, with an address that no message about it has.
fn node() -> Monitored {
    peer("2001:db8::1")
}

fn bgp(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(19 + body.len()).unwrap().to_be_bytes();
    [&[0xFF; 16][..], &length, &[kind], body].concat()
}

/// An OPEN with AS numbers of four octets and IPv4 unicast.
fn open() -> Vec<u8> {
    let capabilities = [&[65, 4][..], &4_200_000_001_u32.to_be_bytes(), &[1, 4, 0, 1, 0, 1]];
    let capabilities = capabilities.concat();
    let length = u8::try_from(capabilities.len()).unwrap();
    let body = [&[4, 0x5B, 0xA0, 0, 90, 10, 0, 0, 1, length + 2, 2, length][..], &capabilities];
    bgp(1, &body.concat())
}

/// 10.0.0.0/8 with the path 4200000001.
fn update() -> Vec<u8> {
    let path = [0x40, 2, 6, 2, 1, 0xFA, 0x56, 0xEA, 0x01];
    let attributes = [&[0x40, 1, 1, 0][..], &path, &[0x40, 3, 4, 192, 0, 2, 1]].concat();
    let length = u16::try_from(attributes.len()).unwrap().to_be_bytes();
    bgp(2, &[&[0, 0][..], &length, &attributes, &[8, 10]].concat())
}

/// Of the header about the neighbour: type, flags, and the rest but for the time.
fn peer_header(message: &[u8]) -> (u8, u8, &[u8]) {
    (message[6], message[7], &message[8..40])
}

fn read(message: &Bytes) -> BmpMessage {
    //= RFC 7854 §4.1 MUST NOT: a message has version 0.
    assert_eq!(message[0], 3);
    let mut bytes = message.clone();
    //= RFC 7854 §4.1 MUST: the length of a message counts all of it, its header too.
    let read = parse_bmp_msg(&mut bytes).unwrap();
    assert_eq!(usize::try_from(read.common_header.msg_len).unwrap(), message.len());
    read
}

//= RFC 7854 §4.3 MUST: an Initiation has sysDescr and sysName.
//= RFC 7854 §4.4 MUST: sysDescr and sysName are ASCII.
//= RFC 7854 §4.5 MUST: a Termination has its reason.
#[test]
fn the_first_and_the_last_message_say_who_speaks_and_why_no_more() {
    let long = format!("ä{}", "b".repeat(300));
    let BmpMessageBody::InitiationMessage(it) = read(&initiation(&long, "node-a")).message_body
    else {
        panic!()
    };
    let kinds: Vec<_> = it.tlvs.iter().map(|it| it.info_type).collect();
    assert_eq!(kinds, [InitiationTlvType::SysDescr, InitiationTlvType::SysName]);
    let texts: Vec<_> = it.tlvs.iter().map(|it| it.info.clone()).collect();
    assert_eq!(texts, [format!("?{}", "b".repeat(254)), "node-a".to_owned()]);
    let last = termination(Termination::AdministrativelyClosed);
    let BmpMessageBody::TerminationMessage(it) = read(&last).message_body else { panic!() };
    let expected = TerminationTlvValue::Reason(TerminationReason::AdministrativelyClosed);
    assert_eq!(it.tlvs[0].info_value, expected);
}

//= RFC 7854 §4.2 MUST: the V flag says whether the addresses are of IPv6.
//= RFC 7854 §4.10 MUST: a Peer Up has the addresses and ports of the session.
//= RFC 7854 §4.10 MUST: a Peer Up has the OPEN that was sent, then the one that was received, whole.
//= RFC 8671 §6 SHOULD: the O flag is clear where a message is about no table.
#[test]
fn a_session_that_comes_up_has_its_ends_and_both_opens() {
    let (sent, received) = (open(), bgp(1, &[4, 0x5B, 0xA0, 0, 90, 10, 0, 0, 2, 0]));
    for (address, local) in [("192.0.2.2", "192.0.2.1:179"), ("2001:db8::2", "[2001:db8::1]:179")] {
        let local: SocketAddr = local.parse().unwrap();
        let message = peer_up(&peer(address), AT, local, 40_000, (&sent, &received));
        assert!(message.ends_with(&[&sent[..], &received].concat()));
        let (_, flags, _) = peer_header(&message);
        assert_eq!(flags, if local.is_ipv6() { 0x80 } else { 0 });
        let it = read(&message);
        let header = it.per_peer_header.unwrap();
        assert_eq!(header.peer_type, BmpPeerType::Global);
        assert_eq!(header.peer_ip, address.parse::<IpAddr>().unwrap());
        assert_eq!((header.peer_asn.to_u32(), header.timestamp), (4_200_000_001, 1_795_000_000.25));
        let BmpMessageBody::PeerUpNotification(up) = it.message_body else { panic!() };
        assert_eq!((up.local_addr, up.local_port, up.remote_port), (local.ip(), 179, 40_000));
        assert!(matches!(up.sent_open, BgpMessage::Open(_)));
        assert!(matches!(up.received_open, BgpMessage::Open(_)));
    }
}

//= RFC 7854 §4.9 MUST: a Peer Down after a NOTIFICATION of ours, or of the neighbor, has it.
//= RFC 7854 §4.9 MUST: a Peer Down after we closed the connection without one has the event of the state machine.
//+ RFC 8671 §6: the O flag is clear where a message is about no table.
#[test]
fn each_reason_of_a_session_that_ends_has_what_belongs_to_it() {
    let notification = Bytes::from(bgp(3, &[6, 4]));
    let cases = [
        (
            Down::LocalNotification(notification.clone()),
            PeerDownReason::LocalSystemClosedNotificationPduFollows,
            Some(notification.to_vec()),
        ),
        (Down::Local(10), PeerDownReason::LocalSystemClosedFsmEvenFollows, Some(vec![0, 10])),
        (
            Down::RemoteNotification(notification.clone()),
            PeerDownReason::RemoteSystemClosedNotificationPduFollows,
            Some(notification.to_vec()),
        ),
        (Down::Remote, PeerDownReason::RemoteSystemsClosedNoData, None),
        (Down::Deconfigured, PeerDownReason::PeerDeConfigured, None),
    ];
    for (why, reason, data) in cases {
        let message = peer_down(&peer("192.0.2.2"), AT, &why);
        assert_eq!(peer_header(&message).1, 0);
        let BmpMessageBody::PeerDownNotification(down) = read(&message).message_body else {
            panic!()
        };
        assert_eq!((down.reason, down.data), (reason, data));
    }
}

//= RFC 7854 §4.2 MUST: bits of the flags that have no meaning are clear.
//= RFC 7854 §4.6 MUST: a Route Monitoring message has an UPDATE.
//= RFC 7854 §5 MUST: pre-policy routes have the L flag clear, and post-policy routes have it set.
//= RFC 8671 §5.1 MUST: what a neighbor was sent has the L flag set.
//= RFC 8671 §6.1 MUST: the O flag says whether a route was received or sent.
//= RFC 9069 §4.2 MUST: the flags of the Loc-RIB that have no meaning are clear.
//= RFC 9069 §4.2 MUST: the F flag is set when the Loc-RIB is filtered, and ours never is.
#[test]
fn routes_say_which_table_they_are_in() {
    for (table, kind, flags) in [
        (Table::AdjRibInPrePolicy, BmpPeerType::Global, 0),
        (Table::AdjRibInPostPolicy, BmpPeerType::Global, 0x40),
        (Table::AdjRibOutPostPolicy, BmpPeerType::Global, 0x50),
        (Table::LocRib, BmpPeerType::LocalRib, 0),
    ] {
        let peer = if table == Table::LocRib { &node() } else { &peer("192.0.2.2") };
        let it = read(&route_monitoring(peer, table, AT, &update()));
        let header = it.per_peer_header.unwrap();
        assert_eq!(header.peer_type, kind);
        let bits = match header.peer_flags {
            PerPeerFlags::PeerFlags(it) => it.bits(),
            PerPeerFlags::LocalRibPeerFlags(it) => it.bits(),
        };
        assert_eq!(bits, flags, "{table:?}");
        let BmpMessageBody::RouteMonitoring(it) = it.message_body else { panic!() };
        let BgpMessage::Update(update) = it.bgp_message else { panic!() };
        assert_eq!(update.announced_prefixes[0].to_string(), "10.0.0.0/8");
        assert_eq!(update.attributes.as_path().unwrap().to_string(), "4200000001");
    }
}

//= RFC 7854 §4.2 MUST: peer type and distinguisher tell peers apart that look the same in all else.
#[test]
fn the_same_link_local_address_on_two_interfaces_is_two_peers() {
    let of = |interface: Option<&str>, vrf: Option<&str>| {
        let (interface, vrf) = (interface.map(str::to_owned), vrf.map(str::to_owned));
        let peer = Monitored { interface, vrf, ..peer("fe80::1") };
        let message = route_monitoring(&peer, Table::AdjRibInPrePolicy, AT, &update());
        let (kind, _, rest) = peer_header(&message);
        (kind, rest[..8].to_vec())
    };
    let all = [
        of(None, None),
        of(Some("eth0"), None),
        of(Some("eth1"), None),
        of(None, Some("red")),
        of(None, Some("blue")),
        of(Some("eth0"), Some("red")),
        of(Some("eth0"), Some("blue")),
    ];
    assert_eq!(all[0], (0, vec![0; 8]), "nothing else looks like it");
    assert!(all[1..].iter().all(|(kind, _)| *kind == 2));
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
}

//+ RFC 7854 §4.2: peer type and distinguisher tell peers apart that look the same in all else.
#[test]
fn neighbors_in_vrfs_are_told_apart() {
    let of = |vrf: &str| Monitored { vrf: Some(vrf.to_owned()), ..peer("192.0.2.2") };
    let up = |vrf| {
        let local = "192.0.2.1:179".parse().unwrap();
        read(&peer_up(&of(vrf), AT, local, 179, (&open(), &open())))
    };
    let (red, blue) = (up("red"), up("blue"));
    let numbers = [&red, &blue].map(|it| it.per_peer_header.unwrap().peer_distinguisher);
    assert_ne!(numbers[0], numbers[1]);
    assert_eq!(red.per_peer_header.unwrap().peer_type, BmpPeerType::Local);
    let BmpMessageBody::PeerUpNotification(it) = red.message_body else { panic!() };
    assert_eq!(it.tlvs[0].info_value, "red");
}

//= RFC 9069 §5.2 MUST: addresses and ports of the Peer Up of the Loc-RIB are zero.
//= RFC 9069 §5.2 MUST: the received OPEN of the Loc-RIB repeats the sent one.
//= RFC 9069 §5.2.1 MUST: the default Loc-RIB is called global.
#[test]
fn the_table_of_the_node_comes_under_its_name() {
    let message = loc_rib_up(&node(), AT, "global", &open());
    let tail = [&[0; 20][..], &open(), &open(), b"\0\x03\0\x06global"].concat();
    assert!(message.ends_with(&tail));
    let up = read(&message);
    assert_eq!(up.per_peer_header.unwrap().peer_type, BmpPeerType::LocalRib);
    let BmpMessageBody::PeerUpNotification(it) = up.message_body else { panic!() };
    assert_eq!(it.tlvs[0].info_value, "global");
}

//= RFC 9069 §5.1 MUST: all messages about the Loc-RIB have peer type 3, no address, and our AS and BGP identifier.
#[test]
fn messages_about_the_table_of_the_node_are_about_no_neighbor() {
    let numbers = [Statistic::LocRib(3)];
    for message in [
        loc_rib_up(&node(), AT, "global", &open()),
        route_monitoring(&node(), Table::LocRib, AT, &update()),
        statistics(&node(), Some(Table::LocRib), AT, &numbers),
    ] {
        let ours = [&[0; 24][..], &4_200_000_001_u32.to_be_bytes(), &[10, 0, 0, 2]].concat();
        assert_eq!(peer_header(&message), (3, 0, &ours[..]));
    }
}

//= RFC 7854 §4.8 MUST: statistics have their types, as counters of 32 bits or gauges of 64.
//= RFC 8671 §6.2 MUST: a Statistics Report has the O flag clear.
#[test]
fn numbers_have_their_types_and_widths() {
    let all = [
        Statistic::Rejected(1),
        Statistic::AdjRibIn(2),
        Statistic::LocRib(3),
        Statistic::AdjRibInOf(1, 1, 4),
        Statistic::LocRibOf(2, 1, 5),
        Statistic::TreatedAsWithdrawn(6),
        Statistic::AdjRibOut(7),
        Statistic::AdjRibOutOf(2, 1, 8),
    ];
    for table in [None, Some(Table::AdjRibOutPostPolicy)] {
        let message = statistics(&peer("192.0.2.2"), table, AT, &all);
        assert_eq!(peer_header(&message).1, 0);
    }
    let message = statistics(&peer("192.0.2.2"), None, AT, &all);
    let BmpMessageBody::StatsReport(it) = read(&message).message_body else { panic!() };
    let seen: Vec<_> = it.counters.into_iter().map(|it| (it.stat_type, it.stat_data)).collect();
    let expected = [
        (StatType::PrefixesRejectedByInboundPolicy, StatsData::Counter(1)),
        (StatType::RoutesInAdjRibsIn, StatsData::Gauge(2)),
        (StatType::RoutesInLocRib, StatsData::Gauge(3)),
        (StatType::RoutesInPerAfiSafiAdjRibIn, StatsData::AfiSafiGauge(1, 1, 4)),
        (StatType::RoutesInPerAfiSafiLocRib, StatsData::AfiSafiGauge(2, 1, 5)),
        (StatType::UpdatesSubjectedToTreatAsWithdraw, StatsData::Counter(6)),
        (StatType::RoutesInPostPolicyAdjRibOut, StatsData::Gauge(7)),
        (StatType::RoutesInPerAfiSafiPostPolicyAdjRibOut, StatsData::AfiSafiGauge(2, 1, 8)),
    ];
    assert_eq!(seen, expected);
}
