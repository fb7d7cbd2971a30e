//! `fairway explain service` on a running daemon agrees with what the router received.

use serde_json::{Value, json};

use crate::scene;
use crate::stage::{SESSIONS, Stage};

/// From a healthy Service through changed addresses to a lost router.
pub(crate) fn the_chain_follows_what_happens(stage: &mut Stage) {
    let mut scene = scene::common();
    stage.put_all(&scene);
    let (view, _) = stage.barrier("before explaining", &SESSIONS);
    let first = explained(stage);
    assert_eq!((&first["told"], &first["planned"]), (&json!(3), &json!(3)), "{first:#}");
    assert_eq!(first["missing"], json!([]), "{first:#}");
    let prefix = first["bgp"][0]["prefix"].as_str().unwrap();
    let peers = first["bgp"][0]["peers"].as_array().unwrap();
    for name in SESSIONS {
        assert!(view[name].routes.contains_key(prefix), "{name} has no {prefix}: {view:#?}");
        let peer = peers.iter().find(|it| it["peer"] == name).unwrap();
        assert_eq!(peer["verdict"], "told", "{peer}");
        assert_eq!(peer["sent"]["communities"], json!(["65001:1"]), "{peer}");
    }

    // Changed addresses: the change is remembered, with the earlier value.
    scene.insert("pool".to_owned(), scene::pool("trial", &["10.11.0.0/24"]));
    stage.put_all(&scene);
    stage.barrier("other addresses", &SESSIONS);
    let second = explained(stage);
    assert_eq!(second["lastChange"]["addresses"]["before"], first["addresses"], "{second:#}");
    assert_ne!(second["addresses"], first["addresses"]);
    let text = stage.fairway(&["explain", "service", "default/trial"]);
    assert!(text.status.success(), "{text:?}");
    let text = String::from_utf8(text.stdout).unwrap();
    let before = first["addresses"][0].as_str().unwrap();
    assert!(text.contains(&format!("ago; before that {before}\n")), "{text}");
    assert!(text.contains("trial: gave 10.11.0."), "{text}");
    assert!(text.contains("steady: refused, autoAssign is false"), "{text}");

    // A lost router is reported as missing.
    scene.remove("their-trial");
    stage.put_all(&scene);
    stage.wait("the end of the session", |view| !view["trial"].is_up);
    stage.barrier("a router is gone", &SESSIONS[..2]);
    let third = explained(stage);
    assert_eq!((&third["told"], &third["planned"]), (&json!(2), &json!(3)), "{third:#}");
    let missing = third["missing"].to_string();
    assert!(missing.contains("peer trial is "), "{third:#}");

    let nobody = stage.fairway(&["explain", "service", "nobody"]);
    assert_eq!(nobody.status.code(), Some(1));
    let said = String::from_utf8(nobody.stderr).unwrap();
    assert!(said.contains("there is no Service nobody of type LoadBalancer"), "{said}");
}

fn explained(stage: &Stage) -> Value {
    let output = stage.fairway(&["explain", "service", "trial", "--json"]);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}
