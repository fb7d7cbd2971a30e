//! Three nodes, and FRR and BIRD as the fabric between them: Pods reach each other by routes that BGP carries, without an overlay.

use std::net::IpAddr;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::cluster::{self, CALICO, create};
use super::{Scene, ptp};
use crate::daemon::Daemon;
use crate::runtime::{Container, Runtime};
use lab::cluster::Cluster;
use lab::namespace::{Namespace, Network};
use lab::routers::{Release, Router, RouterKind, RouterSpec};
use lab::wait::{PATIENCE, wait_until};
use lab::{Family, Site, make_directory};

pub(super) const NODES: [&str; 3] = ["n1", "n2", "n3"];
const NODE_AS: u32 = 65001;
const ROUTER_AS: [u32; 2] = [65002, 65003];
const HUB: u8 = 1;
const FIRST_NODE: u8 = 11;
const FIRST_ROUTER: u8 = 21;
const METALLB: &str = "/apis/metallb.io/v1beta1/namespaces/metallb-system";

fn addresses(number: u8) -> [String; 2] {
    [format!("10.91.0.{number}"), format!("fd91::{number}")]
}

/// All of it. Dropped from the top: clients before servers, processes before their namespaces.
pub(super) struct Fabric {
    daemons: Vec<Daemon>,
    routers: Vec<Box<dyn Router>>,
    pub(super) cluster: Cluster,
    nodes: Vec<Namespace>,
    _sites: Vec<Site>,
    pub(super) hub: Namespace,
}

fn plug_in(scene: &Scene, hub: &Namespace, role: &str, number: u8) -> Result<Namespace> {
    let namespace = Namespace::create(scene.cell, role)?;
    hub.connect(role, &namespace, "wire0")?;
    hub.ip(&["link", "set", role, "master", "wire"])?;
    give_addresses(&namespace, "wire0", number)?;
    Ok(namespace)
}

fn give_addresses(namespace: &Namespace, interface: &str, number: u8) -> Result<()> {
    let [ipv4, ipv6] = addresses(number);
    namespace.add_address(interface, &format!("{ipv4}/24"))?;
    namespace.add_address(interface, &format!("{ipv6}/64"))
}

impl Fabric {
    pub(super) fn build(scene: &Scene) -> Result<Self> {
        let hub = Namespace::create(scene.cell, "hub")?;
        hub.ip(&["link", "add", "wire", "type", "bridge"])?;
        hub.ip(&["link", "set", "wire", "up"])?;
        give_addresses(&hub, "wire", HUB)?;
        let mut nodes = Vec::new();
        for (node, number) in NODES.iter().zip(FIRST_NODE..) {
            let namespace = plug_in(scene, &hub, node, number)?;
            namespace.enable_forwarding()?;
            nodes.push(namespace);
        }
        let (mut sites, mut routers) = (Vec::new(), Vec::new());
        for (place, kind) in
            [RouterKind::Frr(Release::Bookworm), RouterKind::Bird(Release::Bookworm)]
                .into_iter()
                .enumerate()
        {
            let (site, router) = router(scene, &hub, place, kind)?;
            sites.push(site);
            routers.push(router);
        }
        let assets = scene.assets.as_deref().context("there is no API server here")?;
        let network = Network::Named(hub.name().to_owned());
        let mut cluster = Cluster::start_in(assets, network, addresses(HUB)[0].parse()?)?;
        cluster.wait_until_ready()?;
        cluster::furnish(scene, &cluster, &NODES)?;
        reserve(&cluster)?;
        announce(scene, &cluster)?;
        let mut daemons = Vec::new();
        for (node, namespace) in NODES.iter().zip(&nodes) {
            let mut daemon = Daemon::in_cluster(&scene.directory.join(node), node, &cluster)?;
            daemon.start_in(namespace)?;
            daemons.push(daemon);
        }
        Ok(Self { daemons, routers, cluster, nodes, _sites: sites, hub })
    }

    /// Ends the daemon of a node in order, and starts it again.
    pub(super) fn restart(&mut self, place: usize) -> Result<()> {
        let daemon = self.daemons.get_mut(place).context("a daemon")?;
        daemon.fairway.stop()?;
        daemon.start_in(self.nodes.get(place).context("a node")?)
    }

    pub(super) fn runtime<'a>(&'a self, scene: &'a Scene, place: usize) -> Result<Runtime<'a>> {
        let host = self.nodes.get(place).context("a node")?;
        let directory = scene.directory.join(NODES.get(place).context("a node")?);
        Runtime::new(host, scene.plugins()?, &directory, ptp()?)
    }

    /// Waits until each router has exactly these prefixes.
    pub(super) fn prefixes_become(&self, family: Family, expected: &[String]) -> Result<()> {
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        for router in &self.routers {
            wait_until(&format!("a router has {expected:?}"), PATIENCE, || {
                let mut found: Vec<String> =
                    router.prefixes(family)?.iter().map(ToString::to_string).collect();
                found.sort_unstable();
                ensure!(found == expected, "it has {found:?}");
                Ok(())
            })?;
        }
        Ok(())
    }
}

