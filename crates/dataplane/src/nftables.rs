//! Our table of the packet filter: one of each family, which nobody else has anything in.
//!
//! ```text
//!  layout (chains, rules, sets; written once)      elements (of sets; changed in one transaction)
//!                    └────────── expressions, message ──────────┘
//! ```
//!
//! IPVS rewrites the destination of a packet in the hook `input`, behind our checks, and sends it on by `output` and
//! `postrouting`. So what a virtual address may do is decided in `input` and, for what this machine sends itself, in
//! `output`; whose source address is replaced is marked before that, and done in `postrouting`.

pub mod elements;
mod expressions;
pub mod foreign;
mod layout;
mod outgoing;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP};

use crate::message::{Message, events};
pub(crate) use layout::PODS;
pub use layout::{PodDetection, is_ours, layout, remove, remove_table, tag};
pub use outgoing::{OUTGOING_TABLE, OUTGOING_TAG, outgoing};

/// The name of the table.
pub const TABLE: &str = "fairway-proxy";

/// The subsystem of netfilter.
const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;

const NEW_TABLE: u16 = 0;
const GET_TABLE: u16 = 1;
const DEL_TABLE: u16 = 2;
const NEW_CHAIN: u16 = 3;
const GET_CHAIN: u16 = 4;
const DEL_CHAIN: u16 = 5;
const NEW_RULE: u16 = 6;
const GET_RULE: u16 = 7;
const DEL_RULE: u16 = 8;
const NEW_SET: u16 = 9;
const DEL_SET: u16 = 11;
const NEW_ELEMENTS: u16 = 12;
const GET_ELEMENTS: u16 = 13;
const DEL_ELEMENTS: u16 = 14;
const GET_GENERATION: u16 = 16;

/// The number of the generation.
const GENERATION_ID: u16 = 1;
/// The name of the table, of everything that has one.
const TABLE_NAME: u16 = 1;
/// The chain of a rule.
const RULE_CHAIN: u16 = 2;
/// The name of a chain.
const CHAIN_NAME: u16 = 3;
/// An element of a list.
const LIST_ELEMENT: u16 = 1;
/// A value, and a verdict, of an expression or an element.
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;
const VERDICT_CHAIN: u16 = 2;
/// The verdict `goto`.
const GOTO: i32 = -4;
/// The verdict `return`.
const RETURN: i32 = -5;
/// The verdict `jump`.
const JUMP: i32 = -3;

/// The addresses of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4, table `ip fairway-proxy`.
    Ipv4,
    /// IPv6, table `ip6 fairway-proxy`.
    Ipv6,
}

impl Family {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Ipv4, Self::Ipv6];

    /// That of an address.
    pub fn of(address: std::net::IpAddr) -> Self {
        if address.is_ipv4() { Self::Ipv4 } else { Self::Ipv6 }
    }

    /// Its name, as nft(8) has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ipv4 => "ip",
            Self::Ipv6 => "ip6",
        }
    }

    /// The kernel's number.
    fn number(self) -> u8 {
        match self {
            Self::Ipv4 => 2,
            Self::Ipv6 => 10,
        }
    }

    /// Octets of an address.
    fn address_length(self) -> u8 {
        match self {
            Self::Ipv4 => 4,
            Self::Ipv6 => 16,
        }
    }
}

/// Requests that the kernel carries out together, or not at all.
#[derive(Debug, Default)]
pub struct Transaction {
    messages: Vec<Request>,
}

#[derive(Debug)]
struct Request {
    message_type: u16,
    flags: u16,
    family: Family,
    attributes: Attributes,
}

type Fill = Box<dyn FnOnce(&mut Message) + Send>;

struct Attributes(Fill);

impl std::fmt::Debug for Attributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("..")
    }
}

impl Transaction {
    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// How many rules it makes.
    pub(crate) fn rule_count(&self) -> usize {
        self.messages.iter().filter(|it| it.message_type == NEW_RULE).count()
    }

    /// Does this, and then what `later` asks for.
    pub fn then(mut self, later: Self) -> Self {
        self.messages.extend(later.messages);
        self
    }

    fn add(
        &mut self,
        message_type: u16,
        flags: u16,
        family: Family,
        attributes: impl FnOnce(&mut Message) + Send + 'static,
    ) {
        let attributes = Attributes(Box::new(attributes));
        self.messages.push(Request { message_type, flags, family, attributes });
    }

