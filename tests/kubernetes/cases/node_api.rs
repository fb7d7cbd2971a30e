//! All nodes answer for a user of the cluster: `kubectl fairway` as a plugin of kubectl, by the manifests of
//! `deploy/components/node-api` as they are.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::outages::{announce, session_is_back};
use crate::api::word;
use crate::objects::{SYSTEM, object};
use crate::stage::{NODES, Stage};
use lab::fairway;
use lab::wait::{PATIENCE, now, wait_until};

pub(crate) const NAME: &str = "fairway-node-api";
const MANIFEST: &str = "deploy/components/node-api/node-api.yaml";
pub(crate) const SPEAKER_PORT: u16 = 7474;
/// What an operator waits for a cluster with a node that is down.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// What the tables show of a healthy cluster.
const TABLES: &[(&[&str], &[&str])] = &[
    (&["peers"], &["node-a   frr", "node-b   bird", "node-c   frr", "Established"]),
    (&["services"], &["shop        at-192-0-2-60", "node-a,node-b,node-c"]),
    (&["routes", "192.0.2.60"], &["192.0.2.60/32   itself", "node-a,node-b,node-c"]),
    (&["routes"], &["192.0.2.61/32   itself", "node-a"]),
    (&["pools"], &["main", "all"]),
    (&["check"], &["No faults."]),
    (&["explain", "peer", "frr"], &["node-a,node-b,node-c"]),
    (&["explain", "service", "shop/at-192-0-2-60", "--node", "node-b"], &["shop/at-192-0-2-60"]),
    (&["peers", "-o", "yaml"], &["name: node-a", "peerState: OK"]),
];

/// Rows of all nodes; one that is down is named, and the exit code is 1; a user without the right is refused, one with
/// it reads, and drains only with another; nobody but the API server and the controllers gets an answer at the ports.
pub(super) fn kubectl_asks_all_nodes(stage: &mut Stage) -> Result<()> {
    announce(stage)?;
    let lab = Lab::install(stage)?;
    let operator = lab.user(stage, "operator", Some("fairway-node-operator"))?;
    wait_until("all nodes answer", PATIENCE, || {
        stage.check_running()?;
        let output = lab.ask(stage, &operator, &["peers"])?;
        ensure!(output.status.success(), "{}", said(&output));
        Ok(())
    })?;
    for (words, expected) in TABLES {
        let output = lab.ask(stage, &operator, words)?;
        let text = said(&output);
        ensure!(output.status.success(), "{words:?}: {text}");
        for part in *expected {
            ensure!(text.contains(part), "{words:?} shows no {part:?}: {text}");
        }
    }
    let output = lab.ask(stage, &operator, &["peers", "-o", "json"])?;
    let list: Value = serde_json::from_slice(&output.stdout)?;
    let names: Vec<&str> = NODES
        .iter()
        .enumerate()
        .map(|(at, _)| word(&list, &format!("/items/{at}/metadata/name")))
        .collect();
    ensure!(names == NODES, "{list}");

    refuses_those_without_a_right(stage, &lab)?;
    asks_as_another(stage, &lab, &operator)?;
    drains_a_node(stage, &lab, &operator)?;
    refuses_strangers(stage, &lab)?;
    names_a_node_that_is_down(stage, &lab, &operator)?;

    // Another controller answers with the same certificates.
    stage.controllers.first_mut().context("a controller")?.stop()?;
    stage.start_controller(1)?;
    wait_until("another controller answers", PATIENCE, || {
        stage.check_running()?;
        let output = lab.ask(stage, &operator, &["peers"])?;
        ensure!(output.status.success(), "{}", said(&output));
        Ok(())
    })?;
    stage.controllers.get_mut(1).context("a controller")?.stop()?;
    lab.remove(stage)
}

