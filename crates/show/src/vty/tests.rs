//! The meaning of each line, and the replies for which FRR has its own text.

use std::collections::BTreeSet;

use fairway_ground::AddressFamily;
use serde_json::Value;

use super::Daemon;
use super::question as understand;
use super::reply::{Reply, answer, refusal};
use crate::language::{Misread, Question};
use crate::tests::lab::{Lab, fresh};
use crate::{Format, PeerRoutes, Query, ShowCommand, SummaryFamilies, SummaryFilter, VrfSelection};

const IPV4: AddressFamily = AddressFamily::Ipv4Unicast;
const IPV6: AddressFamily = AddressFamily::Ipv6Unicast;

/// The replies of a daemon without a neighbour.
fn ask(daemon: Daemon, line: &str) -> Reply {
    ask_in(&Lab::without_peers(), daemon, line)
}

fn ask_in(lab: &Lab, daemon: Daemon, line: &str) -> Reply {
    match understand(daemon, line) {
        Ok(question) => answer(&question, &lab.snapshot()),
        Err(why) => refusal(daemon, line, why),
    }
}

fn bgp(line: &str) -> (String, u8) {
    let Reply { text, status } = ask(Daemon::Bgpd, line);
    (text, status)
}

fn question(line: &str) -> (ShowCommand, Format, VrfSelection) {
    match understand(Daemon::Bgpd, line) {
        Ok(Question::Show(Query { what, format, vrf })) => (what, format, vrf),
        other => panic!("{line}: {other:?}"),
    }
}

fn summary(families: SummaryFamilies) -> ShowCommand {
    ShowCommand::BgpSummary { families, filter: SummaryFilter::Everybody }
}

#[test]
fn a_line_may_be_short_and_oddly_spaced() {
    let expected = (summary(SummaryFamilies::All), Format::Text, VrfSelection::Undivided);
    for line in
        ["show bgp summary", "sh bgp sum", "  show   ip bgp\tsummary ", "do show bgp summary"]
    {
        assert_eq!(question(line), expected, "{line}");
    }
    // As the exporter writes it, with two blanks.
    let (what, format, vrf) = question("show bgp vrf all ipv4  summary json");
    assert_eq!(what, summary(SummaryFamilies::OneByName(IPV4)));
    assert_eq!((format, vrf), (Format::Json, VrfSelection::All));
}

#[test]
fn a_command_without_a_family_has_the_one_of_frr() {
    let table = |family| ShowCommand::BgpUnicast { family, prefix: None };
    assert_eq!(question("show bgp").0, table(IPV6));
    assert_eq!(question("show ip bgp").0, table(IPV4));
    assert_eq!(question("show bgp ipv4").0, table(IPV4));
    assert_eq!(question("show bgp vrf all json").0, table(IPV6));
    let entry =
        |family, prefix: &str| ShowCommand::BgpUnicast { family, prefix: Some(prefix.to_owned()) };
    assert_eq!(question("show bgp 198.51.100.5").0, entry(IPV4, "198.51.100.5"));
    assert_eq!(question("show bgp ipv6 2001:db8::/32").0, entry(IPV6, "2001:db8::/32"));
}

#[test]
fn the_routes_of_a_neighbor_are_told_apart() {
    for (word, routes) in [
        ("advertised-routes", PeerRoutes::Advertised),
        ("received-routes", PeerRoutes::Received),
        ("filtered-routes", PeerRoutes::Filtered),
        ("routes", PeerRoutes::Accepted),
        ("adv", PeerRoutes::Advertised),
    ] {
        let line = format!("show bgp ipv4 unicast neighbors 10.1.1.2 {word} json");
        let peer = "10.1.1.2".to_owned();
        let expected = ShowCommand::BgpPeerRoutes { peer, family: Some(IPV4), routes };
        assert_eq!(question(&line).0, expected, "{line}");
    }
}

