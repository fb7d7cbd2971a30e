//! What do both run on? An API server, three nodes and two routers on one wire. The test is kubelet and endpoint controller.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use lab::bird::Bird;
use lab::cluster::{Cluster, TOKEN};
use lab::make_directory;
use lab::namespace::{Namespace, Network};
use lab::process::Process;
use lab::suite::Cell;
use lab::wait::{PATIENCE, now, wait_until};

use crate::cluster::{SYSTEM, configuration, furniture, nodes, pods, status_of_node};
use crate::node::{FIRST_NODE, HUB, NODE_AS, NODES, addresses, hub, plug_in};
use crate::seen::Seen;
use crate::services;
use lab::metallb::{Mode, Programs, Reloaded};

/// A router that notes what nodes tell it.
pub(crate) struct RouterSpec {
    /// Of its BGPPeer.
    pub(crate) name: &'static str,
    pub(crate) number: u8,
    pub(crate) asn: u32,
}

pub(crate) const ROUTERS: [RouterSpec; 2] = [
    RouterSpec { name: "external", number: 21, asn: 65002 },
    RouterSpec { name: "internal", number: 22, asn: NODE_AS },
];

/// Who serves the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Software {
    Fairway,
    Metallb,
}

impl Software {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Fairway => "Fairway",
            Self::Metallb => "MetalLB",
        }
    }
}

/// So long nothing changes once it is settled.
const QUIET: Duration = Duration::from_secs(8);
const SETTLE_LIMIT: Duration = Duration::from_secs(180);

/// All of it. Dropped from the top: clients before servers, processes before their namespaces.
pub(crate) struct Stage {
    processes: Vec<Process>,
    frrs: Vec<Reloaded>,
    routers: Vec<(&'static str, Bird)>,
    cluster: Cluster,
    kubeconfig: PathBuf,
    programs: Programs,
    nodes: Vec<Namespace>,
    _places: Vec<Namespace>,
    hub: Namespace,
    directory: PathBuf,
    mode: Mode,
    turn: usize,
}

impl Stage {
    /// Everything but the software.
    pub(crate) fn build(
        cell: &Cell,
        mode: Mode,
        assets: &Path,
        programs: &Programs,
    ) -> Result<Self> {
        Self::furnished(cell, mode, assets, programs, &configuration(mode), &services::all())
    }

    /// The same with these objects.
    pub(crate) fn furnished(
        cell: &Cell,
        mode: Mode,
        assets: &Path,
        programs: &Programs,
        configuration: &[Value],
        services: &[Value],
    ) -> Result<Self> {
        let hub = hub(cell.number)?;
        let (mut nodes, mut places, mut routers) = (Vec::new(), Vec::new(), Vec::new());
        for (node, number) in NODES.iter().zip(FIRST_NODE..) {
            nodes.push(plug_in(cell.number, &hub, node, number)?);
        }
        for spec in &ROUTERS {
            let place = plug_in(cell.number, &hub, spec.name, spec.number)?;
            routers.push((
                spec.name,
                Bird::start(&place, &cell.directory, spec.name, &router(spec, mode))?,
            ));
            places.push(place);
        }
        let network = Network::Named(hub.name().to_owned());
        let [address, _] = addresses(HUB);
        let cluster = Cluster::start_in(assets, network, address.parse()?)?;
        let kubeconfig = cluster.kubeconfig("all", TOKEN)?;
        let mut stage = Self {
            processes: Vec::new(),
            frrs: Vec::new(),
            routers,
            cluster,
            kubeconfig,
            programs: programs.clone(),
            nodes,
            _places: places,
            hub,
            directory: cell.directory.clone(),
            mode,
            turn: 0,
        };
        stage.furnish(configuration, services)?;
        Ok(stage)
    }