fn refuses_those_without_a_right(stage: &Stage, lab: &Lab) -> Result<()> {
    let passer_by = lab.user(stage, "passer-by", None)?;
    let output = lab.ask(stage, &passer_by, &["peers"])?;
    let text = said(&output);
    ensure!(output.status.code() == Some(1), "{text}");
    ensure!(
        text.contains("cannot list resource \"peers\" in API group \"nodes.fairway.dev\""),
        "{text}"
    );
    ensure!(text.contains("fairway-node-viewer"), "{text}");
    let viewer = lab.user(stage, "viewer", Some("fairway-node-viewer"))?;
    let output = lab.ask(stage, &viewer, &["pools"])?;
    ensure!(output.status.success(), "{}", said(&output));
    // Words of one resource do not lead to another.
    let raw = "/apis/nodes.fairway.dev/v1alpha1/routes?word=summary";
    let output =
        stage.cluster()?.kubectl_of(&viewer, &lab.plugins).args(["get", "--raw", raw]).output()?;
    ensure!(said(&output).contains("is no question about routes"), "{}", said(&output));
    let output = lab.ask(stage, &viewer, &["drain", "node-a", "--wait", "0s"])?;
    let text = said(&output);
    ensure!(output.status.code() == Some(1), "{text}");
    ensure!(text.contains("cannot create resource \"drains\""), "{text}");
    Ok(())
}

/// `--as`: the rights are those of the other user, for users that may impersonate.
fn asks_as_another(stage: &Stage, lab: &Lab, operator: &Path) -> Result<()> {
    let viewer = format!("system:serviceaccount:{SYSTEM}:viewer");
    let as_viewer = ["pools", "--as", &viewer];
    let output = lab.ask(stage, operator, &as_viewer)?;
    ensure!(said(&output).contains("cannot impersonate"), "{}", said(&output));
    let role = ["create", "clusterrole", "impersonator", "--verb=impersonate"];
    stage.kubectl(&[&role[..], &["--resource=users,groups,serviceaccounts"]].concat())?;
    let account = format!("--serviceaccount={SYSTEM}:operator");
    let binding = ["create", "clusterrolebinding", "impersonator", "--clusterrole=impersonator"];
    stage.kubectl(&[&binding[..], &[&account]].concat())?;
    wait_until("the operator asks as the viewer", PATIENCE, || {
        let output = lab.ask(stage, operator, &as_viewer)?;
        ensure!(output.status.success(), "{}", said(&output));
        Ok(())
    })?;
    for words in [
        &["drain", "node-a", "--wait", "0s", "--as", &viewer][..],
        &["pools", "--as", "nobody", "--as-group", "guests"],
    ] {
        let output = lab.ask(stage, operator, words)?;
        let text = said(&output);
        ensure!(output.status.code() == Some(1), "{words:?}: {text}");
        ensure!(text.contains("cannot "), "{words:?}: {text}");
    }
    stage.kubectl(&["delete", "clusterrolebinding,clusterrole", "impersonator"]).map(drop)
}

fn drains_a_node(stage: &mut Stage, lab: &Lab, operator: &Path) -> Result<()> {
    // What would only be tried is not done.
    let drain = stage.directory.join("drain.json");
    let object = object("nodes.fairway.dev/v1alpha1", "Drain", "", "node-b", json!({}));
    std::fs::write(&drain, object.to_string())?;
    let raw = "/apis/nodes.fairway.dev/v1alpha1/drains?dryRun=All";
    let mut command = stage.cluster()?.kubectl_of(operator, &lab.plugins);
    let output = command.args(["create", "--raw", raw, "-f"]).arg(&drain).output()?;
    ensure!(said(&output).contains("dryRun is not supported"), "{}", said(&output));
    let output = lab.ask(stage, operator, &["drain", "node-b", "--wait", "1s"])?;
    let text = said(&output);
    ensure!(output.status.success() && text.contains("sent to 2 neighbors"), "{text}");
    stage.routes_become("192.0.2.60", &["node-a", "node-c"])?;
    let output = lab.ask(stage, operator, &["drain", "node-b", "--undo"])?;
    ensure!(said(&output).contains("in service again"), "{}", said(&output));
    stage.routes_become("192.0.2.60", &NODES)?;
    let output = lab.ask(stage, operator, &["drain", "node-x"])?;
    let text = said(&output);
    ensure!(
        output.status.code() == Some(1) && text.contains("no speaker runs on this node"),
        "{text}"
    );
    Ok(())
}

