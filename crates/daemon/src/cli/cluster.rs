//! What `fairway controller` and `fairway speaker` have in common on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use fairway_cluster::OwnPod;

use super::duration;
use super::host::filled;
use crate::http_server::HttpListen;
use crate::kubernetes::ConnectionOptions;
use crate::metrics::SecureOptions;

#[derive(Debug, Args)]
pub(super) struct ClusterArguments {
    /// The kubeconfig for the Kubernetes API [default: the pod's service account, then KUBECONFIG, then
    /// ~/.kube/config]
    #[arg(long, value_name = "PATH", env = "FAIRWAY_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,

    /// The namespace of BGPPeers, IPAddressPools and the other kinds [default: the pod's own namespace, else
    /// metallb-system]
    #[arg(long, value_name = "NAMESPACE", env = "FAIRWAY_NAMESPACE")]
    namespace: Option<String>,

    /// How long objects stay in force when the Kubernetes API has none of their kind any more without having
    /// deleted them one by one, or when their CustomResourceDefinition is removed: 0s to 24h. With 0s they go at
    /// once
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5m",
        env = "FAIRWAY_EMPTY_LIST_HOLD",
        value_parser = duration::parse,
    )]
    pub(super) empty_list_hold: Duration,

    /// The name of this pod: it owns the status objects, which are deleted with it
    #[arg(long, value_name = "NAME", env = "FAIRWAY_POD", requires = "pod_uid")]
    pod: Option<String>,

    /// The metadata.uid of this pod
    #[arg(long, value_name = "UID", env = "FAIRWAY_POD_UID", requires = "pod")]
    pod_uid: Option<String>,

    /// Serve /metrics with TLS on this address, `:PORT` for all addresses, or `none`: for clients with a token
    /// that the Kubernetes API accepts and whose role may `get` the path /metrics. The port of
    /// --metrics-listen has only /healthz and /readyz then
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "none",
        env = "FAIRWAY_METRICS_SECURE_LISTEN"
    )]
    metrics_secure_listen: HttpListen,

    /// The folder with the certificate for it, tls.crt and tls.key; read again when they change
    /// [default: a self-signed certificate]
    #[arg(long, value_name = "DIR", env = "FAIRWAY_METRICS_CERT_DIR")]
    metrics_cert_dir: Option<PathBuf>,

    /// Serve the node API, which `kubectl fairway` asks, on this address, `:PORT` for all addresses, or `none`. A
    /// controller answers the API server, a speaker the controllers; both only with the right certificate
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "none",
        env = "FAIRWAY_NODE_API_LISTEN"
    )]
    pub(super) node_api_listen: HttpListen,
}

impl ClusterArguments {
    /// Without empty values, which manifests set for an unset value.
    pub(super) fn connection(&self) -> ConnectionOptions {
        let kubeconfig = self.kubeconfig.clone().filter(|path| !path.as_os_str().is_empty());
        ConnectionOptions { kubeconfig, namespace: filled(self.namespace.as_deref()) }
    }

    pub(super) fn secure_metrics(&self) -> SecureOptions {
        let folder = self.metrics_cert_dir.clone().filter(|path| !path.as_os_str().is_empty());
        SecureOptions { listen: self.metrics_secure_listen, certificate_folder: folder }
    }

    pub(super) fn pod(&self) -> Option<OwnPod> {
        let (name, uid) = (filled(self.pod.as_deref())?, filled(self.pod_uid.as_deref())?);
        Some(OwnPod { name, uid })
    }
}
