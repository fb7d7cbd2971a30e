//! Capabilities on the wire (RFC 5492): bytes to values and back. Unknown ones are kept as bytes.

use fairway_seam::capability::{
    AddPathOffer, AddressFamilyPair, Capability, KeptFamily, LongLivedOffer, NextHopEncoding,
    RestartOffer,
};

use super::Reader;

/// The bit F of both restart capabilities.
const FORWARDING: u8 = 0x80;

/// Parses the value of one optional parameter: capabilities up to its end.
pub(super) fn parse_all(parameter: &[u8]) -> Option<Vec<Capability>> {
    let mut reader = Reader::new(parameter);
    let mut capabilities = Vec::new();
    while !reader.is_empty() {
        let code = reader.u8()?;
        let value = reader.counted_u8()?;
        capabilities.push(parse(code, value));
    }
    Some(capabilities)
}

/// Whether it is a four-octet AS capability with an invalid value.
pub(super) fn is_broken_four_octet_as(capability: &Capability) -> bool {
    matches!(capability, Capability::Other { code: 65, .. })
}

/// Parses one value. A known code with a value of the wrong size is kept as `Other`: its meaning is
/// unclear, and one malformed capability is no reason to reject the rest.
fn parse(code: u8, value: &[u8]) -> Capability {
    let other = || Capability::Other { code, value: value.to_vec() };
    match (code, value) {
        (1, [afi_high, afi_low, _reserved, safi]) => Capability::Multiprotocol(AddressFamilyPair {
            afi: u16::from_be_bytes([*afi_high, *afi_low]),
            safi: *safi,
        }),
        (2, []) => Capability::RouteRefresh,
        (5, value) => tuples(value, parse_next_hop).map_or_else(other, Capability::ExtendedNextHop),
        (6, []) => Capability::ExtendedMessage,
        (9, [role]) => Capability::Role(*role),
        (64, value) => parse_restart(value).map_or_else(other, Capability::GracefulRestart),
        (65, [a, b, c, d]) => Capability::FourOctetAs(u32::from_be_bytes([*a, *b, *c, *d])),
        (69, value) => tuples(value, parse_add_path).map_or_else(other, Capability::AddPath),
        (70, []) => Capability::EnhancedRouteRefresh,
        // Zero or more tuples: a speaker without families only helps others (RFC 9494 §3.1).
        (71, []) => Capability::LongLivedGracefulRestart(Vec::new()),
        (71, value) => {
            tuples(value, parse_long_lived).map_or_else(other, Capability::LongLivedGracefulRestart)
        }
        (73, value) => parse_host_name(value).unwrap_or_else(other),
        (75, [length, text @ ..]) if usize::from(*length) == text.len() => {
            Capability::SoftwareVersion(text.to_vec())
        }
        _ => other(),
    }
}

/// A length-prefixed host name, then a length-prefixed domain.
fn parse_host_name(value: &[u8]) -> Option<Capability> {
    let mut reader = Reader::new(value);
    let (host, domain) = (reader.counted_u8()?, reader.counted_u8()?);
    reader.is_empty().then(|| Capability::HostName { host: host.to_vec(), domain: domain.to_vec() })
}

fn parse_add_path(tuple: [u8; 4]) -> Option<AddPathOffer> {
    let [afi_high, afi_low, safi, mode] = tuple;
    let family = AddressFamilyPair { afi: u16::from_be_bytes([afi_high, afi_low]), safi };
    // Other values are ignored.
    (1..=3).contains(&mode).then_some(AddPathOffer {
        family,
        receive: mode & 1 != 0,
        send: mode & 2 != 0,
    })
}

/// RFC 8950 §4 gives the SAFI two octets.
fn parse_next_hop(tuple: [u8; 6]) -> Option<NextHopEncoding> {
    let [afi_high, afi_low, 0, safi, next_hop_high, next_hop_low] = tuple else { return None };
    let family = AddressFamilyPair { afi: u16::from_be_bytes([afi_high, afi_low]), safi };
    Some(NextHopEncoding {
        family,
        next_hop_afi: u16::from_be_bytes([next_hop_high, next_hop_low]),
    })
}

fn parse_restart(value: &[u8]) -> Option<RestartOffer> {
    let ([high, low], families) = value.split_first_chunk()?;
    let (families, []) = families.as_chunks() else { return None };
    let kept = |[afi_high, afi_low, safi, flags]: &[u8; 4]| KeptFamily {
        family: AddressFamilyPair { afi: u16::from_be_bytes([*afi_high, *afi_low]), safi: *safi },
        forwarding: flags & FORWARDING != 0,
    };
    Some(RestartOffer {
        restarted: high & 0x80 != 0,
        notifications: high & 0x40 != 0,
        restart_time_seconds: u16::from_be_bytes([high & 0x0F, *low]),
        families: families.iter().map(kept).collect(),
    })
}

