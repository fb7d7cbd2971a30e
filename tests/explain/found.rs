//! What an operator met who had not read how causes are found: each is broken from the start, named, and mended.

use anyhow::{Context, Result, ensure};
use lab::suite::{Case, Cell, Suite};
use lab::wait::{PATIENCE, wait_until};

use crate::scene::{Router, Scene};
use crate::services::resources;

const HEALTHY: Router = Router::HEALTHY;

/// A part of the files, in place of another one.
type Edit = (&'static str, &'static str);

/// A set-up, and what the first line of the answer has to say.
struct SetUp {
    name: &'static str,
    edits: &'static [Edit],
    router: Router,
    /// Commands in the network namespace of the node, and those that take them back.
    node: &'static [&'static [&'static str]],
    undo: &'static [&'static [&'static str]],
    question: &'static [&'static str],
    says: &'static [&'static str],
    /// Words of causes that it is not.
    never: &'static [&'static str],
    /// Where the healthy side is another one than the plain one.
    mended: (&'static [Edit], Router),
}

const PEER: &[&str] = &["peer", "tor"];
const WEB: &[&str] = &["service", "web"];
const PLAIN: SetUp = SetUp {
    name: "",
    edits: &[],
    router: HEALTHY,
    node: &[],
    undo: &[],
    question: WEB,
    says: &[],
    never: &[],
    mended: (&[], HEALTHY),
};

const SERVICE: &str = "kind: Service\nmetadata: {name: web}\n";

