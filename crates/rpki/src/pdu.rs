//! The messages of the RPKI-to-router protocol as values and as bytes (RFC 8210 §5, RFC 6810).
//!
//! Reads what a cache sends, writes what a router sends. Knows no order of messages.

use std::net::{Ipv4Addr, Ipv6Addr};

use fairway_ground::{Prefix, RoaPayload};

/// The longest message that is read: only error reports are longer than some hundred bytes, and ours are short.
pub const LENGTH_BYTES_MAX: usize = 64 << 10;

const HEADER_LENGTH_BYTES: usize = 8;

/// The version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// RFC 6810.
    Zero,
    /// RFC 8210.
    One,
}

impl From<Version> for u8 {
    fn from(version: Version) -> Self {
        match version {
            Version::Zero => 0,
            Version::One => 1,
        }
    }
}

/// What a cache says about its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Seconds until its data is asked for again.
    pub refresh_seconds: u32,
    /// Seconds until a question that failed is repeated.
    pub retry_seconds: u32,
    /// Seconds for which its data is used without an answer.
    pub expire_seconds: u32,
}

/// A message of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pdu {
    /// There is something new.
    SerialNotify {
        /// The session of the cache.
        session: u16,
        /// The number of its data.
        serial: u32,
    },
    /// An answer begins.
    CacheResponse {
        /// The session of the cache.
        session: u16,
    },
    /// A payload.
    Payload {
        /// Whether it is said, or taken back.
        is_announced: bool,
        /// What it is.
        payload: RoaPayload,
    },
    /// The key of a router, which is of no use without BGPsec.
    RouterKey,
    /// The answer is complete.
    EndOfData {
        /// The session of the cache.
        session: u16,
        /// The number of its data.
        serial: u32,
        /// In version 1.
        timing: Option<Timing>,
    },
    /// It cannot say what has changed: everything has to be asked for.
    CacheReset,
    /// It reports an error.
    Error {
        /// The number of the error, see [`code`].
        code: u16,
        /// Its words.
        text: String,
    },
}

/// A question to a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// All payloads.
    Reset,
    /// What has changed since.
    Serial {
        /// The session of the cache.
        session: u16,
        /// The number of the data that is known.
        serial: u32,
    },
}

/// Numbers of errors (RFC 8210 §12).
pub mod code {
    /// A message that cannot be read.
    pub const CORRUPT_DATA: u16 = 0;
    /// The cache has no data yet.
    pub const NO_DATA_AVAILABLE: u16 = 2;
    /// The cache has another version only.
    pub const UNSUPPORTED_VERSION: u16 = 4;
    /// A type that is not known.
    pub const UNSUPPORTED_TYPE: u16 = 5;
    /// A payload is taken back that was never said.
    pub const UNKNOWN_WITHDRAWAL: u16 = 6;
    /// A payload is said twice.
    pub const DUPLICATE: u16 = 7;
    /// Another version than before.
    pub const UNEXPECTED_VERSION: u16 = 8;
}

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The version is not known.
    #[error("version {0} of the protocol is not known")]
    Version(u8),
    /// The type is not known.
    #[error("type {0} of a message is not known")]
    Type(u8),
    /// The length does not fit the type, or is too large.
    #[error("a message of type {0} has the length {1}")]
    Length(u8, u32),
    /// The payload is none.
    #[error("a payload has a length of {0} to {1} bits")]
    Payload(u8, u8),
}

impl Malformed {
    /// Its number in an error report.
    pub fn code(self) -> u16 {
        match self {
            Self::Version(_) => code::UNSUPPORTED_VERSION,
            Self::Type(_) => code::UNSUPPORTED_TYPE,
            Self::Length(..) | Self::Payload(..) => code::CORRUPT_DATA,
        }
    }
}

impl Query {
    /// As bytes.
    pub fn encode(self, version: Version) -> Vec<u8> {
        match self {
            Self::Reset => header(version, 2, 0, 8),
            Self::Serial { session, serial } => {
                let mut bytes = header(version, 1, session, 12);
                bytes.extend(serial.to_be_bytes());
                bytes
            }
        }
    }
}

/// An error report about `cause`, of which the first bytes are sent back.
pub fn encode_error(version: Version, code: u16, cause: &[u8], text: &str) -> Vec<u8> {
    let cause = cause.get(..cause.len().min(64)).unwrap_or_default();
    let text = text.as_bytes();
    let text = text.get(..text.len().min(255)).unwrap_or_default();
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(0);
    let total = length(cause).saturating_add(length(text)).saturating_add(16);
    let mut bytes = header(version, 10, code, total);
    bytes.extend(length(cause).to_be_bytes());
    bytes.extend(cause);
    bytes.extend(length(text).to_be_bytes());
    bytes.extend(text);
    bytes
}

