//! BFD sessions, against what FRR 10.3 prints of the same: its keys in its order, and its lines.

use std::time::Duration;

use fairway_ground::{BfdAuthenticationKind, BfdPath, BfdSettings};
use fairway_seam::bfd::{
    BfdCounters, BfdSessionView, BfdView, Diagnostic, DropReason, Drops, Realtime, RemoteTimers,
    RoundTrip, State,
};
use fairway_seam::{Liveness, PeerBfd};
use serde_json::{Value, json};

use super::super::{BfdDetail, ShowCommand, ShowError};
use super::lab::{Lab, address};
use super::shapes::assert_shape;
use super::{json as shown, neighbors, text};

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// No packet has arrived for 26 seconds, as at FRR's start.
fn down(remote: &str) -> BfdSessionView {
    let remote = address(remote);
    BfdSessionView {
        path: BfdPath { remote, vrf: None, multihop: false, interface: None, local: None },
        local: None,
        local_discriminator: 3_859_003_523,
        remote_discriminator: 0,
        passive: false,
        state: State::Down,
        remote_state: State::Down,
        since: Duration::from_secs(26),
        diagnostic: Diagnostic::NONE,
        remote_diagnostic: Diagnostic::NONE,
        is_closing: false,
        transmit_interval: milliseconds(300),
        receive_interval: milliseconds(300),
        echo_interval: None,
        detect_multiplier: 3,
        minimum_ttl: 254,
        authentication: None,
        remote_timers: None,
        agreed_transmit_interval: Some(milliseconds(1_000)),
        detection_time: None,
        agreed_echo_interval: None,
        is_polling: false,
        remote_demand: false,
        remote_control_plane_independent: false,
        round_trip: None,
        counters: BfdCounters { control_out: 29, events: 1, ..BfdCounters::default() },
        drops: Drops::default(),
    }
}

fn up(remote: &str, local: &str) -> BfdSessionView {
    BfdSessionView {
        local: Some(address(local)),
        local_discriminator: 1_374_014_072,
        remote_discriminator: 3_509_206_144,
        state: State::Up,
        remote_state: State::Up,
        since: Duration::from_secs(21),
        transmit_interval: milliseconds(200),
        receive_interval: milliseconds(200),
        echo_interval: Some(milliseconds(50)),
        remote_timers: Some(RemoteTimers {
            transmit_interval: milliseconds(200),
            receive_interval: milliseconds(200),
            echo_receive_interval: Duration::ZERO,
            detect_multiplier: 3,
        }),
        agreed_transmit_interval: Some(milliseconds(200)),
        detection_time: Some(milliseconds(600)),
        counters: BfdCounters {
            control_in: 129,
            control_out: 122,
            ups: 1,
            events: 2,
            ..BfdCounters::default()
        },
        ..down(remote)
    }
}

/// Multihop in a VRF, authenticated, with echo packets, and after some failures.
fn troubled() -> BfdSessionView {
    let mut drops = Drops::default();
    drops.count(DropReason::AuthenticationHash);
    drops.count(DropReason::AuthenticationHash);
    let session = up("198.51.100.9", "198.51.100.1");
    BfdSessionView {
        path: BfdPath {
            vrf: "red".parse().ok(),
            multihop: true,
            local: session.local,
            ..session.path
        },
        passive: true,
        state: State::AdminDown,
        minimum_ttl: 250,
        authentication: Some(BfdAuthenticationKind::MeticulousSha1),
        agreed_echo_interval: Some(milliseconds(50)),
        is_polling: true,
        round_trip: Some(RoundTrip {
            min: Duration::from_micros(80),
            average: Duration::from_micros(90),
            max: Duration::from_micros(120),
        }),
        counters: BfdCounters { stalls: 2, detections_put_off: 1, ..session.counters },
        drops,
        ..session
    }
}

