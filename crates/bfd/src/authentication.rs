//! Keyed SHA1 (RFC 5880 §4.4, §6.7.4): was this packet created with the key, and recently?

use sha1::{Digest, Sha1};

use super::arrival::Dropped;
use super::packet::PACKET_LENGTH_BYTES_MAX;
use super::packet::{ControlPacket, HEADER_LENGTH_BYTES};
use fairway_ground::{BfdAuthentication, BfdAuthenticationKind};

/// Type, length, key ID, a reserved octet, the sequence number, and the hash.
pub(crate) const SECTION_LENGTH: u8 = 28;
/// The offset of the hash.
const HASH_OFFSET_BYTES: usize = 32;

const KEYED_SHA1: u8 = 4;
const METICULOUS_KEYED_SHA1: u8 = 5;

/// The sequence numbers of a session, which outlive its transitions.
#[derive(Debug)]
pub(crate) struct Sequences {
    /// The next one to be sent.
    transmit: u32,
    /// The last one that was accepted, while known.
    received: Option<u32>,
    /// The last header sent, to detect changes.
    last_said: [u8; HEADER_LENGTH_BYTES],
}

impl Sequences {
    /// The first number is random (RFC 5880 §6.8.1, bfd.XmitAuthSeq).
    pub(crate) fn new(first: u32) -> Self {
        Self { transmit: first, received: None, last_said: [0; HEADER_LENGTH_BYTES] }
    }

    /// Forgets the received sequence number: the remote system was silent for so long that it may have
    /// restarted.
    pub(crate) fn forget(&mut self) {
        self.received = None;
    }

    /// The packet with its authentication section.
    pub(crate) fn sign(
        &mut self,
        authentication: &BfdAuthentication,
        header: [u8; HEADER_LENGTH_BYTES],
    ) -> [u8; PACKET_LENGTH_BYTES_MAX] {
        // Keyed SHA1 increments the sequence number when the content changes, meticulous SHA1 with each
        // packet.
        let is_meticulous = authentication.kind() == BfdAuthenticationKind::MeticulousSha1;
        if is_meticulous || self.last_said != header {
            self.transmit = self.transmit.wrapping_add(1);
        }
        self.last_said = header;
        let mut bytes = [0; PACKET_LENGTH_BYTES_MAX];
        let section = [auth_type(authentication), SECTION_LENGTH, authentication.key_id(), 0];
        let fields = header.into_iter().chain(section).chain(self.transmit.to_be_bytes());
        for (place, byte) in bytes.iter_mut().zip(fields) {
            *place = byte;
        }
        let hash = hash(authentication, &bytes);
        for (place, byte) in bytes.iter_mut().skip(HASH_OFFSET_BYTES).zip(hash) {
            *place = byte;
        }
        bytes
    }

    /// Verifies a packet: `bytes` is everything that its length field covers.
    pub(crate) fn verify(
        &mut self,
        authentication: &BfdAuthentication,
        packet: &ControlPacket,
        bytes: &[u8],
    ) -> Result<(), Dropped> {
        let bytes: &[u8; PACKET_LENGTH_BYTES_MAX] =
            bytes.try_into().map_err(|_| Dropped::AuthenticationSection)?;
        let (head, received_hash) = bytes.split_at(HASH_OFFSET_BYTES);
        let Some(&[kind, length, key_id, _, a, b, c, d]) = head.last_chunk::<8>() else {
            return Err(Dropped::AuthenticationSection);
        };
        let expected = (auth_type(authentication), SECTION_LENGTH, authentication.key_id());
        if (kind, length, key_id) != expected {
            return Err(Dropped::AuthenticationSection);
        }
        let received = u32::from_be_bytes([a, b, c, d]);
        if let Some(last) = self.received {
            // The number of packets that may be lost before the session goes down, and some more.
            let window = u32::from(packet.detect_multiplier.get()).saturating_mul(3);
            let ahead = received.wrapping_sub(last);
            let least = u32::from(kind == METICULOUS_KEYED_SHA1);
            if ahead < least || ahead > window {
                return Err(Dropped::AuthenticationSequence { received, last });
            }
        }
        // In constant time: the number of matching bytes must not leak.
        let pairs = received_hash.iter().zip(hash(authentication, bytes));
        if pairs.fold(0, |differences, (left, right)| differences | (left ^ right)) != 0 {
            return Err(Dropped::AuthenticationHash);
        }
        // Ours: only now, or a packet without the key would reveal the current sequence number.
        self.received = Some(received);
        Ok(())
    }
}

fn auth_type(authentication: &BfdAuthentication) -> u8 {
    match authentication.kind() {
        BfdAuthenticationKind::Sha1 => KEYED_SHA1,
        BfdAuthenticationKind::MeticulousSha1 => METICULOUS_KEYED_SHA1,
    }
}

/// The hash of the whole packet, with the key in place of the hash.
fn hash(authentication: &BfdAuthentication, bytes: &[u8; PACKET_LENGTH_BYTES_MAX]) -> [u8; 20] {
    let (head, _) = bytes.split_at(HASH_OFFSET_BYTES);
    Sha1::new().chain_update(head).chain_update(authentication.expose()).finalize().into()
}

#[cfg(test)]
mod tests;
