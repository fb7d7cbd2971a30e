//! What `fairway run`, `fairway speaker` and `fairway controller` have in common on the command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use clap::{Args, ValueEnum};

use super::attributes::AttributeArguments;
use super::layer2::Layer2Arguments;
use super::members::{MemberArguments, Role};
use super::memory::MemoryLimit;
use super::{duration, paths};
use crate::admin::SocketMode;
use crate::host::host_name;
use crate::http_server::HttpListen;
use crate::metrics::PeerLabel;
use crate::options::{BackendOptions, HostOptions, ListenOption};
use crate::spare_memory;

/// Threads: one for the loop, one for sockets, the disk or a large file.
const THREADS: usize = 2;

/// Which backend speaks BGP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BackendChoice {
    /// Fairway itself
    Native,
    /// FRR on this machine, which Fairway configures over FRR's own sockets
    Frr,
}

/// Options of every daemon.
#[derive(Debug, Args)]
pub(super) struct DaemonArguments {
    /// Serve services of this loadBalancerClass instead of those without one
    #[arg(long, value_name = "CLASS", env = "FAIRWAY_LB_CLASS")]
    lb_class: Option<String>,

    /// Serve metrics and probes on this address, `:PORT` for all addresses, or `none`
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:7472",
        env = "FAIRWAY_METRICS_LISTEN"
    )]
    pub(super) metrics_listen: HttpListen,
}

impl DaemonArguments {
    pub(super) fn load_balancer_class(&self) -> Option<String> {
        filled(self.lb_class.as_deref())
    }
}

/// The label `peer` of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PeerLabelChoice {
    /// ADDRESS:PORT, as in MetalLB's modes native and FRR
    Metallb,
    /// The address alone, as in its mode frr-k8s
    #[value(name = "frr-k8s")]
    FrrK8s,
}

impl From<PeerLabelChoice> for PeerLabel {
    fn from(choice: PeerLabelChoice) -> Self {
        match choice {
            PeerLabelChoice::Metallb => Self::Metallb,
            PeerLabelChoice::FrrK8s => Self::FrrK8s,
        }
    }
}

/// Options of every daemon that has sessions with routers.
#[derive(Debug, Args)]
pub(super) struct HostArguments {
    /// The label `peer` of BGP metrics: that of the mode of MetalLB that dashboards were made for
    #[arg(
        long,
        value_enum,
        default_value = "metallb",
        value_name = "MODE",
        env = "FAIRWAY_PEER_LABEL"
    )]
    peer_label: PeerLabelChoice,

    #[command(flatten)]
    daemon: DaemonArguments,

    /// Serve the looking glass on this address, `:PORT` for all addresses, or `none`: a page about sessions, Services and
    /// routes, and birdwatcher's JSON. Read-only, and without a login: a loopback address, or behind a proxy that has one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "none", env = "FAIRWAY_UI_LISTEN")]
    ui_listen: HttpListen,

    /// The name of this node [default: the host name]
    #[arg(long, env = "FAIRWAY_NODE")]
    node: Option<String>,

    /// Which backend speaks BGP
    #[arg(long, value_enum, default_value = "native", env = "FAIRWAY_BGP")]
    bgp: BackendChoice,

    /// Accept BGP connections on this address, or `none`; may be given more than once [default: port 179 of
    /// both families; in a cluster only if a peer is passive or has a listenRange]
    #[arg(long, value_name = "ADDRESS:PORT", env = "FAIRWAY_BGP_LISTEN", value_delimiter = ',')]
    bgp_listen: Vec<ListenOption>,

    /// Run BFD with real-time priority (SCHED_FIFO) and with locked memory; if the kernel refuses, a warning
    /// is logged and BFD runs without
    #[arg(long, env = "FAIRWAY_BFD_REALTIME")]
    bfd_realtime: bool,

    /// The most memory that this process takes: above it the neighbor with the most routes loses its session, with
    /// Cease 6/8, for 30 s at least. `none`, or 64Mi or more [default: 80 % of the limit of the cgroup, if that is
    /// 64Mi or more; else none]
    #[arg(long, value_name = "SIZE", env = "FAIRWAY_MEMORY_LIMIT")]
    memory_limit: Option<MemoryLimit>,

    /// With `--bgp frr`: the folder with FRR's sockets bgpd.vty, bfdd.vty and so on
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/run/frr",
        env = "FAIRWAY_FRR_SOCKET_DIR"
    )]
    frr_socket_dir: PathBuf,

    /// With `--bgp frr`: the shortest time between two changes of FRR's configuration; the first change is
    /// applied at once, later ones are collected meanwhile
    #[arg(
        long,
        value_name = "TIME",
        default_value = "100ms",
        value_parser = duration::parse,
        env = "FAIRWAY_FRR_MIN_INTERVAL"
    )]
    frr_min_interval: Duration,

    #[command(flatten)]
    attributes: AttributeArguments,

    #[command(flatten)]
    layer2: Layer2Arguments,

    #[command(flatten)]
    members: MemberArguments,

    /// The socket that `fairway show` connects to [default: /run/fairway/fairway.sock, or without root
    /// $XDG_RUNTIME_DIR/fairway.sock]
    #[arg(long, value_name = "PATH", env = "FAIRWAY_SOCKET")]
    socket: Option<PathBuf>,

    /// The mode of the sockets: 0600 for the daemon's user, 0660 for its group as well; access to them also
    /// allows clearing sessions
    #[arg(long, value_name = "MODE", default_value = "0600", env = "FAIRWAY_SOCKET_MODE")]
    socket_mode: SocketMode,

    /// Where state is kept for the next start: addresses of services, routes, the last known state of the
    /// cluster [default: /var/lib/fairway, or without root $XDG_STATE_HOME/fairway]
    #[arg(long, value_name = "PATH", env = "FAIRWAY_STATE_DIR")]
    state_dir: Option<PathBuf>,

    /// The socket of the service proxy of this node: an address is announced only while the proxy delivers packets to
    /// it; what it said last stands while it does not answer [default: none; with `fairway run --proxy` its own]
    #[arg(long, value_name = "PATH", env = "FAIRWAY_PROXY_SOCKET")]
    proxy_socket: Option<PathBuf>,

    /// Open FRR's sockets bgpd.vty, bfdd.vty and zebra.vty in this folder, read-only, so that
    /// `vtysh --vty_socket DIR` and exporters for FRR work [default: none]
    #[arg(long, value_name = "DIR", env = "FAIRWAY_VTY_DIR")]
    vty_dir: Option<PathBuf>,
}

