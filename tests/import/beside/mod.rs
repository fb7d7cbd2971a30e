//! Are the neighbors of a node told by the program that the objects are for what `fairway plan` says of their translation? The
//! program itself (Calico's node, Cilium's agent, frr-k8s) needs a cluster and does not run: the BGP daemon that it drives does, with
//! a configuration by hand as it writes it. BIRD is each neighbor. What the importer names as not translated may be told besides,
//! and each such row has its line. Samples about other things than BGP have no daemon that would run here: those of keepalived are
//! in `keepalived`, and Cilium's `pools-and-layer2`, for which Cilium answers ARP in the kernel, has its rows alone.

mod calico;
mod cilium;
mod frr_k8s;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use lab::bird::Bird;
use lab::namespace::Namespace;
use lab::process::bounded;
use lab::suite::{Case, Cell, Suite};
use lab::wait::{PATIENCE, wait_until};

use super::objects::{imported, plan, rows};
use super::samples;

/// What the objects of a folder are for.
struct Project {
    /// Of the samples, and of the configurations of the daemon.
    folder: &'static str,
    /// Of a configuration.
    extension: &'static str,
    /// What tells the neighbors routes.
    daemon: &'static str,
    samples: &'static [Sample],
    start: Start,
}

/// Starts the daemon on the node of a sample with this configuration.
type Start = fn(&Cell, &Namespace, &Sample, &str) -> Result<Box<dyn Daemon>>;

/// What tells the neighbors routes. Its processes end with this value.
trait Daemon {
    fn check_running(&mut self) -> Result<()>;
    fn stop(&mut self) -> Result<()>;
}

struct Sample {
    name: &'static str,
    /// The node of the cluster that the daemon is on.
    node: &'static str,
    /// What neighbors are told that Fairway does not tell, and the line about which the importer says so.
    more: &'static [(u32, &'static str)],
    links: &'static [Link],
    neighbors: &'static [Neighbor],
}

/// An interface of the node, to which neighbors are connected.
struct Link {
    name: &'static str,
    /// None in the main table.
    vrf: &'static str,
    addresses: &'static [&'static str],
}

struct Neighbor {
    /// Of the BGPPeer that the importer makes of it.
    peer: &'static str,
    link: &'static str,
    /// None where sessions have link-local addresses.
    addresses: &'static [&'static str],
    /// BIRD's lines about the session.
    session: &'static str,
}

/// The name that samples have for the only node that matters.
const ONLY_NODE: &str = "node-a";

pub(crate) fn add_to(suite: &mut Suite) {
    for project in [&calico::PROJECT, &cilium::PROJECT, &frr_k8s::PROJECT] {
        for sample in project.samples {
            let Project { folder, daemon, .. } = project;
            let of_node =
                if sample.node == ONLY_NODE { "" } else { &format!(" of {}", sample.node) };
            let name = format!(
                "{folder} {}: {daemon} tells the neighbors{of_node} what is planned",
                sample.name
            );
            let lack = if sample.needs_vrfs() { lacks_vrfs() } else { None };
            suite.add(Case::new(name, |cell| same(cell, project, sample)).not_applicable(lack));
        }
    }
}

/// Why there are no VRFs here. The namespace of the attempt ends with it.
fn lacks_vrfs() -> Option<&'static str> {
    let attempt = ["--net", "ip", "link", "add", "red", "type", "vrf", "table", "100"];
    let output = bounded("unshare").args(attempt).output();
    let is_there = output.is_ok_and(|it| it.status.success());
    (!is_there).then_some("this kernel has no VRFs (make vm has one that does)")
}

impl Sample {
    fn needs_vrfs(&self) -> bool {
        self.links.iter().any(|link| !link.vrf.is_empty())
    }

    fn configuration(&self, project: &Project) -> PathBuf {
        let of_node = if self.node == ONLY_NODE { "" } else { &format!("-{}", self.node) };
        let name = format!("{}{of_node}.{}", self.name, project.extension);
        lab::checkout().join("tests/import").join(project.folder).join(name)
    }
}

