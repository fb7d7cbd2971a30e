//! Advertisements and peers that reference objects which are deleted or lose a name.

use fairway_model::{CommunityValue, Object, ObjectKey};
use fairway_resources::{Catalog, Resolution};

use super::{GOOD, SOUND_PEER, advertisement, good, manifest, peer};

/// A Community object `more` with these aliases, and an advertisement that uses `vip`.
fn aliases(list: &str) -> String {
    let spec = format!("spec:\n  communities: [{list}]");
    manifest("metallb.io/v1beta1", "Community", &spec).replace("name: new", "name: more")
}

const BOTH: &str = "{name: vip, value: '1:1'}, {name: gold, value: '1:2'}";

fn in_force(resolution: &Resolution, alias: &str) -> Option<String> {
    resolution.objects.iter().find_map(|object| match object {
        Object::Community(it) => it.aliases.get(alias).map(|value| match value {
            CommunityValue::Standard(value) => value.to_string(),
            CommunityValue::Large(value) => value.to_string(),
        }),
        _ => None,
    })
}

fn stale(resolution: &Resolution) -> Vec<String> {
    resolution.stale.iter().map(|stale| stale.key.to_string()).collect()
}

fn leaning() -> (Catalog, Vec<ObjectKey>) {
    let (mut catalog, _) = good();
    catalog.file_read("more.yaml", &aliases(BOTH));
    catalog.file_read("new.yaml", &advertisement("communities: [vip]"));
    let resolution = catalog.resolve();
    assert_eq!(resolution.findings, []);
    (catalog, resolution.objects.iter().map(Object::key).collect())
}

#[test]
fn routes_keep_a_community_whose_name_is_gone() {
    let (mut catalog, keys) = leaning();
    // One name is deleted, the other gets another value.
    catalog.file_read("more.yaml", &aliases("{name: gold, value: '1:3'}"));
    for _ in 0..2 {
        let resolution = catalog.resolve();
        assert_eq!(resolution.objects.iter().map(Object::key).collect::<Vec<_>>(), keys);
        assert_eq!(in_force(&resolution, "vip").as_deref(), Some("1:1"));
        assert_eq!(in_force(&resolution, "gold").as_deref(), Some("1:3"));
        assert_eq!(stale(&resolution), ["BGPAdvertisement/new", "Community/more"]);
        let fault = resolution.findings.first().unwrap().to_string();
        let expected = "new.yaml:6: BGPAdvertisement/new: spec.communities[0]: vip is not defined";
        assert!(resolution.findings.len() == 1 && fault.starts_with(expected), "{fault}");
    }
    // An advertisement that never worked does not benefit from it.
    let second = advertisement("communities: [vip]").replace("name: new", "name: second");
    catalog.file_read("second.yaml", &second);
    assert_eq!(catalog.resolve().objects.len(), keys.len());
    catalog.file_gone("second.yaml");
    // The alias is dropped with the last object that uses it.
    catalog.file_read("new.yaml", &advertisement("communities: [gold]"));
    let resolution = catalog.resolve();
    assert_eq!((resolution.findings.len(), resolution.stale.len()), (0, 0));
    assert_eq!(in_force(&resolution, "vip"), None);
}

#[test]
fn routes_keep_a_community_across_restarts() {
    let (mut catalog, keys) = leaning();
    catalog.file_gone("more.yaml");
    let resolution = catalog.resolve();
    assert_eq!(resolution.objects.len(), keys.len());
    let mut saved = catalog.last_good().to_json();
    for _ in 0..2 {
        let mut catalog = Catalog::new();
        catalog.restore(&saved).unwrap();
        catalog.file_read("good.yaml", GOOD);
        catalog.file_read("new.yaml", &advertisement("communities: [vip]"));
        catalog.forget_unread();
        let resolution = catalog.resolve();
        assert_eq!(resolution.objects.iter().map(Object::key).collect::<Vec<_>>(), keys);
        assert_eq!(in_force(&resolution, "vip").as_deref(), Some("1:1"));
        assert_eq!(stale(&resolution), ["BGPAdvertisement/new", "Community/more"]);
        saved = catalog.last_good().to_json();
    }
}

#[test]
fn a_session_keeps_the_profile_that_is_gone() {
    let (mut catalog, _) = good();
    let profile = manifest("metallb.io/v1beta1", "BFDProfile", "spec: {detectMultiplier: 5}");
    catalog.file_read("profile.yaml", &profile.replace("name: new", "name: fast"));
    catalog.file_read("peer.yaml", &peer(&format!("{SOUND_PEER}bfdProfile: fast")));
    let before = catalog.resolve();
    assert!(!before.has_faults());
    catalog.file_gone("profile.yaml");
    for _ in 0..2 {
        let resolution = catalog.resolve();
        assert_eq!(resolution.objects, before.objects);
        assert_eq!(stale(&resolution), ["BGPPeer/new", "BFDProfile/fast"]);
    }
    // Without the peer nothing keeps it.
    catalog.file_gone("peer.yaml");
    assert_eq!(catalog.resolve().objects.len(), before.objects.len() - 2);
}
