//! The words of a Service's fields, for all that read Services.
//!
//! Knows no field and no rule between fields.

use fairway_model::{TrafficPolicy, TransportProtocol};

/// Defines the words of a field, with their meanings.
macro_rules! words {
    ($visible:vis $name:ident($type:ty), $expected:literal, $($word:literal => $value:expr),+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $visible struct $name($visible $type);

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self($value)),)+
                    _ => Err(format!("{text:?} is not allowed; expected {}", $expected)),
                }
            }
        }
    };
}

pub(crate) use words;

/// The type of a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServiceType {
    Cluster,
    NodePort,
    LoadBalancer,
    External,
}

words!(pub(crate) TypeName(ServiceType), "ClusterIP, NodePort, LoadBalancer or ExternalName",
    "ClusterIP" => ServiceType::Cluster, "NodePort" => ServiceType::NodePort,
    "LoadBalancer" => ServiceType::LoadBalancer, "ExternalName" => ServiceType::External,
    "" => ServiceType::Cluster);
words!(pub(crate) PolicyName(TrafficPolicy), "Cluster or Local",
    "Cluster" => TrafficPolicy::Cluster, "Local" => TrafficPolicy::Local, "" => TrafficPolicy::Cluster);
words!(pub(crate) ProtocolName(TransportProtocol), "TCP, UDP or SCTP",
    "TCP" => TransportProtocol::Tcp, "UDP" => TransportProtocol::Udp,
    "SCTP" => TransportProtocol::Sctp, "" => TransportProtocol::Tcp);
