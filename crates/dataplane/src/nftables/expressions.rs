//! Expressions of rules: each loads, compares or decides one thing.
//!
//! Addresses, protocols and ports are put into registers of 32 bits, one behind the other, in the order of a set's key.

use super::{
    DATA_VALUE, DATA_VERDICT, Family, LIST_ELEMENT, VERDICT_CHAIN, VERDICT_CODE, be32, text,
};
use crate::message::Message;

/// The first register of 32 bits.
pub(super) const FIRST_REGISTER: u32 = 8;
/// The register of the verdict.
const VERDICT_REGISTER: u32 = 0;

/// One expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    /// Octets of the packet.
    Payload { base: u32, offset: u32, length: u32, register: u32 },
    /// A property of the packet.
    Meta { key: u32, register: u32 },
    /// Sets the mark.
    SetMark { register: u32 },
    /// The state of the connection.
    State { register: u32 },
    /// `register & mask ^ xor`.
    Bitwise { register: u32, mask: u32, xor: u32 },
    /// Keeps these bits of an address.
    Mask { register: u32, mask: Vec<u8> },
    /// Goes on if the register has this value, or has not.
    Compare { register: u32, is_equal: bool, value: Vec<u8> },
    /// Goes on if the registers are an element of a set, or are not.
    Lookup { set: &'static str, register: u32, is_in: bool },
    /// The verdict that a map has for the registers.
    VerdictOf { map: &'static str, register: u32 },
    /// A verdict.
    Verdict(Verdict),
    /// Refuses the packet with ICMP "port unreachable".
    Reject(Family),
    /// Replaces the source address by the node's.
    Masquerade,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Drop,
    Accept,
    Return,
    Jump(&'static str),
}

const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;
const META_MARK: u32 = 3;
const META_INTERFACE: u32 = 6;
const META_PROTOCOL: u32 = 16;
/// The bit of a connection of which this is the first packet.
pub(super) const STATE_NEW: u32 = 8;
/// Ports of masqueraded flows are chosen by chance: two clients with the same one do not meet.
const RANDOM_FULLY: u32 = 1 << 4;

impl Expression {
    pub(super) fn source(family: Family, register: u32) -> Self {
        let offset = match family {
            Family::Ipv4 => 12,
            Family::Ipv6 => 8,
        };
        Self::Payload { base: NETWORK, offset, length: family.address_length().into(), register }
    }

    pub(super) fn destination(family: Family, register: u32) -> Self {
        let offset = match family {
            Family::Ipv4 => 16,
            Family::Ipv6 => 24,
        };
        Self::Payload { base: NETWORK, offset, length: family.address_length().into(), register }
    }

    pub(super) fn destination_port(register: u32) -> Self {
        Self::Payload { base: TRANSPORT, offset: 2, length: 2, register }
    }

    /// The first octet behind the network header: the type of an ICMP message.
    pub(super) fn icmp_type(register: u32) -> Self {
        Self::Payload { base: TRANSPORT, offset: 0, length: 1, register }
    }

    pub(super) fn protocol(register: u32) -> Self {
        Self::Meta { key: META_PROTOCOL, register }
    }

    pub(super) fn mark(register: u32) -> Self {
        Self::Meta { key: META_MARK, register }
    }

    pub(super) fn interface(register: u32) -> Self {
        Self::Meta { key: META_INTERFACE, register }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Payload { .. } => "payload",
            Self::Meta { .. } | Self::SetMark { .. } => "meta",
            Self::State { .. } => "ct",
            Self::Bitwise { .. } | Self::Mask { .. } => "bitwise",
            Self::Compare { .. } => "cmp",
            Self::Lookup { .. } | Self::VerdictOf { .. } => "lookup",
            Self::Verdict(_) => "immediate",
            Self::Reject(_) => "reject",
            Self::Masquerade => "masq",
        }
    }

    /// As an element of a rule's list.
    pub(super) fn write(&self, message: &mut Message) {
        message.nested(LIST_ELEMENT, |it| {
            it.attribute(1, &text(self.name()));
            it.nested(2, |it| self.write_data(it));
        });
    }

    fn write_data(&self, message: &mut Message) {
        match self {
            Self::Payload { base, offset, length, register } => {
                message.attribute(1, &be32(*register)).attribute(2, &be32(*base));
                message.attribute(3, &be32(*offset)).attribute(4, &be32(*length));
            }
            Self::Meta { key, register } => {
                message.attribute(1, &be32(*register)).attribute(2, &be32(*key));
            }
            Self::SetMark { register } => {
                message.attribute(2, &be32(META_MARK)).attribute(3, &be32(*register));
            }
            Self::State { register } => {
                message.attribute(1, &be32(*register)).attribute(2, &be32(0));
            }
            Self::Bitwise { register, mask, xor } => {
                message.attribute(1, &be32(*register)).attribute(2, &be32(*register));
                message.attribute(3, &be32(4));
                // In the machine's order of bytes, as the mark and the state are.
                message.nested(4, |it| {
                    it.attribute(DATA_VALUE, &mask.to_ne_bytes());
                });
                message.nested(5, |it| {
                    it.attribute(DATA_VALUE, &xor.to_ne_bytes());
                });
            }
            Self::Mask { register, mask } => {
                let length = u32::try_from(mask.len()).unwrap_or(0);
                message.attribute(1, &be32(*register)).attribute(2, &be32(*register));
                message.attribute(3, &be32(length));
                message.nested(4, |it| {
                    it.attribute(DATA_VALUE, mask);
                });
                message.nested(5, |it| {
                    it.attribute(DATA_VALUE, &vec![0; mask.len()]);
                });
            }
            Self::Compare { register, is_equal, value } => {
                message.attribute(1, &be32(*register));
                message.attribute(2, &be32(u32::from(!is_equal)));
                message.nested(3, |it| {
                    it.attribute(DATA_VALUE, value);
                });
            }
            Self::Lookup { set, register, is_in } => {
                message.attribute(1, &text(set)).attribute(2, &be32(*register));
                if !is_in {
                    message.attribute(5, &be32(1));
                }
            }
            Self::VerdictOf { map, register } => {
                message.attribute(1, &text(map)).attribute(2, &be32(*register));
                message.attribute(3, &be32(VERDICT_REGISTER));
            }
            Self::Verdict(verdict) => {
                message.attribute(1, &be32(VERDICT_REGISTER));
                message.nested(2, |it| write_verdict(it, *verdict));
            }
            Self::Reject(family) => {
                let port_unreachable = match family {
                    Family::Ipv4 => 3,
                    Family::Ipv6 => 4,
                };
                message.attribute(1, &be32(0)).attribute(2, &[port_unreachable]);
            }
            Self::Masquerade => {
                message.attribute(1, &be32(RANDOM_FULLY));
            }
        }
    }
}

fn write_verdict(message: &mut Message, verdict: Verdict) {
    let (code, chain) = match verdict {
        Verdict::Drop => (0, None),
        Verdict::Accept => (1, None),
        Verdict::Return => (super::RETURN, None),
        Verdict::Jump(chain) => (super::JUMP, Some(chain)),
    };
    message.nested(DATA_VERDICT, |it| {
        it.attribute(VERDICT_CODE, &code.to_be_bytes());
        if let Some(chain) = chain {
            it.attribute(VERDICT_CHAIN, &text(chain));
        }
    });
}
