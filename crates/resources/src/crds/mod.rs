//! The CustomResourceDefinitions of all our kinds.
//!
//! Generated from the types that the parsers read, so field names, types, bounds and defaults are
//! written once. This file adds what the types do not contain: names, versions, printer columns. Knows
//! no API server; `fairway crds` prints the result, and `deploy/crds` holds it.

pub(super) mod field_schemas;
mod metallb;
pub(super) mod rules;
mod structural;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::status::{
    BgpSessionStateStatus, ConfigurationStateStatus, EmptyStatus, IpAddressPoolStatus,
    ServiceBgpStatus, ServiceL2Status,
};
use super::yaml::block;
use super::{
    bfd_profile, bgp_advertisement, bgp_configuration, bgp_peer, community, ip_address_pool,
    l2_advertisement,
};
use structural::structural;

pub use metallb::fields_unknown_to_metallb;

/// One CustomResourceDefinition.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomResourceDefinition {
    /// `GROUP_PLURAL`, as in `metallb.io_bgppeers`.
    pub file_name: String,
    /// The object.
    pub object: Value,
}

impl CustomResourceDefinition {
    /// All of them, in a fixed order.
    pub fn all() -> Vec<Self> {
        KINDS.iter().map(Kind::definition).collect()
    }

    /// The object as a YAML document, with its `---`.
    pub fn yaml(&self) -> String {
        format!("---\n{}", block::block(&self.object))
    }
}

/// A kind as the API server knows it.
struct Kind {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    /// The last one is the storage version.
    versions: &'static [Version],
}

struct Version {
    name: &'static str,
    /// The warning for clients of a deprecated version.
    deprecation: Option<&'static str>,
    description: &'static str,
    spec: fn() -> Value,
    is_spec_required: bool,
    status: fn() -> Value,
    columns: &'static [Column],
}

