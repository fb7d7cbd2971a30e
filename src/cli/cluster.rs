//! What `fairway controller` and `fairway speaker` have in common on the command line.

use std::path::PathBuf;

use clap::Args;

use crate::cluster::OwnPod;
use crate::kubernetes::ConnectionOptions;
use crate::metrics::MetricsListen;

#[derive(Debug, Args)]
pub(super) struct ClusterArguments {
    /// How to reach the Kubernetes API [default: as a pod does, then KUBECONFIG, then
    /// ~/.kube/config]
    #[arg(long, value_name = "PATH", env = "FAIRWAY_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,

    /// Where BGPPeers, IPAddressPools and the like live [default: the pod's own namespace, else
    /// metallb-system]
    #[arg(long, value_name = "NAMESPACE", env = "FAIRWAY_NAMESPACE")]
    namespace: Option<String>,

    /// Serve services of this loadBalancerClass instead of those without one
    #[arg(long, value_name = "CLASS", env = "FAIRWAY_LB_CLASS")]
    lb_class: Option<String>,

    /// Serve metrics and probes there, `:PORT` for all addresses, or `none`
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:7472",
        env = "FAIRWAY_METRICS_LISTEN"
    )]
    pub(super) metrics_listen: MetricsListen,

    /// The name of this pod: it owns the status objects, and they go with it
    #[arg(long, value_name = "NAME", env = "FAIRWAY_POD", requires = "pod_uid")]
    pod: Option<String>,

    /// Its metadata.uid
    #[arg(long, value_name = "UID", env = "FAIRWAY_POD_UID", requires = "pod")]
    pod_uid: Option<String>,
}

impl ClusterArguments {
    /// Without empty values, which manifests write for none.
    pub(super) fn connection(&self) -> ConnectionOptions {
        let kubeconfig = self.kubeconfig.clone().filter(|path| !path.as_os_str().is_empty());
        ConnectionOptions { kubeconfig, namespace: filled(self.namespace.as_deref()) }
    }

    pub(super) fn load_balancer_class(&self) -> Option<String> {
        filled(self.lb_class.as_deref())
    }

    pub(super) fn pod(&self) -> Option<OwnPod> {
        let (name, uid) = (filled(self.pod.as_deref())?, filled(self.pod_uid.as_deref())?);
        Some(OwnPod { name, uid })
    }
}

/// A value that says something.
pub(super) fn filled(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}
