//! Objects as Calico writes them are read, and what does not fit together is named.

use serde_json::{Value, json};

use fairway_ground::Rng;

use crate::calico::{Cluster, name, write};
use crate::{Affinity, AffinityState, Attributes, Block, Key, Moment, Object, Owner, check};

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "crd.projectcalico.org/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn block() -> Value {
    json!({
        "affinity": "host:node-1",
        "affinityClaimTime": "2026-11-01T10:00:00Z",
        "allocations": [0, 0, 1, null],
        "attributes": [
            {"handle_id": "net.ABC", "secondary": {"namespace": "shop", "pod": "web", "node": "node-1"}},
            {"handle_id": null, "secondary": null, "releasedAt": "2026-11-01T11:00:00Z"},
        ],
        "cidr": "10.244.0.0/30",
        "deleted": false,
        "sequenceNumber": 1_700_000_000_000_000_000_u64,
        "sequenceNumberForAllocation": {"0": 3, "1": 4},
        "strictAffinity": false,
        "unallocated": [3],
    })
}

fn objects() -> Vec<Value> {
    let pool = json!({"cidr": "10.244.0.0/24", "blockSize": 30, "disabled": false, "nodeSelector": "all()"});
    let affinity =
        json!({"cidr": "10.244.0.0/30", "deleted": "false", "node": "node-1", "state": ""});
    let handle = json!({"handleID": "net.abc", "block": {"10.244.0.0/30": 2}, "deleted": false});
    vec![
        object("IPPool", "default", pool),
        object("IPAMBlock", "10-244-0-0-30", block()),
        object("BlockAffinity", "node-1-10-244-0-0-30", affinity),
        object("IPAMHandle", "net.abc", handle),
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "web"},
               "spec": {"nodeName": "node-1"},
               "status": {"phase": "Running", "podIPs": [{"ip": "10.244.0.0"}, {"ip": "10.244.0.1"}]}}),
    ]
}

type Change = fn(&mut Vec<Value>);

fn read(objects: &[Value]) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.read(&json!({"apiVersion": "v1", "kind": "List", "items": objects}));
    cluster
}

/// What is found after one object has changed.
fn found(change: impl FnOnce(&mut Vec<Value>)) -> Vec<String> {
    let mut objects = objects();
    change(&mut objects);
    check(&read(&objects)).iter().map(ToString::to_string).collect()
}

#[test]
fn a_block_is_read_with_its_queue_its_numbers_and_what_rests() {
    let cluster = read(&objects());
    assert_eq!((cluster.faults.as_slice(), cluster.read, cluster.skipped), ([].as_slice(), 6, 0));
    let block = &cluster.blocks[&"10.244.0.0/30".parse().unwrap()];
    assert_eq!(block.owner(), Some(&Owner::Host("node-1".to_owned())));
    assert_eq!(
        (block.sequence(), block.claimed_at()),
        (1_700_000_000_000_000_000, Some(1_793_527_200))
    );
    let (attributes, sequence) = block.inspect("10.244.0.1".parse().unwrap()).unwrap();
    assert_eq!((attributes.handle.as_deref(), sequence), (Some("net.abc"), 4));
    let (resting, _) = block.inspect("10.244.0.2".parse().unwrap()).unwrap();
    assert_eq!(resting.released_at, Some(1_793_530_800));
    assert_eq!(
        block.free().collect::<Vec<_>>(),
        ["10.244.0.3".parse::<std::net::IpAddr>().unwrap()]
    );
}

#[test]
fn objects_that_fit_together_have_no_defect_and_deleted_ones_are_none() {
    assert_eq!(found(|_| {}), Vec::<String>::new());
    let gone = found(|it| {
        let affinity = json!({"cidr": "10.244.0.4/30", "deleted": "true", "node": "gone"});
        it.push(object("BlockAffinity", "x", affinity));
        let mut deleted = block();
        deleted["deleted"] = true.into();
        deleted["cidr"] = "10.244.0.8/30".into();
        it.push(object("IPAMBlock", "y", deleted));
    });
    assert_eq!(gone, Vec::<String>::new());
}