const SET_UPS: &[SetUp] = &[
    SetUp {
        name: "an interface that is down",
        node: &[&["ip", "link", "set", "eth0", "down"]],
        undo: &[&["ip", "link", "set", "eth0", "up"]],
        question: PEER,
        says: &["to which this node has no route"],
        ..PLAIN
    },
    SetUp {
        name: "a route that prohibits",
        node: &[&["ip", "route", "add", "prohibit", "10.0.0.2/32"]],
        undo: &[&["ip", "route", "del", "prohibit", "10.0.0.2/32"]],
        question: PEER,
        says: &["behind a route of this node that prohibits it"],
        ..PLAIN
    },
    SetUp {
        name: "a peer that is ourselves",
        edits: &[("10.0.0.2", "10.0.0.1")],
        question: PEER,
        says: &["has our own AS", "is its address one of this node?"],
        ..PLAIN
    },
    SetUp {
        name: "a source address of nobody",
        edits: &[("connectTime", "sourceAddress: 10.0.0.9, connectTime")],
        question: PEER,
        says: &["10.0.0.9"],
        ..PLAIN
    },
    SetUp {
        name: "GTSM on this side only",
        edits: &[("connectTime", "ttlSecurityHops: 1, connectTime")],
        question: PEER,
        says: &["farther away than the 1 hops of GTSM"],
        ..PLAIN
    },
    SetUp {
        name: "a router without the family",
        router: Router { more: "ipv6 { import all; export none; }; /*", export: "*/ #", ..HEALTHY },
        question: PEER,
        says: &["has no address family in common"],
        ..PLAIN
    },
    SetUp {
        name: "a router that insists on IPv6",
        router: Router { more: "ipv6 { mandatory on; import all; export none; };", ..HEALTHY },
        question: PEER,
        says: &["it requires an address family"],
        ..PLAIN
    },
    SetUp {
        name: "a hold time that the router refuses",
        router: Router { more: "hold time 90; min hold time 30;", ..HEALTHY },
        question: PEER,
        says: &["refuses our hold time of 9 s"],
        ..PLAIN
    },
    SetUp {
        name: "two customers",
        edits: &[("connectTime", "role: customer, connectTime")],
        router: Router { more: "local role customer;", ..HEALTHY },
        question: PEER,
        says: &["has a role that does not match ours", "it is customer; expected provider"],
        ..PLAIN
    },
    SetUp {
        name: "a role that only this side has",
        edits: &[("connectTime", "role: customer, roleStrict: true, connectTime")],
        question: PEER,
        says: &["says nothing about its role (roleStrict requires one)"],
        ..PLAIN
    },
    SetUp {
        name: "a limit of the router",
        edits: &[(
            "metadata: {name: all}\nspec: {}",
            "metadata: {name: all}\nspec: {}\n---\napiVersion: metallb.io/v1beta1\nkind: BGPAdvertisement\nmetadata: {name: two}\nspec: {prefixes: [198.18.7.0/24, 198.18.8.0/24]}",
        )],
        router: Router { export: "all; import limit 1 action disable", ..HEALTHY },
        question: PEER,
        says: &["accepts no more routes of us (maximum number of prefixes)"],
        ..PLAIN
    },
    SetUp {
        name: "BFD that is strict and not there",
        edits: &[
            ("connectTime", "bfdProfile: quick, bfdStrict: true, connectTime"),
            (
                "---\napiVersion: v1\nkind: Node",
                "---\napiVersion: metallb.io/v1beta1\nkind: BFDProfile\nmetadata: {name: quick}\nspec: {receiveInterval: 100, transmitInterval: 100, detectMultiplier: 3}\n---\napiVersion: v1\nkind: Node",
            ),
        ],
        question: PEER,
        says: &["waits for BFD, which has not come up"],
        ..PLAIN
    },
    SetUp {
        name: "no router on the link",
        edits: &[("peerAddress: 10.0.0.2", "interface: eth0")],
        question: PEER,
        says: &["no router discovered on eth0 yet (no router advertisement received)"],
        ..PLAIN
    },
    SetUp {
        name: "an interface that is not there",
        edits: &[("peerAddress: 10.0.0.2", "interface: eth7")],
        question: PEER,
        says: &["there is no interface eth7"],
        ..PLAIN
    },
    SetUp {
        name: "a range without the router",
        edits: &[("peerAddress: 10.0.0.2", "listenRange: 10.0.1.0/24")],
        question: PEER,
        says: &["it is a range, 10.0.1.0/24, from which no neighbor has connected"],
        ..PLAIN
    },
    SetUp {
        name: "a peer of other nodes",
        edits: &[("connectTime", "nodeSelectors: [{matchLabels: {rack: b}}], connectTime")],
        question: PEER,
        says: &["its nodeSelectors do not select node-a"],
        ..PLAIN
    },
    SetUp {
        name: "a Secret that is missing",
        edits: &[("connectTime", "passwordSecret: {name: tor}, connectTime")],
        question: PEER,
        says: &["its BGPPeer is not in force", "there is no usable Secret default/tor"],
        ..PLAIN
    },
    SetUp {
        name: "a BFDProfile that is missing",
        edits: &[("connectTime", "bfdProfile: nobody, connectTime")],
        question: PEER,
        says: &["its BGPPeer is not in force", "there is no BFDProfile nobody"],
        ..PLAIN
    },
    SetUp {
        name: "IPv6 on a node without it",
        edits: &[("peerAddress: 10.0.0.2", "peerAddress: '2001:db8::2'")],
        question: PEER,
        says: &["to which this node has no route"],
        ..PLAIN
    },
    SetUp {
        name: "our AS in the path",
        router: Router { export: "filter { bgp_path.prepend(65001); accept; }", ..HEALTHY },
        question: &["prefix", "198.51.100.0/24"],
        says: &["was received from 10.0.0.2 and refused: our own AS is in the path"],
        ..PLAIN
    },
    SetUp {
        name: "a route server",
        router: Router { more: "rs client;", ..HEALTHY },
        question: &["prefix", "198.51.100.0/24"],
        says: &["refused: the path does not start with the neighbor's AS"],
        ..PLAIN
    },
    SetUp {
        name: "a filter without le",
        edits: &[("{mode: all}", "{mode: filtered, prefixes: [{prefix: 198.51.100.0/22}]}")],
        question: &["prefix", "198.51.100.0/24"],
        says: &["refused: toReceive does not allow the prefix"],
        ..PLAIN
    },
    SetUp {
        name: "a router that exports nothing",
        router: Router { export: "none", ..HEALTHY },
        question: &["prefix", "198.51.100.0/24"],
        says: &["is neither announced by node-a nor received"],
        ..PLAIN
    },
    SetUp {
        name: "no toReceive",
        edits: &[(", toReceive: {allowed: {mode: all}}", "")],
        question: &["prefix", "198.51.100.0/24"],
        says: &["refused: toReceive does not allow the prefix"],
        ..PLAIN
    },
    SetUp {
        name: "a route that the router does not use",
        router: Router { export: "all; import none", ..HEALTHY },
        question: &["prefix", "203.0.113.10/32"],
        says: &["is announced by node-a to 1 of 1 peers, for Service default/web"],
        ..PLAIN
    },
    SetUp {
        name: "an aggregate",
        edits: &[
            ("[203.0.113.10/32]", "[203.0.113.0/24]"),
            (
                "metadata: {name: all}\nspec: {}",
                "metadata: {name: all}\nspec: {aggregationLength: 24}",
            ),
        ],
        question: &["prefix", "203.0.113.10/32"],
        says: &["is announced by node-a as a part of 203.0.113.0/24 only"],
        ..PLAIN
    },
    SetUp {
        name: "a next hop that is the router",
        edits: &[("connectTime", "toAdvertise: {nextHop: {ipv4: 10.0.0.2}}, connectTime")],
        says: &["the configured next hop 10.0.0.2 is the address of the peer itself"],
        ..PLAIN
    },
    SetUp {
        name: "an address outside all pools",
        edits: &[(
            "metadata: {name: web}",
            "metadata: {name: web, annotations: {metallb.io/loadBalancerIPs: 203.0.113.99}}",
        )],
        says: &["is in no IPAddressPool"],
        ..PLAIN
    },
    SetUp {
        name: "the same by address",
        edits: &[(
            "metadata: {name: web}",
            "metadata: {name: web, annotations: {metallb.io/loadBalancerIPs: 203.0.113.99}}",
        )],
        question: &["address", "203.0.113.99"],
        says: &["Address 203.0.113.99 is in no pool"],
        ..PLAIN
    },
    SetUp {
        name: "a pool that is not automatic",
        edits: &[(
            "{addresses: [203.0.113.10/32]}",
            "{autoAssign: false, addresses: [203.0.113.10/31]}",
        )],
        says: &["every IPAddressPool has autoAssign: false"],
        ..PLAIN
    },
    SetUp {
        name: "a pool of another namespace",
        edits: &[(
            "{addresses: [203.0.113.10/32]}",
            "{serviceAllocation: {namespaces: [shop]}, addresses: [203.0.113.10/32]}",
        )],
        says: &["has no address", "default"],
        ..PLAIN
    },
    SetUp {
        name: "a shared address and the same port",
        edits: &[(
            SERVICE,
            "kind: Service\nmetadata: {name: late, annotations: {metallb.io/allow-shared-ip: k, metallb.io/loadBalancerIPs: 203.0.113.10}}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: web, annotations: {metallb.io/allow-shared-ip: k, metallb.io/loadBalancerIPs: 203.0.113.10}}\n",
        )],
        question: &["service", "web"],
        says: &["has no address", "late"],
        ..PLAIN
    },
    SetUp {
        name: "an address of the other family",
        edits: &[("ports: [{port: 80}]", "ipFamilies: [IPv6], ports: [{port: 80}]")],
        says: &["has no address", "IPv6"],
        ..PLAIN
    },
    SetUp {
        name: "another class",
        edits: &[(
            "ports: [{port: 80}]",
            "loadBalancerClass: example.org/other, ports: [{port: 80}]",
        )],
        says: &["its loadBalancerClass, example.org/other, is another one"],
        ..PLAIN
    },
    SetUp {
        name: "an advertisement of a pool that is not there",
        edits: &[(
            "metadata: {name: all}\nspec: {}",
            "metadata: {name: all}\nspec: {ipAddressPools: [mane]}",
        )],
        says: &["announces it to no peer", "mane"],
        ..PLAIN
    },
    SetUp {
        name: "an advertisement for other Services",
        edits: &[(
            "metadata: {name: all}\nspec: {}",
            "metadata: {name: all}\nspec: {serviceSelectors: [{matchLabels: {app: web}}]}",
        )],
        says: &["announces it to no peer", "selects the labels of the Service"],
        ..PLAIN
    },
    SetUp {
        name: "overlapping pools",
        edits: &[(
            "---\napiVersion: v1\nkind: Node",
            "---\napiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {name: other}\nspec: {addresses: [203.0.113.0/28]}\n---\napiVersion: v1\nkind: Node",
        )],
        question: &["pool", "other"],
        says: &["overlaps"],
        ..PLAIN
    },
    SetUp {
        name: "a health check that fails",
        edits: &[(
            "metadata: {name: web}",
            "metadata: {name: web, annotations: {fairway.dev/health-check: 'tcp://127.0.0.1:8080 interval=200ms failures=1'}}",
        )],
        says: &["health check"],
        ..PLAIN
    },
    SetUp {
        name: "a node that is drained",
        edits: &[("labels: {rack: a}", "annotations: {metallb.io/drain: 0s}, labels: {rack: a}")],
        says: &["drain"],
        ..PLAIN
    },
    SetUp {
        name: "a node without network",
        edits: &[(
            "labels: {rack: a}}\n",
            "labels: {rack: a}}\nstatus: {conditions: [{type: NetworkUnavailable, status: 'True'}]}\n",
        )],
        says: &["NetworkUnavailable"],
        ..PLAIN
    },
    SetUp {
        name: "a node of another name",
        edits: &[
            ("metadata: {name: node-a, labels", "metadata: {name: node-a.example.com, labels"),
            (
                "metadata: {name: all}\nspec: {}",
                "metadata: {name: all}\nspec: {nodeSelectors: [{matchLabels: {rack: a}}]}",
            ),
        ],
        says: &["node-a"],
        ..PLAIN
    },
];