    fn furnish(&mut self, configuration: &[Value], services: &[Value]) -> Result<()> {
        self.apply("furniture", &[furniture(), nodes(), pods()].concat())?;
        for (node, number) in NODES.iter().zip(FIRST_NODE..) {
            let path = format!("/api/v1/nodes/{node}/status");
            let reply = self.cluster.ask("PATCH", &path, Some(&status_of_node(number)))?;
            ensure!(reply.status == 200, "{}", reply.text);
        }
        self.define(Software::Fairway)?;
        self.apply("configuration", configuration)?;
        self.apply("services", services)
    }

    fn apply(&self, name: &str, objects: &[Value]) -> Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        let file = self.directory.join(format!("{name}.json"));
        let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        std::fs::write(&file, list.to_string()).context("objects")?;
        let file = file.display().to_string();
        self.cluster
            .kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &file], None)
            .map(drop)
    }

    /// Its CustomResourceDefinitions take the place of those that are there.
    fn define(&self, software: Software) -> Result<()> {
        let folder = match software {
            Software::Fairway => lab::checkout().join("deploy/crds"),
            Software::Metallb => self.programs.definitions(),
        };
        let folder = folder.display().to_string();
        self.cluster
            .kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &folder], None)?;
        let wait = ["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"];
        self.cluster.kubectl(&wait, None).map(drop)
    }

    /// An object that a user applies.
    pub(crate) fn put(&self, object: &Value) -> Result<()> {
        self.apply("changed", std::slice::from_ref(object))
    }

    pub(crate) fn delete(&self, object: &Value) -> Result<()> {
        let [kind, name] = ["/kind", "/metadata/name"].map(|it| object.pointer(it));
        let word =
            |it: Option<&Value>| it.and_then(Value::as_str).unwrap_or_default().to_lowercase();
        let words = ["delete", "-n", SYSTEM, &word(kind), &word(name)];
        self.cluster.kubectl(&words, None).map(drop)
    }

    /// Whether the stored object has the field, as in `spec.med`.
    pub(crate) fn has(&self, object: &Value, field: &str) -> Result<bool> {
        let reply = self.cluster.ask("GET", &path_of(object)?, None)?;
        ensure!(reply.status == 200, "{}", reply.text);
        let pointer = format!("/{}", field.replace('.', "/"));
        Ok(reply.json()?.pointer(&pointer).is_some())
    }

    /// As somebody who changes something else of it.
    pub(crate) fn write_again(&self, object: &Value) -> Result<()> {
        let patch = serde_json::json!({ "metadata": { "annotations": { "example.com/written": "again" } } });
        let reply = self.cluster.ask("PATCH", &path_of(object)?, Some(&patch))?;
        ensure!(reply.status == 200, "{}: {}", object["metadata"]["name"], reply.text);
        Ok(())
    }

    /// All objects of MetalLB's kinds, as a file for `fairway check`.
    pub(crate) fn exported(&self) -> Result<PathBuf> {
        let kinds = "bgppeers,bfdprofiles,ipaddresspools,bgpadvertisements,l2advertisements,communities,secrets";
        let text = self.cluster.kubectl(&["get", "-n", SYSTEM, "-o", "yaml", kinds], None)?;
        let file = self.directory.join("exported.yaml");
        std::fs::write(&file, text).context("exported objects")?;
        Ok(file)
    }

    /// Waits until the first node's speaker of MetalLB says that the configuration is valid, or that it is not.
    pub(crate) fn wait_for_validity(&self, is_valid: bool) -> Result<String> {
        let path = format!(
            "/apis/metallb.io/v1beta1/namespaces/{SYSTEM}/configurationstates/speaker-{}",
            NODES[0]
        );
        let expected = if is_valid { "Valid" } else { "Invalid" };
        wait_until(&format!("MetalLB's speaker says {expected}"), PATIENCE, || {
            let state = self.cluster.ask("GET", &path, None)?.json()?;
            ensure!(state["status"]["result"] == expected, "{}", state["status"]);
            Ok(state["status"]["errorSummary"].as_str().unwrap_or_default().to_owned())
        })
    }

    /// It serves the cluster from now on.
    pub(crate) fn start(&mut self, software: Software) -> Result<()> {
        self.start_without_sessions(software)?;
        self.sessions_come_up()
    }

    /// The same, where there is no peer.
    pub(crate) fn start_without_sessions(&mut self, software: Software) -> Result<()> {
        self.turn += 1;
        self.define(software)?;
        self.forget_events()?;
        let at = self.directory.join(format!("turn-{}-{}", self.turn, software.word()));
        make_directory(&at)?;
        match software {
            Software::Metallb => self.start_metallb(&at)?,
            Software::Fairway => self.start_fairway(&at)?,
        }
        Ok(())
    }

    fn start_metallb(&mut self, at: &Path) -> Result<()> {
        let (programs, kubeconfig) = (&self.programs, &self.kubeconfig);
        self.processes.push(programs.controller(&self.hub, self.mode, at, kubeconfig)?);
        for (place, node) in self.nodes.iter().zip(NODES) {
            let at = at.join(node);
            make_directory(&at)?;
            if self.mode == Mode::Frr {
                self.frrs.push(Reloaded::start(place, &at)?);
            }
            let frr = self.frrs.last();
            self.processes.push(programs.speaker(place, node, &at, kubeconfig, frr)?);
        }
        Ok(())
    }

    fn start_fairway(&mut self, at: &Path) -> Result<()> {
        let program = lab::fairway::existing_program()?;
        let kubeconfig = format!("--kubeconfig={}", self.kubeconfig.display());
        let common = [kubeconfig, format!("--namespace={SYSTEM}"), "--log-level=info".to_owned()];
        let words = |own: &[String]| [own, &common].concat();
        let mut own = vec!["controller".to_owned()];
        own.extend(self.identity("controller")?);
        let controller = words(&own);
        self.processes.push(Process::spawn(
            &self.hub,
            &program,
            &controller,
            &at.join("controller.log"),
        )?);
        for (place, node) in self.nodes.iter().zip(NODES) {
            let file = |name: &str| at.join(format!("{node}-{name}")).display().to_string();
            let mut own = vec![
                "speaker".to_owned(),
                format!("--node={node}"),
                format!("--state-dir={}", file("state")),
                format!("--socket={}", file("sock")),
            ];
            own.extend(self.identity(&format!("speaker-{node}"))?);
            let log = at.join(format!("{node}.log"));
            self.processes.push(Process::spawn(place, &program, &words(&own), &log)?);
        }
        Ok(())
    }

    /// What a Pod tells Fairway about itself.
    fn identity(&self, pod: &str) -> Result<[String; 2]> {
        let path = format!("/api/v1/namespaces/{SYSTEM}/pods/{pod}");
        let object = self.cluster.ask("GET", &path, None)?.json()?;
        let uid = object["metadata"]["uid"].as_str().context("a Pod without a UID")?;
        Ok([format!("--pod={pod}"), format!("--pod-uid={uid}")])
    }

    /// It ends, in order.
    pub(crate) fn stop(&mut self) -> Result<()> {
        // MetalLB's controller takes up to half a minute.
        let limit = Duration::from_secs(45);
        for mut process in self.processes.drain(..).rev() {
            process.stop(limit)?;
        }
        self.frrs.clear();
        Ok(())
    }

    fn check_running(&mut self) -> Result<()> {
        self.processes.iter_mut().try_for_each(Process::check_running)
    }

    fn sessions_come_up(&mut self) -> Result<()> {
        let expected = NODES.len() * if self.mode == Mode::Frr { 2 } else { 1 };
        wait_until("each router has a session with each node", 3 * PATIENCE, || {
            self.check_running()?;
            for (name, bird) in &mut self.routers {
                let protocols = bird.ask("show protocols")?;
                let up = protocols.iter().filter(|it| it.contains("Established")).count();
                ensure!(up == expected, "{name} has {up} of {expected}: {protocols:?}");
            }
            Ok(())
        })
    }

    fn forget_events(&self) -> Result<()> {
        for namespace in crate::cluster::NAMESPACES {
            let path = format!("/api/v1/namespaces/{namespace}/events");
            let reply = self.cluster.ask("DELETE", &path, None)?;
            ensure!(reply.status == 200, "{}", reply.text);
        }
        Ok(())
    }

    /// How many routes each router has.
    pub(crate) fn route_counts(&mut self) -> Result<Vec<usize>> {
        self.check_running()?;
        let count = |(_, bird): &mut (&str, Bird)| {
            let lines = bird.ask("show route count")?;
            let line =
                lines.iter().find(|it| it.contains(" routes for ") && it.contains("master4"));
            let first = line.and_then(|it| it.split(' ').next()?.parse().ok());
            first.with_context(|| format!("no count in {lines:?}"))
        };
        self.routers.iter_mut().map(count).collect()
    }

    /// The nodes by which the first router has this address, in their order.
    pub(crate) fn nodes_that_tell(&mut self, address: &str) -> Result<Vec<&'static str>> {
        let (_, bird) = self.routers.first_mut().context("a router")?;
        let lines = bird.ask(&format!("show route for {address}/32"))?;
        let has = |node: &&str| lines.iter().any(|it| it.contains(&node.replace('-', "_")));
        Ok(NODES.into_iter().filter(has).collect())
    }

    /// Writes an EndpointSlice that is there, in one request.
    pub(crate) fn put_endpoint(&self, slice: &Value) -> Result<()> {
        let name = slice["metadata"]["name"].as_str().context("a name")?;
        let path = format!("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/{name}");
        let patch = serde_json::json!({ "endpoints": slice["endpoints"] });
        let reply = self.cluster.ask("PATCH", &path, Some(&patch))?;
        ensure!(reply.status == 200, "{}", reply.text);
        Ok(())
    }

    /// Of the controller, and then of the speakers.
    pub(crate) fn process_ids(&self) -> Vec<u32> {
        self.processes.iter().map(Process::id).collect()
    }

    /// What is there once nothing changes any more.
    pub(crate) fn settle(&mut self) -> Result<Seen> {
        let mut last = Seen::default();
        let mut since = now();
        wait_until("nothing changes any more", SETTLE_LIMIT, || {
            self.check_running()?;
            let seen = Seen::of(&self.cluster, &mut self.routers)?;
            if seen != last {
                (last, since) = (seen, now());
            }
            ensure!(since.elapsed() >= QUIET, "a moment ago it was another: {}", last.summary());
            Ok(last.clone())
        })
    }
}

