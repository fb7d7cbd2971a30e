//! Kinds and names of objects.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The kinds that Fairway reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Kind {
    #[serde(rename = "BGPPeer")]
    BgpPeer,
    #[serde(rename = "BFDProfile")]
    BfdProfile,
    #[serde(rename = "IPAddressPool")]
    IpAddressPool,
    #[serde(rename = "BGPAdvertisement")]
    BgpAdvertisement,
    #[serde(rename = "L2Advertisement")]
    Layer2Advertisement,
    Community,
    #[serde(rename = "BGPConfiguration")]
    BgpConfiguration,
    Service,
    EndpointSlice,
    Node,
    Namespace,
    Secret,
    ConfigMap,
}

impl Kind {
    /// Every kind, in the order in which findings and `show config` list them.
    pub const ALL: [Self; 13] = [
        Self::BgpPeer,
        Self::BfdProfile,
        Self::IpAddressPool,
        Self::BgpAdvertisement,
        Self::Layer2Advertisement,
        Self::Community,
        Self::BgpConfiguration,
        Self::Service,
        Self::EndpointSlice,
        Self::Node,
        Self::Namespace,
        Self::Secret,
        Self::ConfigMap,
    ];

    /// Whether a cluster may be without it: its definition is newer than those of earlier releases, as is the permission
    /// to read it.
    pub fn is_optional(self) -> bool {
        self == Self::BgpConfiguration
    }

    /// Whether it is a kind that configures Fairway, of MetalLB's group or of ours; the others are Kubernetes' own.
    pub fn is_ours(self) -> bool {
        match self {
            Self::BgpPeer
            | Self::BfdProfile
            | Self::IpAddressPool
            | Self::BgpAdvertisement
            | Self::Layer2Advertisement
            | Self::Community
            | Self::BgpConfiguration => true,
            Self::Service
            | Self::EndpointSlice
            | Self::Node
            | Self::Namespace
            | Self::Secret
            | Self::ConfigMap => false,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BgpPeer => "BGPPeer",
            Self::BfdProfile => "BFDProfile",
            Self::IpAddressPool => "IPAddressPool",
            Self::BgpAdvertisement => "BGPAdvertisement",
            Self::Layer2Advertisement => "L2Advertisement",
            Self::Community => "Community",
            Self::BgpConfiguration => "BGPConfiguration",
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
            Self::Node => "Node",
            Self::Namespace => "Namespace",
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        })
    }
}

/// A namespace and a name. Objects without a namespace are in `default`; Nodes and Namespaces have
/// the empty one. Shared: what is known of an object has its name in many places.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ObjectName(Arc<NameParts>);

/// What an [`ObjectName`] consists of.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NameParts {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectName {
    /// A name in a namespace.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self(Arc::new(NameParts { namespace: namespace.into(), name: name.into() }))
    }
}

impl Deref for ObjectName {
    type Target = NameParts;

    fn deref(&self) -> &NameParts {
        &self.0
    }
}

impl Ord for ObjectName {
    fn cmp(&self, other: &Self) -> Ordering {
        // A search ends at the name itself more often than not.
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl PartialOrd for ObjectName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for ObjectName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ObjectName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        NameParts::deserialize(deserializer).map(|parts| Self(Arc::new(parts)))
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// The identity of an object: two documents with the same key are the same object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: ObjectName,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name.name)
    }
}
