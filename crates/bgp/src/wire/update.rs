//! UPDATE as received: prefixes first, then attributes, each error with the mildest treatment that RFC 7606
//! allows.
//!
//! Prefixes are parsed before any attribute is validated, so that treat-as-withdraw is always possible.

use std::net::IpAddr;
use std::sync::Arc;

use super::attribute::{
    self, AttributeFault, Disposition, RawAttribute, Session, Values, code, flag,
};
use super::context::UpdateContext;
use super::known::KnownAttributes;
use super::{AddressFamilyPair, Reader, WireError, nlri};
use fairway_ground::{AddressFamily, FamilySet, NextHop, Nlri};
use fairway_seam::PathAttributes;

/// An UPDATE that does not end the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// Withdrawn prefixes, including those that are treated as withdrawn.
    pub withdrawn: Vec<Nlri>,
    /// Announced prefixes, each family with its next hop.
    pub announced: Vec<Announced>,
    /// Malformed attributes and how they were treated.
    pub faults: Vec<AttributeFault>,
    /// The family, if it is an End-of-RIB marker.
    pub end_of_rib: Option<AddressFamily>,
}

/// Prefixes that share their attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// The prefixes.
    pub prefixes: Vec<Nlri>,
    /// The attributes.
    pub attributes: Arc<PathAttributes>,
}

/// The prefixes of MP_REACH_NLRI or MP_UNREACH_NLRI.
struct Multiprotocol {
    /// `None` for one that is not part of the session.
    family: Option<AddressFamily>,
    next_hop: Option<NextHop>,
    prefixes: Vec<Nlri>,
    /// It announces something, even if only in a family that we do not support.
    reachable: bool,
}

impl Update {
    /// Parses a body.
    pub fn parse(body: &[u8], context: UpdateContext) -> Result<Self, WireError> {
        Self::parse_knowing(body, context, &mut KnownAttributes::default())
    }

    /// Parses a body of a session whose attributes are remembered in `known`.
    pub fn parse_knowing(
        body: &[u8],
        context: UpdateContext,
        known: &mut KnownAttributes,
    ) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let overrun = WireError::MalformedAttributeList;
        let withdrawn =
            reader.counted_u16().ok_or(overrun("the withdrawn routes overrun the message"))?;
        let attributes =
            reader.counted_u16().ok_or(overrun("the attributes overrun the message"))?;
        let ipv4 = |bytes| {
            let path_ids = context.add_path.contains(AddressFamily::Ipv4Unicast);
            nlri::parse_all(AddressFamily::Ipv4Unicast, path_ids, bytes)
                .map_err(WireError::InvalidNetworkField)
        };
        let withdrawn = ipv4(withdrawn)?;
        let announced = ipv4(reader.rest())?;

        let is_plain = !announced.is_empty()
            && context.families.contains(AddressFamily::Ipv4Unicast)
            && !announced.iter().any(|nlri| nlri.prefix.is_multicast());
        if is_plain && let Some(attributes) = known.get(attributes, context) {
            let announced = vec![Announced { prefixes: announced, attributes }];
            return Ok(Self { withdrawn, announced, faults: Vec::new(), end_of_rib: None });
        }
        let session = Session { kind: context.kind, four_octet_as: context.four_octet_as };
        let mut walk = Walk::over(attributes, &session, context)?;
        let has_own_prefixes = walk.reach.is_some() || walk.unreach.is_some();
        walk.values.merge_four_octet_as();
        let update =
            walk.conclude(withdrawn, announced, attributes.is_empty(), context.families)?;
        if let ([group], []) = (update.announced.as_slice(), update.faults.as_slice())
            && is_plain
            && !has_own_prefixes
        {
            known.insert(attributes, &group.attributes);
        }
        Ok(update)
    }
}

/// The result of parsing the attribute list.
#[derive(Default)]
struct Walk {
    values: Values,
    reach: Option<Multiprotocol>,
    unreach: Option<Multiprotocol>,
    faults: Vec<AttributeFault>,
    /// Type codes seen, to find duplicates.
    seen: Vec<u8>,
}