/// Two faults at once: one is named, and once it is mended the other one.
struct Double {
    name: &'static str,
    first: Stage,
    second: Stage,
}

/// What is broken, and what the first line says of it.
struct Stage {
    edits: &'static [Edit],
    router: Router,
    /// A route of the node that prohibits the router.
    is_prohibited: bool,
    question: &'static [&'static str],
    says: &'static str,
}

const STAGE: Stage =
    Stage { edits: &[], router: HEALTHY, is_prohibited: false, question: WEB, says: "" };
const OTHER_AS: Edit = ("peerASN: 65010", "peerASN: 65011");
const OTHER_POOL: Edit = (
    "metadata: {name: web}",
    "metadata: {name: web, annotations: {metallb.io/address-pool: mane}}",
);
const EXCLUDED: Edit = ("rack: a", "node.kubernetes.io/exclude-from-external-load-balancers: ''");
const FOR_SPINE: Edit =
    ("metadata: {name: all}\nspec: {}", "metadata: {name: all}\nspec: {peers: [spine]}");
const FOR_MANE: Edit =
    ("metadata: {name: all}\nspec: {}", "metadata: {name: all}\nspec: {ipAddressPools: [mane]}");
const NOT_READY: Edit = ("nodeName: node-a}", "nodeName: node-a, conditions: {ready: false}}");
const PASSWORD: Edit = ("connectTime", "password: one, connectTime");
const NO_PROFILE: Edit = ("connectTime", "bfdProfile: nobody, connectTime");
const OTHER_CLASS: Edit =
    ("ports: [{port: 80}]", "loadBalancerClass: example.org/other, ports: [{port: 80}]");
