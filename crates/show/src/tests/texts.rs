//! Text, column by column, as FRR 8.4 prints it.

use std::time::Duration;

use fairway_ground::{FamilySet, ListenRange, PeerKey, Remote, ShutdownMessage};
use fairway_seam::{LastReset, ListenRangeView, ResetCause, SessionState};
use serde_json::json;

use super::super::{ShowCommand, SummaryFamilies, SummaryFilter};
use super::lab::{self, Lab, fresh};
use super::{advertised, json, neighbors, text};

#[test]
fn a_summary_has_the_columns_of_frr() {
    let lab = Lab::new();
    let summary = text(&lab, &super::summary()).unwrap();
    // How much memory a neighbour takes may change.
    let lines: Vec<_> = summary.lines().filter(|line| !line.contains(" of memory")).collect();
    let expected = "
IPv4 Unicast Summary (VRF default):
BGP router identifier 10.0.0.1, local AS number 65001 vrf-id 0
BGP table version 10

Neighbor        V         AS   MsgRcvd   MsgSent   TblVer  InQ OutQ  Up/Down State/PfxRcd   PfxSnt Desc
10.1.1.2        4      65010        20        13        0    0    0 00:00:21            0        2 router one over
10.1.1.97       4      65097         0         0        0    0    0    never      Connect        0 nobody answers here
10.1.2.2        4      65020        23        17        0    0    0 00:00:02         Idle        0 router-two
10.9.9.9        4      65096         0         0        0    0    0    never       Active        0 N/A

Total number of neighbors 4

IPv6 Unicast Summary (VRF default):
BGP router identifier 10.0.0.1, local AS number 65001 vrf-id 0
BGP table version 10

Neighbor        V         AS   MsgRcvd   MsgSent   TblVer  InQ OutQ  Up/Down State/PfxRcd   PfxSnt Desc
2001:db8:1:1::2 4      65010        18        12        0    0    0 00:00:21            0        1 router one over

Total number of neighbors 1";
    assert_eq!(lines.join("\n"), expected);
    assert!(summary.contains("RIB entries 2, using "), "{summary}");
    assert!(summary.contains("\nPeers 4, using "), "{summary}");
}

#[test]
fn a_long_neighbor_widens_its_column() {
    let mut lab = Lab::new();
    lab.bgp.peers = vec![fresh("2001:db8:ffff:ffff:1111:2222:3333:4444", 65010, "far")];
    let summary = text(&lab, &super::summary()).unwrap();
    let expected = "\
Neighbor                               V         AS   MsgRcvd   MsgSent   TblVer  InQ OutQ  Up/Down State/PfxRcd   PfxSnt Desc
2001:db8:ffff:ffff:1111:2222:3333:4444 4      65010         0         0        0    0    0    never         Idle        0 far
";
    assert!(summary.contains(expected), "{summary}");
}

#[test]
fn a_family_that_the_neighbor_did_not_offer_is_marked() {
    let mut lab = Lab::new();
    lab.bgp.peers.truncate(1);
    lab.router_one().config.families = FamilySet::BOTH;
    let summary = text(&lab, &super::summary()).unwrap();
    let (_, ipv6) = summary.split_once("IPv6 Unicast Summary").unwrap();
    assert!(ipv6.contains("00:00:21        NoNeg    NoNeg router one over\n"), "{ipv6}");
}

