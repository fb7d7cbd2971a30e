//! Neighbour solicitations and advertisements: bytes to values and back (RFC 4861 §4.3, §4.4, §7.1).
//!
//! The frames are whole: the address of a Service is not one of the kernel's, which therefore neither hands
//! over packets to it nor sends any from it. Knows no address of ours. Used by the responder.

use std::net::Ipv6Addr;

use fairway_ground::MacAddress;

use crate::ethernet::{Fields, Header, IPV6};

const ICMPV6: u8 = 58;
/// No router has forwarded the packet (RFC 4861 §7.1.1).
const HOP_LIMIT: u8 = 255;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Options with the hardware address of the sender, and of the target (RFC 4861 §4.6.1).
const SOURCE_LINK_LAYER_ADDRESS: u8 = 1;
const TARGET_LINK_LAYER_ADDRESS: u8 = 2;
/// Options are as many octets as this times their length field.
const OPTION_UNIT_BYTES: usize = 8;

const ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

/// Octets of the header of IPv6.
const IPV6_HEADER_LENGTH_BYTES: usize = 40;
/// Octets of a message with one option.
const MESSAGE_LENGTH_BYTES: u16 = 32;

/// All nodes on the link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1);

/// A valid message about a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeighbourMessage {
    /// Who has the target?
    Solicitation(Solicitation),
    /// Somebody has the target.
    Advertisement(Claim),
}

/// A neighbour solicitation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Solicitation {
    /// The destination of the frame.
    pub destination_mac: MacAddress,
    /// The sender; unspecified while it detects whether somebody else has the address that it wants
    /// (RFC 4862 §5.4.2).
    pub source: Ipv6Addr,
    /// The hardware address of the sender: its option, or else the source of the frame.
    pub source_mac: MacAddress,
    /// The address that is wanted.
    pub target: Ipv6Addr,
}

/// Who says of itself that it has an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The address.
    pub target: Ipv6Addr,
    /// The hardware address: the option, or else the source of the frame.
    pub mac: MacAddress,
}

impl NeighbourMessage {
    /// Reads a frame; `None` for anything else, and for what RFC 4861 §7.1.1 and §7.1.2 have a node discard.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let (header, mut fields) = Header::parse(frame)?;
        let [version, _, _, _] = fields.take()?;
        if header.ethertype != IPV6 || version >> 4 != 6 {
            return None;
        }
        let length = usize::from(u16::from_be_bytes(fields.take()?));
        // Neither kind of message is sent behind an extension header, or in fragments (RFC 6980).
        if fields.take()? != [ICMPV6, HOP_LIMIT] {
            return None;
        }
        let source = Ipv6Addr::from(fields.take()?);
        let destination = Ipv6Addr::from(fields.take()?);
        let message = fields.bytes(length)?;
        if checksum(source, destination, message) != 0 {
            return None;
        }
        let mut fields = Fields(message);
        let [kind, code] = fields.take()?;
        let [_, _, flags, _, _, _] = fields.take()?;
        let target = Ipv6Addr::from(fields.take()?);
        if code != 0 || target.is_multicast() {
            return None;
        }
        let own_option = |wanted| link_layer_address(fields, wanted);
        match kind {
            SOLICITATION => {
                let option = own_option(SOURCE_LINK_LAYER_ADDRESS).ok()?;
                let is_detection = source.is_unspecified();
                if is_detection && (option.is_some() || destination != solicited_node(target)) {
                    return None;
                }
                let source_mac = option.unwrap_or(header.source);
                let destination_mac = header.destination;
                let is_valid = !source.is_multicast() && source_mac.is_unicast();
                is_valid.then_some(Self::Solicitation(Solicitation {
                    destination_mac,
                    source,
                    source_mac,
                    target,
                }))
            }
            ADVERTISEMENT => {
                let option = own_option(TARGET_LINK_LAYER_ADDRESS).ok()?;
                if destination.is_multicast() && flags & SOLICITED != 0 {
                    return None;
                }
                let mac = option.unwrap_or(header.source);
                mac.is_unicast().then_some(Self::Advertisement(Claim { target, mac }))
            }
            _ => None,
        }
    }
}

/// The value of an option of Ethernet's length.
///
/// # Errors
/// An option has no length, or is cut off: the whole message is invalid.
fn link_layer_address(mut options: Fields<'_>, wanted: u8) -> Result<Option<MacAddress>, ()> {
    let mut found = None;
    while !options.0.is_empty() {
        let [kind, units] = options.take().ok_or(())?;
        let length = usize::from(units).checked_mul(OPTION_UNIT_BYTES).ok_or(())?;
        let value = options.bytes(length.checked_sub(2).ok_or(())?).ok_or(())?;
        if kind == wanted && found.is_none() {
            found = value.try_into().ok().map(MacAddress);
        }
    }
    Ok(found)
}

/// The group that a node with this address is in (RFC 4291 §2.7.1).
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, a, b, c])
}

