//! UPDATEs for sending: attributes encoded once, then packed with as many prefixes as a message holds (RFC
//! 4271 §4.3, RFC 4760 §3–4).
//!
//! zettabgp encodes the values of attributes. The headers are encoded here, since zettabgp marks our own
//! communities as Partial and uses an extended length for every path; so is the message, since only this
//! module knows how many prefixes still fit.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use zettabgp::message::attributes::BgpAttr;
use zettabgp::message::attributes::community::{
    BgpCommunity, BgpCommunityList, BgpLargeCommunity, BgpLargeCommunityList,
};
use zettabgp::message::attributes::localpref::BgpLocalpref;
use zettabgp::message::attributes::med::BgpMED;
use zettabgp::message::attributes::nexthop::BgpNextHop;
use zettabgp::message::attributes::origin::{BgpAttrOrigin, BgpOrigin};

use super::attribute::{code, flag, put_header, zettabgp_session};
use super::{
    EXTENDED_MESSAGE_LENGTH_BYTES_MAX, HEADER_LENGTH_BYTES, MESSAGE_LENGTH_BYTES_MAX, MessageType,
    Update, UpdateContext, as_path, nlri,
};
use fairway_ground::{AddressFamily, Asn, LargeCommunity, NextHop, Nlri, PeerKind, Prefix};
use fairway_seam::{Aggregator, Origin, PathAttributes};

const OPTIONAL_TRANSITIVE: u8 = flag::OPTIONAL | flag::TRANSITIVE;

/// The attributes of a group of routes, as bytes, without prefixes and without MP_REACH_NLRI.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttributeBlock {
    bytes: Box<[u8]>,
    next_hop: NextHop,
    /// Maximum length of the messages that carry it, which has two octets.
    message_length_bytes_max: u16,
    /// Where the value of NEXT_HOP begins, if there is one.
    next_hop_offset: u16,
}

/// The attributes leave no room for a single prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the attributes do not fit a message of {0} bytes")]
pub struct TooLong(pub usize);

/// Attributes that take more than this share of an ordinary message go into extended ones if the peer
/// supports them (RFC 8654). For others a long message saves next to nothing, while the peer cannot use any
/// of its routes before all of it has arrived.
const BULKY_LENGTH_BYTES: usize = MESSAGE_LENGTH_BYTES_MAX / 2;

impl AttributeBlock {
    /// Encodes `attributes` for a peer with four-octet or two-octet AS numbers. The result leaves room for at
    /// least one prefix.
    pub fn encode(attributes: &PathAttributes, four_octet_as: bool) -> Result<Self, TooLong> {
        Self::encode_within(MESSAGE_LENGTH_BYTES_MAX, attributes, four_octet_as)
    }

    /// The same for a peer that accepts messages of up to `length_max` bytes.
    pub fn encode_within(
        length_max: usize,
        attributes: &PathAttributes,
        four_octet_as: bool,
    ) -> Result<Self, TooLong> {
        let mut encoder = Encoder::new(four_octet_as);
        encoder.put_all(attributes, four_octet_as).ok_or(TooLong(length_max))?;
        let prefix = match attributes.next_hop {
            NextHop::Ipv4(_) => IPV4_NLRI_LENGTH_BYTES_MAX,
            NextHop::Ipv6 { .. } => ONE_ROUTE_LENGTH_BYTES_MAX,
        };
        let one_route =
            ENVELOPE_LENGTH_BYTES.saturating_add(prefix).saturating_add(encoder.bytes.len());
        if one_route > length_max {
            return Err(TooLong(length_max));
        }
        let is_bulky = encoder.bytes.len() > BULKY_LENGTH_BYTES;
        let length_max = if is_bulky { length_max } else { MESSAGE_LENGTH_BYTES_MAX };
        let octets16 = |length: usize| u16::try_from(length).unwrap_or(u16::MAX);
        Ok(Self {
            bytes: encoder.bytes.into_boxed_slice(),
            next_hop: attributes.next_hop,
            message_length_bytes_max: octets16(length_max),
            next_hop_offset: octets16(encoder.next_hop_offset),
        })
    }

