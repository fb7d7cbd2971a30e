//! Objects edited at random: what is in force never depends on the order of edits, and no edit costs
//! another object its place.

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::Rng;
use fairway_model::{Kind, Object, ObjectKey};
use fairway_resources::{BackendKind, Catalog, Resolution};

use super::row::{advertisement, community, labelled, peer, pool, profile};

const SEEDS: u64 = 25;
const EDITS: usize = 40;

/// Numbers below a bound.
struct Dice(Rng);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        let position = usize::try_from(self.below(choices.len() as u64)).unwrap();
        choices.get(position).copied().unwrap()
    }
}

/// A document for the file, usually valid on its own.
fn document(file: &str, dice: &mut Dice) -> String {
    let (kind, name) = file.split_once('-').unwrap();
    match kind {
        "pool" => {
            let (block, length) = (dice.below(4), dice.one_of(&["24", "25", "28"]));
            let six = dice.one_of(&["", "", ", '2001:db8:0::/64'", ", '2001:db8:1::/64'"]);
            let tier = dice.one_of(&["gold", "iron"]);
            pool(name, &format!("addresses: [10.0.{block}.0/{length}{six}]"))
                .replace("metadata: {", &format!("metadata: {{labels: {{tier: {tier}}}, "))
        }
        "advertisement" => {
            let pools = dice.one_of(&[
                "",
                "ipAddressPools: [a], ",
                "ipAddressPools: [b, c], ",
                "ipAddressPoolSelectors: [{matchLabels: {tier: gold}}], ",
            ]);
            let length = dice.one_of(&["24", "25", "28", "32", "32"]);
            let preference = dice.one_of(&["0", "0", "0", "7"]);
            let communities = dice.one_of(&["", "x", "y", "'1:1'"]);
            let peers = dice.one_of(&["", "", "peers: [a], ", "peers: [b], "]);
            let nodes = dice.one_of(&["", "", RACK_A, RACK_B]);
            advertisement(
                name,
                &format!(
                    "{pools}{peers}aggregationLength: {length}, localPref: {preference}, communities: [{communities}]{nodes}"
                ),
            )
        }
        "community" => {
            community(name, dice.one_of(&["x", "y", "z"]), dice.one_of(&["1:1", "1:2", "1:70000"]))
        }
        "profile" => profile(name, dice.one_of(&["", "echoMode: true", "echoMode: maybe"])),
        "peer" => {
            let address = dice.below(4);
            let asn = dice.one_of(&["64500", "64500", "64500", "64501"]);
            let profile = dice.one_of(&["", "", ", bfdProfile: a", ", bfdProfile: b"]);
            let nodes = dice.one_of(&["", "", RACK_A, RACK_B]);
            peer(
                name,
                &format!(
                    "myASN: {asn}, peerASN: 65000, peerAddress: 192.0.2.{}{profile}{nodes}",
                    address + 1
                ),
            )
        }
        _ => labelled("Node", name, dice.one_of(&["rack: a", "rack: b"])),
    }
}

const RACK_A: &str = ", nodeSelectors: [{matchLabels: {rack: a}}]";
const RACK_B: &str = ", nodeSelectors: [{matchLabels: {rack: b}}]";

const FILES: [&str; 17] = [
    "pool-a",
    "pool-b",
    "pool-c",
    "pool-d",
    "advertisement-a",
    "advertisement-b",
    "advertisement-c",
    "advertisement-d",
    "community-a",
    "community-b",
    "profile-a",
    "profile-b",
    "peer-a",
    "peer-b",
    "peer-c",
    "node-a",
    "node-b",
];

fn key(file: &str) -> (Kind, &str) {
    let (kind, name) = file.split_once('-').unwrap();
    let kind = match kind {
        "pool" => Kind::IpAddressPool,
        "advertisement" => Kind::BgpAdvertisement,
        "community" => Kind::Community,
        "profile" => Kind::BfdProfile,
        "peer" => Kind::BgpPeer,
        _ => Kind::Node,
    };
    (kind, name)
}

fn keys(resolution: &Resolution) -> BTreeSet<ObjectKey> {
    resolution.objects.iter().map(Object::key).collect()
}

fn fresh(backend: BackendKind, files: &BTreeMap<&str, String>) -> Resolution {
    let mut catalog = Catalog::for_backend(backend);
    for (file, text) in files {
        catalog.file_read(file, text);
    }
    catalog.resolve()
}

/// No two pools in force hold one address.
fn assert_disjoint(resolution: &Resolution) {
    let pools = resolution.objects.iter().filter_map(|object| match object {
        Object::Pool(pool) => Some(pool),
        _ => None,
    });
    let ranges: Vec<_> = pools.flat_map(|pool| &pool.ranges).collect();
    for (position, range) in ranges.iter().enumerate() {
        let mut before = ranges.iter().take(position);
        assert!(!before.any(|other| other.overlaps(**range)), "{range}");
    }
}

fn run(seed: u64, backend: BackendKind) -> usize {
    let mut dice = Dice(Rng::seeded(seed));
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    let mut catalog = Catalog::for_backend(backend);
    let mut before = BTreeSet::new();
    let mut faultless = 0;
    for edit in 0..EDITS {
        for _ in 0..=dice.below(3) {
            let file = dice.one_of(&FILES);
            if dice.below(6) == 0 {
                files.remove(file);
                catalog.file_gone(file);
            } else {
                let text = document(file, &mut dice);
                catalog.file_read(file, &text);
                files.insert(file, text);
            }
        }
        let resolution = catalog.resolve();
        let what = || format!("seed {seed} edit {edit} {backend:?}: {files:#?}");
        let after = keys(&resolution);
        for gone in before.difference(&after) {
            let ObjectKey { kind, name } = gone;
            let is_there = files.keys().any(|file| key(file) == (*kind, name.name.as_str()));
            assert!(!is_there, "{gone} is lost: {}", what());
        }
        assert_disjoint(&resolution);
        if !resolution.has_faults() {
            faultless += 1;
            assert!(resolution.stale.is_empty(), "{}", what());
            assert_eq!(resolution.objects, fresh(backend, &files).objects, "{}", what());
        }
        // Without a change nothing changes.
        if edit % 8 == 0 {
            let again = catalog.resolve();
            assert_eq!(again.objects, resolution.objects, "{}", what());
            assert_eq!(again.stale, resolution.stale, "{}", what());
        }
        before = after;
    }
    faultless
}

#[test]
fn what_is_in_force_after_good_edits_is_what_the_files_say() {
    let mut faultless = 0;
    for backend in [BackendKind::Native, BackendKind::Frr { version: None }] {
        for seed in 0..SEEDS {
            faultless += run(seed, backend);
        }
    }
    // The comparison with a fresh catalog did happen.
    assert!(faultless > 80, "only {faultless} of the edits left no fault");
}
