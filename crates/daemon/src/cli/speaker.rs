//! `fairway speaker`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::cluster::ClusterArguments;
use super::cni::CniArguments;
use super::host::{HostArguments, filled, run_daemon};
use super::members::Role;
use crate::kubernetes::{SpeakerOptions, run_speaker};
use crate::node_api::NodeApiOptions;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway speaker                            in a pod, as deploy/ runs it
  fairway speaker --node worker-1 --kubeconfig admin.conf --state-dir /var/lib/fairway
  fairway speaker --bgp-listen 0.0.0.0:179,[::]:179
  fairway speaker --bgp frr --frr-socket-dir /var/run/frr
  fairway show bgp summary                   ask it, on its node")]
pub(super) struct SpeakerArguments {
    #[command(flatten)]
    cluster: ClusterArguments,

    #[command(flatten)]
    host: HostArguments,

    /// The DaemonSet of this pod, in the same namespace: when it is deleted, the sessions end for good
    /// instead of as for a restart
    #[arg(long, value_name = "NAME", env = "FAIRWAY_DAEMONSET")]
    daemonset: Option<String>,

    /// Also announce from nodes with the label node.kubernetes.io/exclude-from-external-load-balancers
    #[arg(long, env = "FAIRWAY_IGNORE_EXCLUDE_LB")]
    ignore_exclude_lb: bool,

    /// The folder with the certificate for the node API, as the leading controller issues it: tls.crt, tls.key and
    /// client-ca.crt; read again when they change
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/etc/fairway/node-api",
        env = "FAIRWAY_NODE_API_CERT_DIR"
    )]
    node_api_cert_dir: PathBuf,

    #[command(flatten)]
    cni: CniArguments,
}

pub(super) fn run(arguments: SpeakerArguments) -> Result<ExitCode> {
    let SpeakerArguments { cluster, host, daemonset, ignore_exclude_lb, node_api_cert_dir, cni } =
        arguments;
    let host = host.options(Role::Cluster)?;
    let node_api =
        NodeApiOptions { listen: cluster.node_api_listen, certificate_folder: node_api_cert_dir };
    run_daemon(run_speaker(SpeakerOptions {
        ipam: cni.options(&host),
        host,
        connection: cluster.connection(),
        ignore_exclude_label: ignore_exclude_lb,
        empty_list_hold: cluster.empty_list_hold,
        secure_metrics: cluster.secure_metrics(),
        pod: cluster.pod(),
        node_api,
        daemon_set: filled(daemonset.as_deref()),
    }))
}