/// A column of `kubectl get`: its heading, the type and the path of its value.
type Column = (&'static str, &'static str, &'static str);

/// Columns that are shown only on `-o wide`; MetalLB's number for it.
const WIDE: &[&str] = &["Node Selectors"];
const WIDE_PRIORITY: u32 = 10;

const METALLB: &str = "metallb.io";
const FRR_K8S: &str = "frrk8s.metallb.io";
const FAIRWAY: &str = "fairway.dev";

const PEER_COLUMNS: &[Column] = &[
    ("Address", "string", ".spec.peerAddress"),
    ("ASN", "string", ".spec.peerASN"),
    ("BFD Profile", "string", ".spec.bfdProfile"),
    ("Multi Hops", "string", ".spec.ebgpMultiHop"),
];

const KINDS: [Kind; 11] = [
    Kind {
        group: METALLB,
        kind: "BGPPeer",
        plural: "bgppeers",
        versions: &[
            Version {
                name: "v1beta1",
                deprecation: Some(
                    "metallb.io/v1beta1 is deprecated for BGPPeer; use metallb.io/v1beta2",
                ),
                description: "A router to peer with.",
                spec: schema::<bgp_peer::v1beta1::RawSpecOld>,
                is_spec_required: false,
                status: schema::<EmptyStatus>,
                columns: PEER_COLUMNS,
            },
            Version {
                name: "v1beta2",
                deprecation: None,
                description: "A router to peer with.",
                spec: schema::<bgp_peer::RawSpec>,
                is_spec_required: false,
                status: schema::<EmptyStatus>,
                columns: PEER_COLUMNS,
            },
        ],
    },
    Kind {
        group: METALLB,
        kind: "BFDProfile",
        plural: "bfdprofiles",
        versions: &[Version {
            name: "v1beta1",
            deprecation: None,
            description: "How fast a dead neighbor is noticed.",
            spec: schema::<bfd_profile::RawSpec>,
            is_spec_required: false,
            status: schema::<EmptyStatus>,
            columns: &[
                ("Passive Mode", "boolean", ".spec.passiveMode"),
                ("Transmit Interval", "integer", ".spec.transmitInterval"),
                ("Receive Interval", "integer", ".spec.receiveInterval"),
                ("Multiplier", "integer", ".spec.detectMultiplier"),
            ],
        }],
    },
    Kind {
        group: METALLB,
        kind: "IPAddressPool",
        plural: "ipaddresspools",
        versions: &[Version {
            name: "v1beta1",
            deprecation: None,
            description: "Addresses that Services get.",
            spec: schema::<ip_address_pool::RawSpec>,
            is_spec_required: true,
            status: schema::<IpAddressPoolStatus>,
            columns: &[
                ("Auto Assign", "boolean", ".spec.autoAssign"),
                ("Avoid Buggy IPs", "boolean", ".spec.avoidBuggyIPs"),
                ("Addresses", "string", ".spec.addresses"),
                // Beyond MetalLB's columns: the usage.
                ("Used IPv4", "integer", ".status.assignedIPv4"),
                ("Free IPv4", "integer", ".status.availableIPv4"),
                ("Used IPv6", "integer", ".status.assignedIPv6"),
                ("Free IPv6", "integer", ".status.availableIPv6"),
            ],
        }],
    },
    Kind {
        group: METALLB,
        kind: "BGPAdvertisement",
        plural: "bgpadvertisements",
        versions: &[Version {
            name: "v1beta1",
            deprecation: None,
            description: "Which addresses are announced to routers, how, from which nodes and to \
                          which peers.",
            spec: schema::<bgp_advertisement::RawSpec>,
            is_spec_required: false,
            status: schema::<EmptyStatus>,
            columns: &[
                ("IPAddressPools", "string", ".spec.ipAddressPools"),
                ("IPAddressPool Selectors", "string", ".spec.ipAddressPoolSelectors"),
                ("Peers", "string", ".spec.peers"),
                ("Node Selectors", "string", ".spec.nodeSelectors"),
            ],
        }],
    },
    Kind {
        group: METALLB,
        kind: "L2Advertisement",
        plural: "l2advertisements",
        versions: &[Version {
            name: "v1beta1",
            deprecation: None,
            description: "Which addresses nodes answer for in their own network.",
            spec: schema::<l2_advertisement::RawSpec>,
            is_spec_required: false,
            status: schema::<EmptyStatus>,
            columns: &[
                ("IPAddressPools", "string", ".spec.ipAddressPools"),
                ("IPAddressPool Selectors", "string", ".spec.ipAddressPoolSelectors"),
                ("Interfaces", "string", ".spec.interfaces"),
                ("Node Selectors", "string", ".spec.nodeSelectors"),
            ],
        }],
    },
    Kind {
        group: METALLB,
        kind: "Community",
        plural: "communities",
        versions: &[Version {
            name: "v1beta1",
            deprecation: None,
            description: "Names for BGP communities.",
            spec: schema::<community::RawSpec>,
            is_spec_required: false,
            status: schema::<EmptyStatus>,
            columns: &[],
        }],
    },
    Kind {
        group: FAIRWAY,
        kind: "BGPConfiguration",
        plural: "bgpconfigurations",
        versions: &[Version {
            name: "v1beta1",
            deprecation: None,
            description: "What concerns the BGP speaker of a node and no single peer.",
            spec: schema::<bgp_configuration::RawSpec>,
            is_spec_required: false,
            status: schema::<EmptyStatus>,
            columns: &[("RPKI Servers", "string", ".spec.rpki.servers[*].address")],
        }],
    },
    Kind {
        group: METALLB,
        kind: "ServiceL2Status",
        plural: "servicel2statuses",
        versions: &[Version {
            name: "v1beta1",
            deprecation: None,
            description: "Which node answers for a Service on layer 2. Written by the speaker.",
            spec: nothing,
            is_spec_required: false,
            status: schema::<ServiceL2Status>,
            columns: &[
                ("Allocated Node", "string", ".status.node"),
                ("Service Name", "string", ".status.serviceName"),
                ("Service Namespace", "string", ".status.serviceNamespace"),
            ],
        }],
    },
    Kind {
        group: METALLB,
        kind: "ServiceBGPStatus",
        plural: "servicebgpstatuses",
        versions: &[Version {
            name: "v1beta1",
            deprecation: None,
            description: "The peers to which a node announces a Service. Written by the speaker.",
            spec: nothing,
            is_spec_required: false,
            status: schema::<ServiceBgpStatus>,
            columns: &[
                ("Node", "string", ".status.node"),
                ("Service Name", "string", ".status.serviceName"),
                ("Service Namespace", "string", ".status.serviceNamespace"),
            ],
        }],
    },
    Kind {
        group: METALLB,
        kind: "ConfigurationState",
        plural: "configurationstates",
        versions: &[Version {
            name: "v1beta1",
            deprecation: None,
            description: "Whether a process could use all objects. Written by that process.",
            spec: nothing,
            is_spec_required: false,
            status: schema::<ConfigurationStateStatus>,
            columns: &[
                ("Result", "string", ".status.result"),
                ("ErrorSummary", "string", ".status.errorSummary"),
                ("Age", "date", ".metadata.creationTimestamp"),
            ],
        }],
    },
    Kind {
        group: FRR_K8S,
        kind: "BGPSessionState",
        plural: "bgpsessionstates",
        versions: &[Version {
            name: "v1beta1",
            deprecation: None,
            description: "The state of a BGP session of a node. Written by the speaker.",
            spec: nothing,
            is_spec_required: false,
            status: schema::<BgpSessionStateStatus>,
            columns: &[
                ("Node", "string", ".status.node"),
                ("Peer", "string", ".status.peer"),
                ("VRF", "string", ".status.vrf"),
                ("BGP", "string", ".status.bgpStatus"),
                ("BFD", "string", ".status.bfdStatus"),
            ],
        }],
    },
];

/// The structural schema of a type as it is read. It is self-contained.
fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
    structural(settings.into_generator().into_root_schema_for::<T>().as_value())
}

