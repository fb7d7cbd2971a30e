//! Objects that are valid each on its own and invalid together, and objects that reference others.

use fairway_model::{Object, ObjectKey, Secret};
use fairway_resources::{Catalog, Resolution};

use super::{
    GOOD, SOUND_PEER, advertisement, assert_all_in_force, beside_good, good, manifest, one_fault,
    peer, pool,
};

fn local_prefs(resolution: &Resolution) -> Vec<(&str, Option<u32>)> {
    let found = resolution.objects.iter().filter_map(|object| match object {
        Object::BgpAdvertisement(it) => Some((it.name.name.as_str(), it.local_pref)),
        _ => None,
    });
    found.collect()
}

fn faults(resolution: &Resolution) -> Vec<String> {
    let faults = resolution.findings.iter().filter(|finding| finding.is_fault());
    faults.map(ToString::to_string).collect()
}

fn named(name: &str, text: &str) -> String {
    text.replace("name: new", &format!("name: {name}"))
}

#[test]
fn a_new_advertisement_with_another_local_pref_takes_no_service_off_the_routers() {
    for spec in [
        "localPref: 200",
        "localPref: 200\nipAddressPools: [public]",
        "localPref: 200\nipAddressPoolSelectors: [{matchExpressions: [{key: x, operator: \
         DoesNotExist}]}]",
        "localPref: 200\npeers: [other, tor]",
        "localPref: 200\nnodeSelectors: [{matchLabels: {rack: a}}]",
        "localPref: 200\naggregationLengthV6: 64",
    ] {
        let (mut catalog, keys) = good();
        // Its name comes first, and still the new one is the fault.
        catalog.file_read("bad.yaml", &named("aaa", &advertisement(spec)));
        let resolution = catalog.resolve();
        assert_all_in_force(&resolution, &keys, spec);
        assert_eq!(local_prefs(&resolution), [("all", None)], "{spec}");
        let expected = "bad.yaml:6: BGPAdvertisement/aaa: spec.localPref: is 200, but unset in \
                        BGPAdvertisement/all, which may announce IPAddressPool/public to the same \
                        peers; expected the same value";
        let faults = faults(&resolution);
        assert_eq!(faults.len(), 1, "{spec}: {faults:#?}");
        assert!(faults[0].starts_with(expected), "{spec}: {faults:#?}");
    }
}

#[test]
fn all_that_is_wrong_between_an_object_and_others_is_told_at_once() {
    for (text, expected) in [
        (
            peer(&format!("{SOUND_PEER}passwordSecret: {{name: none}}\nbfdProfile: none")),
            &["spec.passwordSecret.name: there is no", "spec.bfdProfile: there is no"][..],
        ),
        (
            advertisement("communities: [x, y]\naggregationLength: 8\nlocalPref: 7"),
            &[
                "spec.communities[0]: x is not defined",
                "spec.communities[1]: y is not defined",
                "spec.aggregationLength: 8 would announce more",
            ][..],
        ),
        (
            named("public", &pool("addresses: [198.51.100.0/30, 10.0.0.0/8, 198.51.100.4/30]")),
            &[
                "metadata.name: is the name of another IPAddressPool",
                "spec.addresses[0]: 198.51.100.0-198.51.100.3 overlaps",
                "spec.addresses[2]: 198.51.100.4-198.51.100.7 overlaps",
            ][..],
        ),
    ] {
        let resolution = beside_good("together", &text);
        let faults = faults(&resolution);
        assert_eq!(faults.len(), expected.len(), "{faults:#?}");
        for (fault, expected) in faults.iter().zip(expected) {
            assert!(fault.contains(expected), "{expected}: {faults:#?}");
        }
    }
}

#[test]
fn whatever_a_route_has_once_may_not_be_contradicted() {
    for (spec, field, says) in [
        ("med: 0", "spec.med", "is 0, but unset in BGPAdvertisement/all"),
        ("asPathPrepend: 3", "spec.asPathPrepend", "is 3, but unset in BGPAdvertisement/all"),
        ("linkBandwidth: auto", "spec.linkBandwidth", "is auto, but unset in"),
        ("linkBandwidth: 1000000000", "spec.linkBandwidth", "is 1000000000, but unset in"),
    ] {
        one_fault(spec, &advertisement(spec), 6, field, says);
    }
    // Unset agrees with the default written out.
    let silent = beside_good("silent", &advertisement("asPathPrepend: 0\nlocalPref: 0"));
    assert_eq!(silent.findings, []);
}

