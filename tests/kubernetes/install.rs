//! How does Fairway come into a cluster? As `deploy/` says, with its own accounts and their rights;
//! towards the model, which knows no rights, as the few objects that the daemons look for.
//! Used by the stage.

use anyhow::{Context, Result};
use serde_json::json;

use crate::api::Api;
use crate::cluster::Cluster;
use crate::objects::{SYSTEM, object};

/// Whose rights a daemon has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    Controller,
    Speaker,
}

impl Account {
    /// The ServiceAccount.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::Speaker => "speaker",
        }
    }

    /// Kind and name of what owns its Pods.
    pub(crate) fn owner(self) -> (&'static str, &'static str) {
        match self {
            Self::Controller => ("Deployment", "controller"),
            Self::Speaker => ("DaemonSet", "speaker"),
        }
    }
}

/// Applies `deploy/` as a user does, and waits until its kinds are served.
pub(crate) fn real(cluster: &Cluster) -> Result<()> {
    let deploy = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy");
    if std::path::Path::new(deploy).join("kustomization.yaml").exists() {
        cluster.kubectl(&["apply", "--server-side", "-k", deploy], None)?;
    } else {
        fixture(cluster)?;
    }
    let wait = ["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"];
    cluster.kubectl(&wait, None).map(drop)
}

/// A token as a Pod of this account has it.
pub(crate) fn token(cluster: &Cluster, account: Account) -> Result<String> {
    let words = ["create", "token", account.name(), "-n", SYSTEM, "--duration=24h"];
    Ok(cluster.kubectl(&words, None)?.trim().to_owned())
}

/// What the daemons look for.
pub(crate) fn model(api: &Api) -> Result<()> {
    api.apply(&object("v1", "Namespace", "", SYSTEM, json!({})))?;
    for account in [Account::Controller, Account::Speaker] {
        let (kind, name) = account.owner();
        api.apply(&object("apps/v1", kind, SYSTEM, name, json!({})))
            .with_context(|| format!("making the {kind} {name}"))?;
    }
    Ok(())
}

fn fixture(cluster: &Cluster) -> Result<()> {
    let crds = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/crds");
    cluster.kubectl(&["apply", "--server-side", "-f", crds], None)?;
    let subjects = ["controller", "speaker"]
        .map(|name| json!({ "kind": "ServiceAccount", "name": name, "namespace": SYSTEM }));
    let template = |name: &str| {
        json!({ "spec": {
        "selector": { "matchLabels": { "app": name } },
        "template": {
            "metadata": { "labels": { "app": name } },
            "spec": { "containers": [{ "name": name, "image": "fairway" }] },
        },
    } })
    };
    let objects = [
        object("v1", "Namespace", "", SYSTEM, json!({})),
        object("v1", "ServiceAccount", SYSTEM, "controller", json!({})),
        object("v1", "ServiceAccount", SYSTEM, "speaker", json!({})),
        object("apps/v1", "Deployment", SYSTEM, "controller", template("controller")),
        object("apps/v1", "DaemonSet", SYSTEM, "speaker", template("speaker")),
        object(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            "",
            "fixture",
            json!({
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
                "subjects": subjects,
            }),
        ),
    ];
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    let file = cluster.folder().join("fixture.json");
    std::fs::write(&file, list.to_string())?;
    cluster.kubectl(&["apply", "-f", "-"], Some(&file)).map(drop)
}