/// Of an object of MetalLB's kinds.
fn path_of(object: &Value) -> Result<String> {
    let [version, kind, name] = ["/apiVersion", "/kind", "/metadata/name"]
        .map(|it| object.pointer(it).and_then(Value::as_str).unwrap_or_default());
    ensure!(!name.is_empty(), "an object without a name");
    let kind = kind.to_lowercase();
    Ok(format!("/apis/{version}/namespaces/{SYSTEM}/{kind}s/{name}"))
}

fn router(spec: &RouterSpec, mode: Mode) -> String {
    let RouterSpec { name: _, number, asn } = spec;
    let mut text = format!("log stderr all;\nrouter id 10.90.0.{number};\nprotocol device {{}}\n");
    let own = addresses(*number);
    let families = if mode == Mode::Frr { 2 } else { 1 };
    for (node, its_number) in NODES.iter().zip(FIRST_NODE..) {
        for (family, (own, its)) in own.iter().zip(addresses(its_number)).enumerate().take(families)
        {
            let (suffix, channel) = if family == 0 { ("4", "ipv4") } else { ("6", "ipv6") };
            let node = node.replace('-', "_");
            text += &format!(
                "protocol bgp {node}_{suffix} {{\n  local {own} as {asn};\n  neighbor {its} as {NODE_AS};\n  passive on;\n  \
                 hold time 9;\n  error wait time 1, 2;\n  {channel} {{ import all; export none; }};\n}}\n"
            );
        }
    }
    text
}