#[test]
fn advertisements_that_never_meet_may_differ_in_local_pref() {
    let node = |name: &str, rack: &str| {
        format!(
            "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{rack: {rack}}}}}\n"
        )
    };
    let nodes = node("one", "a") + &node("two", "b");
    let in_rack = |rack: &str| format!("nodeSelectors: [{{matchLabels: {{rack: {rack}}}}}]");
    let other_pool = format!("---\n{}", pool("addresses: [203.0.113.0/24]"));
    for (first, second, more) in [
        ("{}", "localPref: 0", ""),
        ("localPref: 100", "localPref: 200\naggregationLength: 24", ""),
        ("peers: [tor]", "peers: [other]\nlocalPref: 200", ""),
        ("{}", "localPref: 200\nserviceSelectors: [{matchLabels: {a: b}}]", ""),
        ("ipAddressPools: [public]", "ipAddressPools: [new]\nlocalPref: 200", &*other_pool),
        (&*in_rack("a"), &format!("{}\nlocalPref: 200", in_rack("b")), &*nodes),
    ] {
        let mut catalog = Catalog::new();
        let public = named("public", &pool("addresses: [198.51.100.0/24]"));
        catalog.file_read("good.yaml", &format!("{public}{more}"));
        catalog.file_read("a.yaml", &named("a", &advertisement(first)));
        catalog.file_read("b.yaml", &named("b", &advertisement(second)));
        let resolution = catalog.resolve();
        assert_eq!(faults(&resolution), Vec::<String>::new(), "{first} and {second}");
        assert_eq!(local_prefs(&resolution).len(), 2);
    }
}

#[test]
fn of_two_advertisements_that_are_new_together_the_name_decides() {
    let mut catalog = Catalog::new();
    catalog.file_read("pool.yaml", &pool("addresses: [198.51.100.0/24]"));
    catalog.file_read("a.yaml", &named("z", &advertisement("localPref: 300")));
    catalog.file_read("b.yaml", &named("b", &advertisement("localPref: 200")));
    let resolution = catalog.resolve();
    assert_eq!(local_prefs(&resolution), [("b", Some(200))]);
    assert!(
        faults(&resolution)[0].starts_with("a.yaml:6: BGPAdvertisement/z: spec.localPref: is 300")
    );
}

#[test]
fn an_advertisement_that_comes_into_conflict_keeps_its_last_good_version() {
    let (mut catalog, _) = good();
    let other = |spec: &str| named("other", &advertisement(spec));
    catalog.file_read("b.yaml", &other("communities: ['1:1']"));
    assert!(!catalog.resolve().has_faults());
    catalog.file_read("b.yaml", &other("communities: ['1:1']\nlocalPref: 50"));
    let resolution = catalog.resolve();
    assert_eq!(local_prefs(&resolution), [("other", None), ("all", None)]);
    assert_eq!(resolution.stale.len(), 1);
}

#[test]
fn a_pool_that_would_set_two_advertisements_against_each_other_is_at_fault_itself() {
    let (mut catalog, keys) = good();
    let spec =
        "ipAddressPools: [new]\nipAddressPoolSelectors: [{matchLabels: {a: b}}]\nlocalPref: 7";
    let everything = named("second", &advertisement("ipAddressPools: [new, public]\npeers: [x]"));
    catalog.file_read("b.yaml", &named("first", &advertisement(spec)));
    catalog.file_read("c.yaml", &everything);
    let before = catalog.resolve();
    assert!(!before.has_faults());
    catalog.file_read("d.yaml", &pool("addresses: [203.0.113.0/24]"));
    let resolution = catalog.resolve();
    assert_all_in_force(&resolution, &keys, "both");
    assert_eq!(resolution.objects, before.objects);
    let faults = faults(&resolution);
    let expected = "d.yaml:1: IPAddressPool/new: metadata.labels: would be announced by \
                    BGPAdvertisement/second with localPref unset and by BGPAdvertisement/first \
                    with localPref 7";
    assert!(faults.len() == 1 && faults[0].starts_with(expected), "{faults:#?}");
    // It is admitted when the advertisements agree.
    catalog.file_read("b.yaml", &named("first", &advertisement(&spec.replace("7", "0"))));
    let resolution = catalog.resolve();
    assert_eq!(
        (resolution.objects.len(), resolution.has_faults()),
        (before.objects.len() + 1, false)
    );
}

const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: md5}\n\
                      type: kubernetes.io/basic-auth\nstringData: {password: one}\n";

/// A catalog with a peer `new` in peer.yaml that takes its password from secret.yaml.
fn with_secret() -> (Catalog, Vec<Object>, Vec<ObjectKey>) {
    let (mut catalog, _) = good();
    catalog.file_read("peer.yaml", &peer(&format!("{SOUND_PEER}passwordSecret: {{name: md5}}")));
    catalog.file_read("secret.yaml", SECRET);
    let resolution = catalog.resolve();
    assert_eq!(resolution.findings, []);
    let keys = resolution.objects.iter().map(Object::key).collect();
    (catalog, resolution.objects, keys)
}