    /// The values of the attributes, as a peer decodes them in an announcement of `prefix`.
    pub fn decode(&self, prefix: Prefix, four_octet_as: bool) -> Option<PathAttributes> {
        let mut message = BytesMut::new();
        let mut prefixes = BTreeSet::from([Nlri::from(prefix)]);
        announcement(prefix.family(), false, self, &mut prefixes, &mut message);
        let context = UpdateContext {
            four_octet_as,
            extended_next_hop: true,
            // No attribute is kept from an internal peer.
            ..UpdateContext::new(PeerKind::Internal)
        };
        let update = Update::parse(message.get(HEADER_LENGTH_BYTES..)?, context).ok()?;
        let attributes = update.announced.into_iter().next()?.attributes;
        Some(PathAttributes { next_hop: self.next_hop, ..Arc::unwrap_or_clone(attributes) })
    }

    /// The attributes in order of type code, with NEXT_HOP if the next hop is IPv4, and without MP_REACH_NLRI.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the octets of the next hop begin in an UPDATE that [`announcement`] makes of it for routes of `family`.
    pub fn next_hop_offset(&self, family: AddressFamily) -> usize {
        if is_plain(family, self.next_hop) {
            return ENVELOPE_LENGTH_BYTES.saturating_add(usize::from(self.next_hop_offset));
        }
        // Behind AFI, SAFI and the length of the next hop.
        ENVELOPE_LENGTH_BYTES.saturating_add(ATTRIBUTE_HEADER_LENGTH_BYTES).saturating_add(4)
    }
}

/// Writes values through zettabgp into a buffer that is always large enough: zettabgp panics on one that is
/// not.
struct Encoder {
    session: zettabgp::BgpSessionParams,
    bytes: Vec<u8>,
    scratch: Vec<u8>,
    /// Where the value of NEXT_HOP begins.
    next_hop_offset: usize,
}

impl Encoder {
    fn new(four_octet_as: bool) -> Self {
        Self {
            session: zettabgp_session(four_octet_as),
            bytes: Vec::with_capacity(64),
            scratch: Vec::new(),
            next_hop_offset: 0,
        }
    }

    /// Encodes `value`, which takes at most `room` bytes.
    fn put(&mut self, flags: u8, code: u8, room: usize, value: &impl BgpAttr) -> Option<()> {
        if room > EXTENDED_MESSAGE_LENGTH_BYTES_MAX {
            return None;
        }
        self.scratch.clear();
        self.scratch.resize(room, 0);
        let length = value.encode_to(&self.session, &mut self.scratch).ok()?;
        put_header(&mut self.bytes, flags, code, length);
        self.bytes.extend_from_slice(self.scratch.get(..length)?);
        Some(())
    }

    /// Puts a value that is already encoded.
    fn put_bytes(&mut self, flags: u8, code: u8, value: &[u8]) -> Option<()> {
        if value.len() > EXTENDED_MESSAGE_LENGTH_BYTES_MAX {
            return None;
        }
        put_header(&mut self.bytes, flags, code, value.len());
        self.bytes.extend_from_slice(value);
        Some(())
    }

    /// Puts all attributes in the order of type codes (RFC 4271 §5).
    fn put_all(&mut self, attributes: &PathAttributes, four_octet_as: bool) -> Option<()> {
        self.put_well_known(attributes, four_octet_as)?;
        if let Some(aggregator) = &attributes.aggregator {
            let value = octets(aggregator, four_octet_as);
            let flags = optional_transitive(attributes, code::AGGREGATOR);
            self.put_bytes(flags, code::AGGREGATOR, &value)?;
        }
        let communities = &attributes.communities;
        if !communities.is_empty() {
            let room = communities.len().checked_mul(4)?;
            let value = communities.iter().map(|it| BgpCommunity::new(it.0)).collect();
            let flags = optional_transitive(attributes, code::COMMUNITIES);
            self.put(flags, code::COMMUNITIES, room, &BgpCommunityList { value })?;
        }
        let mut unknown = attributes.unknown.iter().peekable();
        let mut put_unknown_below = |encoder: &mut Self, code: u8| {
            while let Some(it) = unknown.next_if(|it| it.code < code) {
                encoder.put_bytes(it.flags, it.code, &it.value)?;
            }
            Some(())
        };
        put_unknown_below(self, code::EXTENDED_COMMUNITIES)?;
        self.put_extended_communities(attributes)?;
        put_unknown_below(self, code::AS4_PATH)?;
        if !four_octet_as {
            self.put_for_old_speakers(attributes)?;
        }
        put_unknown_below(self, code::LARGE_COMMUNITIES)?;
        self.put_large_communities(attributes)?;
        put_unknown_below(self, code::ONLY_TO_CUSTOMER)?;
        if let Some(asn) = attributes.only_to_customer {
            let flags = optional_transitive(attributes, code::ONLY_TO_CUSTOMER);
            self.put_bytes(flags, code::ONLY_TO_CUSTOMER, &asn.to_be_bytes())?;
        }
        for attribute in unknown {
            self.put_bytes(attribute.flags, attribute.code, &attribute.value)?;
        }
        Some(())
    }

