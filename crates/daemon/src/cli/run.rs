//! `fairway run`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::cni::CniArguments;
use super::host::{HostArguments, run_daemon};
use super::members::Role;
use super::proxy::KernelArguments;
use crate::proxy::{SOCKET, ServiceSource};
use crate::standalone::{self, Options};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway run --config examples/quickstart
  fairway run --config peers.yaml --config services/ --bgp-listen none
  fairway run --config /etc/fairway --vty-dir /run/fairway/vty
  fairway run --config /etc/fairway --bgp frr
  fairway run --config /etc/fairway --proxy
  fairway run --config /etc/fairway --ipam
  kill -HUP PID                              read all files again")]
pub(super) struct RunArguments {
    /// A file, or a folder of *.yaml, *.yml and *.json; may be given more than once, or as a list separated
    /// by commas
    #[arg(
        long,
        required = true,
        value_name = "PATH",
        env = "FAIRWAY_CONFIG",
        value_delimiter = ','
    )]
    config: Vec<PathBuf>,

    #[command(flatten)]
    host: HostArguments,

    /// Also deliver the packets to Services, as `fairway proxy` does: to the addresses that they have and are
    /// assigned. Needs root; endpoints come from EndpointSlices
    #[arg(long, env = "FAIRWAY_PROXY")]
    proxy: bool,

    #[command(flatten)]
    kernel: KernelArguments,

    #[command(flatten)]
    cni: CniArguments,
}

pub(super) fn run(arguments: RunArguments) -> Result<ExitCode> {
    let RunArguments { config, host, proxy, kernel, cni } = arguments;
    let mut host = host.options(Role::Standalone)?;
    let services = ServiceSource::Files(config.clone(), None);
    let proxy = proxy.then(|| kernel.options(services, host.node.clone(), host.socket_mode));
    if let Some(proxy) = &proxy {
        host.proxy_socket.get_or_insert_with(|| proxy.run_dir.join(SOCKET));
    }
    let ipam = cni.options(&host);
    run_daemon(standalone::run(Options { host, config, proxy, ipam }))
}
