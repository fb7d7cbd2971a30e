//! `fairway controller`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::cluster::ClusterArguments;
use super::host::{DaemonArguments, run_daemon};
use crate::http_server::HttpListen;
use crate::kubernetes::{AggregationOptions, ControllerOptions, WebhookOptions, run_controller};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway controller                         in a pod, as deploy/ runs it
  fairway controller --kubeconfig admin.conf --namespace metallb-system
  fairway controller --lb-class example.com/fairway

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

    /// The name of the node API's Service; that of the speakers is NAME-speakers, and the certificates are in the
    /// Secrets NAME-cert and NAME-speakers-cert
    #[arg(
        long,
        value_name = "NAME",
        default_value = "fairway-node-api",
        env = "FAIRWAY_NODE_API_NAME"
    )]
    node_api_name: String,
}

pub(super) fn run(arguments: &ControllerArguments) -> Result<ExitCode> {
    let ControllerArguments { cluster, daemon, webhook_listen, webhook_name, node_api_name } =
        arguments;
    run_daemon(run_controller(ControllerOptions {
        connection: cluster.connection(),
        load_balancer_class: daemon.load_balancer_class(),
        empty_list_hold: cluster.empty_list_hold,
        pod: cluster.pod(),
        metrics_listen: daemon.metrics_listen,
        secure_metrics: cluster.secure_metrics(),
        webhook: WebhookOptions { listen: *webhook_listen, name: webhook_name.clone() },
        node_api: AggregationOptions {
            listen: cluster.node_api_listen,
            name: node_api_name.clone(),
        },
    }))
}