impl HostArguments {
    /// With the defaults of this machine. An empty value, which manifests set for an unset value, counts as
    /// unset.
    pub(super) fn options(self, role: Role) -> Result<HostOptions> {
        let backend = self.backend();
        let members = self.members.options(role);
        let path = |path: Option<PathBuf>| path.filter(|it| !it.as_os_str().is_empty());
        Ok(HostOptions {
            node: node_name(self.node.as_deref())?,
            load_balancer_class: self.daemon.load_balancer_class(),
            backend,
            attribute_defaults: self.attributes.defaults(),
            layer2_excluded: self.layer2.excluded()?,
            layer2_refresh: self.layer2.refresh(),
            members,
            socket: path(self.socket).map_or_else(paths::default_socket, Ok)?,
            socket_mode: self.socket_mode,
            proxy_socket: path(self.proxy_socket),
            vty_dir: path(self.vty_dir),
            metrics_listen: self.daemon.metrics_listen,
            ui_listen: self.ui_listen,
            peer_label: self.peer_label.into(),
            state_dir: path(self.state_dir).map_or_else(paths::default_state_dir, Ok)?,
        })
    }

    /// Which backend speaks BGP. An option that it does not support is wrong usage.
    fn backend(&self) -> BackendOptions {
        let bgp_listen = self.bgp_listen.clone();
        if self.bgp == BackendChoice::Native {
            return BackendOptions::Native {
                bgp_listen,
                bfd_realtime: self.bfd_realtime,
                memory_limit_bytes: MemoryLimit::in_force(self.memory_limit),
            };
        }
        if !bgp_listen.is_empty() {
            wrong_usage(
                "--bgp-listen cannot be used with --bgp frr: FRR's bgpd opens its own listening \
                 sockets; set its options -l and -p in /etc/frr/daemons",
            );
        }
        if self.memory_limit.is_some() {
            wrong_usage(
                "--memory-limit cannot be used with --bgp frr: learned routes are in FRR's bgpd, not in \
                 this process",
            );
        }
        if self.bfd_realtime {
            wrong_usage(
                "--bfd-realtime cannot be used with --bgp frr: BFD runs in FRR's bfdd, \
                 not by this process",
            );
        }
        BackendOptions::Frr {
            socket_dir: self.frr_socket_dir.clone(),
            min_interval: self.frr_min_interval,
        }
    }
}

/// Where FRR is, for the commands that speak to nothing else.
#[derive(Debug, Args)]
pub(super) struct FrrSockets {
    /// Where FRR has its own sockets
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/run/frr",
        env = "FAIRWAY_FRR_SOCKET_DIR"
    )]
    pub(super) frr_socket_dir: PathBuf,
}

/// The name of this node, or of the machine.
pub(super) fn node_name(named: Option<&str>) -> Result<String> {
    let name = filled(named).or_else(host_name);
    name.context("the machine has no host name; set the node name with --node")
}

/// A value that is not empty.
pub(super) fn filled(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Ends the process with exit code 2.
pub(super) fn wrong_usage(message: &str) -> ! {
    clap::Error::raw(ErrorKind::ArgumentConflict, format!("{message}\n")).exit()
}

/// Runs a daemon to its end.
pub(super) fn run_daemon<E>(daemon: impl Future<Output = Result<(), E>>) -> Result<ExitCode>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .on_thread_park(spare_memory::thread_is_idle)
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(daemon)?;
    Ok(ExitCode::SUCCESS)
}
