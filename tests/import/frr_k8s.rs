//! What the neighbors of a node are told by FRR with a configuration as frr-k8s renders it: the routes of `fairway plan`, with their
//! attributes. frr-k8s itself needs a cluster and does not run: `frr-k8s/NAME.conf` is written by hand from what its own tests expect.

use std::fs;

use anyhow::{Context, Result, ensure};

use lab::bird::Bird;
use lab::frr_speaker::Speaker;
use lab::namespace::Namespace;
use lab::routers::Release;
use lab::suite::{Case, Cell, Suite};
use lab::wait::{PATIENCE, wait_until};

use super::objects::{imported, plan, rows};
use super::samples;

/// A neighbor: its address, port and AS.
type Neighbor = (&'static str, u16, u32);

struct Sample {
    name: &'static str,
    /// The address of node-a.
    node: &'static str,
    neighbors: &'static [Neighbor],
}

const SAMPLES: &[Sample] = &[
    Sample {
        name: "attributes",
        node: "172.18.0.1",
        neighbors: &[
            ("172.18.0.5", 179, 64512),
            ("172.18.0.6", 179, 4_200_000_000),
            ("172.18.0.7", 179, 4_200_000_000),
        ],
    },
    Sample {
        name: "merged",
        node: "10.0.0.9",
        neighbors: &[("10.0.0.1", 179, 64513), ("10.0.0.2", 1179, 64513)],
    },
    Sample { name: "by-node", node: "10.0.0.9", neighbors: &[("10.0.0.1", 179, 64500)] },
];

pub(crate) fn add_to(suite: &mut Suite) {
    for sample in SAMPLES {
        let name = format!("frr-k8s {}: FRR tells the neighbors what is planned", sample.name);
        suite.add(Case::new(name, move |cell| same(cell, sample)));
    }
}

fn same(cell: &Cell, sample: &Sample) -> Result<()> {
    let planned = planned(cell, sample)?;
    let node = Namespace::create(cell.number, "node")?;
    node.ip(&["link", "add", "lan", "type", "bridge", "mcast_snooping", "0"])?;
    node.ip(&["link", "set", "lan", "up"])?;
    node.add_address("lan", &format!("{}/24", sample.node))?;
    let path = lab::checkout().join("tests/import/frr-k8s").join(format!("{}.conf", sample.name));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut frr = Speaker::prepare(Release::Bookworm, &cell.directory)?;
    frr.start(&node)?;
    frr.load(&text)?;
    // BIRD has one session with the same remote address at a time.
    let mut routers = Vec::new();
    for (number, neighbor) in sample.neighbors.iter().enumerate() {
        routers.push(Router::start(cell, sample, (number, *neighbor), &node)?);
    }
    wait_until("the neighbors are told what is planned", 3 * PATIENCE, || {
        frr.check_running()?;
        let told = routers.iter_mut().map(Router::told).collect::<Result<Vec<_>>>()?;
        let mut told = told.concat();
        told.sort();
        ensure!(told == planned, "{told:#?} in place of {planned:#?}");
        Ok(())
    })?;
    frr.stop()
}

/// The rows of node-a, without its name.
fn planned(cell: &Cell, sample: &Sample) -> Result<Vec<String>> {
    let path = format!("frr-k8s/{}.yaml", sample.name);
    let known = samples::SAMPLES.iter().find(|it| it.path == path).context("no such sample")?;
    let text = plan(cell, &imported(cell, &path)?.file, known.cluster)?;
    let rows =
        rows(&text).into_iter().filter_map(|it| Some(it.strip_prefix("node-a: ")?.to_owned()));
    let rows: Vec<_> = rows.collect();
    ensure!(!rows.is_empty(), "no rows of node-a in {text}");
    Ok(rows)
}

/// A neighbor: BIRD in a place of its own.
struct Router {
    address: &'static str,
    bird: Bird,
    _place: Namespace,
}

impl Router {
    /// It offers both families.
    fn start(
        cell: &Cell,
        sample: &Sample,
        (number, (address, port, asn)): (usize, Neighbor),
        node: &Namespace,
    ) -> Result<Self> {
        let name = format!("router{number}");
        let place = Namespace::create(cell.number, &name)?;
        node.connect(&name, &place, "eth0")?;
        node.ip(&["link", "set", &name, "master", "lan"])?;
        place.add_address("eth0", &format!("{address}/24"))?;
        let text = format!(
            "log stderr all;\nrouter id {address};\nprotocol device {{}}\nprotocol bgp node {{\n  \
             local {address} port {port} as {asn};\n  neighbor {} as 64512;\n  connect retry time 1;\n  \
             connect delay time 1;\n  error wait time 1,2;\n  ipv4 {{ import all; export none; }};\n  \
             ipv6 {{ import all; export none; }};\n}}\n",
            sample.node
        );
        let bird = Bird::start(&place, &cell.directory, &name, &text)?;
        Ok(Self { address, bird, _place: place })
    }

    /// What it was told, as rows of a plan.
    fn told(&mut self) -> Result<Vec<String>> {
        let address = self.address;
        let protocols = self.bird.ask("show protocols node")?;
        let is_up = protocols.iter().any(|it| it.contains("Established"));
        ensure!(is_up, "no session of {address} yet: {protocols:?}");
        let mut routes: Vec<(String, Vec<String>)> = Vec::new();
        for line in self.bird.ask("show route all")? {
            if line.starts_with(|it: char| it.is_ascii_hexdigit()) {
                let prefix = line.split_whitespace().next().unwrap_or_default();
                routes.push((prefix.to_owned(), Vec::new()));
            } else if let Some((_, attributes)) = routes.last_mut() {
                attributes.extend(attribute(line.trim()));
            }
        }
        if routes.is_empty() {
            return Ok(vec![format!("{address} <none>")]);
        }
        let rows = routes.iter().map(|(prefix, attributes)| row(address, prefix, attributes));
        Ok(rows.collect())
    }
}

fn row(address: &str, prefix: &str, attributes: &[String]) -> String {
    let attributes =
        if attributes.is_empty() { "<none>".to_owned() } else { attributes.join(", ") };
    format!("{address} {prefix} {attributes}")
}

/// BIRD's line about an attribute, in the words of a plan. A preference of 100 is the default of both.
fn attribute(line: &str) -> Option<String> {
    let numbers = |text: &str| text.replace(", ", ":").replace(',', ":").replace(['(', ')'], "");
    let (name, value) = line.strip_prefix("BGP.")?.split_once(": ")?;
    match name {
        "local_pref" if value != "100" => Some(format!("localPref {value}")),
        "community" => Some(format!("communities {}", numbers(value))),
        "large_community" => Some(format!("largeCommunities {}", numbers(value))),
        "med" if value != "0" => Some(format!("med {value}")),
        _ => None,
    }
}
