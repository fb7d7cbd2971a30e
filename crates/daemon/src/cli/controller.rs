//! `fairway controller`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use fairway_cluster::DisruptionLimit;
use fairway_plan::report::DisruptionBudget;

use super::cluster::ClusterArguments;
use super::duration;
use super::host::{DaemonArguments, run_daemon};
use crate::http_server::HttpListen;
use crate::kubernetes::{AggregationOptions, ControllerOptions, WebhookOptions, run_controller};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway controller                         in a pod, as deploy/ runs it
  fairway controller --kubeconfig admin.conf --namespace metallb-system
  fairway controller --lb-class example.com/fairway
  fairway controller --ipam                  beside speakers with --ipam

Any number of controllers may run; one of them leads.")]
pub(super) struct ControllerArguments {
    #[command(flatten)]
    cluster: ClusterArguments,

    #[command(flatten)]
    daemon: DaemonArguments,

    /// Serve the validating webhook (HTTPS) on this address, `:PORT` for all addresses, or `none`
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "none",
        env = "FAIRWAY_WEBHOOK_LISTEN"
    )]
    webhook_listen: HttpListen,

    /// The name of the webhook's Service and of its ValidatingWebhookConfiguration; the certificate is in the
    /// Secret NAME-cert
    #[arg(
        long,
        value_name = "NAME",
        default_value = "fairway-webhook",
        env = "FAIRWAY_WEBHOOK_NAME"
    )]
    webhook_name: String,

    /// The webhook refuses the write of an object that disrupts more than is permitted. A list of what counts, as for
    /// `fairway plan --fail-on`: withdraw, reset and move, and behind them how many of all these are permitted
    /// [default: any]
    #[arg(long, value_name = "WHAT[,N]", env = "FAIRWAY_WEBHOOK_FAIL_ON")]
    webhook_fail_on: Option<DisruptionBudget>,

    /// The speakers have --ignore-exclude-lb: for --webhook-fail-on
    #[arg(long, env = "FAIRWAY_IGNORE_EXCLUDE_LB")]
    ignore_exclude_lb: bool,

    /// The name of the node API's Service; that of the speakers is NAME-speakers, and the certificates are in the
    /// Secrets NAME-cert and NAME-speakers-cert
    #[arg(
        long,
        value_name = "NAME",
        default_value = "fairway-node-api",
        env = "FAIRWAY_NODE_API_NAME"
    )]
    node_api_name: String,

    /// Take back addresses whose Pods are gone, empty blocks, and what nodes that are gone left behind, of the blocks
    /// that `fairway speaker --ipam` and Calico's nodes give addresses from
    #[arg(long, env = "FAIRWAY_IPAM")]
    ipam: bool,

    /// For how long an address has to be without its Pod before it is taken back; 0 for never, unless its node is gone
    #[arg(
        long,
        value_name = "TIME",
        default_value = "15m",
        env = "FAIRWAY_IPAM_GRACE",
        value_parser = duration::parse,
    )]
    ipam_grace: Duration,
}

pub(super) fn run(arguments: &ControllerArguments) -> Result<ExitCode> {
    let ControllerArguments { cluster, daemon, webhook_listen, webhook_name, .. } = arguments;
    let disruption_limit = arguments.webhook_fail_on.clone().map(|budget| DisruptionLimit {
        budget,
        ignore_exclude_label: arguments.ignore_exclude_lb,
    });
    run_daemon(run_controller(ControllerOptions {
        connection: cluster.connection(),
        load_balancer_class: daemon.load_balancer_class(),
        empty_list_hold: cluster.empty_list_hold,
        pod: cluster.pod(),
        metrics_listen: daemon.metrics_listen,
        secure_metrics: cluster.secure_metrics(),
        webhook: WebhookOptions {
            listen: *webhook_listen,
            name: webhook_name.clone(),
            disruption_limit,
        },
        node_api: AggregationOptions {
            listen: cluster.node_api_listen,
            name: arguments.node_api_name.clone(),
        },
        ipam_grace: arguments.ipam.then_some(arguments.ipam_grace),
    }))
}
