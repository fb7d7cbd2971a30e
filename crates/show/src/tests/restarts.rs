//! A neighbour that restarts, beside what FRR 8.4 prints of one.

use std::time::Duration;

use fairway_ground::{AddressFamily, GracefulRestart, PerFamily};
use fairway_seam::capability::{Capability, KeptFamily, LongLivedOffer, RestartOffer};
use fairway_seam::{LastReset, ResetCause, StalePhase, StaleView};
use serde_json::{Value, json};

use super::super::ShowCommand;
use super::lab::{self, Lab};
use super::learned;
use super::shapes::assert_shape;
use super::{json as shown, neighbors, summary, text};

const IPV4: AddressFamily = AddressFamily::Ipv4Unicast;

fn offer(restarted: bool) -> RestartOffer {
    RestartOffer {
        restarted,
        notifications: true,
        restart_time_seconds: 60,
        families: vec![KeptFamily { family: IPV4.into(), forwarding: restarted }],
    }
}

/// Router one offers what a BIRD offers, and so do we.
fn up(restarted: bool) -> Lab {
    let mut lab = Lab::new();
    let peer = lab.router_one();
    peer.config.graceful_restart = Some(GracefulRestart::default());
    let session = peer.session.as_mut().unwrap();
    let ours = RestartOffer { restart_time_seconds: 120, ..offer(false) };
    session.capabilities_sent.push(Capability::GracefulRestart(ours));
    session.capabilities_received.push(Capability::GracefulRestart(offer(restarted)));
    (session.end_of_rib_sent.ipv4, session.end_of_rib_received.ipv4) = (true, true);
    lab
}

/// Router two is away, and three of its routes are kept.
fn away(phase: StalePhase, seconds: u64) -> Lab {
    let mut lab = learned::lab();
    let peer = lab.bgp.peers.iter_mut().find(|it| it.config.name == "router-two").unwrap();
    peer.config.graceful_restart = Some(GracefulRestart::default());
    peer.prefixes_accepted.ipv4 = 3;
    peer.last_reset = Some(LastReset {
        ago: Duration::ZERO,
        cause: ResetCause::PeerClosed,
        text: "the neighbor closed the connection".to_owned(),
    });
    peer.stale = Some(StaleView {
        routes: PerFamily { ipv4: 3, ipv6: 0 },
        phase,
        phase_ends_in: Duration::from_secs(seconds),
        removed_in: Duration::from_secs(seconds),
    });
    let from_router_two = lab::address("10.1.2.2");
    for route in &mut lab.bgp.learned {
        route.stale = route.path.source.address == from_router_two;
    }
    lab
}

fn restarts(lab: &Lab, peer: &str) -> Value {
    shown(lab, &neighbors(peer))[peer]["gracefulRestartInfo"].clone()
}

fn command(peer: Option<&str>) -> ShowCommand {
    ShowCommand::BgpGracefulRestart { peer: peer.map(str::to_owned), family: Some(IPV4) }
}

const ALWAYS: &str = "localGrMode:s remoteGrMode:s rBit:b nBit:b timers:o";

#[test]
fn what_both_sides_keep_has_the_keys_of_frr() {
    let lab = up(false);
    let restarts = restarts(&lab, "10.1.1.2");
    assert_shape(&restarts, &format!("endOfRibSend:o endOfRibRecv:o {ALWAYS} ipv4Unicast:o"));
    assert_eq!(restarts["endOfRibSend"], json!({"ipv4Unicast": true}));
    let modes = (&restarts["localGrMode"], &restarts["remoteGrMode"]);
    assert_eq!(modes, (&json!("Restart"), &json!("Restart")));
    assert_eq!((&restarts["rBit"], &restarts["nBit"]), (&json!(false), &json!(true)));
    // The second is FRR 10's.
    let timers = json!({
        "configuredRestartTimer": 120, "configuredLlgrStaleTime": 0, "receivedRestartTimer": 60,
    });
    assert_eq!(restarts["timers"], timers);
    let family = json!({
        "fBit": false,
        "endOfRibStatus":
            {"endOfRibSend": true, "endOfRibSentAfterUpdate": true, "endOfRibRecv": true},
        "timers": {"stalePathTimer": 360, "llgrStaleTime": 0, "selectionDeferralTimer": 60},
    });
    assert_eq!(restarts["ipv4Unicast"], family);
    let alone = shown(&lab, &command(Some("10.1.1.2")));
    let expected = format!("neighborAddr:s {ALWAYS} ipv4Unicast:o");
    assert_shape(&alone["10.1.1.2"], &expected);
    assert_eq!(alone["10.1.1.2"]["ipv4Unicast"], family);
}

