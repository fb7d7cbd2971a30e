//! Answers of three nodes, one of which does not answer.

use serde_json::{Value, json};

use super::*;

fn list(items: &[(&str, Value)]) -> NodeAnswers {
    let item = |(node, rest): &(&str, Value)| {
        let mut item = rest.clone();
        item["metadata"] = json!({ "name": node });
        item
    };
    // As they come.
    let items: Vec<Value> = items.iter().rev().map(item).collect();
    NodeAnswers::of(&json!({ "kind": "AnswerList", "items": items })).unwrap()
}

/// Two nodes with these answers, and one that is down.
fn nodes(a: Value, b: Value) -> NodeAnswers {
    list(&[
        ("a", json!({ "answer": a })),
        ("b", json!({ "answer": b })),
        ("c", json!({ "unanswered": "no connection to 192.0.2.3:7474 within 1 s" })),
    ])
}

const DOWN: &str = "
NODE   NO ANSWER
c      no connection to 192.0.2.3:7474 within 1 s
";

fn summary(state: &str, received: u64) -> Value {
    let family = |received| {
        json!({ "peers": { "192.0.2.21": {
            "remoteAs": 65002, "state": state, "peerUptime": "00:01:02", "desc": "tor-1",
            "pfxRcd": received, "pfxSnt": 2, "connectionsDropped": 1,
        } } })
    };
    json!({ "ipv4Unicast": family(received), "ipv6Unicast": family(1) })
}

#[test]
fn each_peer_of_each_node_is_a_row_and_a_node_without_answer_is_one() {
    let answers = nodes(summary("Established", 4), summary("Active", 0));
    let table = "NODE   PEER          ADDRESS      AS      STATE         SINCE      RECEIVED   SENT
a      tor-1         192.0.2.21   65002   Established   00:01:02   5          4
b      tor-1         192.0.2.21   65002   Active        00:01:02   1          4
c      <no answer>
";
    assert_eq!(answers.text(Subject::Peers, false), format!("{table}{DOWN}"));
    let wide = answers.text(Subject::Peers, true);
    assert!(wide.contains("4/2    1/2    1"), "{wide}");
    assert!(!answers.are_whole(Subject::Peers));
}

fn services(told: &[&str], reason: &str) -> Value {
    json!({ "items": [{
        "namespace": "shop", "name": "web", "addresses": ["192.0.2.1", "2001:db8::1"], "pool": "main",
        "reason": reason,
        "announced": [
            { "address": "192.0.2.1", "prefix": "192.0.2.1/32", "peers": told },
            { "address": "2001:db8::1", "prefix": "2001:db8::1/128", "peers": told },
        ],
    }] })
}

#[test]
fn a_service_names_the_nodes_that_announce_it() {
    let answers = nodes(services(&["tor-1", "tor-2"], ""), services(&[], "no endpoint is ready"));
    let table = "\
NAMESPACE   NAME   ADDRESSES               POOL   ANNOUNCED BY   REASON
shop        web    192.0.2.1,2001:db8::1   main   a              b: no endpoint is ready
";
    assert_eq!(answers.text(Subject::Services, false), format!("{table}{DOWN}"));
    let wide = answers.text(Subject::Services, true);
    assert!(wide.contains("   a to tor-1,tor-2   b: no endpoint is ready"), "{wide}");
}

#[test]
fn a_node_that_leaves_a_service_to_others_needs_no_reason() {
    let local = "noLocalEndpoints: externalTrafficPolicy is Local";
    let column = |answers: NodeAnswers, is_wide| {
        let text = answers.text(Subject::Services, is_wide);
        text.contains(local)
    };
    let announced = || nodes(services(&["tor-1"], ""), services(&[], local));
    assert!(!column(announced(), false));
    assert!(column(announced(), true));
    assert!(column(nodes(services(&[], local), services(&[], local)), false));
}

#[test]
fn pools_that_all_nodes_have_alike_are_one_row() {
    let pool = |used: u64| {
        json!({ "items": [{
            "name": "main", "addresses": ["192.0.2.0/29"], "autoAssign": true,
            "assignedIPv4": used, "availableIPv4": 8 - used, "assignedIPv6": 0, "availableIPv6": 0,
        }] })
    };
    let table = |rows: &str| {
        let heading =
            "NAME   ADDRESSES      IPV4 USED/TOTAL   IPV6 USED/TOTAL   AUTO ASSIGN   NODES";
        format!("{heading}\n{rows}{DOWN}")
    };
    let row = |used, nodes: &str| {
        format!(
            "main   192.0.2.0/29   {used}/8               0/0               true          {nodes}\n"
        )
    };
    assert_eq!(nodes(pool(1), pool(1)).text(Subject::Pools, false), table(&row(1, "all")));
    let behind = nodes(pool(1), pool(2)).text(Subject::Pools, false);
    assert_eq!(behind, table(&(row(1, "a") + &row(2, "b"))));
}

