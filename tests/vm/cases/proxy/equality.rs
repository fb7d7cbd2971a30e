//! Does Fairway have what kube-proxy has, and do packets meet the same Pods?

#![allow(
    clippy::indexing_slicing,
    reason = "of a JSON value it makes what is missing; other positions are constants"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::cluster::{Api, node, service, start_fairway, start_kube_proxy};
use super::probes::{tcp, udp};
use super::segment::{PODS, Segment};
use super::upkeep::get;
use crate::node::LIMIT;
use lab::make_directory;
use lab::namespace::Namespace;
use lab::wait::{now, wait_until};

/// For so long kube-proxy has written nothing more.
const STEADY: Duration = Duration::from_secs(2);
/// How many states, unless FAIRWAY_STATES says so.
const STATES: u64 = 12;
/// Pods of another node.
const FAR: [&str; 2] = ["10.1.2.11", "10.1.2.12"];
/// As many tries as there are Pods, so that each of them is met.
const TRIES: usize = PODS.len() + FAR.len();

/// Pseudo-random numbers of a seed (xorshift64*).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % sides
    }

    fn happens(&mut self, one_in: u64) -> bool {
        self.roll(one_in) == 0
    }
}

/// A Service of a state, and what kube-proxy is known to do otherwise with it.
struct Drawn {
    objects: Vec<Value>,
    /// Where it is reached, with TCP and UDP.
    addresses: Vec<(Kind, String)>,
    /// A client stays with a Pod.
    is_sticky: bool,
    external_is_local: bool,
    internal_is_local: bool,
    /// Its ranges leave the node out.
    excludes_node: bool,
    /// Pods that may take connections, of this node and of any.
    usable_here: usize,
    usable: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Cluster,
    External,
    Balancer,
    NodePort,
}

/// A Service that no other state has.
fn draw(dice: &mut Dice, state: u64, number: u64) -> Drawn {
    let name = format!("s{state}-{number}");
    let kind =
        ["ClusterIP", "NodePort", "LoadBalancer"][usize::try_from(dice.roll(3)).unwrap_or(0)];
    let cluster = format!("10.96.{}.{}", state + 1, number + 1);
    let node_port = 30_000 + state * 12 + number * 3;
    let external = dice.happens(3).then(|| format!("198.18.{}.{}", state + 1, number + 1));
    let balancer =
        (kind == "LoadBalancer").then(|| format!("198.18.{}.{}", state + 1, number + 101));
    let mut policy = || if dice.happens(3) { "Local" } else { "Cluster" };
    let (internal_policy, external_policy) = (policy(), policy());
    let port = |name: &str, number: u64, protocol: &str, offset: u64| {
        let mut port = json!({"name": name, "port": number, "protocol": protocol});
        if kind != "ClusterIP" {
            port["nodePort"] = (node_port + offset).into();
        }
        port
    };
    let ports = [port("t", 80, "TCP", 0), port("u", 53, "UDP", 1)];
    let mut spec = json!({
        "type": kind, "clusterIP": cluster, "clusterIPs": [cluster], "ports": ports,
        "internalTrafficPolicy": internal_policy,
    });
    let is_external = kind != "ClusterIP" || external.is_some();
    if is_external {
        spec["externalTrafficPolicy"] = external_policy.into();
    }
    if let Some(address) = &external {
        spec["externalIPs"] = json!([address]);
    }
    let mut excludes_node = false;
    if kind == "LoadBalancer" {
        if external_policy == "Local" {
            spec["healthCheckNodePort"] = (node_port + 2).into();
        }
        if dice.happens(3) {
            excludes_node = dice.roll(2) == 1;
            let range = if excludes_node { "203.0.113.0/24" } else { "192.0.2.0/24" };
            spec["loadBalancerSourceRanges"] = json!([range]);
        }
    }
    let is_sticky = dice.happens(4);
    if is_sticky {
        spec["sessionAffinity"] = "ClientIP".into();
        spec["sessionAffinityConfig"] =
            json!({"clientIP": {"timeoutSeconds": 60 + dice.roll(1000)}});
    }
    let (slice, usable_here, usable) = draw_slice(dice, &name);
    let mut addresses = vec![(Kind::Cluster, cluster)];
    addresses.extend(external.map(|it| (Kind::External, it)));
    addresses.extend(balancer.clone().map(|it| (Kind::Balancer, it)));
    if kind != "ClusterIP" {
        addresses.push((Kind::NodePort, node_port.to_string()));
    }
    Drawn {
        objects: vec![service(&name, spec, &balancer.unwrap_or_default()), slice],
        addresses,
        is_sticky,
        external_is_local: is_external && external_policy == "Local",
        internal_is_local: internal_policy == "Local",
        excludes_node,
        usable_here,
        usable,
    }
}