#[test]
fn a_neighbor_without_it_says_so() {
    let lab = Lab::new();
    let info = restarts(&lab, "10.1.1.2");
    assert_shape(&info, &format!("endOfRibSend:o endOfRibRecv:o {ALWAYS}"));
    let modes = (&info["localGrMode"], &info["remoteGrMode"]);
    assert_eq!(modes, (&json!("Disable"), &json!("Disable")));
    let mut lab = up(false);
    let session = lab.router_one().session.as_mut().unwrap();
    session.capabilities_received.retain(|it| !matches!(it, Capability::GracefulRestart(_)));
    session.capabilities_received.push(Capability::end_of_rib());
    let info = restarts(&lab, "10.1.1.2");
    assert_eq!((&info["remoteGrMode"], &info["nBit"]), (&json!("Helper"), &json!(false)));
    assert_eq!(restarts(&lab, "10.9.9.9")["remoteGrMode"], "NotApplicable");
    let everybody = shown(&lab, &command(None));
    assert_eq!(everybody.as_object().unwrap().len(), 4);
    assert_eq!(shown(&lab, &command(Some("10.7.7.7"))), json!({"bgpNoSuchNeighbor": true}));
}

#[test]
fn a_neighbor_that_is_back_shows_what_it_preserved() {
    let mut lab = up(true);
    let peer = lab.router_one();
    peer.config.graceful_restart = GracefulRestart::new(120, 3600);
    peer.stale = Some(StaleView {
        routes: PerFamily { ipv4: 2, ipv6: 1 },
        phase: StalePhase::Back,
        phase_ends_in: Duration::from_secs(354),
        removed_in: Duration::from_secs(354),
    });
    let offers =
        vec![LongLivedOffer { family: IPV4.into(), forwarding: true, stale_time_seconds: 7200 }];
    let session = peer.session.as_mut().unwrap();
    session.capabilities_received.push(Capability::LongLivedGracefulRestart(offers));
    let neighbor = &shown(&lab, &neighbors("10.1.1.2"))["10.1.1.2"];
    let capabilities = &neighbor["neighborCapabilities"];
    assert_eq!(capabilities["gracefulRestart"], "advertisedAndReceived");
    assert_eq!(capabilities["gracefulRestartRemoteTimerMsecs"], 60_000);
    let preserved = json!({"ipv4Unicast": {"preserved": true}});
    assert_eq!(capabilities["addressFamiliesByPeer"], preserved);
    assert_eq!(capabilities["longLivedGracefulRestart"], "received");
    let long_lived = json!({"ipv4Unicast": "received"});
    assert_eq!(capabilities["longLivedGracefulRestartByPeer"], long_lived);
    let info = &neighbor["gracefulRestartInfo"];
    assert_eq!(info["gracefulStalepathTimerMsecs"], 354_000);
    assert_eq!((&info["rBit"], &info["ipv4Unicast"]["fBit"]), (&json!(true), &json!(true)));
    assert_eq!(info["ipv4Unicast"]["timers"]["stalePathTimerRemaining"], 354);
    assert_eq!(info["ipv4Unicast"]["timers"]["llgrStaleTime"], 7200);
    let kept = json!(
        {"phase": "back", "removedInMsecs": 354_000, "ipv4Unicast": 2, "ipv6Unicast": 1}
    );
    assert_eq!(info["staleRoutes"], kept);
    let lines = text(&lab, &neighbors("10.1.1.2")).unwrap();
    let expected = "    Long-lived Graceful Restart: received
      Address families by peer:
           IPv4 Unicast
";
    assert!(lines.contains(expected), "{lines}");
    let expected = "    Graceful Restart Capability: advertised and received
      Remote Restart timer is 60 seconds
      Address families by peer:
        IPv4 Unicast(preserved)
    Unknown capability 99: received (01ff)
  Graceful restart information:
    End-of-RIB send: IPv4 Unicast
    End-of-RIB received: IPv4 Unicast
    The remaining time of stalepath timer is 354
    Local GR Mode: Restart
    Remote GR Mode: Restart
    R bit: True
    N bit: True
    Timers:
      Configured Restart Time(sec): 120
      Received Restart Time(sec): 60
      Configured LLGR Stale Path Time(sec): 3600
    IPv4 Unicast:
      F bit: True
      End-of-RIB sent: Yes
      End-of-RIB sent after update: Yes
      End-of-RIB received: Yes
      Timers:
        Configured Stale Path Time(sec): 360
      Stale Path Remaining(sec): 354
        Configured Selection Deferral Time(sec): 60
        LLGR Stale Path Time(sec): 7200
    Stale routes: 2 IPv4 Unicast, 1 IPv6 Unicast; the neighbor is back and has not sent them \
                    again; removed in 354 seconds
  Message statistics:
";
    assert!(lines.contains(expected), "{lines}");
}

