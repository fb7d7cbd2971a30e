//! The seal around a heartbeat: ChaCha20-Poly1305 (RFC 8439) with a key that all members share.
//!
//! Two keys may be in use, so that they can be replaced member by member: the first seals, both open. Which one
//! a datagram is sealed with stands in front of it. Knows nothing of what is inside.

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

/// The first octets of each datagram.
const MAGIC: [u8; 4] = *b"FWM1";
/// Octets that name a key.
const KEY_ID_LENGTH_BYTES: usize = 4;
/// Octets in front of what is sealed.
const HEADER_LENGTH_BYTES: usize = MAGIC.len() + KEY_ID_LENGTH_BYTES + NONCE_LEN;
/// Keys that may be in use at a time.
pub const KEYS_MAX: usize = 2;
/// The shortest secret: 128 bits.
pub const SECRET_LENGTH_BYTES_MIN: usize = 16;

/// Why a file of keys cannot be used. Never has a part of a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is no key.
    #[error("has no key: expected a line with a secret of at least 16 bytes")]
    None,
    /// A key is too short.
    #[error(
        "line {0}: the key is too short: expected at least 16 bytes, as from `openssl rand -base64 32`"
    )]
    Short(usize),
    /// There are too many.
    #[error("has {0} keys: expected one, or two while the first replaces the second")]
    Many(usize),
}

/// The keys of the members.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys(Vec<([u8; KEY_ID_LENGTH_BYTES], [u8; 32])>);

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({} of them)", self.0.len())
    }
}

impl Keys {
    /// The keys in a file: a line for each, of which blanks around are no part; empty lines do not count.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
        let mut keys = Vec::new();
        for (number, line) in lines {
            if line.len() < SECRET_LENGTH_BYTES_MIN {
                return Err(KeyError::Short(number.saturating_add(1)));
            }
            let key: [u8; 32] =
                Sha256::digest([b"fairway members key\0", line.as_bytes()].concat()).into();
            let name: [u8; 32] =
                Sha256::digest([&b"fairway members key id\0"[..], &key].concat()).into();
            let [a, b, c, d, ..] = name;
            keys.push(([a, b, c, d], key));
        }
        match keys.len() {
            0 => Err(KeyError::None),
            count if count > KEYS_MAX => Err(KeyError::Many(count)),
            _ => Ok(Self(keys)),
        }
    }

    /// What a datagram holds; `None` where it is not sealed with one of the keys, or was changed.
    pub fn open(&self, datagram: &[u8]) -> Option<Vec<u8>> {
        let (header, sealed) = datagram.split_first_chunk::<HEADER_LENGTH_BYTES>()?;
        let (magic, rest) = header.split_first_chunk::<4>()?;
        let (id, nonce) = rest.split_first_chunk::<KEY_ID_LENGTH_BYTES>()?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let (_, key) = self.0.iter().find(|(it, _)| it == id && *magic == MAGIC)?;
        let mut buffer = sealed.to_vec();
        let opened = cipher(key)?.open_in_place(nonce, Aad::from(header), &mut buffer).ok()?;
        let length = opened.len();
        buffer.truncate(length);
        Some(buffer)
    }
}

fn cipher(key: &[u8; 32]) -> Option<LessSafeKey> {
    UnboundKey::new(&CHACHA20_POLY1305, key).ok().map(LessSafeKey::new)
}

/// Seals the heartbeats of a process.
#[derive(Debug)]
pub struct Sealer {
    keys: Keys,
    /// Of nonces: a process that is copied with its memory, as with a virtual machine, must not use one twice. Of
    /// the datagrams that a key seals in a year two have the same with a probability of 2^-25, where two hundred
    /// members send.
    random: SystemRandom,
}

impl Sealer {
    /// Seals with the first of the keys.
    pub fn new(keys: Keys) -> Self {
        Self { keys, random: SystemRandom::new() }
    }

    /// Seals with the first of these keys from now on.
    pub fn set_keys(&mut self, keys: Keys) {
        self.keys = keys;
    }

    /// The datagram with this content; `None` where the kernel has no random number.
    pub fn seal(&self, content: &[u8]) -> Option<Vec<u8>> {
        let (id, key) = self.keys.0.first()?;
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let mut datagram = [&MAGIC[..], id, &nonce].concat();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let mut sealed = content.to_vec();
        let header = Aad::from(datagram.clone());
        cipher(key)?.seal_in_place_append_tag(nonce, header, &mut sealed).ok()?;
        datagram.extend(sealed);
        Some(datagram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "0123456789abcdef-one";
    const TWO: &str = "0123456789abcdef-two";

    fn keys(text: &str) -> Keys {
        Keys::parse(text).unwrap()
    }

    #[test]
    fn what_is_sealed_opens_with_the_same_key_alone() {
        let datagram = Sealer::new(keys(ONE)).seal(b"content").unwrap();
        assert_eq!(keys(ONE).open(&datagram), Some(b"content".to_vec()));
        assert_eq!(keys(TWO).open(&datagram), None);
        for place in 0..datagram.len() {
            let mut other = datagram.clone();
            other[place] ^= 1;
            assert_eq!(keys(ONE).open(&other), None, "byte {place} was changed");
            assert_eq!(keys(ONE).open(&datagram[..place]), None, "{place} bytes");
        }
    }

    #[test]
    fn keys_are_replaced_member_by_member() {
        let (old, new) = (ONE.to_owned(), TWO.to_owned());
        // Both know both, then the new one seals, then the old one is gone.
        let steps = [
            (old.clone(), format!("{old}\n{new}")),
            (format!("{old}\n{new}"), format!("{new}\n{old}\n")),
            (format!("{new}\n{old}"), new),
        ];
        for (before, after) in steps {
            for (from, to) in [(&before, &after), (&after, &before)] {
                let datagram = Sealer::new(keys(from)).seal(b"content").unwrap();
                assert!(keys(to).open(&datagram).is_some(), "{from:?} to {to:?}");
            }
        }
    }

    #[test]
    fn a_file_that_is_no_key_says_why_without_it() {
        assert_eq!(Keys::parse("\n \n").err(), Some(KeyError::None));
        assert_eq!(Keys::parse("\nshort\n").err(), Some(KeyError::Short(2)));
        assert_eq!(Keys::parse(&format!("{ONE}\n{TWO}\n{ONE}x")).err(), Some(KeyError::Many(3)));
        assert_eq!(format!("{:?}", keys(ONE)), "Keys(1 of them)");
    }

    #[test]
    fn no_two_datagrams_have_the_same_nonce() {
        let sealer = Sealer::new(keys(ONE));
        let nonce = |_| sealer.seal(b"").unwrap()[8..20].to_vec();
        let nonces: std::collections::BTreeSet<Vec<u8>> = (0..100).map(nonce).collect();
        assert_eq!(nonces.len(), 100);
    }
}
