//! Connection tracking: which flows there are to a real server, and their removal.
//!
//! A protocol without connections gives no sign when a Pod is gone: the kernel would send the packets of known flows there
//! for as long as they come.

use std::net::IpAddr;

use fairway_model::TransportProtocol;
use fairway_proxy::{RealServer, VirtualAddress};
use netlink_packet_core::NLM_F_DUMP;

use crate::message::{Message, attributes};

const SUBSYSTEM: u16 = 1;
const GET: u16 = 1;
const DELETE: u16 = 2;

const TUPLE_ORIGINAL: u16 = 1;
const TUPLE_REPLY: u16 = 2;
const ID: u16 = 12;

const TUPLE_ADDRESSES: u16 = 1;
const TUPLE_PROTOCOL: u16 = 2;
const SOURCE_IPV4: u16 = 1;
const DESTINATION_IPV4: u16 = 2;
const SOURCE_IPV6: u16 = 3;
const DESTINATION_IPV6: u16 = 4;
const PROTOCOL_NUMBER: u16 = 1;
const DESTINATION_PORT: u16 = 3;
const SOURCE_PORT: u16 = 2;

/// A flow through a virtual address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flow {
    /// Where its client sends to.
    pub(crate) at: VirtualAddress,
    /// Who answers.
    pub(crate) real_server: RealServer,
    /// What names it in a request.
    name: Vec<u8>,
    id: Vec<u8>,
    family: u8,
}

fn head(message: u16, flags: u16, family: u8, sequence: u32) -> Message {
    Message::new(SUBSYSTEM << 8 | message, flags, sequence, &[family, 0, 0, 0])
}

/// Asks for all flows of a family, by its number.
pub(crate) fn list(is_ipv4: bool, sequence: u32) -> Vec<u8> {
    head(GET, NLM_F_DUMP, if is_ipv4 { 2 } else { 10 }, sequence).finish()
}

impl Flow {
    /// A flow of a list; `None` if it is of a protocol that Services lack.
    pub(crate) fn listed(payload: &[u8]) -> Option<Self> {
        let family = *payload.first()?;
        let all = payload.get(4..)?;
        let find = |within: &[u8], kind: u16| -> Option<Vec<u8>> {
            attributes(within).find(|(it, _)| *it == kind).map(|(_, value)| value.to_vec())
        };
        let original = find(all, TUPLE_ORIGINAL)?;
        let reply = find(all, TUPLE_REPLY)?;
        let port = |tuple: &[u8], kind: u16| -> Option<u16> {
            let bytes = find(&find(tuple, TUPLE_PROTOCOL)?, kind)?;
            Some(u16::from_be_bytes(bytes.try_into().ok()?))
        };
        let address = |tuple: &[u8], ipv4: u16, ipv6: u16| -> Option<IpAddr> {
            let addresses = find(tuple, TUPLE_ADDRESSES)?;
            if let Some(bytes) = find(&addresses, ipv4) {
                let octets: [u8; 4] = bytes.try_into().ok()?;
                return Some(octets.into());
            }
            let octets: [u8; 16] = find(&addresses, ipv6)?.try_into().ok()?;
            Some(octets.into())
        };
        let protocol = match find(&find(&original, TUPLE_PROTOCOL)?, PROTOCOL_NUMBER)?.first()? {
            6 => TransportProtocol::Tcp,
            17 => TransportProtocol::Udp,
            132 => TransportProtocol::Sctp,
            _ => return None,
        };
        Some(Self {
            at: VirtualAddress {
                address: address(&original, DESTINATION_IPV4, DESTINATION_IPV6)?,
                port: port(&original, DESTINATION_PORT)?,
                protocol,
            },
            real_server: RealServer {
                address: address(&reply, SOURCE_IPV4, SOURCE_IPV6)?,
                port: port(&reply, SOURCE_PORT)?,
            },
            name: original,
            id: find(all, ID).unwrap_or_default(),
            family,
        })
    }

    /// Removes it.
    pub(crate) fn delete(&self, sequence: u32) -> Vec<u8> {
        const NESTED: u16 = 1 << 15;
        let mut message = head(DELETE, 0, self.family, sequence);
        message.attribute(TUPLE_ORIGINAL | NESTED, &self.name);
        if !self.id.is_empty() {
            message.attribute(ID, &self.id);
        }
        message.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Content, answers};

    /// A flow as the kernel lists it.
    fn entry() -> Vec<u8> {
        let mut message = head(0, 0, 2, 1);
        let tuple = |kind: u16, source: [u8; 4], destination: [u8; 4], ports: [u16; 2]| {
            move |it: &mut Message| {
                it.nested(kind, |it| {
                    it.nested(TUPLE_ADDRESSES, |it| {
                        it.attribute(SOURCE_IPV4, &source)
                            .attribute(DESTINATION_IPV4, &destination);
                    });
                    it.nested(TUPLE_PROTOCOL, |it| {
                        it.attribute(PROTOCOL_NUMBER, &[17]);
                        it.attribute(SOURCE_PORT, &ports[0].to_be_bytes());
                        it.attribute(DESTINATION_PORT, &ports[1].to_be_bytes());
                    });
                });
            }
        };
        let (client, vip, pod) = ([192, 0, 2, 9], [10, 96, 0, 10], [10, 1, 0, 1]);
        tuple(TUPLE_ORIGINAL, client, vip, [4_000, 53])(&mut message);
        tuple(TUPLE_REPLY, pod, client, [5_353, 4_000])(&mut message);
        message.attribute(ID, &[1, 2, 3, 4]);
        message.finish()
    }

    fn payload(message: &[u8]) -> &[u8] {
        match answers(message).next().unwrap().unwrap().content {
            Content::Payload(payload) => payload,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_flow_is_known_by_where_it_goes_and_who_answers() {
        let entry = entry();
        let flow = Flow::listed(payload(&entry)).unwrap();
        assert_eq!(flow.at.to_string(), "10.96.0.10:53/UDP");
        assert_eq!(flow.real_server.to_string(), "10.1.0.1:5353");
        // The request names it by the same octets.
        let request = flow.delete(7);
        assert!(request.windows(flow.name.len()).any(|it| it == flow.name));
    }

    #[test]
    fn whatever_is_cut_off_is_no_flow_and_no_panic() {
        let entry = entry();
        let payload = payload(&entry);
        for end in 0..payload.len() {
            let _ = Flow::listed(&payload[..end]);
        }
    }
}
