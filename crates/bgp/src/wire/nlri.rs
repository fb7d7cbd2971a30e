//! Unicast prefixes on the wire: a length in bits, then as many octets as needed (RFC 4271 §4.3, RFC 4760
//! §5); preceded by a path identifier if that was negotiated (RFC 7911 §3).

use bytes::BufMut;

use super::Reader;
use fairway_ground::{AddressFamily, Nlri, PathId, Prefix};

/// The number of octets for `bits` bits.
fn octets(bits: u8) -> usize {
    usize::from(bits.div_ceil(8))
}

/// Octets of a path identifier.
pub const PATH_ID_LENGTH_BYTES: usize = 4;

/// Parses prefixes to the end of `bytes`, each after its path identifier if `path_ids` is set. Host bits that
/// a sender left set are cleared.
///
/// They are counted before the first is stored: a malformed list costs no memory, and a valid one no more
/// than its prefixes: four thousand in a hostile message, and sixteen times as many in an extended one.
pub fn parse_all(
    family: AddressFamily,
    path_ids: bool,
    bytes: &[u8],
) -> Result<Vec<Nlri>, &'static str> {
    let mut reader = Reader::new(bytes);
    let mut count = 0_usize;
    while next(family, path_ids, &mut reader)?.is_some() {
        count = count.saturating_add(1);
    }
    let mut prefixes = Vec::with_capacity(count);
    let mut reader = Reader::new(bytes);
    while let Some(Encoded { path_id, length, front }) = next(family, path_ids, &mut reader)? {
        prefixes.push(Nlri { prefix: prefix(family, front, length)?, path_id });
    }
    Ok(prefixes)
}

/// A prefix as received: its path identifier, its length in bits, and its octets.
struct Encoded<'a> {
    path_id: PathId,
    length: u8,
    front: &'a [u8],
}

/// The next prefix; `None` at the end.
fn next<'a>(
    family: AddressFamily,
    path_ids: bool,
    reader: &mut Reader<'a>,
) -> Result<Option<Encoded<'a>>, &'static str> {
    if reader.is_empty() {
        return Ok(None);
    }
    let path_id = match path_ids {
        true => PathId::new(reader.u32().ok_or("truncated path identifier")?),
        false => PathId::NONE,
    };
    let length = reader.u8().ok_or("no prefix after the path identifier")?;
    if length > family.address_bits() {
        return Err("the prefix length exceeds the address length");
    }
    let front = reader.take(octets(length)).ok_or("the prefix is truncated")?;
    Ok(Some(Encoded { path_id, length, front }))
}

fn prefix(family: AddressFamily, front: &[u8], length: u8) -> Result<Prefix, &'static str> {
    let mut bits = [0_u8; 16];
    for (to, from) in bits.iter_mut().zip(front) {
        *to = *from;
    }
    let bits = u128::from_be_bytes(bits);
    let prefix = match family {
        // An IPv4 address is in the first 32 of the 128 bits.
        AddressFamily::Ipv4Unicast => {
            Prefix::from_ipv4_bits(u32::try_from(bits >> 96).unwrap_or(0), length)
        }
        AddressFamily::Ipv6Unicast => Prefix::from_ipv6_bits(bits, length),
    };
    prefix.map_err(|_| "the prefix length exceeds the address length")
}

/// The number of octets of `nlri` on the wire.
pub fn encoded_length(nlri: Nlri, path_ids: bool) -> usize {
    let path_id = if path_ids { PATH_ID_LENGTH_BYTES } else { 0 };
    octets(nlri.prefix.length()).saturating_add(1).saturating_add(path_id)
}

