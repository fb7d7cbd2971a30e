//! `kubectl fairway`: what all nodes of a cluster say, side by side.
//!
//! The same program is a plugin of kubectl when it is called kubectl-fairway.

mod drain;
mod questions;
mod yaml;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};

use super::{duration, output};
use crate::build_info;
use crate::kubernetes::UserOptions;

/// The name under which kubectl finds a plugin that is called `kubectl fairway`.
const PLUGIN: &str = "kubectl-fairway";

/// Ask Fairway on all nodes of the cluster.
#[derive(Debug, Parser)]
#[command(name = PLUGIN, bin_name = "kubectl fairway", version = build_info::version(), infer_subcommands = true)]
struct Plugin {
    #[command(flatten)]
    arguments: KubectlArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Asks the node API (APIService v1alpha1.nodes.fairway.dev), which the chart value nodeApi.enabled or the component \
deploy/components/node-api installs. The rights are those of the user: the ClusterRole fairway-node-viewer reads, \
fairway-node-operator drains as well. A node without an answer is named in the output, and the exit code is 1.

As a plugin of kubectl: ln -s \"$(command -v fairway)\" /usr/local/bin/kubectl-fairway

Examples:
  kubectl fairway peers                    the sessions of all nodes
  kubectl fairway peers --node worker-1 -o wide
  kubectl fairway services                 which nodes announce which Services
  kubectl fairway routes 198.51.100.10/32  which nodes have a route
  kubectl fairway explain service shop/web
  kubectl fairway check                    faults of the resources, as the nodes see them
  kubectl fairway drain worker-1 --wait 1m")]
pub(super) struct KubectlArguments {
    #[command(subcommand)]
    command: KubectlCommand,

    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Subcommand)]
enum KubectlCommand {
    /// The sessions of each node with its routers
    Peers,
    /// The routes, and which nodes have them
    Routes(RoutesArguments),
    /// The Services, their addresses, and which nodes announce them
    Services,
    /// The pools, and how much of them is in use
    Pools,
    /// The reason of a state, as each node sees it
    Explain(ExplainArguments),
    /// The faults of the resources in the cluster; exit code 1 if there are any
    Check,
    /// Take a node out of service without losing a packet, or bring it back
    Drain(drain::DrainArguments),
}

#[derive(Debug, Args)]
struct RoutesArguments {
    /// Only the routes to this prefix, or to the longest one around this address
    #[arg(value_name = "PREFIX")]
    prefix: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl fairway explain service shop/web
  kubectl fairway explain peer tor-1
  kubectl fairway explain peer tor-1 --node worker-1
  kubectl fairway explain prefix 198.51.100.10/32 -o wide")]
struct ExplainArguments {
    /// The words of `fairway explain`: service, peer, address, prefix, pool or node, and a name
    #[arg(value_name = "WORD", required = true)]
    words: Vec<String>,
}

/// How the answers are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// More columns, and all names of nodes
    Wide,
    Json,
    Yaml,
}

/// Those of kubectl, and a choice of nodes.
#[derive(Debug, Args)]
struct Options {
    /// Only this node; may be given more than once
    #[arg(long = "node", value_name = "NODE", global = true)]
    nodes: Vec<String>,

    /// The output: a table for people, or what each node answered
    #[arg(short, long, value_enum, global = true)]
    output: Option<Format>,

    /// The kubeconfig [default: KUBECONFIG, then ~/.kube/config, then the pod's service account]
    #[arg(long, value_name = "PATH", global = true)]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,

    /// The user to act as
    #[arg(long = "as", value_name = "USER", global = true)]
    acting_as: Option<String>,

    /// A group to act as; may be given more than once
    #[arg(long = "as-group", value_name = "GROUP", global = true, requires = "acting_as")]
    acting_groups: Vec<String>,

    /// How long an answer of the cluster may take, 0s to 24h
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::parse, global = true)]
    request_timeout: Duration,
}

impl Options {
    fn user(&self) -> UserOptions {
        UserOptions {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            acting_as: self.acting_as.clone(),
            acting_groups: self.acting_groups.clone(),
            request_timeout: self.request_timeout,
        }
    }
}

/// The arguments, if this process is the plugin.
pub(super) fn as_plugin() -> Option<KubectlArguments> {
    let program = std::env::args_os().next().map(PathBuf::from)?;
    (program.file_name()? == PLUGIN).then(|| Plugin::parse().arguments)
}

pub(super) fn run(arguments: &KubectlArguments) -> Result<ExitCode> {
    let KubectlArguments { command, options } = arguments;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start")?;
    let acting = async {
        match command {
            KubectlCommand::Drain(arguments) => drain::run(arguments, options).await,
            KubectlCommand::Peers => questions::peers(options).await,
            KubectlCommand::Routes(arguments) => {
                questions::routes(arguments.prefix.as_deref(), options).await
            }
            KubectlCommand::Services => questions::services(options).await,
            KubectlCommand::Pools => questions::pools(options).await,
            KubectlCommand::Explain(arguments) => {
                questions::explain(&arguments.words, options).await
            }
            KubectlCommand::Check => questions::check(options).await,
        }
    };
    runtime.block_on(acting)
}

/// Prints JSON as it is, or as YAML.
fn print_value(value: &serde_json::Value, format: Format) -> Result<()> {
    match format {
        Format::Yaml => output::print(&yaml::text(value)?),
        Format::Json | Format::Wide => output::print_json(&format!("{value:#}\n")),
    }
}
