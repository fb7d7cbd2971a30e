//! Decodes router solicitations and advertisements, and encodes ours.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use std::net::Ipv6Addr;

/// ICMPv6 type of a router solicitation (RFC 4861 §4.1).
pub const ROUTER_SOLICITATION: u8 = 133;
/// ICMPv6 type of a router advertisement (RFC 4861 §4.2).
pub const ROUTER_ADVERTISEMENT: u8 = 134;

/// A hop limit that proves that the packet was not forwarded: it is from this link (RFC 4861 §6.1).
pub const HOP_LIMIT: u8 = 255;

/// Option with the sender's link-layer address (RFC 4861 §4.6.1).
const SOURCE_LINK_LAYER_ADDRESS: u8 = 1;
/// The unit of option lengths, in octets.
const OPTION_UNIT_BYTES: usize = 8;
/// Octets of a solicitation before its options.
const SOLICITATION_LENGTH_BYTES: usize = 8;
/// Octets of an advertisement before its options.
const ADVERTISEMENT_LENGTH_BYTES: usize = 16;

/// An ICMPv6 packet as received. The kernel has verified its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The source address.
    pub source: Ipv6Addr,
    /// The received hop limit.
    pub hop_limit: u8,
    /// The packet from the ICMPv6 type on.
    pub bytes: &'a [u8],
}

/// A decoded packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// A request for router advertisements.
    Solicitation,
    /// There is a router at `source`.
    Advertisement {
        /// Its address on this link.
        source: Ipv6Addr,
        /// How long hosts may use it as default router, 0 for not at all.
        lifetime_seconds: u16,
    },
}

/// Why a packet is dropped silently (RFC 4861 §6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NdpFault {
    /// It may be from another link.
    #[error("hop limit {0}, expected 255: the packet may not be from this link")]
    HopLimit(u8),
    /// It is not router discovery.
    #[error("ICMPv6 type {0}, expected 133 or 134")]
    Type(u8),
    /// The code is always 0.
    #[error("code {0}, expected 0")]
    Code(u8),
    /// It is truncated.
    #[error("{length} octets, expected at least {least}")]
    Length {
        /// Its length.
        length: usize,
        /// The minimum length.
        least: usize,
    },
    /// An option of length 0, or one that exceeds the packet.
    #[error("an option exceeds the packet, or has length 0")]
    Option,
    /// The source of an advertisement must be link-local.
    #[error("source {0} is not link-local")]
    Source(Ipv6Addr),
    /// A sender without an address must not give its link-layer address.
    #[error("a solicitation without a source address has a source link-layer address option")]
    SourceOption,
}

impl Message {
    /// Decodes a packet, and rejects it if RFC 4861 §6.1 requires that.
    pub fn parse(packet: Packet<'_>) -> Result<Self, NdpFault> {
        let Packet { source, hop_limit, bytes } = packet;
        if hop_limit != HOP_LIMIT {
            return Err(NdpFault::HopLimit(hop_limit));
        }
        let too_short = |least| NdpFault::Length { length: bytes.len(), least };
        let [kind, code, ..] = *bytes else { return Err(too_short(SOLICITATION_LENGTH_BYTES)) };
        let least = match kind {
            ROUTER_SOLICITATION => SOLICITATION_LENGTH_BYTES,
            ROUTER_ADVERTISEMENT => ADVERTISEMENT_LENGTH_BYTES,
            _ => return Err(NdpFault::Type(kind)),
        };
        if code != 0 {
            return Err(NdpFault::Code(code));
        }
        let (fixed, options) = bytes.split_at_checked(least).ok_or_else(|| too_short(least))?;
        let names_its_link_layer = read_options(options)?;
        if kind == ROUTER_SOLICITATION {
            if source.is_unspecified() && names_its_link_layer {
                return Err(NdpFault::SourceOption);
            }
            return Ok(Self::Solicitation);
        }
        if !source.is_unicast_link_local() {
            return Err(NdpFault::Source(source));
        }
        // The hop limit for hosts and flags are before it, timers for hosts after it.
        let lifetime_seconds = match *fixed {
            [_, _, _, _, _, _, high, low, ..] => u16::from_be_bytes([high, low]),
            _ => return Err(too_short(least)),
        };
        Ok(Self::Advertisement { source, lifetime_seconds })
    }
}

/// Iterates over the options. Returns whether one of them has the sender's link-layer address; the others are
/// for hosts.
fn read_options(mut options: &[u8]) -> Result<bool, NdpFault> {
    let mut names_its_link_layer = false;
    while let Some(kind) = options.first() {
        let units = options.get(1).copied().filter(|units| *units > 0).ok_or(NdpFault::Option)?;
        let length = usize::from(units).saturating_mul(OPTION_UNIT_BYTES);
        names_its_link_layer |= *kind == SOURCE_LINK_LAYER_ADDRESS;
        (_, options) = options.split_at_checked(length).ok_or(NdpFault::Option)?;
    }
    Ok(names_its_link_layer)
}