fn stale(resolution: &Resolution) -> Vec<String> {
    resolution.stale.iter().map(|stale| stale.key.to_string()).collect()
}

#[test]
fn a_session_outlives_the_secret_that_its_peer_names() {
    let other_type = SECRET.replace("kubernetes.io/basic-auth", "Opaque");
    for change in [None, Some(other_type.as_str()), Some("# nothing\n")] {
        let (mut catalog, before, _) = with_secret();
        match change {
            None => catalog.file_gone("secret.yaml"),
            Some(text) => catalog.file_read("secret.yaml", text),
        }
        for _ in 0..3 {
            catalog.forget_unread();
            let resolution = catalog.resolve();
            assert_eq!(resolution.objects, before, "{change:?}");
            assert_eq!(stale(&resolution), ["BGPPeer/new", "Secret/md5"]);
            let faults = faults(&resolution);
            assert_eq!(faults.len(), 1);
            let expected = "peer.yaml:9: BGPPeer/new: spec.passwordSecret.name: there is no usable \
                            Secret default/md5";
            assert!(faults[0].starts_with(expected), "{faults:#?}");
        }
        // A peer that changes meanwhile waits for its Secret too.
        let changed = format!("{SOUND_PEER}holdTime: 30s\npasswordSecret: {{name: md5}}");
        catalog.file_read("peer.yaml", &peer(&changed));
        assert_eq!(catalog.resolve().objects, before, "{change:?}");
        // A peer that never worked does not benefit from it.
        let second = peer(&changed.replace("192.0.2.9", "192.0.2.10"));
        catalog.file_read("second.yaml", &named("second", &second));
        assert_eq!(catalog.resolve().objects, before, "{change:?}");
        catalog.file_read("secret.yaml", &SECRET.replace("one", "two"));
        let resolution = catalog.resolve();
        assert_eq!((resolution.findings.len(), resolution.stale.len()), (0, 0));
        assert_eq!(resolution.objects.len(), before.len() + 1);
    }
}

#[test]
fn a_secret_that_loses_its_password_keeps_the_session() {
    let (mut catalog, before, _) = with_secret();
    for broken in ["stringData: {}", "stringData: {password: ''}", "data: {username: YQ==}"] {
        catalog.file_read("secret.yaml", &SECRET.replace("stringData: {password: one}", broken));
        let resolution = catalog.resolve();
        assert_eq!(resolution.objects, before, "{broken}");
        assert_eq!(stale(&resolution), ["Secret/md5"]);
        // Invalid first and deleted then is deleted.
        catalog.file_gone("secret.yaml");
        let resolution = catalog.resolve();
        assert_eq!(resolution.objects, before, "{broken}");
        assert_eq!(stale(&resolution), ["BGPPeer/new", "Secret/md5"]);
    }
}

#[test]
fn a_session_outlives_its_secret_across_restarts() {
    for is_gone_before in [true, false] {
        let (mut catalog, before, keys) = with_secret();
        if is_gone_before {
            catalog.file_gone("secret.yaml");
            catalog.resolve();
        }
        let mut saved = catalog.last_good().to_json();
        for _ in 0..2 {
            let mut catalog = Catalog::new();
            catalog.restore(&saved).unwrap();
            assert_eq!(catalog.resolve().objects, []);
            catalog.file_read("good.yaml", GOOD);
            catalog.file_read(
                "peer.yaml",
                &peer(&format!("{SOUND_PEER}passwordSecret: {{name: md5}}")),
            );
            catalog.forget_unread();
            let resolution = catalog.resolve();
            assert_all_in_force(&resolution, &keys, "restart");
            assert_eq!(resolution.objects, before);
            assert_eq!(stale(&resolution), ["BGPPeer/new", "Secret/md5"]);
            saved = catalog.last_good().to_json();
            // With the peer the Secret is dropped too, and is not kept on disk.
            catalog.file_gone("peer.yaml");
            assert_eq!(catalog.resolve().objects.len(), before.len() - 2);
            assert!(!catalog.last_good().to_json().to_string().contains("md5"));
        }
    }
}