/// Without a certificate of the front proxy, or of a controller, the handshake fails, whatever the headers say.
fn refuses_strangers(stage: &Stage, lab: &Lab) -> Result<()> {
    for url in [
        format!("https://{}/apis/nodes.fairway.dev/v1alpha1/peers", lab.address),
        format!("https://10.90.0.11:{SPEAKER_PORT}/v1/ask"),
    ] {
        let admin = ["-H", "X-Remote-User: admin", "-H", "X-Remote-Group: system:masters"];
        let words = ["-sk", "--max-time", "5", &url];
        let mut command = std::process::Command::new("ip");
        command.args(["netns", "exec", stage.hub.name(), "curl"]).args(words).args(admin);
        let output = command.output()?;
        ensure!(!output.status.success(), "{url} answers a stranger: {}", said(&output));
        ensure!(output.stdout.is_empty(), "{url} answers a stranger: {}", said(&output));
    }
    Ok(())
}

fn names_a_node_that_is_down(stage: &mut Stage, lab: &Lab, operator: &Path) -> Result<()> {
    stage.nodes.get(2).context("a node")?.ip(&["link", "set", "eth0", "down"])?;
    let began = now();
    let output = lab.ask(stage, operator, &["peers"])?;
    let took = now().duration_since(began);
    let text = said(&output);
    ensure!(output.status.code() == Some(1), "{text}");
    ensure!(text.contains("node-c   <no answer>") && text.contains("node-a   frr"), "{text}");
    ensure!(text.contains("10.90.0.13:7474"), "it does not say where: {text}");
    ensure!(took < ANSWER_LIMIT, "it took {took:?}");
    let output = lab.ask(stage, operator, &["explain", "peer", "frr", "--node", "node-x"])?;
    let text = said(&output);
    ensure!(output.status.code() == Some(1), "{text}");
    ensure!(text.contains("no speaker runs on this node"), "{text}");
    stage.nodes.get(2).context("a node")?.ip(&["link", "set", "eth0", "up"])?;
    // The IPv6 address went with the link.
    stage.nodes.get(2).context("a node")?.add_address("eth0", "fd90::13/64")?;
    session_is_back(stage, "node-c")
}

