//! What do the cases run on? An API server, three nodes with their speakers, controllers, and two routers,
//! FRR and BIRD, all on one wire. The test itself is kubelet, endpoint controller and the controllers of
//! Pods. Used by main and all cases.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::api::Api;
use crate::daemons::{Controller, Speaker};
use crate::install::{self, Account};
use crate::model::{Faults, Model};
use crate::objects::{self, SYSTEM, ours};
use lab::cluster::Cluster;
use lab::namespace::{Namespace, Network};
use lab::process::tail;
use lab::routers::{GracefulRestart, Release, Router, RouterKind, RouterSpec};
use lab::wait::{PATIENCE, holds_for, wait_until};
use lab::withdrawals::{Withdrawals, with_length};
use lab::{Family, Site, make_directory};

/// A controller that starts waits for the Lease of the one before (15 s), and then until it can know what
/// was released (10 s); a client that has failed for long tries again within 15 s.
pub(crate) const CATCH_UP: Duration = Duration::from_secs(90);
/// The nodes of the cluster, in the order of [`Stage::speakers`].
pub(crate) const NODES: [&str; 3] = ["node-a", "node-b", "node-c"];
/// Where the Services of the cases are.
pub(crate) const SHOP: &str = "shop";
/// The names of the routers, as BGPPeers and here.
pub(crate) const ROUTERS: [&str; 2] = ["frr", "bird"];

/// The router that has a key for its sessions, which is in a Secret.
const GUARDED: &str = "bird";
const PASSWORD: &str = "of-the-wire";

const NODE_AS: u32 = 65001;
const ROUTER_AS: [u32; 2] = [65002, 65003];
const INTERFACE: &str = "eth0";
const HUB: u8 = 1;
const FIRST_NODE: u8 = 11;
const FIRST_ROUTER: u8 = 21;
const API_PORT: u16 = 6443;

/// How much of each log a failed case shows.
const TAIL_LINES: usize = 15;

/// The addresses of the host with this number.
fn addresses(number: u8) -> [String; 2] {
    [format!("10.90.0.{number}"), format!("fd90::{number}")]
}

fn address_of_node(node: &str, family: Family) -> Result<IpAddr> {
    let place = NODES.iter().position(|it| *it == node);
    let place = u8::try_from(place.with_context(|| format!("there is no {node}"))?)?;
    let [ipv4, ipv6] = addresses(FIRST_NODE + place);
    let text = if family == Family::Ipv4 { ipv4 } else { ipv6 };
    text.parse().context("an address of the lab")
}

/// The kind of API server.
pub(crate) enum Backing {
    Real(Box<Cluster>),
    Model(Model),
}

/// Which API server a case is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Real,
    Model,
    /// A real one on which nothing was installed yet.
    Bare,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Real, Self::Model, Self::Bare];

    pub(crate) fn is_real(self) -> bool {
        self != Self::Model
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Model => "model",
            Self::Bare => "bare",
        }
    }
}

/// A router with its site.
pub(crate) struct Neighbour {
    pub(crate) name: &'static str,
    withdrawals: Withdrawals,
    pub(crate) router: Box<dyn Router>,
    pub(crate) site: Site,
}

/// All of it. Dropped from the top: clients before servers, processes before their namespaces.
pub(crate) struct Stage {
    pub(crate) speakers: Vec<Speaker>,
    pub(crate) controllers: Vec<Controller>,
    pub(crate) routers: Vec<Neighbour>,
    pub(crate) api: Api,
    pub(crate) backing: Backing,
    pub(crate) nodes: Vec<Namespace>,
    pub(crate) hub: Namespace,
    pub(crate) directory: PathBuf,
    /// Whether outages last as long as is promised.
    pub(crate) is_long: bool,
    /// Whether all cases are told on it.
    pub(crate) is_whole: bool,
}

