//! Path attributes: which exist, what makes one well-formed, and how RFC 7606 treats a malformed one.
//! Validates values before zettabgp decodes them.

use std::net::{IpAddr, Ipv4Addr};

use bytes::BufMut;
use zettabgp::message::attributes::BgpAttrItem;
use zettabgp::message::attributes::community::BgpLargeCommunity;
use zettabgp::message::attributes::origin::BgpAttrOrigin;
use zettabgp::{BgpSessionParams, BgpTransportMode};

use super::as_path;
use fairway_ground::{AsPath, Asn, Community, ExtendedCommunity, LargeCommunity, PeerKind};
use fairway_seam::{Aggregator, Origin, UnknownAttribute};
use thin_vec::ThinVec;

/// Flag bits (RFC 4271 §4.3).
pub mod flag {
    /// Optional: a speaker may not know it.
    pub const OPTIONAL: u8 = 0x80;
    /// Transitive: passed on by speakers that do not know it.
    pub const TRANSITIVE: u8 = 0x40;
    /// Partial: a speaker on the way did not know it.
    pub const PARTIAL: u8 = 0x20;
    /// The length has two octets.
    pub const EXTENDED_LENGTH: u8 = 0x10;
}

/// Type codes.
#[allow(missing_docs)]
pub mod code {
    pub const ORIGIN: u8 = 1;
    pub const AS_PATH: u8 = 2;
    pub const NEXT_HOP: u8 = 3;
    pub const MULTI_EXIT_DISC: u8 = 4;
    pub const LOCAL_PREF: u8 = 5;
    pub const ATOMIC_AGGREGATE: u8 = 6;
    pub const AGGREGATOR: u8 = 7;
    pub const COMMUNITIES: u8 = 8;
    pub const ORIGINATOR_ID: u8 = 9;
    pub const CLUSTER_LIST: u8 = 10;
    pub const MP_REACH_NLRI: u8 = 14;
    pub const MP_UNREACH_NLRI: u8 = 15;
    pub const EXTENDED_COMMUNITIES: u8 = 16;
    pub const AS4_PATH: u8 = 17;
    pub const AS4_AGGREGATOR: u8 = 18;
    pub const LARGE_COMMUNITIES: u8 = 32;
    pub const ONLY_TO_CUSTOMER: u8 = 35;
}

/// How an UPDATE with a malformed attribute is treated (RFC 7606 §2), mildest first. (A session reset is a
/// [`super::WireError`].)
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disposition {
    /// The attribute is discarded, the routes stay.
    Discard,
    /// The routes are treated as withdrawn.
    TreatAsWithdraw,
}

/// A malformed attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeFault {
    /// Its type code; 0 when the fault is in the list as a whole.
    pub code: u8,
    /// How the UPDATE is treated.
    pub disposition: Disposition,
    /// What is wrong.
    pub what: &'static str,
}

/// One attribute of the attribute list.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawAttribute<'a> {
    pub(super) flags: u8,
    pub(super) code: u8,
    pub(super) value: &'a [u8],
}

impl RawAttribute<'_> {
    /// The attribute as received, for a NOTIFICATION.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let length = u16::try_from(self.value.len()).unwrap_or(u16::MAX).to_be_bytes();
        let [_, low] = length;
        let extended = self.flags & flag::EXTENDED_LENGTH != 0;
        let length = if extended { &length[..] } else { &[low] };
        [&[self.flags, self.code], length, self.value].concat()
    }

    /// Whether the Optional and Transitive bits are those of `flags`. The other bits are ignored (RFC 7606 §3
    /// (c)).
    pub(super) fn has_flags(self, flags: u8) -> bool {
        self.flags & (flag::OPTIONAL | flag::TRANSITIVE) == flags
    }
}

impl From<RawAttribute<'_>> for UnknownAttribute {
    fn from(raw: RawAttribute<'_>) -> Self {
        // The size of the length field belongs to the message, not to the attribute.
        let flags = raw.flags & !flag::EXTENDED_LENGTH;
        Self { flags, code: raw.code, value: raw.value.to_vec() }
    }
}

/// The validation rule of an attribute.
struct Rule {
    /// The required Optional and Transitive bits.
    flags: u8,
    /// Whether its value is well-formed.
    well_formed: fn(&[u8], &Session) -> bool,
    /// How a malformed value is treated.
    disposition: Disposition,
    /// From external peers it is ignored (RFC 7606 §7.5, §7.9, §7.10).
    internal_only: bool,
}

