//! Does `fairway check --for` name what MetalLB refuses in a mode? Its own speaker is shown each such object, alone, and says that
//! the configuration is not valid; then it is taken away again.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use lab::process::bounded;
use lab::suite::Cell;

use crate::cluster::{SYSTEM, merge, object};
use crate::node::NODE_AS;
use crate::stage::{Software, Stage};
use lab::metallb::{Mode, Programs};

pub(crate) fn all(cell: &Cell, mode: Mode, assets: &Path, programs: &Programs) -> Result<()> {
    let mut stage = Stage::build(cell, mode, assets, programs)?;
    stage.start(Software::Metallb)?;
    stage.wait_for_validity(true)?;
    ensure!(
        faults(&stage, mode)?.is_empty(),
        "of a valid configuration: {:?}",
        faults(&stage, mode)?
    );
    for (object, named) in cases(mode) {
        stage.put(&object)?;
        let why = stage.wait_for_validity(false)?;
        let faults = faults(&stage, mode)?;
        let is_named = faults.iter().any(|it| it.contains(named));
        ensure!(is_named, "{named}: MetalLB says {why}, and check says {faults:#?}");
        stage.delete(&object)?;
        stage.wait_for_validity(true)?;
        println!("  {named}");
    }
    stage.stop()
}

/// What `check` says of the objects in the cluster, as far as MetalLB refuses it.
fn faults(stage: &Stage, mode: Mode) -> Result<Vec<String>> {
    let takeover = format!("metallb-{}", mode.word());
    let file = stage.exported()?;
    let mut check = bounded(lab::fairway::program());
    let output = check.args(["check", "--for", &takeover]).arg(file).output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = said.lines().filter(|it| it.contains("apply no configuration"));
    Ok(lines.map(str::to_owned).collect())
}

/// Objects that are refused, and what names each. MetalLB 0.16.1 has no `asPathPrepend`.
fn cases(mode: Mode) -> Vec<(Value, &'static str)> {
    let peer = |more: Value| {
        let mut spec = json!({ "myASN": NODE_AS, "peerAddress": "10.90.0.99" });
        if more.get("dynamicASN").is_none() {
            merge(&mut spec, json!({ "peerASN": 65009 }));
        }
        merge(&mut spec, more);
        object("metallb.io/v1beta2", "BGPPeer", SYSTEM, "refused", json!({ "spec": spec }))
    };
    let other = |kind: &str, spec: Value| {
        object("metallb.io/v1beta1", kind, SYSTEM, "refused", json!({ "spec": spec }))
    };
    match mode {
        Mode::Native => vec![
            (peer(json!({ "keepaliveTime": "10s" })), "BGPPeer/refused: spec.keepaliveTime"),
            (peer(json!({ "connectTime": "5s" })), "BGPPeer/refused: spec.connectTime"),
            (
                peer(json!({ "enableGracefulRestart": true })),
                "BGPPeer/refused: spec.enableGracefulRestart",
            ),
            (
                peer(json!({ "dualStackAddressFamily": true })),
                "BGPPeer/refused: spec.dualStackAddressFamily",
            ),
            (peer(json!({ "vrf": "red" })), "BGPPeer/refused: spec.vrf"),
            (peer(json!({ "disableMP": true })), "BGPPeer/refused: spec.disableMP"),
            (peer(json!({ "localASN": 65010 })), "BGPPeer/refused: spec.localASN"),
            (peer(json!({ "dynamicASN": "external" })), "BGPPeer/refused: spec.dynamicASN"),
            (other("BFDProfile", json!({})), "BFDProfile/refused: the native mode has no BFD"),
            (
                other(
                    "BGPAdvertisement",
                    json!({ "ipAddressPools": ["silent"], "communities": ["large:65001:1:2"] }),
                ),
                "BGPAdvertisement/refused: spec.communities",
            ),
            (
                other(
                    "Community",
                    json!({ "communities": [{ "name": "wide", "value": "large:65001:1:2" }] }),
                ),
                "Community/refused: spec.communities",
            ),
        ],
        Mode::Frr => vec![
            (peer(json!({ "myASN": 65077 })), "BGPPeer/refused: spec.myASN"),
            (peer(json!({ "routerID": "192.0.2.77" })), "BGPPeer/refused: spec.routerID"),
        ],
    }
}
