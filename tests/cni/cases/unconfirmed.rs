//! When is a block announced? The API server refuses for a while that affinities are confirmed: blocks are claimed then, and
//! routers must not hear of them.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::Scene;
use super::cluster::{self, CALICO, create};
use super::fabric::{Fabric, NODES, blocks};
use crate::capture::Capture;
use crate::daemon::pool;
use crate::runtime::Runtime;
use lab::Family;
use lab::cluster::Cluster;
use lab::wait::{PATIENCE, wait_until};

/// The place of the node that claims blocks.
const PLACE: usize = 2;
/// Blocks that the API server lets be confirmed. A node that announces one that it has claimed last announces all that it
/// ever will of what it had claimed before.
const FENCES: [[&str; 2]; 2] =
    [["10.245.0.0/28", "fd00:245::/124"], ["10.245.1.0/28", "fd00:245:1::/124"]];
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const POLICIES: [&str; 2] = ["validatingadmissionpolicybindings", "validatingadmissionpolicies"];

pub(super) fn no_block_is_announced_before_its_affinity_is_confirmed(scene: &Scene) -> Result<()> {
    let mut fabric = Fabric::build(scene)?;
    let capture = Capture::start(&fabric.hub, "wire", &scene.directory)?;
    let node = *NODES.get(PLACE).context("a node")?;
    refuse_confirmations(&fabric.cluster)?;
    make_fences(&fabric.cluster)?;
    claim_in_vain(&fabric.cluster, &runtime(&fabric, scene)?, node)?;
    fence(&fabric, &runtime(&fabric, scene)?, 0)?;
    not_captured(&fabric, &capture, node)?;
    // A daemon that starts reads what it does not remember.
    fabric.restart(PLACE)?;
    fence(&fabric, &runtime(&fabric, scene)?, 1)?;
    let pending = not_captured(&fabric, &capture, node)?;
    allow_confirmations(&fabric.cluster)?;
    let runtime = runtime(&fabric, scene)?;
    let container =
        wait_until("blocks are confirmed", PATIENCE, || runtime.add(scene.cell, "pod"))?;
    for family in [Family::Ipv4, Family::Ipv6] {
        let confirmed = blocks(&fabric.cluster, family)?;
        fabric.prefixes_become(family, &confirmed)?;
        let of_family = pending.iter().filter(|it| Family::of(it) == family);
        ensure!(of_family.clone().all(|it| confirmed.contains(it)), "{confirmed:?}");
    }
    // The same search finds them now.
    captured(&capture, &pending)?;
    runtime.delete(&container)
}

/// That of the node, with the pools that have blocks for Pods.
fn runtime<'a>(fabric: &'a Fabric, scene: &'a Scene) -> Result<Runtime<'a>> {
    let mut runtime = fabric.runtime(scene, PLACE)?;
    runtime.configuration["ipam"]["ipv4_pools"] = json!(["v4"]);
    runtime.configuration["ipam"]["ipv6_pools"] = json!(["v6"]);
    Ok(runtime)
}

/// A pool for each fence, which has one block.
fn make_fences(cluster: &Cluster) -> Result<()> {
    for cidr in FENCES.as_flattened() {
        let (name, length) = (name_of_fence(cidr), cidr.rsplit('/').next().unwrap_or_default());
        create(cluster, &format!("{CALICO}/ippools"), &pool(&name, cidr, length.parse()?))?;
    }
    Ok(())
}

fn name_of_fence(cidr: &str) -> String {
    format!("fence-{}", cidr.replace([':', '/', '.'], "-"))
}

/// Lets the node claim a fence, and waits until each router has it and no other one that it had not.
fn fence(fabric: &Fabric, runtime: &Runtime<'_>, place: usize) -> Result<()> {
    let [ipv4, ipv6] = FENCES.get(place).context("a fence")?;
    let mut configuration = runtime.configuration.clone();
    configuration["ipam"]["ipv4_pools"] = json!([name_of_fence(ipv4)]);
    configuration["ipam"]["ipv6_pools"] = json!([name_of_fence(ipv6)]);
    wait_until("the fence is claimed", PATIENCE, || {
        runtime.ask("ADD", &format!("fence{place}"), &configuration)?.done()
    })?;
    for (number, family) in [Family::Ipv4, Family::Ipv6].into_iter().enumerate() {
        let fences = FENCES.iter().take(place + 1).filter_map(|it| it.get(number));
        let fences: Vec<String> = fences.map(|it| (*it).to_owned()).collect();
        fabric.prefixes_become(family, &fences)?;
    }
    Ok(())
}

