//! The place of each kind in the API: group, version, plural, and namespace.
//!
//! Pure. Knows no connection; `api` and its neighbours build their requests from it.

use fairway_cluster::WrittenKind;
use fairway_model::Kind;

/// The namespaces of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The namespace of Fairway's own objects.
    Ours,
    /// Any namespace, or none.
    Everywhere,
}

/// One resource of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Resource {
    /// As in objects.
    pub(super) api_version: &'static str,
    /// As in objects.
    pub(super) kind: &'static str,
    /// As in URLs.
    pub(super) plural: &'static str,
    scope: Scope,
}

const METALLB: &str = "metallb.io/v1beta1";

const fn ours(api_version: &'static str, kind: &'static str, plural: &'static str) -> Resource {
    Resource { api_version, kind, plural, scope: Scope::Ours }
}

const fn everywhere(
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> Resource {
    Resource { api_version, kind, plural, scope: Scope::Everywhere }
}

/// The Lease of the controllers.
pub(super) const LEASE: Resource = ours("coordination.k8s.io/v1", "Lease", "leases");
/// The owner of a speaker's pod.
pub(super) const DAEMON_SET: Resource = ours("apps/v1", "DaemonSet", "daemonsets");
/// Where Events go.
pub(super) const EVENT: Resource = everywhere("v1", "Event", "events");
/// The registration of our webhook at the API server.
pub(super) const VALIDATING_WEBHOOK_CONFIGURATION: Resource = everywhere(
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
);
/// The registration of our API at the API server.
pub(super) const API_SERVICE: Resource =
    everywhere("apiregistration.k8s.io/v1", "APIService", "apiservices");

const CALICO: &str = "crd.projectcalico.org/v1";

/// The blocks of addresses of Pods.
pub(super) const IPAM_BLOCK: Resource = everywhere(CALICO, "IPAMBlock", "ipamblocks");
/// Which node has which block.
pub(super) const BLOCK_AFFINITY: Resource = everywhere(CALICO, "BlockAffinity", "blockaffinities");
/// Where the addresses of a container are.
pub(super) const IPAM_HANDLE: Resource = everywhere(CALICO, "IPAMHandle", "ipamhandles");
/// The pools that blocks are cut from.
pub(super) const IP_POOL: Resource = everywhere(CALICO, "IPPool", "ippools");
/// What holds for all blocks.
pub(super) const IPAM_CONFIG: Resource = everywhere(CALICO, "IPAMConfig", "ipamconfigs");
/// Addresses that are given to nobody who does not ask for them.
pub(super) const IP_RESERVATION: Resource = everywhere(CALICO, "IPReservation", "ipreservations");
/// The Pods.
pub(super) const POD: Resource = everywhere("v1", "Pod", "pods");

/// What says which Pods may talk to each other: Kubernetes' kind, and Calico's two.
pub(super) const NETWORK_POLICIES: [Resource; 3] = [
    everywhere("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    everywhere(CALICO, "NetworkPolicy", "networkpolicies"),
    everywhere(CALICO, "GlobalNetworkPolicy", "globalnetworkpolicies"),
];

/// The definitions of kinds.
const DEFINITION: Resource =
    everywhere("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions");

impl Resource {
    /// The resource of a kind that is read.
    pub(super) const fn read(kind: Kind) -> Self {
        match kind {
            Kind::BgpPeer => ours("metallb.io/v1beta2", "BGPPeer", "bgppeers"),
            Kind::BfdProfile => ours(METALLB, "BFDProfile", "bfdprofiles"),
            Kind::IpAddressPool => ours(METALLB, "IPAddressPool", "ipaddresspools"),
            Kind::BgpAdvertisement => ours(METALLB, "BGPAdvertisement", "bgpadvertisements"),
            Kind::Layer2Advertisement => ours(METALLB, "L2Advertisement", "l2advertisements"),
            Kind::Community => ours(METALLB, "Community", "communities"),
            Kind::BgpConfiguration => {
                ours("fairway.dev/v1beta1", "BGPConfiguration", "bgpconfigurations")
            }
            Kind::Service => everywhere("v1", "Service", "services"),
            Kind::EndpointSlice => {
                everywhere("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
            }
            Kind::Node => everywhere("v1", "Node", "nodes"),
            Kind::Namespace => everywhere("v1", "Namespace", "namespaces"),
            Kind::Secret => ours("v1", "Secret", "secrets"),
            Kind::ConfigMap => ours("v1", "ConfigMap", "configmaps"),
        }
    }

    /// The resource of a kind that is written.
    pub(super) const fn written(kind: WrittenKind) -> Self {
        match kind {
            WrittenKind::Service => Self::read(Kind::Service),
            WrittenKind::IpAddressPool => Self::read(Kind::IpAddressPool),
            WrittenKind::ConfigurationState => {
                ours(METALLB, "ConfigurationState", "configurationstates")
            }
            WrittenKind::ServiceBgpStatus => {
                ours(METALLB, "ServiceBGPStatus", "servicebgpstatuses")
            }
            WrittenKind::ServiceL2Status => ours(METALLB, "ServiceL2Status", "servicel2statuses"),
            WrittenKind::BgpSessionState => {
                ours("frrk8s.metallb.io/v1beta1", "BGPSessionState", "bgpsessionstates")
            }
        }
    }

    /// The path of all objects that concern us; `namespace` is that of our own objects.
    pub(super) fn collection(&self, namespace: &str) -> String {
        match self.scope {
            Scope::Ours => self.in_namespace(namespace),
            Scope::Everywhere => format!("{}/{}", self.root(), self.plural),
        }
    }

    /// The path of those in a namespace; the empty one is that of objects without a namespace.
    pub(super) fn in_namespace(&self, namespace: &str) -> String {
        match namespace {
            "" => format!("{}/{}", self.root(), self.plural),
            _ => format!("{}/namespaces/{namespace}/{}", self.root(), self.plural),
        }
    }

    /// The path of its definition, if its group is not one of Kubernetes' own.
    pub(super) fn definition(&self) -> Option<String> {
        let (group, _) = self.api_version.split_once('/')?;
        Some(format!("{}/{}.{group}", DEFINITION.collection(""), self.plural))
    }

    fn root(&self) -> String {
        let prefix = if self.api_version.contains('/') { "apis" } else { "api" };
        format!("/{prefix}/{}", self.api_version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api() {
        let collection = |kind| Resource::read(kind).collection("metallb-system");
        assert_eq!(collection(Kind::Service), "/api/v1/services");
        assert_eq!(collection(Kind::Secret), "/api/v1/namespaces/metallb-system/secrets");
        assert_eq!(
            collection(Kind::BgpPeer),
            "/apis/metallb.io/v1beta2/namespaces/metallb-system/bgppeers"
        );
        let service = Resource::written(WrittenKind::Service);
        assert_eq!(service.in_namespace("shop"), "/api/v1/namespaces/shop/services");
        assert_eq!(Resource::read(Kind::Node).in_namespace(""), "/api/v1/nodes");
        assert_eq!(
            Resource::read(Kind::BgpPeer).definition().as_deref(),
            Some("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/bgppeers.metallb.io")
        );
        assert_eq!(Resource::read(Kind::Node).definition(), None);
    }
}
