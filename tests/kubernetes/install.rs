//! How does Fairway come into a cluster? By the files of `deploy/`, with its own accounts, their rights and
//! the variables of its containers; on the model, which has no rights, by the few objects that the daemons
//! look for. Used by the stage.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::api::{Api, word};
use crate::objects::{SYSTEM, object};
use lab::cluster::Cluster;

/// The account of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    Controller,
    Speaker,
}

impl Account {
    pub(crate) const BOTH: [Self; 2] = [Self::Controller, Self::Speaker];

    /// The ServiceAccount, and the name of the owner of the Pods.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Controller => "fairway-controller",
            Self::Speaker => "fairway-speaker",
        }
    }

    /// The kind of the owner of its Pods.
    pub(crate) fn owner(self) -> &'static str {
        match self {
            Self::Controller => "Deployment",
            Self::Speaker => "DaemonSet",
        }
    }
}

/// What a Pod gives its container.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: Vec<(String, String)>,
}

/// Applies `deploy/` as a user does, and waits until its kinds are served.
pub(crate) fn real(cluster: &Cluster) -> Result<()> {
    let deploy = lab::checkout().join("deploy");
    let deploy = deploy.to_str().context("a path that is text")?;
    cluster.kubectl(&["apply", "-k", deploy], None)?;
    let wait = ["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"];
    cluster.kubectl(&wait, None).map(drop)
}

/// A token as a Pod of this account has it.
pub(crate) fn token(cluster: &Cluster, account: Account) -> Result<String> {
    let words = ["create", "token", account.name(), "-n", SYSTEM, "--duration=24h"];
    Ok(cluster.kubectl(&words, None)?.trim().to_owned())
}

/// The kinds that the daemons read, and whose definitions they look at.
const DEFINED: [&str; 7] = [
    "bfdprofiles.metallb.io",
    "bgpadvertisements.metallb.io",
    "bgpconfigurations.fairway.dev",
    "bgppeers.metallb.io",
    "communities.metallb.io",
    "ipaddresspools.metallb.io",
    "l2advertisements.metallb.io",
];

/// What the daemons look for, and how their Pods are made.
pub(crate) fn model(api: &Api) -> Result<()> {
    api.apply(&object("v1", "Namespace", "", SYSTEM, json!({})))?;
    for name in DEFINED {
        let (version, kind) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        api.apply(&object(version, kind, "", name, json!({})))?;
    }
    for account in Account::BOTH {
        api.apply(&owner(account))?;
    }
    Ok(())
}

/// The DaemonSet or the Deployment, as far as the model needs it.
fn owner(account: Account) -> Value {
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    let mut variables = vec![
        field("FAIRWAY_NAMESPACE", "metadata.namespace"),
        field("FAIRWAY_POD", "metadata.name"),
        field("FAIRWAY_POD_UID", "metadata.uid"),
    ];
    let word = match account {
        Account::Controller => "controller",
        Account::Speaker => {
            variables.push(field("FAIRWAY_NODE", "spec.nodeName"));
            variables.push(json!({ "name": "FAIRWAY_DAEMONSET", "value": account.name() }));
            "speaker"
        }
    };
    let container = json!({ "name": word, "args": [word], "env": variables });
    let spec = json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
    object("apps/v1", account.owner(), SYSTEM, account.name(), spec)
}

/// Creates a Pod as the controller of its owner would, and returns what its kubelet gives its container.
pub(crate) fn pod(api: &Api, account: Account, name: &str, node: Option<&str>) -> Result<Pod> {
    let owner = api.get(account.owner(), SYSTEM, account.name())?;
    let owned_by = json!({
        "apiVersion": "apps/v1", "kind": account.owner(), "name": account.name(),
        "uid": word(&owner, "/metadata/uid"), "controller": true,
    });
    let container =
        owner.pointer("/spec/template/spec/containers/0").context("a Pod without container")?;
    let rest = json!({
        "metadata": { "ownerReferences": [owned_by] },
        "spec": { "containers": [{ "name": "fairway", "image": "fairway" }], "nodeName": node },
    });
    let made = api.create(&object("v1", "Pod", SYSTEM, name, rest))?;
    let mut variables = Vec::new();
    for variable in container["env"].as_array().into_iter().flatten() {
        let value = match word(variable, "/valueFrom/fieldRef/fieldPath") {
            "" => word(variable, "/value"),
            "metadata.name" => name,
            "metadata.namespace" => SYSTEM,
            "metadata.uid" => word(&made, "/metadata/uid"),
            "spec.nodeName" => node.unwrap_or_default(),
            other => bail!("the suite does not support the field {other} of a Pod"),
        };
        variables.push((word(variable, "/name").to_owned(), value.to_owned()));
    }
    let arguments = container["args"].as_array().into_iter().flatten();
    let arguments = arguments.filter_map(|it| it.as_str().map(str::to_owned)).collect();
    Ok(Pod { name: name.to_owned(), arguments, variables })
}