    /// ORIGIN to ATOMIC_AGGREGATE. All are well-known except MULTI_EXIT_DISC.
    fn put_well_known(&mut self, attributes: &PathAttributes, four_octet_as: bool) -> Option<()> {
        let origin = BgpOrigin::new(match attributes.origin {
            Origin::Igp => BgpAttrOrigin::Igp,
            Origin::Egp => BgpAttrOrigin::Egp,
            Origin::Incomplete => BgpAttrOrigin::Incomplete,
        });
        self.put(flag::TRANSITIVE, code::ORIGIN, 1, &origin)?;
        let as_path = as_path::encode(&attributes.as_path, four_octet_as);
        self.put_bytes(flag::TRANSITIVE, code::AS_PATH, &as_path)?;
        if let NextHop::Ipv4(address) = attributes.next_hop {
            let value = BgpNextHop::new(IpAddr::V4(address));
            self.put(flag::TRANSITIVE, code::NEXT_HOP, 4, &value)?;
            self.next_hop_offset = self.bytes.len().saturating_sub(4);
        }
        if let Some(med) = attributes.med {
            self.put(flag::OPTIONAL, code::MULTI_EXIT_DISC, 4, &BgpMED::new(med))?;
        }
        if let Some(local_pref) = attributes.local_pref {
            self.put(flag::TRANSITIVE, code::LOCAL_PREF, 4, &BgpLocalpref::new(local_pref))?;
        }
        if attributes.atomic_aggregate {
            self.put_bytes(flag::TRANSITIVE, code::ATOMIC_AGGREGATE, &[])?;
        }
        Some(())
    }

    /// AS4_PATH and AS4_AGGREGATOR, for AS numbers that do not fit into two octets (RFC 6793 §4.2.2).
    fn put_for_old_speakers(&mut self, attributes: &PathAttributes) -> Option<()> {
        let is_wide = |asn: u32| u16::try_from(asn).is_err();
        if attributes.as_path.asns().any(is_wide) {
            let path = as_path::encode(&attributes.as_path, true);
            self.put_bytes(OPTIONAL_TRANSITIVE, code::AS4_PATH, &path)?;
        }
        if let Some(aggregator) = attributes.aggregator.filter(|it| is_wide(it.asn)) {
            let value = octets(&aggregator, true);
            self.put_bytes(OPTIONAL_TRANSITIVE, code::AS4_AGGREGATOR, &value)?;
        }
        Some(())
    }

    fn put_extended_communities(&mut self, attributes: &PathAttributes) -> Option<()> {
        let communities = &attributes.extended_communities;
        if communities.is_empty() {
            return Some(());
        }
        let value: Vec<u8> = communities.iter().flat_map(|it| it.0).collect();
        let flags = optional_transitive(attributes, code::EXTENDED_COMMUNITIES);
        self.put_bytes(flags, code::EXTENDED_COMMUNITIES, &value)
    }

    fn put_large_communities(&mut self, attributes: &PathAttributes) -> Option<()> {
        let communities = &attributes.large_communities;
        if communities.is_empty() {
            return Some(());
        }
        let room = communities.len().checked_mul(12)?;
        let large = |it: &LargeCommunity| BgpLargeCommunity {
            ga: it.global,
            ldp1: it.local1,
            ldp2: it.local2,
        };
        let value = communities.iter().map(large).collect();
        let list = BgpLargeCommunityList { value };
        let flags = optional_transitive(attributes, code::LARGE_COMMUNITIES);
        self.put(flags, code::LARGE_COMMUNITIES, room, &list)
    }
}

