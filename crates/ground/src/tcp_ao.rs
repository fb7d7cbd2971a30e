//! Keys of the TCP Authentication Option (RFC 5925, 5926), and the rules for a list of them.
//!
//! Knows no socket: `tcp_ao` of `fairway-sessions` configures the kernel. `resources` creates the list.

use std::fmt;
use std::str::FromStr;

use super::ParseError;

/// Why a list of keys cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AoKeyError {
    /// The kernel holds at most 80 bytes.
    #[error("the secret has {0} bytes; expected 1 to 80 for TCP-AO")]
    TooLong(usize),
    /// There is nothing to sign with.
    #[error("the secret is empty; expected 1 to 80 bytes for TCP-AO")]
    Empty,
    /// Two keys would sign with the same ID (RFC 5925 §3.1).
    #[error("two keys have the send ID {0}; send IDs must be unique within a peer")]
    SameSendId(u8),
    /// Two keys would be expected under the same ID (RFC 5925 §3.1).
    #[error("two keys have the receive ID {0}; receive IDs must be unique within a peer")]
    SameRecvId(u8),
    /// More keys than any rollover needs.
    #[error("{0} keys; a peer may have 1 to 16")]
    Count(usize),
}

/// How segments are signed: RFC 5926 §2 requires the first two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AoAlgorithm {
    /// `hmac-sha-1-96` (RFC 5926 §3.2.1).
    HmacSha1,
    /// `aes-128-cmac-96` (RFC 5926 §3.2.2).
    AesCmac128,
    /// `hmac-sha-256-96`: not in an RFC, but supported by Linux and therefore by BIRD.
    HmacSha256,
}

impl AoAlgorithm {
    /// All of them, in the order in which a message lists them.
    pub const ALL: [Self; 3] = [Self::HmacSha1, Self::AesCmac128, Self::HmacSha256];

    /// Its name for users: the RFC's, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HmacSha1 => "hmac-sha-1-96",
            Self::AesCmac128 => "aes-128-cmac-96",
            Self::HmacSha256 => "hmac-sha-256-96",
        }
    }
}

impl fmt::Display for AoAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AoAlgorithm {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == text).ok_or_else(|| ParseError {
            text: text.to_owned(),
            expected: "hmac-sha-1-96, aes-128-cmac-96 or hmac-sha-256-96",
        })
    }
}

/// One key: a Master Key Tuple of RFC 5925 §3.1. Its `Debug` form hides the secret.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AoKey {
    send_id: u8,
    recv_id: u8,
    algorithm: AoAlgorithm,
    secret: Vec<u8>,
}

impl AoKey {
    /// The longest secret that Linux takes (`TCP_AO_MAXKEYLEN`).
    pub const SECRET_LENGTH_BYTES_MAX: usize = 80;

    /// `send_id` marks segments that we sign with it, `recv_id` those that the neighbour signs; the neighbour
    /// has the two swapped. Rejects a secret that the kernel would reject.
    pub fn new(
        send_id: u8,
        recv_id: u8,
        algorithm: AoAlgorithm,
        secret: impl Into<Vec<u8>>,
    ) -> Result<Self, AoKeyError> {
        let secret = secret.into();
        match secret.len() {
            0 => Err(AoKeyError::Empty),
            length if length > Self::SECRET_LENGTH_BYTES_MAX => Err(AoKeyError::TooLong(length)),
            _ => Ok(Self { send_id, recv_id, algorithm, secret }),
        }
    }

    /// The KeyID of segments that we sign with it.
    pub fn send_id(&self) -> u8 {
        self.send_id
    }

    /// The KeyID of segments that the neighbour signs with it.
    pub fn recv_id(&self) -> u8 {
        self.recv_id
    }

    /// How it signs.
    pub fn algorithm(&self) -> AoAlgorithm {
        self.algorithm
    }

    /// Whether a segment could match either (RFC 5925 §3.1).
    pub fn overlaps(&self, other: &Self) -> bool {
        self.send_id == other.send_id || self.recv_id == other.recv_id
    }

    /// The secret: only for the socket option.
    pub fn expose(&self) -> &[u8] {
        &self.secret
    }
}

impl fmt::Debug for AoKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { send_id, recv_id, algorithm, secret: _ } = self;
        write!(f, "AoKey({send_id}/{recv_id} {algorithm}, hidden)")
    }
}

/// The keys of one neighbour, the preferred one first. Empty means that TCP-AO is not used.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct AoKeys(Vec<AoKey>);

