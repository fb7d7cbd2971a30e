//! The path and the settings of a BFD session (RFC 5880, 5881, 5883).
//!
//! Knows no packet and no clock. `resources` creates the settings, `bfd` uses them.

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU8;
use std::time::Duration;

use super::InterfaceName;

/// The path between two addresses that a session monitors. Ordered by the remote address, so that sessions
/// with the same one are adjacent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BfdPath {
    /// The remote address.
    pub remote: IpAddr,
    /// The VRF of the session; the main table when `None`.
    pub vrf: Option<InterfaceName>,
    /// Whether routers may be in between (RFC 5883). It determines port and TTL.
    pub multihop: bool,
    /// The outgoing interface, required for a link-local address. Packets from other interfaces are ignored
    /// then.
    pub interface: Option<InterfaceName>,
    /// Our address. The routing table chooses when `None`.
    pub local: Option<IpAddr>,
}

impl fmt::Display for BfdPath {
    /// As FRR names a session.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "peer {}", self.remote)?;
        if self.multihop {
            f.write_str(" multihop")?;
        }
        if let Some(local) = self.local {
            write!(f, " local-address {local}")?;
        }
        match self.vrf {
            Some(vrf) => write!(f, " vrf {vrf}")?,
            None => f.write_str(" vrf default")?,
        }
        self.interface.map_or(Ok(()), |interface| write!(f, " interface {interface}"))
    }
}

/// The settings of a session. Changes take effect without a restart of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BfdSettings {
    /// Minimum interval between our control packets while the session is up. Smaller values are raised to
    /// [`BfdSettings::INTERVAL_MIN`].
    pub transmit_interval: Duration,
    /// Minimum interval between control packets of the remote system that we support. Smaller values are
    /// raised to [`BfdSettings::INTERVAL_MIN`].
    pub receive_interval: Duration,
    /// How many of our packets in a row the remote system must miss before it declares the session down.
    pub detect_multiplier: NonZeroU8,
    /// The echo function: the interval at which we send echo packets and return those of the remote system.
    /// `None` disables both. Not for multihop sessions (RFC 5883 §3).
    pub echo_interval: Option<Duration>,
    /// Sends no packet until one is received (RFC 5880 §6.1).
    pub passive: bool,
    /// Multihop: packets that arrive with a smaller TTL are ignored.
    pub minimum_ttl: NonZeroU8,
    /// Signs each packet, and requires each received packet to be signed.
    pub authentication: Option<BfdAuthentication>,
}

impl BfdSettings {
    /// The shortest of the common intervals (RFC 7419 §3).
    pub const INTERVAL_MIN: Duration = Duration::from_micros(3_300);
    /// FRR's default for both directions.
    pub const INTERVAL_DEFAULT: Duration = Duration::from_millis(300);
    /// FRR's default for echo packets.
    pub const ECHO_INTERVAL_DEFAULT: Duration = Duration::from_millis(50);
    /// Three packets, the usual default.
    pub const DETECT_MULTIPLIER_DEFAULT: NonZeroU8 = NonZeroU8::MIN.saturating_add(2);
    /// FRR's default: at most one router in between, expressed as a TTL.
    pub const MINIMUM_TTL_DEFAULT: NonZeroU8 = NonZeroU8::MIN.saturating_add(253);

    /// Merges the settings of another user of the same path, which gets the faster of both: the session is
    /// passive only if both are, and the key is the first one that is configured.
    pub fn absorb(&mut self, other: &Self) {
        self.transmit_interval = self.transmit_interval.min(other.transmit_interval);
        self.receive_interval = self.receive_interval.min(other.receive_interval);
        self.detect_multiplier = self.detect_multiplier.min(other.detect_multiplier);
        self.echo_interval = match (self.echo_interval, other.echo_interval) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.passive &= other.passive;
        self.minimum_ttl = self.minimum_ttl.max(other.minimum_ttl);
        if self.authentication.is_none() {
            self.authentication.clone_from(&other.authentication);
        }
    }
}

impl Default for BfdSettings {
    /// FRR's values for a profile without settings.
    fn default() -> Self {
        Self {
            transmit_interval: Self::INTERVAL_DEFAULT,
            receive_interval: Self::INTERVAL_DEFAULT,
            detect_multiplier: Self::DETECT_MULTIPLIER_DEFAULT,
            echo_interval: None,
            passive: false,
            minimum_ttl: Self::MINIMUM_TTL_DEFAULT,
            authentication: None,
        }
    }
}

/// How packets are authenticated (RFC 5880 §6.7.4). Simple passwords and MD5 are not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BfdAuthenticationKind {
    /// Keyed SHA1: a packet may repeat a sequence number.
    Sha1,
    /// Meticulous keyed SHA1: every packet has a new sequence number.
    MeticulousSha1,
}

impl fmt::Display for BfdAuthenticationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sha1 => "keyed-sha1",
            Self::MeticulousSha1 => "meticulous-keyed-sha1",
        })
    }
}

