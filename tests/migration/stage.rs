//! Six nodes, three routers of FRR in their AS, and a client behind the routers, on one wire.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::flows;
use crate::metallb::Cluster;
use lab::fairway::Fairway;
use lab::frr_speaker::Speaker;
use lab::make_directory;
use lab::metallb::Programs;
use lab::namespace::Namespace;
use lab::process::Process;
use lab::routers::Release;
use lab::suite::Cell;
use lab::wait::{PATIENCE, wait_until};

pub(crate) const NODES: usize = 6;
const ROUTERS: usize = 3;
/// Of nodes and routers.
const ASN: u32 = 64512;
pub(crate) const ADDRESS: &str = "203.0.113.10";
const API_SERVER: &str = "10.77.0.100";
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// What speaks BGP on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Software {
    Metallb,
    Fairway,
}

impl Software {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Metallb => "MetalLB",
            Self::Fairway => "Fairway",
        }
    }
}

/// Where LOCAL_PREF comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preference {
    /// `localPref: 100` of the BGPAdvertisement.
    InAdvertisement,
    /// Nothing is said, and Fairway's default is that of MetalLB: 0.
    DefaultOfMetallb,
    /// Nothing is said.
    Defaults,
}

enum Running {
    Metallb(Process),
    Fairway(Fairway),
}

struct Node {
    running: Option<Running>,
    place: Namespace,
}

/// All of it. Processes end before their namespaces.
pub(crate) struct Stage {
    preference: Preference,
    directory: PathBuf,
    nodes: Vec<Node>,
    routers: Vec<(Speaker, Namespace)>,
    cluster: Cluster,
    client: Namespace,
    /// Held for as long as the cables.
    _switch: Namespace,
}

fn address_of_node(node: usize) -> String {
    format!("10.77.0.{}", 11 + node)
}

fn address_of_router(router: usize) -> String {
    format!("10.77.0.{}", 21 + router)
}

fn plug(switch: &Namespace, place: &Namespace, port: &str, address: &str) -> Result<()> {
    place.connect("eth0", switch, port)?;
    switch.ip(&["link", "set", port, "master", "wire"])?;
    place.add_address("eth0", &format!("{address}/24"))
}

impl Stage {
    /// All nodes run MetalLB, and all routers know all ways.
    pub(crate) fn build(
        cell: &Cell,
        preference: Preference,
        assets: &Path,
        programs: &Programs,
    ) -> Result<Self> {
        let switch = Namespace::create(cell.number, "switch")?;
        switch.ip(&["link", "add", "wire", "type", "bridge"])?;
        switch.ip(&["link", "set", "wire", "up"])?;
        let client = Namespace::create(cell.number, "client")?;
        plug(&switch, &client, "client", "10.77.0.1")?;
        let mut nodes = Vec::new();
        for number in 0..NODES {
            let place = Namespace::create(cell.number, &format!("node{number}"))?;
            plug(&switch, &place, &format!("node{number}"), &address_of_node(number))?;
            nodes.push(Node { running: None, place });
        }
        let mut routers = Vec::new();
        for number in 0..ROUTERS {
            let place = Namespace::create(cell.number, &format!("router{number}"))?;
            plug(&switch, &place, &format!("router{number}"), &address_of_router(number))?;
            place.enable_forwarding()?;
            // The client is on the wire of the nodes, and is to ask the routers all the same.
            let settings =
                ["net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf.eth0.send_redirects=0"];
            place.run("sysctl", &["-q", "-w", settings[0], settings[1]])?;
            by_connection(&place)?;
            routers.push((router(&cell.directory, number, &place)?, place));
        }
        by_connection(&client)?;
        let ways: Vec<String> = (0..ROUTERS).map(address_of_router).collect();
        let mut route = vec!["route", "add", ADDRESS];
        for way in &ways {
            route.extend(["nexthop", "via", way, "dev", "eth0"]);
        }
        client.ip(&route)?;
        let directory = cell.directory.clone();
        switch.add_address("wire", &format!("{API_SERVER}/24"))?;
        let resources = resources(preference);
        let nodes_of_cluster: Vec<String> = (0..NODES).map(address_of_node).collect();
        let server = (&switch, API_SERVER);
        let cluster =
            Cluster::start(assets, programs, server, &directory, &resources, &nodes_of_cluster)?;
        let mut stage =
            Self { preference, directory, nodes, routers, cluster, client, _switch: switch };
        for node in 0..NODES {
            stage.start(node, Software::Metallb)?;
        }
        stage.settle()?;
        Ok(stage)
    }