fn router(
    scene: &Scene,
    hub: &Namespace,
    place: usize,
    kind: RouterKind,
) -> Result<(Site, Box<dyn Router>)> {
    let number = FIRST_ROUTER + u8::try_from(place)?;
    let name = format!("router{place}");
    let namespace = plug_in(scene, hub, &name, number)?;
    namespace.enable_forwarding()?;
    let directory = scene.directory.join(&name);
    make_directory(&directory)?;
    let site = Site { namespace, directory };
    let nodes = (FIRST_NODE..).take(NODES.len()).map(|it| addresses(it)[0].parse::<IpAddr>());
    let mut nodes: Vec<IpAddr> = nodes.collect::<Result<_, _>>()?;
    let first = nodes.remove(0);
    let [ipv4, ipv6] = addresses(number);
    let spec = RouterSpec {
        router_id: [10, 0, 0, number].into(),
        local_as: *ROUTER_AS.get(place).context("a router")?,
        peer_as: NODE_AS,
        families: vec![Family::Ipv4, Family::Ipv6],
        twins: nodes,
        ..RouterSpec::between(ipv4.parse()?, ipv6.parse()?, first)
    };
    let mut router = kind.prepare(&site, &spec)?;
    router.start(&site)?;
    Ok((site, router))
}

/// The definitions of our kinds, the peers, and the advertisement of blocks.
fn announce(scene: &Scene, cluster: &Cluster) -> Result<()> {
    cluster::define(scene, cluster, &[])?;
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "metallb-system"},
    });
    create(cluster, "/api/v1/namespaces", &namespace)?;
    for (place, router_as) in ROUTER_AS.iter().enumerate() {
        let [address, _] = addresses(FIRST_ROUTER + u8::try_from(place)?);
        let peer = json!({
            "apiVersion": "metallb.io/v1beta2", "kind": "BGPPeer",
            "metadata": {"name": format!("router{place}"), "namespace": "metallb-system"},
            "spec": {
                "myASN": NODE_AS, "peerASN": router_as, "peerAddress": address,
                "dualStackAddressFamily": true, "installRoutes": true, "allowASIn": 1,
                "toReceive": {"allowed": {"mode": "all"}},
            },
        });
        let path = METALLB.replace("v1beta1", "v1beta2");
        create(cluster, &format!("{path}/bgppeers"), &peer)?;
    }
    let advertisement = json!({
        "apiVersion": "metallb.io/v1beta1", "kind": "BGPAdvertisement",
        "metadata": {"name": "pods", "namespace": "metallb-system"},
        "spec": {"podBlocks": true, "blackhole": true},
    });
    create(cluster, &format!("{METALLB}/bgpadvertisements"), &advertisement)
}

/// Leaves one IPv4 block for each node: with more Pods, it has to borrow from the others.
fn reserve(cluster: &Cluster) -> Result<()> {
    let reservation = json!({
        "apiVersion": "crd.projectcalico.org/v1", "kind": "IPReservation",
        "metadata": {"name": "all-but-three-blocks"},
        "spec": {"reservedCIDRs": ["10.244.0.48/28", "10.244.0.64/26", "10.244.0.128/25"]},
    });
    create(cluster, &format!("{CALICO}/ipreservations"), &reservation)
}

/// What is to be announced, as the objects say: confirmed blocks.
pub(super) fn blocks(cluster: &Cluster, family: Family) -> Result<Vec<String>> {
    let affinities = cluster::list(cluster, "blockaffinities")?;
    let confirmed = affinities.iter().filter(|it| it["spec"]["state"] == "confirmed");
    let prefixes = confirmed.filter_map(|it| it["spec"]["cidr"].as_str().map(str::to_owned));
    Ok(prefixes.filter(|it| Family::of(it) == family).collect())
}