const DRAINED: Edit =
    ("labels: {rack: a}", "annotations: {metallb.io/drain: 0s}, labels: {rack: a}");
const PREFIXES: Edit = (
    "metadata: {name: all}\nspec: {}",
    "metadata: {name: all}\nspec: {}\n---\napiVersion: metallb.io/v1beta1\nkind: \
     BGPAdvertisement\nmetadata: {name: two}\nspec: {prefixes: [198.18.7.0/24, 198.18.8.0/24]}",
);
const LONG_HOLD_TIME: Edit = ("holdTime: 9s", "holdTime: 90s");

const DOUBLES: &[Double] = &[
    Double {
        name: "an unknown pool, and another AS",
        first: Stage { edits: &[OTHER_POOL, OTHER_AS], says: "mane", ..STAGE },
        second: Stage { edits: &[OTHER_AS], says: "peer tor has another AS", ..STAGE },
    },
    Double {
        name: "an excluded node, and an advertisement for another peer",
        first: Stage {
            edits: &[EXCLUDED, FOR_SPINE],
            says: "nodeLabeledExcludeBalancers",
            ..STAGE
        },
        second: Stage { edits: &[FOR_SPINE], says: "announces it to no peer", ..STAGE },
    },
    Double {
        name: "no endpoint, and a password that only this side has",
        first: Stage { edits: &[NOT_READY, PASSWORD], says: "noEndpoints", ..STAGE },
        second: Stage { edits: &[PASSWORD], says: "TCP-MD5", ..STAGE },
    },
    Double {
        name: "no BFDProfile, and another AS",
        first: Stage {
            edits: &[NO_PROFILE, OTHER_AS],
            question: PEER,
            says: "its BGPPeer is not in force",
            ..STAGE
        },
        second: Stage { edits: &[OTHER_AS], question: PEER, says: "has another AS", ..STAGE },
    },
    Double {
        name: "no family in common, and another AS of ours",
        first: Stage {
            router: Router { node_asn: 65009, ..NO_IPV4 },
            question: PEER,
            says: "has no address family in common",
            ..STAGE
        },
        second: Stage {
            router: Router { node_asn: 65009, ..HEALTHY },
            question: PEER,
            says: "refuses our AS 65001",
            ..STAGE
        },
    },
    Double {
        name: "a hold time that the router refuses, and its limit",
        first: Stage {
            edits: &[PREFIXES],
            router: LIMITED,
            question: PEER,
            says: "refuses our hold time of 9 s",
            ..STAGE
        },
        second: Stage {
            edits: &[PREFIXES, LONG_HOLD_TIME],
            router: LIMITED,
            question: PEER,
            says: "accepts no more routes of us",
            ..STAGE
        },
    },
    Double {
        name: "a route that prohibits, and another AS",
        first: Stage {
            edits: &[OTHER_AS],
            // A router that dials would be heard all the same.
            router: PASSIVE,
            is_prohibited: true,
            question: PEER,
            says: "a route of this node that prohibits it",
        },
        second: Stage {
            edits: &[OTHER_AS],
            router: PASSIVE,
            question: PEER,
            says: "has another AS",
            ..STAGE
        },
    },
    Double {
        name: "an advertisement of an unknown pool, and a drained node",
        first: Stage { edits: &[DRAINED, FOR_MANE], says: "mane", ..STAGE },
        second: Stage { edits: &[DRAINED], says: "drain", ..STAGE },
    },
    Double {
        name: "another class, and no endpoint",
        first: Stage { edits: &[OTHER_CLASS, NOT_READY], says: "its loadBalancerClass", ..STAGE },
        second: Stage { edits: &[NOT_READY], says: "noEndpoints", ..STAGE },
    },
];