/// A slice with some of the Pods in some state; how many of this node, and of all, may take connections.
fn draw_slice(dice: &mut Dice, service: &str) -> (Value, usize, usize) {
    let here = PODS.map(|it| (it, "node-1"));
    let all = here.into_iter().chain(FAR.map(|it| (it, "node-2")));
    let mut endpoints = Vec::new();
    let (mut ready, mut leaving) = ([0_usize; 2], [0_usize; 2]);
    let is_empty = dice.happens(6);
    for (address, node) in all {
        if is_empty || dice.happens(2) {
            continue;
        }
        let state = dice.roll(6);
        let (is_ready, is_serving, is_terminating) = match state {
            0 => (false, true, true),
            1 => (false, false, false),
            _ => (true, true, false),
        };
        let is_here = usize::from(node == "node-1");
        let count = |all: &mut [usize; 2]| all.iter_mut().take(1 + is_here).for_each(|it| *it += 1);
        if is_ready {
            count(&mut ready);
        } else if is_serving {
            count(&mut leaving);
        }
        endpoints.push(json!({
            "addresses": [address], "nodeName": node,
            "conditions": {"ready": is_ready, "serving": is_serving, "terminating": is_terminating},
        }));
    }
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {
            "name": format!("{service}-ipv4"), "namespace": "default",
            "labels": {"kubernetes.io/service-name": service},
        },
        "ports": [
            {"name": "t", "port": 8080, "protocol": "TCP"},
            {"name": "u", "port": 8080, "protocol": "UDP"},
        ],
        "endpoints": endpoints,
    });
    let usable = |at: usize| match (ready.get(at), leaving.get(at)) {
        (Some(0), Some(leaving)) => *leaving,
        (Some(ready), _) => *ready,
        _ => 0,
    };
    (slice, usable(1), usable(0))
}

/// A node whose proxy is the one or the other.
struct Twin {
    segment: Segment,
    /// Ends with it.
    _proxy: lab::process::Process,
}

fn twin(
    number: usize,
    directory: &Path,
    api: Api,
    start: impl FnOnce(&Segment) -> Result<lab::process::Process>,
) -> Result<Twin> {
    make_directory(directory)?;
    let mut segment = Segment::build(number, directory)?;
    for address in FAR {
        segment.add_pod(number, address)?;
    }
    // What is refused is to be refused each time.
    segment.node.run("sysctl", &["-q", "-w", "net.ipv4.icmp_ratelimit=0"])?;
    api.relay_into(&segment.node)?;
    let proxy = start(&segment)?;
    Ok(Twin { segment, _proxy: proxy })
}

/// When kube-proxy has written its rules, by its own account; an error while a change waits.
fn written_at(segment: &Segment) -> Result<f64> {
    let (_, _, page) = get(&segment.node, "127.0.0.1:10249", "/metrics")?;
    let seconds = |name: &str| -> Result<f64> {
        let of_ipv4 = |line: &&str| line.starts_with(name) && !line.contains("IPv6");
        let line = page.lines().find(of_ipv4).with_context(|| format!("no {name}"))?;
        Ok(line.rsplit(' ').next().unwrap_or_default().parse()?)
    };
    let queued = seconds("kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds")?;
    let written = seconds("kubeproxy_sync_proxy_rules_last_timestamp_seconds")?;
    ensure!(written >= queued, "queued at {queued}, written at {written}");
    Ok(written)
}

/// The virtual servers, in order.
fn servers(segment: &Segment) -> Result<BTreeSet<String>> {
    Ok(segment.servers()?.lines().map(|it| it.trim().to_owned()).collect())
}

/// One question: from where, to which address, by which protocol.
#[derive(Debug, Clone)]
struct Probe {
    from: &'static str,
    kind: Kind,
    to: String,
    is_tcp: bool,
    is_sticky: bool,
    /// What kube-proxy does otherwise, and why Fairway does not.
    difference: Option<&'static str>,
}