#[test]
fn an_established_neighbor_has_the_lines_of_frr() {
    let lab = Lab::new();
    let expected = "\
BGP neighbor is 10.1.1.2, remote AS 65010, local AS 65001, external link
  Local Role: undefined
  Remote Role: undefined
 Description: router one over IPv4
Hostname: r1
  BGP version 4, remote router ID 10.0.0.2, local router ID 10.0.0.1
  BGP state = Established, up for 00:00:21
  Last read 00:00:02, Last write 00:00:03
  Hold time is 9 seconds, keepalive interval is 3 seconds
  Configured hold time is 9 seconds, keepalive interval is 3 seconds
  Neighbor capabilities:
    4 Byte AS: advertised and received
    Route refresh: advertised and received(old & new)
    Enhanced Route Refresh: received
    Address Family IPv4 Unicast: advertised and received
    Hostname Capability: not advertised received (name: r1,domain name: n/a)
    Unknown capability 99: received (01ff)
  Graceful restart information:
    Local GR Mode: Disable
    Remote GR Mode: Disable
    R bit: False
    N bit: False
    Timers:
      Configured Restart Time(sec): 0
      Received Restart Time(sec): 0
  Message statistics:
    Inq depth is 0
    Outq depth is 0
                         Sent       Rcvd
    Opens:                  2          2
    Notifications:          1          2
    Updates:                2          7
    Keepalives:             8          9
    Route Refresh:          0          0
    Capability:             0          0
    Total:                 13         20
  Minimum time between advertisement runs is 0 seconds

 For address family: IPv4 Unicast
  Community attribute sent to this neighbor(all)
  Inbound path policy configured
  Outbound path policy configured
  0 accepted prefixes
  2 sent prefixes
  6 refused prefixes

  Connections established 2; dropped 1
  Last reset 00:00:22,  Notification received (Cease/Unspecific)
  Last error: notification received: Cease (6/0)
  External BGP neighbor may be up to 1 hops away.
Local host: 10.1.1.1, Local port: 50296
Foreign host: 10.1.1.2, Foreign port: 179
BGP Connect Retry Timer in Seconds: 5
Peer Authentication Enabled
";
    assert_eq!(text(&lab, &neighbors("10.1.1.2")).unwrap(), expected);
}

#[test]
fn a_neighbor_that_is_down_says_why_and_when_it_is_tried_again() {
    let mut lab = Lab::new();
    let shown = text(&lab, &neighbors("10.1.2.2")).unwrap();
    for line in [
        "  BGP state = Idle\n",
        "  Not part of any update group\n",
        "  Last reset 00:00:02,  Notification received (Cease/Administrative Shutdown)\n",
        "Next start timer due in 1 seconds\n",
    ] {
        assert!(shown.contains(line), "{line}{shown}");
    }
    let shown = text(&lab, &neighbors("10.9.9.9")).unwrap();
    for line in [
        "  Last read never, Last write never\n",
        "  Last reset never\n",
        "Next connect timer due in 98 seconds\n",
    ] {
        assert!(shown.contains(line), "{line}{shown}");
    }
    assert!(!shown.contains("Local host"), "{shown}");
    let peer = lab.router_one();
    peer.last_reset.as_mut().unwrap().cause = ResetCause::NotificationSent(4, 0);
    peer.state = SessionState::OpenSent;
    peer.unannounced = vec![(lab::prefix("203.0.113.10/32"), "no next hop".to_owned())];
    let shown = text(&lab, &neighbors("10.1.1.2")).unwrap();
    assert!(shown.contains(",  Notification sent (Hold Timer Expired)\n"), "{shown}");
    assert!(shown.contains("  Not announced: 203.0.113.10/32: no next hop\n"), "{shown}");
}

pub(super) const HEAD: &str = "\
BGP table version is 10, local router ID is 10.0.0.1, vrf id 0
Default local pref 100, local AS 65001
Status codes:  s suppressed, d damped, h history, * valid, > best, = multipath,
               i internal, r RIB-failure, S Stale, R Removed
Nexthop codes: @NNN nexthop's vrf id, < announce-nh-self
Origin codes:  i - IGP, e - EGP, ? - incomplete
RPKI validation codes: V valid, I invalid, N Not found

   Network          Next Hop            Metric LocPrf Weight Path
";

#[test]
fn a_neighbor_that_is_not_accepted_says_why() {
    let mut lab = Lab::new();
    let question = ShowCommand::BgpNeighbors { peer: Some("10.1.1.2".to_owned()), family: None };
    let line = "\nIncoming connections are refused, only outgoing connections are used: no room for \
                its key\n";
    assert!(!text(&lab, &question).unwrap().contains("refused, only"));
    lab.router_one().not_accepted = Some("no room for its key");
    assert!(text(&lab, &question).unwrap().contains(line));
    let json = super::json(&lab, &question);
    assert_eq!(json["10.1.1.2"]["notAccepted"], "no room for its key");
}

