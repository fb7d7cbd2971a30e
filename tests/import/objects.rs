//! Objects of Cilium, Calico and frr-k8s, and addresses of keepalived: what they come to is valid, and `fairway plan` says of it
//! what their own documentation says.

use std::fs;

use anyhow::{Context, Result, ensure};

use lab::process::bounded;
use lab::suite::{Case, Cell, Suite};

/// A sample, and what each node announces or answers for.
struct Sample {
    path: &'static str,
    /// Whether the cluster of [`CLUSTER`] is around it.
    in_cluster: bool,
    /// Written by hand from the documentation that is named.
    rows: &'static [&'static str],
}

/// Two nodes, and a Service that has an endpoint on the first.
const CLUSTER: &str = r#"
---
{apiVersion: v1, kind: Node, metadata: {name: node-a, labels: {rack: rack0, gpu: "true"}}, spec: {podCIDRs: [10.244.1.0/24]}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-b, labels: {rack: rack1}}, spec: {podCIDRs: [10.244.2.0/24]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: shop}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {type: LoadBalancer, ports: [{port: 80}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.244.1.5], nodeName: node-a, conditions: {ready: true}}]
"#;

const SAMPLES: &[Sample] = &[
    // keepalived.conf(5): virtual_ipaddress, each on the interface of the instance or of `dev`.
    Sample {
        path: "keepalived/simple.conf",
        in_cluster: false,
        rows: &["192.168.122.200 node-a eth0 (bound) default/vi-1"],
    },
    Sample {
        path: "keepalived/unicast.conf",
        in_cluster: false,
        rows: &[
            "10.0.0.100 node-a ens192 (bound) default/web",
            "10.0.1.100 node-a ens224 (bound) default/web-ens224",
        ],
    },
    // Cilium, "BGP Control Plane Resources": nodes that the selector takes announce their own PodCIDR, and each ingress address
    // of a Service as a host route, to each peer.
    Sample {
        path: "cilium/tor-pair.yaml",
        in_cluster: true,
        rows: &[
            "node-a: instance-65000-tor1 10.244.1.0/24 <none>",
            "node-a: instance-65000-tor1 192.0.2.0/32 <none> shop/web",
            "node-a: instance-65000-tor2 10.244.1.0/24 <none>",
            "node-a: instance-65000-tor2 192.0.2.0/32 <none> shop/web",
        ],
    },
    // frr-k8s, README, "how multiple configurations are merged": prefixes and what is allowed of all objects that take the node
    // are added up.
    Sample {
        path: "frr-k8s/merged.yaml",
        in_cluster: true,
        rows: &[
            "node-a: 10.0.0.1 192.0.2.1/32 <none>",
            "node-a: 10.0.0.1 192.0.2.128/25 <none>",
            "node-a: 10.0.0.2 <none>",
            "node-b: 10.0.0.1 192.0.2.1/32 <none>",
        ],
    },
    // frr-k8s, API reference, Advertise: attributes are for the prefixes beside them; without toAdvertise nothing is told.
    Sample {
        path: "frr-k8s/attributes.yaml",
        in_cluster: false,
        rows: &[
            "node-a: 172.18.0.5 192.168.100.0/24 localPref 200, communities 64512:100, largeCommunities 64512:1:2",
            "node-a: 172.18.0.5 192.169.101.0/24 communities 64512:100",
            "node-a: 172.18.0.6 192.169.101.0/24 communities 64512:100",
            "node-a: 172.18.0.7 <none>",
        ],
    },
    Sample {
        path: "frr-k8s/basic.yaml",
        in_cluster: false,
        rows: &["node-a: 172.30.0.3 192.168.100.0/24 <none>"],
    },
    // Calico, "Advertise Kubernetes service IP addresses": ranges of ClusterIPs and external addresses as a whole.
    Sample {
        path: "calico/services.yaml",
        in_cluster: false,
        rows: &[
            "node-a: router 10.96.0.0/12 <none>",
            "node-a: router 104.244.42.129/32 <none>",
            "node-a: router 172.217.3.0/24 <none>",
        ],
    },
];

/// All samples of the crate: what they come to has no fault.
const FOLDERS: [&str; 4] = ["keepalived", "cilium", "calico", "frr-k8s"];

pub(crate) fn add_to(suite: &mut Suite) {
    for folder in FOLDERS {
        let name = format!("check accepts what each sample of {folder} comes to");
        suite.add(Case::new(name, move |cell| all_valid(cell, folder)));
    }
    for sample in SAMPLES {
        let name = format!("plan of {} says what its documentation says", sample.path);
        suite.add(Case::new(name, move |cell| planned(cell, sample)));
    }
}

/// The resources that a sample comes to, in a file.
fn imported(cell: &Cell, path: &str) -> Result<String> {
    let source = lab::checkout().join("crates/import/src/tests").join(path);
    let output = bounded(lab::fairway::program()).arg("import").arg(&source).output()?;
    let result = cell.directory.join("imported.yaml");
    fs::write(&result, output.stdout)?;
    Ok(result.to_string_lossy().into_owned())
}

fn all_valid(cell: &Cell, folder: &str) -> Result<()> {
    let path = lab::checkout().join("crates/import/src/tests").join(folder);
    let mut count = 0_usize;
    for entry in fs::read_dir(&path).with_context(|| path.display().to_string())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".out") {
            continue;
        }
        count += 1;
        let file = imported(cell, &format!("{folder}/{name}"))?;
        let has_objects = fs::read_to_string(&file)?.contains("kind:");
        let output = bounded(lab::fairway::program()).args(["check", &file]).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() || !has_objects, "{folder}/{name}: {said}");
    }
    ensure!(count >= 6, "{count} samples of {folder}");
    Ok(())
}

fn planned(cell: &Cell, sample: &Sample) -> Result<()> {
    let file = imported(cell, sample.path)?;
    let mut plan = bounded(lab::fairway::program());
    plan.args(["plan", "--config", &file]);
    if sample.in_cluster {
        let cluster = cell.directory.join("cluster.yaml");
        fs::write(&cluster, CLUSTER)?;
        plan.arg("--config").arg(cluster);
    } else {
        plan.args(["--node", "node-a"]);
    }
    let output = plan.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = rows(&text);
    ensure!(rows == sample.rows, "{rows:#?}\nin place of {:#?}\n{text}", sample.rows);
    Ok(())
}

/// The rows of the tables about routes, behind the name of their node, and of that about layer 2.
fn rows(text: &str) -> Vec<String> {
    let mut rows = Vec::new();
    let mut title = None;
    for line in text.lines() {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let node = line.strip_prefix("Routes from ").map(|it| format!("{it}: "));
        match (node, &title) {
            _ if line.is_empty() => title = None,
            (Some(node), _) => title = Some(node),
            (None, _) if line == "Answered on layer 2" => title = Some(String::new()),
            (None, Some(_)) if words.starts_with("PEER ") || words.starts_with("ADDRESS ") => {}
            (None, Some(node)) => rows.push(format!("{node}{words}")),
            (None, None) => {}
        }
    }
    rows
}
