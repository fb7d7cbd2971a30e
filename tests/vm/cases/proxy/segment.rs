//! The stage of these stories: a node with two Pods, a client, and the proxy.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::probes::serve;
use crate::node::LIMIT;
use lab::make_directory;
use lab::namespace::Namespace;
use lab::process::Process;
use lab::wait::wait_until;

pub(super) const CLIENT: &str = "192.0.2.1";
/// The node's address towards its Pods, which masqueraded packets have as their source.
pub(super) const GATEWAY: &str = "10.1.1.1";
pub(super) const PODS: [&str; 2] = ["10.1.1.11", "10.1.1.12"];

pub(super) const CLUSTER: &str = "\
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {addresses: [{type: InternalIP, address: 192.0.2.11}]}
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clusterCIDR: 10.1.0.0/16,fd00:1::/64
";

/// A Service and the slice of its endpoints, each as address and node.
pub(super) fn service(
    name: &str,
    spec: &str,
    balancer: &str,
    endpoints: &[(&str, &str)],
) -> String {
    let status = match balancer {
        "" => String::new(),
        ip => format!("status: {{loadBalancer: {{ingress: [{{ip: {ip}}}]}}}}\n"),
    };
    let mut text = format!(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n{status}"
    );
    for (family, is_ipv6) in [("IPv4", false), ("IPv6", true)] {
        let of_family = endpoints.iter().filter(|(address, _)| address.contains(':') == is_ipv6);
        let lines: Vec<_> = of_family
            .map(|(address, node)| format!("- {{addresses: ['{address}'], nodeName: {node}}}\n"))
            .collect();
        if !lines.is_empty() {
            text += &format!(
                "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: {name}-{}, \
                 labels: {{kubernetes.io/service-name: {name}}}}}\naddressType: {family}\n\
                 ports: [{{name: t, port: 8080}}, {{name: u, port: 8080, protocol: UDP}}]\nendpoints:\n{}",
                family.to_lowercase(),
                lines.concat()
            );
        }
    }
    text
}

pub(super) fn services() -> String {
    let here = [(PODS[0], "node-1"), (PODS[1], "node-1"), ("fd00:1::11", "node-1")];
    let one = [(PODS[0], "node-1")];
    let far = [("10.1.2.11", "node-2")];
    let port = "ports: [{name: t, port: 80}, {name: u, port: 53, protocol: UDP}]";
    let both = "clusterIPs: [10.96.0.20, 'fd00:96::20']";
    let local = "type: LoadBalancer, externalTrafficPolicy: Local";
    let ranges = "type: LoadBalancer, loadBalancerSourceRanges: [203.0.113.0/24]";
    [
        CLUSTER.to_owned(),
        service("web", &format!("type: NodePort, {both}, ports: [{{name: t, port: 80, nodePort: 30081}}, {{name: u, port: 53, protocol: UDP}}]"), "", &here),
        service("empty", &format!("clusterIP: 10.96.0.30, {port}"), "", &[]),
        service("local", &format!("{local}, clusterIP: 10.96.0.40, {port}"), "198.51.100.1", &one),
        service("ranged", &format!("{ranges}, clusterIP: 10.96.0.41, {port}"), "198.51.100.2", &one),
        service("far", &format!("{local}, clusterIP: 10.96.0.42, {port}"), "198.51.100.3", &far),
    ]
    .concat()
}

/// The node, two Pods, a client, and the proxy. Parts are dropped in this order.
pub(super) struct Segment {
    proxy: Option<Process>,
    config: PathBuf,
    pub(super) directory: PathBuf,
    pub(super) client: Namespace,
    pub(super) pods: Vec<Namespace>,
    pub(super) node: Namespace,
}