pub(crate) fn said(output: &Output) -> String {
    format!(
        "{} {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The node API, and kubectl with its plugin.
pub(crate) struct Lab {
    plugins: PathBuf,
    /// Where the controller answers.
    address: String,
    manifest: String,
}

impl Lab {
    /// Applies the manifests, and does what a kubelet, kube-proxy and the endpoint controller do.
    pub(crate) fn install(stage: &mut Stage) -> Result<Self> {
        let manifest = lab::checkout().join(MANIFEST);
        let manifest = manifest.to_str().context("a path that is text")?.to_owned();
        stage.kubectl(&["apply", "-f", &manifest])?;
        let service = stage.api.get("Service", SYSTEM, NAME)?;
        let address = word(&service, "/spec/clusterIP").to_owned();
        stage.hub.ip(&["address", "replace", &format!("{address}/32"), "dev", "lo"])?;
        stage.api.apply(&slice(NAME, 443, &[(&address, None)]))?;
        let nodes = ["10.90.0.11", "10.90.0.12", "10.90.0.13"];
        let speakers = nodes.iter().zip(NODES).map(|(at, node)| (*at, Some(node)));
        let speakers: Vec<_> = speakers.collect();
        stage.api.apply(&slice(&format!("{NAME}-speakers"), SPEAKER_PORT, &speakers))?;
        let listen = |at: String| ("FAIRWAY_NODE_API_LISTEN".to_owned(), at);
        for controller in &mut stage.controllers {
            controller.pod.variables.push(listen(format!("{address}:443")));
        }
        stage.controllers.first_mut().context("a controller")?.stop()?;
        stage.start_controller(0)?;

        let certificates = stage.directory.join("node-api");
        mount(stage, &certificates)?;
        for place in 0..NODES.len() {
            let speaker = stage.speakers.get_mut(place).context("a speaker")?;
            let folder = certificates.display().to_string();
            speaker.pod.variables.extend([
                listen(format!(":{SPEAKER_PORT}")),
                ("FAIRWAY_NODE_API_CERT_DIR".to_owned(), folder),
            ]);
            speaker.daemon.stop()?;
            stage.start_speaker(place)?;
        }
        NODES.iter().try_for_each(|node| session_is_back(stage, node))?;
        let plugins = stage.directory.join("plugins");
        lab::make_directory(&plugins)?;
        std::os::unix::fs::symlink(fairway::program(), plugins.join("kubectl-fairway"))?;
        Ok(Self { plugins, address, manifest })
    }

    /// The kubeconfig of an account that has this ClusterRole, if any.
    pub(crate) fn user(&self, stage: &Stage, name: &str, role: Option<&str>) -> Result<PathBuf> {
        stage.kubectl(&["create", "serviceaccount", name, "-n", SYSTEM])?;
        if let Some(role) = role {
            let (role, account) = (format!("--clusterrole={role}"), format!("{SYSTEM}:{name}"));
            let account = format!("--serviceaccount={account}");
            stage.kubectl(&["create", "clusterrolebinding", name, &role, &account])?;
        }
        let token = stage.kubectl(&["create", "token", name, "-n", SYSTEM])?;
        stage.cluster()?.kubeconfig(name, token.trim())
    }

    /// `kubectl fairway` with these words.
    pub(crate) fn ask(&self, stage: &Stage, user: &Path, words: &[&str]) -> Result<Output> {
        let mut command = stage.cluster()?.kubectl_of(user, &self.plugins);
        Ok(command.arg("fairway").args(words).output()?)
    }

    fn remove(self, stage: &mut Stage) -> Result<()> {
        stage.kubectl(&["delete", "-f", &self.manifest])?;
        for name in ["operator", "viewer", "passer-by"] {
            stage.kubectl(&["delete", "serviceaccount", name, "-n", SYSTEM])?;
        }
        let bindings = ["delete", "clusterrolebinding", "operator", "viewer"];
        stage.kubectl(&bindings)?;
        let is_ours = |(name, _): &(String, String)| name.starts_with("FAIRWAY_NODE_API");
        for controller in &mut stage.controllers {
            controller.pod.variables.retain(|it| !is_ours(it));
        }
        for place in 0..NODES.len() {
            let speaker = stage.speakers.get_mut(place).context("a speaker")?;
            speaker.pod.variables.retain(|it| !is_ours(it));
            speaker.daemon.stop()?;
            stage.start_speaker(place)?;
        }
        stage.start_controller(0)?;
        NODES.iter().try_for_each(|node| session_is_back(stage, node))
    }
}

/// The kubelet's part: the Secret of the speakers as files, once the leading controller has written it.
fn mount(stage: &Stage, folder: &Path) -> Result<()> {
    lab::make_directory(folder)?;
    let files = ["tls.crt", "tls.key", "client-ca.crt"];
    let secret = wait_until("the speakers have a certificate", PATIENCE, || {
        let secret = stage.api.get("Secret", SYSTEM, &format!("{NAME}-speakers-cert"))?;
        let is_whole = files.iter().all(|it| !word(&secret["data"], &format!("/{it}")).is_empty());
        ensure!(is_whole, "it has {:?}", secret["data"]);
        Ok(secret)
    })?;
    for name in files {
        let path = folder.join(name);
        let encoded = folder.join("base64");
        std::fs::write(&encoded, word(&secret["data"], &format!("/{name}")))?;
        let decoded = std::process::Command::new("base64").arg("-d").arg(&encoded).output()?;
        std::fs::write(path, decoded.stdout)?;
    }
    Ok(())
}

/// The endpoints of a Service of the node API.
pub(crate) fn slice(service: &str, port: u16, endpoints: &[(&str, Option<&str>)]) -> Value {
    let endpoint = |(address, node): &(&str, Option<&str>)| json!({ "addresses": [address], "nodeName": node, "conditions": { "ready": true } });
    let rest = json!({
        "metadata": { "labels": { "kubernetes.io/service-name": service } },
        "addressType": "IPv4",
        "ports": [{ "name": "node-api", "port": port, "protocol": "TCP" }],
        "endpoints": endpoints.iter().map(endpoint).collect::<Vec<_>>(),
    });
    object("discovery.k8s.io/v1", "EndpointSlice", SYSTEM, &format!("{service}-1"), rest)
}