fn lab(sessions: Vec<BfdSessionView>) -> Lab {
    let mut lab = Lab::new();
    lab.bgp.bfd = Some(BfdView { sessions, ..BfdView::default() });
    lab
}

fn peers(detail: BfdDetail) -> ShowCommand {
    ShowCommand::BfdPeers { detail }
}

fn peer(peer: &str) -> ShowCommand {
    ShowCommand::BfdPeer { peer: peer.to_owned(), detail: BfdDetail::Full }
}

const TIMERS: &str = "receive-interval:n transmit-interval:n echo-receive-interval:n \
    echo-transmit-interval:n detect-multiplier:n remote-receive-interval:n \
    remote-transmit-interval:n remote-echo-receive-interval:n remote-detect-multiplier:n \
    rtt-min:n rtt-avg:n rtt-max:n";
const OURS: &str = "+polling:b +remote-demand:b +remote-control-plane-independent:b";
const TROUBLE: &str = "+stalls:n +detections-put-off:n +dropped:o";

#[test]
fn sessions_have_the_keys_of_frr() {
    let lab = lab(vec![up("10.1.1.2", "10.1.1.1"), down("10.1.1.99"), troubled()]);
    let all = shown(&lab, &peers(BfdDetail::Full));
    assert_shape(
        &all[0],
        &format!(
            "multihop:b peer:s local:s vrf:s -interface:s id:n remote-id:n passive-mode:b status:s \
             uptime:n diagnostic:s remote-diagnostic:s type:s {TIMERS} +agreed-transmit-interval:n \
             +detection-time:n {OURS} {TROUBLE} +realtime:s"
        ),
    );
    assert_shape(
        &all[1],
        &format!(
            "multihop:b peer:s vrf:s id:n remote-id:n passive-mode:b status:s downtime:n \
             diagnostic:s remote-diagnostic:s type:s {TIMERS} +agreed-transmit-interval:n {OURS} \
             {TROUBLE} +realtime:s"
        ),
    );
    assert_shape(
        &all[2],
        &format!(
            "multihop:b peer:s local:s vrf:s id:n remote-id:n passive-mode:b minimum-ttl:n status:s \
             diagnostic:s remote-diagnostic:s type:s {TIMERS} +agreed-transmit-interval:n \
             +detection-time:n {OURS} +authentication:s {TROUBLE} +realtime:s"
        ),
    );
    assert_eq!(all, shown(&lab, &peers(BfdDetail::Brief)));
    assert_eq!(all[1], shown(&lab, &peer("10.1.1.99")));
    // FRR's numbers before the first packet from the other end.
    assert_eq!(
        (&all[1]["remote-receive-interval"], &all[1]["remote-echo-receive-interval"]),
        (&json!(1_000), &json!(0))
    );
    assert_eq!(
        (&all[0]["echo-receive-interval"], &all[0]["echo-transmit-interval"]),
        (&json!(50), &json!(0))
    );
    assert_eq!((&all[2]["status"], &all[2]["vrf"]), (&json!("shutdown"), &json!("red")));
    assert_eq!((&all[2]["rtt-min"], &all[2]["rtt-max"]), (&json!(80), &json!(120)));
    assert_eq!(all[2]["dropped"], json!({ "authentication-hash": 2 }));
    let counters = shown(&lab, &peers(BfdDetail::Counters));
    assert_shape(
        &counters[0],
        &format!(
            "multihop:b peer:s local:s vrf:s -interface:s control-packet-input:n \
             control-packet-output:n echo-packet-input:n echo-packet-output:n session-up:n \
             session-down:n zebra-notifications:n +transmit-failures:n +echo-looped:n {TROUBLE}"
        ),
    );
    assert_eq!(counters[2]["stalls"], 2);
}