#[test]
fn objects_of_both_groups_are_the_same_and_foreign_kinds_are_none() {
    let lines = found(|it| {
        let twice: Vec<Value> = it.iter().take(4).cloned().collect();
        for mut object in twice {
            object["apiVersion"] = "projectcalico.org/v3".into();
            it.push(object);
        }
        it.push(
            json!({"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {"name": "x"}}),
        );
    });
    assert_eq!(lines, Vec::<String>::new());
}

#[test]
fn a_block_with_very_many_faults_tells_a_few() {
    let lines = found(|it| it[1]["spec"]["allocations"] = json!(vec![Value::Null; 10_000]));
    assert!(lines.len() < 30, "{}", lines.len());
}

#[test]
fn a_malformed_block_is_named_with_its_fields_and_gives_nothing_that_may_be_taken() {
    let lines = found(|it| {
        it[1]["spec"]["allocations"] = json!([0, 0, 7, null]);
        it[1]["spec"]["unallocated"] = json!([3, 3, 1, 9]);
    });
    for expected in [
        "allocations[2]: 7",
        "attributes[1]: is of no",
        "unallocated[1]: 3 is there twice",
        "unallocated[2]: 1 is allocated",
        "unallocated[3]: 9",
    ] {
        assert!(lines.iter().any(|it| it.contains(expected)), "{expected}: {lines:#?}");
    }
    let mut objects = objects();
    objects[1]["spec"]["allocations"] = json!([0, 0, 7, null]);
    let cluster = read(&objects);
    assert_eq!(cluster.blocks.values().next().unwrap().free_count(), 1);
}

#[test]
fn what_does_not_fit_is_named() {
    let cases: [(&str, Change); 12] = [
        ("IPAMBlock 10.244.0.0/30: is of host:node-1, which has no confirmed", |it| {
            it[2]["spec"]["state"] = "pending".into();
        }),
        ("to 10.244.0.0/30: the block is of host:node-1", |it| {
            it[2]["spec"]["node"] = "node-2".into()
        }),
        ("to 10.244.0.0/30: there is no such block", |it| _ = it.remove(1)),
        ("IPAMHandle net.abc: counts 1 addresses, and blocks have 2", |it| {
            it[3]["spec"]["block"] = json!({"10.244.0.0/30": 1});
        }),
        ("IPAMHandle net.abc: is missing", |it| _ = it.remove(3)),
        (
            "10.244.0.0: warning: is of Pod shop/web (handle net.abc), which is on node node-2",
            |it| {
                it[5]["spec"]["nodeName"] = "node-2".into();
                it[5]["status"]["podIPs"] = json!([{"ip": "10.244.0.1"}]);
            },
        ),
        ("10.244.0.1: is of Pod shop/web, and is assigned to shop/other", |it| {
            let mut attributes = it[1]["spec"]["attributes"][0].clone();
            attributes["secondary"]["pod"] = "other".into();
            it[1]["spec"]["attributes"].as_array_mut().unwrap().push(attributes);
            it[1]["spec"]["allocations"] = json!([0, 2, 1, null]);
        }),
        ("10.244.0.2: is of Pod shop/web, and is not assigned", |it| {
            it[5]["status"]["podIPs"] = json!([{"ip": "10.244.0.2"}]);
        }),
        ("IPAMBlock 10.244.0.2/31: overlaps block 10.244.0.0/30", |it| {
            let one = |cidr: &str| json!({"cidr": cidr, "allocations": [null, null], "unallocated": [0, 1], "attributes": []});
            it.push(object("IPAMBlock", "x", one("10.244.0.0/31")));
            it.push(object("IPAMBlock", "y", one("10.244.0.2/31")));
        }),
        ("10.244.0.9: is of Pod shop/web, and is not assigned", |it| {
            it[5]["status"]["podIPs"] = json!([{"ip": "10.244.0.9"}]);
        }),
        ("Node/node-1: warning: is gone, and has 1 blocks", |it| {
            it[4]["metadata"]["name"] = "node-9".into();
        }),
        ("IPAMBlock 10.244.0.0/30: warning: IPPool default has blocks of /26", |it| {
            it[0]["spec"]["blockSize"] = json!(26);
        }),
    ];
    for (expected, change) in cases {
        let lines = found(change);
        assert!(lines.iter().any(|it| it.contains(expected)), "{expected}: {lines:#?}");
    }
}

#[test]
fn what_is_written_is_what_was_read_and_keeps_what_is_unknown() {
    let mut given = objects();
    given.truncate(4);
    given.remove(0);
    for object in &mut given {
        object["metadata"]["annotations"] = json!({"theirs": "kept"});
        object["spec"]["future"] = json!({"a": [1]});
    }
    given[0]["spec"]["attributes"][0]["alternateOwnerAttrs"] = json!({"pod": "next"});
    let cluster = read(&given);
    let block = Object::Block(cluster.blocks.values().next().unwrap().clone());
    let affinity = Object::Affinity(cluster.affinities[0].clone());
    let handle = Object::Handle(cluster.handles["net.abc"].clone());
    for (object, before) in [block, affinity, handle].iter().zip(&given) {
        let written = write(object, Some(before)).unwrap();
        assert_eq!(written["metadata"]["name"], before["metadata"]["name"]);
        assert_eq!(name(&object.key()).unwrap(), before["metadata"]["name"].as_str().unwrap());
        assert_eq!(written["metadata"]["annotations"], json!({"theirs": "kept"}));
        assert_eq!(written["spec"]["future"], json!({"a": [1]}));
        let again = read(&[written]);
        assert_eq!(again.faults, []);
        assert!(match object {
            Object::Block(it) => again.blocks.values().eq([it]),
            Object::Affinity(it) => again.affinities == [it.clone()],
            Object::Handle(it) => again.handles.values().eq([it]),
        });
    }
}

#[test]
fn a_random_block_is_the_same_after_it_was_written() {
    for seed in 0..200 {
        let mut dice = Rng::seeded(seed);
        let prefix = ["10.0.0.0/28", "fd80::/124"][usize::from(seed % 2 == 0)].parse().unwrap();
        let now = Moment::from_nanoseconds(1_700_000_000_000_000_000);
        let mut block = Block::new(prefix, Owner::Host("a".to_owned()), now, None).unwrap();
        for step in 0..20 {
            let handle = format!("h{}", dice.next_u64() % 4);
            let attributes = Attributes { handle: Some(handle.clone()), ..Attributes::default() };
            match dice.next_u64() % 3 {
                0 => _ = block.release_handle(&handle, 1_700_000_000 + step, 30),
                1 => _ = block.collect(1_700_000_000 + 2 * step, 5),
                _ => _ = block.assign(2, &attributes, |_| false),
            }
        }
        let written = write(&Object::Block(block.clone()), None).unwrap();
        let cluster = read(&[written]);
        assert_eq!(cluster.faults, [], "seed {seed}");
        let again = cluster.blocks.values().next().unwrap();
        // What rests has no number any more.
        let taken =
            |block: &Block| block.taken().map(|(it, of)| (it, of.clone())).collect::<Vec<_>>();
        assert_eq!(taken(again), taken(&block), "seed {seed}");
        assert!(again.free().eq(block.free()), "seed {seed}");
        assert_eq!((again.sequence(), again.owner()), (block.sequence(), block.owner()));
    }
}

#[test]
fn names_and_labels_are_calicos() {
    let key = |text: &str| Key::Block(text.parse().unwrap());
    assert_eq!(name(&key("10.0.0.64/26")).unwrap(), "10-0-0-64-26");
    assert_eq!(name(&key("fd80::/122")).unwrap(), "fd80---122");
    let owner = Owner::Host("node-1".to_owned());
    let prefix = "10.0.0.64/26".parse().unwrap();
    assert_eq!(name(&Key::Affinity(owner.clone(), prefix)).unwrap(), "node-1-10-0-0-64-26");
    assert_eq!(name(&Key::Handle("Net.ABC".to_owned())).unwrap(), "net.abc");
    assert!(name(&Key::Affinity(Owner::Host("n".repeat(250)), prefix)).is_err());
    let affinity = Affinity { owner, prefix, state: AffinityState::Confirmed };
    let written = write(&Object::Affinity(affinity), None).unwrap();
    let labels = &written["metadata"]["labels"];
    assert_eq!(labels["projectcalico.org/affinity-type"], "host");
    assert_eq!(labels["projectcalico.org/ip-version"], "4");
    let hash = labels["projectcalico.org/hostname-hash"].as_str().unwrap();
    assert_eq!(hash, "A3XPYDATRKB7Q4SM2O5FN4RXIHBFIL2PITFX26BAIP5XAB2X74CA");
    assert_eq!(written["spec"]["deleted"], "false");
}
