//! What Fairway writes about objects: the status of pools, of announced Services, of its own
//! configuration and of BGP sessions.
//!
//! Field names and meanings are MetalLB's (BGPSessionState: frr-k8s's). Pure data, as JSON in both
//! directions: the controller and the speaker write it, tests and `show` may read it back. Refuses
//! to know where it comes from, and how objects are written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::crds::rules;

/// How full the pool is. A count that exceeds the type is the largest number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IpAddressPoolStatus {
    /// How many IPv4 addresses Services have.
    #[serde(rename = "assignedIPv4")]
    pub assigned_ipv4: i64,
    /// How many IPv6 addresses Services have.
    #[serde(rename = "assignedIPv6")]
    pub assigned_ipv6: i64,
    /// How many IPv4 addresses are left.
    #[serde(rename = "availableIPv4")]
    pub available_ipv4: i64,
    /// How many IPv6 addresses are left.
    #[serde(rename = "availableIPv6")]
    pub available_ipv6: i64,
}

/// Which node answers for the addresses of a Service on layer 2.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceL2Status {
    /// The node.
    #[schemars(extend("x-kubernetes-validations" = rules::IMMUTABLE))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// The Service.
    #[schemars(extend("x-kubernetes-validations" = rules::IMMUTABLE))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_name: String,
    /// Its namespace.
    #[schemars(extend("x-kubernetes-validations" = rules::IMMUTABLE))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_namespace: String,
    /// The interfaces that the node answers on. None: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceStatus>,
}

/// An interface of the node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceStatus {
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// The peers to which a node announces a Service, in established sessions. Absent if there are
/// none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceBgpStatus {
    /// The node.
    #[schemars(extend("x-kubernetes-validations" = rules::IMMUTABLE))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// The Service.
    #[schemars(extend("x-kubernetes-validations" = rules::IMMUTABLE))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_name: String,
    /// Its namespace.
    #[schemars(extend("x-kubernetes-validations" = rules::IMMUTABLE))]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_namespace: String,
    /// Names of the BGPPeers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<String>,
}

/// What one process reports about the objects that configure it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationStateStatus {
    /// Whether all of them are in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ConfigurationResult>,
    /// What is wrong with those that are not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error_summary: String,
    /// One for each part of the process that reads objects.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Whether the objects are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ConfigurationResult {
    /// All are.
    Valid,
    /// Some are not.
    Invalid,
    /// They could not be read.
    Unknown,
}

/// A condition, as everywhere in Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about: poolReconcilerValid or configReconcilerValid.
    #[schemars(length(max = 316))]
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, as one word: Reconciled, ConfigurationError or UnknownError.
    #[schemars(
        length(min = 1, max = 1024),
        regex(pattern = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    )]
    pub reason: String,
    /// Why, in full.
    #[schemars(length(max = 32768))]
    pub message: String,
    /// When this was found, as RFC 3339 has it.
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,
    /// Which generation of the object it is about.
    #[schemars(range(min = 0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ConditionStatus {
    /// It does.
    True,
    /// It does not.
    False,
    /// Not known.
    Unknown,
}

/// The state of a BGP session of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BgpSessionStateStatus {
    /// The node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// The peer: its address (IPv6 in full, with dashes), or its interface.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub peer: String,
    /// The VRF; none for the main table.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub vrf: String,
    /// The state of the session, in FRR's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bgp_status: String,
    /// The state of its BFD session; N/A without BFD.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bfd_status: String,
}

/// The status of an object without status fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmptyStatus {}