    /// The node runs this from now on, and the routers know.
    pub(crate) fn change(&mut self, node: usize, software: Software) -> Result<()> {
        match self.nodes[node].running.take() {
            Some(Running::Fairway(mut fairway)) => fairway.stop()?,
            Some(Running::Metallb(mut speaker)) => drop(speaker.stop(STOP_LIMIT)?),
            None => {}
        }
        let former = address_of_node(node);
        self.routers_have(|ways| !ways.contains(&former))?;
        self.start(node, software)?;
        self.settle()
    }

    fn start(&mut self, number: usize, software: Software) -> Result<()> {
        let directory = self.directory.join(format!("node{number}"));
        make_directory(&directory)?;
        let place = &self.nodes[number].place;
        let running = match software {
            Software::Metallb => Running::Metallb(self.cluster.speaker(place, number, &directory)?),
            Software::Fairway => {
                let mut fairway = Fairway::prepare_in(&directory)?;
                fairway.log_level = "info";
                fairway.apply("resources.yaml", &resources(self.preference))?;
                let default = ["--default-local-preference", "0"];
                let default = match self.preference {
                    Preference::DefaultOfMetallb => default.as_slice(),
                    Preference::InAdvertisement | Preference::Defaults => &[],
                };
                let common = ["--bgp-listen", "none", "--metrics-listen", "none"];
                let arguments = common.iter().chain(default);
                fairway.extra_arguments = arguments.map(|it| (*it).to_owned()).collect();
                fairway.start(place)?;
                Running::Fairway(fairway)
            }
        };
        self.nodes[number].running = Some(running);
        Ok(())
    }

    /// The nodes whose routes count, by LOCAL_PREF: all, or those with the higher one.
    fn expected(&self) -> Vec<String> {
        let is_fairway =
            |node: &&(usize, &Node)| matches!(node.1.running, Some(Running::Fairway(_)));
        let all: Vec<(usize, &Node)> = self.nodes.iter().enumerate().collect();
        let preferred: Vec<usize> =
            all.iter().filter(is_fairway).map(|(number, _)| *number).collect();
        let counting = match self.preference {
            Preference::Defaults if !preferred.is_empty() => preferred,
            _ => (0..NODES).collect(),
        };
        let mut addresses: Vec<String> = counting.into_iter().map(address_of_node).collect();
        addresses.sort();
        addresses
    }

    /// Waits until the kernel of each router has exactly the ways that it should have.
    fn settle(&self) -> Result<()> {
        let expected = self.expected();
        self.routers_have(|ways| ways == expected)
    }

