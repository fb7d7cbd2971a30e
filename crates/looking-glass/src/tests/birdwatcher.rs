//! The fields of birdwatcher's schema, with the types that Alice-LG parses.

use fairway_ground::{Prefix, RouterId};
use serde_json::Value;

use super::found::World;
use crate::birdwatcher::{BirdwatcherError, Question, ROUTES_MAX};

fn world() -> World {
    let mut world = World::new();
    world.bgp.peers = vec![super::peer::tor()];
    world
}

fn ask(world: &World, path: &str) -> Value {
    let question = Question::of(path, None).unwrap();
    serde_json::from_str(&question.answer(&world.snapshot()).unwrap()).unwrap()
}

#[test]
fn every_answer_has_the_envelope() {
    for path in ["/status", "/protocols/bgp", "/routes/protocol/tor-1", "/routes/table/master"] {
        let answer = ask(&world(), path);
        assert!(answer["api"]["Version"].is_string() && answer["api"]["version"].is_string());
        assert_eq!(answer["api"]["result_from_cache"], false);
        assert_eq!(answer["api"]["cache_status"]["cached_at"]["date"], "2026-11-20T16:38:03Z");
        assert_eq!(answer["ttl"], "2026-11-20T16:38:08Z");
    }
}

#[test]
fn the_status_has_its_fields() {
    let status = ask(&world(), "/status")["status"].clone();
    for field in ["version", "message", "router_id"] {
        assert!(status[field].is_string(), "{field}: {status}");
    }
    assert_eq!(status["current_server"], "2026-11-20 16:38:03");
    assert_eq!(status["last_reboot"], "2026-11-20 16:37:03");
    assert_eq!(status["router_id"], RouterId::new(1).unwrap().to_string());
}

#[test]
fn protocols_are_a_map_by_name() {
    let protocol = ask(&world(), "/protocols/bgp")["protocols"]["tor-1"].clone();
    for field in
        ["neighbor_address", "state", "description", "state_changed", "uptime", "last_error"]
    {
        assert!(protocol[field].is_string(), "{field}: {protocol}");
    }
    assert_eq!((&protocol["state"], &protocol["neighbor_as"]), (&"up".into(), &64512.into()));
    let routes = &protocol["routes"];
    let counts =
        ["imported", "filtered", "exported", "preferred"].map(|it| routes[it].as_u64().unwrap());
    assert_eq!(counts, [3, 1, 0, 2]);
}

#[test]
fn routes_have_their_fields_in_their_types() {
    for path in ["/routes/protocol/tor-1", "/routes/peer/192.0.2.1"] {
        let answer = ask(&world(), path);
        let routes = answer["routes"].as_array().unwrap();
        assert_eq!(routes.len(), 3, "{path}");
        let route = &routes[1];
        for field in ["age", "network", "from_protocol", "interface", "gateway"] {
            assert!(route[field].is_string(), "{field}: {route}");
        }
        assert_eq!(route["primary"], true);
        assert!(route["metric"].is_u64() && route["type"].is_array());
        let bgp = &route["bgp"];
        assert_eq!(bgp["as_path"], serde_json::json!(["64512"]));
        assert_eq!(bgp["communities"], serde_json::json!([[65001, 100]]));
        assert_eq!(bgp["large_communities"], serde_json::json!([[64512, 7, 8]]));
        assert!(bgp["ext_communities"].is_array());
        let texts = ["local_pref", "med", "origin", "next_hop"].map(|it| bgp[it].as_str().unwrap());
        assert_eq!(texts, ["100", "50", "IGP", "192.0.2.1"]);
    }
}

#[test]
fn refused_routes_say_why_and_a_prefix_finds_its_longest_match() {
    let refused = ask(&world(), "/routes/filtered/tor-1")["routes"][0].clone();
    assert_eq!(refused["network"], "203.0.113.0/24");
    assert!(!refused["refused_because"].as_str().unwrap().is_empty());
    let networks = |path| {
        let answer = ask(&world(), path);
        let of = |it: &Value| it["network"].as_str().unwrap().to_owned();
        answer["routes"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(networks("/route/net/10.1.2.0/24"), ["10.1.0.0/16"]);
    assert_eq!(networks("/route/net/10.2.0.1/table/master"), ["10.0.0.0/8"]);
    assert_eq!(networks("/routes/noexport/tor-1"), [""; 0]);
}

#[test]
fn more_routes_than_an_answer_may_have_are_an_error_that_says_so() {
    let mut world = world();
    let (route, count) = (world.bgp.learned[0].clone(), u32::try_from(ROUTES_MAX).unwrap() + 1);
    world.bgp.learned = (0..count)
        .map(|it| {
            let prefix = Prefix::from_ipv4_bits(it << 8, 24).unwrap();
            fairway_seam::LearnedRoute { prefix, ..route.clone() }
        })
        .collect();
    let question = Question::of("/routes/table/master", None).unwrap();
    let error = question.answer(&world.snapshot()).unwrap_err();
    assert_eq!(error, BirdwatcherError::TooMany(ROUTES_MAX + 1));
    assert!(error.to_string().contains("100000"));
    world.bgp.peers[0].prefixes_accepted.ipv4 = count;
    assert!(question.refuse_early(&world.snapshot()).is_err());
}

#[test]
fn a_long_path_for_each_of_many_prefixes_is_an_error_that_says_so() {
    let mut world = world();
    let mut route = world.bgp.learned[0].clone();
    let mut attributes = (*route.path.attributes).clone();
    attributes.communities = vec!["65001:1".parse().unwrap(); 1_000].into();
    route.path.attributes = std::sync::Arc::new(attributes);
    world.bgp.learned = vec![route; 5_000];
    let question = Question::of("/routes/table/master", None).unwrap();
    let error = question.answer(&world.snapshot()).unwrap_err();
    assert_eq!(error, BirdwatcherError::TooLong(5_000));
}

#[test]
fn paths_and_names_that_are_unknown_are_errors() {
    for path in [
        "/",
        "/metrics",
        "/routes",
        "/routes/peer",
        "/routes/dump",
        "status",
        "/routes/protocol/a/b",
    ] {
        assert_eq!(Question::of(path, None), None, "{path}");
    }
    let ask = |path| Question::of(path, None).unwrap().answer(&world().snapshot()).unwrap_err();
    assert!(ask("/routes/protocol/tor-9").to_string().contains("tor-9"));
    assert!(ask("/route/net/ten").to_string().contains("ten"));
}