#[test]
fn a_session_is_told_in_the_lines_of_frr() {
    let mut session = up("10.1.1.2", "10.1.1.1");
    session.path.interface = "eth1".parse().ok();
    let lab = lab(vec![session, down("10.1.1.99")]);
    let expected = "BFD Peers:
\tpeer 10.1.1.2 local-address 10.1.1.1 vrf default interface eth1
\t\tID: 1374014072
\t\tRemote ID: 3509206144
\t\tActive mode
\t\tStatus: up
\t\tUptime: 21 second(s)
\t\tDiagnostics: ok
\t\tRemote diagnostics: ok
\t\tPeer Type: dynamic
\t\tRTT min/avg/max: 0/0/0 usec
\t\tLocal timers:
\t\t\tDetect-multiplier: 3
\t\t\tReceive interval: 200ms
\t\t\tTransmission interval: 200ms
\t\t\tEcho receive interval: 50ms
\t\t\tEcho transmission interval: disabled
\t\tRemote timers:
\t\t\tDetect-multiplier: 3
\t\t\tReceive interval: 200ms
\t\t\tTransmission interval: 200ms
\t\t\tEcho receive interval: disabled
\t\tAgreed:
\t\t\tTransmission interval: 200ms
\t\t\tDetection time: 600ms
";
    let all = text(&lab, &peers(BfdDetail::Full)).unwrap();
    assert!(all.starts_with(&format!("{expected}\n\tpeer 10.1.1.99 vrf default\n")), "{all}");
    let one = text(&lab, &peer("10.1.1.2")).unwrap();
    assert_eq!(one, expected.replace("Peers:", "Peer:"));
    let counters = text(&lab, &peers(BfdDetail::Counters)).unwrap();
    let expected = "\tpeer 10.1.1.99 vrf default
\t\tControl packet input: 0 packets
\t\tControl packet output: 29 packets
\t\tEcho packet input: 0 packets
\t\tEcho packet output: 0 packets
\t\tSession up events: 0
\t\tSession down events: 0
\t\tZebra notifications: 1
\t\tTx fail packet: 0
";
    assert!(counters.ends_with(expected), "{counters}");
    let brief = text(&lab, &peers(BfdDetail::Brief)).unwrap();
    let row = "3859003523 unknown                                  10.1.1.99                               down           ";
    assert_eq!(brief.lines().last(), Some(row));
    assert!(brief.starts_with("Session count: 2\n"));
}

#[test]
fn trouble_is_told_where_there_is_any() {
    let mut lab = lab(vec![troubled()]);
    let all = text(&lab, &peers(BfdDetail::Full)).unwrap();
    for line in [
        "\tpeer 198.51.100.9 multihop local-address 198.51.100.1 vrf red\n",
        "\t\tPassive mode\n\t\tMinimum TTL: 250\n\t\tStatus: shutdown\n\t\tDiagnostics: ok\n",
        "\t\tRTT min/avg/max: 80/90/120 usec\n",
        "\t\tAuthentication: meticulous-keyed-sha1\n",
        "\t\tOwn stalls: 2, detections put off: 1\n",
        "\t\tDropped packets: authentication-hash 2\n",
    ] {
        assert!(all.contains(line), "{line}{all}");
    }
    assert!(!all.contains("Realtime") && !all.contains("Trouble"), "{all}");
    let node = lab.bgp.bfd.as_mut().unwrap();
    node.realtime = Realtime::Refused("it needs SYS_NICE".to_owned());
    node.trouble.push("port 3784 is taken: stop the other daemon".to_owned());
    node.drops.count(DropReason::UnknownSender);
    let all = text(&lab, &peers(BfdDetail::Full)).unwrap();
    for line in [
        "\nRealtime: refused: it needs SYS_NICE\n",
        "\nTrouble: port 3784 is taken: stop the other daemon\n",
        "\nPackets that match no session: unknown-sender 1\n",
    ] {
        assert!(all.contains(line), "{line}{all}");
    }
    let session = shown(&lab, &peer("198.51.100.9"));
    assert_eq!(session["realtime"], "refused: it needs SYS_NICE");
    // In every output.
    let trouble = "port 3784 is taken: stop the other daemon";
    for command in [peers(BfdDetail::Brief), peers(BfdDetail::Counters), peer("198.51.100.9")] {
        let words = text(&lab, &command).unwrap();
        assert!(words.contains(&format!("\nTrouble: {trouble}\n")), "{words}");
        let object = shown(&lab, &command);
        let session = object.get(0).unwrap_or(&object);
        assert_eq!((&session["trouble"], &session["ended"]), (&json!([trouble]), &Value::Null));
    }
    lab.bgp.bfd.as_mut().unwrap().ended = true;
    assert_eq!(shown(&lab, &peers(BfdDetail::Full))[0]["ended"], true);
}

