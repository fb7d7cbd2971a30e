//! How objects are named.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kinds that Fairway reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Kind {
    #[serde(rename = "BGPPeer")]
    BgpPeer,
    #[serde(rename = "IPAddressPool")]
    IpAddressPool,
    #[serde(rename = "BGPAdvertisement")]
    BgpAdvertisement,
    Community,
    Service,
    EndpointSlice,
    Node,
    Secret,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BgpPeer => "BGPPeer",
            Self::IpAddressPool => "IPAddressPool",
            Self::BgpAdvertisement => "BGPAdvertisement",
            Self::Community => "Community",
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
            Self::Node => "Node",
            Self::Secret => "Secret",
        })
    }
}

/// A namespace and a name. Objects without a namespace are in `default`; Nodes have the empty one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectName {
    /// A name in a namespace.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
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

/// What makes an object itself: two documents with the same key are the same object.
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
