//! `fairway proxy`: the service proxy of this node; `plan`, what it would have in the kernel, without a daemon; and
//! `cleanup`, which takes away what it has there.

mod cleanup;
mod options;
mod plan;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};

use self::cleanup::CleanupArguments;
use self::options::OverrideArguments;
use self::plan::ProxyPlanArguments;
use super::ask::RUN_DIR;
use super::host::{node_name, run_daemon};
use super::{duration, paths};
use crate::admin::SocketMode;
use crate::kubernetes::ConnectionOptions;
use crate::proxy::{self, ProxyOptions, ServiceSource};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  fairway proxy                              in a pod, as deploy/ runs it
  fairway proxy --kubeconfig /etc/kubernetes/proxy.conf --node node-1
  fairway proxy --config-file /var/lib/kube-proxy/config.conf --kubeconfig proxy.conf
  fairway proxy --config /etc/fairway/services --cluster-cidr 10.1.0.0/16
  fairway proxy --take-over kube-proxy --config-file config.conf
  fairway proxy plan --config services.yaml --node node-1
  fairway proxy cleanup

It serves Services on this node, as kube-proxy's IPVS mode does: those of the API server, or with
--config those of files. When it ends, the kernel keeps what it has. Stop kube-proxy first. An option
given here goes over the same one of a KubeProxyConfiguration."
)]
pub(in crate::cli) struct ProxyArguments {
    #[command(subcommand)]
    command: Option<ProxyCommand>,

    /// A file or folder with Services, EndpointSlices, Nodes and a KubeProxyConfiguration; may be given more than
    /// once, or as a list separated by commas [default: the API server]
    #[arg(long, value_name = "PATH", env = "FAIRWAY_CONFIG", value_delimiter = ',')]
    config: Vec<PathBuf>,

    /// A file with a KubeProxyConfiguration, as kube-proxy's --config; followed as it changes, but for the
    /// addresses of servers
    #[arg(long, value_name = "PATH", env = "FAIRWAY_CONFIG_FILE")]
    config_file: Option<PathBuf>,

    /// The kubeconfig for the Kubernetes API [default: the pod's service account, then KUBECONFIG, then
    /// ~/.kube/config]
    #[arg(long, value_name = "PATH", env = "FAIRWAY_KUBECONFIG", conflicts_with = "config")]
    kubeconfig: Option<PathBuf>,

    /// How long objects stay in force when the Kubernetes API has none of their kind any more without having
    /// deleted them one by one: 0s to 24h
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5m",
        env = "FAIRWAY_EMPTY_LIST_HOLD",
        value_parser = duration::parse,
    )]
    empty_list_hold: Duration,

    /// Where the last known state of the cluster is kept for a start without the Kubernetes API
    /// [default: /var/lib/fairway/proxy, or without root $XDG_STATE_HOME/fairway/proxy]
    #[arg(long, value_name = "PATH", env = "FAIRWAY_PROXY_STATE_DIR")]
    state_dir: Option<PathBuf>,

    /// The mode of its socket, proxy.sock in --run-dir: 0600 for its user, 0660 for its group as well, such as a speaker
    /// that follows it
    #[arg(long, value_name = "MODE", default_value = "0600", env = "FAIRWAY_SOCKET_MODE")]
    socket_mode: SocketMode,

    /// The name of this node, which endpoints have as their nodeName [default: the host name]
    #[arg(long, env = "FAIRWAY_NODE", alias = "hostname-override")]
    node: Option<String>,

    #[command(flatten)]
    kernel: KernelArguments,
}

/// What becomes of the kernel, wherever Services come from.
#[derive(Debug, Args)]
pub(in crate::cli) struct KernelArguments {
    /// The folder of the records of what is Fairway's in the kernel; a reboot must empty it
    #[arg(long, value_name = "PATH", default_value = RUN_DIR, env = "FAIRWAY_RUN_DIR")]
    run_dir: PathBuf,

    /// How long TCP connections to an endpoint that has left may go on; 0s to 24h
    #[arg(
        long,
        value_name = "TIME",
        default_value = "15m",
        value_parser = duration::parse,
        env = "FAIRWAY_DRAIN_LIMIT"
    )]
    drain_limit: Duration,

    /// Take the node over from this proxy: wait until it is removed from the node, adopt its virtual servers
    /// with their connections, then remove its rules, sets and interface
    #[arg(long, value_enum, value_name = "PROXY", env = "FAIRWAY_TAKE_OVER")]
    take_over: Option<TakeOver>,

    #[command(flatten)]
    overrides: OverrideArguments,
}

impl KernelArguments {
    /// The options of a proxy with these Services.
    pub(in crate::cli) fn options(
        self,
        services: ServiceSource,
        node: String,
        socket_mode: SocketMode,
    ) -> ProxyOptions {
        ProxyOptions {
            socket_mode,
            services,
            config_file: None,
            node,
            run_dir: self.run_dir,
            drain_limit: self.drain_limit,
            takes_over: self.take_over.is_some(),
            overrides: self.overrides.overrides(),
        }
    }
}

/// What can be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TakeOver {
    /// In any of its modes
    KubeProxy,
}

#[derive(Debug, Subcommand)]
enum ProxyCommand {
    /// Show the virtual servers, filter rules and addresses that resource files lead to, or what an edit changes
    Plan(ProxyPlanArguments),
    /// Remove from the kernel what the proxy has put there, and nothing else
    Cleanup(CleanupArguments),
}

pub(in crate::cli) fn run(arguments: ProxyArguments) -> Result<ExitCode> {
    match &arguments.command {
        Some(ProxyCommand::Plan(arguments)) => return plan::run(arguments),
        Some(ProxyCommand::Cleanup(arguments)) => return cleanup::run(arguments),
        None => {}
    }
    let path = |path: Option<PathBuf>| path.filter(|it| !it.as_os_str().is_empty());
    let config: Vec<PathBuf> =
        arguments.config.into_iter().filter(|it| !it.as_os_str().is_empty()).collect();
    let services = if config.is_empty() {
        let state_dir = match path(arguments.state_dir) {
            Some(state_dir) => state_dir,
            None => paths::default_state_dir()?.join("proxy"),
        };
        let kubeconfig = path(arguments.kubeconfig);
        let connection = ConnectionOptions { kubeconfig, namespace: None };
        ServiceSource::Cluster { connection, empty_list_hold: arguments.empty_list_hold, state_dir }
    } else {
        ServiceSource::Files(config, None)
    };
    let node = node_name(arguments.node.as_deref())?;
    let options = arguments.kernel.options(services, node, arguments.socket_mode);
    run_daemon(proxy::run(ProxyOptions { config_file: path(arguments.config_file), ..options }))
}