/// The hardware address of a group (RFC 2464 §7).
fn group_mac(group: Ipv6Addr) -> MacAddress {
    let [.., a, b, c, d] = group.octets();
    MacAddress([0x33, 0x33, a, b, c, d])
}

/// A neighbour advertisement of an address that `mac` has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advertisement {
    /// The address, which is also the source of the packet.
    pub address: Ipv6Addr,
    /// Where it is.
    pub mac: MacAddress,
    /// The node forwards packets.
    pub is_router: bool,
    /// Who asked, and where that is; `None` tells all nodes.
    pub asker: Option<(Ipv6Addr, MacAddress)>,
}

impl Advertisement {
    /// The answer to `solicitation`. A node that detects duplicates has no address yet: all nodes are told
    /// (RFC 4861 §7.2.4).
    pub fn answering(solicitation: &Solicitation, mac: MacAddress, is_router: bool) -> Self {
        let Solicitation { source, source_mac, target, .. } = *solicitation;
        let asker = (!source.is_unspecified()).then_some((source, source_mac));
        Self { address: target, mac, is_router, asker }
    }

    /// The bytes of the frame. The Override flag is set, so that a neighbour replaces the address of the
    /// former owner (RFC 4861 §7.2.6).
    pub fn encode(&self) -> Vec<u8> {
        let (destination, destination_mac) =
            self.asker.unwrap_or((ALL_NODES, group_mac(ALL_NODES)));
        let header = Header { destination: destination_mac, source: self.mac, ethertype: IPV6 };
        let solicited = if self.asker.is_some() { SOLICITED } else { 0 };
        let router = if self.is_router { ROUTER } else { 0 };
        let mut message = vec![ADVERTISEMENT, 0, 0, 0, router | solicited | OVERRIDE, 0, 0, 0];
        message.extend(self.address.octets());
        message.extend([TARGET_LINK_LAYER_ADDRESS, 1]);
        message.extend(self.mac.0);
        framed(header, self.address, destination, message)
    }
}