impl Walk {
    fn over(list: &[u8], session: &Session, context: UpdateContext) -> Result<Self, WireError> {
        let mut walk = Self::default();
        let mut reader = Reader::new(list);
        while !reader.is_empty() {
            match next_attribute(&mut reader) {
                Some(raw) => walk.take(raw, session, context)?,
                None => {
                    // RFC 7606 §4: the rest of the list is unusable, but its total length still locates the
                    // prefixes.
                    walk.fault(0, Disposition::TreatAsWithdraw, "an attribute overruns the list");
                    break;
                }
            }
        }
        Ok(walk)
    }

    fn fault(&mut self, code: u8, disposition: Disposition, what: &'static str) {
        self.note(AttributeFault { code, disposition, what });
    }

    /// Records a fault once: a message may repeat the same one a thousand times.
    fn note(&mut self, fault: AttributeFault) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn take(
        &mut self,
        raw: RawAttribute<'_>,
        session: &Session,
        context: UpdateContext,
    ) -> Result<(), WireError> {
        let envelope = matches!(raw.code, code::MP_REACH_NLRI | code::MP_UNREACH_NLRI);
        if self.seen.contains(&raw.code) {
            if envelope {
                return Err(WireError::MalformedAttributeList("a second MP_REACH or MP_UNREACH"));
            }
            // RFC 7606 §3 (g): the first one counts.
            self.fault(raw.code, Disposition::Discard, "it appears more than once");
            return Ok(());
        }
        self.seen.push(raw.code);
        if envelope && !raw.has_flags(flag::OPTIONAL) {
            // RFC 7606 §5.3: as severe as prefixes that cannot be parsed.
            return Err(optional_attribute(raw, "its optional and transitive flags are wrong"));
        }
        match raw.code {
            code::MP_REACH_NLRI => self.reach = Some(parse_reach(raw, context)?),
            code::MP_UNREACH_NLRI => self.unreach = Some(parse_unreach(raw, context)?),
            _ if is_unknown_well_known(raw) => {
                return Err(WireError::UnknownWellKnown {
                    code: raw.code,
                    attribute: raw.to_bytes(),
                });
            }
            _ => {
                if let Err(fault) = attribute::accept(raw, session, &mut self.values) {
                    self.note(fault);
                }
            }
        }
        Ok(())
    }

    /// Combines prefixes and attributes; the most severe fault decides.
    fn conclude(
        mut self,
        mut withdrawn: Vec<Nlri>,
        mut announced: Vec<Nlri>,
        no_attributes: bool,
        carried: FamilySet,
    ) -> Result<Update, WireError> {
        let reachable = !announced.is_empty() || self.reach.as_ref().is_some_and(|it| it.reachable);
        if !reachable && withdraws(&self.faults) {
            // RFC 7606 §5.2: the affected routes are unknown.
            let what = "an attribute is malformed, and no route is announced";
            return Err(WireError::MalformedAttributeList(what));
        }
        let nothing_in_body = withdrawn.is_empty() && announced.is_empty();
        let end_of_rib = match (&self.unreach, &self.reach) {
            (None, None) if nothing_in_body && no_attributes => Some(AddressFamily::Ipv4Unicast),
            (Some(unreach), None)
                if nothing_in_body && unreach.prefixes.is_empty() && self.seen.len() == 1 =>
            {
                unreach.family
            }
            _ => None,
        };
        let end_of_rib = end_of_rib.filter(|family| carried.contains(*family));
        if !carried.contains(AddressFamily::Ipv4Unicast) {
            withdrawn.clear();
            announced.clear();
        }
        let unreach = self.unreach.take().map_or(Vec::new(), |it| it.prefixes);
        withdrawn = joined(withdrawn, unreach);
        let reach = self.reach.take();
        let (multiprotocol, multiprotocol_next_hop) =
            reach.map_or((Vec::new(), None), |it| (it.prefixes, it.next_hop));

        let body_next_hop = self.values.next_hop.map(NextHop::Ipv4);
        let mut groups = vec![
            (code::NEXT_HOP, announced, body_next_hop),
            (code::MP_REACH_NLRI, multiprotocol, multiprotocol_next_hop),
        ];
        groups.retain(|(_, prefixes, _)| !prefixes.is_empty());
        for (code, _, next_hop) in &groups {
            let what = match next_hop {
                None if self.seen.contains(code) => continue, // Its fault is already recorded.
                None => "it is missing",
                Some(next_hop) if !is_host(*next_hop) => "its next hop is not a host address",
                Some(_) => continue,
            };
            self.fault(*code, Disposition::TreatAsWithdraw, what);
        }
        if !groups.is_empty() {
            // An attribute that was present but malformed has its fault already.
            for code in [code::ORIGIN, code::AS_PATH] {
                if !self.seen.contains(&code) {
                    self.fault(code, Disposition::TreatAsWithdraw, "it is missing");
                }
            }
        }
        for (_, prefixes, _) in &mut groups {
            let before = prefixes.len();
            prefixes.retain(|nlri| !nlri.prefix.is_multicast());
            if prefixes.len() != before {
                // RFC 4271 §6.3: prefixes that are not valid for unicast are ignored.
                self.fault(0, Disposition::Discard, "a multicast prefix is not a unicast route");
            }
        }
        groups.retain(|(_, prefixes, _)| !prefixes.is_empty());
        Ok(joined_up(withdrawn, groups, self.values, self.faults, end_of_rib))
    }
}