impl Segment {
    pub(super) fn build(number: usize, directory: &Path) -> Result<Self> {
        let node = Namespace::create(number, "node")?;
        let client = Namespace::create(number, "client")?;
        client.connect("eth0", &node, "eth0")?;
        for (namespace, ipv4, ipv6) in [
            (&client, "192.0.2.1/24", "2001:db8::1/64"),
            (&node, "192.0.2.11/24", "2001:db8::11/64"),
        ] {
            namespace.add_address("eth0", ipv4)?;
            namespace.ip(&["address", "add", ipv6, "dev", "eth0", "nodad"])?;
        }
        for prefix in ["10.96.0.0/16", "198.51.100.0/24", "198.18.0.0/16", "10.1.1.0/24"] {
            client.add_route(prefix, "192.0.2.11")?;
        }
        for prefix in ["fd00:96::/64", "fd00:1::/64"] {
            client.ip(&["-6", "route", "add", prefix, "via", "2001:db8::11"])?;
        }
        let config = directory.join("config");
        make_directory(&config)?;
        let directory = directory.to_owned();
        let pods = Vec::new();
        let mut segment = Self { proxy: None, config, directory, client, pods, node };
        for address in PODS {
            segment.add_pod(number, address)?;
        }
        segment.apply(&services())?;
        Ok(segment)
    }

    /// One more Pod, on a cable of its own, that answers.
    pub(super) fn add_pod(&mut self, number: usize, address: &str) -> Result<()> {
        let position = self.pods.len() + 1;
        let cable = format!("pod{position}");
        let (node, pod) = (&self.node, Namespace::create(number, &cable)?);
        node.connect(&cable, &pod, "eth0")?;
        node.add_address(&cable, &format!("{GATEWAY}/32"))?;
        node.ip(&["route", "add", address, "dev", &cable])?;
        pod.add_address("eth0", &format!("{address}/32"))?;
        pod.ip(&["route", "add", GATEWAY, "dev", "eth0"])?;
        pod.ip(&["route", "add", "default", "via", GATEWAY])?;
        let ipv6 = format!("fd00:1::1{position}");
        node.ip(&["address", "add", "fd00:1::1/128", "dev", &cable, "nodad"])?;
        node.ip(&["-6", "route", "add", &ipv6, "dev", &cable])?;
        pod.ip(&["address", "add", &format!("{ipv6}/128"), "dev", "eth0", "nodad"])?;
        pod.ip(&["-6", "route", "add", "fd00:1::1", "dev", "eth0"])?;
        pod.ip(&["-6", "route", "add", "default", "via", "fd00:1::1"])?;
        serve(&pod, position)?;
        self.pods.push(pod);
        Ok(())
    }

    pub(super) fn apply(&self, text: &str) -> Result<()> {
        let new = self.directory.join("new.yaml");
        std::fs::write(&new, text).context("writing the cluster")?;
        std::fs::rename(new, self.config.join("cluster.yaml")).context("the cluster's file")
    }

    pub(super) fn start(&mut self) -> Result<()> {
        let run_dir = self.directory.join("run").display().to_string();
        let config = self.config.display().to_string();
        let arguments = ["proxy", "--config", &config, "--node", "node-1", "--run-dir", &run_dir];
        let program = lab::fairway::existing_program()?;
        let log = self.directory.join("proxy.log");
        let arguments: Vec<String> = arguments.map(str::to_owned).to_vec();
        self.proxy = Some(Process::spawn(&self.node, &program, &arguments, &log)?);
        wait_until("the last address is on the node", LIMIT, || {
            self.proxy.as_mut().map_or(Ok(()), Process::check_running)?;
            let addresses = self.node.ip(&["-br", "address"])?;
            ensure!(addresses.contains("fd00:96::20"), "it has\n{addresses}");
            Ok(())
        })
    }

    pub(super) fn stop(&mut self) -> Result<()> {
        match self.proxy.take() {
            Some(mut proxy) => proxy.stop(LIMIT).map(drop),
            None => bail!("the proxy does not run"),
        }
    }

    pub(super) fn kill(&mut self) -> Result<()> {
        self.proxy.take().context("the proxy does not run")?.kill();
        Ok(())
    }

    /// Settings of the kernel that a cleanup puts back, as they are.
    pub(super) fn settings(&self) -> Result<Vec<String>> {
        const NAMES: [&str; 3] = [
            "net.ipv4.vs.conntrack",
            "net.ipv4.conf.all.arp_ignore",
            "net.ipv4.conf.all.arp_announce",
        ];
        NAMES.iter().map(|it| self.node.run("sysctl", &["-n", it])).collect()
    }

    /// Virtual servers as ipvsadm saves them.
    pub(super) fn servers(&self) -> Result<String> {
        self.node.run("ipvsadm", &["-Sn"])
    }
}
