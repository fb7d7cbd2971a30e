//! UPDATE as received: prefixes first, then attributes, each fault with the mildest answer that
//! RFC 7606 allows.
//!
//! Prefixes are read before any attribute is judged, so that withdrawing is always possible.

use super::attribute::{
    self, AttributeFault, Disposition, RawAttribute, Session, Values, code, flag,
};
use super::{AddressFamilyPair, Reader, WireError, nlri};
use crate::types::{AddressFamily, NextHop, PathAttributes, PeerKind, Prefix};

/// What the session knows that an UPDATE does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdateContext {
    /// iBGP or eBGP.
    pub kind: PeerKind,
    /// AS numbers have four octets.
    pub four_octet_as: bool,
}

/// An UPDATE that leaves the session alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// Prefixes that are withdrawn, and those that a fault made so.
    pub withdrawn: Vec<Prefix>,
    /// Prefixes that are announced, each family with its next hop.
    pub announced: Vec<Announced>,
    /// Malformed attributes and what they led to.
    pub faults: Vec<AttributeFault>,
    /// It was the End-of-RIB marker of this family.
    pub end_of_rib: Option<AddressFamily>,
}

/// Prefixes that share their attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// The prefixes.
    pub prefixes: Vec<Prefix>,
    /// What they say.
    pub attributes: PathAttributes,
}

/// The prefixes of MP_REACH_NLRI or MP_UNREACH_NLRI.
struct Multiprotocol {
    pair: AddressFamilyPair,
    next_hop: Option<NextHop>,
    prefixes: Vec<Prefix>,
}

impl Update {
    /// Reads a body.
    pub fn parse(body: &[u8], context: UpdateContext) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let overrun = WireError::MalformedAttributeList;
        let withdrawn =
            reader.counted_u16().ok_or(overrun("the withdrawn routes overrun the message"))?;
        let attributes =
            reader.counted_u16().ok_or(overrun("the attributes overrun the message"))?;
        let ipv4 = |bytes| {
            nlri::parse_all(AddressFamily::Ipv4Unicast, bytes)
                .map_err(WireError::InvalidNetworkField)
        };
        let withdrawn = ipv4(withdrawn)?;
        let announced = ipv4(reader.rest())?;

        let session = Session { kind: context.kind, four_octet_as: context.four_octet_as };
        let walk = Walk::over(attributes, &session)?;
        Ok(walk.conclude(withdrawn, announced, attributes.is_empty()))
    }
}

/// What the walk over the attribute list found.
#[derive(Default)]
struct Walk {
    values: Values,
    reach: Option<Multiprotocol>,
    unreach: Option<Multiprotocol>,
    faults: Vec<AttributeFault>,
    /// Attributes seen, to find the second of a kind.
    seen: Vec<u8>,
}

impl Walk {
    fn over(list: &[u8], session: &Session) -> Result<Self, WireError> {
        let mut walk = Self::default();
        let mut reader = Reader::new(list);
        while !reader.is_empty() {
            match next_attribute(&mut reader) {
                Some(raw) => walk.take(raw, session)?,
                None => {
                    // RFC 7606 §4: the rest of the list has no meaning, but its own length still
                    // tells where the prefixes are.
                    walk.fault(0, Disposition::TreatAsWithdraw, "it overruns the attribute list");
                    break;
                }
            }
        }
        Ok(walk)
    }

    fn fault(&mut self, code: u8, disposition: Disposition, what: &'static str) {
        self.faults.push(AttributeFault { code, disposition, what });
    }

    fn take(&mut self, raw: RawAttribute<'_>, session: &Session) -> Result<(), WireError> {
        let envelope = matches!(raw.code, code::MP_REACH_NLRI | code::MP_UNREACH_NLRI);
        if self.seen.contains(&raw.code) {
            if envelope {
                return Err(WireError::MalformedAttributeList("a second MP_REACH or MP_UNREACH"));
            }
            // RFC 7606 §3 (g): the first counts.
            self.fault(raw.code, Disposition::Discard, "it came a second time");
            return Ok(());
        }
        self.seen.push(raw.code);
        match raw.code {
            code::MP_REACH_NLRI => self.reach = Some(parse_reach(raw)?),
            code::MP_UNREACH_NLRI => self.unreach = Some(parse_unreach(raw)?),
            _ if is_unknown_well_known(raw) => {
                return Err(WireError::UnknownWellKnown {
                    code: raw.code,
                    attribute: raw.to_bytes(),
                });
            }
            _ => {
                if let Err(fault) = attribute::accept(raw, session, &mut self.values) {
                    self.faults.push(fault);
                }
            }
        }
        Ok(())
    }

