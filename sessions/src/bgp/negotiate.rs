//! OPEN × OPEN: what a session agrees on (RFC 4271 §4.2, RFC 4760, RFC 5492, RFC 6793).

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::types::{AddressFamily, Asn, FamilySet, HoldTime, PeerConfig, PeerKind, RouterId};
use crate::wire::{Capability, Open, WireError};

/// What a session agreed on: the only source of options for the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    /// The neighbour's AS.
    pub remote_asn: Asn,
    /// The neighbour's BGP identifier.
    pub remote_router_id: RouterId,
    /// The smaller of the two.
    pub hold_time: HoldTime,
    /// Families that both offered.
    pub families: FamilySet,
    /// Both use AS numbers of four octets.
    pub four_octet_as: bool,
    /// The neighbour can be asked to say its routes again (RFC 2918).
    pub route_refresh: bool,
    /// What we offered.
    pub capabilities_sent: Vec<Capability>,
    /// What the neighbour offered, in its order.
    pub capabilities_received: Vec<Capability>,
}

/// The OPEN that says what `config` wants.
pub(super) fn our_open(config: &PeerConfig) -> Open {
    let families = config.families.iter().map(|it| Capability::Multiprotocol(it.into()));
    let others = [Capability::RouteRefresh, Capability::FourOctetAs(config.local_asn.get())];
    Open {
        asn: config.local_asn.get(),
        hold_time: config.hold_time,
        router_id: config.router_id,
        capabilities: families.chain(others).collect(),
    }
}

/// Holds the neighbour's OPEN against what `config` wants.
pub(super) fn negotiate(config: &PeerConfig, theirs: Open) -> Result<Negotiated, WireError> {
    let expected = config.remote_asn;
    if theirs.asn != expected.get() {
        return Err(WireError::PeerAs { received: theirs.asn, expected: expected.get() });
    }
    if config.kind() == PeerKind::Internal && theirs.router_id == config.router_id {
        let ours = Ipv4Addr::from(config.router_id.get());
        return Err(WireError::BgpIdentifier(ours, "ours too"));
    }
    let families = config.families.intersection(theirs.families());
    if families.is_empty() {
        // RFC 5492 §3: the data names what we miss.
        let missed = config.families.iter().next().unwrap_or(AddressFamily::Ipv4Unicast);
        return Err(WireError::NoCommonFamily(Capability::Multiprotocol(missed.into()).encode()));
    }
    Ok(Negotiated {
        remote_asn: expected,
        remote_router_id: theirs.router_id,
        hold_time: config.hold_time.negotiate(theirs.hold_time),
        families,
        four_octet_as: theirs.has_four_octet_as(),
        route_refresh: theirs.capabilities.contains(&Capability::RouteRefresh),
        capabilities_sent: our_open(config).capabilities,
        capabilities_received: theirs.capabilities,
    })
}

impl Negotiated {
    /// Time between our KEEPALIVEs: a third of the hold time, or what the operator chose if that
    /// is less (RFC 4271 §4.4). `None` when the hold timer is off.
    pub fn keepalive_interval(&self, config: &PeerConfig) -> Option<Duration> {
        let third = self.hold_time.duration()? / 3;
        // Zero would mean a flood; the operator means "none", which only a hold time of zero is.
        let chosen = config.keepalive_interval.filter(|interval| !interval.is_zero());
        Some(chosen.map_or(third, |chosen| chosen.min(third)))
    }
}
