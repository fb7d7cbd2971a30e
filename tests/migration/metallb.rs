//! A cluster for MetalLB's speakers: an API server with the resources that Fairway reads from a file, a Node for each node, and the
//! Service with its address, as MetalLB's controller has left it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use lab::cluster::{self, TOKEN};
use lab::metallb::{Programs, SYSTEM};
use lab::namespace::{Namespace, Network};
use lab::process::Process;

use crate::stage::ADDRESS;

/// See the module.
pub(crate) struct Cluster {
    server: cluster::Cluster,
    programs: Programs,
    kubeconfig: PathBuf,
}

impl Cluster {
    /// `server` is where the API server is, with its address.
    pub(crate) fn start(
        assets: &Path,
        programs: &Programs,
        server: (&Namespace, &str),
        directory: &Path,
        resources: &str,
        nodes: &[String],
    ) -> Result<Self> {
        let (place, address) = server;
        let network = Network::Named(place.name().to_owned());
        let server = cluster::Cluster::start_in(assets, network, address.parse()?)?;
        let kubeconfig = server.kubeconfig("all", TOKEN)?;
        let cluster = Self { server, programs: programs.clone(), kubeconfig };
        let definitions = programs.definitions();
        cluster.kubectl(&["apply", "--server-side", "-f", &definitions.display().to_string()])?;
        cluster.kubectl(&[
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            "crd",
            "--all",
        ])?;
        cluster.kubectl(&["create", "namespace", SYSTEM])?;
        let file = directory.join("cluster.yaml");
        std::fs::write(&file, resources).context("resources")?;
        cluster.kubectl(&["apply", "-n", SYSTEM, "-f", &file.display().to_string()])?;
        for (number, address) in nodes.iter().enumerate() {
            cluster.add_node(number, address)?;
        }
        cluster.serve()?;
        Ok(cluster)
    }

    fn kubectl(&self, words: &[&str]) -> Result<()> {
        self.server.kubectl(words, None).map(drop)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<()> {
        let reply = self.server.ask(method, path, Some(body))?;
        ensure!((200..300).contains(&reply.status), "{method} {path}: {}", reply.text);
        Ok(())
    }

    fn add_node(&self, number: usize, address: &str) -> Result<()> {
        let name = node(number);
        let object = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
        self.ask("POST", "/api/v1/nodes", &object)?;
        let status = json!({ "status": {
            "addresses": [{ "type": "InternalIP", "address": address }],
            "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
        } });
        self.ask("PATCH", &format!("/api/v1/nodes/{name}/status"), &status)?;
        let labels = json!({ "app": "metallb", "component": "speaker" });
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": format!("speaker-{name}"), "labels": labels },
            "spec": { "nodeName": name, "containers": [{ "name": "speaker", "image": "none" }] },
        });
        self.ask("POST", &format!("/api/v1/namespaces/{SYSTEM}/pods"), &pod)
    }

    /// The Service has an endpoint on each node, and its address.
    fn serve(&self) -> Result<()> {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": { "name": "web-1", "labels": { "kubernetes.io/service-name": "web" } },
            "addressType": "IPv4", "ports": [{ "port": 80 }],
            "endpoints": [{ "addresses": ["10.244.0.1"], "nodeName": node(0), "conditions": { "ready": true } }],
        });
        let path = format!("/apis/discovery.k8s.io/v1/namespaces/{SYSTEM}/endpointslices");
        self.ask("POST", &path, &slice)?;
        let status = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": ADDRESS }] } } });
        self.ask("PATCH", &format!("/api/v1/namespaces/{SYSTEM}/services/web/status"), &status)
    }

    /// The speaker of a node, in its native mode.
    pub(crate) fn speaker(&self, place: &Namespace, number: usize, at: &Path) -> Result<Process> {
        self.programs.speaker(place, &node(number), at, &self.kubeconfig, None)
    }
}

fn node(number: usize) -> String {
    format!("node{number}")
}
