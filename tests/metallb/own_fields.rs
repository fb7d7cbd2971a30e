//! What becomes of Fairway's own fields on the way back? Each of docs/metallb-fields.md is on an object in the cluster when MetalLB's
//! definitions come: none is there after the object is written again, and `fairway check --for metallb` has named it before.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use lab::process::bounded;
use lab::suite::Cell;

use crate::cluster::{SYSTEM, merge, object};
use crate::node::NODE_AS;
use crate::stage::{Software, Stage};
use lab::metallb::{Mode, Programs};

pub(crate) fn go(cell: &Cell, mode: Mode, assets: &Path, programs: &Programs) -> Result<()> {
    let objects = objects();
    let fields: BTreeSet<String> = objects.iter().map(|it| it.named.clone()).collect();
    ensure!(fields == of_the_page()?, "{:#?}", fields.symmetric_difference(&of_the_page()?));
    let mut stage = Stage::furnished(cell, mode, assets, programs, &[], &[])?;
    for name in ["ao", "bfd"] {
        let value = json!({ "stringData": { "key": "of-the-test" } });
        stage.put(&object("v1", "Secret", SYSTEM, name, value))?;
    }
    for it in &objects {
        stage.put(&it.object).with_context(|| it.named.clone())?;
        ensure!(stage.has(&it.object, &it.field)?, "{} is not stored", it.named);
    }
    let file = stage.exported()?;
    let mut check = bounded(lab::fairway::program());
    let output = check.args(["check", "--for", "metallb"]).arg(file).output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    stage.start_without_sessions(Software::Metallb)?;
    for it in &objects {
        let name = it.object["metadata"]["name"].as_str().unwrap_or_default();
        let words = format!("/{name}: {}", it.field);
        let is_named = said.lines().any(|line| line.contains(&words) && line.contains("MetalLB"));
        ensure!(is_named, "{} is not named:\n{said}", it.named);
        stage.write_again(&it.object)?;
        ensure!(!stage.has(&it.object, &it.field)?, "{} is there still", it.named);
    }
    stage.stop()
}

/// An object with one field of Fairway's own.
struct Own {
    object: Value,
    /// As in `spec.med`.
    field: String,
    /// Kind and field.
    named: String,
}

fn own(kind: &str, field: &str, spec: Value) -> Own {
    let version = if kind == "BGPPeer" { "metallb.io/v1beta2" } else { "metallb.io/v1beta1" };
    let name = format!("own-{}", field.to_lowercase());
    let field = format!("spec.{field}");
    let object = object(version, kind, SYSTEM, &name, json!({ "spec": spec }));
    Own { object, named: format!("{kind} {field}"), field }
}

fn key(name: &str) -> Value {
    json!({ "name": name, "key": "key" })
}

fn objects() -> Vec<Own> {
    let authentication = json!({ "type": "sha1", "keyID": 1, "secret": key("bfd") });
    let mut all =
        vec![own("BFDProfile", "authentication", json!({ "authentication": authentication }))];
    all.extend(peers());
    all.extend(peers_without_an_address());
    let advertisements = [
        ("prefixes", json!({ "prefixes": ["198.51.100.0/24"] })),
        ("podCIDRs", json!({ "podCIDRs": true })),
        ("podBlocks", json!({ "podBlocks": true })),
        ("podBlockPools", json!({ "podBlocks": true, "podBlockPools": ["one"] })),
        ("blackhole", json!({ "prefixes": ["198.51.101.0/24"], "blackhole": true })),
        ("med", json!({ "med": 10, "peers": ["own-passive"] })),
        ("linkBandwidth", json!({ "linkBandwidth": "auto", "peers": ["own-role"] })),
    ];
    all.extend(advertisements.map(|(field, spec)| own("BGPAdvertisement", field, spec)));
    all.push(own("L2Advertisement", "bind", json!({ "bind": true })));
    let reserved = json!({ "addresses": ["192.0.2.0/24"], "reserved": ["192.0.2.1-192.0.2.9"] });
    all.push(own("IPAddressPool", "reserved", reserved));
    all
}

