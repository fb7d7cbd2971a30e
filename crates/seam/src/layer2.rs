//! What a node answers for on the local segment, as seen at one moment.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::MacAddress;

/// The addresses that this machine answers for, and where it cannot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layer2View {
    /// The addresses that it owns.
    pub addresses: BTreeMap<IpAddr, AnsweredAddress>,
    /// The addresses of other members that this machine would own next, and who answered for them when it asked.
    pub checks: BTreeMap<IpAddr, CheckedAddress>,
    /// Interfaces that are not answered on, and why.
    pub unsuited: BTreeMap<String, String>,
    /// Interfaces that should be answered on, and what the kernel refused.
    pub troubles: BTreeMap<String, String>,
}

/// An address that a machine owns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnsweredAddress {
    /// The names of the interfaces that it is answered on, sorted; empty where none of those asked for exists
    /// and works.
    pub interfaces: Vec<String>,
    /// How long the machine has owned it.
    pub age: Duration,
    /// Requests and solicitations for it.
    pub requests: u64,
    /// Answers to them.
    pub responses: u64,
    /// Announcements that nobody asked for.
    pub announcements: u64,
    /// Claims of foreign hosts.
    pub conflicts: u64,
    /// The last of these.
    pub last_conflict: Option<ForeignClaim>,
    /// This process has put it on an interface.
    pub is_bound: bool,
    /// Why it is not on an interface where it should be.
    pub why_not_bound: Option<String>,
}

/// A host that is not ours said that it has an address of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignClaim {
    /// Its hardware address.
    pub mac: MacAddress,
    /// The interface on which that was heard.
    pub interface: String,
    /// How long ago.
    pub age: Duration,
}

/// Who answered for an address of another member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedAddress {
    /// The member that owns it.
    pub owner: String,
    /// Who answered.
    pub answer: AddressAnswer,
    /// How long that has been so.
    pub age: Duration,
}

/// Who answered a question about an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressAnswer {
    /// Its owner.
    Owner,
    /// Its owner, and this hardware address that is not the owner's.
    OwnerAnd(MacAddress),
    /// Only this hardware address, which is not its owner's.
    Other(MacAddress),
    /// Nobody.
    Nobody,
}

impl AddressAnswer {
    /// All values of [`Self::word`].
    pub const WORDS: [&'static str; 4] = ["owner", "several", "other", "nobody"];

    /// The value of a label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::OwnerAnd(_) => "several",
            Self::Other(_) => "other",
            Self::Nobody => "nobody",
        }
    }
}

impl std::fmt::Display for AddressAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Owner => f.write_str("the owner answers"),
            Self::OwnerAnd(mac) => write!(f, "the owner and {mac} answer"),
            Self::Other(mac) => write!(f, "{mac} answers, which is not the owner"),
            Self::Nobody => f.write_str("nobody answers"),
        }
    }
}