/// The flags of an attribute that other speakers may not know.
fn optional_transitive(attributes: &PathAttributes, code: u8) -> u8 {
    let is_partial = attributes.partial.contains(&code);
    OPTIONAL_TRANSITIVE | if is_partial { flag::PARTIAL } else { 0 }
}

/// AGGREGATOR with four-octet AS numbers, or with two octets and AS_TRANS if the number does not fit (RFC
/// 6793 §4.2.2). Not encoded by zettabgp: 0.6.0 writes none of it, but reports that it did.
fn octets(aggregator: &Aggregator, four_octet_as: bool) -> Vec<u8> {
    let asn = if four_octet_as {
        aggregator.asn.to_be_bytes().to_vec()
    } else {
        u16::try_from(aggregator.asn).unwrap_or(Asn::TRANS).to_be_bytes().to_vec()
    };
    [asn, aggregator.router.octets().to_vec()].concat()
}

/// Octets of an UPDATE without its variable parts: the header and two lengths.
const ENVELOPE_LENGTH_BYTES: usize = HEADER_LENGTH_BYTES + 4;
/// Octets of an attribute header with extended length.
const ATTRIBUTE_HEADER_LENGTH_BYTES: usize = 4;
/// Octets of an IPv4 host with a path identifier, in the body.
const IPV4_NLRI_LENGTH_BYTES_MAX: usize = nlri::PATH_ID_LENGTH_BYTES + 5;
/// Maximum number of octets that MP_REACH_NLRI adds for one prefix: headers, two IPv6 next hops, a /128 with
/// a path identifier.
const ONE_ROUTE_LENGTH_BYTES_MAX: usize =
    ATTRIBUTE_HEADER_LENGTH_BYTES + 3 + 33 + 1 + nlri::PATH_ID_LENGTH_BYTES + 17;

/// Routes that wait to be sent, in some order.
pub trait Unsent {
    /// The next one.
    fn next(&mut self) -> Option<Nlri>;
    /// The one that [`Unsent::next`] returned last is sent.
    fn pop(&mut self);
}

impl Unsent for BTreeSet<Nlri> {
    fn next(&mut self) -> Option<Nlri> {
        self.first().copied()
    }

    fn pop(&mut self) {
        self.pop_first();
    }
}

/// What the prefixes of most messages take.
const PREFIXES_LENGTH_BYTES: usize = 512;

/// Encodes and removes prefixes from `from` as long as they fit into `room` bytes.
fn take_prefixes(from: &mut impl Unsent, path_ids: bool, room: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PREFIXES_LENGTH_BYTES);
    while let Some(nlri) = from.next() {
        if bytes.len().saturating_add(nlri::encoded_length(nlri, path_ids)) > room {
            break;
        }
        nlri::encode(nlri, path_ids, &mut bytes);
        from.pop();
    }
    bytes
}

/// Appends one UPDATE that announces as many of `prefixes` (all of `family`) as fit, with path identifiers if
/// `path_ids` is set. Removes them; at least one unless none waits.
pub fn announcement(
    family: AddressFamily,
    path_ids: bool,
    block: &AttributeBlock,
    prefixes: &mut impl Unsent,
    to: &mut BytesMut,
) {
    let fixed = ENVELOPE_LENGTH_BYTES.saturating_add(block.bytes.len());
    let room = usize::from(block.message_length_bytes_max).saturating_sub(fixed);
    if is_plain(family, block.next_hop) {
        let prefixes = take_prefixes(prefixes, path_ids, room);
        return put_update(to, &[], &[&block.bytes], &prefixes);
    }
    let next_hop = next_hop_octets(block.next_hop);
    let mut reach = multiprotocol_header(family);
    reach.put_u8(u8::try_from(next_hop.len()).unwrap_or(0));
    reach.extend_from_slice(&next_hop);
    reach.put_u8(0); // reserved (RFC 4760 §3)
    let overhead = reach.len().saturating_add(ATTRIBUTE_HEADER_LENGTH_BYTES);
    let prefixes = take_prefixes(prefixes, path_ids, room.saturating_sub(overhead));
    reach.extend_from_slice(&prefixes);
    let header = extended_header(code::MP_REACH_NLRI, reach.len());
    // First, so that a receiver that stops parsing early still has the prefixes (RFC 7606 §5.1).
    put_update(to, &[], &[&header, &reach, &block.bytes], &[]);
}

