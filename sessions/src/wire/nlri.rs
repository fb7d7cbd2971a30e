//! Unicast prefixes on the wire: a length in bits, then as many octets as that needs
//! (RFC 4271 §4.3, RFC 4760 §5).

use bytes::BufMut;

use super::Reader;
use crate::types::{AddressFamily, Prefix};

/// Octets that `bits` bits need.
fn octets(bits: u8) -> usize {
    usize::from(bits.div_ceil(8))
}

/// Reads prefixes to the end of `bytes`. Host bits that a sloppy sender left set are cleared.
///
/// They are counted before the first is kept: a list that cannot be read costs no memory, and one
/// that can costs no more than its prefixes, of which a hostile message holds four thousand.
pub fn parse_all(family: AddressFamily, bytes: &[u8]) -> Result<Vec<Prefix>, &'static str> {
    let mut reader = Reader::new(bytes);
    let mut count = 0_usize;
    while next(family, &mut reader)?.is_some() {
        count = count.saturating_add(1);
    }
    let mut prefixes = Vec::with_capacity(count);
    let mut reader = Reader::new(bytes);
    while let Some((length, front)) = next(family, &mut reader)? {
        prefixes.push(prefix(family, front, length)?);
    }
    Ok(prefixes)
}

/// The length of the next prefix and its octets; `None` at the end.
fn next<'a>(
    family: AddressFamily,
    reader: &mut Reader<'a>,
) -> Result<Option<(u8, &'a [u8])>, &'static str> {
    let Some(length) = reader.u8() else { return Ok(None) };
    if length > family.address_bits() {
        return Err("its length is more than its address has bits");
    }
    let front = reader.take(octets(length)).ok_or("it ends before its length says")?;
    Ok(Some((length, front)))
}

fn prefix(family: AddressFamily, front: &[u8], length: u8) -> Result<Prefix, &'static str> {
    let mut bits = [0_u8; 16];
    for (to, from) in bits.iter_mut().zip(front) {
        *to = *from;
    }
    let bits = u128::from_be_bytes(bits);
    let prefix = match family {
        // An IPv4 address fills the first 32 of the 128 bits.
        AddressFamily::Ipv4Unicast => {
            Prefix::from_ipv4_bits(u32::try_from(bits >> 96).unwrap_or(0), length)
        }
        AddressFamily::Ipv6Unicast => Prefix::from_ipv6_bits(bits, length),
    };
    prefix.map_err(|_| "its length is more than its address has bits")
}

/// Octets that `prefix` takes on the wire.
pub fn encoded_length(prefix: Prefix) -> usize {
    octets(prefix.length()).saturating_add(1)
}

/// Writes `prefix`.
pub fn encode(prefix: Prefix, to: &mut impl BufMut) {
    to.put_u8(prefix.length());
    let count = octets(prefix.length());
    match prefix.address() {
        std::net::IpAddr::V4(address) => put_front(&address.octets(), count, to),
        std::net::IpAddr::V6(address) => put_front(&address.octets(), count, to),
    }
}

fn put_front(octets: &[u8], count: usize, to: &mut impl BufMut) {
    to.put_slice(octets.get(..count).unwrap_or(octets));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(family: AddressFamily, bytes: &[u8]) -> Vec<String> {
        parse_all(family, bytes).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn golden_bytes_of_both_families() {
        let v4 = [0, 8, 10, 24, 192, 0, 2, 32, 192, 0, 2, 1];
        assert_eq!(
            parse(AddressFamily::Ipv4Unicast, &v4),
            ["0.0.0.0/0", "10.0.0.0/8", "192.0.2.0/24", "192.0.2.1/32"]
        );
        let v6 = [0, 32, 0x20, 1, 0x0d, 0xb8];
        assert_eq!(parse(AddressFamily::Ipv6Unicast, &v6), ["::/0", "2001:db8::/32"]);
    }

    #[test]
    fn every_length_survives_the_round_trip() {
        for (address, family) in [
            ("255.255.255.255", AddressFamily::Ipv4Unicast),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", AddressFamily::Ipv6Unicast),
        ] {
            for length in 0..=family.address_bits() {
                let prefix = Prefix::new(address.parse().unwrap(), length).unwrap();
                let mut bytes = Vec::new();
                encode(prefix, &mut bytes);
                assert_eq!(bytes.len(), encoded_length(prefix));
                assert_eq!(parse_all(family, &bytes), Ok(vec![prefix]));
            }
        }
    }

    #[test]
    fn host_bits_of_a_sloppy_sender_are_cleared() {
        assert_eq!(parse(AddressFamily::Ipv4Unicast, &[20, 10, 1, 255]), ["10.1.240.0/20"]);
    }

    #[test]
    fn a_flood_of_one_octet_prefixes_costs_no_more_than_its_prefixes() {
        let prefixes = parse_all(AddressFamily::Ipv6Unicast, &[0; 4_000]).unwrap();
        assert_eq!((prefixes.len(), prefixes.capacity()), (4_000, 4_000));
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        assert!(parse_all(AddressFamily::Ipv4Unicast, &[33, 1, 1, 1, 1, 1]).is_err());
        assert!(parse_all(AddressFamily::Ipv6Unicast, &[129]).is_err());
        assert!(parse_all(AddressFamily::Ipv6Unicast, &[255]).is_err());
        assert!(parse_all(AddressFamily::Ipv4Unicast, &[24, 10, 1]).is_err());
    }
}
