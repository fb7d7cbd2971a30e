//! What stays in force while there are faults, across edits, second files and restarts.

use fairway_ground::{Asn, RemoteAs};
use fairway_model::Object;
use fairway_resources::{Catalog, Resolution};

use super::{GOOD, assert_all_in_force, good, pool};

#[test]
fn an_object_that_breaks_keeps_its_last_good_version() {
    let (mut catalog, keys) = good();
    let before = catalog.resolve().objects;
    for broken in [
        GOOD.replace("64501", "0"),
        GOOD.replace("192.0.2.1", "\t- ["),
        GOOD.replace("name: tor", "name: TOR"),
        GOOD.replace("kind: BGPPeer", "kind: BGPPear"),
        GOOD.replace("spec: {myASN", "spec: {{myASN"),
        GOOD.replace("metallb.io/v1beta2", "metallb.io/v1beta3"),
        "{{{".to_owned(),
    ] {
        catalog.file_read("good.yaml", &broken);
        let resolution = catalog.resolve();
        assert!(resolution.has_faults(), "{broken}");
        assert_all_in_force(&resolution, &keys, &broken);
        assert_eq!(resolution.objects, before, "{broken}");
        assert!(resolution.stale.iter().any(|stale| stale.key.to_string() == "BGPPeer/tor"));
    }
    catalog.file_read("good.yaml", GOOD);
    let resolution = catalog.resolve();
    assert_eq!((resolution.findings.len(), resolution.stale.len()), (0, 0));
}

#[test]
fn an_empty_namespace_is_none_where_an_object_breaks_too() {
    let mut catalog = Catalog::new();
    let sound = pool("addresses: [10.0.0.0/24]");
    catalog.file_read("pool.yaml", &sound);
    assert_eq!(catalog.resolve().objects.len(), 1);
    let broken = sound.replace("name: new", "name: new\n  namespace: ''").replace("10.0.0.0", "x");
    catalog.file_read("pool.yaml", &broken);
    let resolution = catalog.resolve();
    assert_eq!((resolution.objects.len(), resolution.stale.len()), (1, 1), "{resolution:#?}");
}

#[test]
fn a_list_without_items_that_can_be_read_withdraws_nothing() {
    let item = |name: &str, third: u8| {
        format!(
            "- {{apiVersion: metallb.io/v1beta1, kind: IPAddressPool, metadata: {{name: {name}}}, \
             spec: {{addresses: [10.0.{third}.0/24]}}}}\n"
        )
    };
    let head = "apiVersion: v1\nkind: List\n";
    let (one, two) = (item("one", 1), item("two", 2));
    let mut catalog = Catalog::new();
    catalog.file_read("list.yaml", &format!("{head}items:\n{one}{two}"));
    let before = catalog.resolve().objects;
    assert_eq!(before.len(), 2);
    for (rest, line, says) in [
        ("", 1, "List: items: is missing; expected a list of objects"),
        ("items: none\n", 3, "List: items: is not a list; expected a list of objects"),
        ("items: {a: b}\n", 3, "List: items: is not a list; expected a list of objects"),
        (
            &format!("items:\n{one}items:\n{two}"),
            5,
            "List: items: is given twice, on lines 3 and 5",
        ),
    ] {
        catalog.file_read("list.yaml", &format!("{head}{rest}"));
        let resolution = catalog.resolve();
        assert_eq!(resolution.objects, before, "{rest}");
        let faults: Vec<_> = resolution.findings.iter().filter(|it| it.is_fault()).collect();
        assert_eq!(faults.len(), 1, "{rest}: {faults:#?}");
        assert!(
            faults[0].to_string().starts_with(&format!("list.yaml:{line}: {says}")),
            "{}",
            faults[0]
        );
    }
    catalog.file_read("list.yaml", &format!("{head}items: null\n"));
    assert_eq!(catalog.resolve(), Resolution::default());
}

#[test]
fn only_what_is_really_gone_is_withdrawn() {
    let (mut catalog, keys) = good();
    let without_peer = GOOD.split_once("---\n").unwrap().1;
    catalog.file_read("good.yaml", without_peer);
    assert_eq!(catalog.resolve().objects.len(), keys.len() - 1);
    catalog.file_read("good.yaml", GOOD);
    catalog.resolve();
    catalog.file_unreadable("good.yaml", "is not text");
    let resolution = catalog.resolve();
    assert_all_in_force(&resolution, &keys, "unreadable");
    assert_eq!(resolution.findings.len(), 1);
    assert_eq!(resolution.findings[0].to_string(), "good.yaml: is not text");
    assert_eq!(resolution.stale.len(), keys.len());
    catalog.file_gone("good.yaml");
    assert_eq!(catalog.resolve(), Resolution::default());
}