/// Why bytes cannot be the key of a BFD session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BfdKeyError {
    /// The packet has room for 20 bytes.
    #[error("the key has {0} bytes; BFD keyed SHA1 allows 1 to 20")]
    TooLong(usize),
    /// An empty key authenticates nothing.
    #[error(
        "the key is empty; BFD keyed SHA1 needs 1 to 20 bytes; set a key or leave the field out"
    )]
    Empty,
}

/// A key with its authentication type. Its `Debug` form hides the key.
#[derive(Clone, PartialEq, Eq)]
pub struct BfdAuthentication {
    kind: BfdAuthenticationKind,
    key_id: u8,
    /// Padded with zeros, as for signing a packet.
    key: [u8; Self::KEY_LENGTH_BYTES_MAX],
}

impl BfdAuthentication {
    /// Maximum length of a key, in bytes (RFC 5880 §6.7.4).
    pub const KEY_LENGTH_BYTES_MAX: usize = 20;

    /// Rejects a key that does not fit into a packet. Trailing zero bytes have no meaning.
    pub fn new(kind: BfdAuthenticationKind, key_id: u8, bytes: &[u8]) -> Result<Self, BfdKeyError> {
        let mut key = [0; Self::KEY_LENGTH_BYTES_MAX];
        match key.get_mut(..bytes.len()) {
            None => Err(BfdKeyError::TooLong(bytes.len())),
            Some([]) => Err(BfdKeyError::Empty),
            Some(place) => {
                place.copy_from_slice(bytes);
                Ok(Self { kind, key_id, key })
            }
        }
    }

    /// The authentication type.
    pub fn kind(&self) -> BfdAuthenticationKind {
        self.kind
    }

    /// The key ID in packets.
    pub fn key_id(&self) -> u8 {
        self.key_id
    }

    /// The key, padded with zeros: only for the hash.
    pub fn expose(&self) -> &[u8; Self::KEY_LENGTH_BYTES_MAX] {
        &self.key
    }
}

impl fmt::Debug for BfdAuthentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BfdAuthentication({} {}, hidden)", self.kind, self.key_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_as_frr_names_a_session() {
        let single = BfdPath {
            remote: "fe80::1".parse().unwrap(),
            vrf: None,
            multihop: false,
            interface: "eth0".parse().ok(),
            local: None,
        };
        assert_eq!(single.to_string(), "peer fe80::1 vrf default interface eth0");
        let multihop = BfdPath {
            remote: "192.0.2.1".parse().unwrap(),
            vrf: "blue".parse().ok(),
            multihop: true,
            interface: None,
            local: "198.51.100.1".parse().ok(),
        };
        let text = "peer 192.0.2.1 multihop local-address 198.51.100.1 vrf blue";
        assert_eq!(multihop.to_string(), text);
    }

    #[test]
    fn debug_hides_the_key() {
        let new = |bytes: &[u8]| BfdAuthentication::new(BfdAuthenticationKind::Sha1, 7, bytes);
        let text = format!("{:?}", new(b"canary").unwrap());
        assert_eq!(text, "BfdAuthentication(keyed-sha1 7, hidden)");
        assert_eq!(new(b""), Err(BfdKeyError::Empty));
    }

    #[test]
    fn who_shares_a_session_gets_what_is_fastest_and_safest() {
        let milliseconds = Duration::from_millis;
        let mut shared = BfdSettings { passive: true, ..BfdSettings::default() };
        let key = BfdAuthentication::new(BfdAuthenticationKind::Sha1, 1, b"key").ok();
        let other = BfdSettings {
            transmit_interval: milliseconds(50),
            receive_interval: milliseconds(900),
            detect_multiplier: NonZeroU8::MIN.saturating_add(1),
            echo_interval: Some(milliseconds(20)),
            passive: false,
            minimum_ttl: NonZeroU8::MAX,
            authentication: key.clone(),
        };
        shared.absorb(&other);
        let expected = BfdSettings { receive_interval: milliseconds(300), ..other };
        assert_eq!(shared, expected);
        let slow = BfdSettings { echo_interval: Some(milliseconds(70)), ..BfdSettings::default() };
        shared.absorb(&slow);
        assert_eq!(shared, expected, "a later user must not slow the session down");
    }

    //= RFC 5880 §6.7.4 MUST: a key is a binary string of up to 20 bytes, padded with zeros.
    #[test]
    fn a_key_fills_its_field_in_the_packet() {
        let kind = BfdAuthenticationKind::MeticulousSha1;
        let key = BfdAuthentication::new(kind, 1, b"ab").unwrap();
        assert_eq!(key.expose()[..3], *b"ab\0");
        assert!(BfdAuthentication::new(kind, 1, &[1; 20]).is_ok());
        assert_eq!(BfdAuthentication::new(kind, 1, &[1; 21]), Err(BfdKeyError::TooLong(21)));
    }
}