pub(super) fn pods_of_three_nodes_reach_each_other_by_the_routes_of_their_blocks(
    scene: &Scene,
) -> Result<()> {
    let fabric = Fabric::build(scene)?;
    let runtimes: Vec<Runtime<'_>> =
        (0..NODES.len()).map(|it| fabric.runtime(scene, it)).collect::<Result<_>>()?;
    let mut containers: Vec<Container> = Vec::new();
    for (place, runtime) in runtimes.iter().enumerate() {
        containers.push(cluster::first(runtime, scene.cell, &format!("pod{place}"))?);
    }
    for family in [Family::Ipv4, Family::Ipv6] {
        let blocks = blocks(&fabric.cluster, family)?;
        ensure!(blocks.len() == 3, "{blocks:?}");
        fabric.prefixes_become(family, &blocks)?;
    }
    ping_all(&containers)?;
    borrow(&fabric, &runtimes)?;
    leave_with_the_nodes_address(&fabric, &containers)?;
    // A block that is given up is withdrawn.
    let gone = containers.pop().context("a container")?;
    runtimes.get(2).context("a runtime")?.delete(&gone)?;
    let pool = json!({"spec": {"nodeSelector": "kubernetes.io/hostname != 'n3'"}}).to_string();
    for name in ["v4", "v6"] {
        fabric.cluster.kubectl(&["patch", "ippool", name, "--type=merge", "-p", &pool], None)?;
    }
    let left: Vec<String> =
        [blocks_of(&fabric.cluster, "n1")?, blocks_of(&fabric.cluster, "n2")?].concat();
    let log = scene.directory.join("controller.log");
    let _controller = cluster::start_controller(&fabric.cluster, &fabric.hub, &log)?;
    for family in [Family::Ipv4, Family::Ipv6] {
        let left: Vec<String> =
            left.iter().filter(|it| Family::of(it) == family).cloned().collect();
        fabric.prefixes_become(family, &left)?;
    }
    containers.iter().zip(&runtimes).try_for_each(|(container, it)| it.delete(container))
}

/// Each reaches each other one, by both families.
fn ping_all(containers: &[Container]) -> Result<()> {
    for from in containers {
        for to in containers.iter().filter(|it| it.id != from.id) {
            for address in to.addresses() {
                wait_until(
                    &format!("{} reaches {} at {address}", from.id, to.id),
                    PATIENCE,
                    || from.namespace.run("busybox", &["ping", "-c", "1", "-W", "1", &address]),
                )?;
            }
        }
    }
    Ok(())
}

/// The hub has no route to Pods: it answers nodes alone.
fn leave_with_the_nodes_address(fabric: &Fabric, containers: &[Container]) -> Result<()> {
    let from = &containers.first().context("a container")?.namespace;
    for address in addresses(HUB) {
        let ping = || from.run("busybox", &["ping", "-c", "1", "-W", "1", &address]);
        ensure!(ping().is_err(), "{address} has a route to Pods");
        for pool in ["v4", "v6"] {
            let patch = r#"{"spec": {"natOutgoing": true}}"#;
            fabric
                .cluster
                .kubectl(&["patch", "ippool", pool, "--type=merge", "-p", patch], None)?;
        }
        wait_until(&format!("a Pod reaches {address}"), PATIENCE, ping)?;
        for pool in ["v4", "v6"] {
            let patch = r#"{"spec": {"natOutgoing": false}}"#;
            fabric
                .cluster
                .kubectl(&["patch", "ippool", pool, "--type=merge", "-p", patch], None)?;
        }
        let node = fabric.nodes.first().context("a node")?;
        wait_until("the table is gone", PATIENCE, || {
            let tables = node.run("nft", &["list", "tables"])?;
            ensure!(!tables.contains("fairway-pods"), "{tables}");
            Ok(())
        })?;
    }
    ping_all(containers)
}

/// A node without room takes an address of another one's block, and announces it alone.
fn borrow(fabric: &Fabric, runtimes: &[Runtime<'_>]) -> Result<()> {
    let runtime = runtimes.first().context("a runtime")?;
    let used = blocks(&fabric.cluster, Family::Ipv4)?;
    let mut only_ipv4 = runtime.configuration.clone();
    only_ipv4["ipam"]["assign_ipv6"] = "false".into();
    let own = blocks_of(&fabric.cluster, "n1")?;
    let is_own = |address: &str| own.iter().any(|it| is_within(address, it));
    // A block of 16 has 13 addresses for Pods, one of which is taken.
    let mut borrowed = None;
    for number in 0..14 {
        let answer = runtime.ask("ADD", &format!("more{number}"), &only_ipv4)?.done()?;
        let address = crate::runtime::addresses(&answer).pop().context("an address")?;
        if !is_own(&address) {
            borrowed = Some((number, address));
            break;
        }
    }
    let (number, address) = borrowed.context("no address was borrowed")?;
    let mut expected = used.clone();
    expected.push(format!("{address}/32"));
    fabric.prefixes_become(Family::Ipv4, &expected)?;
    runtime.ask("DEL", &format!("more{number}"), &only_ipv4)?.done()?;
    fabric.prefixes_become(Family::Ipv4, &used)?;
    for number in 0..number {
        runtime.ask("DEL", &format!("more{number}"), &only_ipv4)?.done()?;
    }
    Ok(())
}

fn blocks_of(cluster: &Cluster, node: &str) -> Result<Vec<String>> {
    let affinities = cluster::list(cluster, "blockaffinities")?;
    let of_node = affinities.iter().filter(|it| it["spec"]["node"] == node);
    Ok(of_node.filter_map(|it| it["spec"]["cidr"].as_str().map(str::to_owned)).collect())
}

fn is_within(address: &str, block: &str) -> bool {
    let block: Option<ipnet::IpNet> = block.parse().ok();
    let address: Option<IpAddr> = address.parse().ok();
    block.zip(address).is_some_and(|(block, address)| block.contains(&address))
}