/// The properties of the session that a value depends on.
pub(super) struct Session {
    pub(super) kind: PeerKind,
    pub(super) four_octet_as: bool,
}

impl Session {
    fn asn_octets(&self) -> usize {
        if self.four_octet_as { 4 } else { 2 }
    }
}

/// The table (RFC 7606 §7). Attributes that are not in it are kept as bytes.
fn rule(code: u8) -> Option<Rule> {
    use Disposition::{Discard, TreatAsWithdraw};
    const WELL_KNOWN: u8 = flag::TRANSITIVE;
    const OPTIONAL: u8 = flag::OPTIONAL;
    const OPTIONAL_TRANSITIVE: u8 = flag::OPTIONAL | flag::TRANSITIVE;
    let rule = |flags, disposition, well_formed| Rule {
        flags,
        well_formed,
        disposition,
        internal_only: false,
    };
    let internal = |flags, well_formed| Rule {
        flags,
        well_formed,
        disposition: TreatAsWithdraw,
        internal_only: true,
    };
    Some(match code {
        code::ORIGIN => rule(WELL_KNOWN, TreatAsWithdraw, |value, _| matches!(value, [0..=2])),
        code::AS_PATH => rule(WELL_KNOWN, TreatAsWithdraw, |value, session| {
            as_path::is_well_formed(value, session.asn_octets())
        }),
        code::NEXT_HOP => rule(WELL_KNOWN, TreatAsWithdraw, |value, _| value.len() == 4),
        code::MULTI_EXIT_DISC => rule(OPTIONAL, TreatAsWithdraw, |value, _| value.len() == 4),
        code::LOCAL_PREF => internal(WELL_KNOWN, |value, _| value.len() == 4),
        code::ATOMIC_AGGREGATE => rule(WELL_KNOWN, Discard, |value, _| value.is_empty()),
        code::AGGREGATOR => rule(OPTIONAL_TRANSITIVE, Discard, |value, session| {
            is_aggregator(value, session.asn_octets())
        }),
        code::COMMUNITIES => rule(OPTIONAL_TRANSITIVE, TreatAsWithdraw, whole_groups::<4>),
        code::ORIGINATOR_ID => internal(OPTIONAL, |value, _| value.len() == 4),
        code::CLUSTER_LIST => internal(OPTIONAL, whole_groups::<4>),
        code::EXTENDED_COMMUNITIES => rule(OPTIONAL_TRANSITIVE, TreatAsWithdraw, whole_groups::<8>),
        // RFC 6793 §6.
        code::AS4_PATH => rule(OPTIONAL_TRANSITIVE, Discard, |value, _| {
            !value.is_empty() && as_path::is_well_formed(value, 4)
        }),
        code::AS4_AGGREGATOR => {
            rule(OPTIONAL_TRANSITIVE, Discard, |value, _| is_aggregator(value, 4))
        }
        code::LARGE_COMMUNITIES => rule(OPTIONAL_TRANSITIVE, TreatAsWithdraw, whole_groups::<12>),
        // RFC 9234 §5.
        code::ONLY_TO_CUSTOMER => {
            rule(OPTIONAL_TRANSITIVE, TreatAsWithdraw, |value, _| value.len() == 4)
        }
        _ => return None,
    })
}

/// Whether the type code is known, interpreted or kept as bytes. This includes every well-known attribute.
pub(super) fn is_known(code: u8) -> bool {
    matches!(code, code::MP_REACH_NLRI | code::MP_UNREACH_NLRI) || rule(code).is_some()
}

/// Whether we interpret an attribute that other speakers may not know: its Partial bit must be kept.
fn keeps_mark(code: u8) -> bool {
    matches!(
        code,
        code::AGGREGATOR
            | code::COMMUNITIES
            | code::EXTENDED_COMMUNITIES
            | code::LARGE_COMMUNITIES
            | code::ONLY_TO_CUSTOMER
    )
}

/// A list of at least one value of `N` octets each.
fn whole_groups<const N: usize>(value: &[u8], _session: &Session) -> bool {
    !value.is_empty() && value.len().is_multiple_of(N)
}