#[test]
fn routes_are_in_the_order_of_their_prefixes_and_name_their_nodes() {
    let table = |networks: &[&str]| -> Value {
        let own = json!([{ "peerId": "(unspec)", "path": "" }]);
        let mut routes: Map<String, Value> =
            networks.iter().map(|it| ((*it).to_owned(), own.clone())).collect();
        let learned = json!([{
            "peerId": "192.0.2.21", "path": "65002", "nexthops": [{ "ip": "192.0.2.21" }],
        }]);
        routes.insert("0.0.0.0/0".to_owned(), learned);
        json!({ "routes": routes })
    };
    let of = |networks: &[&str]| {
        let answers = ["a", "b"].map(|node| (node, json!({ "answer": table(networks) })));
        list(&answers)
    };
    let both = NodeAnswers::of_families(of(&["10.0.0.0/8", "9.0.0.0/8"]), of(&["2001:db8::/32"]));
    let expected = "\
NETWORK         FROM         AS PATH   NODES
0.0.0.0/0       192.0.2.21   65002     a,b
9.0.0.0/8       itself                 a,b
10.0.0.0/8      itself                 a,b
2001:db8::/32   itself                 a,b
";
    assert_eq!(both.text(Subject::Routes, false), expected);
    // To one prefix, as FRR shows one.
    let path = json!({ "aspath": { "string": "65002 65003" }, "peer": { "peerId": "192.0.2.21" },
        "nexthops": [{ "ip": "192.0.2.21" }] });
    let own = json!({ "aspath": { "string": "Local" }, "sourced": true, "peer": { "peerId": "0.0.0.0" } });
    let one = nodes(json!({ "prefix": "9.0.0.0/8", "paths": [own, path] }), json!({}));
    let expected = "\
NETWORK     FROM         AS PATH       NODES
9.0.0.0/8   192.0.2.21   65002 65003   a
9.0.0.0/8   itself                     a
";
    assert_eq!(one.text(Subject::Routes, false), format!("{expected}{DOWN}"));
}

#[test]
fn a_node_that_answers_for_one_family_has_not_answered() {
    let of = |node: &'static str| list(&[(node, json!({ "answer": {} }))]);
    for both in
        [NodeAnswers::of_families(of("a"), of("b")), NodeAnswers::of_families(of("b"), of("a"))]
    {
        assert!(!both.are_whole(Subject::Routes), "{both:?}");
        assert!(both.text(Subject::Routes, false).contains("for one family only"), "{both:?}");
    }
}

#[test]
fn faults_name_their_nodes() {
    let faults = |left_out: &[&str]| {
        let finding = json!({
            "severity": "fault", "object": { "kind": "BGPPeer", "name": "tor-1" },
            "field": "spec.myASN", "message": "must not be 0",
        });
        json!({
            "items": [{ "kind": "BGPPeer", "namespace": "system", "name": "tor-1", "state": "stale" }],
            "findings": [finding], "leftOut": left_out, "notInForce": [],
        })
    };
    let answers = nodes(faults(&[]), faults(&["a peer has no Secret"]));
    let table = "\
NODES   FAULT
all     BGPPeer system/tor-1: an earlier version is in force
all     BGPPeer/tor-1: spec.myASN: must not be 0
b       a peer has no Secret
";
    assert_eq!(answers.text(Subject::Faults, false), format!("{table}{DOWN}"));
    assert!(answers.have_faults());
    let warning =
        json!({ "findings": [{ "severity": "warning", "message": "nobody announces it" }] });
    let warned = nodes(warning.clone(), warning);
    assert!(warned.text(Subject::Faults, false).contains("all     warning: nobody announces it"));
    assert!(!warned.have_faults());
    let none = list(&[("a", json!({ "answer": { "items": [], "findings": [] } }))]);
    assert_eq!(none.text(Subject::Faults, false), "No faults.\n");
    assert!(!none.have_faults());
}

#[test]
fn an_explanation_that_some_nodes_share_is_told_once() {
    let verdict = |text: &str| json!({ "items": [{ "verdict": text }] });
    let answers = nodes(verdict("peer tor-1 is up"), verdict("peer tor-1 is up"));
    let table = "NODES   VERDICT\na,b     peer tor-1 is up\n";
    assert_eq!(answers.text(Subject::Verdicts, false), format!("{table}{DOWN}"));
    let answers = nodes(json!("up\n"), json!("up\n"));
    assert_eq!(answers.texts(), format!("a,b:\nup\n\n{DOWN}"));
    let alone = list(&[("a", json!({ "answer": "up\n" }))]);
    assert_eq!(alone.texts(), "up\n");
}

#[test]
fn what_no_node_can_is_refused_with_their_reason() {
    let refused = json!({ "error": "% No such neighbor" });
    let answers = list(&[("a", refused.clone()), ("b", json!({ "unanswered": "down" }))]);
    // The other one could know it.
    let down = "\nNODE   NO ANSWER\nb      down\na      No such neighbor\n";
    assert_eq!(answers.text(Subject::Verdicts, false), down);
    assert_eq!(answers.refusal(), None);
    let both = list(&[("a", refused.clone()), ("b", refused.clone())]);
    assert_eq!(both.refusal(), Some("% No such neighbor"));
    let answers = list(&[("a", refused), ("b", json!({ "answer": {} }))]);
    assert_eq!(answers.refusal(), None);
    assert!(answers.are_whole(Subject::Verdicts));
    assert!(!answers.are_whole(Subject::Peers));
    let silent = list(&[("a", json!({ "unanswered": "down" }))]);
    assert!(!silent.text(Subject::Faults, false).contains("No faults"));
}

#[test]
fn an_answer_of_another_version_does_no_harm() {
    for strange in [json!(null), json!(7), json!([]), json!({ "items": [null, {}], "routes": 1 })] {
        let answers = nodes(strange.clone(), json!({ "ipv4Unicast": { "peers": [] } }));
        for subject in [
            Subject::Peers,
            Subject::Routes,
            Subject::Services,
            Subject::Pools,
            Subject::Faults,
            Subject::Verdicts,
        ] {
            assert!(answers.text(subject, true).contains("NO ANSWER"), "{strange}");
        }
    }
    assert_eq!(NodeAnswers::of(&json!({ "items": [{ "metadata": {} }] })), None);
    assert_eq!(NodeAnswers::of(&json!({ "kind": "Status" })), None);
}