    /// The octets of all requests, and the number of the last one, which is answered when all are carried out. The first
    /// one has the number `first`.
    pub(crate) fn into_bytes(self, first: u32) -> (Vec<u8>, u32) {
        let mut sequence = first;
        let batch = |message_type: u16, sequence: u32| {
            let [high, low] = SUBSYSTEM.to_be_bytes();
            Message::new(message_type, 0, sequence, &[0, 0, high, low]).finish()
        };
        let mut bytes = batch(BATCH_BEGIN, sequence);
        let count = self.messages.len();
        for (request, position) in self.messages.into_iter().zip(1..) {
            sequence = sequence.wrapping_add(1);
            let Request { message_type, flags, family, attributes } = request;
            let mut message = head(message_type, flags, family, sequence);
            (attributes.0)(&mut message);
            let message = message.finish();
            bytes.extend(if position == count {
                crate::message::acknowledged(message)
            } else {
                message
            });
        }
        bytes.extend(batch(BATCH_END, sequence.wrapping_add(1)));
        (bytes, sequence)
    }
}

fn head(message_type: u16, flags: u16, family: Family, sequence: u32) -> Message {
    let message_type = SUBSYSTEM << 8 | message_type;
    Message::new(message_type, flags, sequence, &[family.number(), 0, 0, 0])
}

/// Asks for the generation of the packet filter: how many transactions of all programs have changed it.
pub(crate) fn get_generation(sequence: u32) -> Vec<u8> {
    crate::message::acknowledged(head(GET_GENERATION, 0, Family::Ipv4, sequence).finish())
}

/// The generation, from the answer.
pub(crate) fn generation_of(payload: &[u8]) -> Option<u32> {
    let mut all = crate::message::attributes(payload.get(4..)?);
    let (_, value) = all.find(|(kind, _)| *kind == GENERATION_ID)?;
    Some(u32::from_be_bytes(value.try_into().ok()?))
}

/// Asks for a table of a family.
pub(crate) fn get_table(family: Family, name: &str, sequence: u32) -> Vec<u8> {
    let mut message = head(GET_TABLE, 0, family, sequence);
    message.attribute(TABLE_NAME, &text(name));
    crate::message::acknowledged(message.finish())
}

/// Asks for a chain of a table.
pub(crate) fn get_chain(family: Family, table: &str, name: &str, sequence: u32) -> Vec<u8> {
    let mut message = head(GET_CHAIN, 0, family, sequence);
    message.attribute(TABLE_NAME, &text(table)).attribute(CHAIN_NAME, &text(name));
    crate::message::acknowledged(message.finish())
}

/// Asks for the rules of a table of a family.
pub(crate) fn list_rules(family: Family, table: &str, sequence: u32) -> Vec<u8> {
    let mut message = head(GET_RULE, NLM_F_DUMP, family, sequence);
    message.attribute(TABLE_NAME, &text(table));
    message.finish()
}

/// Whether a rule is in a chain of a table.
pub(crate) fn is_rule_of(payload: &[u8], table: &str, chain: &str) -> bool {
    let all = || crate::message::attributes(payload.get(4..).unwrap_or_default());
    let has = |kind: u16, name: &str| all().any(|it| it == (kind, text(name).as_slice()));
    has(TABLE_NAME, table) && has(RULE_CHAIN, chain)
}

/// Whether a rule, chain, set or table is, or is in, a table with our name.
pub(crate) fn is_of_our_table(payload: &[u8]) -> bool {
    let mut all = crate::message::attributes(payload.get(4..).unwrap_or_default());
    all.any(|(kind, value)| kind == TABLE_NAME && value == text(TABLE))
}

/// Whether a datagram of the group of events says that somebody other than the socket with this number removed
/// something from a table with our name.
pub(crate) fn is_removal(datagram: &[u8], own_port: u32) -> bool {
    let removals = [DEL_TABLE, DEL_CHAIN, DEL_RULE, DEL_SET, DEL_ELEMENTS];
    events(datagram).any(|event| {
        event.port != own_port
            && removals.iter().any(|it| event.message_type == SUBSYSTEM << 8 | it)
            && is_of_our_table(event.payload)
    })
}

/// The tag of a table, from its description.
pub(crate) fn tag_of(payload: &[u8]) -> Option<String> {
    let mut all = crate::message::attributes(payload.get(4..)?);
    let (_, data) = all.find(|(kind, _)| *kind == layout::TABLE_DATA)?;
    let comment = data.get(2..)?.split(|it| *it == 0).next()?;
    String::from_utf8(comment.to_vec()).ok()
}

/// A name, as attributes have it.
fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

fn be32(value: u32) -> [u8; 4] {
    value.to_be_bytes()
}

/// Creation, without a complaint about what is there.
const CREATES: u16 = NLM_F_CREATE;

#[cfg(test)]
mod tests;
