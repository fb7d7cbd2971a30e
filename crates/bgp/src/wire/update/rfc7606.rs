//! Malformed and unusual UPDATEs, one per row: the source, the message, and the expected outcome from an
//! external and from an internal neighbour.
//!
//! A source is an RFC with its section, a CVE, or an incident. `Ours:` marks a choice that the text leaves
//! open. Every row runs on a session with four-octet AS numbers; rows of [`old_speakers`] run on one with two
//! octets instead, and rows without AS numbers on both.

use super::*;
use crate::wire::announce::AttributeBlock;
use crate::wire::header::{MessageType, framed};
use Outcome::{Accept, Discard, Reset, Withdraw};
use fairway_ground::PeerKind;

/// The outcome of an UPDATE.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// Everything is accepted as is.
    Accept,
    /// Attributes with these type codes are discarded, the routes stay.
    Discard(&'static [u8]),
    /// Treat-as-withdraw: the announced prefixes are treated as withdrawn.
    Withdraw,
    /// NOTIFICATION 3 with this subcode; its data is the last attribute with this type code as received, or
    /// empty.
    Reset(u8, Option<u8>),
}

struct Row {
    name: &'static str,
    source: &'static str,
    message: Message,
    external: Outcome,
    internal: Outcome,
}

/// A row with the same outcome from both kinds of neighbour.
fn row(name: &'static str, source: &'static str, message: Message, outcome: Outcome) -> Row {
    Row { name, source, message, external: outcome.clone(), internal: outcome }
}

/// A row with different outcomes: external, then internal.
fn rows(
    name: &'static str,
    source: &'static str,
    message: Message,
    external: Outcome,
    internal: Outcome,
) -> Row {
    Row { name, source, message, external, internal }
}

// --- Building an UPDATE --------------------------------------------------------------------------

/// Announced in the body, by default.
const V4: &str = "10.1.1.0/24";
/// Announced in MP_REACH_NLRI, by default.
const V6: &str = "2001:db8:1::/48";
/// Withdrawn in the body.
const GONE4: &str = "192.0.2.0/24";
/// Withdrawn in MP_UNREACH_NLRI.
const GONE6: &str = "2001:db8:2::/48";

const V4_BYTES: &[u8] = &[24, 10, 1, 1];
const V6_BYTES: &[u8] = &[48, 0x20, 0x01, 0x0D, 0xB8, 0, 1];
const GONE4_BYTES: &[u8] = &[24, 192, 0, 2];
const GONE6_BYTES: &[u8] = &[48, 0x20, 0x01, 0x0D, 0xB8, 0, 2];

/// Flags of well-known, optional and optional transitive attributes, and the other two bits.
const WK: u8 = 0x40;
const O: u8 = 0x80;
const OT: u8 = 0xC0;
const PARTIAL: u8 = 0x20;
const EXTENDED: u8 = 0x10;

const PATH: &[u8] = &[WK, 2, 6, 2, 1, 0, 0, 0xFD, 0xE9];
const OLD_PATH: &[u8] = &[WK, 2, 4, 2, 1, 0xFD, 0xE9];