#[test]
fn neighbors_of_a_range_have_the_marks_of_frr() {
    let mut lab = Lab::new();
    let prefix = lab::prefix("10.1.1.0/24");
    let listen_range = Some(ListenRange { prefix, limit: 20 });
    lab.router_one().config.listen_range = listen_range;
    let mut config = lab.router_one().config.clone();
    config.key = PeerKey { remote: Remote::Range(prefix), vrf: None };
    config.name = "rack".to_owned();
    lab.bgp.listen_ranges =
        vec![ListenRangeView { config, limit: 20, members: 1, not_accepted: None }];
    let shown = text(&lab, &super::summary()).unwrap();
    assert!(shown.contains("\n*10.1.1.2       4      65010"), "{shown}");
    let lines = "\n* - dynamic neighbor\n1 dynamic neighbor(s), limit 20\n\
                 Listen range 10.1.1.0/24 (rack): 1 of at most 20 neighbors\n";
    assert!(shown.contains(lines), "{shown}");
    lab.bgp.listen_ranges[0].not_accepted = Some("no room for its key");
    let shown = text(&lab, &super::summary()).unwrap();
    let line = "1 of at most 20 neighbors; no neighbor is accepted: no room for its key\n";
    assert!(shown.contains(line), "{shown}");
    let family = &json(&lab, &super::summary())["ipv4Unicast"];
    assert_eq!(family["listenRanges"]["10.1.1.0/24"]["notAccepted"], "no room for its key");
    assert_eq!(
        (&family["dynamicPeers"], &family["listenRanges"]["10.1.1.0/24"]["limit"]),
        (&json!(1), &json!(20))
    );
    assert_eq!(family["peers"]["10.1.1.2"]["dynamicPeer"], true);
    assert!(family["peers"]["10.1.1.97"].get("dynamicPeer").is_none());
    let neighbor = neighbors("10.1.1.2");
    let shown = text(&lab, &neighbor).unwrap();
    assert!(shown.starts_with("BGP neighbor is *10.1.1.2, "), "{shown}");
    assert!(shown.contains("\n Belongs to the subnet range group: 10.1.1.0/24\n"), "{shown}");
    assert_eq!(json(&lab, &neighbor)["10.1.1.2"]["peerSubnetRangeGroup"], "10.1.1.0/24");
}

#[test]
fn a_neighbor_that_is_shut_down_says_so_as_in_frr() {
    let mut lab = Lab::new();
    let peer = lab.router_one();
    peer.config.shutdown = Some(ShutdownMessage::default());
    (peer.state, peer.session) = (SessionState::Idle, None);
    peer.last_reset = Some(LastReset {
        ago: Duration::from_secs(1),
        cause: ResetCause::NotificationSent(6, 2),
        text: String::new(),
    });
    let shown = text(&lab, &super::summary()).unwrap();
    assert!(shown.contains(" Idle (Admin)        0 "), "{shown}");
    let summary = json(&lab, &super::summary());
    let row = &summary["ipv4Unicast"]["peers"]["10.1.1.2"];
    assert_eq!((&row["state"], &row["peerState"]), (&json!("Idle (Admin)"), &json!("Admin")));
    let neighbor = neighbors("10.1.1.2");
    let shown = text(&lab, &neighbor).unwrap();
    assert!(shown.contains("\n Administratively shut down\n"), "{shown}");
    assert!(shown.contains(",  Admin. shutdown\n"), "{shown}");
    let shown = json(&lab, &neighbor);
    assert_eq!(shown["10.1.1.2"]["adminShutDown"], true);
    assert_eq!(shown["10.1.1.2"]["lastResetCode"], 11);
}

