//! How do cases change the cluster? As `kubectl` does, object by object, with the rights of the test;
//! the same on a real API server and on the model of one. Used by the stage and all cases.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use lab::cluster::http::{self, Reply};

/// Kind, and where its objects are: with a namespace, or without.
const KINDS: &[(&str, &str, bool)] = &[
    ("Namespace", "/api/v1/namespaces", false),
    ("Node", "/api/v1/nodes", false),
    ("Service", "/api/v1/services", true),
    ("Secret", "/api/v1/secrets", true),
    ("Pod", "/api/v1/pods", true),
    ("Event", "/api/v1/events", true),
    ("EndpointSlice", "/apis/discovery.k8s.io/v1/endpointslices", true),
    ("Lease", "/apis/coordination.k8s.io/v1/leases", true),
    ("DaemonSet", "/apis/apps/v1/daemonsets", true),
    ("Deployment", "/apis/apps/v1/deployments", true),
    ("CustomResourceDefinition", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", false),
    ("BGPPeer", "/apis/metallb.io/v1beta2/bgppeers", true),
    ("BFDProfile", "/apis/metallb.io/v1beta1/bfdprofiles", true),
    ("BGPAdvertisement", "/apis/metallb.io/v1beta1/bgpadvertisements", true),
    ("L2Advertisement", "/apis/metallb.io/v1beta1/l2advertisements", true),
    ("IPAddressPool", "/apis/metallb.io/v1beta1/ipaddresspools", true),
    ("Community", "/apis/metallb.io/v1beta1/communities", true),
    ("BGPConfiguration", "/apis/fairway.dev/v1beta1/bgpconfigurations", true),
    ("ServiceBGPStatus", "/apis/metallb.io/v1beta1/servicebgpstatuses", true),
    ("ServiceL2Status", "/apis/metallb.io/v1beta1/servicel2statuses", true),
    ("ConfigurationState", "/apis/metallb.io/v1beta1/configurationstates", true),
    ("BGPSessionState", "/apis/frrk8s.metallb.io/v1beta1/bgpsessionstates", true),
];

/// The field manager of the test.
const MANAGER: &str = "kubectl";

/// A client of an API server. Cheap to copy; threads have their own.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    socket: PathBuf,
}