    /// Waits until these are the ways in the kernel of each router, sorted.
    fn routers_have(&self, is_right: impl Fn(&[String]) -> bool) -> Result<()> {
        for (_, place) in &self.routers {
            wait_until("a router has the right ways", 2 * PATIENCE, || {
                let text = place.ip(&["-json", "route", "show", ADDRESS])?;
                let all: Value = serde_json::from_str(&text).unwrap_or_default();
                let one = all[0]["gateway"].as_str().map(str::to_owned);
                let several = all[0]["nexthops"].as_array().into_iter().flatten();
                let several = several.filter_map(|it| it["gateway"].as_str().map(str::to_owned));
                let mut ways: Vec<String> = several.chain(one).collect();
                ways.sort();
                ensure!(is_right(&ways), "it has {ways:?}");
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Which part of the client's connections arrives at each node.
    pub(crate) fn shares(&self) -> Result<Vec<f64>> {
        for node in &self.nodes {
            count_from_now(&node.place)?;
        }
        flows::send(&self.client, ADDRESS)?;
        let mut counts = Vec::new();
        wait_until("all packets have arrived", PATIENCE, || {
            counts =
                self.nodes.iter().map(|it| arrived(&it.place)).collect::<Result<Vec<u32>>>()?;
            let sum: u32 = counts.iter().sum();
            ensure!(sum == u32::from(flows::FLOWS), "{sum} of {}: {counts:?}", flows::FLOWS);
            Ok(())
        })?;
        Ok(counts.into_iter().map(|it| f64::from(it) / f64::from(flows::FLOWS)).collect())
    }
}

/// Packets of one connection take one way, and connections are spread.
fn by_connection(place: &Namespace) -> Result<()> {
    place.run("sysctl", &["-q", "-w", "net.ipv4.fib_multipath_hash_policy=1"]).map(drop)
}

/// Counts packets to the address from now on; they go no further.
fn count_from_now(node: &Namespace) -> Result<()> {
    let rule = format!("ip daddr {ADDRESS} counter drop;");
    let chain = format!("chain arriving {{ type filter hook prerouting priority 0; {rule} }};");
    // The first line is for the delete that needs something to delete.
    let text = format!("table ip count; delete table ip count; table ip count {{ {chain} }};");
    node.run("nft", &[&text]).map(drop)
}

/// Packets to the address since then.
fn arrived(node: &Namespace) -> Result<u32> {
    let text = node.run("nft", &["list", "table", "ip", "count"])?;
    let mut words = text.split_whitespace().skip_while(|it| *it != "packets").skip(1);
    words.next().context("a counter")?.parse().context("packets")
}

fn router(directory: &Path, number: usize, place: &Namespace) -> Result<Speaker> {
    let directory = directory.join(format!("router{number}"));
    make_directory(&directory)?;
    let mut frr = Speaker::prepare(Release::Bookworm, &directory)?;
    frr.start(place)?;
    let head = format!("router bgp {ASN}");
    let id = format!("bgp router-id {}", address_of_router(number));
    let mut lines = vec![head, id, "timers bgp 3 9".to_owned()];
    for node in 0..NODES {
        let neighbor = format!("neighbor {}", address_of_node(node));
        lines.push(format!("{neighbor} remote-as {ASN}"));
        lines.push(format!("{neighbor} timers connect 1"));
    }
    lines.extend(["address-family ipv4 unicast", "maximum-paths ibgp 8"].map(str::to_owned));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    frr.configure(&lines)?;
    Ok(frr)
}

/// What both read.
fn resources(preference: Preference) -> String {
    let peer = |router: usize| {
        format!(
            "---\napiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {{name: router-{router}}}\n\
             spec: {{myASN: {ASN}, peerASN: {ASN}, peerAddress: {}}}\n",
            address_of_router(router)
        )
    };
    let peers: String = (0..ROUTERS).map(peer).collect();
    let preference = match preference {
        Preference::InAdvertisement => "localPref: 100",
        Preference::DefaultOfMetallb | Preference::Defaults => "",
    };
    format!(
        "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {{name: pool}}\n\
         spec: {{addresses: [{ADDRESS}/32]}}\n---\n\
         apiVersion: metallb.io/v1beta1\nkind: BGPAdvertisement\nmetadata: {{name: all}}\n\
         spec: {{{preference}}}\n---\n\
         apiVersion: v1\nkind: Service\nmetadata: {{name: web}}\n\
         spec: {{type: LoadBalancer, ports: [{{port: 80}}]}}\n{peers}"
    )
}
