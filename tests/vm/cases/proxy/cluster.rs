//! An API server outside the VM, kube-proxy, and Fairway's proxy with it.

#![allow(
    clippy::indexing_slicing,
    reason = "of a JSON value it makes what is missing; other positions are constants"
)]

use std::io::copy;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::segment::Segment;
use crate::node::LIMIT;
use lab::cluster::http::{self, APPLY, JSON};
use lab::namespace::Namespace;
use lab::process::Process;
use lab::wait::wait_until;

/// Where the API server is, for processes in the node's namespace.
const RELAY: &str = "127.0.0.1:8001";
/// The networks of Pods.
pub(super) const CLUSTER_CIDR: &str = "10.1.0.0/16,fd00:1::/64";

/// The API server that `tests/vm/with_api_server.sh` has started.
#[derive(Debug, Clone, Copy)]
pub(in crate::cases) struct Api(SocketAddr);

impl Api {
    /// `None` where there is none.
    pub(in crate::cases) fn given() -> Option<Self> {
        std::env::var("FAIRWAY_TEST_API").ok()?.parse().ok().map(Self)
    }

    /// Sends a request, which must succeed.
    pub(super) fn ask(self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let kind = if method == "PATCH" { APPLY } else { JSON };
        let reply = http::ask_at(self.0, method, path, kind, body)
            .with_context(|| format!("{method} {path}"))?;
        ensure!(reply.status < 300, "{method} {path}: {} {}", reply.status, reply.text);
        reply.json()
    }

    /// Makes or changes an object.
    pub(super) fn apply(self, object: &Value) -> Result<()> {
        let path = path_of(object)?;
        let options = "fieldManager=test&force=true";
        self.ask("PATCH", &format!("{path}?{options}"), Some(object))?;
        if object.get("status").is_some() {
            self.ask("PATCH", &format!("{path}/status?{options}"), Some(object))?;
        }
        Ok(())
    }

    pub(super) fn delete(self, object: &Value) -> Result<()> {
        self.ask("DELETE", &path_of(object)?, None).map(drop)
    }

    /// Makes it reachable at [`RELAY`] in a namespace, to the end of the process.
    pub(super) fn relay_into(self, namespace: &Namespace) -> Result<()> {
        let listener = namespace.enter(|| Ok(TcpListener::bind(RELAY)?))?;
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(self.0) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else {
                        continue;
                    };
                    std::thread::spawn(move || {
                        let _ = copy(&mut from, &mut to);
                        let _ = to.shutdown(std::net::Shutdown::Both);
                    });
                }
            }
        });
        Ok(())
    }
}

fn path_of(object: &Value) -> Result<String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let name = text("/metadata/name").context("a name")?;
    Ok(match text("/kind").context("a kind")? {
        "Node" => format!("/api/v1/nodes/{name}"),
        "Service" => format!("/api/v1/namespaces/default/services/{name}"),
        _ => format!("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/{name}"),
    })
}

/// The node that everything is about.
pub(super) fn node() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"},
        "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.11"}]},
    })
}

/// A Service with this `spec` and the address of a balancer, if any.
pub(super) fn service(name: &str, spec: Value, balancer: &str) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    });
    if !balancer.is_empty() {
        object["status"] = json!({"loadBalancer": {"ingress": [{"ip": balancer}]}});
    }
    object
}

/// The slice of its IPv4 endpoints, each as address and node.
pub(super) fn slice(service: &str, endpoints: &[(&str, &str)]) -> Value {
    let endpoints: Vec<Value> = endpoints
        .iter()
        .map(|(address, node)| {
            json!({
                "addresses": [address], "nodeName": node,
                "conditions": {"ready": true, "serving": true, "terminating": false},
            })
        })
        .collect();
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {
            "name": format!("{service}-ipv4"), "namespace": "default",
            "labels": {"kubernetes.io/service-name": service},
        },
        "ports": [
            {"name": "t", "port": 8080, "protocol": "TCP"},
            {"name": "u", "port": 8080, "protocol": "UDP"},
            {"name": "echo", "port": 9090, "protocol": "TCP"},
        ],
        "endpoints": endpoints,
    })
}

fn kubeconfig(directory: &Path, server: &str) -> Result<PathBuf> {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": format!("http://{server}")}}],
        "users": [{"name": "it", "user": {}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    });
    let path = directory.join("kubeconfig");
    std::fs::write(&path, config.to_string()).context("a kubeconfig")?;
    Ok(path)
}

/// How kube-proxy runs.
#[derive(Clone, Copy)]
pub(super) struct Options {
    pub(super) mode: &'static str,
    pub(super) min_sync_period: &'static str,
}

/// kube-proxy in its IPVS mode, on the node.
pub(super) fn start_kube_proxy(segment: &Segment) -> Result<Process> {
    start_kube_proxy_with(segment, &Options { mode: "ipvs", min_sync_period: "1s" })
}

pub(super) fn start_kube_proxy_with(segment: &Segment, how: &Options) -> Result<Process> {
    let Options { mode, min_sync_period } = how;
    let directory = &segment.directory;
    let options = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "mode": mode, "clusterCIDR": CLUSTER_CIDR,
        "ipvs": {"strictARP": true, "minSyncPeriod": min_sync_period},
        "nftables": {"minSyncPeriod": min_sync_period},
        "clientConnection": {"kubeconfig": kubeconfig(directory, RELAY)?},
        // The limit of connections is the machine's, and not of a namespace.
        "conntrack": {
            "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
        },
    });
    let path = directory.join("kube-proxy.json");
    std::fs::write(&path, options.to_string()).context("kube-proxy's options")?;
    let program = std::env::var("FAIRWAY_KUBE_PROXY").context("the program of kube-proxy")?;
    let arguments =
        [format!("--config={}", path.display()), "--hostname-override=node-1".to_owned()];
    let log = directory.join("kube-proxy.log");
    Process::spawn(&segment.node, Path::new(&program), &arguments, &log)
}

/// Fairway's proxy on the node, from the API server.
pub(super) fn start_fairway(segment: &Segment, more: &[&str]) -> Result<Process> {
    start_fairway_at(segment, RELAY, more)
}

/// The same, while the API server is away.
pub(super) fn start_fairway_alone(segment: &Segment) -> Result<Process> {
    start_fairway_at(segment, "127.0.0.1:9", &[])
}

fn start_fairway_at(segment: &Segment, server: &str, more: &[&str]) -> Result<Process> {
    let directory = &segment.directory;
    let path = |name: &str| directory.join(name).display().to_string();
    let kubeconfig = kubeconfig(directory, server)?.display().to_string();
    let (run_dir, state_dir) = (path("run"), path("state"));
    let arguments = [
        "proxy",
        "--kubeconfig",
        &kubeconfig,
        "--node",
        "node-1",
        "--run-dir",
        &run_dir,
        "--state-dir",
        &state_dir,
        "--cluster-cidr",
        CLUSTER_CIDR,
    ];
    let arguments: Vec<String> =
        arguments.into_iter().chain(more.iter().copied()).map(str::to_owned).collect();
    let program = lab::fairway::existing_program()?;
    Process::spawn(&segment.node, &program, &arguments, &directory.join("fairway.log"))
}

/// Waits until virtual servers have this.
pub(super) fn wait_for_servers(segment: &Segment, line: &str) -> Result<()> {
    wait_until(&format!("there is {line}"), 6 * LIMIT, || {
        let servers = segment.servers()?;
        ensure!(servers.contains(line), "it has\n{servers}");
        Ok(())
    })
}