impl Api {
    pub(crate) fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// Any request, and any answer.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Reply> {
        http::ask(&self.socket, method, path, body).with_context(|| format!("{method} {path}"))
    }

    /// Creates an object that does not exist yet; returns it.
    pub(crate) fn create(&self, object: &Value) -> Result<Value> {
        let path = collection(word(object, "/kind"), word(object, "/metadata/namespace"))?;
        expect(self.ask("POST", &path, Some(object))?, &[201], &path)
    }

    /// Applies an object, whatever there was; returns it.
    pub(crate) fn apply(&self, object: &Value) -> Result<Value> {
        let path = path_of(object)? + &format!("?fieldManager={MANAGER}&force=true");
        let reply = http::ask_as(&self.socket, "PATCH", &path, http::APPLY, Some(object))?;
        expect(reply, &[200, 201], &path)
    }

    pub(crate) fn apply_all(&self, objects: &[Value]) -> Result<()> {
        objects.iter().try_for_each(|object| self.apply(object).map(drop))
    }

    /// A node as its kubelet writes it: its status is a subresource.
    pub(crate) fn apply_node(&self, node: &Value) -> Result<()> {
        let name = word(node, "/metadata/name");
        if self.find("Node", "", name)?.is_none() {
            return self.create(node).map(drop);
        }
        let labels = json!({ "metadata": { "labels": node["metadata"]["labels"] } });
        self.patch("Node", "", name, &labels)?;
        self.patch_status("Node", "", name, &node["status"]).map(drop)
    }

    /// A merge patch.
    pub(crate) fn patch(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value> {
        let path = path(kind, namespace, name)?;
        expect(self.ask("PATCH", &path, Some(patch))?, &[200], &path)
    }

    /// A merge patch of the status.
    pub(crate) fn patch_status(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        status: &Value,
    ) -> Result<Value> {
        let path = path(kind, namespace, name)? + "/status";
        expect(self.ask("PATCH", &path, Some(&json!({ "status": status })))?, &[200], &path)
    }

    /// Deletes it; it has to be there.
    pub(crate) fn delete(&self, kind: &str, namespace: &str, name: &str) -> Result<()> {
        let path = path(kind, namespace, name)?;
        expect(self.ask("DELETE", &path, None)?, &[200, 202], &path).map(drop)
    }

    /// None when it is not there.
    pub(crate) fn find(&self, kind: &str, namespace: &str, name: &str) -> Result<Option<Value>> {
        let path = path(kind, namespace, name)?;
        let reply = self.ask("GET", &path, None)?;
        if reply.status == 404 {
            return Ok(None);
        }
        expect(reply, &[200], &path).map(Some)
    }

    pub(crate) fn get(&self, kind: &str, namespace: &str, name: &str) -> Result<Value> {
        let found = self.find(kind, namespace, name)?;
        found.with_context(|| format!("there is no {kind} {namespace}/{name}"))
    }

    /// All of a namespace, or of all (`""`).
    pub(crate) fn list(&self, kind: &str, namespace: &str) -> Result<Vec<Value>> {
        let path = collection(kind, namespace)?;
        let mut list = expect(self.ask("GET", &path, None)?, &[200], &path)?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            other => bail!("a list of {kind} without items: {other}"),
        }
    }

    /// Deletes all of a kind in a namespace, or in all (`""`).
    pub(crate) fn delete_all(&self, kind: &str, namespace: &str) -> Result<()> {
        for object in self.list(kind, namespace)? {
            let [name, namespace] =
                ["/metadata/name", "/metadata/namespace"].map(|it| word(&object, it));
            self.delete(kind, namespace, name)?;
        }
        Ok(())
    }

    /// The addresses in the status of a Service.
    pub(crate) fn addresses(&self, namespace: &str, name: &str) -> Result<Vec<String>> {
        Ok(addresses_of(&self.get("Service", namespace, name)?))
    }
}

/// The addresses in the status of a Service.
pub(crate) fn addresses_of(service: &Value) -> Vec<String> {
    let ingress = service["status"]["loadBalancer"]["ingress"].as_array();
    ingress.into_iter().flatten().filter_map(|it| it["ip"].as_str()).map(str::to_owned).collect()
}

/// The text at a JSON pointer; empty where there is none.
pub(crate) fn word<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn collection(kind: &str, namespace: &str) -> Result<String> {
    let found = KINDS.iter().find(|(it, ..)| *it == kind);
    let (_, path, _) =
        found.with_context(|| format!("the suite does not support the kind {kind}"))?;
    if namespace.is_empty() {
        return Ok((*path).to_owned());
    }
    let (group, plural) = path.rsplit_once('/').context("a path")?;
    Ok(format!("{group}/namespaces/{namespace}/{plural}"))
}

fn path(kind: &str, namespace: &str, name: &str) -> Result<String> {
    let has_namespace = KINDS.iter().any(|(it, _, namespaced)| *it == kind && *namespaced);
    ensure!(has_namespace != namespace.is_empty(), "the namespace of {kind} {name}: {namespace:?}");
    Ok(format!("{}/{name}", collection(kind, namespace)?))
}

fn path_of(object: &Value) -> Result<String> {
    let [kind, namespace, name] =
        ["/kind", "/metadata/namespace", "/metadata/name"].map(|it| word(object, it));
    path(kind, namespace, name)
}

fn expect(reply: Reply, codes: &[u16], path: &str) -> Result<Value> {
    ensure!(codes.contains(&reply.status), "{path}: {} {}", reply.status, reply.text);
    reply.json()
}
