//! The command line: parses arguments, returns an exit code.
//!
//! Exit codes: 0 done; 1 it could not (the reason on stderr); 2 wrong usage.

mod ask;
mod attributes;
mod backend;
mod capabilities;
mod check;
mod clear;
mod cluster;
mod cni;
mod complete;
mod completions;
mod controller;
mod crds;
mod demo;
mod drain;
mod dump;
mod duration;
mod explain;
mod for_metallb;
mod frr_agent;
mod frr_forget;
mod host;
mod import;
mod ipam;
mod kubectl;
mod layer2;
mod man;
mod members;
mod memory;
mod offline;
mod output;
mod paths;
mod plan;
mod program;
mod proxy;
mod reload;
mod render;
mod run;
mod show;
mod speaker;
mod state_dir;
mod support;
mod top;
mod words;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use fairway_ground::printable;

use crate::admin::client::ClientError;
use crate::build_info;
use crate::spare_memory;
use crate::telemetry::{self, LogFormat, LogLevel};

/// A BGP-first routing daemon and load balancer.
#[derive(Debug, Parser)]
#[command(name = "fairway", version = build_info::version(), propagate_version = true, infer_subcommands = true)]
#[command(after_help = "Examples:
  fairway demo                               see it work, no root needed
  fairway run --config /etc/fairway          announce the services in these files
  fairway show bgp summary                   ask the running daemon
  fairway top                                watch it
  fairway explain service shop/web           why it has this address, and which peers have it
  fairway clear bgp 192.0.2.1 soft           exchange all routes again, without a reset
  fairway reload                             read all files again
  fairway drain --wait 30s                   move traffic elsewhere before maintenance
  fairway check /etc/fairway                 find faults before applying files
  fairway plan --config new --against old    what an edit does to addresses, routes and sessions
  fairway render --config /etc/fairway       the configuration for FRR, with `--bgp frr`")]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// The level of the log on stderr
    #[arg(long, value_enum, default_value = "info", global = true, env = "FAIRWAY_LOG_LEVEL")]
    log_level: LogLevel,

    /// The format of the log
    #[arg(long, value_enum, default_value = "text", global = true, env = "FAIRWAY_LOG_FORMAT")]
    log_format: LogFormat,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Announce the services in files, and follow the files as they change
    Run(Box<run::RunArguments>),
    /// Kubernetes: assign addresses to Services
    Controller(controller::ControllerArguments),
    /// Kubernetes: announce Services from this node
    Speaker(Box<speaker::SpeakerArguments>),
    /// Query the daemon on this machine
    Show(show::ShowArguments),
    /// Watch the node: sessions, Services, pools, the local segment, events
    Top(top::TopArguments),
    /// Ask the daemon for the reason of a state
    Explain(explain::ExplainArguments),
    /// Reset a session, or refresh its routes
    Clear(clear::ClearArguments),
    /// Read all files of a running daemon again
    Reload(reload::ReloadArguments),
    /// Take this node out of service without losing a packet, or bring it back
    Drain(drain::DrainArguments),
    /// The last messages of a neighbor, as MRT, pcap or JSON; or all routes
    Dump(dump::DumpArguments),
    /// Collect what is needed to find out what is wrong, without passwords, in a file
    Support(support::SupportArguments),
    /// Ask all nodes of a cluster: `kubectl fairway`
    Kubectl(kubectl::KubectlArguments),
    /// Find faults in resource files, without a daemon
    Check(check::CheckArguments),
    /// Show what resource files lead to, or what an edit changes, without a daemon
    Plan(plan::PlanArguments),
    /// Serve the Services in files on this node, in place of kube-proxy
    Proxy(proxy::ProxyArguments),
    /// Addresses for Pods: show and check Calico's objects, run cases of operations
    Ipam(ipam::IpamArguments),
    /// Translate the configuration of FRR, BIRD, keepalived, Cilium, Calico or frr-k8s into resources
    Import(import::ImportArguments),
    /// Print the configuration that FRR would get, without a daemon
    Render(render::RenderArguments),
    /// Run two daemons on loopback: sessions come up, services arrive and leave
    Demo(demo::DemoArguments),
    /// Print the CustomResourceDefinitions of all kinds, for kubectl
    Crds(crds::CrdsArguments),
    /// Relay FRR's sockets to a Fairway in another container
    FrrAgent(frr_agent::FrrAgentArguments),
    /// Remove Fairway's configuration from FRR, without a daemon
    FrrForget(frr_forget::FrrForgetArguments),
    /// Prepare the state folder for the daemon's user
    StateDir(state_dir::StateDirArguments),
    /// Print what a word may be completed to: the scripts of `fairway completions` call it
    #[command(name = "__complete", hide = true)]
    Complete(complete::CompleteArguments),
    /// Print completions for a shell
    Completions(completions::CompletionsArguments),
    /// Print man pages, or write them as files
    Man(man::ManArguments),
}

/// Runs the command of this process, which was built from `commit`. `give_back_memory` returns what a thread has freed to
/// the kernel.
pub fn main(commit: &'static str, give_back_memory: fn()) -> ExitCode {
    build_info::set_commit(commit);
    spare_memory::set_give_back(give_back_memory);
    let Cli { command, log_level, log_format } = match kubectl::as_plugin() {
        Some(arguments) => Cli {
            command: Command::Kubectl(arguments),
            log_level: LogLevel::Warn,
            log_format: LogFormat::Text,
        },
        None => Cli::parse(),
    };
    let _log = telemetry::start(log_level, log_format);
    capabilities::raise();
    let outcome = match command {
        Command::Run(arguments) => run::run(*arguments),
        Command::Controller(arguments) => controller::run(&arguments),
        Command::Speaker(arguments) => speaker::run(*arguments),
        Command::Show(arguments) => show::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Clear(arguments) => clear::run(&arguments),
        Command::Reload(arguments) => reload::run(&arguments),
        Command::Drain(arguments) => drain::run(&arguments),
        Command::Dump(arguments) => dump::run(&arguments),
        Command::Support(arguments) => support::run(&arguments),
        Command::Kubectl(arguments) => kubectl::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Proxy(arguments) => proxy::run(arguments),
        Command::Ipam(arguments) => ipam::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Render(arguments) => render::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Crds(arguments) => crds::run(&arguments),
        Command::FrrAgent(arguments) => frr_agent::run(arguments),
        Command::FrrForget(arguments) => frr_forget::run(arguments),
        Command::StateDir(arguments) => state_dir::run(arguments),
        Command::Complete(arguments) => complete::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, &mut Cli::command()),
        Command::Man(arguments) => man::run(&arguments, Cli::command()),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            output::say(&format!("fairway: {}", reason(&error)));
            ExitCode::FAILURE
        }
    }
}

/// In one line, but for the daemon's answers, which may have several.
fn reason(error: &anyhow::Error) -> String {
    match error.downcast_ref() {
        Some(ClientError::Refused(why)) => why.clone(),
        _ => printable(&format!("{error:#}")).into_owned(),
    }
}
