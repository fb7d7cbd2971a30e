//! The control packet of BFD (RFC 5880 §4.1): bytes to values and back.
//!
//! Checks what a packet says by itself, in the order of RFC 5880 §6.8.6. Which session it is for,
//! and whether that one believes it, is decided elsewhere. Nothing here allocates.

use std::num::{NonZeroU8, NonZeroU32};

use super::{Diagnostic, State};

/// The only version (RFC 5880 §4.1).
const VERSION: u8 = 1;
/// A packet without an authentication section.
pub(crate) const HEADER_LENGTH_BYTES: usize = 24;
/// Type and length of an authentication section must be there, if there is one.
const AUTHENTICATED_LENGTH_BYTES_MIN: usize = 26;

const POLL: u8 = 0x20;
const FINAL: u8 = 0x10;
const CONTROL_PLANE_INDEPENDENT: u8 = 0x08;
const AUTHENTICATION_PRESENT: u8 = 0x04;
const DEMAND: u8 = 0x02;
const MULTIPOINT: u8 = 0x01;

/// A control packet without its authentication section. Intervals are microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlPacket {
    /// Why the sender last changed its state.
    pub diagnostic: Diagnostic,
    /// Where the sender is.
    pub state: State,
    /// Asks for an answer at once.
    pub poll: bool,
    /// Is such an answer.
    pub is_final: bool,
    /// The sender's BFD outlives its control plane.
    pub control_plane_independent: bool,
    /// An authentication section follows.
    pub authentication_present: bool,
    /// The sender wants no packets but answers.
    pub demand: bool,
    /// How many packets of the sender must be missed in a row.
    pub detect_multiplier: NonZeroU8,
    /// The sender's name of the session.
    pub my_discriminator: NonZeroU32,
    /// The receiver's name of the session; 0 while the sender does not know it.
    pub your_discriminator: u32,
    /// How often the sender would send.
    pub desired_min_tx_interval: u32,
    /// How often the sender can take packets; 0 means never.
    pub required_min_rx_interval: u32,
    /// How often the sender sends echo packets back; 0 means never.
    pub required_min_echo_rx_interval: u32,
}

/// Why bytes are no control packet for anybody, in the order in which RFC 5880 §6.8.6 asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// There is no header.
    #[error("{0} bytes, a control packet has 24 at least")]
    Short(usize),
    /// Another BFD than ours.
    #[error("version {0}, expected 1")]
    Version(u8),
    /// The length field is too small for what must be there.
    #[error("a length field of {0}, expected 24 at least, or 26 with authentication")]
    Length(u8),
    /// The length field says more than there is.
    #[error("a length field of {field} in {payload} bytes")]
    Truncated {
        /// What the packet says.
        field: u8,
        /// What came.
        payload: usize,
    },
    /// A multiplier of zero would be down at once.
    #[error("a detect multiplier of 0, expected 1 to 255")]
    DetectMultiplier,
    /// For point-to-multipoint paths, which nobody here has.
    #[error("the multipoint bit is set, which must be 0")]
    Multipoint,
    /// The sender has no name for the session.
    #[error("my discriminator is 0, which names nothing")]
    MyDiscriminator,
    /// A sender in this state has heard us, and so knows our name.
    #[error("your discriminator is 0 in state {0}, expected that in down and shutdown only")]
    YourDiscriminator(State),
}

impl ControlPacket {
    /// Reads a packet and says which bytes are it: there may be some behind. Makes every check of
    /// RFC 5880 §6.8.6 that needs no session.
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

    /// The header, with the length field for `authentication_length` bytes behind it.
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