/// Writes `nlri`, with its path identifier if `path_ids` is set.
pub fn encode(nlri: Nlri, path_ids: bool, to: &mut impl BufMut) {
    let Nlri { prefix, path_id } = nlri;
    if path_ids {
        to.put_u32(path_id.get());
    }
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
        parse_all(family, false, bytes).unwrap().iter().map(ToString::to_string).collect()
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
                let nlri = Prefix::new(address.parse().unwrap(), length).unwrap().into();
                let mut bytes = Vec::new();
                encode(nlri, false, &mut bytes);
                assert_eq!(bytes.len(), encoded_length(nlri, false));
                assert_eq!(parse_all(family, false, &bytes), Ok(vec![nlri]));
            }
        }
    }

    fn path(number: u32, prefix: &str) -> Nlri {
        Nlri { prefix: prefix.parse().unwrap(), path_id: PathId::new(number) }
    }

    //= RFC 7911 §3 MUST: a path identifier of four octets stands before each prefix.
    #[test]
    fn golden_bytes_of_paths_to_a_prefix() {
        let bytes = [
            [0, 0, 0, 1, 24, 192, 0, 2].as_slice(), // path 1 to 192.0.2.0/24
            &[0xFF, 0xFF, 0xFF, 0xFF, 24, 192, 0, 2], // the last path to it
            &[0, 0, 0, 0, 0],                       // path 0 to 0.0.0.0/0
        ]
        .concat();
        let paths = [path(1, "192.0.2.0/24"), path(u32::MAX, "192.0.2.0/24"), path(0, "0.0.0.0/0")];
        assert_eq!(parse_all(AddressFamily::Ipv4Unicast, true, &bytes).unwrap(), paths);
        let mut again = Vec::new();
        paths.iter().for_each(|nlri| encode(*nlri, true, &mut again));
        assert_eq!(again, bytes);
        assert_eq!(encoded_length(paths[0], true), 8);
        let ipv6 = [0, 0, 0, 7, 32, 0x20, 1, 0x0d, 0xb8];
        let parsed = parse_all(AddressFamily::Ipv6Unicast, true, &ipv6);
        assert_eq!(parsed, Ok(vec![path(7, "2001:db8::/32")]));
    }

    /// A list without path identifiers although they were negotiated: however it is misread, no octet after
    /// its end is read.
    #[test]
    fn prefixes_without_the_identifiers_that_were_agreed_on_are_refused_or_misread() {
        let family = AddressFamily::Ipv4Unicast;
        let bare = [24, 192, 0, 2, 24, 192, 0, 3, 24, 192, 0, 4];
        assert!(parse_all(family, true, &bare).is_err());
        assert!(parse_all(family, true, &[32, 192, 0, 2, 1]).is_err());
        // 192.0.2.0/24 and 192.0.3.0/24 look like a path to 192.0.3.0/24.
        let misread = path(0x18C0_0002, "192.0.3.0/24");
        assert_eq!(parse_all(family, true, &bare[..8]), Ok(vec![misread]));
    }

    #[test]
    fn a_list_that_ends_within_or_behind_an_identifier_is_refused() {
        for end in [1, 2, 3, 4, 5, 7] {
            let bytes = &[0, 0, 0, 1, 24, 192, 0, 2][..end];
            assert!(parse_all(AddressFamily::Ipv4Unicast, true, bytes).is_err(), "{end}");
        }
    }

    #[test]
    fn host_bits_of_a_sloppy_sender_are_cleared() {
        assert_eq!(parse(AddressFamily::Ipv4Unicast, &[20, 10, 1, 255]), ["10.1.240.0/20"]);
    }

    #[test]
    fn a_flood_of_one_octet_prefixes_costs_no_more_than_its_prefixes() {
        let prefixes = parse_all(AddressFamily::Ipv6Unicast, false, &[0; 4_000]).unwrap();
        assert_eq!((prefixes.len(), prefixes.capacity()), (4_000, 4_000));
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        assert!(parse_all(AddressFamily::Ipv4Unicast, false, &[33, 1, 1, 1, 1, 1]).is_err());
        assert!(parse_all(AddressFamily::Ipv6Unicast, false, &[129]).is_err());
        assert!(parse_all(AddressFamily::Ipv6Unicast, false, &[255]).is_err());
        assert!(parse_all(AddressFamily::Ipv4Unicast, false, &[24, 10, 1]).is_err());
    }
}
