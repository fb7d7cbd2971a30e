//! Why a Service did not get what it asked for, in words that tell what is missing.
//!
//! Knows no rule; `request` and `choice` decide, events and `show services` print.

use std::net::IpAddr;

use fairway_sessions::types::AddressFamily;

use crate::model::{FamilyPolicy, ObjectName};

use super::SharingConflict;

/// Why a Service has no address, or fewer than it would like, or one that may not be announced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// There is no pool at all. What is assigned stays so, but is not announced.
    #[error("there is no valid IPAddressPool")]
    NoPools,
    /// Pools there are, but each must be asked for by name.
    #[error(
        "every IPAddressPool has autoAssign: false; ask for one with the annotation \
         metallb.io/address-pool"
    )]
    NoAutomaticPool,
    /// No pool that could be used holds addresses of the family.
    #[error("{} no {} addresses", tried(.pools, "holds", "hold"), family_name(*.family))]
    NoPoolOfFamily {
        /// The family wanted.
        family: AddressFamily,
        /// The pools that could be used.
        pools: Vec<String>,
    },
    /// All that could be used are full.
    #[error("no pool has a free {} address (tried {})", family_name(*.family), .pools.join(", "))]
    NoFreeAddress {
        /// The family wanted.
        family: AddressFamily,
        /// The pools that were tried.
        pools: Vec<String>,
    },
    /// The pool asked for is not there.
    #[error("pool {0} does not exist")]
    UnknownPool(String),
    /// The address asked for is nowhere on offer.
    #[error("address {0} is in no pool")]
    AddressInNoPool(IpAddr),
    /// The address asked for is not in the pool asked for.
    #[error("address {address} is not in the requested pool {pool}")]
    AddressNotInPool {
        /// The address asked for.
        address: IpAddr,
        /// The pool asked for.
        pool: String,
    },
    /// The address asked for ends in .0 or .255 and its pool keeps away from those.
    #[error("pool {pool} never gives out {address}: it has avoidBuggyIPs: true")]
    AddressAvoided {
        /// The address asked for.
        address: IpAddr,
        /// The pool that holds it.
        pool: String,
    },
    /// The address asked for belongs to another.
    #[error("address {address} is in use by {user}: {conflict}")]
    AddressInUse {
        /// The address asked for.
        address: IpAddr,
        /// Who has it.
        user: ObjectName,
        /// Why it cannot be shared.
        conflict: SharingConflict,
    },
    /// The addresses asked for are not of the families that the Service has.
    #[error(
        "the requested addresses ({}) do not match the families of the Service: it wants {}",
        addresses(.requested), wish(*.wanted)
    )]
    Families {
        /// The addresses asked for.
        requested: Vec<IpAddr>,
        /// The families of the Service.
        wanted: FamilyPolicy,
    },
    /// PreferDualStack got one family, because the other is not to be had.
    #[error("PreferDualStack got only an {} address: {missing}", family_name(*.got))]
    OneFamily {
        /// The family it got.
        got: AddressFamily,
        /// Why it did not get the other.
        missing: Box<Reason>,
    },
    /// PreferDualStack got one family, because it asked for one address.
    #[error("PreferDualStack got only {0}: no address of the other family is requested")]
    OneFamilyRequested(IpAddr),
}

/// `IPv4` or `IPv6`, as users write it.
fn family_name(family: AddressFamily) -> &'static str {
    match family {
        AddressFamily::Ipv4Unicast => "IPv4",
        AddressFamily::Ipv6Unicast => "IPv6",
    }
}

fn tried(pools: &[String], one: &str, many: &str) -> String {
    match pools {
        [pool] => format!("pool {pool} {one}"),
        _ => format!("the pools that may be used ({}) {many}", pools.join(", ")),
    }
}

fn addresses(addresses: &[IpAddr]) -> String {
    addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ")
}

fn wish(families: FamilyPolicy) -> String {
    match families {
        FamilyPolicy::Single(family) => format!("one {} address", family_name(family)),
        FamilyPolicy::PreferDual(_) => "one address of each family, or just one".to_owned(),
        FamilyPolicy::RequireDual(_) => "one address of each family".to_owned(),
    }
}
