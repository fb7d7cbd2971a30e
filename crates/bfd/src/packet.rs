//! The control packet of BFD (RFC 5880 §4.1): decoding and encoding.
//!
//! Validates a packet by itself, in the order of RFC 5880 §6.8.6. Its session and its authentication are
//! checked elsewhere. Nothing here allocates.

use std::num::{NonZeroU8, NonZeroU32};

use super::{Diagnostic, State};

/// The only version (RFC 5880 §4.1).
const VERSION: u8 = 1;
/// The longest packet that is ever sent: 24 octets and a section of 28.
pub const PACKET_LENGTH_BYTES_MAX: usize = 52;
/// A packet without an authentication section.
pub(crate) const HEADER_LENGTH_BYTES: usize = 24;
/// An authentication section has at least a type and a length.
const AUTHENTICATED_LENGTH_BYTES_MIN: usize = 26;

const POLL: u8 = 0x20;
const FINAL: u8 = 0x10;
const CONTROL_PLANE_INDEPENDENT: u8 = 0x08;
const AUTHENTICATION_PRESENT: u8 = 0x04;
const DEMAND: u8 = 0x02;
const MULTIPOINT: u8 = 0x01;

/// A control packet without its authentication section. Intervals are in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlPacket {
    /// The reason of the sender's last state change.
    pub diagnostic: Diagnostic,
    /// The state of the sender.
    pub state: State,
    /// Requests an immediate answer.
    pub poll: bool,
    /// The answer to a Poll.
    pub is_final: bool,
    /// The sender's BFD is independent of its control plane.
    pub control_plane_independent: bool,
    /// An authentication section follows.
    pub authentication_present: bool,
    /// The sender is in demand mode: it wants no periodic packets.
    pub demand: bool,
    /// The number of the sender's packets that must be missed in a row.
    pub detect_multiplier: NonZeroU8,
    /// The sender's discriminator.
    pub my_discriminator: NonZeroU32,
    /// The receiver's discriminator; 0 while the sender does not know it.
    pub your_discriminator: u32,
    /// The sender's minimum transmit interval.
    pub desired_min_tx_interval: u32,
    /// The minimum interval at which the sender can receive packets; 0 means never.
    pub required_min_rx_interval: u32,
    /// The minimum interval at which the sender returns echo packets; 0 means never.
    pub required_min_echo_rx_interval: u32,
}

/// Why bytes are not a valid control packet, in the order of checks in RFC 5880 §6.8.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// The header is incomplete.
    #[error("{0} bytes, a control packet has at least 24")]
    Short(usize),
    /// An unsupported version of BFD.
    #[error("version {0}, expected 1")]
    Version(u8),
    /// The length field is too small for the mandatory part.
    #[error("length field {0}, expected at least 24, or 26 with authentication")]
    Length(u8),
    /// The length field exceeds the payload.
    #[error("length field {field} in a payload of {payload} bytes")]
    Truncated {
        /// The length field.
        field: u8,
        /// The received length.
        payload: usize,
    },
    /// A multiplier of 0 would be down at once.
    #[error("detect multiplier 0, expected 1 to 255")]
    DetectMultiplier,
    /// For point-to-multipoint paths, which are not supported.
    #[error("the multipoint bit is set, which must be 0")]
    Multipoint,
    /// The sender has no discriminator.
    #[error("my discriminator is 0, expected a nonzero value")]
    MyDiscriminator,
    /// A sender in this state has received our packets, and knows our discriminator.
    #[error("your discriminator is 0 in state {0}, expected only in down and shutdown")]
    YourDiscriminator(State),
}

impl ControlPacket {
    /// Decodes a packet and returns its bytes, without any trailing ones. Makes all checks of RFC 5880 §6.8.6
    /// that need no session.
    pub fn decode(payload: &[u8]) -> Result<(Self, &[u8]), PacketError> {
        let Some(header) = payload.first_chunk::<HEADER_LENGTH_BYTES>() else {
            return Err(PacketError::Short(payload.len()));
        };
        let [first, second, multiplier, length, words @ ..] = *header;
        let [my, your, tx, rx, echo] = big_endian_words(words);
        if first >> 5 != VERSION {
            return Err(PacketError::Version(first >> 5));
        }
        let has = |bit: u8| second & bit != 0;
        let least = match has(AUTHENTICATION_PRESENT) {
            true => AUTHENTICATED_LENGTH_BYTES_MIN,
            false => HEADER_LENGTH_BYTES,
        };
        if usize::from(length) < least {
            return Err(PacketError::Length(length));
        }
        let truncated = PacketError::Truncated { field: length, payload: payload.len() };
        let bytes = payload.get(..usize::from(length)).ok_or(truncated)?;
        let detect_multiplier = NonZeroU8::new(multiplier).ok_or(PacketError::DetectMultiplier)?;
        if has(MULTIPOINT) {
            return Err(PacketError::Multipoint);
        }
        let my_discriminator = NonZeroU32::new(my).ok_or(PacketError::MyDiscriminator)?;
        let state = State::from_bits(second >> 6);
        if your == 0 && !matches!(state, State::Down | State::AdminDown) {
            return Err(PacketError::YourDiscriminator(state));
        }
        let packet = Self {
            diagnostic: Diagnostic::from_bits(first),
            state,
            poll: has(POLL),
            is_final: has(FINAL),
            control_plane_independent: has(CONTROL_PLANE_INDEPENDENT),
            authentication_present: has(AUTHENTICATION_PRESENT),
            demand: has(DEMAND),
            detect_multiplier,
            my_discriminator,
            your_discriminator: your,
            desired_min_tx_interval: tx,
            required_min_rx_interval: rx,
            required_min_echo_rx_interval: echo,
        };
        Ok((packet, bytes))
    }

    /// The header, with a length field that includes `authentication_length`.
    pub fn encode(&self, authentication_length: u8) -> [u8; HEADER_LENGTH_BYTES] {
        const HEADER_LENGTH: u8 = 24;
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let mut bytes = [0; HEADER_LENGTH_BYTES];
        let (head, words) = bytes.split_at_mut(4);
        head.copy_from_slice(&[
            VERSION << 5 | self.diagnostic.bits(),
            (self.state as u8) << 6
                | flag(self.poll, POLL)
                | flag(self.is_final, FINAL)
                | flag(self.control_plane_independent, CONTROL_PLANE_INDEPENDENT)
                | flag(self.authentication_present, AUTHENTICATION_PRESENT)
                | flag(self.demand, DEMAND),
            self.detect_multiplier.get(),
            HEADER_LENGTH.saturating_add(authentication_length),
        ]);
        let values = [
            self.my_discriminator.get(),
            self.your_discriminator,
            self.desired_min_tx_interval,
            self.required_min_rx_interval,
            self.required_min_echo_rx_interval,
        ];
        for (place, value) in words.chunks_exact_mut(4).zip(values) {
            place.copy_from_slice(&value.to_be_bytes());
        }
        bytes
    }
}

fn big_endian_words(bytes: [u8; 20]) -> [u32; 5] {
    let mut words = [0; 5];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = chunk.first_chunk().map_or(0, |chunk| u32::from_be_bytes(*chunk));
    }
    words
}

#[cfg(test)]
mod tests;