#[test]
fn a_file_without_any_content_withdraws_nothing() {
    let (mut catalog, keys) = good();
    let before = catalog.resolve().objects;
    let saved = catalog.last_good().to_json();
    let mut restarted = Catalog::new();
    restarted.restore(&saved).unwrap();
    for text in ["", " \n\t\n", "\u{feff}\r\n"] {
        for catalog in [&mut catalog, &mut restarted] {
            catalog.file_read("good.yaml", text);
            catalog.forget_unread();
            let resolution = catalog.resolve();
            assert_eq!(resolution.objects, before, "{text:?}");
            assert_eq!(resolution.stale.len(), keys.len());
            let findings: Vec<_> = resolution.findings.iter().map(ToString::to_string).collect();
            let expected = "good.yaml: is empty; if that is intended, delete the file or leave a \
                            comment in it";
            assert_eq!(findings, [expected]);
        }
    }
    // Its objects may have moved to another file meanwhile.
    catalog.file_read("new.yaml", GOOD);
    let resolution = catalog.resolve();
    assert_eq!((resolution.objects, resolution.stale), (before, vec![]));
    for text in ["# nothing any more\n", "---\n"] {
        restarted.file_read("good.yaml", text);
        assert_eq!(restarted.resolve(), Resolution::default(), "{text:?}");
    }
}

#[test]
fn the_second_definition_of_an_object_does_not_count() {
    let (mut catalog, _) = good();
    catalog.file_read("z.yaml", &GOOD.replace("64501", "64999"));
    let resolution = catalog.resolve();
    assert_eq!(resolution.objects.len(), 6);
    let faults: Vec<_> = resolution.findings.iter().map(ToString::to_string).collect();
    assert_eq!(faults.len(), 6, "{faults:#?}");
    assert!(faults[0].starts_with("z.yaml:1: BGPPeer/tor: is defined already at good.yaml:1"));
    assert!(resolution.objects.iter().all(|object| match object {
        Object::Peer(peer) => peer.remote_as == RemoteAs::Asn(Asn::new(64501).unwrap()),
        _ => true,
    }));
    catalog.file_gone("good.yaml");
    assert_eq!(catalog.resolve().findings, []);
}

#[test]
fn a_new_object_never_pushes_out_one_that_works() {
    let (mut catalog, keys) = good();
    // Its name precedes that of the pool it overlaps.
    let rival = pool("addresses: [198.51.100.128/25]").replace("name: new", "name: a");
    catalog.file_read("a.yaml", &rival);
    let resolution = catalog.resolve();
    assert_all_in_force(&resolution, &keys, "rival");
    assert_eq!(resolution.objects.len(), keys.len());
    assert!(resolution.findings[0].to_string().starts_with("a.yaml:6: IPAddressPool/a"));
    // If both are new, names decide.
    let mut fresh = Catalog::new();
    fresh.file_read("good.yaml", GOOD);
    fresh.file_read("a.yaml", &rival);
    let pools: Vec<_> = fresh
        .resolve()
        .objects
        .into_iter()
        .filter_map(|object| match object {
            Object::Pool(pool) => Some(pool.name.name.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(pools, ["a"]);
}

#[test]
fn an_object_at_fault_because_of_others_keeps_its_last_good_version() {
    let (mut catalog, keys) = good();
    catalog.file_read("b.yaml", &pool("addresses: [10.0.0.0/24]"));
    catalog.resolve();
    catalog.file_read("b.yaml", &pool("addresses: [198.51.100.0/25]"));
    let resolution = catalog.resolve();
    assert_eq!(resolution.objects.len(), keys.len() + 1);
    assert_eq!(resolution.stale.len(), 1);
    assert_eq!((resolution.stale[0].file.as_str(), resolution.stale[0].line), ("b.yaml", 1));
}

#[test]
fn last_good_versions_survive_a_restart() {
    let (catalog, keys) = good();
    let saved = catalog.last_good().to_json();
    let restarted = |text: Option<&str>| {
        let mut catalog = Catalog::new();
        catalog.restore(&saved).unwrap();
        assert_eq!(catalog.resolve().objects, [], "nothing is in force before its file is read");
        match text {
            Some(text) => catalog.file_read("good.yaml", text),
            None => catalog.file_unreadable("good.yaml", "is not text"),
        }
        catalog.forget_unread();
        catalog.resolve()
    };
    let whole = restarted(Some(GOOD));
    assert_eq!((whole.objects.len(), whole.stale.len()), (6, 0));
    for broken in [Some(GOOD.replace("64501", "0")), Some("{{{".to_owned()), None] {
        let resolution = restarted(broken.as_deref());
        assert_eq!(resolution.objects, whole.objects, "{broken:?}");
        assert_all_in_force(&resolution, &keys, "restart");
        assert!(!resolution.stale.is_empty());
    }
    assert_eq!(restarted(Some("# nothing")).objects, []);
    let other = saved.replace("\"format\":1", "\"format\":99");
    assert!(Catalog::new().restore(&other).unwrap_err().to_string().contains("99"));
    assert!(Catalog::new().restore("[]").is_err());
}