fn probes(drawn: &Drawn) -> Vec<Probe> {
    let mut probes = Vec::new();
    for (kind, address) in &drawn.addresses {
        for (from, is_tcp) in [("client", true), ("client", false), ("pod", true), ("node", true)] {
            let to = match (kind, is_tcp) {
                (Kind::NodePort, true) => format!("192.0.2.11:{address}"),
                (Kind::NodePort, false) => {
                    format!("192.0.2.11:{}", address.parse::<u64>().unwrap_or(0) + 1)
                }
                (_, true) => format!("{address}:80"),
                (_, false) => format!("{address}:53"),
            };
            let (is_sticky, difference) = (drawn.is_sticky, difference(drawn, *kind, from));
            probes.push(Probe { from, kind: *kind, to, is_tcp, is_sticky, difference });
        }
        if *kind != Kind::NodePort {
            // No port of the Service.
            let to = format!("{address}:81");
            let (is_sticky, difference) = (false, None);
            probes.push(Probe {
                from: "client",
                kind: *kind,
                to,
                is_tcp: true,
                is_sticky,
                difference,
            });
        }
    }
    probes
}

/// Deliberate differences, which docs/proxy.md has.
fn difference(drawn: &Drawn, kind: Kind, from: &str) -> Option<&'static str> {
    let lacks_local = drawn.usable_here == 0 && drawn.usable > 0;
    match kind {
        Kind::Cluster if drawn.internal_is_local && lacks_local => {
            Some("policy Local without a local endpoint drops")
        }
        Kind::Cluster => None,
        Kind::Balancer if drawn.excludes_node && drawn.usable == 0 && from == "node" => {
            Some("who is not in the source ranges is dropped, even where no endpoint is")
        }
        _ if drawn.external_is_local && from == "node" => {
            Some("what the node sends has its own address, and not that of the Service")
        }
        _ if drawn.external_is_local && lacks_local && from == "client" => {
            Some("clients outside are dropped where policy Local has no local endpoint")
        }
        _ => None,
    }
}

/// What a probe meets: the answers, each once.
fn ask(segment: &Segment, probe: &Probe) -> Result<BTreeSet<String>> {
    let from: &Namespace = match probe.from {
        "client" => &segment.client,
        "node" => &segment.node,
        _ => segment.pods.first().context("a Pod")?,
    };
    let mut met = BTreeSet::new();
    for _ in 0..TRIES {
        let answer = if probe.is_tcp { tcp(from, &probe.to) } else { udp(from, &probe.to) };
        let answer = answer.with_context(|| format!("{probe:?}"))?.to_string();
        let is_nothing = answer == "nothing";
        // A client that stays with a Pod may stay with any; a Pod even with itself, and then the source is the node.
        met.insert(match answer.split_once(' ') {
            Some(_) if probe.is_sticky && probe.from == "pod" => "an answer".to_owned(),
            Some((_, source)) if probe.is_sticky => source.to_owned(),
            _ => answer,
        });
        if is_nothing {
            break;
        }
    }
    Ok(met)
}

