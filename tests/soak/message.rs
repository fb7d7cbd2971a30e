//! The bytes of a scripted neighbour, written by hand from RFC 4271, 4760 and 6793: none of
//! fairway's own codec is used, so that a fault in it cannot agree with itself.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncRead, AsyncReadExt};

pub(crate) const OPEN: u8 = 1;
pub(crate) const UPDATE: u8 = 2;
pub(crate) const NOTIFICATION: u8 = 3;
pub(crate) const KEEPALIVE: u8 = 4;

const HEADER_LENGTH_BYTES: u16 = 19;
/// Routes in one full UPDATE: 4096 bytes less header, lengths and attributes, 4 for each /24.
const PREFIXES_MAX: usize = 1000;

/// A message as it came.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) kind: u8,
    pub(crate) body: Vec<u8>,
}

/// A prefix of IPv4: its address and its length.
pub(crate) type Prefix = (Ipv4Addr, u8);

/// Header and body.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = HEADER_LENGTH_BYTES + u16::try_from(body.len()).unwrap_or(u16::MAX - 19);
    let mut bytes = vec![0xff; 16];
    bytes.extend(length.to_be_bytes());
    bytes.push(kind);
    bytes.extend(body);
    bytes
}

/// An OPEN that offers IPv4 unicast and four-octet AS numbers.
pub(crate) fn open(asn: u16, hold_time_seconds: u16, router_id: Ipv4Addr) -> Vec<u8> {
    let mut body = vec![4];
    body.extend(asn.to_be_bytes());
    body.extend(hold_time_seconds.to_be_bytes());
    body.extend(router_id.octets());
    let mut capabilities = vec![1, 4, 0, 1, 0, 1, 65, 4];
    capabilities.extend(u32::from(asn).to_be_bytes());
    body.extend([14, 2, 12]);
    body.extend(capabilities);
    message(OPEN, &body)
}

pub(crate) fn keepalive() -> Vec<u8> {
    message(KEEPALIVE, &[])
}

pub(crate) fn notification(code: u8, subcode: u8) -> Vec<u8> {
    message(NOTIFICATION, &[code, subcode])
}

/// UPDATEs that announce `count` different /24 from 1.0.0.0 on, through `next_hop`; `med` makes
/// them differ from an earlier announcement of the same.
pub(crate) fn flood(asn: u16, next_hop: Ipv4Addr, count: usize, med: u32) -> Vec<u8> {
    let mut attributes = vec![0x40, 1, 1, 0, 0x40, 2, 6, 2, 1];
    attributes.extend(u32::from(asn).to_be_bytes());
    attributes.extend([0x40, 3, 4]);
    attributes.extend(next_hop.octets());
    attributes.extend([0x80, 4, 4]);
    attributes.extend(med.to_be_bytes());
    let numbers: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
    let mut bytes = Vec::with_capacity(count * 5);
    for part in numbers.chunks(PREFIXES_MAX) {
        let mut body = vec![0, 0];
        body.extend(u16::try_from(attributes.len()).unwrap_or(0).to_be_bytes());
        body.extend(&attributes);
        for number in part {
            let [_, high, middle, low] = (number + (1 << 16)).to_be_bytes();
            body.extend([24, high, middle, low]);
        }
        bytes.extend(message(UPDATE, &body));
    }
    bytes
}

/// The next message; an error when the connection ends or is out of step.
pub(crate) async fn read_message(stream: &mut (impl AsyncRead + Unpin)) -> Result<Message> {
    let mut header = [0; HEADER_LENGTH_BYTES as usize];
    stream.read_exact(&mut header).await.context("the connection ended")?;
    let [marker @ .., high, low, kind] = header;
    ensure!(marker == [0xff; 16], "expected a marker, got {marker:?}");
    let length = u16::from_be_bytes([high, low]);
    let rest = length.checked_sub(HEADER_LENGTH_BYTES).context("a length below 19")?;
    let mut body = vec![0; usize::from(rest)];
    stream.read_exact(&mut body).await.context("the connection ended within a message")?;
    Ok(Message { kind, body })
}

/// The IPv4 prefixes that an UPDATE announces in its NLRI field.
pub(crate) fn announced(body: &[u8]) -> Result<BTreeSet<Prefix>> {
    let after = |bytes: &mut &[u8]| -> Option<()> {
        let (length, rest) = bytes.split_first_chunk::<2>()?;
        *bytes = rest.get(usize::from(u16::from_be_bytes(*length))..)?;
        Some(())
    };
    let mut rest = body;
    after(&mut rest).context("withdrawn routes overrun the UPDATE")?;
    after(&mut rest).context("attributes overrun the UPDATE")?;
    let mut prefixes = BTreeSet::new();
    while let Some((length, bytes)) = rest.split_first() {
        let octets = usize::from(length.div_ceil(8));
        let (prefix, next) = bytes.split_at_checked(octets).context("NLRI overruns the UPDATE")?;
        let mut address = [0; 4];
        address.get_mut(..octets).context("a prefix of more than 32 bits")?.copy_from_slice(prefix);
        prefixes.insert((address.into(), *length));
        rest = next;
    }
    Ok(prefixes)
}
