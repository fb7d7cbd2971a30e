//! `explain peer`, `address`, `prefix`, `pool` and `node`: the first line, and that the rest is there.

use fairway_seam::{LastReset, Passage, ResetCause, RuleName, Withheld};

use super::explain::{FILES, lab_of};
use super::lab::Lab;
use super::*;
use crate::Explained;

fn first_line(lab: &Lab, what: Explained) -> String {
    let text = text(lab, &ShowCommand::Explain(what)).unwrap_or_else(|error| error.to_string());
    text.lines().next().unwrap_or_default().to_owned()
}

fn peer(name: &str) -> Explained {
    Explained::Peer(name.to_owned())
}

fn address(text: &str) -> Explained {
    Explained::Address(text.to_owned())
}

#[test]
fn a_peer_is_explained_by_its_cause_or_by_what_it_was_sent() {
    let mut lab = lab_of(FILES);
    assert_eq!(
        first_line(&lab, peer("one")),
        "Peer one (10.1.1.2) has a session and all planned routes: 1 of 1"
    );
    let spine = lab.bgp.peers.iter_mut().find(|it| it.config.name == "spine").unwrap();
    let cause = ResetCause::ConnectFailed;
    let text = "cannot connect: 10.1.1.97:179: Connection refused (os error 111)".to_owned();
    spine.last_reset = Some(LastReset { ago: std::time::Duration::from_secs(3), cause, text });
    assert_eq!(
        first_line(&lab, peer("10.1.1.97")),
        "Peer spine (10.1.1.97) refuses TCP port 179: no BGP speaker listens there, or a filter rejects us"
    );
    assert_eq!(
        first_line(&lab, peer("far")),
        "there is no neighbor far; this node has no session with it: its nodeSelectors do not select node-a"
    );
    let nobody = first_line(&lab, peer("nobody"));
    assert!(nobody.starts_with("there is no neighbor nobody; known: 10.1.1.2, "), "{nobody}");
}

#[test]
fn an_address_is_explained_by_its_owner_its_pool_or_its_route() {
    let lab = lab_of(FILES);
    for (asked, expected) in [
        ("203.0.113.10", "Address 203.0.113.10 belongs to Service shop/web"),
        ("203.0.113.11", "Address 203.0.113.11 belongs to no Service"),
        ("192.0.2.77", "Address 192.0.2.77 is in no pool, and no route leads to it"),
        (
            "203.0.113.10/32",
            "Prefix 203.0.113.10/32 is announced by node-a to 1 of 2 peers, for Service shop/web",
        ),
        ("192.0.2.0/24", "Prefix 192.0.2.0/24 is neither announced by node-a nor received"),
        (
            "web",
            "\"web\" is neither an address nor a prefix; expected one such as 198.51.100.10 or 198.51.100.0/24",
        ),
    ] {
        assert_eq!(first_line(&lab, address(asked)), expected);
    }
    let whole = text(&lab, &ShowCommand::Explain(address("203.0.113.10"))).unwrap();
    assert!(whole.contains("Pools        main holds it; one Service has it\n"), "{whole}");
    assert!(whole.contains("Service shop/web is announced by node-a"), "{whole}");
    let manual = text(&lab, &ShowCommand::Explain(address("198.51.100.1"))).unwrap();
    assert!(
        manual.contains("manual holds it; it is free, to Services that ask for the pool"),
        "{manual}"
    );
}

#[test]
fn routes_that_were_received_and_refused_are_named() {
    let lab = super::learned::with_refused();
    let best = text(&lab, &ShowCommand::Explain(address("10.20.7.7"))).unwrap();
    assert!(best.contains("10.20.0.0/16 from 10.1.2.2: AS path 65020, best\n"), "{best}");
    assert!(
        best.contains("10.20.0.0/16 from 10.1.1.2: AS path 65010 65010 65500 65500, lost at "),
        "{best}"
    );
    assert_eq!(
        first_line(&lab, address("203.0.113.0/24")),
        "Prefix 203.0.113.0/24 was received from 10.1.1.2 and refused: toReceive does not allow the prefix"
    );
    let refused = text(&lab, &ShowCommand::Explain(address("203.0.113.0/24"))).unwrap();
    assert!(refused.contains("from 10.1.1.2: toReceive does not allow the prefix"), "{refused}");
}