/// All answers, asked in parallel: one thread for each address, since sources share the turns of its Pods.
fn ask_all(segment: &Segment, probes: &[Probe]) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut by_address: BTreeMap<&str, Vec<&Probe>> = BTreeMap::new();
    for probe in probes {
        by_address.entry(&probe.to).or_default().push(probe);
    }
    let asked: Result<Vec<_>> = std::thread::scope(|scope| {
        let threads: Vec<_> = by_address
            .into_values()
            .map(|probes| {
                scope.spawn(move || {
                    probes.into_iter().map(|it| Ok((name(it), ask(segment, it)?))).collect()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|it| it.join().map_err(|_| anyhow::anyhow!("a probe has panicked"))?)
            .collect::<Result<Vec<Vec<_>>>>()
    });
    Ok(asked?.into_iter().flatten().collect())
}

fn name(probe: &Probe) -> String {
    let Probe { from, kind, to, is_tcp, .. } = probe;
    format!("{from} to {kind:?} {to} {}", if *is_tcp { "TCP" } else { "UDP" })
}

/// Both nodes, and what was compared.
struct Twins {
    theirs: Twin,
    ours: Twin,
    probed: usize,
    differing: BTreeMap<&'static str, usize>,
}

impl Twins {
    /// Waits until both have the same virtual servers.
    fn settle(&self, state: u64, drawn: &[Drawn]) -> Result<()> {
        let is_there = |line: &String| line.contains(&format!(" 10.96.{}.", state % 200 + 1));
        // Real servers under internal policy Local without a local endpoint: Fairway has none.
        let otherwise: Vec<String> = drawn
            .iter()
            .filter(|it| difference(it, Kind::Cluster, "client").is_some())
            .flat_map(|it| it.addresses.iter().filter(|(kind, _)| *kind == Kind::Cluster))
            .map(|(_, address)| format!(" {address}:"))
            .collect();
        let is_compared = |line: &String| !otherwise.iter().any(|it| line.contains(it));
        wait_until(
            &format!("both have the same virtual servers in state {state}"),
            3 * LIMIT,
            || {
                let (mut theirs, mut ours) =
                    (servers(&self.theirs.segment)?, servers(&self.ours.segment)?);
                theirs.retain(is_compared);
                ours.retain(is_compared);
                let missing: Vec<_> = theirs.difference(&ours).collect();
                let more: Vec<_> = ours.difference(&theirs).collect();
                ensure!(
                    missing.is_empty() && more.is_empty(),
                    "Fairway lacks {missing:#?}, and has {more:#?}"
                );
                let has_any = otherwise.len() == drawn.len() || ours.iter().any(is_there);
                ensure!(has_any, "neither has any of this state");
                Ok(())
            },
        )?;
        // kube-proxy's rules are later than its servers, and a status may be later than its Service.
        let (mut last, mut since) = (0.0, now());
        wait_until("kube-proxy has written its rules", LIMIT, || {
            let written = written_at(&self.theirs.segment)?;
            if written > last {
                (last, since) = (written, now());
            }
            ensure!(since.elapsed() > STEADY, "it has written some at {written}");
            Ok(())
        })
    }

    /// Asks both, and compares what they answer.
    fn compare(&mut self, state: u64, drawn: &[Drawn]) -> Result<()> {
        let probes: Vec<Probe> = drawn.iter().flat_map(probes).collect();
        let (theirs, ours) = (&self.theirs.segment, &self.ours.segment);
        let (met_there, met_here) = (ask_all(theirs, &probes)?, ask_all(ours, &probes)?);
        for probe in &probes {
            self.probed += 1;
            let is_same = met_there.get(&name(probe)) == met_here.get(&name(probe));
            match probe.difference {
                _ if is_same => {}
                Some(why) => *self.differing.entry(why).or_default() += 1,
                // kube-proxy may have been late.
                None => {
                    let what = format!("state {state}: {} meets the same", name(probe));
                    wait_until(&what, LIMIT, || {
                        let (there, here) = (ask(theirs, probe)?, ask(ours, probe)?);
                        let objects: Vec<_> = drawn.iter().flat_map(|it| &it.objects).collect();
                        ensure!(
                            there == here,
                            "with kube-proxy {there:?}, with Fairway {here:?}; {}",
                            json!(objects)
                        );
                        Ok(())
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// Topology: twice client === node === two Pods and two of another node; kube-proxy in IPVS mode here, Fairway there, and
/// one API server outside.
/// Proves: in random states of the cluster both have the same virtual servers, and packets from a client, a Pod and the
/// node meet the same Pods with the same source address, or the same refusal, but where docs/proxy.md says otherwise.
pub(in crate::cases) fn fairway_does_what_kube_proxy_does(
    number: usize,
    directory: &Path,
) -> Result<()> {
    let api = Api::given().context("an API server")?;
    let states = std::env::var("FAIRWAY_STATES").ok().and_then(|it| it.parse().ok());
    let seed = std::env::var("FAIRWAY_SEED").ok().and_then(|it| it.parse().ok()).unwrap_or(0);
    api.apply(&node())?;
    let theirs = twin(number, &directory.join("theirs"), api, start_kube_proxy)?;
    let start = |segment: &Segment| start_fairway(segment, &["--metrics-bind-address", "none"]);
    let ours = twin(number + 100, &directory.join("ours"), api, start)?;
    let mut twins = Twins { theirs, ours, probed: 0, differing: BTreeMap::new() };
    for state in seed..seed + states.unwrap_or(STATES) {
        let mut dice = Dice(state.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let drawn: Vec<Drawn> =
            (0..1 + dice.roll(4)).map(|it| draw(&mut dice, state % 200, it)).collect();
        for object in drawn.iter().flat_map(|it| &it.objects) {
            api.apply(object)?;
        }
        twins.settle(state, &drawn)?;
        twins.compare(state, &drawn)?;
        eprintln!("state {state} is the same");
        for object in drawn.iter().flat_map(|it| &it.objects) {
            api.delete(object)?;
        }
    }
    let Twins { probed, differing, .. } = twins;
    eprintln!("{probed} probes are the same, but {differing:?}");
    Ok(())
}
