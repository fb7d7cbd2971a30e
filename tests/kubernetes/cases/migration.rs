//! From MetalLB to Fairway and back, by docs/migrate-from-metallb.md: the blocks that it marks `sh` are
//! run as they are printed, in its order; the test does what kubelets and controllers do meanwhile.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::metallb::{self, GIVEN};
use crate::objects::SYSTEM;
use crate::stage::{NODES, SHOP, Stage};
use lab::fairway::program;
use lab::make_directory;
use lab::wait::{PATIENCE, wait_until};

const PAGE: &str = "docs/migrate-from-metallb.md";

/// No address changes, all routes come, and on the way back all go and addresses stay.
pub(super) fn a_cluster_of_metallb_is_taken_over_and_given_back(stage: &mut Stage) -> Result<()> {
    let work = stage.directory.join("walk");
    let programs = work.join("bin");
    make_directory(&programs)?;
    make_directory(&work.join("migration/metallb"))?;
    let root = lab::checkout();
    std::os::unix::fs::symlink(root.join("deploy"), work.join("deploy"))?;
    std::os::unix::fs::symlink(program(), programs.join("fairway"))?;
    stage.cluster()?.write_kubectl(&programs)?;
    let manifest = work.join("migration/metallb/install.yaml");
    metallb::install(stage, &manifest)?;

    let page = std::fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let blocks = blocks(&page);
    let mut steps = Vec::new();
    for block in &blocks {
        run(block, &work, &programs)?;
        if block.contains("kubectl scale -n metallb-system deployment/controller --replicas=0") {
            metallb::lose_controller(stage, &manifest)?;
            steps.push("webhooks");
        }
        steps.extend(follow(stage, block)?);
        addresses_stay(stage).with_context(|| format!("after:\n{block}"))?;
    }
    let expected = ["webhooks", "controller", "speakers", "restart", "back"];
    ensure!(steps == expected, "of {} blocks, the steps were {steps:?}", blocks.len());
    Ok(())
}

/// What is between lines of three backquotes with `sh`.
fn blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while lines.by_ref().any(|line| line == "```sh") {
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push(block.join("\n") + "\n");
    }
    blocks
}

fn run(block: &str, work: &Path, programs: &Path) -> Result<()> {
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", block])
        .env("PATH", format!("{}:{path}", programs.display()))
        .current_dir(work)
        .output()?;
    ensure!(
        output.status.success(),
        "{block}ended with {}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Does what a cluster does after such a block; the step of the page that this was.
fn follow(stage: &mut Stage, block: &str) -> Result<Option<&'static str>> {
    let has = |command: &str| block.lines().any(|line| line.trim() == command);
    if has("kubectl apply -k deploy/migration") {
        stage.prepare_daemons()?;
        stage.start_controller(0)?;
        wait_until("the controller leads", PATIENCE, || {
            stage.controllers[0].check_running()?;
            let lease = stage.api.get("Lease", SYSTEM, "fairway-controller")?;
            ensure!(lease["spec"]["holderIdentity"].is_string(), "it says {}", lease["spec"]);
            Ok(())
        })?;
        return Ok(Some("controller"));
    }
    if has("kubectl label node node-a metallb.io/speaker=fairway") {
        for (place, node) in NODES.into_iter().enumerate() {
            let label = json!({ "metadata": { "labels": { "metallb.io/speaker": "fairway" } } });
            stage.api.patch("Node", "", node, &label)?;
            stage.start_speaker(place)?;
            everything_is_announced(stage, NODES.get(..=place).unwrap_or_default())?;
        }
        return Ok(Some("speakers"));
    }
    if has("kubectl apply -k deploy") {
        for place in 0..NODES.len() {
            stage.speakers[place].daemon.stop()?;
            stage.start_speaker(place)?;
        }
        everything_is_announced(stage, &NODES)?;
        return Ok(Some("restart"));
    }
    if has("kubectl apply -f migration/metallb/install.yaml") {
        // Kubernetes ends what was deleted.
        stage.controllers[0].stop()?;
        stage.speakers.iter_mut().try_for_each(|it| it.daemon.stop())?;
        everything_is_announced(stage, &[])?;
        return Ok(Some("back"));
    }
    Ok(None)
}

fn everything_is_announced(stage: &mut Stage, nodes: &[&str]) -> Result<()> {
    for (_, address) in GIVEN {
        wait_until(&format!("{nodes:?} announce {address}"), PATIENCE, || {
            stage.check_routes(&crate::stage::ROUTERS, address, nodes)
        })?;
    }
    if !nodes.is_empty() {
        let route = stage.router("frr")?.router.route("192.0.2.77/32")?.context("no route")?;
        ensure!(route.communities.contains("65001:80"), "it says {:?}", route.communities);
    }
    Ok(())
}

fn addresses_stay(stage: &Stage) -> Result<()> {
    for (name, address) in GIVEN {
        let has = stage.api.addresses(SHOP, name)?;
        ensure!(has == [address], "{name} had {address} from MetalLB, and has {has:?}");
    }
    Ok(())
}
