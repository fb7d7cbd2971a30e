//! Services that have no address, or whose address no router has.

use anyhow::{Result, ensure};
use lab::suite::{Case, Cell, Suite};
use lab::wait::{PATIENCE, wait_until};
use serde_json::Value;

use crate::scene::{PEER, Router, Scene, peer};

const POOL: &str = "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {name: main}\nspec: {addresses: \
                    [203.0.113.10/32]}\n";
const ADVERTISEMENT: &str = "apiVersion: metallb.io/v1beta1\nkind: BGPAdvertisement\nmetadata: {name: all}\nspec: \
                             {}\n";
const NODE: &str = "apiVersion: v1\nkind: Node\nmetadata: {name: node-a, labels: {rack: a}}\n";
const WEB: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: LoadBalancer, ports: [{port: \
                   80}]}\n";
const ENDPOINTS: &str = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web-1, labels: \
                         {kubernetes.io/service-name: web}}\naddressType: IPv4\nendpoints: [{addresses: \
                         [10.244.0.5], nodeName: node-a}]\n";

/// What is wrong with it: this part of the files in place of that, and a part of the first line.
struct Fault {
    name: &'static str,
    part: &'static str,
    by: &'static str,
    phrase: &'static str,
}

const FAULTS: [Fault; 9] = [
    Fault {
        name: "no endpoint is ready",
        part: "nodeName: node-a}",
        by: "nodeName: node-a, conditions: {ready: false}}",
        phrase: "announces it to no peer: noEndpoints",
    },
    Fault {
        name: "policy Local, and the endpoint is elsewhere",
        part: "ports: [{port: 80}]",
        by: "externalTrafficPolicy: Local, ports: [{port: 80}]",
        phrase: "announces it to no peer: noLocalEndpoints",
    },
    Fault {
        name: "the node is excluded",
        part: "rack: a",
        by: "node.kubernetes.io/exclude-from-external-load-balancers: ''",
        phrase: "announces it to no peer: nodeLabeledExcludeBalancers",
    },
    Fault {
        name: "the pool is exhausted",
        part: "kind: Service\nmetadata: {name: web}\n",
        by: "kind: Service\nmetadata: {name: late}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n---\n\
             apiVersion: v1\nkind: Service\nmetadata: {name: web}\n",
        phrase: "has no address: no available IPs: no pool has a free IPv4 address",
    },
    Fault {
        name: "it asks for a pool that is not there",
        part: "metadata: {name: web}",
        by: "metadata: {name: web, annotations: {metallb.io/address-pool: mane}}",
        phrase: "has no address: ",
    },
    Fault {
        name: "two advertisements disagree about localPref",
        part: "kind: BGPAdvertisement\nmetadata: {name: all}\nspec: {}\n",
        by: "kind: BGPAdvertisement\nmetadata: {name: all}\nspec: {localPref: 100}\n---\napiVersion: \
             metallb.io/v1beta1\nkind: BGPAdvertisement\nmetadata: {name: other}\nspec: {localPref: 200}\n",
        phrase: "BGPAdvertisement/other: spec.localPref: is 200, but 100 in BGPAdvertisement/all",
    },
    Fault {
        name: "no advertisement selects the node",
        part: "metadata: {name: all}\nspec: {}",
        by: "metadata: {name: all}\nspec: {nodeSelectors: [{matchLabels: {rack: b}}]}",
        phrase: "no BGPAdvertisement that covers pool main selects node node-a",
    },
    Fault {
        name: "the advertisement is for another peer",
        part: "metadata: {name: all}\nspec: {}",
        by: "metadata: {name: all}\nspec: {peers: [spine]}",
        phrase: "announces it to no peer: ",
    },
    Fault {
        name: "the session is down",
        part: "peerASN: 65010",
        by: "peerASN: 65011",
        phrase: "to 0 of 1: peer tor has another AS than its BGPPeer says",
    },
];

pub(crate) fn resources() -> String {
    [&peer(PEER), POOL, ADVERTISEMENT, NODE, WEB, ENDPOINTS].join("---\n")
}

pub(crate) fn add_to(suite: &mut Suite) {
    suite.add(Case::new("what a Service lacks is in the first line", play));
}

/// All of them with one router: each is broken, named, and mended.
fn play(cell: &Cell) -> Result<()> {
    let mut scene = Scene::near(cell)?;
    scene.route(Router::HEALTHY)?;
    let healthy = resources();
    scene.start(&healthy)?;
    for fault in &FAULTS {
        wait_for(&scene, "web", "before", "is announced by node-a to all planned peers: 1 of 1")?;
        ensure!(
            healthy.matches(fault.part).count() >= 1,
            "{}: {} is not there",
            fault.name,
            fault.part
        );
        let mut broken = healthy.replacen(fault.part, fault.by, 1);
        if fault.by.contains("Local") {
            broken = broken.replace("nodeName: node-a", "nodeName: node-b");
        }
        scene.fairway.apply("lab", &broken)?;
        // The Service that has the address keeps it.
        let service = if fault.by.contains("late") { "late" } else { "web" };
        wait_for(&scene, service, fault.name, fault.phrase)?;
        scene.fairway.apply("lab", &healthy)?;
    }
    wait_for(&scene, "web", "after", "is announced by node-a to all planned peers: 1 of 1")
}

fn wait_for(scene: &Scene, service: &str, name: &str, phrase: &str) -> Result<()> {
    wait_until(&format!("{name}: {phrase:?}"), 2 * PATIENCE, || {
        let explained = scene.explained(&["service", service])?;
        let verdict = explained.get("verdict").and_then(Value::as_str).unwrap_or_default();
        ensure!(verdict.contains(phrase), "{verdict:?}");
        Ok(())
    })
}