/// Appends one UPDATE that withdraws as many of `prefixes` (all of `family`) as fit, with path identifiers if
/// `path_ids` is set. Removes them.
pub fn withdrawal(
    family: AddressFamily,
    path_ids: bool,
    prefixes: &mut impl Unsent,
    to: &mut BytesMut,
) {
    let room = MESSAGE_LENGTH_BYTES_MAX.saturating_sub(ENVELOPE_LENGTH_BYTES);
    if family == AddressFamily::Ipv4Unicast {
        let prefixes = take_prefixes(prefixes, path_ids, room);
        return put_update(to, &prefixes, &[], &[]);
    }
    let mut unreach = multiprotocol_header(family);
    let overhead = unreach.len().saturating_add(ATTRIBUTE_HEADER_LENGTH_BYTES);
    let prefixes = take_prefixes(prefixes, path_ids, room.saturating_sub(overhead));
    unreach.extend_from_slice(&prefixes);
    let header = extended_header(code::MP_UNREACH_NLRI, unreach.len());
    put_update(to, &[], &[&header, &unreach], &[]);
}

/// Appends the End-of-RIB marker of `family` (RFC 4724 §2).
pub fn end_of_rib(family: AddressFamily, to: &mut BytesMut) {
    withdrawal(family, false, &mut BTreeSet::new(), to);
}

/// A next hop, as NEXT_HOP and MP_REACH_NLRI hold it (RFC 4271 §5.1.3, RFC 2545 §3).
pub fn next_hop_octets(next_hop: NextHop) -> Vec<u8> {
    match next_hop {
        NextHop::Ipv4(address) => address.octets().to_vec(),
        NextHop::Ipv6 { global, link_local: None } if global.is_unicast_link_local() => {
            // `Ours:` RFC 2545 §3 requires a global address first, but there is none. FRR sends this form,
            // and BIRD accepts it.
            global.octets().repeat(2)
        }
        NextHop::Ipv6 { global, link_local: None } => global.octets().to_vec(),
        NextHop::Ipv6 { global, link_local: Some(link_local) } => {
            [global.octets(), link_local.octets()].concat()
        }
    }
}

/// Whether routes are announced in the NLRI of an UPDATE, with NEXT_HOP; others are in MP_REACH_NLRI.
fn is_plain(family: AddressFamily, next_hop: NextHop) -> bool {
    matches!((family, next_hop), (AddressFamily::Ipv4Unicast, NextHop::Ipv4(_)))
}

fn multiprotocol_header(family: AddressFamily) -> Vec<u8> {
    let [high, low] = family.afi().to_be_bytes();
    vec![high, low, family.safi()]
}

fn extended_header(code: u8, length: usize) -> [u8; ATTRIBUTE_HEADER_LENGTH_BYTES] {
    let [high, low] = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    [flag::OPTIONAL | flag::EXTENDED_LENGTH, code, high, low]
}

/// Assembles an UPDATE. Callers ensure that it fits into a message.
fn put_update(to: &mut BytesMut, withdrawn: &[u8], attributes: &[&[u8]], nlri: &[u8]) {
    let length16 = |length: usize| u16::try_from(length).unwrap_or(u16::MAX);
    let attributes_length = attributes.iter().map(|part| part.len()).fold(0, usize::saturating_add);
    let whole = [withdrawn.len(), attributes_length, nlri.len()]
        .into_iter()
        .fold(ENVELOPE_LENGTH_BYTES, usize::saturating_add);
    to.reserve(whole);
    to.put_slice(&[0xFF; 16]);
    to.put_u16(length16(whole));
    to.put_u8(MessageType::Update.code());
    to.put_u16(length16(withdrawn.len()));
    to.put_slice(withdrawn);
    to.put_u16(length16(attributes_length));
    for part in attributes {
        to.put_slice(part);
    }
    to.put_slice(nlri);
}

#[cfg(test)]
mod tests;