#[test]
fn what_is_passed_on_has_the_rule_that_decided() {
    let mut lab = super::learned::with_refused();
    let prefix = "10.20.0.0/16".parse().unwrap();
    let rule = RuleName { place: 1, name: Some("rest".into()) };
    let passages = [
        Passage::Passed(Some(RuleName { place: 0, name: None })),
        Passage::Withheld(Withheld::Rule(rule)),
    ];
    for (peer, passage) in lab.bgp.peers.iter_mut().zip(passages) {
        peer.passages = vec![(prefix, passage)];
    }
    let names: Vec<String> =
        lab.bgp.peers.iter().take(2).map(|peer| peer.config.name.clone()).collect();
    let text = text(&lab, &ShowCommand::Explain(address("10.20.0.0/16"))).unwrap();
    for line in [
        format!("10.20.0.0/16 to {}: rule 1 of toAdvertise accepts it\n", names[0]),
        format!("10.20.0.0/16 not to {}: rule 2 (rest) of toAdvertise rejects it\n", names[1]),
    ] {
        assert!(text.contains(&line), "{line}{text}");
    }
}

#[test]
fn a_question_about_an_address_is_one_about_all_prefixes_around_it() {
    for (wanted, prefix) in [
        ("10.20.7.7", "10.20.7.7/32"),
        ("2001:db8::1", "2001:db8::1/128"),
        ("10.20.0.0/16", "10.20.0.0/16"),
    ] {
        let scope = ShowCommand::Explain(address(wanted)).scope();
        assert_eq!(scope.passage, Some(prefix.parse().unwrap()));
    }
}

#[test]
fn a_pool_says_whether_it_has_room_and_who_has_its_addresses() {
    let lab = lab_of(FILES);
    let pool = |name: &str| Explained::Pool(name.to_owned());
    assert_eq!(first_line(&lab, pool("main")), "Pool main has free addresses");
    assert_eq!(
        first_line(&lab, pool("manual")),
        "Pool manual has free addresses, and no advertisement announces them"
    );
    assert_eq!(
        first_line(&lab, pool("mane")),
        "there is no IPAddressPool mane; known: kept, main, manual, six"
    );
    let whole = text(&lab, &ShowCommand::Explain(pool("main"))).unwrap();
    for part in
        ["shop/web: 203.0.113.10", "1 of 2 IPv4 addresses", "by BGPAdvertisement ", "every Service"]
    {
        assert!(whole.contains(part), "{part}: {whole}");
    }
    let full = lab_of(&FILES.replace("203.0.113.10/31", "203.0.113.10/32"));
    assert!(first_line(&full, pool("main")).starts_with("Pool main is full"));
}

#[test]
fn a_node_says_which_session_it_lacks() {
    let mut lab = lab_of(FILES);
    let node = |name: &str| Explained::Node(name.to_owned());
    let all = first_line(&lab, node("node-a"));
    assert!(all.starts_with("Node node-a lacks "), "{all}");
    lab.bgp.peers.retain(|peer| peer.state.name() == "Established");
    assert_eq!(first_line(&lab, node("node-a")), "Node node-a has all its sessions");
    lab.bgp.peers.clear();
    assert_eq!(first_line(&lab, node("node-a")), "Node node-a has no BGP neighbor");
    assert_eq!(
        first_line(&lab, node("node-b")),
        "this daemon knows only its own node, node-a; ask the daemon of node-b"
    );
}

#[test]
fn programs_get_the_verdict_of_each() {
    let lab = lab_of(FILES);
    for what in [
        peer("one"),
        address("203.0.113.10"),
        Explained::Pool("main".to_owned()),
        Explained::Node("node-a".to_owned()),
    ] {
        let shown = json(&lab, &ShowCommand::Explain(what.clone()));
        let verdict = shown.pointer("/verdict").or_else(|| shown.pointer("/items/0/verdict"));
        assert_eq!(verdict.and_then(Value::as_str), Some(first_line(&lab, what).as_str()));
    }
}

#[test]
fn what_may_be_typed_is_what_the_daemon_knows() {
    use crate::language::{Completed, Form, ValueName, complete};
    let lab = lab_of(FILES);
    let known = |value, form, start: &str| {
        let completed = Completed { value: Some(value), form, start: start.to_owned() };
        complete(&completed, &lab.snapshot())
    };
    assert_eq!(known(ValueName::Service, Form::Any, ""), ["shop/web"]);
    assert_eq!(known(ValueName::Pool, Form::Any, "m"), ["main", "manual"]);
    assert_eq!(known(ValueName::Vrf, Form::Any, ""), ["all", "default"]);
    assert_eq!(known(ValueName::Peer, Form::Ipv4, "10.1.1."), ["10.1.1.2", "10.1.1.97"]);
    assert_eq!(known(ValueName::Peer, Form::Ipv6, ""), ["2001:db8:1:1::2"]);
    assert_eq!(known(ValueName::Peer, Form::Name, "s"), ["spine"]);
    assert_eq!(known(ValueName::Prefix, Form::Any, "203"), ["203.0.113.10/32"]);
    assert_eq!(known(ValueName::Node, Form::Any, ""), ["node-a"]);
    assert_eq!(known(ValueName::Community, Form::Any, ""), [""; 0]);
}