    /// Puts prefixes and attributes together, and lets the strongest fault decide.
    fn conclude(
        mut self,
        mut withdrawn: Vec<Prefix>,
        announced: Vec<Prefix>,
        no_attributes: bool,
    ) -> Update {
        let nothing_in_body = withdrawn.is_empty() && announced.is_empty();
        let end_of_rib = match (&self.unreach, &self.reach) {
            (None, None) if nothing_in_body && no_attributes => Some(AddressFamily::Ipv4Unicast),
            (Some(unreach), None)
                if nothing_in_body && unreach.prefixes.is_empty() && self.seen.len() == 1 =>
            {
                unreach.pair.family()
            }
            _ => None,
        };
        withdrawn.extend(self.unreach.take().into_iter().flat_map(|it| it.prefixes));
        let reach = self.reach.take();
        let (multiprotocol, multiprotocol_next_hop) =
            reach.map_or((Vec::new(), None), |it| (it.prefixes, it.next_hop));

        let body_next_hop = self.values.next_hop.map(NextHop::Ipv4);
        let groups = [(announced, body_next_hop), (multiprotocol, multiprotocol_next_hop)];
        if groups.iter().any(|(prefixes, next_hop)| !prefixes.is_empty() && next_hop.is_none()) {
            self.fault(code::NEXT_HOP, Disposition::TreatAsWithdraw, "it is missing");
        }
        if groups.iter().any(|(prefixes, _)| !prefixes.is_empty()) {
            if self.values.origin.is_none() {
                self.fault(code::ORIGIN, Disposition::TreatAsWithdraw, "it is missing");
            }
            if self.values.as_path.is_none() {
                self.fault(code::AS_PATH, Disposition::TreatAsWithdraw, "it is missing");
            }
        }
        let mut update =
            Update { withdrawn, announced: Vec::new(), faults: self.faults, end_of_rib };
        let withdraw =
            update.faults.iter().any(|fault| fault.disposition == Disposition::TreatAsWithdraw);
        for (prefixes, next_hop) in groups {
            match next_hop.and_then(|next_hop| attributes(&self.values, next_hop)) {
                _ if prefixes.is_empty() => {}
                Some(attributes) if !withdraw => {
                    update.announced.push(Announced { prefixes, attributes });
                }
                _ => update.withdrawn.extend(prefixes),
            }
        }
        update
    }
}

/// A well-known attribute has the optional bit clear, and we know all that exist.
fn is_unknown_well_known(raw: RawAttribute<'_>) -> bool {
    raw.flags & flag::OPTIONAL == 0 && !attribute::is_known(raw.code)
}

fn attributes(values: &Values, next_hop: NextHop) -> Option<PathAttributes> {
    let mut unknown = values.unknown.clone();
    unknown.sort_by_key(|attribute| attribute.code);
    Some(PathAttributes {
        origin: values.origin?,
        as_path: values.as_path.clone()?,
        next_hop,
        med: values.med,
        local_pref: values.local_pref,
        atomic_aggregate: values.atomic_aggregate,
        aggregator: values.aggregator,
        communities: values.communities.clone(),
        large_communities: values.large_communities.clone(),
        unknown,
    })
}

/// The next attribute; `None` when it overruns the list.
fn next_attribute<'a>(reader: &mut Reader<'a>) -> Option<RawAttribute<'a>> {
    let flags = reader.u8()?;
    let code = reader.u8()?;
    let extended = flags & flag::EXTENDED_LENGTH != 0;
    let value = if extended { reader.counted_u16()? } else { reader.counted_u8()? };
    Some(RawAttribute { flags, code, value })
}

/// MP_REACH_NLRI (RFC 4760 §3). A family that we do not route is read no further.
fn parse_reach(raw: RawAttribute<'_>) -> Result<Multiprotocol, WireError> {
    let fault = |what| optional_attribute(raw, what);
    let mut reader = Reader::new(raw.value);
    let pair = parse_pair(&mut reader).ok_or(fault("it is too short"))?;
    let next_hop = reader.counted_u8().ok_or(fault("its next hop overruns it"))?;
    let _reserved = reader.u8().ok_or(fault("it is too short"))?;
    let Some(family) = pair.family() else {
        return Ok(Multiprotocol { pair, next_hop: None, prefixes: Vec::new() });
    };
    let next_hop = parse_next_hop(family, next_hop)
        .ok_or(fault("the length of its next hop is wrong for its family"))?;
    let prefixes = nlri::parse_all(family, reader.rest()).map_err(fault)?;
    Ok(Multiprotocol { pair, next_hop: Some(next_hop), prefixes })
}

/// MP_UNREACH_NLRI (RFC 4760 §4).
fn parse_unreach(raw: RawAttribute<'_>) -> Result<Multiprotocol, WireError> {
    let fault = |what| optional_attribute(raw, what);
    let mut reader = Reader::new(raw.value);
    let pair = parse_pair(&mut reader).ok_or(fault("it is too short"))?;
    let prefixes = match pair.family() {
        Some(family) => nlri::parse_all(family, reader.rest()).map_err(fault)?,
        None => Vec::new(),
    };
    Ok(Multiprotocol { pair, next_hop: None, prefixes })
}

fn optional_attribute(raw: RawAttribute<'_>, what: &'static str) -> WireError {
    WireError::OptionalAttribute { code: raw.code, what, attribute: raw.to_bytes() }
}

fn parse_pair(reader: &mut Reader<'_>) -> Option<AddressFamilyPair> {
    Some(AddressFamilyPair { afi: reader.u16()?, safi: reader.u8()? })
}

/// Four octets for IPv4; for IPv6 a global address, alone or with a link-local one
/// (RFC 2545 §3). IPv6 next hops of IPv4 routes are read only where RFC 8950 was negotiated,
/// which we do not offer.
fn parse_next_hop(family: AddressFamily, bytes: &[u8]) -> Option<NextHop> {
    let mut reader = Reader::new(bytes);
    let next_hop = match family {
        AddressFamily::Ipv4Unicast => NextHop::Ipv4(reader.array::<4>()?.into()),
        AddressFamily::Ipv6Unicast => {
            let global = reader.array::<16>()?.into();
            let link_local =
                if reader.is_empty() { None } else { Some(reader.array::<16>()?.into()) };
            NextHop::Ipv6 { global, link_local }
        }
    };
    reader.is_empty().then_some(next_hop)
}

#[cfg(test)]
mod tests;