#[allow(clippy::unnecessary_wraps)] // Every tuple is valid here, unlike those of other capabilities.
fn parse_long_lived(tuple: [u8; 7]) -> Option<LongLivedOffer> {
    let [afi_high, afi_low, safi, flags, time @ ..] = tuple;
    let [high, middle, low] = time;
    Some(LongLivedOffer {
        family: AddressFamilyPair { afi: u16::from_be_bytes([afi_high, afi_low]), safi },
        forwarding: flags & FORWARDING != 0,
        stale_time_seconds: u32::from_be_bytes([0, high, middle, low]),
    })
}

/// A list of tuples. Invalid ones are skipped; `None` if none is left, or if the length does not fit.
fn tuples<const N: usize, T>(value: &[u8], parse: fn([u8; N]) -> Option<T>) -> Option<Vec<T>> {
    let (tuples, rest) = value.as_chunks::<N>();
    let parsed: Vec<T> = tuples.iter().filter_map(|it| parse(*it)).collect();
    (rest.is_empty() && !parsed.is_empty()).then_some(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairway_ground::AddressFamily;

    fn parsed(bytes: &[u8]) -> Capability {
        parse_all(bytes).unwrap().remove(0)
    }

    //= RFC 8950 §4 MUST: the capability has six octets for each family, a SAFI in two of them.
    //= RFC 7911 §4 MUST: the capability has four octets for each family.
    //= RFC 9234 §4.1 MUST: the capability has one octet.
    //= RFC 8654 §3 MUST: the capability has no value.
    #[test]
    fn golden_bytes() {
        let ipv4 = AddressFamilyPair::from(AddressFamily::Ipv4Unicast);
        let both = AddPathOffer { family: ipv4, receive: true, send: true };
        for (capability, bytes) in [
            (
                Capability::ExtendedNextHop(vec![NextHopEncoding::IPV4_OVER_IPV6]),
                &[5, 6, 0, 1, 0, 1, 0, 2][..],
            ),
            (Capability::ExtendedMessage, &[6, 0]),
            (Capability::Role(3), &[9, 1, 3]),
            (Capability::AddPath(vec![both]), &[69, 4, 0, 1, 1, 3]),
            (Capability::EnhancedRouteRefresh, &[70, 0]),
            (Capability::end_of_rib(), &[64, 2, 0, 0]),
            (
                Capability::GracefulRestart(RestartOffer {
                    restarted: true,
                    notifications: true,
                    restart_time_seconds: 0x123,
                    families: vec![
                        KeptFamily { family: ipv4, forwarding: true },
                        KeptFamily { family: AddressFamily::Ipv6Unicast.into(), forwarding: false },
                    ],
                }),
                &[64, 10, 0xC1, 0x23, 0, 1, 1, 0x80, 0, 2, 1, 0],
            ),
            (
                Capability::LongLivedGracefulRestart(vec![LongLivedOffer {
                    family: ipv4,
                    forwarding: true,
                    stale_time_seconds: 0x01_02_03,
                }]),
                &[71, 7, 0, 1, 1, 0x80, 1, 2, 3],
            ),
            (Capability::LongLivedGracefulRestart(Vec::new()), &[71, 0]),
            (
                Capability::HostName { host: b"node".to_vec(), domain: b"lab".to_vec() },
                b"\x49\x09\x04node\x03lab",
            ),
            (Capability::SoftwareVersion(b"FRR/10".to_vec()), b"\x4b\x07\x06FRR/10"),
        ] {
            assert_eq!(capability.encode(), bytes);
            assert_eq!(parsed(bytes), capability);
        }
    }

    //= RFC 7911 §4 SHOULD: a value of send and receive that does not exist is ignored.
    #[test]
    fn tuples_that_mean_nothing_are_left_out() {
        let Capability::AddPath(offers) = parsed(&[69, 8, 0, 1, 1, 4, 0, 2, 1, 1]) else {
            panic!("one of two is good")
        };
        assert_eq!(offers.len(), 1);
        for bytes in [&[64, 1, 0][..], &[64, 4, 0, 120, 0, 1], &[71, 6, 0, 1, 1, 0, 0, 0]] {
            assert!(matches!(parsed(bytes), Capability::Other { .. }), "{bytes:?}");
        }
        for bytes in [&[69, 4, 0, 1, 1, 0][..], &[69, 3, 0, 1, 1], &[69, 0], &[5, 5, 0, 1, 0, 1, 0]]
        {
            assert!(matches!(parsed(bytes), Capability::Other { .. }), "{bytes:?}");
        }
    }
}
