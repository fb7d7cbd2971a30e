//! Do the labs of `examples/` work, without the tool that they are for? Namespaces in place of containers. Used by main.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::{has_route, start_frr};
use lab::fairway;
use lab::frr_speaker::Speaker;
use lab::namespace::Namespace;
use lab::process::Process;
use lab::suite::Cell;
use lab::wait::{PATIENCE, wait_until};

/// The first address of the pools of both labs.
const ROUTE: &str = "198.51.100.1/32";

/// A topology of containerlab as far as it says something about networks and programs.
#[derive(Deserialize)]
struct File {
    topology: Topology,
}

#[derive(Deserialize)]
struct Topology {
    nodes: BTreeMap<String, Node>,
    links: Vec<Link>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Node {
    network_mode: Option<String>,
    cmd: Option<String>,
    #[serde(default)]
    binds: Vec<String>,
    #[serde(default)]
    exec: Vec<String>,
}

#[derive(Deserialize)]
struct Link {
    endpoints: [String; 2],
}

impl Topology {
    fn node(&self, name: &str) -> Result<&Node> {
        self.nodes.get(name).with_context(|| format!("there is no node {name}"))
    }
}

impl Node {
    /// What beside the topology it sees at this place.
    fn source(&self, place: &str) -> Result<&str> {
        let mut binds = self.binds.iter().filter_map(|it| it.split_once(':'));
        let found = binds.find(|(_, to)| to.split(':').next() == Some(place));
        Ok(found.with_context(|| format!("nothing is bound to {place}"))?.0)
    }
}

/// Its nodes as namespaces, its links as cables.
pub(crate) fn containerlab(cell: &Cell) -> Result<()> {
    let folder = lab::checkout().join("examples/containerlab");
    let text = fs::read_to_string(folder.join("fairway.clab.yml")).context("fairway.clab.yml")?;
    let File { topology } = serde_saphyr::from_str(&text).context("fairway.clab.yml")?;
    let mut networks = BTreeMap::new();
    for (name, _) in topology.nodes.iter().filter(|(_, it)| it.network_mode.is_none()) {
        networks.insert(name.as_str(), Namespace::create(cell.number, name)?);
    }
    let network = |name: &str| networks.get(name).with_context(|| format!("{name} has no network"));
    for Link { endpoints: [near, far] } in &topology.links {
        let (near, here) = near.split_once(':').context("NODE:INTERFACE")?;
        let (far, there) = far.split_once(':').context("NODE:INTERFACE")?;
        network(near)?.connect(here, network(far)?, there)?;
    }
    for (name, node) in &topology.nodes {
        for line in &node.exec {
            network(name)?.run("sh", &["-c", line])?;
        }
    }
    let configuration = folder.join(topology.node("router")?.source("/etc/frr/frr.conf")?);
    let configuration = fs::read_to_string(configuration).context("frr.conf")?;
    let frr = start_frr(network("router")?, cell, &configuration)?;

    let fairway = topology.node("fairway")?;
    let shared = fairway.network_mode.as_deref().and_then(|it| it.strip_prefix("container:"));
    let resources = folder.join(fairway.source("/etc/fairway")?);
    let command = fairway.cmd.as_deref().context("fairway has no cmd")?;
    let command = command.replace("/etc/fairway", &resources.to_string_lossy());
    let words = command.split_whitespace().map(str::to_owned).collect();
    let network = network(shared.context("fairway has a network of its own")?)?;
    until_route(start(network, cell, words)?, &frr)
}

fn until_route(mut daemon: Process, frr: &Speaker) -> Result<()> {
    wait_until("the router has the route", PATIENCE, || {
        daemon.check_running()?;
        has_route(frr, ROUTE)
    })
}

/// The router of the lab with kind, and its objects as the files of one node.
pub(crate) fn kind(cell: &Cell) -> Result<()> {
    let folder = lab::checkout().join("examples/kind");
    let read = |name: &str| fs::read_to_string(folder.join(name)).with_context(|| name.to_owned());
    let (node, router) =
        (Namespace::create(cell.number, "node")?, Namespace::create(cell.number, "router")?);
    node.connect("eth0", &router, "eth0")?;
    // Of the network that kind makes.
    node.add_address("eth0", "172.18.0.2/16")?;
    router.add_address("eth0", "172.18.0.9/16")?;
    let frr = start_frr(&router, cell, &read("router.conf")?)?;
    let network = read("network.yaml")?.replace("ROUTER", "172.18.0.9");
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n";
    let file = cell.directory.join("objects.yaml");
    fs::write(&file, network + service).context("objects.yaml")?;
    let words = ["run", "--node", "worker", "--config", &file.to_string_lossy()].map(str::to_owned);
    until_route(start(&node, cell, words.into())?, &frr)
}

/// The daemon, with its socket and its state in the folder of the case.
fn start(network: &Namespace, cell: &Cell, mut words: Vec<String>) -> Result<Process> {
    for (option, name) in [("--socket", "fairway.sock"), ("--state-dir", "state")] {
        words.extend([option.to_owned(), cell.directory.join(name).to_string_lossy().into_owned()]);
    }
    let log: &Path = &cell.directory.join("fairway.log");
    Process::spawn(network, &fairway::program(), &words, log)
}