impl AoKeys {
    /// More than a rollover needs; each key costs the kernel a derivation.
    pub const COUNT_MAX: usize = 16;

    /// Rejects two keys with the same ID, in either direction: a segment must identify one.
    pub fn new(keys: Vec<AoKey>) -> Result<Self, AoKeyError> {
        if keys.is_empty() || keys.len() > Self::COUNT_MAX {
            return Err(AoKeyError::Count(keys.len()));
        }
        for (at, key) in keys.iter().enumerate() {
            for earlier in keys.iter().take(at) {
                if earlier.send_id == key.send_id {
                    return Err(AoKeyError::SameSendId(key.send_id));
                }
                if earlier.recv_id == key.recv_id {
                    return Err(AoKeyError::SameRecvId(key.recv_id));
                }
            }
        }
        Ok(Self(keys))
    }

    /// Whether TCP-AO is not used.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All keys, the preferred one first.
    pub fn iter(&self) -> std::slice::Iter<'_, AoKey> {
        self.0.iter()
    }

    /// Whether it contains the key, including its secret.
    pub fn contains(&self, key: &AoKey) -> bool {
        self.0.contains(key)
    }

    /// Whether a session with these keys can change to `wanted` without a reset: not if TCP-AO is enabled or
    /// disabled, and not if an ID gets another key.
    pub fn can_become(&self, wanted: &Self) -> bool {
        let meet = |old: &AoKey| wanted.iter().all(|new| new == old || !new.overlaps(old));
        self.is_empty() == wanted.is_empty() && self.iter().all(meet)
    }

    /// The key that the neighbour is asked to sign with.
    pub fn preferred(&self) -> Option<&AoKey> {
        self.0.first()
    }
}

impl<'a> IntoIterator for &'a AoKeys {
    type Item = &'a AoKey;
    type IntoIter = std::slice::Iter<'a, AoKey>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(send_id: u8, recv_id: u8) -> AoKey {
        AoKey::new(send_id, recv_id, AoAlgorithm::HmacSha1, "canary").unwrap()
    }

    #[test]
    fn debug_hides_the_secret() {
        let text = format!("{:?}", key(1, 2));
        assert_eq!(text, "AoKey(1/2 hmac-sha-1-96, hidden)");
    }

    #[test]
    fn a_secret_is_as_long_as_the_kernel_takes() {
        let new = |length| AoKey::new(0, 0, AoAlgorithm::AesCmac128, vec![b'x'; length]);
        assert_eq!(new(0), Err(AoKeyError::Empty));
        assert!(new(1).is_ok() && new(80).is_ok());
        assert_eq!(new(81), Err(AoKeyError::TooLong(81)));
    }

    #[test]
    fn an_algorithm_has_one_name() {
        for algorithm in AoAlgorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        let refused = "md5".parse::<AoAlgorithm>().unwrap_err();
        assert!(AoAlgorithm::ALL.iter().all(|known| refused.expected.contains(known.name())));
    }

    #[test]
    fn a_session_survives_new_numbers_and_not_new_secrets() {
        let keys = |keys: &[AoKey]| AoKeys::new(keys.to_vec()).unwrap();
        let other = AoKey::new(1, 1, AoAlgorithm::HmacSha1, "other").unwrap();
        let before = keys(&[key(1, 1)]);
        assert!(before.can_become(&keys(&[key(2, 2), key(1, 1)])));
        assert!(before.can_become(&keys(&[key(2, 2)])));
        assert!(!before.can_become(&keys(&[other])));
        assert!(!before.can_become(&keys(&[key(2, 1)])));
        assert!(!before.can_become(&AoKeys::default()));
        assert!(AoKeys::default().can_become(&AoKeys::default()));
    }

    //= RFC 5925 §3.1 MUST: the IDs of two keys of a connection do not overlap.
    #[test]
    fn two_keys_never_share_a_number() {
        assert_eq!(AoKeys::new(vec![key(1, 1), key(1, 2)]), Err(AoKeyError::SameSendId(1)));
        assert_eq!(AoKeys::new(vec![key(1, 1), key(2, 1)]), Err(AoKeyError::SameRecvId(1)));
        let keys = AoKeys::new(vec![key(1, 2), key(2, 1)]).unwrap();
        assert_eq!(keys.preferred(), Some(&key(1, 2)));
        assert_eq!(AoKeys::new(Vec::new()), Err(AoKeyError::Count(0)));
        let many = (0..17).map(|id| key(id, id)).collect();
        assert_eq!(AoKeys::new(many), Err(AoKeyError::Count(17)));
    }
}
