//! What the service proxy reads: Services of every type, EndpointSlices with their addresses, and a
//! KubeProxyConfiguration.
//!
//! Other components of Kubernetes have checked most of it; in files nobody has. Knows no other object.

mod configuration;
mod service;
mod slice;

pub(super) use configuration::{is_configuration, parse as parse_configuration};
pub(super) use service::parse as parse_service;
pub(super) use slice::parse as parse_slice;

use std::fmt;
use std::net::IpAddr;

use fairway_ground::Prefix;
use fairway_model::Object;

use super::field_path::FieldPath;
use super::fields::{HostAddress, HostAddressError};
use super::metadata::Metadata;
use super::node;
use super::report::Report;

/// Parses the node, which balancers leave before its object is gone.
pub(super) fn parse_node(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let deleted_at: Option<String> = report.read(&FieldPath::of("metadata.deletionTimestamp"));
    let Some(Object::Node(mut node)) = node::parse(metadata, report) else { return None };
    node.is_to_be_deleted |= deleted_at.is_some();
    Some(Object::Node(node))
}

/// The label of Services and slices that another proxy handles.
const PROXY_NAME_LABEL: &str = "service.kubernetes.io/service-proxy-name";
/// The label of slices of Services without an address.
const HEADLESS_LABEL: &str = "service.kubernetes.io/headless";

/// A network as Kubernetes takes it: spaces around it and bits behind its length count for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network(Prefix);

impl std::str::FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let error = || NetworkError(text.to_owned());
        let (address, length) = text.trim().split_once('/').ok_or_else(error)?;
        let address: IpAddr = address.parse().map_err(|_| error())?;
        let length: u8 = length.parse().map_err(|_| error())?;
        Prefix::new(address, length).map(Self).map_err(|_| error())
    }
}

/// A network as Kubernetes takes it, from a command line.
///
/// # Errors
/// It is none.
pub fn network(text: &str) -> Result<Prefix, NetworkError> {
    text.parse().map(|Network(network)| network)
}

/// Why a text is no network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkError(String);

impl std::error::Error for NetworkError {}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a network; expected one as 192.0.2.0/24 or 2001:db8::/64", self.0)
    }
}

/// An address that can be virtual: one that is this host's on every node, or on one link alone, would take that
/// host's own traffic. Kubernetes' rule for `externalIPs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct VirtualHostAddress(IpAddr);

impl std::str::FromStr for VirtualHostAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let HostAddress(address) =
            text.parse().map_err(|error: HostAddressError| error.to_string())?;
        let is_of_one_link = match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        match address.is_loopback() || is_of_one_link {
            true => Err(format!(
                "{address} is a loopback or link-local address, which no Service can have; expected \
                 another one"
            )),
            false => Ok(Self(address)),
        }
    }
}
