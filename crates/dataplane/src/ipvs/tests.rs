//! Requests as golden bytes, and lists as the kernel writes them.

use super::*;
use crate::message::{Content, answers};

fn web() -> VirtualAddress {
    VirtualAddress {
        address: Ipv4Addr::new(192, 0, 2, 1).into(),
        port: 80,
        protocol: TransportProtocol::Tcp,
    }
}

fn hex(bytes: &[u8]) -> String {
    let words = bytes.chunks(4).map(|word| word.iter().map(|it| format!("{it:02x}")).collect());
    words.collect::<Vec<String>>().join(" ")
}

#[test]
fn a_virtual_server_is_added_with_all_that_the_kernel_asks_for() {
    let settings = ServerSettings {
        scheduler: IpvsScheduler::MaglevHash,
        persistence: Some(Duration::from_secs(10_800)),
    };
    let expected = [
        // The frame: length, family 0x1c and request, sequence, port; the command and its version.
        "5c000000 1c000100 05000000 00000000 01010000",
        // Address family, protocol, address, port.
        "48000180 06000100 02000000 06000200 06000000",
        "08000300 c0000201 06000400 00500000",
        // Scheduler, flags with their mask, timeout, netmask.
        "07000600 6d680000 0c000700 19000000 ffffffff",
        "08000800 302a0000 08000900 ffffffff",
    ];
    assert_eq!(hex(&Change::Add(web(), settings).request(0x1c, 5)), expected.join(" "));
}

#[test]
fn a_real_server_is_added_with_its_method_weight_and_both_thresholds() {
    let real = RealServer { address: Ipv6Addr::LOCALHOST.into(), port: 8080 };
    let at = VirtualAddress {
        address: "2001:db8::1".parse().unwrap(),
        port: 53,
        protocol: TransportProtocol::Udp,
    };
    let expected = [
        "84000000 1c000100 05000000 00000000 05010000",
        "30000180 06000100 0a000000 06000200 11000000",
        "14000300 20010db8 00000000 00000000 00000001 06000400 00350000",
        "40000280 14000100 00000000 00000000 00000000 00000001 06000200 1f900000",
        "08000300 00000000 08000400 01000000 08000500 00000000 08000600 00000000",
    ];
    assert_eq!(hex(&Change::AddReal(at, real, 1).request(0x1c, 5)), expected.join(" "));
}

#[test]
fn what_is_removed_is_only_named() {
    let expected = "38000000 1c000100 05000000 00000000 03010000 24000180 06000100 02000000 06000200 \
                    06000000 08000300 c0000201 06000400 00500000";
    assert_eq!(hex(&Change::Remove(web()).request(0x1c, 5)), expected);
}

/// The payload of a message that we made ourselves: lists have the same attributes.
fn payload(request: &[u8]) -> &[u8] {
    match answers(request).next().unwrap().unwrap().content {
        Content::Payload(payload) => payload,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_list_says_what_was_set() {
    for scheduler in IpvsScheduler::ALL {
        for persistence in [None, Some(Duration::from_secs(7))] {
            let settings = ServerSettings { scheduler, persistence };
            let request = Change::Add(web(), settings).request(1, 1);
            let listed = listed_server(payload(&request)).unwrap();
            let traffic = Traffic::default();
            assert_eq!(listed, ListedServer { at: web(), settings: Some(settings), traffic });
        }
    }
    let real = RealServer { address: Ipv4Addr::new(10, 1, 0, 1).into(), port: 8080 };
    let request = Change::SetReal(web(), real, 3).request(1, 1);
    let listed = listed_real_server(payload(&request), web().address).unwrap();
    assert_eq!(listed, ListedRealServer { real_server: real, weight: 3, connections: 0 });
}

#[test]
fn settings_that_fairway_never_makes_are_recognized() {
    let make = |scheduler: &[u8], flags: u32| {
        let mut message = message(1, NEW_SERVICE, 0, 1);
        message.nested(SERVICE, |it| {
            name(it, web());
            it.attribute(SERVICE_SCHEDULER, scheduler);
            it.attribute(SERVICE_FLAGS, &[flags.to_ne_bytes(), [0xff; 4]].concat());
            it.attribute(SERVICE_TIMEOUT, &300_u32.to_ne_bytes());
        });
        listed_server(payload(&message.finish())).unwrap().settings
    };
    assert_eq!(make(b"rr\0", HASHED), Some(ServerSettings::default()));
    assert_eq!(make(b"rr\0", HASHED | 0x4), None, "one packet");
    assert_eq!(make(b"mh\0", HASHED), None, "no fallback");
    assert_eq!(make(b"later\0", HASHED), None, "a scheduler of a later kernel");
}

#[test]
fn a_server_by_mark_and_one_of_another_protocol_are_nobodys_service() {
    let mut message = message(1, NEW_SERVICE, 0, 1);
    message.nested(SERVICE, |it| {
        it.attribute(SERVICE_AF, &AF_INET.to_ne_bytes());
        it.attribute(SERVICE_MARK, &7_u32.to_ne_bytes());
    });
    assert_eq!(listed_server(payload(&message.finish())), None);
}

#[test]
fn whatever_is_cut_off_is_no_server_and_no_panic() {
    let real = RealServer { address: Ipv4Addr::new(10, 1, 0, 1).into(), port: 8080 };
    let requests = [
        Change::Add(web(), ServerSettings::default()).request(1, 1),
        Change::AddReal(web(), real, 1).request(1, 1),
    ];
    for request in requests {
        let payload = payload(&request);
        for end in 0..payload.len() {
            let cut = &payload[..end];
            assert!(listed_server(cut).is_none_or(|it| it.settings.is_none()), "{end}");
            let _ = listed_real_server(cut, web().address);
            let _ = family_of(cut);
        }
    }
}