const GLOBAL: [u8; 16] = [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const LINK_LOCAL: [u8; 16] = [0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// An attribute with a correct header.
fn attr(flags: u8, code: u8, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap().to_be_bytes();
    let length = if flags & EXTENDED != 0 { &length[..] } else { &length[1..] };
    assert!(flags & EXTENDED != 0 || value.len() < 256, "code {code} needs the extended length");
    [&[flags, code], length, value].concat()
}

fn ipv6(first: u16, last: u16) -> [u8; 16] {
    std::net::Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, last).octets()
}

/// One AS_PATH segment of four-octet numbers.
fn segment(kind: u8, asns: &[u32]) -> Vec<u8> {
    let mut bytes = vec![kind, u8::try_from(asns.len()).unwrap()];
    bytes.extend(asns.iter().flat_map(|asn| asn.to_be_bytes()));
    bytes
}

/// An AS_PATH of `segments`.
fn path(segments: &[&[u8]]) -> Vec<u8> {
    attr(WK | EXTENDED, 2, &segments.concat())
}

/// An AS_PATH of `hops` in sequences of 255.
fn long_path(hops: u32) -> Vec<u8> {
    let asns: Vec<_> = (1..=hops).collect();
    let segments: Vec<_> = asns.chunks(255).map(|part| segment(2, part)).collect();
    attr(WK | EXTENDED, 2, &segments.concat())
}

/// The value of MP_REACH_NLRI, with a reserved octet of 0.
fn reach(afi: u16, safi: u8, next_hop: &[u8], nlri: &[u8]) -> Vec<u8> {
    let length = u8::try_from(next_hop.len()).unwrap();
    [&afi.to_be_bytes(), &[safi, length][..], next_hop, &[0], nlri].concat()
}

/// MP_REACH_NLRI of IPv6 unicast.
fn reach6(next_hop: &[u8], nlri: &[u8]) -> Vec<u8> {
    attr(O, 14, &reach(2, 1, next_hop, nlri))
}

/// MP_REACH_NLRI of IPv4 unicast.
fn reach4(next_hop: &[u8], nlri: &[u8]) -> Vec<u8> {
    attr(O, 14, &reach(1, 1, next_hop, nlri))
}

/// MP_UNREACH_NLRI.
fn unreach(afi: u16, safi: u8, nlri: &[u8]) -> Vec<u8> {
    attr(O, 15, &[&afi.to_be_bytes(), &[safi][..], nlri].concat())
}

/// An UPDATE, and the prefixes in it that can be read.
#[derive(Debug, Clone, Default)]
struct Message {
    withdrawn: Vec<u8>,
    attributes: Vec<Vec<u8>>,
    nlri: Vec<u8>,
    announces: Vec<&'static str>,
    withdraws: Vec<&'static str>,
    /// Added to the two correct lengths.
    lies: (i32, i32),
}

/// An UPDATE with only these attributes.
fn only(attributes: &[&[u8]]) -> Message {
    let attributes = attributes.iter().map(|attribute| attribute.to_vec()).collect();
    Message { attributes, ..Message::default() }
}

/// A valid UPDATE of one IPv4 prefix.
fn v4() -> Message {
    only(&[&[WK, 1, 1, 0], PATH, &[WK, 3, 4, 192, 0, 2, 1]]).nlri(V4_BYTES, &[V4])
}

/// A valid UPDATE of one IPv6 prefix.
fn v6() -> Message {
    only(&[&reach6(&GLOBAL, V6_BYTES), &[WK, 1, 1, 0], PATH]).announcing(&[V6])
}

/// A valid UPDATE of one prefix of each family.
fn both() -> Message {
    v4().first(reach6(&GLOBAL, V6_BYTES)).announcing(&[V4, V6])
}

impl Message {
    fn with(mut self, attribute: impl Into<Vec<u8>>) -> Self {
        self.attributes.push(attribute.into());
        self
    }

    fn first(mut self, attribute: impl Into<Vec<u8>>) -> Self {
        self.attributes.insert(0, attribute.into());
        self
    }

    /// Replaces the attribute with the type code of `attribute`.
    fn swap(mut self, attribute: impl Into<Vec<u8>>) -> Self {
        let attribute = attribute.into();
        let place = self.attributes.iter().position(|it| it[1] == attribute[1]).unwrap();
        self.attributes[place] = attribute;
        self
    }

    fn without(mut self, code: u8) -> Self {
        self.attributes.retain(|it| it[1] != code);
        self
    }

    fn reversed(mut self) -> Self {
        self.attributes.reverse();
        self
    }

    fn nlri(mut self, bytes: &[u8], announces: &[&'static str]) -> Self {
        self.nlri = bytes.to_vec();
        self.announcing(announces)
    }

    fn withdrawn(mut self, bytes: &[u8], withdraws: &[&'static str]) -> Self {
        self.withdrawn = bytes.to_vec();
        self.withdrawing(withdraws)
    }

    /// Also withdraws a prefix in the body.
    fn gone(self) -> Self {
        self.withdrawn(GONE4_BYTES, &[GONE4])
    }

    fn announcing(mut self, prefixes: &[&'static str]) -> Self {
        self.announces = prefixes.to_vec();
        self
    }

    fn withdrawing(mut self, prefixes: &[&'static str]) -> Self {
        self.withdraws = prefixes.to_vec();
        self
    }

    fn lies(mut self, withdrawn: i32, attributes: i32) -> Self {
        self.lies = (withdrawn, attributes);
        self
    }

    /// The same for a session with two-octet AS numbers; `None` if it would differ.
    fn on_an_old_session(&self) -> Option<Self> {
        let of_one_width = |it: &Vec<u8>| it == PATH || !matches!(it.get(1), Some(2 | 7 | 17 | 18));
        let message = self.clone();
        let shortens = self.attributes.iter().any(|it| it == PATH);
        let lies = self.lies != (0, 0) && shortens;
        (!lies && self.attributes.iter().all(of_one_width)).then(|| message.swap_all_paths())
    }

    fn swap_all_paths(mut self) -> Self {
        for attribute in self.attributes.iter_mut().filter(|it| *it == PATH) {
            *attribute = OLD_PATH.to_vec();
        }
        self
    }

    fn body(&self) -> Vec<u8> {
        let attributes = self.attributes.concat();
        let length = |bytes: &[u8], lie: i32| {
            let length = i32::try_from(bytes.len()).unwrap() + lie;
            u16::try_from(length).unwrap().to_be_bytes()
        };
        let withdrawn_length = length(&self.withdrawn, self.lies.0);
        let attributes_length = length(&attributes, self.lies.1);
        [&withdrawn_length[..], &self.withdrawn, &attributes_length, &attributes, &self.nlri]
            .concat()
    }
}

// --- Checking a row ------------------------------------------------------------------------------

fn sorted(prefixes: impl IntoIterator<Item = Nlri>) -> Vec<Nlri> {
    let mut prefixes: Vec<_> = prefixes.into_iter().collect();
    prefixes.sort_unstable();
    prefixes
}

fn parsed(prefixes: &[&str]) -> Vec<Nlri> {
    sorted(prefixes.iter().map(|it| it.parse().unwrap()))
}

/// Describes how the outcome for `message` differs from `expected`; `Ok` if it does not.
fn judge(message: &Message, expected: &Outcome, context: UpdateContext) -> Result<(), String> {
    let body = message.body();
    let whole = framed(MessageType::Update, &body).expect("a message that fits");
    let outcome = Update::parse(&whole[19..], context);
    for end in 0..body.len() {
        let _ = Update::parse(&body[..end], context);
    }
    let update = match (outcome, expected) {
        (Err(error), Reset(subcode, echoed)) => {
            let sent = message.attributes.iter().rev();
            let data = echoed.map(|code| sent.clone().find(|it| it[1] == code).unwrap().clone());
            let notification = error.notification();
            let expected = (3, *subcode, data.unwrap_or_default());
            let got = (notification.code, notification.subcode, notification.data);
            return if got == expected {
                Ok(())
            } else {
                Err(format!("sent {got:?} ({error}), expected {expected:?}"))
            };
        }
        (Err(error), expected) => return Err(format!("reset ({error}), expected {expected:?}")),
        (Ok(update), _) => update,
    };
    let discarded: Vec<_> = update.faults.iter().map(|fault| fault.code).collect();
    let right = match expected {
        Accept => update.faults.is_empty(),
        Discard(codes) => !withdraws(&update.faults) && discarded == *codes,
        Withdraw => withdraws(&update.faults),
        Reset(..) => false,
    };
    if !right {
        return Err(format!("{:?}, expected {expected:?}", update.faults));
    }
    let (mut announces, mut gone) = (message.announces.clone(), message.withdraws.clone());
    if *expected == Withdraw {
        gone.append(&mut announces);
    }
    for group in &update.announced {
        // Displaying an accepted route does not panic.
        let _ = format!("{:?} {}", group.attributes, group.attributes.as_path);
        let _ = AttributeBlock::encode(&group.attributes, true);
        let _ = AttributeBlock::encode(&group.attributes, false);
    }
    let announced = sorted(update.announced.into_iter().flat_map(|group| group.prefixes));
    let withdrawn = sorted(update.withdrawn);
    if announced != parsed(&announces) || withdrawn != parsed(&gone) {
        return Err(format!("announced {announced:?}, withdrawn {withdrawn:?}"));
    }
    Ok(())
}

fn check(rows: &[Row], four_octet_as: bool) {
    let mut wrong = Vec::new();
    for Row { name, source, message, external, internal } in rows {
        let mut expect = |message: &Message, four_octet_as| {
            for (kind, expected) in [(PeerKind::External, external), (PeerKind::Internal, internal)]
            {
                let context = UpdateContext { four_octet_as, ..UpdateContext::new(kind) };
                if let Err(what) = judge(message, expected, context) {
                    wrong.push(format!("{name} ({source}), {context:?}: {what}"));
                }
            }
        };
        expect(message, four_octet_as);
        if let Some(message) = message.on_an_old_session().filter(|_| four_octet_as) {
            expect(&message, false);
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

// --- The tables ----------------------------------------------------------------------------------

#[rustfmt::skip]
fn lengths() -> Vec<Row> {
    vec![
        //= RFC 7606 §3 (b) MUST: withdrawn routes that overrun the message are answered with 3/1.
        row("withdrawn length one past the message",        "7606 §3 (b)",  only(&[]).gone().lies(3, 0), Reset(1, None)),
        //= RFC 7606 §3 (a) MUST: a fault that ends the session is answered with an UPDATE Message Error.
        row("withdrawn length 65535",                       "7606 §3 (b)",  only(&[]).lies(65535, 0), Reset(1, None)),
        row("withdrawn length that eats the next length",   "7606 §3 (b)",  only(&[]).gone().lies(1, 0), Reset(1, None)),
        row("withdrawn length one short",                   "7606 §5.3",    only(&[]).gone().lies(-1, 0), Reset(1, None)),
        //= RFC 7606 §3 (b) MUST: attributes that overrun the message are answered with 3/1.
        row("attribute length one past the message",        "7606 §3 (b)",  v4().lies(0, 5), Reset(1, None)),
        row("attribute length 65535",                       "7606 §3 (b)",  only(&[]).lies(0, 65535), Reset(1, None)),
        row("attribute length past it, with withdrawn",     "7606 §3 (b)",  only(&[]).gone().lies(0, 1), Reset(1, None)),
        //= RFC 4271 §6.3 MUST: lengths that together exceed the message are a Malformed Attribute List.
        row("both lengths past the message",                "CVE-2026-37462", only(&[]).lies(65535, 65535), Reset(1, None)),
        //= RFC 7606 §4 MUST: the total attribute length alone says where the prefixes begin.
        row("attribute length one short",                   "7606 §4",      v4().lies(0, -1).announcing(&["0.0.0.0/1", "1.0.0.0/10"]), Withdraw),
        row("attribute length one long",                    "7606 §4",      v4().lies(0, 1).announcing(&["1.0.0.0/10"]), Withdraw),
        row("attribute length that takes the prefix in",    "7606 §5.2",    v4().lies(0, 4), Reset(1, None)),
        row("attribute length 0 before attributes",         "7606 §5.3",    v4().lies(0, -20), Reset(10, None)),
        //= RFC 7606 §4 MUST: fewer octets than the header of an attribute needs withdraw the routes.
        row("one stray octet after the attributes",         "7606 §4",      v4().with([0x40]), Withdraw),
        row("two stray octets after the attributes",        "7606 §4",      v4().with([0x40, 99]), Withdraw),
        row("two stray zeros after the attributes",         "FRR corpus",   v4().with([0, 0]), Withdraw),
        row("three zeros after the attributes",             "4271 §6.3",    v4().with([0, 0, 0]), Reset(2, Some(0))),
        //= RFC 7606 §4 MUST: three octets where an extended length needs four withdraw the routes.
        row("three octets, extended length",                "7606 §4",      v4().with([O | EXTENDED, 4, 0]), Withdraw),
        row("only a stray octet, with a prefix",            "7606 §4",      only(&[&[0x40]]).nlri(V4_BYTES, &[V4]), Withdraw),
        //= RFC 7606 §4 MUST: an attribute that overruns the list withdraws the routes.
        row("last attribute overruns by one",               "7606 §4",      v4().with([O, 4, 5, 0, 0, 0, 1]), Withdraw),
        row("last attribute says 255 octets",               "7606 §4",      v4().with([OT, 8, 255, 1, 2, 3, 4]), Withdraw),
        row("last attribute says 65535 octets",             "7606 §4",      v4().with([OT | EXTENDED, 8, 255, 255, 1]), Withdraw),
        row("LOCAL_PREF overruns",                          "7606 §4",      v4().with([WK, 5, 200, 1]), Withdraw),
        row("unknown attribute overruns",                   "7606 §4",      v4().with([OT, 99, 200, 1]), Withdraw),
        row("first attribute overruns",                     "7606 §4",      v4().first([WK, 1, 200, 0]), Withdraw),
        row("AS_PATH overruns",                             "7606 §4",      v4().swap([WK, 2, 255, 2, 1]), Withdraw),
        row("overrun that hides an unknown well-known",     "7606 §4",      v4().with([OT, 8, 200]).with([WK, 99, 0]), Withdraw),
        row("overrun behind MP_REACH",                      "7606 §4",      v6().with([O, 4, 9, 0]), Withdraw),
        row("overrun behind MP_REACH, both families",       "7606 §4",      both().with([O, 4, 9, 0]), Withdraw),
        row("overrun that hides MP_REACH",                  "7606 §5.2",    v6().first([O, 4, 255, 0]), Reset(1, None)),
        row("overrun that hides MP_REACH, prefix in body",  "7606 §4. Ours: the prefix in sight goes", both().first([O, 4, 255, 0]).announcing(&[V4]), Withdraw),
        //= RFC 7606 §5.2 MUST: an overrun in an UPDATE that announces nothing ends the session.
        row("overrun, nothing announced",                   "7606 §5.2",    only(&[&[O, 4, 9, 0]]), Reset(1, None)),
        row("overrun, only withdrawn",                      "7606 §5.2",    only(&[&[O, 4, 9, 0]]).gone(), Reset(1, None)),
        row("stray octet behind MP_UNREACH",                "7606 §5.2",    only(&[&unreach(2, 1, GONE6_BYTES), &[0x40]]), Reset(1, None)),
    ]
}

#[rustfmt::skip]
fn prefixes() -> Vec<Row> {
    let bad_origin = || v4().swap([WK, 1, 1, 9]);
    vec![
        row("a good one of IPv4",                       "4271 §4.3",    v4(), Accept),
        row("a good one of IPv6",                       "4760 §3",      v6(), Accept),
        row("a good one of both",                       "7606 §5.1",    both(), Accept),
        row("End-of-RIB of IPv4",                       "4724 §2",      only(&[]), Accept),
        //= RFC 4271 §4.3 MUST: an UPDATE that only withdraws needs no attributes.
        row("only withdrawn",                           "CVE-2026-42285", only(&[]).gone(), Accept),
        //= RFC 4271 §4.3 MAY: an UPDATE withdraws and announces at once.
        row("withdrawn and announced",                  "7606 §5.1",    v4().gone(), Accept),
        //= RFC 7606 §2 MUST: treat-as-withdraw counts all that is announced as withdrawn.
        row("withdrawn and announced, one malformed",   "7606 §2",      v4().gone().swap([WK, 1, 0]), Withdraw),
        //= RFC 4271 §4.3 MUST: an UPDATE that withdraws and announces the same prefix is processed.
        row("the same prefix withdrawn and announced",  "4271 §4.3",    v4().withdrawn(V4_BYTES, &[V4]), Accept),
        row("the same prefix twice",                    "4271 §4.3",    v4().nlri(&[V4_BYTES, V4_BYTES].concat(), &[V4, V4]), Accept),
        //= RFC 4271 §4.3 MUST: a prefix of length zero matches all addresses.
        row("the default route",                        "4271 §4.3",    v4().nlri(&[0], &["0.0.0.0/0"]), Accept),
        row("a host",                                   "4271 §4.3",    v4().nlri(&[32, 10, 1, 1, 1], &["10.1.1.1/32"]), Accept),
        //= RFC 4271 §4.3 MUST: the bits behind the length of a prefix mean nothing.
        row("bits beyond the length",                   "4271 §4.3",    v4().nlri(&[20, 10, 1, 255], &["10.1.240.0/20"]), Accept),
        //= RFC 4271 §6.3 SHOULD: a prefix that makes no sense, as a multicast one, is ignored.
        row("a multicast prefix",                       "4271 §6.3",    v4().nlri(&[4, 224], &[]), Discard(&[0])),
        row("a multicast prefix and a good one",        "4271 §6.3",    v4().nlri(&[8, 239, 24, 10, 1, 1], &[V4]), Discard(&[0])),
        row("a prefix around all multicast groups",     "4271 §6.3",    v4().nlri(&[3, 224], &["224.0.0.0/3"]), Accept),
        //= RFC 7606 §5.3 MUST: an IPv4 prefix longer than 32 bits is incorrect.
        //= RFC 4271 §6.3 MUST: prefixes that cannot be read are answered with Invalid Network Field, 3/10.
        row("/33",                                      "7606 §5.3",    v4().nlri(&[33, 10, 1, 1, 1, 0], &[]), Reset(10, None)),
        row("/255",                                     "7606 §5.3",    v4().nlri(&[255; 33], &[]), Reset(10, None)),
        row("a length octet and nothing",               "7606 §5.3",    v4().nlri(&[8], &[]), Reset(10, None)),
        //= RFC 7606 §5.3 MUST: a prefix that needs more octets than are left is incorrect.
        row("/24 of two octets",                        "7606 §5.3",    v4().nlri(&[24, 10, 1], &[]), Reset(10, None)),
        row("/32 of three octets",                      "7606 §5.3",    v4().nlri(&[32, 10, 1, 1], &[]), Reset(10, None)),
        row("a good prefix, then /33",                  "7606 §5.3",    v4().nlri(&[24, 10, 1, 1, 33, 10, 1, 1, 1, 0], &[]), Reset(10, None)),
        row("a good prefix, then half of one",          "7606 §5.3",    v4().nlri(&[24, 10, 1, 1, 24, 10], &[]), Reset(10, None)),
        //= RFC 7606 §3 (i) MUST: withdrawn prefixes are checked like announced ones.
        row("withdrawn /33",                            "7606 §3 (i)",  only(&[]).withdrawn(&[33, 10, 1, 1, 1, 0], &[]), Reset(10, None)),
        row("withdrawn /24 of two octets",              "7606 §3 (i)",  only(&[]).withdrawn(&[24, 10, 1], &[]), Reset(10, None)),
        row("withdrawn /33 beside a good announcement", "7606 §3 (i)",  v4().withdrawn(&[33, 10, 1, 1, 1, 0], &[]), Reset(10, None)),
        row("/33 without attributes",                   "7606 §5.3",    only(&[]).nlri(&[33, 10, 1, 1, 1, 0], &[]), Reset(10, None)),
        row("/33 and a malformed ORIGIN",               "7606 §3 (h)",  bad_origin().nlri(&[33, 10, 1, 1, 1, 0], &[]), Reset(10, None)),
        //= RFC 7606 §3 (j) MUST: prefixes that cannot be read end the session, whatever else is wrong.
        row("half a prefix behind an overrun",          "7606 §3 (j)",  v4().with([O, 4, 9]).nlri(&[24, 10], &[]), Reset(10, None)),
    ]
}

#[rustfmt::skip]
fn origin_and_next_hop() -> Vec<Row> {
    let hop = |address: &[u8]| v4().swap(attr(WK, 3, address));
    vec![
        row("ORIGIN EGP",                       "4271 §5.1.1",  v4().swap([WK, 1, 1, 1]), Accept),
        row("ORIGIN incomplete",                "4271 §5.1.1",  v4().swap([WK, 1, 1, 2]), Accept),
        //= RFC 7606 §7.1 MUST: an ORIGIN with an undefined value withdraws the routes.
        row("ORIGIN 3",                         "7606 §7.1",    v4().swap([WK, 1, 1, 3]), Withdraw),
        row("ORIGIN 255",                       "7606 §7.1",    v4().swap([WK, 1, 1, 255]), Withdraw),
        row("ORIGIN of no octet",               "7606 §7.1",    v4().swap([WK, 1, 0]), Withdraw),
        //= RFC 7606 §7.1 MUST: an ORIGIN that is not one octet long withdraws the routes.
        row("ORIGIN of two octets",             "7606 §7.1",    v4().swap([WK, 1, 2, 0, 0]), Withdraw),
        row("ORIGIN of 3000 octets",            "7606 §7.1",    v4().swap(attr(WK | EXTENDED, 1, &[0; 3000])), Withdraw),
        //= RFC 7606 §3 (c) MUST: a well-known attribute that is not marked transitive withdraws the routes.
        row("ORIGIN with flags 0x00",           "7606 §3 (c)",  v4().swap([0, 1, 1, 0]), Withdraw),
        row("ORIGIN without transitive, 0x80",  "GoBGP 3392",   v4().swap([O, 1, 1, 0]), Withdraw),
        //= RFC 7606 §3 (c) MUST: a well-known attribute that is marked optional withdraws the routes.
        row("ORIGIN optional transitive",       "7606 §3 (c)",  v4().swap([OT, 1, 1, 0]), Withdraw),
        row("ORIGIN partial",                   "7606 §3 (c). Ours: not looked at", v4().swap([WK | PARTIAL, 1, 1, 0]), Accept),
        row("ORIGIN with a length of two octets", "4271 §4.3. Ours: read", v4().swap([WK | EXTENDED, 1, 0, 1, 0]), Accept),
        //= RFC 4271 §4.3 MUST: the four low bits of the attribute flags are ignored.
        row("ORIGIN with the unused bits set",  "4271 §4.3",    v4().swap([WK | 0x0F, 1, 1, 0]), Accept),
        //= RFC 7606 §3 (d) MUST: routes without ORIGIN count as withdrawn.
        row("ORIGIN missing",                   "7606 §3 (d)",  v4().without(1), Withdraw),
        //= RFC 7606 §3 (d) MUST: routes of MP_REACH_NLRI without ORIGIN count as withdrawn.
        row("ORIGIN missing beside MP_REACH",   "7606 §3 (d)",  v6().without(1), Withdraw),
        //= RFC 7606 §3 (g) MUST: of an attribute that is repeated only the first counts.
        row("ORIGIN twice",                     "7606 §3 (g)",  v4().with([WK, 1, 1, 2]), Discard(&[1])),
        row("ORIGIN thrice",                    "7606 §3 (g)",  v4().with([WK, 1, 1, 2]).with([WK, 1, 1, 2]), Discard(&[1])),
        row("ORIGIN twice, the second malformed", "7606 §3 (g)", v4().with([OT, 1, 3, 9, 9, 9]), Discard(&[1])),
        row("ORIGIN twice, the first malformed", "7606 §3 (g)", v4().first([WK, 1, 1, 9]), Withdraw),
        row("NEXT_HOP of no octet",             "7606 §7.3",    hop(&[]), Withdraw),
        row("NEXT_HOP of three octets",         "7606 §7.3",    hop(&[192, 0, 2]), Withdraw),
        //= RFC 7606 §7.3 MUST: a NEXT_HOP that is not four octets long withdraws the routes.
        row("NEXT_HOP of five octets",          "7606 §7.3",    hop(&[192, 0, 2, 1, 0]), Withdraw),
        row("NEXT_HOP of an IPv6 address",      "CVE-2026-30405", hop(&GLOBAL), Withdraw),
        row("NEXT_HOP of 255 octets",           "7606 §7.3",    hop(&[1; 255]), Withdraw),
        row("NEXT_HOP 0.0.0.0",                 "4271 §6.3, 7606 §3 (e)", hop(&[0, 0, 0, 0]), Withdraw),
        row("NEXT_HOP 0.1.2.3",                 "4271 §6.3, 7606 §3 (e)", hop(&[0, 1, 2, 3]), Withdraw),
        row("NEXT_HOP 127.0.0.1",               "4271 §6.3. Ours: judged where it is used", hop(&[127, 0, 0, 1]), Accept),
        //= RFC 7606 §3 (e) MUST: a NEXT_HOP that is the address of no host withdraws the routes.
        row("NEXT_HOP 224.0.0.5",               "4271 §6.3, 7606 §3 (e)", hop(&[224, 0, 0, 5]), Withdraw),
        row("NEXT_HOP 239.255.255.255",         "4271 §6.3, 7606 §3 (e)", hop(&[239, 255, 255, 255]), Withdraw),
        row("NEXT_HOP 255.255.255.255",         "4271 §6.3, 7606 §3 (e)", hop(&[255, 255, 255, 255]), Withdraw),
        row("NEXT_HOP 240.0.0.1",               "4271 §6.3. Ours: some networks use it", hop(&[240, 0, 0, 1]), Accept),
        row("NEXT_HOP 169.254.0.1",             "4271 §6.3. Ours: a host on the link", hop(&[169, 254, 0, 1]), Accept),
        row("NEXT_HOP optional",                "7606 §3 (c)",  v4().swap([OT, 3, 4, 192, 0, 2, 1]), Withdraw),
        row("NEXT_HOP with flags 0x00",         "7606 §3 (c)",  v4().swap([0, 3, 4, 192, 0, 2, 1]), Withdraw),
        //= RFC 7606 §3 (d) MUST: routes of the body without NEXT_HOP count as withdrawn.
        row("NEXT_HOP missing",                 "7606 §3 (d)",  v4().without(3), Withdraw),
        row("NEXT_HOP missing, both families",  "7606 §3 (d)",  both().without(3), Withdraw),
        row("NEXT_HOP twice",                   "7606 §3 (g)",  v4().with([WK, 3, 4, 0, 0, 0, 0]), Discard(&[3])),
        row("NEXT_HOP beside MP_REACH alone",   "4760 §3",      v6().with([WK, 3, 4, 192, 0, 2, 1]), Accept),
        //= RFC 4760 §3 SHOULD: a NEXT_HOP beside the prefixes of MP_REACH_NLRI alone is ignored.
        row("NEXT_HOP 0.0.0.0 beside MP_REACH alone", "4760 §3", v6().with([WK, 3, 4, 0, 0, 0, 0]), Accept),
        row("NEXT_HOP of five octets beside MP_REACH", "7606 §7.3. Ours: 4760 §3 would ignore it", v6().with([WK, 3, 5, 192, 0, 2, 1, 0]), Withdraw),
        row("a martian NEXT_HOP, both families", "4271 §6.3. Ours: all of the UPDATE", both().swap([WK, 3, 4, 224, 0, 0, 1]), Withdraw),
    ]
}

#[rustfmt::skip]
fn as_paths() -> Vec<Row> {
    let with = |segments: &[&[u8]]| v4().swap(path(segments));
    let good = segment(2, &[65001]);
    vec![
        //= RFC 7606 §4 MAY: an AS_PATH has a length of zero.
        row("empty AS_PATH",                    "4271 §5.1.2, CVE-2026-49838. Ours: the first AS is judged where the route is used", with(&[]), Accept),
        row("AS_PATH of one octet",             "7606 §7.2",    with(&[&[2]]), Withdraw),
        row("AS_PATH of a header that says 1",  "7606 §7.2",    with(&[&[2, 1]]), Withdraw),
        row("AS_PATH of a header that says 255", "7606 §7.2",   with(&[&[2, 255]]), Withdraw),
        //= RFC 7606 §7.2 MUST: an AS_PATH segment without members withdraws the routes.
        row("AS_PATH segment of none",          "7606 §7.2",    with(&[&[2, 0]]), Withdraw),
        row("AS_PATH segment of none behind a good one", "7606 §7.2", with(&[&good, &[2, 0]]), Withdraw),
        row("AS_PATH segment of none before a good one", "7606 §7.2", with(&[&[1, 0], &good]), Withdraw),
        //= RFC 7606 §7.2 MUST: an AS_PATH segment that overruns the attribute withdraws the routes.
        row("AS_PATH overrun by one AS",        "7606 §7.2",    with(&[&[2, 2, 0, 0, 0xFD, 0xE9]]), Withdraw),
        row("AS_PATH overrun by one octet",     "7606 §7.2",    with(&[&[2, 1, 0, 0, 0xFD]]), Withdraw),
        row("AS_PATH overrun in the second segment", "7606 §7.2", with(&[&good, &[2, 3, 0, 0, 0, 1]]), Withdraw),
        //= RFC 7606 §7.2 MUST: a single octet behind the last AS_PATH segment withdraws the routes.
        row("AS_PATH underrun by one octet",    "7606 §7.2",    with(&[&good, &[2]]), Withdraw),
        row("AS_PATH segment type 0",           "7606 §7.2",    with(&[&segment(0, &[65001])]), Withdraw),
        //= RFC 9774 §3 MUST: an AS_SET in AS_PATH withdraws the routes.
        row("AS_SET",                           "9774 §3",      with(&[&segment(1, &[65001])]), Withdraw),
        row("AS_SET behind a sequence",         "9774 §3",      with(&[&good, &segment(1, &[1, 2])]), Withdraw),
        //= RFC 5065 §5 MUST: a confederation segment from outside one is a malformed AS_PATH.
        row("AS_CONFED_SEQUENCE",               "5065 §5",      with(&[&segment(3, &[65001])]), Withdraw),
        //= RFC 9774 §3 MUST: an AS_CONFED_SET in AS_PATH withdraws the routes.
        row("AS_CONFED_SET",                    "5065 §5",      with(&[&segment(4, &[65001])]), Withdraw),
        row("AS_CONFED_SEQUENCE before a sequence", "5065 §5", with(&[&segment(3, &[64512]), &good]), Withdraw),
        row("AS_CONFED_SEQUENCE behind a sequence", "2008-09 incident", with(&[&good, &segment(3, &[64512])]), Withdraw),
        //= RFC 7606 §7.2 MUST: an AS_PATH segment of an unknown type withdraws the routes.
        row("AS_PATH segment type 5",           "7606 §7.2",    with(&[&segment(5, &[65001])]), Withdraw),
        row("AS_PATH segment type 255",         "7606 §7.2",    with(&[&segment(255, &[65001])]), Withdraw),
        //= RFC 6793 §4.1 MUST: between speakers of four octets AS_PATH is read in four octets.
        row("AS_PATH of two-octet numbers",     "6793 §4.1",    v4().swap(OLD_PATH), Withdraw),
        row("AS 0 alone",                       "7607 §2",      with(&[&segment(2, &[0])]), Withdraw),
        //= RFC 7607 §2 MUST: AS 0 in AS_PATH withdraws the routes.
        row("AS 0 in the middle",               "7607 §2",      with(&[&segment(2, &[65001, 0, 65002])]), Withdraw),
        row("AS 0 in the second segment",       "7607 §2",      with(&[&good, &segment(2, &[65002, 0])]), Withdraw),
        row("AS 65536, whose low half is 0",    "7607 §2",      with(&[&segment(2, &[65001, 65536])]), Accept),
        row("AS_TRANS",                         "6793 §9. Ours: not looked at", with(&[&segment(2, &[23456])]), Accept),
        row("the last AS numbers",              "7300 §2. Ours: not looked at", with(&[&segment(2, &[65535, u32::MAX])]), Accept),
        row("an AS that is not the neighbor's", "7606 §7.2. Ours: the first AS is judged where the route is used", with(&[&segment(2, &[1])]), Accept),
        row("the same AS 200 times",            "4271 §9.1.2",  with(&[&segment(2, &[65001; 200])]), Accept),
        row("two sequences",                    "4271 §5.1.2",  with(&[&good, &segment(2, &[65002])]), Accept),
        row("255 hops",                         "2009-02 incident", v4().swap(long_path(255)), Accept),
        row("256 hops",                         "2009-02 incident", v4().swap(long_path(256)), Accept),
        row("765 hops",                         "2009-02 incident", v4().swap(long_path(765)), Accept),
        row("1000 hops",                        "CVE-2017-16227", v4().swap(long_path(1000)), Accept),
        row("AS_PATH with flags 0x00",          "7606 §3 (c)",  v4().swap([&[0], &PATH[1..]].concat()), Withdraw),
        row("AS_PATH optional",                 "7606 §3 (c)",  v4().swap([&[O], &PATH[1..]].concat()), Withdraw),
        row("AS_PATH optional transitive",      "7606 §3 (c)",  v4().swap([&[OT], &PATH[1..]].concat()), Withdraw),
        row("AS_PATH partial",                  "7606 §3 (c). Ours: not looked at", v4().swap([&[WK | PARTIAL], &PATH[1..]].concat()), Accept),
        //= RFC 7606 §3 (d) MUST: routes without AS_PATH count as withdrawn.
        row("AS_PATH missing",                  "7606 §3 (d)",  v4().without(2), Withdraw),
        row("AS_PATH missing beside MP_REACH",  "7606 §3 (d)",  v6().without(2), Withdraw),
        row("AS_PATH twice",                    "7606 §3 (g)",  v4().with(path(&[&[9, 9]])), Discard(&[2])),
        row("AS_PATH twice, the first malformed", "7606 §3 (g)", v4().first(path(&[&[9, 9]])), Withdraw),
        row("malformed AS_PATH, both families", "7606 §7.2",    both().swap(path(&[&[2, 9]])), Withdraw),
    ]
}

#[rustfmt::skip]
fn numbers_and_aggregates() -> Vec<Row> {
    let preference = |flags: u8, value: &[u8]| v4().with(attr(flags, 5, value));
    let aggregator = |flags: u8, value: &[u8]| v4().with(attr(flags, 7, value));
    vec![
        row("MED",                              "7606 §7.4",    v4().with([O, 4, 4, 0, 0, 0, 1]), Accept),
        row("MED of no octet",                  "7606 §7.4",    v4().with([O, 4, 0]), Withdraw),
        //= RFC 7606 §7.4 MUST: a MULTI_EXIT_DISC that is not four octets long withdraws the routes.
        row("MED of three octets",              "7606 §7.4",    v4().with([O, 4, 3, 0, 0, 1]), Withdraw),
        row("MED of five octets",               "7606 §7.4",    v4().with([O, 4, 5, 0, 0, 0, 0, 1]), Withdraw),
        row("MED well-known",                   "7606 §3 (c)",  v4().with([WK, 4, 4, 0, 0, 0, 1]), Withdraw),
        row("MED transitive",                   "7606 §3 (c)",  v4().with([OT, 4, 4, 0, 0, 0, 1]), Withdraw),
        row("MED with flags 0x00",              "7606 §3 (c)",  v4().with([0, 4, 4, 0, 0, 0, 1]), Withdraw),
        row("MED partial",                      "7606 §3 (c). Ours: not looked at", v4().with([O | PARTIAL, 4, 4, 0, 0, 0, 1]), Accept),
        row("MED twice",                        "7606 §3 (g)",  v4().with([O, 4, 4, 0, 0, 0, 1]).with([O, 4, 0]), Discard(&[4])),
        //= RFC 7606 §7.5 MUST: LOCAL_PREF from an external peer is dropped, and the routes stay.
        rows("LOCAL_PREF",                      "7606 §7.5",    preference(WK, &[0, 0, 0, 200]), Discard(&[5]), Accept),
        rows("LOCAL_PREF of no octet",          "7606 §7.5",    preference(WK, &[]), Discard(&[5]), Withdraw),
        //= RFC 7606 §7.5 MUST: LOCAL_PREF of a wrong length from an internal peer withdraws the routes.
        rows("LOCAL_PREF of three octets",      "7606 §7.5",    preference(WK, &[0, 0, 200]), Discard(&[5]), Withdraw),
        rows("LOCAL_PREF of five octets",       "7606 §7.5",    preference(WK, &[0, 0, 0, 0, 200]), Discard(&[5]), Withdraw),
        rows("LOCAL_PREF optional",             "7606 §7.5",    preference(O, &[0, 0, 0, 200]), Discard(&[5]), Withdraw),
        rows("LOCAL_PREF optional transitive",  "7606 §7.5",    preference(OT, &[0, 0, 0, 200]), Discard(&[5]), Withdraw),
        rows("LOCAL_PREF twice",                "7606 §3 (g)",  preference(WK, &[0, 0, 0, 200]).with([WK, 5, 0]), Discard(&[5, 5]), Discard(&[5])),
        row("LOCAL_PREF missing",               "4271 §5.1.5. Ours: the default counts", v4(), Accept),
        //= RFC 7606 §4 MAY: an ATOMIC_AGGREGATE has a length of zero.
        row("ATOMIC_AGGREGATE",                 "7606 §7.6",    v4().with([WK, 6, 0]), Accept),
        //= RFC 7606 §7.6 MUST: an ATOMIC_AGGREGATE that is not empty is dropped, and the routes stay.
        row("ATOMIC_AGGREGATE of one octet",    "7606 §7.6",    v4().with([WK, 6, 1, 0]), Discard(&[6])),
        row("ATOMIC_AGGREGATE of 255 octets",   "7606 §7.6",    v4().with(attr(WK, 6, &[7; 255])), Discard(&[6])),
        //= RFC 7606 §3 (f) MUST: no fault of ATOMIC_AGGREGATE costs the routes.
        row("ATOMIC_AGGREGATE optional",        "7606 §3 (f). Ours: no stronger for flags", v4().with([O, 6, 0]), Discard(&[6])),
        row("ATOMIC_AGGREGATE optional transitive", "7606 §3 (f). Ours: no stronger for flags", v4().with([OT, 6, 0]), Discard(&[6])),
        row("ATOMIC_AGGREGATE twice",           "7606 §3 (g)",  v4().with([WK, 6, 0]).with([WK, 6, 0]), Discard(&[6])),
        row("AGGREGATOR",                       "7606 §7.7",    aggregator(OT, &[0, 0, 0xFD, 0xE9, 1, 1, 1, 1]), Accept),
        row("AGGREGATOR of no octet",           "7606 §7.7",    aggregator(OT, &[]), Discard(&[7])),
        //= RFC 7606 §7.7 MUST: between speakers of four octets an AGGREGATOR that has not eight octets is dropped.
        row("AGGREGATOR of a two-octet AS",     "7606 §7.7",    aggregator(OT, &[0xFD, 0xE9, 1, 1, 1, 1]), Discard(&[7])),
        row("AGGREGATOR of seven octets",       "7606 §7.7",    aggregator(OT, &[0, 0xFD, 0xE9, 1, 1, 1, 1]), Discard(&[7])),
        row("AGGREGATOR of nine octets",        "7606 §7.7",    aggregator(OT, &[0, 0, 0xFD, 0xE9, 1, 1, 1, 1, 0]), Discard(&[7])),
        //= RFC 7607 §2 MUST: an AGGREGATOR with AS 0 is dropped.
        row("AGGREGATOR with AS 0",             "7607 §2",      aggregator(OT, &[0, 0, 0, 0, 1, 1, 1, 1]), Discard(&[7])),
        row("AGGREGATOR with router 0.0.0.0",   "4271 §5.1.7. Ours: not looked at", aggregator(OT, &[0, 0, 0xFD, 0xE9, 0, 0, 0, 0]), Accept),
        row("AGGREGATOR partial",               "4271 §4.3",    aggregator(OT | PARTIAL, &[0, 0, 0xFD, 0xE9, 1, 1, 1, 1]), Accept),
        row("AGGREGATOR well-known",            "7606 §3 (f). Ours: no stronger for flags", aggregator(WK, &[0, 0, 0xFD, 0xE9, 1, 1, 1, 1]), Discard(&[7])),
        //= RFC 7606 §3 (f) MUST: no fault of AGGREGATOR costs the routes.
        row("AGGREGATOR not transitive",        "7606 §3 (f). Ours: no stronger for flags", aggregator(O, &[0, 0, 0xFD, 0xE9, 1, 1, 1, 1]), Discard(&[7])),
        row("AGGREGATOR twice",                 "7606 §3 (g)",  aggregator(OT, &[0, 0, 0xFD, 0xE9, 1, 1, 1, 1]).with([OT, 7, 0]), Discard(&[7])),
        //= RFC 7606 §5.2 MUST: a fault that only drops its attribute ends no session, even when nothing is announced.
        row("malformed AGGREGATOR, nothing announced", "7606 §5.2", only(&[&unreach(2, 1, GONE6_BYTES), &[OT, 7, 0]]).withdrawing(&[GONE6]), Discard(&[7])),
    ]
}

#[rustfmt::skip]
fn communities_and_clusters() -> Vec<Row> {
    let list = |flags: u8, code: u8, value: &[u8]| v4().with(attr(flags, code, value));
    let long = |code: u8, length: usize| v4().with(attr(OT | EXTENDED, code, &vec![7; length]));
    vec![
        row("COMMUNITIES",                      "7606 §7.8",    list(OT, 8, &[0, 1, 0, 2]), Accept),
        row("COMMUNITIES of every well-known kind", "1997",     list(OT, 8, &[255, 255, 255, 1, 255, 255, 255, 4, 255, 255, 0, 0, 255, 255, 2, 154]), Accept),
        row("COMMUNITIES, 1000 of them",        "1997",         long(8, 4000), Accept),
        row("COMMUNITIES with the same twice",  "1997",         list(OT, 8, &[0, 1, 0, 2, 0, 1, 0, 2]), Accept),
        //= RFC 7606 §7.8 MUST: an empty COMMUNITIES withdraws the routes.
        row("COMMUNITIES of none",              "7606 §7.8",    list(OT, 8, &[]), Withdraw),
        row("COMMUNITIES of three octets",      "7606 §7.8",    list(OT, 8, &[0, 1, 0]), Withdraw),
        //= RFC 7606 §7.8 MUST: COMMUNITIES whose length is no multiple of four withdraw the routes.
        row("COMMUNITIES of five octets",       "7606 §7.8",    list(OT, 8, &[0, 1, 0, 2, 3]), Withdraw),
        row("COMMUNITIES of 3001 octets",       "7606 §7.8",    long(8, 3001), Withdraw),
        row("COMMUNITIES not transitive",       "7606 §3 (c)",  list(O, 8, &[0, 1, 0, 2]), Withdraw),
        row("COMMUNITIES well-known",           "7606 §3 (c)",  list(WK, 8, &[0, 1, 0, 2]), Withdraw),
        row("COMMUNITIES partial",              "4271 §4.3",    list(OT | PARTIAL, 8, &[0, 1, 0, 2]), Accept),
        row("COMMUNITIES twice",                "7606 §3 (g)",  list(OT, 8, &[0, 1, 0, 2]).with([OT, 8, 1, 0]), Discard(&[8])),
        row("EXTENDED_COMMUNITIES",             "7606 §7.14",   list(OT, 16, &[0, 2, 0, 1, 0, 0, 0, 1]), Accept),
        //= RFC 7606 §7.14 MUST NOT: an extended community of an unknown type is treated as an error.
        row("EXTENDED_COMMUNITIES of a type of none", "4360 §3", list(OT, 16, &[255; 16]), Accept),
        //= RFC 7606 §7.14 MUST: an empty EXTENDED_COMMUNITIES withdraws the routes.
        row("EXTENDED_COMMUNITIES of none",     "7606 §7.14",   list(OT, 16, &[]), Withdraw),
        //= RFC 7606 §7.14 MUST: EXTENDED_COMMUNITIES whose length is no multiple of eight withdraw the routes.
        row("EXTENDED_COMMUNITIES of seven octets", "7606 §7.14", list(OT, 16, &[7; 7]), Withdraw),
        row("EXTENDED_COMMUNITIES of twelve octets", "7606 §7.14", list(OT, 16, &[7; 12]), Withdraw),
        row("EXTENDED_COMMUNITIES not transitive", "7606 §3 (c)", list(O, 16, &[7; 8]), Withdraw),
        row("EXTENDED_COMMUNITIES twice",       "7606 §3 (g)",  list(OT, 16, &[7; 8]).with([OT, 16, 0]), Discard(&[16])),
        row("ONLY_TO_CUSTOMER",                 "9234 §5",      list(OT, 35, &[0, 0, 0xFD, 0xEA]), Accept),
        row("ONLY_TO_CUSTOMER of AS 0",         "9234 §5",      list(OT, 35, &[0; 4]), Accept),
        //= RFC 9234 §5 MUST: OTC of any length but four octets withdraws the routes.
        row("ONLY_TO_CUSTOMER of one octet",    "9234 §5",      list(OT, 35, &[1]), Withdraw),
        row("ONLY_TO_CUSTOMER of eight octets", "9234 §5",      list(OT, 35, &[0; 8]), Withdraw),
        row("ONLY_TO_CUSTOMER of no octet",     "9234 §5",      list(OT, 35, &[]), Withdraw),
        row("ONLY_TO_CUSTOMER of 1024 octets",  "2025-10-24 incident", long(35, 1024), Withdraw),
        row("ONLY_TO_CUSTOMER well-known",      "7606 §3 (c)",  list(WK, 35, &[0, 0, 0, 1]), Withdraw),
        row("ONLY_TO_CUSTOMER twice",           "7606 §3 (g)",  list(OT, 35, &[0, 0, 0, 1]).with([OT, 35, 1, 0]), Discard(&[35])),
        row("LARGE_COMMUNITIES",                "8092 §3",      list(OT, 32, &[7; 12]), Accept),
        //= RFC 8092 §6 MUST NOT: a reserved AS number as Global Administrator makes the attribute malformed.
        row("LARGE_COMMUNITIES of reserved numbers", "8092 §5", list(OT, 32, &[[0; 12], [255; 12]].concat()), Accept),
        //= RFC 8092 §6 MUST NOT: the same value twice makes the attribute malformed.
        row("LARGE_COMMUNITIES with the same twice", "8092 §3", list(OT, 32, &[7; 24]), Accept),
        row("LARGE_COMMUNITIES, 300 of them",   "8092 §3",      long(32, 3600), Accept),
        //= RFC 8092 §6 MUST: an empty LARGE_COMMUNITIES is malformed.
        row("LARGE_COMMUNITIES of none",        "8092 §6",      list(OT, 32, &[]), Withdraw),
        //= RFC 8092 §6 MUST: LARGE_COMMUNITIES whose length is no multiple of twelve are malformed.
        row("LARGE_COMMUNITIES of eleven octets", "8092 §6",    list(OT, 32, &[7; 11]), Withdraw),
        //= RFC 8092 §6 MUST: malformed LARGE_COMMUNITIES withdraw the routes.
        row("LARGE_COMMUNITIES of sixteen octets", "8092 §6",   list(OT, 32, &[7; 16]), Withdraw),
        row("LARGE_COMMUNITIES not transitive", "7606 §3 (c)",  list(O, 32, &[7; 12]), Withdraw),
        row("LARGE_COMMUNITIES well-known",     "7606 §3 (c)",  list(WK, 32, &[7; 12]), Withdraw),
        row("LARGE_COMMUNITIES partial",        "8092 §6",      list(OT | PARTIAL, 32, &[7; 12]), Accept),
        //= RFC 7606 §7.9 MUST: ORIGINATOR_ID from an external peer is dropped, and the routes stay.
        rows("ORIGINATOR_ID",                   "7606 §7.9",    list(O, 9, &[1, 1, 1, 1]), Discard(&[9]), Accept),
        rows("ORIGINATOR_ID of 0.0.0.0",        "4456 §8. Ours: not looked at", list(O, 9, &[0; 4]), Discard(&[9]), Accept),
        rows("ORIGINATOR_ID of no octet",       "7606 §7.9",    list(O, 9, &[]), Discard(&[9]), Withdraw),
        //= RFC 7606 §7.9 MUST: ORIGINATOR_ID of a wrong length from an internal peer withdraws the routes.
        rows("ORIGINATOR_ID of three octets",   "7606 §7.9",    list(O, 9, &[1; 3]), Discard(&[9]), Withdraw),
        rows("ORIGINATOR_ID of five octets",    "7606 §7.9",    list(O, 9, &[1; 5]), Discard(&[9]), Withdraw),
        rows("ORIGINATOR_ID transitive",        "7606 §3 (c)",  list(OT, 9, &[1; 4]), Discard(&[9]), Withdraw),
        rows("ORIGINATOR_ID twice",             "7606 §3 (g)",  list(O, 9, &[1; 4]).with([O, 9, 0]), Discard(&[9, 9]), Discard(&[9])),
        //= RFC 7606 §7.10 MUST: CLUSTER_LIST from an external peer is dropped, and the routes stay.
        rows("CLUSTER_LIST",                    "7606 §7.10",   list(O, 10, &[1; 8]), Discard(&[10]), Accept),
        rows("CLUSTER_LIST of 63",              "4456 §8",      list(O, 10, &[1; 252]), Discard(&[10]), Accept),
        //= RFC 7606 §7.10 MUST: an empty CLUSTER_LIST from an internal peer withdraws the routes.
        rows("CLUSTER_LIST of none",            "7606 §7.10",   list(O, 10, &[]), Discard(&[10]), Withdraw),
        //= RFC 7606 §7.10 MUST: CLUSTER_LIST of no multiple of four octets from an internal peer withdraws the routes.
        rows("CLUSTER_LIST of six octets",      "7606 §7.10",   list(O, 10, &[1; 6]), Discard(&[10]), Withdraw),
        rows("CLUSTER_LIST well-known",         "7606 §3 (c)",  list(WK, 10, &[1; 4]), Discard(&[10]), Withdraw),
    ]
}

#[rustfmt::skip]
fn reachable() -> Vec<Row> {
    let hop = |next_hop: &[u8]| v6().swap(reach6(next_hop, V6_BYTES));
    let value = reach(2, 1, &GLOBAL, V6_BYTES);
    let raw = |value: &[u8]| v6().swap(attr(O, 14, value));
    let flags = |flags: u8| v6().swap(attr(flags, 14, &value));
    let reserved = |octet: u8| raw(&[&[0, 2, 1, 16][..], &GLOBAL, &[octet], V6_BYTES].concat());
    let other = |afi, safi| v4().first(attr(O, 14, &reach(afi, safi, &GLOBAL, &[255, 1, 2, 3])));
    vec![
        row("a global and a link-local next hop",   "2545 §3",      hop(&[GLOBAL, LINK_LOCAL].concat()), Accept),
        row("two global next hops",                 "2545 §3. Ours: not looked at", hop(&[GLOBAL, GLOBAL].concat()), Accept),
        row("a next hop of no octet",               "7606 §7.11",   hop(&[]), Reset(9, Some(14))),
        row("an IPv4 next hop",                     "7606 §7.11",   hop(&[192, 0, 2, 1]), Reset(9, Some(14))),
        //= RFC 7606 §7.11 MUST: a next hop whose length does not fit its family ends the session.
        row("a next hop of 12 octets",              "7606 §7.11",   hop(&[1; 12]), Reset(9, Some(14))),
        row("a next hop of 15 octets",              "7606 §7.11",   hop(&GLOBAL[..15]), Reset(9, Some(14))),
        row("a next hop of 17 octets",              "7606 §7.11",   hop(&[1; 17]), Reset(9, Some(14))),
        row("a next hop of 24 octets",              "7606 §7.11",   hop(&[1; 24]), Reset(9, Some(14))),
        row("a next hop of 31 octets",              "7606 §7.11",   hop(&[1; 31]), Reset(9, Some(14))),
        row("a next hop of 33 octets",              "7606 §7.11",   hop(&[1; 33]), Reset(9, Some(14))),
        row("a next hop of 48 octets",              "7606 §7.11",   hop(&[1; 48]), Reset(9, Some(14))),
        row("a next hop that overruns MP_REACH",    "CVE-2023-46752", raw(&[0, 2, 1, 32, 1, 2, 3, 4, 5]), Reset(9, Some(14))),
        row("a next hop of 255 octets that overruns", "7606 §7.11", raw(&[0, 2, 1, 255, 1]), Reset(9, Some(14))),
        row("next hop ::",                          "4760 §3, 4271 §6.3", hop(&[0; 16]), Withdraw),
        row("next hop ::1",                         "4760 §3. Ours: judged where it is used", hop(&ipv6(0, 1)), Accept),
        row("next hop ff02::1",                     "4760 §3, 4271 §6.3", hop(&ipv6(0xFF02, 1)), Withdraw),
        row("a link-local next hop alone",          "2545 §2. Ours: routers send it", hop(&LINK_LOCAL), Accept),
        //= RFC 4760 §7 SHOULD: a session that a bad MP_REACH_NLRI ends is ended with Optional Attribute Error, 3/9.
        row("MP_REACH of no octet",                 "7606 §5.3",    raw(&[]), Reset(9, Some(14))),
        row("MP_REACH of three octets",             "7606 §5.3",    raw(&[0, 2, 1]), Reset(9, Some(14))),
        //= RFC 7606 §5.3 MUST: an MP_REACH_NLRI shorter than five octets is incorrect.
        row("MP_REACH of four octets",              "7606 §5.3",    raw(&[0, 2, 1, 0]), Reset(9, Some(14))),
        row("MP_REACH of five octets",              "7606 §7.11",   raw(&[0, 2, 1, 0, 0]), Reset(9, Some(14))),
        row("MP_REACH that ends behind the next hop", "7606 §5.3",  raw(&[&[0, 2, 1, 16][..], &GLOBAL].concat()), Reset(9, Some(14))),
        row("the reserved octet 1",                 "4760 §3",      reserved(1), Accept),
        //= RFC 4760 §3 SHOULD: the reserved octet of MP_REACH_NLRI is ignored when it is received.
        row("the reserved octet 255",               "4760 §3",      reserved(255), Accept),
        row("MP_REACH without prefixes",            "4760 §3. Ours: it announces nothing", v6().swap(reach6(&GLOBAL, &[])).announcing(&[]), Accept),
        row("MP_REACH without prefixes, bad ORIGIN", "7606 §5.2",   v6().swap(reach6(&GLOBAL, &[])).swap([WK, 1, 0]), Reset(1, None)),
        //= RFC 7606 §5.3 MUST: a prefix of MP_REACH_NLRI longer than its family allows is incorrect.
        row("an IPv6 /129",                         "7606 §5.3",    v6().swap(reach6(&GLOBAL, &[129; 18])), Reset(9, Some(14))),
        row("an IPv6 /255",                         "7606 §5.3",    v6().swap(reach6(&GLOBAL, &[255])), Reset(9, Some(14))),
        //= RFC 7606 §5.3 MUST: a prefix that needs more octets than MP_REACH_NLRI has left is incorrect.
        row("half an IPv6 prefix",                  "CVE-2023-38407", v6().swap(reach6(&GLOBAL, &V6_BYTES[..4])), Reset(9, Some(14))),
        row("a good IPv6 prefix and a length octet", "7606 §5.3",   v6().swap(reach6(&GLOBAL, &[V6_BYTES, &[64]].concat())), Reset(9, Some(14))),
        //= RFC 4760 §5 MUST: a prefix of length zero matches all addresses of its family.
        row("the IPv6 default route",               "4760 §5",      v6().swap(reach6(&GLOBAL, &[0])).announcing(&["::/0"]), Accept),
        //= RFC 4760 §5 MUST: the bits behind the length of a prefix mean nothing.
        row("IPv6 bits beyond the length",          "4760 §5",      v6().swap(reach6(&GLOBAL, &[20, 0x20, 0x01, 0xFF])).announcing(&["2001:f000::/20"]), Accept),
        row("IPv4 in MP_REACH",                     "4760 §3",      v6().swap(reach4(&[192, 0, 2, 1], V4_BYTES)).announcing(&[V4]), Accept),
        row("IPv4 in MP_REACH, next hop 0.0.0.0",   "4760 §3, 4271 §6.3", v6().swap(reach4(&[0; 4], V4_BYTES)).announcing(&[V4]), Withdraw),
        row("IPv4 in MP_REACH, IPv6 next hop",      "8950 §4: not offered", v6().swap(reach4(&GLOBAL, V4_BYTES)), Reset(9, Some(14))),
        row("IPv4 in MP_REACH, no next hop",        "7606 §7.11",   v6().swap(reach4(&[], V4_BYTES)), Reset(9, Some(14))),
        row("IPv4 in MP_REACH, /33",                "7606 §5.3",    v6().swap(reach4(&[192, 0, 2, 1], &[33; 6])), Reset(9, Some(14))),
        row("IPv4 in MP_REACH and in the body",     "7606 §5.1",    v4().first(reach4(&[192, 0, 2, 1], &[24, 10, 2, 2])).announcing(&[V4, "10.2.2.0/24"]), Accept),
        //= RFC 7606 §5.1 MUST: MP_REACH_NLRI is accepted in any place among the attributes.
        row("MP_REACH behind the others",           "7606 §5.1",    v6().reversed(), Accept),
        //= RFC 4271 §5 MUST: attributes are accepted in any order.
        row("every attribute in falling order",     "4271 §5",      both().reversed(), Accept),
        row("MP_REACH optional transitive",         "7606 §5.3",    flags(OT), Reset(9, Some(14))),
        //= RFC 7606 §5.3 MUST: an MP_REACH_NLRI with wrong flags is incorrect.
        row("MP_REACH well-known",                  "7606 §5.3",    flags(WK), Reset(9, Some(14))),
        row("MP_REACH with flags 0x00",             "7606 §5.3",    flags(0), Reset(9, Some(14))),
        row("MP_REACH partial",                     "7606 §3 (c). Ours: not looked at", flags(O | PARTIAL), Accept),
        //= RFC 4271 §4.3 MUST: the extended length bit says whether the length has one octet or two.
        row("MP_REACH with a length of two octets", "4271 §4.3",    flags(O | EXTENDED), Accept),
        row("bad MP_REACH with a length of two octets", "4760 §7",  v6().swap(attr(O | EXTENDED, 14, &[0, 2, 1])), Reset(9, Some(14))),
        //= RFC 7606 §3 (g) MUST: a second MP_REACH_NLRI is answered with 3/1.
        row("MP_REACH twice",                       "7606 §3 (g)",  v6().with(attr(O, 14, &value)), Reset(1, None)),
        row("MP_REACH twice, the second malformed", "7606 §3 (g)",  v6().with([O, 14, 0]), Reset(1, None)),
        row("MP_REACH twice, of two families",      "7606 §3 (g)",  v6().with(reach4(&[192, 0, 2, 1], V4_BYTES)), Reset(1, None)),
        row("MP_REACH of AFI 0",                    "4760 §7",      other(0, 1), Accept),
        row("MP_REACH of AFI 3",                    "4760 §7",      other(3, 1), Accept),
        row("MP_REACH of AFI 65535",                "4760 §7",      other(65535, 255), Accept),
        row("MP_REACH of SAFI 0",                   "4760 §7",      other(2, 0), Accept),
        row("MP_REACH of IPv6 multicast",           "4760 §7. Ours: read no further", other(2, 2), Accept),
        row("MP_REACH of labelled IPv6",            "CVE-2023-38407", other(2, 4), Accept),
        row("MP_REACH of VPNv4",                    "4760 §7. Ours: read no further", other(1, 128), Accept),
        row("MP_REACH of flowspec, length 0",       "CVE-2023-38406", v4().first(attr(O, 14, &reach(1, 133, &[], &[0]))), Accept),
        //= RFC 4760 §6 MAY: a family that is not supported is read no further.
        row("MP_REACH of EVPN",                     "4760 §7. Ours: read no further", other(25, 70), Accept),
        row("another family, its next hop overruns", "7606 §7.11. Ours: no milder than ours", v4().first(attr(O, 14, &[0, 25, 70, 9, 1])), Reset(9, Some(14))),
        row("another family and a bad ORIGIN",      "7606 §5.2",    v6().swap(attr(O, 14, &reach(25, 70, &[1; 4], &[1; 9]))).swap([WK, 1, 0]).announcing(&[]), Withdraw),
    ]
}

#[rustfmt::skip]
fn unreachable_prefixes() -> Vec<Row> {
    let gone6 = || only(&[&unreach(2, 1, GONE6_BYTES)]).withdrawing(&[GONE6]);
    let flags = |flags: u8| only(&[&attr(flags, 15, &[&[0, 2, 1], GONE6_BYTES].concat())]);
    vec![
        row("MP_UNREACH",                           "4760 §4",      gone6(), Accept),
        row("MP_UNREACH with good attributes",      "4760 §4",      gone6().with([WK, 1, 1, 0]).with(PATH), Accept),
        //= RFC 7606 §5.2 MUST: a bad attribute in an UPDATE that announces nothing ends the session.
        row("MP_UNREACH and a bad ORIGIN",          "7606 §5.2",    gone6().with([WK, 1, 1, 9]), Reset(1, None)),
        row("MP_UNREACH and a bad MED",             "7606 §5.2",    gone6().with([O, 4, 0]), Reset(1, None)),
        row("withdrawn in the body and a bad ORIGIN", "7606 §5.2",  only(&[&[WK, 1, 1, 9]]).gone(), Reset(1, None)),
        row("a bad ORIGIN and no prefix",           "7606 §5.2",    only(&[&[WK, 1, 1, 9]]), Reset(1, None)),
        //= RFC 4271 §6.3 MUST: an UPDATE with good attributes and no prefix is valid.
        row("good attributes and no prefix",        "7606 §5.2",    v4().nlri(&[], &[]), Accept),
        rows("LOCAL_PREF and no prefix",            "7606 §5.2",    only(&[&[WK, 5, 4, 0, 0, 0, 1]]), Discard(&[5]), Accept),
        row("End-of-RIB of IPv6",                   "4724 §2",      only(&[&unreach(2, 1, &[])]), Accept),
        row("End-of-RIB of IPv4 in MP_UNREACH",     "4724 §2",      only(&[&unreach(1, 1, &[])]), Accept),
        row("End-of-RIB of another family",         "4724 §2",      only(&[&unreach(25, 70, &[])]), Accept),
        row("End-of-RIB, extended length",          "4271 §4.3",    only(&[&attr(O | EXTENDED, 15, &[0, 2, 1])]), Accept),
        //= RFC 4760 §7 MAY: a bad MP_UNREACH_NLRI ends the session.
        row("MP_UNREACH of no octet",               "7606 §5.3",    only(&[&[O, 15, 0]]), Reset(9, Some(15))),
        //= RFC 7606 §5.3 MUST: an MP_UNREACH_NLRI shorter than three octets is incorrect.
        row("MP_UNREACH of two octets",             "7606 §5.3",    only(&[&[O, 15, 2, 0, 2]]), Reset(9, Some(15))),
        //= RFC 7606 §5.3 MUST: a prefix of MP_UNREACH_NLRI longer than its family allows is incorrect.
        row("MP_UNREACH of /129",                   "7606 §5.3",    only(&[&unreach(2, 1, &[129; 18])]), Reset(9, Some(15))),
        //= RFC 7606 §5.3 MUST: a prefix that needs more octets than MP_UNREACH_NLRI has left is incorrect.
        row("MP_UNREACH of half a prefix",          "7606 §5.3",    only(&[&unreach(2, 1, &GONE6_BYTES[..4])]), Reset(9, Some(15))),
        row("MP_UNREACH of an IPv4 /33",            "7606 §5.3",    only(&[&unreach(1, 1, &[33; 6])]), Reset(9, Some(15))),
        row("MP_UNREACH of another family",         "4760 §7. Ours: read no further", v4().first(unreach(1, 133, &[0, 255])), Accept),
        row("MP_UNREACH optional transitive",       "7606 §5.3",    flags(OT), Reset(9, Some(15))),
        //= RFC 7606 §5.3 MUST: an MP_UNREACH_NLRI with wrong flags is incorrect.
        row("MP_UNREACH well-known",                "7606 §5.3",    flags(WK), Reset(9, Some(15))),
        row("MP_UNREACH partial",                   "7606 §3 (c). Ours: not looked at", flags(O | PARTIAL).withdrawing(&[GONE6]), Accept),
        //= RFC 7606 §3 (g) MUST: a second MP_UNREACH_NLRI is answered with 3/1.
        row("MP_UNREACH twice",                     "7606 §3 (g)",  gone6().with(unreach(1, 1, &[])), Reset(1, None)),
        row("MP_UNREACH and MP_REACH",              "7606 §5.1",    v6().with(unreach(2, 1, GONE6_BYTES)).withdrawing(&[GONE6]), Accept),
        row("MP_UNREACH and MP_REACH, one malformed", "7606 §2",    v6().with(unreach(2, 1, GONE6_BYTES)).withdrawing(&[GONE6]).swap([WK, 1, 0]), Withdraw),
        row("the same prefix in both",              "4760 §4. Ours: undefined, it is announced", v6().with(unreach(2, 1, V6_BYTES)).withdrawing(&[V6]), Accept),
        row("MP_UNREACH and a prefix in the body",  "7606 §5.1",    v4().first(unreach(2, 1, GONE6_BYTES)).withdrawing(&[GONE6]), Accept),
        row("MP_UNREACH and a prefix, nothing mandatory", "CVE-2023-47234", gone6().nlri(V4_BYTES, &[V4]), Withdraw),
        row("End-of-RIB with a prefix",             "CVE-2023-47235", only(&[&unreach(2, 1, &[])]).nlri(V4_BYTES, &[V4]), Withdraw),
        //= RFC 7606 §5.1 MUST: prefixes are accepted in all four fields of one UPDATE.
        row("all four fields at once",              "7606 §5.1",    both().gone().with(unreach(2, 1, GONE6_BYTES)).withdrawing(&[GONE4, GONE6]), Accept),
    ]
}

#[rustfmt::skip]
fn unknown_attributes_and_incidents() -> Vec<Row> {
    let unknown = |flags: u8, code: u8, value: &[u8]| v4().with(attr(flags, code, value));
    let kept = "4271 §5. Ours: kept as bytes";
    vec![
        //= RFC 4271 §5 SHOULD: a path with an unknown optional transitive attribute is accepted.
        row("unknown optional transitive",          kept,           unknown(OT, 99, &[1, 2, 3]), Accept),
        row("unknown optional transitive, partial", "4271 §5",      unknown(OT | PARTIAL, 99, &[1]), Accept),
        row("unknown optional transitive of no octet", "4271 §5. Ours: unknown has no syntax", unknown(OT, 99, &[]), Accept),
        //= RFC 4271 §5 MUST: an unknown optional attribute that is not transitive is ignored quietly.
        row("unknown optional, not transitive",     "4271 §5",      unknown(O, 99, &[1, 2, 3]), Accept),
        row("unknown optional, not transitive, partial", "4271 §4.3. Ours: not looked at", unknown(O | PARTIAL, 99, &[1]), Accept),
        //= RFC 7606 §3 (g) MUST: an unknown attribute that is repeated costs nothing either.
        row("unknown optional twice",               "7606 §3 (g)",  unknown(OT, 99, &[1]).with([OT, 99, 0]), Discard(&[99])),
        //= RFC 4271 §6.3 MUST: an unknown well-known attribute is answered with 3/2 and the attribute as data.
        row("unknown well-known",                   "4271 §6.3",    unknown(WK, 99, &[7]), Reset(2, Some(99))),
        row("unknown well-known of no octet",       "CVE-2026-41642", unknown(WK, 99, &[]), Reset(2, Some(99))),
        row("unknown well-known with flags 0x00",   "4271 §6.3",    unknown(0, 99, &[7]), Reset(2, Some(99))),
        row("unknown well-known, extended length",  "4271 §6.3",    unknown(WK | EXTENDED, 99, &[7]), Reset(2, Some(99))),
        row("unknown well-known, nothing announced", "4271 §6.3",   only(&[&[WK, 99, 1, 7]]), Reset(2, Some(99))),
        row("attribute 0, well-known",              "4271 §6.3",    unknown(WK, 0, &[]), Reset(2, Some(0))),
        row("attribute 0, optional",                kept,           unknown(OT, 0, &[1]), Accept),
        row("attribute 11, reserved",               kept,           unknown(O, 11, &[0; 4]), Accept),
        row("attribute 20",                         kept,           unknown(OT, 20, &[0; 3]), Accept),
        row("attribute 21, cut short",              "2023-08 incident", unknown(OT, 21, &[1]), Accept),
        row("attribute 22, cut short",              "6514 §5: unknown to us", unknown(OT, 22, &[0, 1, 0, 4, 1]), Accept),
        row("attribute 23, cut short",              "CVE-2023-38802", unknown(OT, 23, &[0, 8, 0, 200, 1]), Accept),
        row("attribute 23 with a lying TLV",        "CVE-2024-44070", unknown(OT, 23, &[0, 1, 255, 255]), Accept),
        row("attribute 24 of no octet",             "7606 §7.13: unknown to us", unknown(O, 24, &[]), Accept),
        row("attribute 25 of 19 octets",            "7606 §7.15: unknown to us, CVE-2026-37461", unknown(OT, 25, &[1; 19]), Accept),
        row("attribute 26 of one octet",            "CVE-2023-41359", unknown(O, 26, &[1]), Accept),
        row("attribute 26 of a TLV of length 0",    "CVE-2023-41359", unknown(O, 26, &[1, 0, 0]), Accept),
        row("attribute 26 transitive",              "7311 §3.1: unknown to us", unknown(OT, 26, &[1, 0, 11, 0, 0, 0, 0, 0, 0, 0, 1]), Accept),
        row("attribute 28 of junk",                 "2023-06-02 incident", unknown(OT, 28, &[0xDE, 0xAD, 0xBE, 0xEF]), Accept),
        row("attribute 29 with a lying TLV",        "2023-08 incident", unknown(O, 29, &[4, 1, 255, 255]), Accept),
        row("attribute 33 of zeros",                "8205 §3: unknown to us", unknown(O, 33, &[0; 6]), Accept),
        row("attribute 40 of zeros",                "2025-05-20 incident", unknown(OT, 40, &[0; 40]), Accept),
        row("attribute 40 with a lying TLV",        "2025-08 incident, CVE-2024-31948", unknown(OT, 40, &[1, 255, 255, 0]), Accept),
        row("attribute 40 cut short",               "CVE-2023-31490", unknown(OT, 40, &[5]), Accept),
        row("attribute 99 of 3000 octets",          "2010-08-27 incident", unknown(OT | EXTENDED, 99, &[0xA5; 3000]), Accept),
        row("attribute 128 around a bad path",      "7606 §7.16: unknown to us", unknown(OT, 128, &[0, 0, 0, 1, 2, 2, 0]), Accept),
        row("attribute 255",                        "2019-01 incident, CVE-2019-5892", unknown(OT, 255, &[1; 8]), Accept),
        row("every optional code from 41 to 200",   kept,           (41..=200).fold(v4(), |it, code| it.with([OT, code, 1, code])), Accept),
        row("a prefix and no attribute",            "CVE-2023-41358", only(&[]).nlri(V4_BYTES, &[V4]), Withdraw),
        row("a prefix and an unknown attribute",    "CVE-2023-46753", only(&[&[OT, 99, 1, 0]]).nlri(V4_BYTES, &[V4]), Withdraw),
        row("the same beside MP_REACH",             "CVE-2023-46753", only(&[&reach6(&GLOBAL, V6_BYTES), &[OT, 99, 1, 0]]).announcing(&[V6]), Withdraw),
    ]
}

#[rustfmt::skip]
fn several_faults() -> Vec<Row> {
    let bad_reach = [O, 14, 4, 0, 2, 1, 0];
    vec![
        //= RFC 7606 §3 (h) MUST: several faults of one strength are handled as each of them would be.
        row("two discards",                         "7606 §3 (h)",  v4().with([WK, 6, 1, 0]).with([OT, 7, 0]), Discard(&[6, 7])),
        rows("three discards, one of them internal", "7606 §3 (h)", v4().with([WK, 6, 1, 0]).with([OT, 7, 0]).with([O, 9, 4, 1, 1, 1, 1]), Discard(&[6, 7, 9]), Discard(&[6, 7])),
        //= RFC 7606 §3 (h) MUST: treat-as-withdraw is stronger than attribute discard, in either order.
        row("discard, then withdraw",               "7606 §3 (h)",  v4().with([WK, 6, 1, 0]).with([OT, 8, 1, 0]), Withdraw),
        row("withdraw, then discard",               "7606 §3 (h)",  v4().with([OT, 8, 1, 0]).with([WK, 6, 1, 0]), Withdraw),
        row("every mandatory one malformed",        "7606 §3 (h)",  v4().swap([WK, 1, 0]).swap([WK, 2, 1, 0]).swap([WK, 3, 0]), Withdraw),
        //= RFC 7606 §3 (h) MUST: a session reset is stronger than treat-as-withdraw, in either order.
        row("withdraw, then reset",                 "7606 §3 (h)",  v4().swap([WK, 1, 0]).with(bad_reach), Reset(9, Some(14))),
        row("reset, then withdraw",                 "7606 §3 (h)",  v4().swap([WK, 1, 0]).first(bad_reach), Reset(9, Some(14))),
        row("withdraw, then unknown well-known",    "7606 §3 (h)",  v4().swap([WK, 1, 0]).with([WK, 99, 0]), Reset(2, Some(99))),
        row("discard, then unknown well-known",     "7606 §3 (h)",  v4().with([WK, 6, 1, 0]).with([WK, 99, 0]), Reset(2, Some(99))),
        row("unknown well-known, then overrun",     "7606 §3 (h)",  v4().with([WK, 99, 0]).with([O, 4, 9]), Reset(2, Some(99))),
        row("malformed ORIGIN and MP_REACH twice",  "7606 §3 (h)",  v6().swap([WK, 1, 0]).with([O, 14, 0]), Reset(1, None)),
        row("/33 and a malformed MP_REACH",         "7606 §3 (h). Ours: prefixes of the body are first", v4().first(bad_reach).nlri(&[33; 6], &[]), Reset(10, None)),
        row("two resets in the list",               "7606 §3 (h). Ours: the first is named", v4().first(bad_reach).with([WK, 99, 0]), Reset(9, Some(14))),
        row("missing ORIGIN and a stray octet",     "7606 §3 (h)",  v4().without(1).with([0]), Withdraw),
        row("one bad attribute, both families",     "7606 §2",      both().with([OT, 8, 1, 0]), Withdraw),
        row("a bad attribute in all four fields",   "7606 §2",      both().gone().with(unreach(2, 1, GONE6_BYTES)).withdrawing(&[GONE4, GONE6]).with([OT, 8, 0]), Withdraw),
        rows("bad LOCAL_PREF, both families",       "7606 §7.5",    both().with([WK, 5, 1, 0]), Discard(&[5]), Withdraw),
        //= RFC 6793 §4.1 MUST: AS4_PATH from a speaker of four octets is dropped, and the routes stay.
        row("AS4_PATH between new speakers",        "6793 §4.1",    v4().with(attr(OT, 17, &segment(2, &[65001]))), Discard(&[17])),
        row("malformed AS4_PATH between new speakers", "6793 §4.1", v4().with([OT, 17, 1, 0]), Discard(&[17])),
        row("well-known AS4_PATH, first, one octet", "CVE-2026-41643", v4().first([WK, 17, 1, 0]), Discard(&[17])),
        row("AS_CONFED_SEQUENCE in AS4_PATH",       "2008-09 incident", v4().with(attr(OT, 17, &segment(3, &[65001]))), Discard(&[17])),
        //= RFC 6793 §4.1 MUST: AS4_AGGREGATOR from a speaker of four octets is dropped, and the routes stay.
        row("AS4_AGGREGATOR between new speakers",  "6793 §4.1",    v4().first([OT, 18, 8, 0, 0, 0, 1, 1, 1, 1, 1]), Discard(&[18])),
        row("malformed AS4_AGGREGATOR between new speakers", "6793 §4.1", v4().with([OT, 18, 0]), Discard(&[18])),
        row("well-known AS4_AGGREGATOR between new speakers", "6793 §4.1", v4().with([WK, 18, 8, 0, 0, 0, 1, 1, 1, 1, 1]), Discard(&[18])),
        row("AS4_PATH twice between new speakers",  "6793 §4.1",    v4().with([OT, 17, 1, 0]).with([OT, 17, 1, 0]), Discard(&[17, 17])),
        row("AS4_PATH, nothing announced",          "7606 §5.2",    only(&[&[OT, 17, 1, 0]]).gone(), Discard(&[17])),
    ]
}

/// On a session of two-octet AS numbers.
#[rustfmt::skip]
fn old_speakers() -> Vec<Row> {
    let good = || v4().swap(OLD_PATH);
    let with = |value: &[u8]| v4().swap(attr(WK, 2, value));
    let path4 = |value: &[u8]| good().with(attr(OT, 17, value));
    let aggregator = |value: &[u8]| good().with(attr(OT, 7, value));
    let aggregator4 = |value: &[u8]| good().with(attr(OT, 18, value));
    let malformed = "6793 §6";
    vec![
        row("a good one of two octets",             "4271 §4.3",    good(), Accept),
        row("AS_PATH of four-octet numbers, old",   "7606 §7.2",    v4(), Withdraw),
        row("AS_TRANS and no AS4_PATH",             "6793 §4.2.3",  with(&[2, 1, 0x5B, 0xA0]), Accept),
        row("1900 hops, old",                       "CVE-2026-49943", v4().swap(attr(WK | EXTENDED, 2, &[&[2, 100][..], &[1; 200]].concat().repeat(19))), Accept),
        row("AS 0, old",                            "7607 §2",      with(&[2, 2, 0xFD, 0xE9, 0, 0]), Withdraw),
        row("AS_SET, old",                          "9774 §3",      with(&[2, 1, 0xFD, 0xE9, 1, 1, 0, 1]), Withdraw),
        row("AS_CONFED_SEQUENCE, old",              "5065 §5",      with(&[3, 1, 0xFD, 0xE9]), Withdraw),
        row("AS_PATH overrun by one octet, old",    "7606 §7.2",    with(&[2, 1, 0xFD]), Withdraw),
        row("AS_PATH underrun by one octet, old",   "7606 §7.2",    with(&[2, 1, 0xFD, 0xE9, 2]), Withdraw),
        row("AS_PATH segment of none, old",         "7606 §7.2",    with(&[2, 0]), Withdraw),
        row("AS_PATH segment type 5, old",          "7606 §7.2",    with(&[5, 1, 0xFD, 0xE9]), Withdraw),
        row("AGGREGATOR, old",                      "7606 §7.7",    aggregator(&[0xFD, 0xE9, 1, 1, 1, 1]), Accept),
        //= RFC 7606 §7.7 MUST: with a speaker of two octets an AGGREGATOR that has not six octets is dropped.
        row("AGGREGATOR of a four-octet AS, old",   "7606 §7.7",    aggregator(&[0, 0, 0xFD, 0xE9, 1, 1, 1, 1]), Discard(&[7])),
        row("AGGREGATOR with AS 0, old",            "7607 §2",      aggregator(&[0, 0, 1, 1, 1, 1]), Discard(&[7])),
        //= RFC 6793 §4.2.3 MUST: AS4_PATH beside AS_PATH is accepted from a speaker of two octets.
        row("AS4_PATH behind AS_PATH",              "6793 §4.2.3", path4(&segment(2, &[4_200_000_000])), Accept),
        row("AS4_PATH before AS_PATH",              "6793 §4.2.3",  good().first(attr(OT, 17, &segment(2, &[4_200_000_000]))), Accept),
        row("AS4_PATH longer than AS_PATH",         "6793 §4.2.3", path4(&segment(2, &[1, 2, 3])), Accept),
        row("AS4_PATH partial",                     "4271 §4.3",    good().with(attr(OT | PARTIAL, 17, &segment(2, &[1]))), Accept),
        //= RFC 6793 §6 MUST: an AS4_PATH that is too short is malformed.
        row("AS4_PATH of no octet",                 malformed,      path4(&[]), Discard(&[17])),
        //= RFC 6793 §6 MUST: a malformed AS4_PATH is dropped, and the UPDATE is processed.
        row("AS4_PATH of one octet, first",         "CVE-2026-41643", good().first([OT, 17, 1, 0]), Discard(&[17])),
        row("AS4_PATH of one octet, well-known, first", "CVE-2026-41643. Ours: no stronger for flags", good().first([WK, 17, 1, 0]), Discard(&[17])),
        row("AS4_PATH not transitive",              "6793 §6. Ours: no stronger for flags", good().with(attr(O, 17, &segment(2, &[1]))), Discard(&[17])),
        //= RFC 6793 §6 MUST: an AS4_PATH of an odd length is malformed.
        row("AS4_PATH of five octets",              malformed,      path4(&[2, 1, 0, 0, 1]), Discard(&[17])),
        //= RFC 6793 §6 MUST: an AS4_PATH segment without members is malformed.
        row("AS4_PATH segment of none",             malformed,      path4(&[2, 0]), Discard(&[17])),
        //= RFC 6793 §6 MUST: an AS4_PATH segment that contradicts the length is malformed.
        row("AS4_PATH overrun",                     malformed,      path4(&[2, 2, 0, 0, 0, 1]), Discard(&[17])),
        row("AS4_PATH underrun",                    malformed,      path4(&[2, 1, 0, 0, 0, 1, 2]), Discard(&[17])),
        //= RFC 6793 §6 MUST: an AS4_PATH segment of an unknown type is malformed.
        row("AS4_PATH segment type 5",              malformed,      path4(&segment(5, &[1])), Discard(&[17])),
        //= RFC 7607 §2 MUST: AS 0 in AS4_PATH is handled as RFC 6793 says: the attribute is dropped.
        row("AS4_PATH with AS 0",                   "7607 §2, 6793 §6", path4(&segment(2, &[0])), Discard(&[17])),
        //= RFC 9774 §3 MUST: an AS_SET in AS4_PATH withdraws the routes.
        row("AS4_PATH with an AS_SET",              "9774 §3",      path4(&segment(1, &[1])), Withdraw),
        //= RFC 6793 §6 MUST: confederation sequences are cut out of AS4_PATH, and the rest is used.
        row("AS4_PATH with AS_CONFED_SEQUENCE",     "2008-09 incident, 6793 §6", path4(&[segment(3, &[1]), segment(2, &[2])].concat()), Accept),
        row("AS4_PATH of AS_CONFED_SEQUENCE alone", "6793 §6",      path4(&segment(3, &[1])), Discard(&[17])),
        //= RFC 9774 §3 MUST: an AS_CONFED_SET in AS4_PATH withdraws the routes.
        row("AS4_PATH with AS_CONFED_SET",          "9774 §3",      path4(&[segment(4, &[1]), segment(2, &[2])].concat()), Withdraw),
        row("AS4_PATH twice",                       "7606 §3 (g)",  path4(&segment(2, &[1])).with([OT, 17, 0]), Discard(&[17])),
        //= RFC 6793 §4.2.3 MUST: AS4_AGGREGATOR beside AGGREGATOR is accepted from a speaker of two octets.
        row("AS4_AGGREGATOR beside AS_TRANS",       "6793 §4.2.3",  aggregator(&[0x5B, 0xA0, 1, 1, 1, 1]).with([OT, 18, 8, 0, 1, 0, 0, 1, 1, 1, 1]), Accept),
        row("AS4_AGGREGATOR before the others",     "6793 §4.2.3",  good().first([OT, 18, 8, 0, 1, 0, 0, 1, 1, 1, 1]), Accept),
        row("AS4_AGGREGATOR of no octet",           malformed,      aggregator4(&[]), Discard(&[18])),
        //= RFC 6793 §6 MUST: a malformed AS4_AGGREGATOR is dropped, and the UPDATE is processed.
        row("AS4_AGGREGATOR of six octets",         malformed,      aggregator4(&[0, 1, 1, 1, 1, 1]), Discard(&[18])),
        //= RFC 6793 §6 MUST: an AS4_AGGREGATOR that is not eight octets long is malformed.
        row("AS4_AGGREGATOR of nine octets",        malformed,      aggregator4(&[1; 9]), Discard(&[18])),
        //= RFC 7607 §2 MUST: AS 0 in AS4_AGGREGATOR is handled as RFC 6793 says: the attribute is dropped.
        row("AS4_AGGREGATOR with AS 0",             "7607 §2, 6793 §6", aggregator4(&[0, 0, 0, 0, 1, 1, 1, 1]), Discard(&[18])),
        row("AS4_AGGREGATOR well-known",            "6793 §6. Ours: no stronger for flags", good().with([WK, 18, 8, 0, 1, 0, 0, 1, 1, 1, 1]), Discard(&[18])),
        row("malformed AS4_PATH and AS4_AGGREGATOR", "7606 §3 (h)", path4(&[0]).with([OT, 18, 0]), Discard(&[17, 18])),
        row("malformed AS4_PATH and AS_PATH",       "7606 §3 (h)",  with(&[2, 0]).first([OT, 17, 1, 0]), Withdraw),
    ]
}

// --- The tests -----------------------------------------------------------------------------------

#[test]
fn lengths_that_contradict_each_other_cost_no_more_than_they_must() {
    check(&lengths(), true);
}

#[test]
fn prefixes_of_the_body_are_read_or_the_session_ends() {
    check(&prefixes(), true);
}

#[test]
fn a_bad_origin_or_next_hop_withdraws() {
    check(&origin_and_next_hop(), true);
}

#[test]
fn a_bad_as_path_withdraws() {
    check(&as_paths(), true);
}

#[test]
fn bad_numbers_withdraw_and_bad_aggregates_are_dropped() {
    check(&numbers_and_aggregates(), true);
}

#[test]
fn bad_communities_withdraw_and_clusters_of_others_are_dropped() {
    check(&communities_and_clusters(), true);
}

#[test]
fn a_bad_mp_reach_ends_the_session() {
    check(&reachable(), true);
}

#[test]
fn a_bad_mp_unreach_ends_the_session() {
    check(&unreachable_prefixes(), true);
}

#[test]
fn unknown_attributes_are_bytes_and_incidents_stay_history() {
    check(&unknown_attributes_and_incidents(), true);
}

#[test]
fn of_several_faults_the_strongest_wins() {
    check(&several_faults(), true);
}

#[test]
fn old_speakers_are_heard_in_two_octets() {
    check(&old_speakers(), false);
}

#[test]
fn the_table_is_long_and_no_name_comes_twice() {
    let tables = [
        lengths(),
        prefixes(),
        origin_and_next_hop(),
        as_paths(),
        numbers_and_aggregates(),
        communities_and_clusters(),
        reachable(),
        unreachable_prefixes(),
        unknown_attributes_and_incidents(),
        several_faults(),
        old_speakers(),
    ];
    let names: Vec<_> = tables.iter().flatten().map(|row| row.name).collect();
    let unique: std::collections::BTreeSet<_> = names.iter().collect();
    assert!(unique.len() == names.len() && names.len() >= 400, "{} rows", names.len());
}

/// What the RFCs say about an attribute: its flags, the lengths that it may have, and what its
/// faults lead to.
struct Law {
    flags: u8,
    code: u8,
    /// Octets of one value; with `list`, any number of them but none.
    unit: usize,
    list: bool,
    external: Outcome,
    internal: Outcome,
}

#[rustfmt::skip]
fn laws() -> Vec<Law> {
    let law = |flags, code, unit, list, outcome: Outcome| Law { flags, code, unit, list, external: outcome.clone(), internal: outcome };
    let internal = |flags, code, list, dropped| Law { flags, code, unit: 4, list, external: Discard(dropped), internal: Withdraw };
    vec![
        law(WK, 1, 1, false, Withdraw),
        law(WK, 3, 4, false, Withdraw),
        law(O, 4, 4, false, Withdraw),
        internal(WK, 5, false, &[5]),
        law(WK, 6, 0, false, Discard(&[6])),
        law(OT, 7, 8, false, Discard(&[7])),
        law(OT, 8, 4, true, Withdraw),
        internal(O, 9, false, &[9]),
        internal(O, 10, true, &[10]),
        law(OT, 16, 8, true, Withdraw),
        law(OT, 32, 12, true, Withdraw),
    ]
}

/// One attribute in an otherwise good UPDATE, against its law.
fn obey(law: &Law, flags: u8, length: usize) {
    // ORIGIN 1, NEXT_HOP 1.1.1.1, AS 16843009: good values, whatever they are.
    let attribute = attr(flags, law.code, &vec![1; length]);
    let good = v4().without(law.code);
    let message = good.with(attribute);
    let right_length =
        if law.list { length > 0 && length.is_multiple_of(law.unit) } else { length == law.unit };
    let well_formed = right_length && flags & 0xC0 == law.flags;
    for (kind, fault) in [(PeerKind::External, &law.external), (PeerKind::Internal, &law.internal)]
    {
        let dropped_unread = kind == PeerKind::External && law.external != law.internal;
        let expected = if well_formed && !dropped_unread { &Accept } else { fault };
        let context = UpdateContext::new(kind);
        if let Err(what) = judge(&message, expected, context) {
            panic!("code {}, flags {flags:#04x}, length {length}, {kind:?}: {what}", law.code);
        }
    }
}

//= RFC 7606 §3 (c) MUST: wrong optional or transitive bits make any attribute malformed.
#[test]
fn every_flags_octet_of_every_attribute_leads_to_what_the_table_says() {
    for law in laws() {
        for flags in 0..=u8::MAX {
            obey(&law, flags, law.unit);
        }
    }
}

//= RFC 7606 §4 MUST: of the attributes that we know only AS_PATH and ATOMIC_AGGREGATE may be empty.
//= RFC 7606 §3 (e) MUST: no length of ORIGIN, NEXT_HOP, MULTI_EXIT_DISC or LOCAL_PREF ends the session.
//= RFC 7606 §2 MUST NOT: an attribute that bears on route selection is only discarded.
#[test]
fn every_length_of_every_attribute_leads_to_what_the_table_says() {
    for law in laws() {
        for length in 0..=300 {
            obey(&law, law.flags | EXTENDED, length);
        }
    }
}

//= RFC 8092 §3 MUST: a value that is received twice is removed silently.
#[test]
fn redundant_communities_are_removed() {
    let message = v4().with([OT, 8, 8, 0, 1, 0, 2, 0, 1, 0, 2]).with(attr(OT, 32, &[7; 36]));
    let context = UpdateContext::new(PeerKind::External);
    let update = Update::parse(&message.body(), context).unwrap();
    let attributes = &update.announced[0].attributes;
    assert_eq!((attributes.communities.len(), attributes.large_communities.len()), (1, 1));
}

#[test]
fn only_the_marker_itself_is_an_end_of_rib() {
    let context = UpdateContext::new(PeerKind::External);
    let marker = |message: Message| Update::parse(&message.body(), context).unwrap().end_of_rib;
    assert_eq!(marker(only(&[])), Some(AddressFamily::Ipv4Unicast));
    assert_eq!(marker(only(&[&unreach(1, 1, &[])])), Some(AddressFamily::Ipv4Unicast));
    assert_eq!(marker(only(&[&unreach(2, 1, &[])])), Some(AddressFamily::Ipv6Unicast));
    for message in [
        only(&[]).gone(),
        only(&[&unreach(25, 70, &[])]),
        only(&[&unreach(2, 1, GONE6_BYTES)]),
        only(&[&unreach(2, 1, &[]), &[WK, 1, 1, 0]]),
        only(&[&unreach(2, 1, &[])]).gone(),
        only(&[&unreach(2, 1, &[])]).nlri(V4_BYTES, &[]),
        only(&[&[OT, 7, 0]]),
        v4(),
        v4().nlri(&[], &[]),
    ] {
        assert_eq!(marker(message.clone()), None, "{message:?}");
    }
}
