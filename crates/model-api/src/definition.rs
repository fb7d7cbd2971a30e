//! The served resources, and in which ways the real server treats their kinds.

use crate::request::Resource;
use serde_json::{Value, json};

/// One resource and its behaviour.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceDefinition {
    /// Its name in URLs.
    pub resource: Resource,
    /// Its name in objects.
    pub kind: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether status is a subresource: written only there, and nothing else is.
    pub has_status: bool,
    /// The initial status of a new object; null: none. Nodes keep the one in the request.
    pub first_status: FirstStatus,
    /// Whether `metadata.generation` counts changes of anything but metadata and status.
    pub has_generation: bool,
    /// Whether an update may come without a resource version.
    pub unconditional_update: bool,
    /// Whether an update of an object that does not exist creates it.
    pub create_on_update: bool,
    /// Comes from a CRD: items of lists name their kind, and a status update leaves metadata alone.
    pub custom: bool,
}

/// The status of a new object.
#[derive(Debug, Clone, PartialEq)]
pub enum FirstStatus {
    /// None, whatever the request had.
    Dropped,
    /// This, whatever the request had.
    Set(Value),
    /// What the request had.
    Kept,
}

impl ResourceDefinition {
    /// A resource of a CRD with a status subresource.
    pub fn custom(resource: Resource, kind: &str, namespaced: bool) -> Self {
        Self {
            resource,
            kind: kind.to_owned(),
            namespaced,
            has_status: true,
            first_status: FirstStatus::Dropped,
            has_generation: true,
            unconditional_update: false,
            create_on_update: false,
            custom: true,
        }
    }

    fn built_in(resource: Resource, kind: &str, namespaced: bool) -> Self {
        Self {
            has_status: false,
            first_status: FirstStatus::Kept,
            has_generation: false,
            unconditional_update: true,
            custom: false,
            ..Self::custom(resource, kind, namespaced)
        }
    }

    /// The built-in kinds that a load balancer reads or writes.
    pub(crate) fn all_built_in() -> Vec<Self> {
        let core =
            |plural, kind, namespaced| Self::built_in(Resource::core(plural), kind, namespaced);
        let slices = Resource::new("discovery.k8s.io", "v1", "endpointslices");
        let leases = Resource::new("coordination.k8s.io", "v1", "leases");
        let definitions = Resource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        vec![
            Self {
                has_status: true,
                create_on_update: true,
                first_status: FirstStatus::Set(json!({"loadBalancer": {}})),
                ..core("services", "Service", true)
            },
            Self { has_status: true, ..core("nodes", "Node", false) },
            Self {
                has_status: true,
                first_status: FirstStatus::Set(json!({"phase": "Active"})),
                ..core("namespaces", "Namespace", false)
            },
            core("secrets", "Secret", true),
            core("configmaps", "ConfigMap", true),
            Self { create_on_update: true, ..core("events", "Event", true) },
            Self { has_status: true, ..core("pods", "Pod", true) },
            Self { has_generation: true, ..Self::built_in(slices, "EndpointSlice", true) },
            Self {
                unconditional_update: false,
                create_on_update: true,
                ..Self::built_in(leases, "Lease", true)
            },
            Self {
                has_status: true,
                has_generation: true,
                ..Self::built_in(definitions, "CustomResourceDefinition", false)
            },
        ]
    }

    /// The kinds of MetalLB's API and of ours.
    pub fn metallb() -> Vec<Self> {
        let kinds = [
            ("v1beta1", "ipaddresspools", "IPAddressPool"),
            ("v1beta1", "bgpadvertisements", "BGPAdvertisement"),
            ("v1beta1", "l2advertisements", "L2Advertisement"),
            ("v1beta2", "bgppeers", "BGPPeer"),
            ("v1beta1", "bfdprofiles", "BFDProfile"),
            ("v1beta1", "communities", "Community"),
            ("v1beta1", "servicel2statuses", "ServiceL2Status"),
            ("v1beta1", "servicebgpstatuses", "ServiceBGPStatus"),
        ];
        let custom = |(version, plural, kind)| {
            Self::custom(Resource::new("metallb.io", version, plural), kind, true)
        };
        let of_metallb = kinds.into_iter().map(custom);
        let ours = Resource::new("fairway.dev", "v1beta1", "bgpconfigurations");
        of_metallb.chain([Self::custom(ours, "BGPConfiguration", true)]).collect()
    }
}
