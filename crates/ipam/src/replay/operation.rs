//! The operations of a case.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_ground::Prefix;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::case::{ConfigSpec, HostReservedSpec, NodeSpec, PodSpec, PoolSpec};
use crate::moment::Seconds;
use crate::pool::Use;

/// See the module.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase")]
pub(super) enum Operation {
    AutoAssign(Box<AutoAssign>),
    #[serde(rename = "assignIP")]
    AssignAddress(Box<AssignAddress>),
    #[serde(rename = "releaseIPs")]
    Release {
        ips: Vec<ReleaseSpec>,
    },
    ReleaseByHandle {
        handle: String,
    },
    IpsByHandle {
        handle: String,
    },
    Inspect {
        ip: Address,
    },
    ClaimAffinity {
        cidr: Prefix,
        #[serde(flatten)]
        owner: OwnerSpec,
    },
    ReleaseAffinity {
        cidr: Prefix,
        #[serde(flatten)]
        owner: OwnerSpec,
        #[serde(default, rename = "mustBeEmpty")]
        must_be_empty: bool,
    },
    ReleaseHostAffinities {
        #[serde(flatten)]
        owner: OwnerSpec,
        #[serde(default, rename = "mustBeEmpty")]
        must_be_empty: bool,
    },
    ReleaseBlockAffinity {
        cidr: Prefix,
        #[serde(default, rename = "mustBeEmpty")]
        must_be_empty: bool,
    },
    ReleasePoolAffinities {
        cidr: Prefix,
        #[serde(default, rename = "mustBeEmpty")]
        must_be_empty: bool,
    },
    RemoveHost {
        host: String,
    },
    EnsureBlock(Box<EnsureBlock>),
    Utilization {
        #[serde(default)]
        pools: Vec<String>,
    },
    Routes {
        host: String,
    },
    Gc {
        grace: Option<Seconds>,
    },
    SetConfig(SetConfig),
    GetConfig,
    SetPool {
        pool: Box<PoolSpec>,
    },
    DeletePool {
        cidr: Prefix,
    },
    SetNode(NodeSpec),
    DeleteNode {
        name: String,
    },
    SetReservations {
        cidrs: Vec<Prefix>,
    },
    SetPod {
        pod: PodSpec,
    },
    DeletePod {
        namespace: String,
        name: String,
    },
    Advance {
        seconds: Seconds,
    },
    Parallel {
        ops: Vec<Value>,
    },
    Cni(Box<Cni>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AutoAssign {
    #[serde(default)]
    pub(super) host: String,
    #[serde(default)]
    pub(super) n4: usize,
    #[serde(default)]
    pub(super) n6: usize,
    pub(super) handle: Option<String>,
    #[serde(default)]
    pub(super) attrs: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) pools4: Vec<Prefix>,
    #[serde(default)]
    pub(super) pools6: Vec<Prefix>,
    #[serde(default = "workload", rename = "use", deserialize_with = "purpose")]
    pub(super) purpose: Option<Use>,
    pub(super) namespace: Option<String>,
    pub(super) max_blocks: Option<u32>,
    pub(super) max_per_handle: Option<usize>,
    pub(super) host_reserved4: Option<HostReservedSpec>,
    pub(super) host_reserved6: Option<HostReservedSpec>,
    #[serde(default)]
    pub(super) os: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AssignAddress {
    pub(super) ip: Address,
    #[serde(default)]
    pub(super) host: String,
    pub(super) handle: Option<String>,
    #[serde(default)]
    pub(super) attrs: BTreeMap<String, String>,
    #[serde(default, rename = "use", deserialize_with = "purpose")]
    pub(super) purpose: Option<Use>,
    pub(super) max_per_handle: Option<usize>,
    pub(super) host_reserved: Option<HostReservedSpec>,
    #[serde(default)]
    pub(super) os: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EnsureBlock {
    pub(super) host: String,
    #[serde(default)]
    pub(super) pools4: Vec<Prefix>,
    #[serde(default)]
    pub(super) pools6: Vec<Prefix>,
    #[serde(default = "workload", rename = "use", deserialize_with = "purpose")]
    pub(super) purpose: Option<Use>,
    pub(super) namespace: Option<String>,
    pub(super) max_blocks: Option<u32>,
    pub(super) host_reserved4: Option<HostReservedSpec>,
    pub(super) host_reserved6: Option<HostReservedSpec>,
    #[serde(default)]
    pub(super) os: String,
}

/// The fields beside the operation's name, or within `config`.
#[derive(Debug, Deserialize)]
pub(super) struct SetConfig {
    config: Option<ConfigSpec>,
    #[serde(flatten)]
    fields: ConfigSpec,
}

impl SetConfig {
    pub(super) fn spec(&self) -> ConfigSpec {
        self.config.unwrap_or(self.fields)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct OwnerSpec {
    pub(super) host: String,
    #[serde(default, rename = "type")]
    pub(super) kind: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ReleaseSpec {
    Address(Address),
    Whole { ip: Address, handle: Option<String>, seq: Option<u64> },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cni {
    pub(super) command: Option<String>,
    #[serde(rename = "containerID")]
    pub(super) container_id: Option<String>,
    pub(super) ifname: Option<String>,
    pub(super) netns: Option<String>,
    pub(super) args: Option<String>,
    #[serde(default)]
    pub(super) node: String,
    #[serde(default)]
    pub(super) stdin: Value,
}

/// An address; a length behind it is not looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Address(pub(super) IpAddr);

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let address = text.split_once('/').map_or(text.as_str(), |(address, _)| address);
        address.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

#[allow(clippy::unnecessary_wraps)]
fn workload() -> Option<Use> {
    Some(Use::Workload)
}

/// A use; the empty text is none.
fn purpose<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Use>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
    match text.as_str() {
        "" => Ok(None),
        _ => Use::deserialize(serde::de::value::StringDeserializer::new(text)).map(Some),
    }
}
