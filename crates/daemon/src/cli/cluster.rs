//! What `fairway controller` and `fairway speaker` have in common on the command line.

use std::path::PathBuf;

use clap::Args;
use fairway_cluster::OwnPod;

use super::host::filled;
use crate::kubernetes::ConnectionOptions;

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

    /// The name of this pod: it owns the status objects, which are deleted with it
    #[arg(long, value_name = "NAME", env = "FAIRWAY_POD", requires = "pod_uid")]
    pod: Option<String>,

    /// The metadata.uid of this pod
    #[arg(long, value_name = "UID", env = "FAIRWAY_POD_UID", requires = "pod")]
    pod_uid: Option<String>,
}

impl ClusterArguments {
    /// Without empty values, which manifests set for an unset value.
    pub(super) fn connection(&self) -> ConnectionOptions {
        let kubeconfig = self.kubeconfig.clone().filter(|path| !path.as_os_str().is_empty());
        ConnectionOptions { kubeconfig, namespace: filled(self.namespace.as_deref()) }
    }

    pub(super) fn pod(&self) -> Option<OwnPod> {
        let (name, uid) = (filled(self.pod.as_deref())?, filled(self.pod_uid.as_deref())?);
        Some(OwnPod { name, uid })
    }
}