const NO_IPV4: Router =
    Router { more: "ipv6 { import all; export none; }; /*", export: "*/ #", ..HEALTHY };
const PASSIVE: Router = Router { more: "passive;", ..HEALTHY };
const LIMITED: Router = Router {
    more: "hold time 90; min hold time 30;",
    export: "all; import limit 1 action disable",
    ..HEALTHY
};

pub(crate) fn add_to(suite: &mut Suite) {
    for set_up in SET_UPS {
        suite.add(Case::new(set_up.name, move |cell| play(set_up, cell)));
    }
    for double in DOUBLES {
        suite.add(Case::new(double.name, move |cell| play_double(double, cell)));
    }
}

fn play_double(double: &Double, cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    let route = |verb: &str, scene: &Scene| {
        scene.node.ip(&["route", verb, "prohibit", "10.0.0.2/32"]).map(drop)
    };
    for (stage, is_first) in [(&double.first, true), (&double.second, false)] {
        if stage.is_prohibited {
            route("add", &scene)?;
        } else if double.first.is_prohibited {
            route("del", &scene)?;
        }
        scene.route(stage.router)?;
        let resources = edited(stage.edits)?;
        match is_first {
            true => scene.start(&resources)?,
            false => scene.fairway.apply("lab", &resources)?,
        }
        wait_until(&format!("the first line says {:?}", stage.says), 2 * PATIENCE, || {
            let first = scene.first_line(stage.question)?;
            ensure!(first.contains(stage.says), "{first}");
            Ok(())
        })?;
    }
    scene.route(HEALTHY)?;
    scene.fairway.apply("lab", &edited(&[])?)?;
    scene.wait_for_session()
}

fn edited(edits: &[Edit]) -> Result<String> {
    edits.iter().try_fold(resources(), |text, (part, by)| {
        ensure!(text.contains(part), "{part:?} is not there");
        Ok(text.replacen(part, by, 1))
    })
}

fn play(set_up: &SetUp, cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    run_all(&scene, set_up.node)?;
    scene.route(set_up.router)?;
    scene.start(&edited(set_up.edits)?)?;
    wait_until(&format!("the first line says {:?}", set_up.says), PATIENCE, || {
        let first = scene.first_line(set_up.question)?;
        let lacks = set_up.says.iter().find(|it| !first.contains(**it));
        ensure!(lacks.is_none(), "{first}");
        let other = set_up.never.iter().find(|it| first.contains(**it));
        ensure!(other.is_none(), "{first}");
        Ok(())
    })?;
    run_all(&scene, set_up.undo)?;
    let (edits, router) = set_up.mended;
    scene.route(router)?;
    scene.fairway.apply("lab", &edited(edits)?)?;
    scene.wait_for_session()
}

fn run_all(scene: &Scene, commands: &[&[&str]]) -> Result<()> {
    for words in commands {
        let (program, words) = words.split_first().context("a command")?;
        scene.node.run(program, words)?;
    }
    Ok(())
}