/// The frame in which `source` asks who has `target`, and names its hardware address.
pub fn solicitation(mac: MacAddress, source: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let group = solicited_node(target);
    let header = Header { destination: group_mac(group), source: mac, ethertype: IPV6 };
    let mut message = vec![SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
    message.extend(target.octets());
    message.extend([SOURCE_LINK_LAYER_ADDRESS, 1]);
    message.extend(mac.0);
    framed(header, source, group, message)
}

/// A message with one option in its packet and frame. The checksum is put in.
fn framed(
    header: Header,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    mut message: Vec<u8>,
) -> Vec<u8> {
    let sum = checksum(source, destination, &message).to_be_bytes();
    if let Some(field) = message.get_mut(2..4) {
        field.copy_from_slice(&sum);
    }
    let mut frame = header.begin(IPV6_HEADER_LENGTH_BYTES.saturating_add(message.len()));
    frame.extend([0x60, 0, 0, 0]);
    frame.extend(MESSAGE_LENGTH_BYTES.to_be_bytes());
    frame.extend([ICMPV6, HOP_LIMIT]);
    frame.extend(source.octets());
    frame.extend(destination.octets());
    frame.extend(message);
    frame
}

/// The checksum of ICMPv6 over the pseudo-header and the message (RFC 4443 §2.3): 0 where the message has the
/// right one, the one to put in where its field is 0.
fn checksum(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> u16 {
    let length = u64::try_from(message.len()).unwrap_or(u64::MAX);
    let addresses = source.octets().into_iter().chain(destination.octets());
    let head: u64 = pairs(addresses).sum();
    let body: u64 = pairs(message.iter().copied()).sum();
    // No frame has so many octets that 64 bits overflow.
    let mut sum = head.saturating_add(body).saturating_add(length).saturating_add(ICMPV6.into());
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF).saturating_add(sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}

/// Words of two octets, the last one padded with 0.
fn pairs(bytes: impl Iterator<Item = u8>) -> impl Iterator<Item = u64> {
    bytes.enumerate().map(|(place, byte)| {
        let byte = u64::from(byte);
        if place % 2 == 0 { byte << 8 } else { byte }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const THEIRS: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    fn address(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    /// A frame from `THEIRS` with a message of ICMPv6, its checksum put right.
    fn frame(source: &str, destination: &str, mut message: Vec<u8>) -> Vec<u8> {
        let (source, destination) = (address(source), address(destination));
        message[2..4].fill(0);
        let sum = checksum(source, destination, &message).to_be_bytes();
        message[2..4].copy_from_slice(&sum);
        let to = if destination.is_multicast() { group_mac(destination) } else { OURS };
        let mut frame = Header { destination: to, source: THEIRS, ethertype: IPV6 }.begin(0);
        frame.extend([0x60, 0, 0, 0, 0, u8::try_from(message.len()).unwrap(), ICMPV6, HOP_LIMIT]);
        frame.extend(source.octets());
        frame.extend(destination.octets());
        frame.extend(message);
        frame
    }

    fn message(kind: u8, flags: u8, target: &str, options: &[u8]) -> Vec<u8> {
        let mut message = vec![kind, 0, 0, 0, flags, 0, 0, 0];
        message.extend(address(target).octets());
        message.extend(options);
        message
    }

    const SLLA: [u8; 8] = [1, 1, 2, 0, 0, 0, 0, 3];

    #[test]
    fn a_solicitation_is_read_as_it_was_written() {
        let (source, target) = (address("fe80::1"), address("2001:db8::10"));
        let frame = solicitation(OURS, source, target);
        let expected = Solicitation {
            destination_mac: group_mac(solicited_node(target)),
            source,
            source_mac: OURS,
            target,
        };
        assert_eq!(NeighbourMessage::parse(&frame), Some(NeighbourMessage::Solicitation(expected)));
    }

    #[test]
    fn solicitations_are_read_with_and_without_the_option() {
        let group = solicited_node(address("2001:db8::10")).to_string();
        assert_eq!(group, "ff02::1:ff00:10");
        for (destination, options, mac) in [
            (group.as_str(), &SLLA[..], MacAddress([2, 0, 0, 0, 0, 3])),
            ("2001:db8::10", &[][..], THEIRS),
        ] {
            let bytes = frame("fe80::2", destination, message(135, 0, "2001:db8::10", options));
            let Some(NeighbourMessage::Solicitation(read)) = NeighbourMessage::parse(&bytes) else {
                panic!("{destination} was not read");
            };
            assert_eq!((read.source, read.source_mac), (address("fe80::2"), mac));
            assert_eq!(read.target, address("2001:db8::10"));
        }
    }

    #[test]
    fn what_a_node_must_discard_is_nothing() {
        let group = "ff02::1:ff00:10";
        let good = frame("fe80::2", group, message(135, 0, "2001:db8::10", &SLLA));
        assert!(NeighbourMessage::parse(&good).is_some());
        for length in 0..good.len() {
            assert_eq!(NeighbourMessage::parse(&good[..length]), None, "{length} bytes");
        }
        let mut forwarded = good.clone();
        forwarded[21] = 254;
        let mut damaged = good.clone();
        damaged[60] ^= 1;
        let mut coded = message(135, 0, "2001:db8::10", &SLLA);
        coded[1] = 1;
        let bad = [
            ("a hop limit of 254", forwarded),
            ("a checksum", damaged),
            ("a code", frame("fe80::2", group, coded)),
            ("a group as target", frame("fe80::2", group, message(135, 0, "ff02::1", &SLLA))),
            (
                "an option of length 0",
                frame("fe80::2", group, message(135, 0, "2001:db8::10", &[1, 0])),
            ),
            (
                "an option cut off",
                frame("fe80::2", group, message(135, 0, "2001:db8::10", &[1, 2, 0])),
            ),
            (
                "detection with an option",
                frame("::", group, message(135, 0, "2001:db8::10", &SLLA)),
            ),
            (
                "detection to one node",
                frame("::", "2001:db8::10", message(135, 0, "2001:db8::10", &[])),
            ),
            (
                "solicited and to a group",
                frame("fe80::2", "ff02::1", message(136, SOLICITED, "2001:db8::10", &[])),
            ),
            ("another message", frame("fe80::2", group, message(134, 0, "2001:db8::10", &[]))),
        ];
        for (what, bytes) in bad {
            assert_eq!(NeighbourMessage::parse(&bytes), None, "{what}");
        }
    }

    #[test]
    fn an_answer_goes_to_the_asker_and_detection_is_answered_to_all() {
        let group = "ff02::1:ff00:10";
        let asked = frame("fe80::2", group, message(135, 0, "2001:db8::10", &SLLA));
        let detected = frame("::", group, message(135, 0, "2001:db8::10", &[]));
        for (bytes, to, flags) in [
            (asked, MacAddress([2, 0, 0, 0, 0, 3]), ROUTER | SOLICITED | OVERRIDE),
            (detected, MacAddress([0x33, 0x33, 0, 0, 0, 1]), ROUTER | OVERRIDE),
        ] {
            let Some(NeighbourMessage::Solicitation(read)) = NeighbourMessage::parse(&bytes) else {
                panic!("not read");
            };
            let answer = Advertisement::answering(&read, OURS, true).encode();
            assert_eq!(&answer[..6], &to.0);
            assert_eq!(answer[21], HOP_LIMIT);
            assert_eq!(&answer[22..38], &address("2001:db8::10").octets(), "the source");
            assert_eq!(answer[58], flags);
            let of_host = Advertisement::answering(&read, OURS, false).encode();
            assert_eq!(of_host[58], flags & !ROUTER, "a host that forwards nothing");
            let expected = Claim { target: address("2001:db8::10"), mac: OURS };
            assert_eq!(
                NeighbourMessage::parse(&answer),
                Some(NeighbourMessage::Advertisement(expected))
            );
        }
    }
}