fn peers() -> Vec<Own> {
    let all_routes = || json!({ "allowed": { "mode": "all" } });
    let ao = json!({ "sendID": 1, "recvID": 1, "algorithm": "hmac-sha-1-96", "secret": key("ao") });
    let restart =
        json!({ "enableGracefulRestart": true, "gracefulRestart": { "restartTime": "60s" } });
    let client = json!({ "peerASN": NODE_AS, "routeReflectorClient": true });
    let of_cluster =
        json!({ "peerASN": NODE_AS, "routeReflectorClient": true, "clusterID": "192.0.2.1" });
    let fields = [
        ("passive", json!({ "passive": true })),
        ("ttlSecurityHops", json!({ "ttlSecurityHops": 1 })),
        ("toReceive", json!({ "toReceive": all_routes() })),
        ("toAdvertise", json!({ "toAdvertise": all_routes() })),
        ("gracefulRestart", restart),
        ("addPath", json!({ "addPath": { "receive": true } })),
        ("extendedNexthop", json!({ "dualStackAddressFamily": true, "extendedNexthop": true })),
        ("tcpAO", json!({ "tcpAO": { "keys": [ao] } })),
        ("bfdStrict", json!({ "bfdProfile": "own-authentication", "bfdStrict": true })),
        ("installRoutes", json!({ "toReceive": all_routes(), "installRoutes": true })),
        ("routeReflectorClient", client),
        ("clusterID", of_cluster),
        ("routeServerClient", json!({ "routeServerClient": true })),
        ("allowASIn", json!({ "allowASIn": 2 })),
        ("role", json!({ "role": "customer" })),
        ("roleStrict", json!({ "role": "customer", "roleStrict": true })),
        ("shutdown", json!({ "shutdown": { "message": "moved" } })),
    ];
    let with_address = |((field, more), number): ((&str, Value), u8)| {
        let address = format!("10.91.0.{number}");
        let mut spec = json!({ "myASN": NODE_AS, "peerASN": 65009, "peerAddress": address });
        merge(&mut spec, more);
        own("BGPPeer", field, spec)
    };
    fields.into_iter().zip(1..).map(with_address).collect()
}

fn peers_without_an_address() -> Vec<Own> {
    let found = json!({ "mode": "DefaultGateway", "addressFamily": "ipv4" });
    let fields = [
        ("listenRange", json!({ "listenRange": "10.90.1.0/24" })),
        ("listenLimit", json!({ "listenRange": "10.90.2.0/24", "listenLimit": 7 })),
        ("autoDiscovery", json!({ "autoDiscovery": found })),
    ];
    fields
        .map(|(field, more)| {
            let mut spec = json!({ "myASN": NODE_AS, "peerASN": 65009 });
            merge(&mut spec, more);
            own("BGPPeer", field, spec)
        })
        .into()
}

/// The fields of the page that MetalLB does not have, of the kinds that people write; without the parts of others.
fn of_the_page() -> Result<BTreeSet<String>> {
    let page = std::fs::read_to_string(lab::checkout().join("docs/metallb-fields.md"))?;
    let (mut kind, mut last, mut all) = ("", String::new(), BTreeSet::new());
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            kind = heading.split(' ').next().unwrap_or_default();
            continue;
        }
        let row = line.strip_prefix("| `").and_then(|it| it.split_once("` | - | "));
        let Some((field, _)) = row.filter(|_| kind != "ConfigurationState") else { continue };
        let is_part = field.strip_prefix(&last).is_some_and(|it| it.starts_with(['.', '[']));
        if last.is_empty() || !is_part {
            field.clone_into(&mut last);
            all.insert(format!("{kind} {field}"));
        }
    }
    Ok(all)
}