/// Nobody has told of the pending blocks of the node, while the fences were told of. Returns those blocks.
fn not_captured(fabric: &Fabric, capture: &Capture, node: &str) -> Result<Vec<String>> {
    let fences: Vec<String> = blocks(&fabric.cluster, Family::Ipv4)?;
    let fences = [fences, blocks(&fabric.cluster, Family::Ipv6)?].concat();
    captured(capture, &fences)?;
    let pending = claimed(&fabric.cluster, node)?;
    ensure!(pending.len() == 2, "{pending:?}");
    for prefix in &pending {
        ensure!(!capture.has(prefix)?, "{prefix} was announced before it was confirmed");
    }
    Ok(pending)
}

/// No affinity becomes confirmed, but those of fences.
fn refuse_confirmations(cluster: &Cluster) -> Result<()> {
    let rule = json!({
        "apiGroups": ["crd.projectcalico.org"], "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"], "resources": ["blockaffinities"],
    });
    let expression = "object.spec.state != 'confirmed' || object.spec.cidr in ";
    let expression = format!("{expression}{}", json!(FENCES.as_flattened()));
    let specs = [
        json!({"policyName": "unconfirmed", "validationActions": ["Deny"]}),
        json!({
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "reason": "Forbidden"}],
        }),
    ];
    let kinds = ["ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"];
    for ((kind, plural), spec) in kinds.iter().zip(POLICIES).zip(specs).rev() {
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "unconfirmed"}, "spec": spec,
        });
        create(cluster, &format!("{ADMISSION}/{plural}"), &object)?;
    }
    let probe = json!({
        "apiVersion": "crd.projectcalico.org/v1", "kind": "BlockAffinity",
        "metadata": {"name": "probe"},
        "spec": {"cidr": "10.246.0.0/28", "node": "n1", "state": "confirmed", "deleted": "false"},
    });
    wait_until("the API server refuses confirmed affinities", PATIENCE, || {
        let path = format!("{CALICO}/blockaffinities?dryRun=All");
        let reply = cluster.ask("POST", &path, Some(&probe))?;
        ensure!(reply.status == 403, "{} {}", reply.status, reply.text);
        Ok(())
    })
}

fn allow_confirmations(cluster: &Cluster) -> Result<()> {
    for plural in POLICIES {
        let reply = cluster.ask("DELETE", &format!("{ADMISSION}/{plural}/unconfirmed"), None)?;
        ensure!(reply.status == 200, "{plural}: {} {}", reply.status, reply.text);
    }
    Ok(())
}

/// Asks for an address of each family until the node has made a block for it.
fn claim_in_vain(cluster: &Cluster, runtime: &Runtime<'_>, node: &str) -> Result<()> {
    for (id, other) in [("claims4", "assign_ipv6"), ("claims6", "assign_ipv4")] {
        let mut configuration = runtime.configuration.clone();
        configuration["ipam"][other] = "false".into();
        let family = if other == "assign_ipv6" { Family::Ipv4 } else { Family::Ipv6 };
        wait_until(&format!("{node} claims a block"), PATIENCE, || {
            let refused = runtime.ask("ADD", id, &configuration)?;
            ensure!(refused.code != 0, "an address was given: {refused:?}");
            let claimed = claimed(cluster, node)?;
            ensure!(claimed.iter().any(|it| Family::of(it) == family), "{refused:?}");
            Ok(())
        })?;
    }
    Ok(())
}

/// The blocks of a node whose affinity is pending.
fn claimed(cluster: &Cluster, node: &str) -> Result<Vec<String>> {
    let affinities = cluster::list(cluster, "blockaffinities")?;
    let is_pending = |it: &&Value| it["spec"]["node"] == node && it["spec"]["state"] == "pending";
    let pending = affinities.iter().filter(is_pending).map(|it| &it["spec"]["cidr"]);
    let owner = format!("host:{node}");
    let blocks = cluster::list(cluster, "ipamblocks")?;
    let has_block = |cidr: &&Value| {
        let mut blocks = blocks.iter().map(|it| &it["spec"]);
        blocks.any(|it| it["cidr"] == **cidr && it["affinity"] == owner)
    };
    Ok(pending.filter(has_block).filter_map(|it| it.as_str().map(str::to_owned)).collect())
}

fn captured(capture: &Capture, prefixes: &[String]) -> Result<()> {
    wait_until(&format!("{prefixes:?} are captured"), PATIENCE, || {
        for prefix in prefixes {
            ensure!(capture.has(prefix)?, "{prefix} is not");
        }
        Ok(())
    })
}