#[test]
fn a_session_is_found_by_the_address_and_by_the_name_of_its_peer() {
    let session = up("2001:db8::1", "2001:db8::2");
    let mut lab = lab(vec![up("10.1.1.99", "10.1.1.1"), session.clone()]);
    let router = lab.router_one();
    router.bfd_path = Some(session.path);
    let name = router.config.name.clone();
    for wanted in ["2001:db8::1", "2001:DB8:0::1", &name] {
        assert_eq!(shown(&lab, &peer(wanted))["peer"], "2001:db8::1", "{wanted}");
    }
    let nobody = ShowError::NoSuchBfdPeer("nobody".to_owned());
    assert_eq!(text(&lab, &peer("nobody")), Err(nobody));
}

#[test]
fn who_is_on_its_way_out_is_not_shown() {
    let lab = lab(vec![BfdSessionView { is_closing: true, ..up("10.1.1.2", "10.1.1.1") }]);
    assert_eq!(shown(&lab, &peers(BfdDetail::Full)), Value::Array(Vec::new()));
    let nobody = ShowError::NoSuchBfdPeer("10.1.1.2".to_owned());
    assert_eq!(text(&lab, &peer("10.1.1.2")), Err(nobody));
}

#[test]
fn a_neighbor_says_what_bfd_says_of_it() {
    let mut lab = Lab::new();
    let peer = lab.router_one();
    let settings = BfdSettings { transmit_interval: milliseconds(50), ..BfdSettings::default() };
    peer.config.bfd = Some(PeerBfd { profile: "fast".to_owned(), settings, strict: true });
    let of = |lab: &Lab| shown(lab, &neighbors("10.1.1.2"))["10.1.1.2"]["peerBfdInfo"].clone();
    let waiting = of(&lab);
    assert_shape(
        &waiting,
        "type:s detectMultiplier:n rxMinInterval:n txMinInterval:n status:s lastUpdate:s +strict:b",
    );
    assert_eq!((&waiting["status"], &waiting["type"]), (&json!("Unknown"), &json!("single hop")));
    let peer = lab.router_one();
    (peer.liveness, peer.liveness_since) = (Liveness::Up, Some(Duration::from_secs(21)));
    peer.config.bfd.as_mut().unwrap().strict = false;
    let expected = json!({
        "type": "single hop",
        "detectMultiplier": 3,
        "rxMinInterval": 300,
        "txMinInterval": 50,
        "status": "Up",
        "lastUpdate": "0:00:00:21",
    });
    assert_eq!(of(&lab).to_string(), expected.to_string());
    let words = text(&lab, &neighbors("10.1.1.2")).unwrap();
    let lines = "\n\n  BFD: Type: single hop\n  Detect Multiplier: 3, Min Rx interval: 300, Min Tx \
                 interval: 50\n  Status: Up, Last update: 0:00:00:21\n";
    assert!(words.ends_with(lines), "{words}");
    let peer = lab.router_one();
    peer.waits_for_bfd = true;
    let words = text(&lab, &neighbors("10.1.1.2")).unwrap();
    assert!(words.contains("Waiting for BFD (bfdStrict): no session before BFD is Up\n"));
    assert_eq!(shown(&lab, &neighbors("10.1.1.2"))["10.1.1.2"]["waitsForBfd"], true);
}