fn header(version: Version, kind: u8, session: u16, length: u32) -> Vec<u8> {
    let mut bytes = vec![version.into(), kind];
    bytes.extend(session.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

/// The first message of `bytes`, and how many of them it takes; `None` if more are needed.
pub fn decode(bytes: &[u8]) -> Result<Option<(Version, Pdu, usize)>, Malformed> {
    let Some(([version, kind, high, low, length @ ..], _)) =
        bytes.split_first_chunk::<HEADER_LENGTH_BYTES>()
    else {
        return Ok(None);
    };
    let version = match version {
        0 => Version::Zero,
        1 => Version::One,
        other => return Err(Malformed::Version(*other)),
    };
    let length = u32::from_be_bytes(*length);
    let malformed = Malformed::Length(*kind, length);
    let total = usize::try_from(length).map_err(|_| malformed)?;
    if !(HEADER_LENGTH_BYTES..=LENGTH_BYTES_MAX).contains(&total) {
        return Err(malformed);
    }
    let Some(whole) = bytes.get(..total) else { return Ok(None) };
    let body = whole.get(HEADER_LENGTH_BYTES..).unwrap_or_default();
    let pdu = body_of(version, *kind, u16::from_be_bytes([*high, *low]), body, malformed)?;
    Ok(Some((version, pdu, total)))
}

fn body_of(
    version: Version,
    kind: u8,
    session: u16,
    body: &[u8],
    malformed: Malformed,
) -> Result<Pdu, Malformed> {
    Ok(match (kind, body) {
        (0, [a, b, c, d]) => {
            Pdu::SerialNotify { session, serial: u32::from_be_bytes([*a, *b, *c, *d]) }
        }
        (3, []) => Pdu::CacheResponse { session },
        (4, [flags, length, length_max, _, a, b, c, d, asn @ ..]) if asn.len() == 4 => {
            let address = Ipv4Addr::new(*a, *b, *c, *d);
            payload(*flags, address.into(), *length, *length_max, asn)?
        }
        (6, [flags, length, length_max, _, rest @ ..]) if rest.len() == 20 => {
            let (address, asn) = rest.split_first_chunk::<16>().ok_or(malformed)?;
            payload(*flags, Ipv6Addr::from(*address).into(), *length, *length_max, asn)?
        }
        (7, [a, b, c, d, timing @ ..]) => {
            let timing = match (version, timing) {
                (Version::Zero, []) => None,
                (Version::One, timing) => Some(timing_of(timing).ok_or(malformed)?),
                _ => return Err(malformed),
            };
            Pdu::EndOfData { session, serial: u32::from_be_bytes([*a, *b, *c, *d]), timing }
        }
        (8, []) => Pdu::CacheReset,
        (9, body) if version == Version::One && body.len() >= 24 => Pdu::RouterKey,
        (10, body) => Pdu::Error { code: session, text: error_text(body).ok_or(malformed)? },
        (0 | 3 | 4 | 6..=9, _) => return Err(malformed),
        (other, _) => return Err(Malformed::Type(other)),
    })
}

fn payload(
    flags: u8,
    address: std::net::IpAddr,
    length: u8,
    length_max: u8,
    asn: &[u8],
) -> Result<Pdu, Malformed> {
    let error = Malformed::Payload(length, length_max);
    let bits = if address.is_ipv4() { 32 } else { 128 };
    if !(length..=bits).contains(&length_max) {
        return Err(error);
    }
    let prefix = Prefix::new(address, length).map_err(|_| error)?;
    let asn: [u8; 4] = asn.try_into().map_err(|_| error)?;
    let payload = RoaPayload { prefix, length_max, asn: u32::from_be_bytes(asn) };
    Ok(Pdu::Payload { is_announced: flags & 1 == 1, payload })
}

fn timing_of(bytes: &[u8]) -> Option<Timing> {
    let (refresh, rest) = bytes.split_first_chunk::<4>()?;
    let (retry, rest) = rest.split_first_chunk::<4>()?;
    let expire: [u8; 4] = rest.try_into().ok()?;
    Some(Timing {
        refresh_seconds: u32::from_be_bytes(*refresh),
        retry_seconds: u32::from_be_bytes(*retry),
        expire_seconds: u32::from_be_bytes(expire),
    })
}

/// The words behind the message that is sent back.
fn error_text(body: &[u8]) -> Option<String> {
    let (length, rest) = body.split_first_chunk::<4>()?;
    let rest = rest.get(usize::try_from(u32::from_be_bytes(*length)).ok()?..)?;
    let (length, text) = rest.split_first_chunk::<4>()?;
    let text = text.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    Some(String::from_utf8_lossy(text).into_owned())
}