#[test]
fn a_neighbor_that_was_down_when_it_was_shut_down_has_failed_for_that() {
    let mut lab = Lab::new();
    let peer = lab.router_one();
    peer.config.shutdown = Some(ShutdownMessage::default());
    (peer.state, peer.session, peer.last_reset) = (SessionState::Idle, None, None);
    let failed = super::summary_of(SummaryFamilies::All, SummaryFilter::Failed);
    let summary = json(&lab, &failed);
    let row = &summary["ipv4Unicast"]["peers"]["10.1.1.2"];
    assert_eq!(
        (&row["lastResetDueTo"], &row["lastResetCode"]),
        (&json!("Admin. shutdown"), &json!(11))
    );
    assert!(text(&lab, &failed).unwrap().contains(" Admin. shutdown\n"));
}

#[test]
fn a_neighbor_that_was_cleared_says_so_as_in_frr() {
    let mut lab = Lab::new();
    lab.router_one().last_reset = Some(LastReset {
        ago: Duration::from_secs(1),
        cause: ResetCause::NotificationSent(6, 4),
        text: "notification sent: Cease/Administrative Reset".to_owned(),
    });
    let shown = text(&lab, &neighbors("10.1.1.2")).unwrap();
    assert!(shown.contains("\n  Last reset 00:00:01,  User reset\n"), "{shown}");
    let shown = &json(&lab, &neighbors("10.1.1.2"))["10.1.1.2"];
    assert_eq!(
        (&shown["lastResetDueTo"], &shown["lastResetCode"]),
        (&json!("User reset"), &json!(12))
    );
    assert_eq!(shown["lastErrorCodeSubcode"], json!(null));
}

#[test]
fn a_neighbor_that_is_set_aside_says_why() {
    let mut lab = Lab::new();
    let question = ShowCommand::BgpNeighbors { peer: Some("10.1.1.2".to_owned()), family: None };
    lab.router_one().set_aside = Some("no such option".to_owned());
    assert!(text(&lab, &question).unwrap().contains("\nSession set aside: no such option\n"));
    let json = super::json(&lab, &question);
    assert_eq!(json["10.1.1.2"]["setAside"], "no such option");
}

#[test]
fn tables_have_the_columns_of_frr() {
    let lab = Lab::new();
    let rows = "\
*> 203.0.113.10/32  0.0.0.0                  0         32768 i
*> 203.0.113.11/32  0.0.0.0                  0         32768 i
*=                  0.0.0.0                  0    200  32768 i

Displayed  2 routes and 3 total paths
";
    assert_eq!(text(&lab, &lab::table_ipv4(None)).unwrap(), format!("{HEAD}{rows}"));
    let family = fairway_ground::AddressFamily::Ipv6Unicast;
    let rows = "\
*> 2001:db8:aaaa::10/128
                    ::                       0         32768 i

Displayed  1 routes and 1 total paths
";
    let shown = text(&lab, &ShowCommand::BgpUnicast { family, prefix: None }).unwrap();
    assert_eq!(shown, format!("{HEAD}{rows}"));
}

#[test]
fn advertised_routes_are_shown_as_they_were_sent() {
    let lab = Lab::new();
    let rows = "\
*> 203.0.113.10/32  10.1.1.1                           32768 65001 i
*> 203.0.113.11/32  10.1.1.1                           32768 65001 i

Total number of prefixes 2
";
    assert_eq!(text(&lab, &advertised("10.1.1.2")).unwrap(), format!("{HEAD}{rows}"));
    assert_eq!(text(&lab, &advertised("10.1.1.97")).unwrap(), "");
}

#[test]
fn an_entry_has_the_lines_of_frr() {
    let lab = Lab::new();
    let expected = "\
BGP routing table entry for 203.0.113.11/32, version 10
Paths: (2 available, best #1, table default)
  Advertised to non peer-group peers:
  10.1.1.2
  Local
    0.0.0.0 from 0.0.0.0 (10.0.0.1)
      Origin IGP, metric 0, weight 32768, valid, sourced, local, best (First path received)
      Community: 65001:100 no-export
      Large Community: 65001:1:10
  Local
    0.0.0.0 from 0.0.0.0 (10.0.0.1)
      Origin IGP, metric 0, localpref 200, weight 32768, valid, sourced, local, multipath
      Community: 65001:100 no-export
      Large Community: 65001:1:10
";
    assert_eq!(text(&lab, &lab::table_ipv4(Some("203.0.113.11"))).unwrap(), expected);
}