fn same(cell: &Cell, project: &Project, sample: &Sample) -> Result<()> {
    let expected = expected(cell, project, sample)?;
    let path = sample.configuration(project);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let node = node(cell, sample.links)?;
    // BIRD has one session with the same remote address at a time.
    let mut routers = Vec::new();
    for neighbor in sample.neighbors {
        routers.push(Router::start(cell, neighbor, routers.len(), &node)?);
    }
    let mut daemon = (project.start)(cell, &node, sample, &text)?;
    // Where a kernel has VRFs, it may be that of an emulated machine, which is slow.
    let patience = if sample.needs_vrfs() { 8 * PATIENCE } else { 3 * PATIENCE };
    wait_until("the neighbors are told what is planned", patience, || {
        daemon.check_running()?;
        let told = routers.iter_mut().map(Router::told).collect::<Result<Vec<_>>>()?;
        let mut told = told.concat();
        told.sort();
        ensure!(told == expected, "{told:#?} in place of {expected:#?}");
        Ok(())
    })?;
    daemon.stop()
}

/// The rows of the node, without its name and without the Services, and what its neighbors are told besides.
fn expected(cell: &Cell, project: &Project, sample: &Sample) -> Result<Vec<String>> {
    let path = format!("{}/{}.yaml", project.folder, sample.name);
    let known = samples::SAMPLES.iter().find(|it| it.path == path).context("no such sample")?;
    let text = plan(cell, &imported(cell, &path)?.file, known.cluster)?;
    let prefix = format!("{}: ", sample.node);
    let rows = rows(&text);
    let mut rows: Vec<_> =
        rows.iter().filter_map(|it| Some(without_service(it.strip_prefix(&prefix)?))).collect();
    ensure!(!rows.is_empty(), "no rows of {} in {text}", sample.node);
    for (line, row) in sample.more {
        ensure!(known.named.contains(line), "line {line} is not among those that are named");
        let (peer, _) = row.split_once(' ').context("no peer")?;
        let nothing = format!("{peer} <none>");
        rows.retain(|it| *it != nothing);
        rows.push((*row).to_owned());
    }
    rows.sort();
    Ok(rows)
}

/// A row ends with the Service, if there is one.
fn without_service(row: &str) -> String {
    let is_prefix = row.split(' ').count() <= 2;
    match row.rsplit_once(' ') {
        Some((rest, last)) if last.contains('/') && !is_prefix => rest.to_owned(),
        _ => row.to_owned(),
    }
}

/// Each of its interfaces is a bridge, so that several neighbors are on one.
fn node(cell: &Cell, links: &[Link]) -> Result<Namespace> {
    let node = Namespace::create(cell.number, "node")?;
    for (number, link) in links.iter().enumerate() {
        // The address of a bridge without one changes with its ports.
        let mac = format!("02:00:00:00:00:{number:02}");
        let bridge = ["type", "bridge", "mcast_snooping", "0"];
        node.ip(&[&["link", "add", link.name, "address", &mac], bridge.as_slice()].concat())?;
        if !link.vrf.is_empty() {
            node.ip(&["link", "add", link.vrf, "type", "vrf", "table", "100"])?;
            node.ip(&["link", "set", link.vrf, "up"])?;
            node.ip(&["link", "set", link.name, "master", link.vrf])?;
        }
        node.ip(&["link", "set", link.name, "up"])?;
        link.addresses.iter().try_for_each(|address| node.add_address(link.name, address))?;
    }
    Ok(node)
}

/// A neighbor: BIRD in a place of its own.
struct Router {
    peer: &'static str,
    bird: Bird,
    log: PathBuf,
    _place: Namespace,
}