/// Prefixes with the next hop that they were announced with, and the code of the attribute that has it.
type Group = (u8, Vec<Nlri>, Option<NextHop>);

/// The UPDATE: each group with its attributes, or withdrawn.
fn joined_up(
    withdrawn: Vec<Nlri>,
    groups: Vec<Group>,
    values: Values,
    faults: Vec<AttributeFault>,
    end_of_rib: Option<AddressFamily>,
) -> Update {
    let withdraw = withdraws(&faults);
    let mut update = Update { withdrawn, announced: Vec::new(), faults, end_of_rib };
    // Nearly always there is one group.
    let copies = groups.len().saturating_sub(1);
    let mut all_values = vec![values.clone(); copies];
    all_values.push(values);
    for ((_, prefixes, next_hop), values) in groups.into_iter().zip(all_values) {
        match next_hop.and_then(|next_hop| attributes(values, next_hop)) {
            Some(attributes) if !withdraw => {
                let attributes = Arc::new(attributes);
                update.announced.push(Announced { prefixes, attributes });
            }
            _ => update.withdrawn = joined(update.withdrawn, prefixes),
        }
    }
    update
}

/// Concatenates two lists. Nearly always one of them is empty, and nothing needs to be moved.
fn joined(mut first: Vec<Nlri>, second: Vec<Nlri>) -> Vec<Nlri> {
    if first.is_empty() {
        return second;
    }
    // Growing by doubling would take three times the memory in a flood.
    first.reserve_exact(second.len());
    first.extend(second);
    first
}

fn withdraws(faults: &[AttributeFault]) -> bool {
    faults.iter().any(|fault| fault.disposition == Disposition::TreatAsWithdraw)
}

/// Whether it can be a host address at all (RFC 4271 §6.3). Reachability is checked where it is used.
///
/// `Ours:` loopback addresses pass. Between two speakers on one machine they are valid; elsewhere they fail
/// the check of reachability.
fn is_host(next_hop: NextHop) -> bool {
    match next_hop.address() {
        IpAddr::V4(address) => {
            let this_network = matches!(address.octets(), [0, ..]);
            !(this_network || address.is_multicast() || address.is_broadcast())
        }
        IpAddr::V6(address) => !(address.is_unspecified() || address.is_multicast()),
    }
}

/// A well-known attribute has the Optional bit clear, and all of them are known.
fn is_unknown_well_known(raw: RawAttribute<'_>) -> bool {
    raw.flags & flag::OPTIONAL == 0 && !attribute::is_known(raw.code)
}

fn attributes(values: Values, next_hop: NextHop) -> Option<PathAttributes> {
    let Values { mut unknown, mut partial, .. } = values;
    unknown.sort_by_key(|attribute| attribute.code);
    partial.sort_unstable();
    Some(PathAttributes {
        origin: values.origin?,
        as_path: values.as_path?,
        next_hop,
        med: values.med,
        local_pref: values.local_pref,
        atomic_aggregate: values.atomic_aggregate,
        aggregator: values.aggregator,
        communities: values.communities,
        extended_communities: values.extended_communities,
        large_communities: values.large_communities,
        only_to_customer: values.only_to_customer,
        unknown,
        partial,
    })
}

