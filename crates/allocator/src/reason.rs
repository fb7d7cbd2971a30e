//! Why a Service did not get what it asked for, in words that tell what is missing.
//!
//! Where MetalLB has words for it, a text begins with them, for people and programs look for these;
//! what we know besides comes behind. Knows no rule; `request` and `choice` decide, events and
//! `show services` print.

use std::net::IpAddr;

use fairway_ground::AddressFamily;
use fairway_model::{FamilyPolicy, ObjectName};

use super::SharingConflict;

/// Why a Service has no address, or fewer than it would like, or one that may not be announced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// There is no pool at all. What is assigned stays so, but is not announced.
    #[error("there is no valid IPAddressPool")]
    NoPools,
    /// No pool in force holds what is assigned, and what another holds is not known. It stays
    /// assigned, but is not announced.
    #[error(
        "no IPAddressPool in force holds {address}; it is kept, for it may be of {}, which is at \
         fault, and no earlier version of that is known",
        .pools.join(" or ")
    )]
    PoolUnknown {
        /// The address.
        address: IpAddr,
        /// The pools that are at fault.
        pools: Vec<String>,
    },
    /// Whoever decides has only begun to, and gives nothing out yet.
    #[error("no address is given out yet: the controller has only just begun to decide")]
    NotYet,
    /// Pools there are, but each must be asked for by name.
    #[error(
        "no available IPs: every IPAddressPool has autoAssign: false; ask for one with the \
         annotation metallb.io/address-pool"
    )]
    NoAutomaticPool,
    /// Those that need not be asked for are kept for others.
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
    /// All that could be used are full.
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
    /// One of each family is needed, and there are not both.
    #[error(
        "no available IPs: an IPv4 and an IPv6 address are needed, and there is no free one of both \
         (tried {})", .pools.join(", ")
    )]
    NoFreePair {
        /// The pools that were tried.
        pools: Vec<String>,
    },
    /// The pool asked for is not there.
    #[error("unknown pool {0:?}: there is no IPAddressPool of that name")]
    UnknownPool(String),
    /// The pool asked for, or that of the address asked for, is kept for others.
    #[error(
        "pool {0} not compatible for ip assignment: its serviceAllocation does not match this Service"
    )]
    PoolNotForService(String),
    /// The address asked for is nowhere on offer.
    #[error("\"{0}\" is not allowed in config: it is in no IPAddressPool")]
    AddressInNoPool(IpAddr),
    /// The address asked for is not in the pool asked for.
    #[error(
        "requested loadBalancer IP(s) \"{address}\" not compatible with requested address pool {pool}: \
         the address is in pool {holder}"
    )]
    AddressNotInPool {
        /// The address asked for.
        address: IpAddr,
        /// The pool asked for.
        pool: String,
        /// The pool that holds it.
        holder: String,
    },
    /// The address asked for ends in .0 or .255 and its pool keeps away from those.
    #[error("\"{address}\" is not allowed in config: pool {pool} has avoidBuggyIPs: true")]
    AddressAvoided {
        /// The address asked for.
        address: IpAddr,
        /// The pool that holds it.
        pool: String,
    },
    /// The address asked for belongs to another.
    #[error("{}", in_use(*.address, .service, .user, .conflict))]
    AddressInUse {
        /// The address asked for.
        address: IpAddr,
        /// Who asks.
        service: Box<ObjectName>,
        /// Who has it.
        user: Box<ObjectName>,
        /// Why it cannot be shared.
        conflict: SharingConflict,
    },
    /// The address asked for belonged to another a moment ago.
    #[error(
        "address {address} was released by {former}, and not every neighbor has been told that yet"
    )]
    AddressCooling {
        /// The address asked for.
        address: IpAddr,
        /// Who had it.
        former: ObjectName,
    },
    /// The addresses asked for are not of the families that the Service has.
    #[error(
        "requested loadBalancer IP(s) {} does not match the ipFamily of the service: it wants {}",
        addresses(.requested), wish(*.wanted)
    )]
    Families {
        /// The addresses asked for.
        requested: Vec<IpAddr>,
        /// The families of the Service.
        wanted: FamilyPolicy,
    },
    /// PreferDualStack got one family, because the other is not to be had.
    #[error("PreferDualStack got only an {} address: {missing}", .got.ip_version())]
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
    /// The address that `service` asks for belongs to `user`.
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
