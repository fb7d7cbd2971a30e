//! Why a Service did not get what it requested, in words that name what is missing.
//!
//! Where MetalLB has a text, ours begins with it, since people and programs search for it; details
//! follow. Knows no rule; `request` and `choice` decide, events and `show services` print.

use std::net::IpAddr;

use fairway_ground::AddressFamily;
use fairway_model::{FamilyPolicy, ObjectName};

use super::SharingConflict;

/// Why a Service has no address, or fewer than it prefers, or one that may not be announced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// There is no pool at all. Assignments stay, but are not announced.
    #[error("there is no valid IPAddressPool")]
    NoPools,
    /// No valid pool holds the assigned address, and the content of an invalid one is unknown. It stays
    /// assigned, but is not announced.
    #[error(
        "no valid IPAddressPool holds {address}; the address is kept, since it may be of {}, which \
         is invalid and has no earlier valid version",
        .pools.join(" or ")
    )]
    PoolUnknown {
        /// The address.
        address: IpAddr,
        /// The invalid pools.
        pools: Vec<String>,
    },
    /// This allocator has just taken over, and assigns nothing yet.
    #[error(
        "no address is assigned yet: the controller is still restoring the existing \
             assignments"
    )]
    NotYet,
    /// There are pools, but each must be requested by name.
    #[error(
        "no available IPs: every IPAddressPool has autoAssign: false; request one with the \
         annotation metallb.io/address-pool"
    )]
    NoAutomaticPool,
    /// The automatic pools are restricted to others.
    #[error(
        "no available IPs: every IPAddressPool has autoAssign: false, or a serviceAllocation that \
         does not match this Service"
    )]
    NoPoolForService,
    /// No pool that could be used holds addresses of the family.
    #[error("no available IPs: {} no {} addresses", tried(.pools, "holds", "hold"), .family.ip_version())]
    NoPoolOfFamily {
        /// The family wanted.
        family: AddressFamily,
        /// The pools that could be used.
        pools: Vec<String>,
    },
    /// All usable pools are full.
    #[error(
        "no available IPs: no pool has a free {} address (tried {})",
        .family.ip_version(), .pools.join(", ")
    )]
    NoFreeAddress {
        /// The family wanted.
        family: AddressFamily,
        /// The pools that were tried.
        pools: Vec<String>,
    },
    /// One of each family is needed, and one of them is not available.
    #[error(
        "no available IPs: an IPv4 and an IPv6 address are needed, and no free address of one \
         family is left (tried {})", .pools.join(", ")
    )]
    NoFreePair {
        /// The pools that were tried.
        pools: Vec<String>,
    },
    /// One of each family is needed, and no pool that could be used holds both.
    #[error(
        "no available IPs: an IPv4 and an IPv6 address of one pool are needed, and {}; to have them \
         from two pools, name both in the annotation fairway.dev/address-pools",
        tried(.pools, "does not hold both", "each hold only one family")
    )]
    NoPoolOfBoth {
        /// The pools that could be used.
        pools: Vec<String>,
    },
    /// The requested pool does not exist.
    #[error("unknown pool {0:?}: there is no IPAddressPool of that name")]
    UnknownPool(String),
    /// The requested pool, or that of the requested address, is restricted to others.
    #[error(
        "pool {0} not compatible for ip assignment: its serviceAllocation does not match this Service"
    )]
    PoolNotForService(String),
    /// The requested address is in no pool.
    #[error("\"{0}\" is not allowed in config: it is in no IPAddressPool")]
    AddressInNoPool(IpAddr),
    /// The addresses are allowed, but not for one Service.
    #[error(
        "[\"{}\" \"{}\"] is not allowed in config: the first is in pool {}, the second in pool {}; \
         both must be in one pool, unless the annotation fairway.dev/address-pools names both pools",
        .addresses[0], .addresses[1], .pools[0], .pools[1]
    )]
    TwoPools {
        /// Two addresses of a Service.
        addresses: [IpAddr; 2],
        /// The pools that hold them.
        pools: [String; 2],
    },
    /// The requested address is not in the requested pool.
    #[error(
        "requested loadBalancer IP(s) \"{address}\" not compatible with requested address pool {pool}: \
         the address is in pool {holder}"
    )]
    AddressNotInPool {
        /// The requested address.
        address: IpAddr,
        /// The requested pool.
        pool: String,
        /// The pool that holds it.
        holder: String,
    },
    /// The requested address ends in .0 or .255 and its pool avoids those.
    #[error("\"{address}\" is not allowed in config: pool {pool} has avoidBuggyIPs: true")]
    AddressAvoided {
        /// The requested address.
        address: IpAddr,
        /// The pool that holds it.
        pool: String,
    },
    /// The requested address is in use by another Service.
    #[error("{}", in_use(*.address, .service, .user, .conflict))]
    AddressInUse {
        /// The requested address.
        address: IpAddr,
        /// The Service that requests it.
        service: Box<ObjectName>,
        /// The Service that has it.
        user: Box<ObjectName>,
        /// Why it cannot be shared.
        conflict: SharingConflict,
    },
    /// The requested address was another Service's until recently.
    #[error(
        "address {address} was released by {former}, and its withdrawal has not been sent to every \
         neighbor yet"
    )]
    AddressCooling {
        /// The address asked for.
        address: IpAddr,
        /// Its former holder.
        former: ObjectName,
    },
    /// The requested addresses are not of the families of the Service.
    #[error(
        "requested loadBalancer IP(s) {} does not match the ipFamily of the service: it wants {}",
        addresses(.requested), wish(*.wanted)
    )]
    Families {
        /// The requested addresses.
        requested: Vec<IpAddr>,
        /// The families of the Service.
        wanted: FamilyPolicy,
    },
    /// PreferDualStack got one family, because the other is not available.
    #[error("PreferDualStack got only an {} address: {missing}", .got.ip_version())]
    OneFamily {
        /// The family it got.
        got: AddressFamily,
        /// Why it did not get the other.
        missing: Box<Reason>,
    },
    /// PreferDualStack got one family, because it requested one address.
    #[error("PreferDualStack got only {0}: no address of the other family is requested")]
    OneFamilyRequested(IpAddr),
}

fn in_use(
    address: IpAddr,
    service: &ObjectName,
    user: &ObjectName,
    conflict: &SharingConflict,
) -> String {
    match conflict {
        SharingConflict::Port { protocol, port } => {
            format!("port {protocol}/{port} is already in use on \"{address}\": by {user}")
        }
        SharingConflict::Key | SharingConflict::Backend => format!(
            "can't change sharing key for \"{service}\", address also in use by {user}: {address}, \
             and {conflict}"
        ),
    }
}

impl Reason {
    /// The address that `service` requests belongs to `user`.
    pub(super) fn in_use(
        address: IpAddr,
        service: &ObjectName,
        user: ObjectName,
        conflict: SharingConflict,
    ) -> Self {
        let (service, user) = (Box::new(service.clone()), Box::new(user));
        Self::AddressInUse { address, service, user, conflict }
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
        FamilyPolicy::Single(family) => format!("one {} address", family.ip_version()),
        FamilyPolicy::PreferDual(_) => "one address of each family, or just one".to_owned(),
        FamilyPolicy::RequireDual(_) => "one address of each family".to_owned(),
    }
}