impl Stage {
    /// Builds the wire and starts everything; no Service is there yet. `cell` tells stages apart.
    pub(crate) fn build(
        cell: usize,
        kind: Kind,
        assets: Option<&Path>,
        is_long: bool,
        at: &Path,
    ) -> Result<Self> {
        make_directory(at)?;
        let hub = Namespace::create(cell, "hub")?;
        hub.ip(&["link", "add", "wire", "type", "bridge"])?;
        hub.ip(&["link", "set", "wire", "up"])?;
        give_addresses(&hub, "wire", HUB)?;
        let mut nodes = Vec::new();
        for (node, number) in NODES.iter().zip(FIRST_NODE..) {
            nodes.push(plug_in(cell, &hub, node, number)?);
        }
        let mut routers = Vec::new();
        for (place, name) in ROUTERS.into_iter().enumerate() {
            routers.push(Neighbour::start(cell, &hub, place, name, at)?);
        }
        let address: IpAddr = addresses(HUB)[0].parse()?;
        let network = Network::Named(hub.name().to_owned());
        let backing = match (kind, assets) {
            (Kind::Real | Kind::Bare, Some(assets)) => {
                Backing::Real(Box::new(Cluster::start_in(assets, network, address)?))
            }
            (Kind::Real | Kind::Bare, None) => bail!("there is no API server here"),
            (Kind::Model, _) => {
                let address = SocketAddr::new(address, API_PORT);
                Backing::Model(Model::start(&network, address, at)?)
            }
        };
        let socket = match &backing {
            Backing::Real(cluster) => cluster.socket(),
            Backing::Model(model) => model.socket(),
        };
        let (speakers, controllers) = (Vec::new(), Vec::new());
        let directory = at.to_owned();
        let api = Api::new(socket);
        let mut stage = Self {
            speakers,
            controllers,
            routers,
            api,
            backing,
            nodes,
            hub,
            directory,
            is_long,
            is_whole: false,
        };
        if kind != Kind::Bare {
            stage.furnish()?;
        }
        Ok(stage)
    }

    /// What a cluster has before the first Service.
    fn furnish(&mut self) -> Result<()> {
        match &self.backing {
            Backing::Real(cluster) => install::real(cluster)?,
            Backing::Model(_) => install::model(&self.api)?,
        }
        self.api.apply(&objects::object("v1", "Namespace", "", SHOP, json!({})))?;
        self.register_nodes()?;
        self.api.apply(&secret())?;
        for (place, name) in ROUTERS.into_iter().enumerate() {
            self.api.apply(&peer(place, name)?)?;
        }
        self.prepare_daemons()?;
        for place in 0..self.speakers.len() {
            self.start_speaker(place)?;
        }
        self.start_controller(0)?;
        self.sessions_come_up()
    }

    /// Makes the Pods of all daemons; none runs yet.
    pub(crate) fn prepare_daemons(&mut self) -> Result<()> {
        for node in NODES {
            let name = format!("speaker-{node}");
            let pod = install::pod(&self.api, Account::Speaker, &name, Some(node))?;
            let kubeconfig = self.kubeconfig(node, Account::Speaker)?;
            let directory = self.directory.join(node);
            self.speakers.push(Speaker::prepare(node, &directory, kubeconfig, pod)?);
        }
        for number in 0..2 {
            let name = format!("controller-{number}");
            let pod = install::pod(&self.api, Account::Controller, &name, None)?;
            let kubeconfig = self.kubeconfig(&name, Account::Controller)?;
            let controller = Controller::prepare(number, &self.directory, kubeconfig, pod);
            self.controllers.push(controller);
        }
        Ok(())
    }