#[test]
fn while_a_neighbor_is_away_its_sessions_and_routes_are_those_of_frr() {
    let lab = away(StalePhase::Away, 58);
    let neighbor = &shown(&lab, &neighbors("10.1.2.2"))["10.1.2.2"];
    let info = &neighbor["gracefulRestartInfo"];
    let keys = format!(
        "endOfRibSend:o endOfRibRecv:o gracefulRestartTimerMsecs:n {ALWAYS} +staleRoutes:o"
    );
    assert_shape(info, &keys);
    assert_eq!(info["gracefulRestartTimerMsecs"], 58_000);
    assert_eq!(info["timers"]["restartTimerRemaining"], 58);
    assert_eq!(info["remoteGrMode"], "NotApplicable");
    assert_eq!(info["staleRoutes"]["phase"], "away");
    assert_eq!(neighbor["addressFamilyInfo"]["ipv4Unicast"]["acceptedPrefixCounter"], 3);
    let reset = (&neighbor["lastResetDueTo"], &neighbor["lastResetCode"]);
    assert_eq!(reset, (&json!("NSF peer closed the session"), &json!(22)));
    let row = &shown(&lab, &summary())["ipv4Unicast"]["peers"]["10.1.2.2"];
    assert_eq!((&row["state"], &row["peerState"]), (&json!("Idle"), &json!("NSF passive")));
    assert_eq!((&row["pfxRcd"], &row["pfxSnt"]), (&json!(3), &json!(0)));
    let lines = text(&lab, &summary()).unwrap();
    assert!(lines.contains(" 00:00:02         Idle        0 router-two"), "{lines}");

    let lines = text(&lab, &lab::table_ipv4(None)).unwrap();
    let rows = "\
S> 10.20.0.0/16     10.1.2.2                 5             0 65020 i
*                   10.1.1.2                               0 65010 65010 65500 65500 i
S> 10.40.0.0/16     10.1.2.2                               0 65020 ?
*>i10.50.0.0/16     10.1.3.2                      100      0 i
";
    assert!(lines.contains(rows), "{lines}");
    let table = shown(&lab, &lab::table_ipv4(None));
    let path = &table["routes"]["10.40.0.0/16"][0];
    let first: Vec<_> = path.as_object().unwrap().keys().take(3).collect();
    assert_eq!(first, ["stale", "valid", "bestpath"]);
    assert!(table["routes"]["10.50.0.0/16"][0].get("stale").is_none());

    let entry = shown(&lab, &lab::table_ipv4(Some("10.40.0.0/16")));
    assert_shape(
        &entry["paths"][0],
        "aspath:o stale:b origin:s valid:b version:n bestpath:o -lastUpdate:o \
         gracefulRestartSecondsRemaining:n nexthops:a peer:o",
    );
    let lines = text(&lab, &lab::table_ipv4(Some("10.40.0.0/16"))).unwrap();
    let expected = "\
  65020, (stale)
    10.1.2.2 from 10.1.2.2 (10.0.0.3)
      Origin incomplete, valid, external, best (First path received)
      Time until Graceful Restart stale route deleted: 58
";
    assert!(lines.contains(expected), "{lines}");
}

#[test]
fn routes_of_a_neighbor_that_is_away_for_long_say_when_they_go() {
    let lab = away(StalePhase::LongLived, 3_000);
    let entry = shown(&lab, &lab::table_ipv4(Some("10.40.0.0/16")));
    assert_eq!(entry["paths"][0]["llgrSecondsRemaining"], 3_000);
    let lines = text(&lab, &lab::table_ipv4(Some("10.40.0.0/16"))).unwrap();
    let line = "      Time until Long-lived stale route deleted: 3000\n";
    assert!(lines.contains(line), "{lines}");
    let lines = text(&lab, &neighbors("10.1.2.2")).unwrap();
    let line = "    Stale routes: 3 IPv4 Unicast; the neighbor is away, long-lived stale routes are \
                used as a last resort; removed in 3000 seconds\n";
    assert!(lines.contains(line), "{lines}");
    assert!(restarts(&lab, "10.1.2.2").get("gracefulRestartTimerMsecs").is_none());
    let back = away(StalePhase::Back, 3);
    let entry = shown(&back, &lab::table_ipv4(Some("10.40.0.0/16")));
    assert_eq!(entry["paths"][0]["stale"], true);
    assert!(entry["paths"][0].get("gracefulRestartSecondsRemaining").is_none());
}

#[test]
fn the_command_of_its_own_has_the_lines_of_frr() {
    let expected = "
Codes: GR - Graceful Restart, * -  Inheriting Global GR Config,
       Restart - GR Mode-Restarting, Helper - GR Mode-Helper,
       Disable - GR Mode-Disable.

Global BGP GR Mode :  Disable

BGP neighbor is 10.1.1.2
    Local GR Mode: Restart
    Remote GR Mode: Restart
    R bit: False
    N bit: True
    Timers:
      Configured Restart Time(sec): 120
      Received Restart Time(sec): 60
    IPv4 Unicast:
      F bit: False
      End-of-RIB sent: Yes
      End-of-RIB sent after update: Yes
      End-of-RIB received: Yes
      Timers:
        Configured Stale Path Time(sec): 360
        Configured Selection Deferral Time(sec): 60
";
    assert_eq!(text(&up(false), &command(Some("10.1.1.2"))).unwrap(), expected);
    let lines = text(&away(StalePhase::Away, 58), &command(None)).unwrap();
    let expected = "
BGP neighbor is 10.1.2.2
    Local GR Mode: Restart
    Remote GR Mode: NotApplicable
    R bit: False
    N bit: False
    Timers:
      Configured Restart Time(sec): 120
      Received Restart Time(sec): 0
      Restart Time Remaining(sec): 58

BGP neighbor is 10.9.9.9
";
    assert!(lines.contains(expected), "{lines}");
}