/// The next attribute; `None` if it overruns the list.
fn next_attribute<'a>(reader: &mut Reader<'a>) -> Option<RawAttribute<'a>> {
    let flags = reader.u8()?;
    let code = reader.u8()?;
    let extended = flags & flag::EXTENDED_LENGTH != 0;
    let value = if extended { reader.counted_u16()? } else { reader.counted_u8()? };
    Some(RawAttribute { flags, code, value })
}

/// MP_REACH_NLRI (RFC 4760 §3). The rest of a family that the session does not carry is not parsed.
fn parse_reach(raw: RawAttribute<'_>, context: UpdateContext) -> Result<Multiprotocol, WireError> {
    let fault = |what| optional_attribute(raw, what);
    let mut reader = Reader::new(raw.value);
    let family = parse_family(&mut reader, context.families).ok_or(fault("it is too short"))?;
    let next_hop = reader.counted_u8().ok_or(fault("its next hop overruns the attribute"))?;
    let _reserved = reader.u8().ok_or(fault("it is too short"))?;
    let reachable = !reader.is_empty();
    let Some(carried) = family else {
        return Ok(Multiprotocol { family, next_hop: None, prefixes: Vec::new(), reachable });
    };
    let next_hop = parse_next_hop(carried, next_hop, context.extended_next_hop)
        .ok_or(fault("the length of its next hop is wrong for its family"))?;
    let path_ids = context.add_path.contains(carried);
    let prefixes = nlri::parse_all(carried, path_ids, reader.rest()).map_err(fault)?;
    Ok(Multiprotocol { family, next_hop: Some(next_hop), prefixes, reachable })
}

/// MP_UNREACH_NLRI (RFC 4760 §4).
fn parse_unreach(
    raw: RawAttribute<'_>,
    context: UpdateContext,
) -> Result<Multiprotocol, WireError> {
    let fault = |what| optional_attribute(raw, what);
    let mut reader = Reader::new(raw.value);
    let family = parse_family(&mut reader, context.families).ok_or(fault("it is too short"))?;
    let prefixes = match family {
        Some(family) => {
            let path_ids = context.add_path.contains(family);
            nlri::parse_all(family, path_ids, reader.rest()).map_err(fault)?
        }
        None => Vec::new(),
    };
    Ok(Multiprotocol { family, next_hop: None, prefixes, reachable: false })
}

fn optional_attribute(raw: RawAttribute<'_>, what: &'static str) -> WireError {
    WireError::OptionalAttribute { code: raw.code, what, attribute: raw.to_bytes() }
}

/// The family, or the inner `None` for one that is not part of the session.
fn parse_family(reader: &mut Reader<'_>, carried: FamilySet) -> Option<Option<AddressFamily>> {
    let pair = AddressFamilyPair { afi: reader.u16()?, safi: reader.u8()? };
    Some(pair.family().filter(|family| carried.contains(*family)))
}

/// Four octets for IPv4; for IPv6, and for IPv4 if that was negotiated, the 16 of a global address, alone or
/// with a link-local one (RFC 2545 §3, RFC 8950 §3). The length determines the protocol.
fn parse_next_hop(family: AddressFamily, bytes: &[u8], extended: bool) -> Option<NextHop> {
    let mut reader = Reader::new(bytes);
    let is_ipv4 = family == AddressFamily::Ipv4Unicast;
    let next_hop = match bytes.len() {
        4 if is_ipv4 => NextHop::Ipv4(reader.array::<4>()?.into()),
        16 if !is_ipv4 || extended => NextHop::ipv6(reader.array::<16>()?.into(), None),
        32 if !is_ipv4 || extended => {
            let first = reader.array::<16>()?.into();
            NextHop::ipv6(first, Some(reader.array::<16>()?.into()))
        }
        _ => return None,
    };
    Some(next_hop)
}

#[cfg(test)]
mod rfc7606;
#[cfg(test)]
mod tests;
