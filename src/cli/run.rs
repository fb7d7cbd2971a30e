//! `fairway run`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use super::paths;
use crate::admin::SocketMode;
use crate::metrics::MetricsListen;
use crate::standalone::{self, ListenOption, Options};

/// Threads: one is enough for the work, a second keeps a slow disk or a large file from it.
const THREADS: usize = 2;

/// Who speaks BGP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum BackendChoice {
    /// Fairway itself
    Native,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway run --config examples/quickstart
  fairway run --config peers.yaml --config services/ --bgp-listen none
  fairway run --config /etc/fairway --vty-dir /run/fairway/vty
  kill -HUP PID                              read all files again")]
pub(super) struct RunArguments {
    /// A file, or a folder of *.yaml, *.yml and *.json; may be given more than once, or several
    /// with commas between
    #[arg(
        long,
        required = true,
        value_name = "PATH",
        env = "FAIRWAY_CONFIG",
        value_delimiter = ','
    )]
    config: Vec<PathBuf>,

    /// The name of this node [default: the host name]
    #[arg(long, env = "FAIRWAY_NODE")]
    node: Option<String>,

    /// Who speaks BGP
    #[arg(long, value_enum, default_value = "native", env = "FAIRWAY_BGP")]
    bgp: BackendChoice,

    /// Accept BGP connections there, or `none`; may be given more than once [default: port 179
    /// of both families]
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

    /// Serve metrics and probes there, `:PORT` for all addresses, or `none`
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:7472",
        env = "FAIRWAY_METRICS_LISTEN"
    )]
    metrics_listen: MetricsListen,

    /// Where the addresses of services are kept [default: /var/lib/fairway, or without root
    /// $XDG_STATE_HOME/fairway]
    #[arg(long, value_name = "PATH", env = "FAIRWAY_STATE_DIR")]
    state_dir: Option<PathBuf>,

    /// Open FRR's sockets bgpd.vty, bfdd.vty and zebra.vty in this folder, read-only, so that
    /// `vtysh --vty_socket DIR` and exporters for FRR work [default: none]
    #[arg(long, value_name = "DIR", env = "FAIRWAY_VTY_DIR")]
    vty_dir: Option<PathBuf>,

    /// Serve services of this loadBalancerClass instead of those without one
    #[arg(long, value_name = "CLASS", env = "FAIRWAY_LB_CLASS")]
    lb_class: Option<String>,
}

pub(super) fn run(arguments: RunArguments) -> Result<ExitCode> {
    let RunArguments {
        config,
        node,
        bgp: BackendChoice::Native,
        bgp_listen,
        socket,
        socket_mode,
        metrics_listen,
        state_dir,
        vty_dir,
        lb_class,
    } = arguments;
    let node = match node.filter(|node| !node.is_empty()) {
        Some(node) => node,
        None => standalone::host_name()
            .context("the machine has no host name; name this node with --node")?,
    };
    let options = Options {
        config,
        node,
        bgp_listen,
        socket: socket.map_or_else(paths::default_socket, Ok)?,
        socket_mode,
        metrics_listen,
        state_dir: state_dir.map_or_else(paths::default_state_dir, Ok)?,
        vty_dir: vty_dir.filter(|path| !path.as_os_str().is_empty()),
        load_balancer_class: lb_class.filter(|class| !class.is_empty()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(standalone::run(options))?;
    Ok(ExitCode::SUCCESS)
}
