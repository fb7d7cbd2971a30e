//! The messages as another program reads them.

use bgpkit_parser::models::BgpMessage;
use bgpkit_parser::parse_bmp_msg;
use bgpkit_parser::parser::bmp::messages::{
    BmpMessage, BmpMessageBody, BmpPeerType, PeerDownReason, PerPeerFlags, StatType, StatsData,
    TerminationReason, TerminationTlvValue,
};

use super::*;

const AT: Stamp = Stamp(1_795_000_000_250_000);

fn peer(address: &str) -> Monitored {
    Monitored {
        address: address.parse().unwrap(),
        asn: 4_200_000_001,
        router_id: [10, 0, 0, 2].into(),
        vrf: None,
        two_octet_as: false,
    }
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

fn read(message: &Bytes) -> BmpMessage {
    let mut bytes = message.clone();
    let read = parse_bmp_msg(&mut bytes).unwrap();
    assert_eq!(usize::try_from(read.common_header.msg_len).unwrap(), message.len());
    read
}

#[test]
fn the_first_and_the_last_message_say_who_speaks_and_why_no_more() {
    let long = format!("ä{}", "b".repeat(300));
    let BmpMessageBody::InitiationMessage(it) = read(&initiation(&long, "node-a")).message_body
    else {
        panic!()
    };
    let texts: Vec<_> = it.tlvs.iter().map(|it| it.info.clone()).collect();
    assert_eq!(texts, [format!("?{}", "b".repeat(254)), "node-a".to_owned()]);
    let last = termination(Termination::AdministrativelyClosed);
    let BmpMessageBody::TerminationMessage(it) = read(&last).message_body else { panic!() };
    let expected = TerminationTlvValue::Reason(TerminationReason::AdministrativelyClosed);
    assert_eq!(it.tlvs[0].info_value, expected);
}

#[test]
fn a_session_that_comes_up_has_its_ends_and_both_opens() {
    for (address, local) in [("192.0.2.2", "192.0.2.1:179"), ("2001:db8::2", "[2001:db8::1]:179")] {
        let local: SocketAddr = local.parse().unwrap();
        let message = peer_up(&peer(address), AT, local, 40_000, (&open(), &open()));
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
        let BmpMessageBody::PeerDownNotification(down) =
            read(&peer_down(&peer("192.0.2.2"), AT, &why)).message_body
        else {
            panic!()
        };
        assert_eq!((down.reason, down.data), (reason, data));
    }
}

/// RFC 8671 §4, RFC 9069 §4.2.
#[test]
fn routes_say_which_table_they_are_in() {
    let node = Monitored { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), ..peer("192.0.2.2") };
    for (table, kind, flags) in [
        (Table::AdjRibInPrePolicy, BmpPeerType::Global, 0),
        (Table::AdjRibInPostPolicy, BmpPeerType::Global, 0x40),
        (Table::AdjRibOutPostPolicy, BmpPeerType::Global, 0x50),
        (Table::LocRib, BmpPeerType::LocalRib, 0),
    ] {
        let peer = if table == Table::LocRib { &node } else { &peer("192.0.2.2") };
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

/// RFC 9069 §5.2, §5.3.
#[test]
fn the_table_of_the_node_comes_and_goes_under_its_name() {
    let node = peer("0.0.0.0");
    let up = read(&loc_rib_up(&node, AT, "global", &open()));
    assert_eq!(up.per_peer_header.unwrap().peer_type, BmpPeerType::LocalRib);
    let BmpMessageBody::PeerUpNotification(it) = up.message_body else { panic!() };
    assert_eq!(it.tlvs[0].info_value, "global");
    let BmpMessageBody::PeerDownNotification(down) =
        read(&loc_rib_down(&node, AT, "global")).message_body
    else {
        panic!()
    };
    assert_eq!(down.reason, PeerDownReason::LocalSystemClosedTlvDataFollows);
    assert_eq!(down.data.unwrap(), b"\0\x03\0\x06global");
}

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
    let BmpMessageBody::StatsReport(it) =
        read(&statistics(&peer("192.0.2.2"), None, AT, &all)).message_body
    else {
        panic!()
    };
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