#[test]
fn what_outlives_a_session_is_asked_of_one_neighbor_or_of_all() {
    let asked = |peer: Option<&str>, family| ShowCommand::BgpGracefulRestart {
        peer: peer.map(str::to_owned),
        family,
    };
    for (line, expected) in [
        (
            "show bgp ipv4 neighbors 10.1.1.2 graceful-restart json",
            asked(Some("10.1.1.2"), Some(IPV4)),
        ),
        ("show bgp ipv6 neighbors graceful-restart", asked(None, Some(IPV6))),
        ("show bgp neighbors graceful-restart", asked(None, None)),
    ] {
        assert_eq!(question(line).0, expected, "{line}");
    }
    let line = "show bgp ipv4 unicast neighbors 10.1.1.2 graceful-restart";
    assert_eq!(understand(Daemon::Bgpd, line), Err(Misread::NoMatch));
}

#[test]
fn refusals_are_those_of_frr() {
    for (line, text, status) in [
        ("show bgp nonsense", "% [BGP] Unknown command: show bgp nonsense\n", 2),
        ("show daemons", "% [BGP] Unknown command: show daemons\n", 2),
        ("show bfd peers", "% [BGP] Unknown command: show bfd peers\n", 2),
        ("configure terminal", "% [BGP] Unknown command: configure terminal\n", 2),
        ("clear bgp *", "% [BGP] Unknown command: clear bgp *\n", 2),
        ("router bgp 65001", "% [BGP] Unknown command: router bgp 65001\n", 2),
        (
            "show bgp ipv4 unicast 1.2.3.4/33",
            "% [BGP] Unknown command: show bgp ipv4 unicast 1.2.3.4/33\n",
            2,
        ),
        ("show b s", "% Ambiguous command.\n", 3),
        ("show bgp s", "% Ambiguous command.\n", 3),
        ("show bgp n", "% Ambiguous command.\n", 3),
        ("show", "% Command incomplete.\n", 4),
        ("show bgp ipv4 unicast neighbors", "% Command incomplete.\n", 4),
        ("show bgp vrf red summary", "% BGP instance not found\n", 1),
        ("show bgp ipv4 unicast 10.99.0.0/24", "% Network not in table\n", 1),
        (
            "show bgp ipv4 unicast neighbors 10.1.1.77 routes",
            "No such neighbor in this view/vrf\n",
            1,
        ),
        ("show bgp neighbors 10.1.1.77", "% No such neighbor in this view/vrf\n\n", 0),
        (
            "show bgp ipv4 neighbors 10.1.1.77 graceful-restart",
            "% No such neighbor in this view/vrf\n\n",
            0,
        ),
        ("show ip bgp 2001:db8::/32", "% Cannot specify IPv6 address or prefix with IPv4 AFI\n", 1),
        ("show bgp vrf red", "View/Vrf red is unknown\n", 1),
        ("show bgp vrf red nexthop", "% No such BGP instance exist\n", 1),
        ("show ip bgp large-community 1:2", "% Large-community malformed\n", 1),
        ("show bgp ipv4 unicast community 1:2:3", "% Community malformed: 1:2:3\n", 1),
    ] {
        assert_eq!(bgp(line), (text.to_owned(), status), "{line}");
    }
}

#[test]
fn what_vtysh_says_on_its_way_is_taken() {
    for line in
        ["enable", "disable", "end", "exit", "terminal length 0", "", "  ", "! remark", "# x"]
    {
        assert_eq!(bgp(line), (String::new(), 0), "{line:?}");
    }
    assert_eq!(understand(Daemon::Zebra, "quit"), Ok(Question::Exit));
    let (text, status) = bgp("do write terminal");
    assert!(text.contains("hostname node-a\n") && status == 0, "{text}");
}