impl Router {
    /// It offers both families. Its log has the messages that it gets.
    fn start(cell: &Cell, neighbor: &Neighbor, number: usize, node: &Namespace) -> Result<Self> {
        let name = format!("router{number}");
        let place = Namespace::create(cell.number, &name)?;
        node.connect(&name, &place, "eth0")?;
        node.ip(&["link", "set", &name, "master", neighbor.link])?;
        neighbor.addresses.iter().try_for_each(|address| place.add_address("eth0", address))?;
        let mut text =
            format!("log stderr all;\nrouter id 192.0.2.{number};\nprotocol device {{}}\n");
        if neighbor.addresses.is_empty() {
            text +=
                "protocol radv { interface \"eth0\" { min ra interval 3; max ra interval 4; }; }\n";
        }
        if neighbor.session.contains("bfd on;") {
            // Slow enough for an emulated machine.
            text += "protocol bfd { interface \"eth0\" { interval 1 s; multiplier 10; }; }\n";
        }
        let is_ipv4 = neighbor.addresses.first().is_some_and(|it| !it.contains(':'));
        let extended = if is_ipv4 { "" } else { "extended next hop on; " };
        // With this hold time a KEEPALIVE comes every two seconds.
        text += &format!(
            "protocol bgp node {{\n  debug {{ events, packets }};\n  hold time 6;\n  {}\n  \
             connect retry time 1;\n  connect delay time 1;\n  error wait time 1,2;\n  \
             ipv4 {{ {extended}import all; export none; }};\n  ipv6 {{ import all; export none; }};\n}}\n",
            neighbor.session
        );
        let bird = Bird::start(&place, &cell.directory, &name, &text)?;
        let log = cell.directory.join(format!("{name}.log"));
        Ok(Self { peer: neighbor.peer, bird, log, _place: place })
    }

    /// What it was told, as rows of a plan.
    fn told(&mut self) -> Result<Vec<String>> {
        let peer = self.peer;
        self.has_all()?;
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
            return Ok(vec![format!("{peer} <none>")]);
        }
        let rows = routes.iter().map(|(prefix, attributes)| row(peer, prefix, attributes));
        Ok(rows.collect())
    }

    /// The session is up, and what is told at its beginning was told: End-of-RIB of each family came, or, from a daemon that sends
    /// none, a KEEPALIVE after that which opened the session.
    fn has_all(&mut self) -> Result<()> {
        let peer = self.peer;
        let protocols = self.bird.ask("show protocols all")?;
        let is_up = protocols.iter().any(|it| it.contains("Established"));
        ensure!(is_up, "no session of {peer} yet: {protocols:?}");
        let states = protocols.iter().filter_map(|it| it.trim().strip_prefix("State:"));
        let families = states.filter(|it| it.trim() == "UP").count();
        let log = fs::read_to_string(&self.log).context("BIRD's log")?;
        let (_, since) =
            log.rsplit_once("BGP session established").context("no session in the log")?;
        let ends = since.matches("Got END-OF-RIB").count();
        let has_all = since.contains("Got KEEPALIVE") || (families > 0 && ends >= families);
        ensure!(has_all, "{peer} may be told more: {ends} End-of-RIB of {families}");
        Ok(())
    }
}

fn row(peer: &str, prefix: &str, attributes: &[String]) -> String {
    let attributes =
        if attributes.is_empty() { "<none>".to_owned() } else { attributes.join(", ") };
    format!("{peer} {prefix} {attributes}")
}

/// BIRD's line about an attribute, in the words of a plan. A preference of 100 is the default of both.
fn attribute(line: &str) -> Option<String> {
    let numbers = |text: &str| text.replace(", ", ":").replace(',', ":").replace(['(', ')'], "");
    let (name, value) = line.strip_prefix("BGP.")?.split_once(": ")?;
    match name {
        "local_pref" if value != "100" => Some(format!("localPref {value}")),
        "community" => {
            let communities = numbers(value).replace("65535:65281", "no-export");
            Some(format!("communities {communities}"))
        }
        "large_community" => Some(format!("largeCommunities {}", numbers(value))),
        "med" if value != "0" => Some(format!("med {value}")),
        _ => None,
    }
}
