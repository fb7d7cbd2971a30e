//! The bytes of the neighbours: OPEN, UPDATEs that are encoded before the clock starts, and what they read of the
//! speaker's. None of the daemon's own codec, so that a fault in it cannot agree with itself.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail, ensure};

const HEADER_LENGTH_BYTES: usize = 19;
const MESSAGE_LENGTH_BYTES_MAX: usize = 4096;

pub(crate) const OPEN: u8 = 1;
pub(crate) const UPDATE: u8 = 2;
pub(crate) const NOTIFICATION: u8 = 3;
pub(crate) const KEEPALIVE: u8 = 4;

/// Where the /24 of all neighbours begin.
const LEARNED: u32 = 0x0100_0000;
/// Where the speaker's own /32 begin.
pub(crate) const OWN: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);

/// Header and body.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(HEADER_LENGTH_BYTES + body.len()).unwrap_or(u16::MAX);
    let mut bytes = vec![0xFF; 16];
    bytes.extend(length.to_be_bytes());
    bytes.push(kind);
    bytes.extend(body);
    bytes
}

const FOUR_OCTET_AS: [u8; 2] = [65, 4];
const IPV4_UNICAST: [u8; 6] = [1, 4, 0, 1, 0, 1];
const IPV6_UNICAST: [u8; 6] = [1, 4, 0, 2, 0, 1];

/// An OPEN that offers IPv4 unicast and four-octet AS numbers.
pub(crate) fn open(asn: u32, router_id: Ipv4Addr) -> Vec<u8> {
    open_with(asn, router_id, &IPV4_UNICAST)
}

/// The same, and IPv6 unicast.
pub(crate) fn open_with_ipv6(asn: u32, router_id: Ipv4Addr) -> Vec<u8> {
    open_with(asn, router_id, &[IPV4_UNICAST, IPV6_UNICAST].concat())
}

fn open_with(asn: u32, router_id: Ipv4Addr, families: &[u8]) -> Vec<u8> {
    let short = u16::try_from(asn).unwrap_or(23_456);
    let capabilities = [families, &FOUR_OCTET_AS, &asn.to_be_bytes()].concat();
    let length = u8::try_from(capabilities.len()).unwrap_or(u8::MAX);
    let mut body = vec![4];
    body.extend(short.to_be_bytes());
    body.extend(240_u16.to_be_bytes());
    body.extend(router_id.octets());
    body.extend([length + 2, 2, length]);
    body.extend(capabilities);
    message(OPEN, &body)
}

/// Announces the /24 with these numbers; each `per_update` share their attributes, whose paths differ.
pub(crate) fn announcements(
    asn: u32,
    next_hop: Ipv4Addr,
    numbers: std::ops::Range<u32>,
    per_update: usize,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let numbers: Vec<u32> = numbers.collect();
    for (group, numbers) in numbers.chunks(per_update).enumerate() {
        // As in a real table: some hundred sets of attributes, over and over.
        let origin = 100_000 + u32::try_from(group % 997).unwrap_or_default();
        let mut attributes = vec![0x40, 1, 1, 0, 0x40, 2, 14, 2, 3];
        for hop in [asn, 3356, origin] {
            attributes.extend(hop.to_be_bytes());
        }
        attributes.extend([0x40, 3, 4]);
        attributes.extend(next_hop.octets());
        let room = MESSAGE_LENGTH_BYTES_MAX - HEADER_LENGTH_BYTES - 4 - attributes.len();
        for part in numbers.chunks(room / 4) {
            let length = u16::try_from(attributes.len()).unwrap_or_default();
            let mut body = vec![0, 0];
            body.extend(length.to_be_bytes());
            body.extend(&attributes);
            for number in part {
                let [one, two, three, _] = (LEARNED + (number << 8)).to_be_bytes();
                body.extend([24, one, two, three]);
            }
            bytes.extend(message(UPDATE, &body));
        }
    }
    bytes
}

/// Announces one /24 with a path that none had before.
pub(crate) fn change(asn: u32, next_hop: Ipv4Addr, number: u32, round: u32) -> Vec<u8> {
    let mut attributes = vec![0x40, 1, 1, 0, 0x40, 2, 14, 2, 3];
    for hop in [asn, 3356, 200_000 + round] {
        attributes.extend(hop.to_be_bytes());
    }
    attributes.extend([0x40, 3, 4]);
    attributes.extend(next_hop.octets());
    let length = u16::try_from(attributes.len()).unwrap_or_default();
    let mut body = vec![0, 0];
    body.extend(length.to_be_bytes());
    body.extend(&attributes);
    let [one, two, three, _] = (LEARNED + (number << 8)).to_be_bytes();
    body.extend([24, one, two, three]);
    message(UPDATE, &body)
}