/// Our advertisement: there is a router here, but not a default router (lifetime 0). No prefix and no
/// settings for hosts are included. The kernel adds the checksum.
pub fn router_advertisement(link_layer_address: Option<[u8; 6]>) -> Vec<u8> {
    let mut bytes = vec![0; ADVERTISEMENT_LENGTH_BYTES];
    if let Some(kind) = bytes.first_mut() {
        *kind = ROUTER_ADVERTISEMENT;
    }
    if let Some(address) = link_layer_address {
        bytes.extend_from_slice(&[SOURCE_LINK_LAYER_ADDRESS, 1]);
        bytes.extend_from_slice(&address);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTER: Ipv6Addr = Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 1);

    fn parse(bytes: &[u8]) -> Result<Message, NdpFault> {
        Message::parse(Packet { source: ROUTER, hop_limit: 255, bytes })
    }

    fn advertisement(options: &[u8]) -> Vec<u8> {
        [&[134, 0, 0xAB, 0xCD, 64, 0, 0, 30, 0, 0, 0, 0, 0, 0, 0, 0][..], options].concat()
    }

    fn solicitation(options: &[u8]) -> Vec<u8> {
        [&[133, 0, 0xAB, 0xCD, 0, 0, 0, 0][..], options].concat()
    }

    //= RFC 4861 §6.2.3 MUST: reserved octets of an advertisement are sent as zero.
    #[test]
    fn golden_bytes_of_our_advertisement() {
        let ours = router_advertisement(Some([2, 0, 0, 0, 0, 9]));
        let fixed = [134, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(ours, [&fixed[..], &[1, 1, 2, 0, 0, 0, 0, 9]].concat());
        assert_eq!(router_advertisement(None), fixed);
        let read = Message::Advertisement { source: ROUTER, lifetime_seconds: 0 };
        assert_eq!(parse(&ours), Ok(read));
    }

    //= RFC 4861 §6.1.2 MUST: options that are not known are ignored, and the rest is read.
    //= RFC 4861 §6.1.2 MUST: reserved octets of an advertisement are ignored when it is received.
    #[test]
    fn an_advertisement_with_options_for_hosts_is_read() {
        let read = Ok(Message::Advertisement { source: ROUTER, lifetime_seconds: 30 });
        assert_eq!(parse(&advertisement(&[])), read);
        let mtu = [5, 1, 0xFF, 0xFF, 0, 0, 5, 0xDC];
        let prefix = [&[3, 4][..], &[0xAA; 30]].concat();
        let unknown = [&[200, 2][..], &[0; 14]].concat();
        let options = [&mtu[..], &prefix, &unknown].concat();
        assert_eq!(parse(&advertisement(&options)), read);
        let mut flags = advertisement(&[]);
        flags[5] = 0xFF;
        assert_eq!(parse(&flags), read);
    }

    //= RFC 4861 §6.1.2 MUST: an advertisement that is not valid is thrown away without a word.
    #[test]
    fn an_advertisement_must_be_of_this_link_and_whole() {
        let good = advertisement(&[]);
        let packet = Packet { source: ROUTER, hop_limit: 255, bytes: &good };
        for hop_limit in [0, 1, 64, 254] {
            let outcome = Message::parse(Packet { hop_limit, ..packet });
            assert_eq!(outcome, Err(NdpFault::HopLimit(hop_limit)));
        }
        for source in ["::", "2001:db8::1", "ff02::1", "fec0::1"] {
            let source = source.parse().unwrap();
            assert_eq!(Message::parse(Packet { source, ..packet }), Err(NdpFault::Source(source)));
        }
        for length in 0..good.len() {
            let outcome = parse(&good[..length]);
            assert!(matches!(outcome, Err(NdpFault::Length { .. })), "{length}: {outcome:?}");
        }
        assert_eq!(parse(&[&[134, 1], &good[2..]].concat()), Err(NdpFault::Code(1)));
        assert_eq!(parse(&[&[135, 0], &good[2..]].concat()), Err(NdpFault::Type(135)));
    }

    //= RFC 4861 §4.6 MUST: a packet with an option of length zero is thrown away.
    #[test]
    fn an_option_of_no_length_never_ends_and_is_refused() {
        for options in [&[1, 0, 0, 0, 0, 0, 0, 0][..], &[3, 4, 0, 0], &[5], &[5, 1, 0, 0, 0, 0, 0]]
        {
            assert_eq!(parse(&advertisement(options)), Err(NdpFault::Option), "{options:?}");
            assert_eq!(parse(&solicitation(options)), Err(NdpFault::Option), "{options:?}");
        }
    }

    //= RFC 4861 §6.1.1 MUST: a solicitation that is not valid is thrown away without a word.
    #[test]
    fn a_solicitation_comes_from_anybody_on_the_link() {
        let named = solicitation(&[1, 1, 2, 0, 0, 0, 0, 9]);
        let from = |source: &str, bytes: &[u8]| {
            Message::parse(Packet { source: source.parse().unwrap(), hop_limit: 255, bytes })
        };
        assert_eq!(from("fe80::7", &named), Ok(Message::Solicitation));
        assert_eq!(from("2001:db8::7", &named), Ok(Message::Solicitation));
        assert_eq!(from("::", &solicitation(&[])), Ok(Message::Solicitation));
        assert_eq!(from("::", &named), Err(NdpFault::SourceOption));
        assert!(from("fe80::7", &named[..7]).is_err());
    }
}
