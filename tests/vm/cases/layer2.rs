//! Are questions answered on the segment that they come from, and on no other? On a VLAN and on the interface below
//! it, on a bond, and in a VRF.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::node::{LIMIT, Node};
use lab::namespace::Namespace;
use lab::wait::wait_until;

const ADDRESS: &str = "192.0.2.100";
const RESOURCES: &str = "apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: pool}
spec: {addresses: [192.0.2.100-192.0.2.109]}
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: segment}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, ports: [{port: 80}]}
";

/// A node with interfaces of these kinds, and a client with the other end of each cable.
fn cabled(number: usize, directory: &Path) -> Result<(Node, Namespace)> {
    let node = Node::prepare(number, "node", directory)?;
    let client = Namespace::create(number, "client")?;
    let (here, there) = (&node.namespace, &client);
    for cable in ["plain", "red0", "leg0", "leg1"] {
        here.connect(cable, there, cable)?;
    }
    // A VLAN on the first cable, which has frames without a tag as well; its own hardware address tells the two apart.
    for (place, mac) in [(here, "02:00:00:00:00:10"), (there, "02:00:00:00:00:11")] {
        let vlan = ["link", "add", "link", "plain", "name", "vlan10", "address", mac];
        place.ip(&[&vlan[..], &["type", "vlan", "id", "10"]].concat())?;
        place.ip(&["link", "set", "vlan10", "up"])?;
    }
    here.ip(&["link", "add", "red", "type", "vrf", "table", "100"])?;
    here.ip(&["link", "set", "red", "up"])?;
    here.ip(&["link", "set", "red0", "master", "red"])?;
    here.ip(&["link", "add", "bond0", "type", "bond", "mode", "active-backup", "miimon", "100"])?;
    there.ip(&["link", "add", "switch", "type", "bridge"])?;
    for leg in ["leg0", "leg1"] {
        here.ip(&["link", "set", leg, "down"])?;
        here.ip(&["link", "set", leg, "master", "bond0"])?;
        here.ip(&["link", "set", leg, "up"])?;
        there.ip(&["link", "set", leg, "master", "switch"])?;
    }
    here.ip(&["link", "set", "bond0", "up"])?;
    there.ip(&["link", "set", "switch", "up"])?;
    for (interface, last) in [("plain", 1), ("vlan10", 2), ("red0", 3), ("bond0", 4)] {
        here.add_address(interface, &format!("198.51.100.{last}/32"))?;
    }
    for (interface, last) in [("plain", 11), ("vlan10", 12), ("red0", 13), ("switch", 14)] {
        there.add_address(interface, &format!("198.51.100.{last}/32"))?;
    }
    Ok((node, client))
}

/// The hardware addresses that answer on an interface of the client.
fn who_has(client: &Namespace, interface: &str) -> Result<BTreeSet<String>> {
    let words = format!("arping -b -c 3 -w 3 -I {interface} {ADDRESS} || true");
    let text = client.run("sh", &["-c", &words])?;
    let mac = |line: &str| Some(line.split(['[', ']']).nth(1)?.to_lowercase());
    Ok(text.lines().filter(|it| it.contains("reply from")).filter_map(mac).collect())
}

fn mac(place: &Namespace, interface: &str) -> Result<String> {
    let text = place.ip(&["-json", "link", "show", "dev", interface])?;
    let all: Value = serde_json::from_str(&text)?;
    let mac = all.pointer("/0/address").and_then(Value::as_str).context("an address")?;
    Ok(mac.to_lowercase())
}

/// Each question has one answer, with the hardware address of the interface that it came to.
pub(super) fn answers_stay_on_their_segments(number: usize, directory: &Path) -> Result<()> {
    let (mut node, client) = cabled(number, directory)?;
    node.fairway.apply("resources.yaml", RESOURCES)?;
    node.fairway.extra_arguments =
        ["--bgp-listen", "none", "--metrics-listen", "none"].map(str::to_owned).to_vec();
    node.start()?;
    wait_until("the four interfaces are answered on, and no other", LIMIT, || {
        let all = node.fairway.show(&["l2"])?;
        let interfaces = all.pointer("/items/0/interfaces").cloned().unwrap_or_default();
        ensure!(interfaces == serde_json::json!(["bond0", "plain", "red0", "vlan10"]), "{all}");
        Ok(())
    })?;
    for (there, here) in
        [("plain", "plain"), ("vlan10", "vlan10"), ("red0", "red0"), ("switch", "bond0")]
    {
        let expected = BTreeSet::from([mac(&node.namespace, here)?]);
        wait_until(&format!("{here} alone answers"), LIMIT, || {
            let found = who_has(&client, there)?;
            ensure!(found == expected, "{found:?} answer in place of {expected:?}");
            Ok(())
        })?;
    }
    // The question of a VLAN reaches the socket of the interface below it, too, without its tag.
    let requests = || {
        let all = node.fairway.show(&["l2"])?;
        all.pointer("/items/0/requests").and_then(Value::as_u64).context("requests")
    };
    let before = requests()?;
    client.run("arping", &["-b", "-c", "3", "-w", "5", "-I", "vlan10", ADDRESS])?;
    let counted = requests()? - before;
    ensure!(counted == 3, "three questions were answered {counted} times");
    Ok(())
}
