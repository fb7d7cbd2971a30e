//! A cluster that had another CNI plugin before.

use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::json;

use super::Scene;
use super::cluster::{self, create};
use lab::fairway::program;
use lab::make_directory;

pub(super) fn the_plugin_is_not_installed_where_network_policies_would_end(
    scene: &Scene,
) -> Result<()> {
    let cluster = cluster::cluster(scene, &["n1"])?;
    let kubeconfig = cluster.kubeconfig("installer", lab::cluster::TOKEN)?.display().to_string();
    let folder = scene.directory.join("plugins");
    make_directory(&folder)?;
    let install = |more: &[&str]| {
        let mut command = Command::new(program());
        command.args(["ipam", "install-plugin", "--kubeconfig", &kubeconfig, "--to"]);
        let output = command.arg(&folder).args(more).output()?;
        anyhow::Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
    };
    let policy = |namespace: &str, name: &str| {
        let policy = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": name, "namespace": namespace}, "spec": {"podSelector": {}},
        });
        let path = format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies");
        create(&cluster, &path, &policy)
    };
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "calico-system"},
    });
    create(&cluster, "/api/v1/namespaces", &namespace)?;
    policy("calico-system", "of-calico")?;
    policy("default", "closed")?;
    policy("default", "open")?;
    let (is_installed, said) = install(&[])?;
    ensure!(!is_installed, "{said}");
    ensure!(said.contains("NetworkPolicy default/closed and 1 more"), "{said}");
    ensure!(!folder.join("fairway-cni").exists(), "it is there all the same");
    // As the chart has it: the speaker goes on.
    let (is_well, said) = install(&["--warn-only"])?;
    ensure!(is_well && said.contains("default/closed"), "{said}");
    ensure!(!folder.join("fairway-cni").exists(), "it is there all the same");
    let (is_installed, said) = install(&["--without-network-policy"])?;
    ensure!(is_installed, "{said}");
    // A policy of today keeps no node from its next version.
    let (is_installed, said) = install(&[])?;
    ensure!(is_installed, "{said}");
    // What goes with Calico keeps nothing from it.
    std::fs::remove_file(folder.join("fairway-cni"))?;
    for name in ["closed", "open"] {
        cluster.kubectl(&["delete", "networkpolicy", "-n", "default", name], None)?;
    }
    let (is_installed, said) = install(&[])?;
    ensure!(is_installed, "{said}");
    Ok(())
}