#[test]
fn a_lost_secret_goes_with_the_last_peer_that_needs_it() {
    let (mut catalog, before, _) = with_secret();
    catalog.file_gone("secret.yaml");
    catalog.resolve();
    catalog.file_read("peer.yaml", &peer(SOUND_PEER));
    let resolution = catalog.resolve();
    assert_eq!((resolution.objects.len(), resolution.findings.len()), (before.len() - 1, 0));
    catalog.file_read("peer.yaml", &peer(&format!("{SOUND_PEER}passwordSecret: {{name: md5}}")));
    // The old password is not known any more, so the peer continues without one.
    let resolution = catalog.resolve();
    assert_eq!(stale(&resolution), ["BGPPeer/new"]);
    let secret = manifest("v1", "Secret", "type: kubernetes.io/basic-auth\ndata: {}");
    catalog.file_read("other.yaml", &secret);
    assert_eq!(catalog.resolve().objects.len(), before.len() - 1);
}

/// An untyped Secret with the values `key: text`.
fn ao_secret(values: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: ao}}\nstringData: {{{values}}}\n")
}

/// A peer that signs with these values of that Secret.
fn signing(keys: &[&str]) -> String {
    let keys = keys.iter().enumerate().map(|(id, key)| {
        format!(
            "  - {{sendID: {id}, recvID: {id}, algorithm: hmac-sha-1-96, secret: {{name: ao, key: \
             {key}}}}}\n"
        )
    });
    peer(&format!("{SOUND_PEER}tcpAO:\n  keys:\n{}", keys.collect::<String>()))
}

/// The values of the Secret in force, by key.
fn in_force(resolution: &Resolution) -> Vec<(&str, &[u8])> {
    let secrets = resolution.objects.iter().filter_map(|object| match object {
        Object::Secret(Secret { name, values, .. }) if name.name == "ao" => Some(values),
        _ => None,
    });
    secrets.flatten().map(|(key, value)| (key.as_str(), value.expose())).collect()
}

#[test]
fn a_session_outlives_a_key_that_its_secret_loses_and_the_other_keys_change() {
    let (mut catalog, _) = good();
    catalog.file_read("secret.yaml", &ao_secret("a: one, b: two"));
    catalog.file_read("peer.yaml", &signing(&["a", "b"]));
    let resolution = catalog.resolve();
    assert_eq!(resolution.findings, []);
    assert_eq!(in_force(&resolution), [("a", b"one".as_slice()), ("b", b"two")]);

    catalog.file_read("secret.yaml", &ao_secret("b: 'two, new', c: three"));
    for _ in 0..2 {
        catalog.forget_unread();
        let resolution = catalog.resolve();
        let all = [("a", b"one".as_slice()), ("b", b"two, new"), ("c", b"three")];
        assert_eq!(in_force(&resolution), all);
        assert_eq!(stale(&resolution), ["BGPPeer/new", "Secret/ao"]);
        let faults = faults(&resolution);
        let expected = "peer.yaml:11: BGPPeer/new: spec.tcpAO.keys[0].secret: there is no Secret \
                        default/ao with a usable key a";
        assert!(faults.len() == 1 && faults[0].starts_with(expected), "{faults:#?}");
    }

    // With the peer, the key that is not needed any more is dropped too.
    catalog.file_read("peer.yaml", &signing(&["b", "c"]));
    let resolution = catalog.resolve();
    assert_eq!((resolution.findings.len(), resolution.stale.len()), (0, 0));
    assert_eq!(in_force(&resolution), [("b", b"two, new".as_slice()), ("c", b"three")]);
}

#[test]
fn a_session_outlives_the_secret_of_its_keys_across_restarts() {
    let (mut catalog, _) = good();
    catalog.file_read("secret.yaml", &ao_secret("a: one"));
    catalog.file_read("peer.yaml", &signing(&["a"]));
    let before = catalog.resolve().objects;
    let saved = catalog.last_good().to_json();
    let mut catalog = Catalog::new();
    catalog.restore(&saved).unwrap();
    catalog.file_read("good.yaml", GOOD);
    catalog.file_read("peer.yaml", &signing(&["a"]));
    catalog.forget_unread();
    let resolution = catalog.resolve();
    assert_eq!(resolution.objects, before);
    assert_eq!(stale(&resolution), ["BGPPeer/new", "Secret/ao"]);
    // A new peer does not benefit from a deleted Secret.
    let other = named("other", &signing(&["a"])).replace("192.0.2.9", "192.0.2.10");
    catalog.file_read("other.yaml", &other);
    assert_eq!(catalog.resolve().objects, before);
}

#[test]
fn what_no_peer_needs_of_a_secret_is_not_kept_on_disk() {
    let (mut catalog, _) = good();
    catalog.file_read("secret.yaml", &ao_secret("a: canary"));
    catalog.resolve();
    assert!(!catalog.last_good().to_json().to_string().contains("canary"));
    catalog.file_read("peer.yaml", &signing(&["a"]));
    catalog.resolve();
    assert!(catalog.last_good().to_json().to_string().contains("canary"));
}
