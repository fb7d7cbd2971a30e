//! How long does `kubectl fairway` take, where there are a hundred nodes? Each is a speaker of its own, at an address of
//! its own. Reports and judges nothing. Used by main, on a real API server.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::cases::node_api::{Lab, NAME, SPEAKER_PORT, said, slice};
use crate::install::{Account, token};
use crate::objects::{self, SYSTEM, advertisement, node, ours, pool, service};
use crate::stage::{SHOP, Stage};
use lab::latencies::Latencies;
use lab::process::Process;
use lab::usage::Usage;
use lab::wait::{now, wait_until};

const NODES: usize = 100;
const PEERS: usize = 2;
const SERVICES: usize = 50;
const ASKED: usize = 20;
/// Nodes that do not answer at the end.
const DOWN: usize = 3;
const LIMIT: Duration = Duration::from_secs(180);

pub(crate) fn run(stage: &mut Stage) -> Result<()> {
    let lab = Lab::install(stage)?;
    let user = lab.user(stage, "operator", Some("fairway-node-operator"))?;
    stage.api.delete_all("BGPPeer", SYSTEM)?;
    stage.api.apply(&pool("main", &["198.18.0.0/16"]))?;
    stage.api.apply(&advertisement("main", &["main"], json!({})))?;
    for number in 0..PEERS {
        // Where nobody answers.
        let address = format!("10.90.0.{}", 200 + number);
        let spec = json!({ "myASN": 65001, "peerASN": 65002, "peerAddress": address });
        stage.api.apply(&ours("BGPPeer", &format!("tor-{number}"), spec))?;
    }
    for number in 0..SERVICES {
        let name = format!("s-{number}");
        let served = objects::slice(SHOP, &name, &[("node-a", true)]);
        stage.api.apply_all(&[service(SHOP, &name, json!({})), served])?;
    }
    let speakers = start(stage)?;
    wait_until("all nodes answer", LIMIT, || {
        let output = lab.ask(stage, &user, &["peers"])?;
        ensure!(output.status.success(), "{}", said(&output));
        Ok(())
    })?;
    println!(
        "\n`kubectl fairway`, {NODES} nodes, {PEERS} peers and {SERVICES} Services each, {ASKED} times, milliseconds:\n"
    );
    println!("| command | nodes down | p50 | max | bytes of the answer |\n|---|---|---|---|---|");
    let commands = ["peers", "services", "routes", "pools", "check"];
    for command in commands {
        ask(stage, &lab, &user, command, 0)?;
    }
    let controller = stage.controllers.first().context("a controller")?;
    println!("\n- the controller: {}", Usage::of(controller.process_id()?)?);
    // A connection to them is not refused, it is not answered.
    stage.hub.ip(&["link", "add", "void", "type", "veth", "peer", "name", "void-end"])?;
    for end in ["void", "void-end"] {
        stage.hub.ip(&["link", "set", end, "up"])?;
    }
    for number in 0..DOWN {
        let host = address(number);
        let prefix = format!("{host}/32");
        stage.hub.ip(&["address", "del", &prefix, "dev", "lo"])?;
        stage.hub.ip(&["route", "add", &prefix, "dev", "void"])?;
        // Nobody has this one.
        let neighbour = ["neigh", "replace", &host, "lladdr", "02:00:00:00:00:01", "dev", "void"];
        stage.hub.ip(&neighbour)?;
    }
    println!();
    println!("| command | nodes down | p50 | max | bytes of the answer |\n|---|---|---|---|---|");
    ask(stage, &lab, &user, "peers", DOWN)?;
    drop(speakers);
    Ok(())
}

fn ask(stage: &Stage, lab: &Lab, user: &std::path::Path, command: &str, down: usize) -> Result<()> {
    let (mut latencies, mut bytes) = (Latencies::default(), 0);
    for _ in 0..ASKED {
        let began = now();
        let output = lab.ask(stage, user, &[command])?;
        latencies.push(now().duration_since(began));
        ensure!(output.status.success() == (down == 0), "{}", said(&output));
        bytes = output.stdout.len();
        let missing = said(&output).matches("within 1 s").count();
        ensure!(missing == down, "{}", said(&output));
    }
    let [p50, max] = [50, 100].map(|percent| latencies.percentile(percent));
    println!("| {command} | {down} | {p50:.0} | {max:.0} | {bytes} |");
    Ok(())
}

fn address(number: usize) -> String {
    format!("10.91.0.{}", number + 1)
}

/// One for each node, in the namespace of the API server.
fn start(stage: &Stage) -> Result<Vec<Process>> {
    let token = token(stage.cluster()?, Account::Speaker)?;
    let kubeconfig = stage.cluster()?.kubeconfig("many", &token)?;
    let names: Vec<String> = (0..NODES).map(|number| format!("many-{number:03}")).collect();
    let addresses: Vec<String> = (0..NODES).map(address).collect();
    let mut speakers = Vec::new();
    for (name, address) in names.iter().zip(&addresses) {
        stage.hub.ip(&["address", "add", &format!("{address}/32"), "dev", "lo"])?;
        stage.api.apply_node(&node(name, &[address]))?;
        let folder: PathBuf = stage.directory.join(name);
        lab::make_directory(&folder)?;
        let path = |name: &str| folder.join(name).display().to_string();
        let arguments = [
            "speaker".to_owned(),
            format!("--node={name}"),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--namespace={SYSTEM}"),
            format!("--socket={}", path("socket")),
            format!("--state-dir={}", path("state")),
            "--metrics-listen=none".to_owned(),
            format!("--node-api-listen={address}:{SPEAKER_PORT}"),
            format!("--node-api-cert-dir={}", stage.directory.join("node-api").display()),
        ];
        let program = lab::fairway::program();
        speakers.push(Process::spawn(&stage.hub, &program, &arguments, &folder.join("log"))?);
    }
    let endpoints: Vec<(&str, Option<&str>)> =
        addresses.iter().zip(&names).map(|(at, name)| (at.as_str(), Some(name.as_str()))).collect();
    stage.api.apply(&slice(&format!("{NAME}-speakers"), SPEAKER_PORT, &endpoints))?;
    Ok(speakers)
}
