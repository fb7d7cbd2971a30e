//! `fairway ipam`: addresses for Pods.

mod check;
mod install_plugin;
mod read;
mod release;
mod replay;
mod show;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway ipam show                          how full pools of the cluster are
  fairway ipam show ipam/                    the same, from files with Calico's objects
  fairway ipam show --ip 10.244.12.7 ipam/   who has an address
  fairway ipam check ipam/ pods.yaml         what does not fit together
  fairway ipam replay --json < case.json     what a case of operations comes to")]
pub(super) struct IpamArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show how full pools and blocks are, and who has an address
    Show(show::ShowArguments),
    /// Find what does not fit together in Calico's objects
    Check(check::CheckArguments),
    /// Give addresses back by hand
    Release(release::ReleaseArguments),
    /// Copy the CNI plugin to where the container runtime looks for it; run by root
    InstallPlugin(install_plugin::InstallPluginArguments),
    /// Run a case of operations on blocks in memory
    Replay(replay::ReplayArguments),
}

pub(super) fn run(arguments: &IpamArguments) -> Result<ExitCode> {
    match &arguments.command {
        Command::Show(arguments) => show::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Release(arguments) => release::run(arguments),
        Command::InstallPlugin(arguments) => install_plugin::run(arguments),
        Command::Replay(arguments) => replay::run(arguments),
    }
}