    /// Waits until each router has one with the first node.
    fn sessions_come_up(&mut self) -> Result<()> {
        for neighbour in &mut self.routers {
            wait_until(&format!("{} has a session", neighbour.name), PATIENCE, || {
                neighbour.router.check_running()?;
                let session = neighbour.router.session()?;
                ensure!(session.established, "it is {}", session.state);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn kubeconfig(&self, name: &str, account: Account) -> Result<PathBuf> {
        match &self.backing {
            Backing::Real(cluster) => {
                let token = install::token(cluster, account)?;
                cluster.kubeconfig(name, &token)
            }
            Backing::Model(model) => model.kubeconfig(name),
        }
    }

    /// Makes the Nodes as their kubelets do, without what a case has put on them.
    pub(crate) fn register_nodes(&self) -> Result<()> {
        for (node, number) in NODES.iter().zip(FIRST_NODE..) {
            let [ipv4, ipv6] = addresses(number);
            self.api.apply_node(&objects::node(node, &[&ipv4, &ipv6]))?;
            if let Some(found) = self.api.find("Node", "", node)? {
                let keep = |key: &str| key.starts_with("kubernetes.io/");
                let labels = found["metadata"]["labels"].as_object().cloned().unwrap_or_default();
                let labels = labels.keys().filter(|key| !keep(key));
                let labels: serde_json::Map<String, Value> =
                    labels.map(|key| (key.clone(), Value::Null)).collect();
                let patch = json!({
                    "metadata": { "labels": labels, "annotations": null },
                    "spec": { "taints": null },
                });
                self.api.patch("Node", "", node, &patch)?;
            }
        }
        Ok(())
    }

    pub(crate) fn start_speaker(&mut self, place: usize) -> Result<()> {
        let speaker = self.speakers.get_mut(place).context("a speaker")?;
        speaker.start(self.nodes.get(place).context("a node")?)
    }

    pub(crate) fn start_controller(&mut self, place: usize) -> Result<()> {
        self.controllers.get_mut(place).context("a controller")?.start(&self.hub)
    }

    /// Ends the API server in the middle of its work.
    pub(crate) fn api_server_goes(&mut self) -> Result<()> {
        match &mut self.backing {
            Backing::Real(cluster) => cluster.kill_server(),
            Backing::Model(model) => {
                model.set_faults(&Faults { away: true, ..Faults::default() })?;
            }
        }
        Ok(())
    }

    /// Starts it again, with all its data.
    pub(crate) fn api_server_is_back(&mut self) -> Result<()> {
        match &mut self.backing {
            Backing::Real(cluster) => {
                cluster.start_server()?;
                cluster.wait_until_ready()
            }
            Backing::Model(model) => model.set_faults(&Faults::default()),
        }
    }

    /// The API server as `kubectl` sees it; only the real one has it.
    pub(crate) fn kubectl(&self, words: &[&str]) -> Result<String> {
        self.cluster()?.kubectl(words, None)
    }

    pub(crate) fn cluster(&self) -> Result<&Cluster> {
        match &self.backing {
            Backing::Real(cluster) => Ok(cluster),
            Backing::Model(_) => bail!("this case is for a real API server"),
        }
    }

    pub(crate) fn model(&self) -> Result<&Model> {
        match &self.backing {
            Backing::Model(model) => Ok(model),
            Backing::Real(_) => bail!("this case is for the model"),
        }
    }

    /// Fails, for good, when a daemon or a router has ended by itself.
    pub(crate) fn check_running(&mut self) -> Result<()> {
        self.speakers.iter_mut().try_for_each(|it| it.daemon.check_running())?;
        self.controllers.iter_mut().try_for_each(Controller::check_running)?;
        self.routers.iter_mut().try_for_each(|it| it.router.check_running())
    }

    /// Waits until both routers have a path to `prefix` by each of these nodes, and no other.
    pub(crate) fn routes_become(&mut self, prefix: &str, nodes: &[&str]) -> Result<()> {
        self.routes_of_become(&ROUTERS, prefix, nodes)
    }

    /// The same, of these routers.
    pub(crate) fn routes_of_become(
        &mut self,
        routers: &[&str],
        prefix: &str,
        nodes: &[&str],
    ) -> Result<()> {
        let expected = format!("{routers:?} have a path to {prefix} by each of {nodes:?}");
        wait_until(&expected, CATCH_UP, || {
            self.check_running()?;
            self.check_routes(routers, prefix, nodes)
        })
    }

    /// Watches for a second: both routers have a path to `prefix` by each of these nodes, and no other.
    pub(crate) fn routes_stay(&mut self, prefix: &str, nodes: &[&str]) -> Result<()> {
        let expected = format!("the routers have a path to {prefix} by each of {nodes:?}");
        holds_for(&expected, std::time::Duration::from_secs(1), || {
            self.check_routes(&ROUTERS, prefix, nodes)
        })
    }

    /// Fails unless these routers have a path by each of these nodes, and no other, just now.
    pub(crate) fn check_routes(
        &self,
        routers: &[&str],
        prefix: &str,
        nodes: &[&str],
    ) -> Result<()> {
        let family = Family::of(prefix);
        let wanted = nodes.iter().map(|node| address_of_node(node, family));
        let wanted: BTreeSet<IpAddr> = wanted.collect::<Result<_>>()?;
        for neighbour in self.routers.iter().filter(|it| routers.contains(&it.name)) {
            let found = neighbour.ways(prefix)?;
            ensure!(found == wanted, "{} has ways {found:?} to {prefix}", neighbour.name);
        }
        Ok(())
    }

    pub(crate) fn router(&mut self, name: &str) -> Result<&mut Neighbour> {
        self.routers.iter_mut().find(|it| it.name == name).context("a router")
    }

    /// Waits until the Service has exactly these addresses.
    pub(crate) fn addresses_become(&mut self, name: &str, addresses: &[&str]) -> Result<()> {
        wait_until(&format!("{name} has {addresses:?}"), CATCH_UP, || {
            self.check_running()?;
            let found = self.api.addresses(SHOP, name)?;
            ensure!(found == addresses, "it has {found:?}");
            Ok(())
        })
    }

    /// Waits until the Service has an address; which one.
    pub(crate) fn address_of(&mut self, name: &str) -> Result<String> {
        wait_until(&format!("{name} has an address"), CATCH_UP, || {
            self.check_running()?;
            let found = self.api.addresses(SHOP, name)?;
            found.first().cloned().context("it has none")
        })
    }

    /// The lines in which kernels of routers report a route that went, of these prefixes, until now.
    pub(crate) fn withdrawals(&mut self, prefixes: &BTreeSet<String>) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for neighbour in &mut self.routers {
            let name = neighbour.name;
            let gone = neighbour.withdrawals.lines(|prefix| prefixes.contains(prefix))?;
            lines.extend(gone.into_iter().map(|line| format!("{name}: {line}")));
        }
        Ok(lines)
    }

    /// Deletes what a case has made, and waits until nothing of it is announced.
    pub(crate) fn restore(&mut self) -> Result<()> {
        if self.speakers.is_empty() {
            return Ok(());
        }
        if let Backing::Model(model) = &self.backing {
            model.set_faults(&Faults::default())?;
        }
        for kind in ["Service", "EndpointSlice"] {
            self.api.delete_all(kind, SHOP)?;
        }
        for kind in
            ["BGPAdvertisement", "L2Advertisement", "IPAddressPool", "Community", "BFDProfile"]
        {
            self.api.delete_all(kind, SYSTEM)?;
        }
        self.register_nodes()?;
        for neighbour in &mut self.routers {
            wait_until(&format!("{} has no route left", neighbour.name), CATCH_UP, || {
                let left = neighbour.router.prefixes(Family::Ipv4)?;
                ensure!(left.is_empty(), "it has {left:?}");
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The ends of all logs, for a person who reads why a case failed.
    pub(crate) fn logs(&self) -> String {
        let speakers = self.speakers.iter().map(|it| (it.node.to_owned(), it.log()));
        let controllers = self.controllers.iter().map(|it| (it.pod.name.clone(), it.log.clone()));
        let all = speakers.chain(controllers);
        all.map(|(name, log)| format!("  {name}:\n{}", tail(&log, TAIL_LINES))).collect()
    }
}

impl Neighbour {
    fn start(
        cell: usize,
        hub: &Namespace,
        place: usize,
        name: &'static str,
        at: &Path,
    ) -> Result<Self> {
        let number = FIRST_ROUTER + u8::try_from(place)?;
        let namespace = plug_in(cell, hub, name, number)?;
        let directory = at.join(name);
        make_directory(&directory)?;
        let site = Site { namespace, directory };
        let mut nodes = NODES.iter().map(|node| address_of_node(node, Family::Ipv4));
        let first = nodes.next().context("a node")??;
        let [ipv4, ipv6] = addresses(number);
        let spec = RouterSpec {
            router_id: [10, 0, 0, number].into(),
            local_as: *ROUTER_AS.get(place).context("a router")?,
            peer_as: NODE_AS,
            families: vec![Family::Ipv4, Family::Ipv6],
            twins: nodes.collect::<Result<_>>()?,
            password: (name == GUARDED).then(|| PASSWORD.to_owned()),
            graceful_restart: Some(GracefulRestart {
                restart_seconds: 120,
                notifications: name == "frr",
                long_lived_seconds: None,
            }),
            ..RouterSpec::between(ipv4.parse()?, ipv6.parse()?, first)
        };
        let kind = match name {
            "frr" => RouterKind::Frr(Release::Bookworm),
            _ => RouterKind::Bird(Release::Bookworm),
        };
        let mut router = kind.prepare(&site, &spec)?;
        router.start(&site)?;
        let log = site.directory.join("withdrawals.log");
        let withdrawals = Withdrawals::of_kernel(&site.namespace, &log)?;
        Ok(Self { name, withdrawals, router, site })
    }

    /// The next hops of all paths to a prefix.
    pub(crate) fn ways(&self, prefix: &str) -> Result<BTreeSet<IpAddr>> {
        let paths = self.router.paths(&with_length(prefix))?;
        // A link-local next hop beside it belongs to the same path.
        let first = paths.iter().filter_map(|path| path.next_hops.first().copied());
        Ok(first.collect())
    }
}

/// The key of the guarded sessions.
pub(crate) fn secret() -> Value {
    let rest = json!({
        "type": "kubernetes.io/basic-auth",
        // As the API server keeps it: of-the-wire.
        "data": { "password": "b2YtdGhlLXdpcmU=" },
    });
    objects::object("v1", "Secret", SYSTEM, GUARDED, rest)
}

/// The BGPPeer for a router.
pub(crate) fn peer(place: usize, name: &str) -> Result<Value> {
    let [address, _] = addresses(FIRST_ROUTER + u8::try_from(place)?);
    let mut spec = json!({
        "myASN": NODE_AS, "peerASN": ROUTER_AS.get(place), "peerAddress": address,
        "dualStackAddressFamily": true, "enableGracefulRestart": true,
    });
    if name == GUARDED {
        objects::merge(&mut spec, json!({ "passwordSecret": { "name": GUARDED } }));
    }
    Ok(ours("BGPPeer", name, spec))
}

/// A namespace with a cable to the wire.
fn plug_in(cell: usize, hub: &Namespace, role: &str, number: u8) -> Result<Namespace> {
    let namespace = Namespace::create(cell, role)?;
    hub.connect(role, &namespace, INTERFACE)?;
    hub.ip(&["link", "set", role, "master", "wire"])?;
    give_addresses(&namespace, INTERFACE, number)?;
    Ok(namespace)
}

fn give_addresses(namespace: &Namespace, interface: &str, number: u8) -> Result<()> {
    let [ipv4, ipv6] = addresses(number);
    namespace.add_address(interface, &format!("{ipv4}/24"))?;
    namespace.add_address(interface, &format!("{ipv6}/64"))
}
