//! How does a webhook run beside a speaker? In `fairway controller`, which keeps its certificate in a real API server with
//! everything of `deploy/`. The clients call it where it listens; the API server would at the address of a Service, which
//! nothing here routes. Used by the case of all floods.

mod client;
mod flood;
mod reviews;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::bench::Bench;
use crate::stage::free_port;
use client::Client;
use flood::Flood;
use lab::cluster::{self, Cluster};
use lab::fairway;
use lab::namespace::Network;
use lab::process::Process;
use lab::usage::Usage;
use lab::wait::wait_until;
use reviews::Reviews;

const NAME: &str = "fairway-webhook";
const NAMESPACE: &str = "metallb-system";

/// Until the controller leads, has made the certificate and listens.
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// The controller with its webhook. It ends before its API server.
pub(crate) struct Webhook {
    controller: Process,
    client: Client,
    /// Where the controller serves its metrics.
    pub(crate) metrics: SocketAddr,
    log: PathBuf,
    _cluster: Cluster,
}

impl Webhook {
    /// Starts both, and waits until the webhook listens.
    pub(crate) fn start(bench: &Bench) -> Result<Self> {
        let assets = cluster::assets()?;
        let assets =
            assets.context("there is no API server here; run: scripts/kube-apiserver.sh")?;
        let cluster = Cluster::start(&assets)?;
        for words in [["-k", "deploy"], ["-f", "deploy/components/webhook/webhook.yaml"]] {
            let [option, place] = words;
            let place = lab::checkout().join(place);
            let place = place.to_str().context("a path that is text")?;
            cluster.kubectl(&["apply", option, place], None)?;
        }
        let wait = ["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"];
        cluster.kubectl(&wait, None)?;

        let [webhook, metrics] = [local(free_port()?), local(free_port()?)];
        let log = bench.directory.join("controller.log");
        let kubeconfig = cluster.kubeconfig("controller", cluster::TOKEN)?;
        let arguments = [
            "controller".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--namespace={NAMESPACE}"),
            format!("--webhook-listen={webhook}"),
            format!("--webhook-name={NAME}"),
            format!("--metrics-listen={metrics}"),
            "--log-level=info".to_owned(),
        ];
        let mut controller = Process::spawn(&Network::Own, &fairway::program(), &arguments, &log)?;
        let authority = wait_until("the webhook has a certificate", START_LIMIT, || {
            controller.check_running()?;
            authority(&cluster)
        })?;
        let client = Client::new(webhook, &authority)?;
        wait_until("the webhook listens", START_LIMIT, || {
            controller.check_running()?;
            std::net::TcpStream::connect(webhook).context("connecting to the webhook")
        })?;
        Ok(Self { controller, client, metrics, log, _cluster: cluster })
    }

    /// Floods it.
    pub(crate) fn flood(&self) -> Result<Flood> {
        Flood::start(&self.client)
    }

    /// Sends it a true review a second.
    pub(crate) fn review(&self, bench: &Bench) -> Reviews {
        Reviews::start(bench.runtime(), self.client.clone())
    }

    pub(crate) fn usage(&mut self) -> Result<Usage> {
        self.controller.check_running()?;
        Usage::of(self.controller.id())
    }

    /// What the controller has logged.
    pub(crate) fn log(&self) -> Result<String> {
        fs::read_to_string(&self.log).context("the log of the controller")
    }

    /// SIGTERM; an exit code other than 0 is a fault.
    pub(crate) fn stop(&mut self) -> Result<()> {
        let status = self.controller.stop(STOP_LIMIT)?;
        ensure!(status.success(), "after SIGTERM the controller ended with {status}");
        Ok(())
    }
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// The CA that the API server would trust, as PEM.
fn authority(cluster: &Cluster) -> Result<String> {
    let template = "go-template={{(index .webhooks 0).clientConfig.caBundle | base64decode}}";
    let kind = "validatingwebhookconfiguration";
    let text = cluster.kubectl(&["get", kind, NAME, "-o", template], None)?;
    ensure!(text.contains("BEGIN CERTIFICATE"), "no CA yet: {text}");
    Ok(text)
}
