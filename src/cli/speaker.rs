//! `fairway speaker`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::cluster::{ClusterArguments, filled};
use super::paths;
use super::run::BackendChoice;
use crate::admin::SocketMode;
use crate::kubernetes::{SpeakerOptions, run_speaker};
use crate::standalone::{self, ListenOption};

/// Threads: the loop has one, sockets and the disk have the other.
const THREADS: usize = 2;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway speaker                            in a pod, as deploy/ runs it
  fairway speaker --node worker-1 --kubeconfig admin.conf --state-dir /var/lib/fairway
  fairway speaker --bgp-listen 0.0.0.0:179,[::]:179
  fairway show bgp summary                   ask it, on its node")]
pub(super) struct SpeakerArguments {
    #[command(flatten)]
    cluster: ClusterArguments,

    /// The name of our Node [default: the host name]
    #[arg(long, env = "FAIRWAY_NODE")]
    node: Option<String>,

    /// The DaemonSet that this pod is of, in the same namespace: when that is deleted, routers are
    /// told so
    #[arg(long, value_name = "NAME", env = "FAIRWAY_DAEMONSET")]
    daemonset: Option<String>,

    /// Announce also from nodes with the label node.kubernetes.io/exclude-from-external-load-balancers
    #[arg(long, env = "FAIRWAY_IGNORE_EXCLUDE_LB")]
    ignore_exclude_lb: bool,

    /// Who speaks BGP
    #[arg(long, value_enum, default_value = "native", env = "FAIRWAY_BGP")]
    bgp: BackendChoice,

    /// Accept BGP connections there, or `none`; may be given more than once [default: port 179 of
    /// both families once a peer is passive or has a listenRange]
    #[arg(long, value_name = "ADDRESS:PORT", env = "FAIRWAY_BGP_LISTEN", value_delimiter = ',')]
    bgp_listen: Vec<ListenOption>,

    /// The socket that `fairway show` talks to [default: /run/fairway/fairway.sock, or without
    /// root $XDG_RUNTIME_DIR/fairway.sock]
    #[arg(long, value_name = "PATH", env = "FAIRWAY_SOCKET")]
    socket: Option<PathBuf>,

    /// Who may use the sockets: 0600 for the daemon's user, 0660 for its group, too; whoever may,
    /// can also clear sessions
    #[arg(long, value_name = "MODE", default_value = "0600", env = "FAIRWAY_SOCKET_MODE")]
    socket_mode: SocketMode,

    /// Where the last known state is kept, for a start without the API server [default:
    /// /var/lib/fairway, or without root $XDG_STATE_HOME/fairway]
    #[arg(long, value_name = "PATH", env = "FAIRWAY_STATE_DIR")]
    state_dir: Option<PathBuf>,

    /// Open FRR's sockets bgpd.vty, bfdd.vty and zebra.vty in this folder, read-only, so that
    /// `vtysh --vty_socket DIR` and exporters for FRR work [default: none]
    #[arg(long, value_name = "DIR", env = "FAIRWAY_VTY_DIR")]
    vty_dir: Option<PathBuf>,
}

pub(super) fn run(arguments: SpeakerArguments) -> Result<ExitCode> {
    let SpeakerArguments {
        cluster,
        node,
        daemonset,
        ignore_exclude_lb,
        bgp: BackendChoice::Native,
        bgp_listen,
        socket,
        socket_mode,
        state_dir,
        vty_dir,
    } = arguments;
    let node = match filled(node.as_deref()) {
        Some(node) => node,
        None => standalone::host_name()
            .context("the machine has no host name; name this node with --node")?,
    };
    let options = SpeakerOptions {
        connection: cluster.connection(),
        node,
        load_balancer_class: cluster.load_balancer_class(),
        ignore_exclude_label: ignore_exclude_lb,
        bgp_listen,
        socket: socket.map_or_else(paths::default_socket, Ok)?,
        socket_mode,
        metrics_listen: cluster.metrics_listen,
        vty_dir: vty_dir.filter(|path| !path.as_os_str().is_empty()),
        state_dir: state_dir.map_or_else(paths::default_state_dir, Ok)?,
        pod: cluster.pod(),
        daemon_set: filled(daemonset.as_deref()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(run_speaker(options))?;
    Ok(ExitCode::SUCCESS)
}