/// An AS number other than 0 (RFC 7607 §2), and a router.
fn is_aggregator(value: &[u8], asn_octets: usize) -> bool {
    value
        .split_at_checked(asn_octets)
        .is_some_and(|(asn, router)| !as_path::is_as_zero(asn) && router.len() == 4)
}

/// The values decoded so far. The next hop of MP_REACH_NLRI is decoded with the UPDATE.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    pub(super) origin: Option<Origin>,
    pub(super) as_path: Option<AsPath>,
    pub(super) next_hop: Option<Ipv4Addr>,
    pub(super) med: Option<u32>,
    pub(super) local_pref: Option<u32>,
    pub(super) atomic_aggregate: bool,
    pub(super) aggregator: Option<Aggregator>,
    pub(super) as4_path: Option<AsPath>,
    pub(super) as4_aggregator: Option<Aggregator>,
    pub(super) communities: ThinVec<Community>,
    pub(super) extended_communities: ThinVec<ExtendedCommunity>,
    pub(super) large_communities: ThinVec<LargeCommunity>,
    pub(super) only_to_customer: Option<u32>,
    pub(super) unknown: ThinVec<UnknownAttribute>,
    /// Type codes of interpreted attributes with the Partial bit.
    pub(super) partial: ThinVec<u8>,
}

impl Values {
    /// Merges the attributes that an old speaker splits in two (RFC 6793 §4.2.3). Called when all are read,
    /// since their order is arbitrary.
    pub(super) fn merge_four_octet_as(&mut self) {
        let (as4_path, as4_aggregator) = (self.as4_path.take(), self.as4_aggregator.take());
        if let (Some(aggregator), Some(wide)) = (self.aggregator, as4_aggregator) {
            // An AGGREGATOR other than AS_TRANS was set by a speaker that does not support the AS4
            // attributes: both are older than the aggregate and do not apply to it.
            if aggregator.asn != u32::from(Asn::TRANS) {
                return;
            }
            self.aggregator = Some(wide);
        }
        if let Some(as4_path) = as4_path {
            self.as_path = self.as_path.take().map(|as_path| as_path::merge(as_path, as4_path));
        }
    }
}

/// Validates and decodes one attribute. Not called for MP_REACH_NLRI and MP_UNREACH_NLRI (14, 15).
pub(super) fn accept(
    raw: RawAttribute<'_>,
    session: &Session,
    values: &mut Values,
) -> Result<(), AttributeFault> {
    let fault = |disposition, what| AttributeFault { code: raw.code, disposition, what };
    let Some(rule) = rule(raw.code) else {
        // Attributes that we do not interpret.
        values.unknown.push(raw.into());
        return Ok(());
    };
    if matches!(raw.code, code::AS4_PATH | code::AS4_AGGREGATOR) && session.four_octet_as {
        // RFC 6793 §4.1: between speakers with four-octet AS numbers they are discarded.
        let what = "a speaker of four-octet AS numbers must not send it";
        return Err(fault(Disposition::Discard, what));
    }
    if rule.internal_only && session.kind == PeerKind::External {
        return Err(fault(Disposition::Discard, "it is not allowed from an external peer"));
    }
    if !raw.has_flags(rule.flags) {
        // RFC 7606 §3 (c), except that an attribute with the disposition discard is not treated more
        // severely.
        return Err(fault(rule.disposition, "its optional and transitive flags are wrong"));
    }
    let cleaned;
    let value = if raw.code == code::AS4_PATH {
        cleaned = as_path::without_confederation_sequences(raw.value);
        &cleaned
    } else {
        raw.value
    };
    let is_set = match raw.code {
        code::AS_PATH => as_path::has_set(value, session.asn_octets()),
        code::AS4_PATH => as_path::has_set(value, 4),
        _ => false,
    };
    if is_set {
        // RFC 9774 §3.
        return Err(fault(Disposition::TreatAsWithdraw, "it contains an AS_SET or AS_CONFED_SET"));
    }
    if !(rule.well_formed)(value, session) {
        return Err(fault(rule.disposition, "its value is malformed"));
    }
    if raw.flags & flag::PARTIAL != 0 && keeps_mark(raw.code) {
        values.partial.push(raw.code);
    }
    store(RawAttribute { value, ..raw }, session, values)
        .ok_or(fault(rule.disposition, "its value cannot be decoded"))
}