/// The first whole message of the buffer: its length and type.
pub(crate) fn first(buffer: &[u8]) -> Option<(usize, u8)> {
    let length = buffer.get(16..18)?;
    let length = usize::from(u16::from_be_bytes([*length.first()?, *length.last()?]));
    let kind = *buffer.get(18)?;
    (buffer.len() >= length).then_some((length, kind))
}

/// Passes on each announced prefix: of the speaker (/32) or of a neighbour (/24), with its number. Withdrawals of what
/// was never announced are a fault.
pub(crate) fn announced(body: &[u8], mut each: impl FnMut(bool, u32)) -> Result<()> {
    let number = |at: usize| -> Result<usize> {
        let bytes = body.get(at..at + 2).context("an UPDATE that ends early")?;
        let bytes: [u8; 2] = bytes.try_into().context("two bytes")?;
        Ok(usize::from(u16::from_be_bytes(bytes)))
    };
    let withdrawn = number(0)?;
    ensure!(withdrawn == 0, "a withdrawal");
    let attributes = number(2)?;
    let mut rest = body.get(4 + attributes..).context("an UPDATE that ends early")?;
    while let Some((length, tail)) = rest.split_first() {
        match (length, tail) {
            (24, [one, two, three, tail @ ..]) => {
                let address = u32::from_be_bytes([*one, *two, *three, 0]);
                each(false, address.checked_sub(LEARNED).context("another prefix")? >> 8);
                rest = tail;
            }
            (32, [one, two, three, four, tail @ ..]) => {
                let address = u32::from_be_bytes([*one, *two, *three, *four]);
                each(true, address.checked_sub(OWN.into()).context("another prefix")?);
                rest = tail;
            }
            _ => bail!("a prefix of another length: {length}"),
        }
    }
    Ok(())
}

/// A prefix of either family that was announced: address and length.
pub(crate) enum Announced {
    Ipv4(u32, u8),
    Ipv6(u128, u8),
}

const MP_REACH_NLRI: u8 = 14;
const EXTENDED_LENGTH: u8 = 0x10;

/// Passes on each announced prefix of either family. What is withdrawn is passed over.
pub(crate) fn all_announced(
    body: &[u8],
    mut each: impl FnMut(Announced) -> Result<()>,
) -> Result<()> {
    let (_, rest) = counted(body)?;
    let (mut attributes, mut nlri) = counted(rest)?;
    while let [flags, code, rest @ ..] = attributes {
        let (value, rest) = if flags & EXTENDED_LENGTH == 0 {
            let (length, rest) = rest.split_first().context("an attribute that ends early")?;
            rest.split_at_checked(usize::from(*length)).context("an attribute that ends early")?
        } else {
            counted(rest)?
        };
        attributes = rest;
        if *code == MP_REACH_NLRI {
            let next_hop_length = *value.get(3).context("no next hop")?;
            let mut nlri = value.get(5 + usize::from(next_hop_length)..).context("no prefixes")?;
            while let Some((octets, length)) = prefix::<16>(&mut nlri)? {
                each(Announced::Ipv6(u128::from_be_bytes(octets), length))?;
            }
        }
    }
    while let Some((octets, length)) = prefix::<4>(&mut nlri)? {
        each(Announced::Ipv4(u32::from_be_bytes(octets), length))?;
    }
    Ok(())
}

/// What has a length of two octets before it, and the rest.
fn counted(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk().context("an UPDATE that ends early")?;
    let length = usize::from(u16::from_be_bytes(*length));
    rest.split_at_checked(length).context("an UPDATE that ends early")
}

/// Takes one prefix off.
fn prefix<const OCTETS: usize>(nlri: &mut &[u8]) -> Result<Option<([u8; OCTETS], u8)>> {
    let Some((length, rest)) = nlri.split_first() else { return Ok(None) };
    let count = usize::from(*length).div_ceil(8);
    let (bytes, rest) = rest.split_at_checked(count).context("a prefix that ends early")?;
    let mut octets = [0; OCTETS];
    octets.get_mut(..count).context("a prefix that is too long")?.copy_from_slice(bytes);
    *nlri = rest;
    Ok(Some((octets, *length)))
}
