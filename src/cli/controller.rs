//! `fairway controller`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::cluster::ClusterArguments;
use crate::kubernetes::{ControllerOptions, run_controller};

/// Threads: the loop has one, requests and answers have the other.
const THREADS: usize = 2;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway controller                         in a pod, as deploy/ runs it
  fairway controller --kubeconfig admin.conf --namespace metallb-system
  fairway controller --lb-class example.com/fairway

Any number of controllers may run; one of them leads.")]
pub(super) struct ControllerArguments {
    #[command(flatten)]
    cluster: ClusterArguments,
}

pub(super) fn run(arguments: &ControllerArguments) -> Result<ExitCode> {
    let ControllerArguments { cluster } = arguments;
    let options = ControllerOptions {
        connection: cluster.connection(),
        load_balancer_class: cluster.load_balancer_class(),
        pod: cluster.pod(),
        metrics_listen: cluster.metrics_listen,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(run_controller(options))?;
    Ok(ExitCode::SUCCESS)
}
