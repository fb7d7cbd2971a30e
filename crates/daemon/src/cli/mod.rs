//! The command line: words in, exit code out.
//!
//! Exit codes: 0 done; 1 it could not (the reason on stderr); 2 wrong usage.

mod ask;
mod backend;
mod capabilities;
mod check;
mod clear;
mod cluster;
mod completions;
mod controller;
mod crds;
mod demo;
mod drain;
mod duration;
mod explain;
mod frr_agent;
mod host;
mod man;
mod offline;
mod output;
mod paths;
mod plan;
mod render;
mod run;
mod show;
mod speaker;
mod state_dir;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::build_info;
use crate::telemetry::{self, LogFormat, LogLevel};

/// A BGP-first routing daemon and load balancer.
#[derive(Debug, Parser)]
#[command(name = "fairway", version = build_info::version(), propagate_version = true)]
#[command(after_help = "Examples:
  fairway demo                               see it work, no root needed
  fairway run --config /etc/fairway          announce what the files there say
  fairway show bgp summary                   ask the running daemon
  fairway explain service shop/web           why it has this address, and who was told
  fairway clear bgp 192.0.2.1 soft           have all routes said again
  fairway drain --wait 30s                   move traffic elsewhere before maintenance
  fairway check /etc/fairway                 find faults before they are applied
  fairway plan --config new --against old    what an edit does to addresses, routes and sessions
  fairway render --config /etc/fairway       what FRR would be told, with `--bgp frr`")]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// How much is logged, on stderr
    #[arg(long, value_enum, default_value = "info", global = true, env = "FAIRWAY_LOG_LEVEL")]
    log_level: LogLevel,

    /// How it is written
    #[arg(long, value_enum, default_value = "text", global = true, env = "FAIRWAY_LOG_FORMAT")]
    log_format: LogFormat,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Announce what resources in files say, and follow them as they change
    Run(run::RunArguments),
    /// Kubernetes: give Services their addresses
    Controller(controller::ControllerArguments),
    /// Kubernetes: announce Services from this node
    Speaker(speaker::SpeakerArguments),
    /// Ask the daemon on this machine
    Show(show::ShowArguments),
    /// Ask it why something is as it is
    Explain(explain::ExplainArguments),
    /// Begin a session anew, or have its routes said again
    Clear(clear::ClearArguments),
    /// Take this node out of service without losing a packet, or bring it back
    Drain(drain::DrainArguments),
    /// Find faults in resource files, without a daemon
    Check(check::CheckArguments),
    /// Say what resource files lead to, or what an edit of them does, without a daemon
    Plan(plan::PlanArguments),
    /// Print the configuration that FRR would be given, without a daemon
    Render(render::RenderArguments),
    /// Two daemons on loopback: sessions come up, services arrive and leave
    Demo(demo::DemoArguments),
    /// CustomResourceDefinitions of all kinds, for kubectl, on stdout
    Crds(crds::CrdsArguments),
    /// Hand FRR's sockets to a Fairway in another container
    FrrAgent(frr_agent::FrrAgentArguments),
    /// Make the state folder one that the daemon may write
    StateDir(state_dir::StateDirArguments),
    /// Completions for a shell, on stdout
    Completions(completions::CompletionsArguments),
    /// Man pages, on stdout or as files
    Man(man::ManArguments),
}

/// Runs the command of this process, which was built from `commit`.
pub fn main(commit: &'static str) -> ExitCode {
    build_info::set_commit(commit);
    let Cli { command, log_level, log_format } = Cli::parse();
    let _log = telemetry::start(log_level, log_format);
    capabilities::raise();
    let outcome = match command {
        Command::Run(arguments) => run::run(arguments),
        Command::Controller(arguments) => controller::run(&arguments),
        Command::Speaker(arguments) => speaker::run(arguments),
        Command::Show(arguments) => show::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Clear(arguments) => clear::run(&arguments),
        Command::Drain(arguments) => drain::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Render(arguments) => render::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Crds(arguments) => crds::run(&arguments),
        Command::FrrAgent(arguments) => frr_agent::run(arguments),
        Command::StateDir(arguments) => state_dir::run(arguments),
        Command::Completions(arguments) => completions::run(&arguments, &mut Cli::command()),
        Command::Man(arguments) => man::run(&arguments, Cli::command()),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("fairway: {error:#}");
            ExitCode::FAILURE
        }
    }
}