/// zettabgp's session parameters. Only the width of AS numbers affects the values decoded here; the rest
/// disables its heuristics.
pub(super) fn zettabgp_session(four_octet_as: bool) -> BgpSessionParams {
    let nowhere = Ipv4Addr::UNSPECIFIED;
    let mut session = BgpSessionParams::new(0, 0, BgpTransportMode::IPv4, nowhere, Vec::new());
    session.has_as32bit = four_octet_as;
    session.fuzzy_pathid = false;
    session
}

/// Decodes a value that was validated. `None` does not happen as long as the validation is correct; if it
/// does, it is a fault like any other.
fn store(raw: RawAttribute<'_>, session: &Session, values: &mut Values) -> Option<()> {
    // The attributes for two-octet speakers always have four-octet numbers (RFC 6793 §3).
    let is_wide = matches!(raw.code, code::AS4_PATH | code::AS4_AGGREGATOR);
    let zettabgp_session = zettabgp_session(session.four_octet_as || is_wide);
    match raw.code {
        code::AS_PATH => {
            values.as_path = Some(as_path::decode(&zettabgp_session, raw.value)?);
            return Some(());
        }
        code::AS4_PATH => {
            values.as4_path = Some(as_path::decode(&zettabgp_session, raw.value)?);
            return Some(());
        }
        code::AS4_AGGREGATOR => {
            let (asn, router) = raw.value.split_first_chunk::<4>()?;
            let router = <[u8; 4]>::try_from(router).ok()?.into();
            values.as4_aggregator = Some(Aggregator { asn: u32::from_be_bytes(*asn), router });
            return Some(());
        }
        code::EXTENDED_COMMUNITIES => {
            let (communities, _) = raw.value.as_chunks::<8>();
            values.extended_communities =
                communities.iter().copied().map(ExtendedCommunity).collect();
            // Order and duplicates have no meaning: they are a set (RFC 4360 §2).
            values.extended_communities.sort_unstable();
            values.extended_communities.dedup();
            return Some(());
        }
        code::ONLY_TO_CUSTOMER => {
            values.only_to_customer = Some(u32::from_be_bytes(raw.value.try_into().ok()?));
            return Some(());
        }
        _ => {}
    }
    let length = raw.value.len();
    let item =
        BgpAttrItem::decode_from(&zettabgp_session, raw.code, raw.flags, length, raw.value).ok()?;
    match item {
        BgpAttrItem::Origin(origin) => {
            values.origin = Some(match origin.value {
                BgpAttrOrigin::Igp => Origin::Igp,
                BgpAttrOrigin::Egp => Origin::Egp,
                BgpAttrOrigin::Incomplete => Origin::Incomplete,
            });
        }
        BgpAttrItem::NextHop(next_hop) => match next_hop.value {
            IpAddr::V4(address) => values.next_hop = Some(address),
            IpAddr::V6(_) => return None,
        },
        BgpAttrItem::MED(med) => values.med = Some(med.value),
        BgpAttrItem::LocalPref(local_pref) => values.local_pref = Some(local_pref.value),
        BgpAttrItem::AtomicAggregate(_) => values.atomic_aggregate = true,
        BgpAttrItem::AggregatorAS(aggregator) => {
            values.aggregator = Some(Aggregator { asn: aggregator.asn, router: aggregator.addr });
        }
        BgpAttrItem::CommunityList(list) => {
            values.communities = list.value.iter().map(|it| Community(it.value)).collect();
        }
        BgpAttrItem::LargeCommunityList(list) => {
            let large = |it: &BgpLargeCommunity| LargeCommunity {
                global: it.ga,
                local1: it.ldp1,
                local2: it.ldp2,
            };
            values.large_communities = list.value.iter().map(large).collect();
        }
        // Validated only; their values are not needed without route reflection or filtering.
        _ => values.unknown.push(raw.into()),
    }
    Some(())
}

/// Puts flags, type code and length.
pub(super) fn put_header(to: &mut Vec<u8>, flags: u8, code: u8, length: usize) {
    match u8::try_from(length) {
        Ok(length) => to.extend_from_slice(&[flags & !flag::EXTENDED_LENGTH, code, length]),
        Err(_) => {
            let length = u16::try_from(length).unwrap_or(u16::MAX);
            to.extend_from_slice(&[flags | flag::EXTENDED_LENGTH, code]);
            to.put_u16(length);
        }
    }
}