#[test]
fn answers_of_all_vrfs_are_keyed_by_name() {
    let all = |line: &str| bgp(line).0.split_whitespace().collect::<String>();
    assert_eq!(all("show bgp vrf all ipv4 unicast summary json"), r#"{"default":{}}"#);
    assert_eq!(
        all("show bgp vrf all neighbors json"),
        r#"{"default":{"vrfId":0,"vrfName":"default"}}"#
    );
    assert!(all("show bgp vrf all json").starts_with(r#"{"default":{"vrfId":0,"#));
    assert_eq!(all("show bgp vrf red neighbors json"), "{}");
    let (text, _) = bgp("show bgp vrf all neighbors");
    assert_eq!(text, "\nInstance default:\n% No BGP neighbors found\n");
}

#[test]
fn a_daemon_without_peers_and_routes_says_what_frr_says() {
    let ask = |daemon, line| ask(daemon, line).text;
    assert_eq!(ask(Daemon::Bfdd, "show bfd peers json"), "[]\n");
    assert_eq!(ask(Daemon::Bfdd, "show bfd vrf default peers counters json"), "[]\n");
    assert_eq!(
        ask(Daemon::Bfdd, "show bfd peer 10.1.1.77 json"),
        "% Unable to find 'peer 10.1.1.77'\n"
    );
    let summary: Value =
        serde_json::from_str(&ask(Daemon::Zebra, "show ip route vrf all summary json")).unwrap();
    let expected = r#"{"default":{"routes":[],"routesTotal":0,"routesTotalFib":0}}"#;
    assert_eq!(summary.to_string(), expected);
    assert_eq!(ask(Daemon::Zebra, "show ip route"), "");
}

#[test]
fn the_first_line_of_the_version_is_made_for_programs_and_says_who_it_is() {
    for daemon in Daemon::ALL {
        let text = ask(daemon, "show version").text;
        let first = text.lines().next().unwrap();
        let version = first.strip_prefix("FRRouting ").and_then(|it| it.split(' ').next()).unwrap();
        assert!(version.contains("fairway"), "{first}");
        assert!(first.ends_with(" on Linux."), "{first}");
    }
}

#[test]
fn no_command_is_understood_in_two_ways() {
    // Of each pattern the shortest line that differs from the others.
    let lines = [
        "show bgp summary",
        "show bgp neighbors",
        "show bgp neighbors a routes",
        "show bgp",
        "show bgp detail",
        "show bgp 10.0.0.1",
        "show bgp 10.0.0.0/8",
        "show bgp community 1:1",
        "show bgp large-community 1:1:1",
        "show bgp peer-group",
        "show bgp nexthop",
        "show bgp router",
        "show bgp neighbors a prefix-counts",
        "show bgp neighbors a graceful-restart",
        "show version",
        "show running-config",
        "write terminal",
    ];
    let mut questions = BTreeSet::new();
    for line in lines {
        let question = understand(Daemon::Bgpd, line);
        assert!(!matches!(question, Err(Misread::Ambiguous)), "{line}");
        questions.insert(format!("{question:?}"));
    }
    assert_eq!(questions.len(), lines.len() - 1, "show running-config and write terminal are one");
}

#[test]
fn each_vrf_is_an_instance_of_its_own_and_the_first_is_the_main_one() {
    let mut lab = Lab::without_peers();
    let mut blue = fresh("10.2.0.1", 65030, "blue-one");
    blue.config.key.vrf = "blue".parse().ok();
    lab.bgp.peers = vec![fresh("10.1.0.1", 65010, "one"), blue];
    let peers = |line: &str| -> Value {
        let reply = ask_in(&lab, Daemon::Bgpd, line);
        serde_json::from_str(&reply.text).unwrap_or_else(|error| panic!("{line}: {error}"))
    };
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let main = peers("show bgp summary json");
    assert_eq!(keys(&main["ipv4Unicast"]["peers"]), ["10.1.0.1"]);
    let blue = peers("show bgp vrf blue ipv4 unicast summary json");
    assert_eq!(keys(&blue["peers"]), ["10.2.0.1"]);
    assert_eq!((&blue["vrfName"], blue.get("vrfId")), (&"blue".into(), None));
    assert_eq!(keys(&peers("show bgp vrf all json")), ["default", "blue"]);
    let neighbors = peers("show bgp vrf all neighbors json");
    assert_eq!(keys(&neighbors["blue"]), ["vrfName", "10.2.0.1"]);
    let text = ask_in(&lab, Daemon::Bgpd, "show bgp vrf all neighbors").text;
    assert!(text.contains("\nInstance blue:\nBGP neighbor is 10.2.0.1, "), "{text}");
}
