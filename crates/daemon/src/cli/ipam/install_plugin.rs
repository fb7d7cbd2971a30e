//! `fairway ipam install-plugin`: puts the CNI plugin where the container runtime looks for it, and prepares the folders that
//! it shares with the daemon; run by root.
//!
//! In a cluster an init container runs this: the image has no shell, and the daemon does not run as root.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::read::{ClusterArguments, running};
use crate::cli::state_dir::{Owner, prepare};
use crate::kubernetes::LiveObjects;

/// The name of the plugin.
const PLUGIN: &str = "fairway-cni";
/// The variable that pods have.
const IN_POD: &str = "KUBERNETES_SERVICE_HOST";
/// Where packages and images have it.
const PACKAGED: &str = "/usr/lib/cni/fairway-cni";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway ipam install-plugin --owner 65532:65532
  fairway ipam install-plugin --to /usr/lib/cni
  fairway ipam install-plugin --without-network-policy   something else enforces NetworkPolicies

In a pod, and with --kubeconfig, the first installation on a node is refused while the cluster has NetworkPolicies:
Fairway does not enforce them, and they end with the CNI plugin that does. A plugin that is there is updated in any case.")]
pub(super) struct InstallPluginArguments {
    /// The plugin [default: fairway-cni beside this program, else /usr/lib/cni/fairway-cni]
    #[arg(long, value_name = "PATH")]
    from: Option<PathBuf>,

    /// The folder in which the container runtime looks for plugins; it has to be there
    #[arg(long, value_name = "DIR", default_value = "/opt/cni/bin")]
    to: PathBuf,

    /// Who runs the daemon: the folders of its socket and of calls that wait are made for that user; without :GID the
    /// group of the same number [default: none is made]
    #[arg(long, value_name = "UID[:GID]")]
    owner: Option<Owner>,

    /// Where the plugin connects
    #[arg(long, value_name = "PATH", default_value = fairway_cni::SOCKET, env = "FAIRWAY_CNI_SOCKET")]
    cni_socket: PathBuf,

    /// The folder in which the deletions of containers wait
    #[arg(long, value_name = "DIR", default_value = fairway_cni::SPOOL, env = "FAIRWAY_CNI_SPOOL")]
    cni_spool: PathBuf,

    /// Install the plugin although the cluster has NetworkPolicies: something else enforces them, or they may end
    #[arg(long)]
    without_network_policy: bool,

    /// Only warn where the installation is refused, so that the speaker in the same pod starts all the same
    #[arg(long)]
    warn_only: bool,

    #[command(flatten)]
    cluster: ClusterArguments,
}

pub(super) fn run(arguments: &InstallPluginArguments) -> Result<ExitCode> {
    let InstallPluginArguments { from, to, owner, cni_socket, cni_spool, .. } = arguments;
    let from = from.clone().unwrap_or_else(packaged);
    let plugin = to.join(PLUGIN);
    let is_in_cluster = arguments.cluster.is_given() || std::env::var_os(IN_POD).is_some();
    if is_in_cluster && !arguments.without_network_policy && !plugin.exists() {
        let policies = running(async { policies(&arguments.cluster.connect().await?).await })?;
        if let Some(reason) = policies {
            ensure!(arguments.warn_only, "{reason}");
            eprintln!("the plugin is not installed: {reason}");
            return Ok(ExitCode::SUCCESS);
        }
    }
    match install(&from, &plugin)? {
        true => eprintln!("{} installed", plugin.display()),
        false => eprintln!("{} is there already", plugin.display()),
    }
    if let Some(owner) = owner {
        let folders = [cni_socket.parent(), Some(cni_spool.as_path())];
        for folder in folders.into_iter().flatten() {
            prepare(folder, *owner)?.iter().for_each(|it| eprintln!("{it}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Why the plugin is not to be installed: Pods that a policy protects would be open without a word once this plugin makes
/// their network.
async fn policies(live: &LiveObjects) -> Result<Option<String>> {
    let policies = live.network_policies().await.context(
        "the plugin is not installed before it is known that there are no NetworkPolicies",
    )?;
    let Some(first) = policies.first() else { return Ok(None) };
    let others = match policies.len() {
        1 => String::new(),
        count => format!(" and {} more", count.saturating_sub(1)),
    };
    Ok(Some(format!(
        "{first}{others}: Fairway does not enforce network policies; delete them, or install with \
         --without-network-policy (chart: ipam.withoutNetworkPolicy=true) if something else does"
    )))
}

fn packaged() -> PathBuf {
    let beside = std::env::current_exe().map(|it| it.with_file_name(PLUGIN));
    beside.ok().filter(|it| it.exists()).unwrap_or_else(|| PathBuf::from(PACKAGED))
}

/// Puts the plugin there as a whole: a runtime may be starting the one before. Returns whether it was another one.
fn install(from: &Path, plugin: &Path) -> Result<bool> {
    let content = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(plugin).is_ok_and(|it| it == content) {
        return Ok(false);
    }
    let new = plugin.with_file_name(format!(".{PLUGIN}.new"));
    let named = || format!("cannot write {}", plugin.display());
    // What an installation has left that was ended.
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(&new);
    let written = file.as_mut().map_err(|it| std::io::Error::new(it.kind(), it.to_string()));
    let written = written.and_then(|file| {
        file.write_all(&content)?;
        file.sync_all()?;
        fs::rename(&new, plugin)?;
        File::open(plugin.parent().unwrap_or(Path::new("/")))?.sync_all()
    });
    written.with_context(named)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_plugin_is_replaced_as_a_whole_and_only_by_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("new"), folder.path().join(PLUGIN));
        fs::write(&from, "one").unwrap();
        assert!(install(&from, &to).unwrap());
        assert!(!install(&from, &to).unwrap());
        fs::write(&from, "two").unwrap();
        assert!(install(&from, &to).unwrap());
        assert_eq!(fs::read_to_string(&to).unwrap(), "two");
        assert_eq!(to.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        let nowhere = folder.path().join("missing").join(PLUGIN);
        let error = install(&from, &nowhere).unwrap_err().to_string();
        assert!(error.contains("missing"), "{error}");
    }
}
