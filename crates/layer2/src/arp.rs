//! ARP for IPv4 on Ethernet: bytes to values and back (RFC 826, RFC 5227).
//!
//! Knows no address of ours. Used by the responder.

use std::net::Ipv4Addr;

use fairway_ground::MacAddress;

use crate::ethernet::{ARP, Header};

/// The hardware is Ethernet, the protocol IPv4, and addresses have six and four octets.
const ETHERNET_AND_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// Octets of such a packet.
const LENGTH_BYTES: usize = 28;

/// What a packet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Who has the target address?
    Request,
    /// The sender has the sender address.
    Reply,
}

/// An ARP packet in its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArpFrame {
    /// The destination of the frame.
    pub destination: MacAddress,
    /// The source of the frame. It may differ from the sender in the packet.
    pub source: MacAddress,
    /// Request or reply.
    pub operation: Operation,
    /// Who sends it.
    pub sender_mac: MacAddress,
    /// The address of the sender; 0.0.0.0 in a probe (RFC 5227 §1.1).
    pub sender: Ipv4Addr,
    /// Of no meaning in a request.
    pub target_mac: MacAddress,
    /// The address that the packet is about.
    pub target: Ipv4Addr,
}

impl ArpFrame {
    /// Reads a frame; `None` for any other protocol, hardware or operation, and for a frame that is cut off.
    /// What follows the packet is padding.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let (header, mut fields) = Header::parse(frame)?;
        if header.ethertype != ARP || fields.take()? != ETHERNET_AND_IPV4 {
            return None;
        }
        let operation = match fields.take()? {
            [0, 1] => Operation::Request,
            [0, 2] => Operation::Reply,
            _ => return None,
        };
        Some(Self {
            destination: header.destination,
            source: header.source,
            operation,
            sender_mac: MacAddress(fields.take()?),
            sender: Ipv4Addr::from(fields.take()?),
            target_mac: MacAddress(fields.take()?),
            target: Ipv4Addr::from(fields.take()?),
        })
    }

    /// The bytes of the frame, without padding, which is the driver's.
    pub fn encode(&self) -> Vec<u8> {
        let header = Header { destination: self.destination, source: self.source, ethertype: ARP };
        let mut frame = header.begin(LENGTH_BYTES);
        frame.extend(ETHERNET_AND_IPV4);
        frame.extend(match self.operation {
            Operation::Request => [0, 1],
            Operation::Reply => [0, 2],
        });
        frame.extend(self.sender_mac.0);
        frame.extend(self.sender.octets());
        frame.extend(self.target_mac.0);
        frame.extend(self.target.octets());
        frame
    }

    /// The answer to this request: `mac` has its target.
    #[must_use]
    pub fn answer(&self, mac: MacAddress) -> Self {
        Self {
            destination: self.sender_mac,
            source: mac,
            operation: Operation::Reply,
            sender_mac: mac,
            sender: self.target,
            target_mac: self.sender_mac,
            target: self.sender,
        }
    }

    /// Asks who has `address`, without an address of its own: no host learns anything from it (RFC 5227 §1.1).
    pub fn probe(mac: MacAddress, address: Ipv4Addr) -> Self {
        Self {
            destination: MacAddress::BROADCAST,
            source: mac,
            operation: Operation::Request,
            sender_mac: mac,
            sender: Ipv4Addr::UNSPECIFIED,
            target_mac: MacAddress::ZERO,
            target: address,
        }
    }

    /// Tells the whole segment that `mac` has `address`, which nobody asked: an announcement (RFC 5227 §3) if
    /// it is a request. Some hosts learn from requests alone, others from replies alone.
    pub fn gratuitous(mac: MacAddress, address: Ipv4Addr, operation: Operation) -> Self {
        let target_mac = match operation {
            Operation::Request => MacAddress::ZERO,
            Operation::Reply => MacAddress::BROADCAST,
        };
        Self {
            destination: MacAddress::BROADCAST,
            source: mac,
            operation,
            sender_mac: mac,
            sender: address,
            target_mac,
            target: address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const THEIRS: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
    const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
    const ASKER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    /// As `arping` sends it, with Ethernet's padding.
    fn request() -> Vec<u8> {
        let mut frame = vec![0xFF; 6];
        frame.extend([2, 0, 0, 0, 0, 2, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        frame.extend([2, 0, 0, 0, 0, 2, 192, 0, 2, 1]);
        frame.extend([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 192, 0, 2, 10]);
        frame.resize(60, 0);
        frame
    }

    #[test]
    fn a_request_is_read_and_answered_to_its_sender() {
        let request = ArpFrame::parse(&request()).unwrap();
        assert_eq!(
            (request.operation, request.sender, request.target),
            (Operation::Request, ASKER, ADDRESS)
        );
        let answer = ArpFrame::parse(&request.answer(OURS).encode()).unwrap();
        let expected = ArpFrame {
            destination: THEIRS,
            source: OURS,
            operation: Operation::Reply,
            sender_mac: OURS,
            sender: ADDRESS,
            target_mac: THEIRS,
            target: ASKER,
        };
        assert_eq!(answer, expected);
    }

    #[test]
    fn what_is_cut_off_or_of_another_kind_is_nothing() {
        let whole = request();
        for length in 0..42 {
            assert_eq!(ArpFrame::parse(&whole[..length]), None, "{length} bytes");
        }
        for (place, other) in [(12, 0x86), (15, 6), (17, 6), (18, 8), (19, 16), (21, 3), (20, 1)] {
            let mut frame = whole.clone();
            frame[place] = other;
            assert_eq!(ArpFrame::parse(&frame), None, "byte {place} is {other}");
        }
    }

    #[test]
    fn a_gratuitous_packet_has_the_address_as_sender_and_target() {
        for operation in [Operation::Request, Operation::Reply] {
            let frame = ArpFrame::gratuitous(OURS, ADDRESS, operation);
            assert_eq!((frame.sender, frame.target), (ADDRESS, ADDRESS));
            assert_eq!(frame.destination, MacAddress::BROADCAST);
            assert_eq!(ArpFrame::parse(&frame.encode()), Some(frame));
        }
    }
}