/// Fields of an older version are fields of the newer one, of the same name and shape, so an object
/// of one is an object of the other: no conversion webhook is needed. Where MetalLB was installed, its
/// webhook is, and the API server refuses a definition with both; so `webhook` is explicitly null.
fn without_conversion() -> Value {
    json!({ "strategy": "None", "webhook": null })
}

/// The spec of a kind that has only a status.
fn nothing() -> Value {
    json!({ "type": "object" })
}

impl Kind {
    fn definition(&self) -> CustomResourceDefinition {
        let Self { group, kind, plural, versions } = self;
        let storage = versions.len().saturating_sub(1);
        let versions: Vec<Value> = versions
            .iter()
            .enumerate()
            .map(|(position, version)| version.definition(position == storage))
            .collect();
        let mut spec = json!({
            "group": group,
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": kind.to_lowercase(),
            },
            "scope": "Namespaced",
        });
        if let Value::Object(spec) = &mut spec {
            if self.versions.len() > 1 {
                spec.insert("conversion".to_owned(), without_conversion());
            }
            spec.insert("versions".to_owned(), versions.into());
        }
        let object = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.{group}") },
            "spec": spec,
        });
        CustomResourceDefinition { file_name: format!("{group}_{plural}"), object }
    }
}

impl Version {
    fn definition(&self, is_storage: bool) -> Value {
        let mut made = Map::new();
        let mut put = |key: &str, value: Value| made.insert(key.to_owned(), value);
        put("name", self.name.into());
        put("served", true.into());
        put("storage", is_storage.into());
        if let Some(warning) = self.deprecation {
            put("deprecated", true.into());
            put("deprecationWarning", warning.into());
        }
        put("subresources", json!({ "status": {} }));
        if !self.columns.is_empty() {
            put("additionalPrinterColumns", self.columns.iter().map(column).collect());
        }
        let mut schema = json!({
            "description": self.description,
            "type": "object",
            "properties": {
                "apiVersion": { "type": "string" },
                "kind": { "type": "string" },
                "metadata": { "type": "object" },
                "spec": (self.spec)(),
                "status": (self.status)(),
            },
        });
        if self.is_spec_required
            && let Value::Object(schema) = &mut schema
        {
            schema.insert("required".to_owned(), json!(["spec"]));
        }
        put("schema", json!({ "openAPIV3Schema": schema }));
        made.into()
    }
}

fn column((name, kind, path): &Column) -> Value {
    let mut column = json!({ "name": name, "type": kind, "jsonPath": path });
    if WIDE.contains(name)
        && let Value::Object(column) = &mut column
    {
        column.insert("priority".to_owned(), WIDE_PRIORITY.into());
    }
    column
}
