//! What our table always has: chains, their rules, and empty sets. Written once.
//!
//! The rules, as `nft` shows them for IPv4 (and likewise for IPv6):
//!
//! ```text
//!  drop-outsiders: from this node, or from a Pod of it → back; else drop
//!  check:   restricted and not allowed → drop; new to no-endpoints → reject or drop;
//!           new to vips, not to vip-ports, and no ping → reject
//!  mark:    new to masq-always, to masq-off-cluster and not from a Pod, or from one of vips to vip-ports → mark
//!  input (filter, 0) → check           output (filter, -110) → check, mark
//!  prerouting (filter, -110) → mark    postrouting (nat, 100): hairpin, or marked → masquerade
//! ```

use fairway_ground::Prefix;
use netlink_packet_core::NLM_F_APPEND;

use super::expressions::{Expression, FIRST_REGISTER, STATE_NEW, Verdict};
use super::{
    CREATES, DEL_TABLE, Family, NEW_CHAIN, NEW_RULE, NEW_SET, NEW_TABLE, TABLE, Transaction, be32,
    text,
};

/// How the tags of our tables begin.
const OWNER: &str = "Fairway service proxy";
/// Counts what differs between releases: a table of another one is made again.
const VERSION: u32 = 1;
/// What programs keep with a table, and the kind of it that `nft` shows as a comment.
pub(super) const TABLE_DATA: u16 = 6;
pub(super) const COMMENT: u8 = 0;

/// The sets, by what they hold.
pub(super) const VIPS: &str = "vips";
pub(super) const VIP_PORTS: &str = "vip-ports";
pub(super) const MASQUERADE_ALWAYS: &str = "masq-always";
pub(super) const MASQUERADE_OFF_CLUSTER: &str = "masq-off-cluster";
pub(super) const RESTRICTED: &str = "restricted";
pub(super) const ALLOWED: &str = "allowed";
pub(super) const HAIRPIN: &str = "hairpin";
pub(super) const NO_ENDPOINTS: &str = "no-endpoints";
pub(crate) const PODS: &str = "pods";

/// The chains behind the verdicts of [`NO_ENDPOINTS`].
pub(super) const REJECT: &str = "reject";
pub(super) const DROP: &str = "drop";
/// Drops what neither this node nor a Pod of it sends.
pub(super) const DROP_OUTSIDERS: &str = "drop-outsiders";
const CHECK: &str = "check";
const MARK: &str = "mark";

const HOOK_PREROUTING: u32 = 0;
const HOOK_INPUT: u32 = 1;
const HOOK_OUTPUT: u32 = 3;
pub(super) const HOOK_POSTROUTING: u32 = 4;

const SET_INTERVAL: u32 = 0x4;
const SET_MAP: u32 = 0x8;
const SET_CONCATENATED: u32 = 0x80;
/// The type of a verdict, and its length.
const TYPE_VERDICT: u32 = 0xFFFF_FF00;
const VERDICT_LENGTH: u32 = 16;
/// The numbers that `nft` has for types: it shows elements by them.
const TYPE_PROTOCOL: u32 = 12;
const TYPE_PORT: u32 = 13;
const TYPE_BITS: u32 = 6;

/// A part of the key of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Address,
    Protocol,
    Port,
}

const WHERE: &[Field] = &[Field::Address, Field::Protocol, Field::Port];
const WHERE_FROM: &[Field] = &[Field::Address, Field::Protocol, Field::Port, Field::Address];

impl Field {
    fn length(self, family: Family) -> u32 {
        match self {
            Self::Address => family.address_length().into(),
            Self::Protocol => 1,
            Self::Port => 2,
        }
    }

    fn type_number(self, family: Family) -> u32 {
        match (self, family) {
            (Self::Address, Family::Ipv4) => 7,
            (Self::Address, Family::Ipv6) => 8,
            (Self::Protocol, _) => TYPE_PROTOCOL,
            (Self::Port, _) => TYPE_PORT,
        }
    }
}

/// How a packet from a Pod is recognized.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PodDetection {
    /// It is not: no set `masq-off-cluster` has elements then.
    #[default]
    Unknown,
    /// Its source is in the set `pods`.
    Networks,
    /// It comes over this interface.
    Interface(String),
    /// It comes over an interface whose name begins so.
    InterfacePrefix(String),
}

/// What is known of the table's rules and networks without reading them. `nft` shows it as the table's comment.
pub fn tag(pods: &PodDetection, networks: &[Prefix], mark: u32) -> String {
    let text = format!("{VERSION} {pods:?} {networks:?} {mark}");
    // FNV-1a: the same number in each build.
    let number = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |number, octet| {
        (number ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{OWNER}, layout {number:016x}")
}

/// Whether a table with this tag is ours.
pub fn is_ours(tag: &str) -> bool {
    tag.starts_with(OWNER)
}

/// The transaction that makes the table of this family; `mark` is the bit of packets whose source address is replaced.
pub fn layout(family: Family, pods: &PodDetection, mark: u32, tag: &str) -> Transaction {
    let mut transaction = Transaction::default();
    let comment = text(tag);
    let length = u8::try_from(comment.len()).unwrap_or(u8::MAX);
    let data = [vec![COMMENT, length], comment].concat();
    transaction.add(NEW_TABLE, CREATES, family, move |it| {
        it.attribute(1, &text(TABLE)).attribute(TABLE_DATA, &data);
    });
    for (name, fields, is_interval) in [
        (VIPS, &[Field::Address][..], false),
        (VIP_PORTS, WHERE, false),
        (MASQUERADE_ALWAYS, WHERE, false),
        (MASQUERADE_OFF_CLUSTER, WHERE, false),
        (RESTRICTED, WHERE, false),
        (ALLOWED, WHERE_FROM, true),
        (HAIRPIN, WHERE_FROM, false),
        (PODS, &[Field::Address][..], true),
        (NO_ENDPOINTS, WHERE, false),
    ] {
        set(&mut transaction, family, name, fields, is_interval);
    }
    for name in [REJECT, DROP, DROP_OUTSIDERS, CHECK, MARK] {
        chain(&mut transaction, family, name, None);
    }
    for (name, kind, hook, priority) in [
        ("prerouting", "filter", HOOK_PREROUTING, -110),
        ("input", "filter", HOOK_INPUT, 0),
        ("output", "filter", HOOK_OUTPUT, -110),
        ("postrouting", "nat", HOOK_POSTROUTING, 100),
    ] {
        chain(&mut transaction, family, name, Some((kind, hook, priority)));
    }
    let jump = |chain| vec![Expression::Verdict(Verdict::Jump(chain))];
    rule(&mut transaction, family, REJECT, vec![Expression::Reject(family)]);
    rule(&mut transaction, family, DROP, vec![Expression::Verdict(Verdict::Drop)]);
    drops_outsiders(&mut transaction, family, pods);
    checks(&mut transaction, family);
    marks(&mut transaction, family, pods, mark);
    rule(&mut transaction, family, "prerouting", jump(MARK));
    rule(&mut transaction, family, "input", jump(CHECK));
    rule(&mut transaction, family, "output", jump(CHECK));
    rule(&mut transaction, family, "output", jump(MARK));
    masquerades(&mut transaction, family, mark);
    transaction
}

/// The transaction that removes our table, which must be there.
pub fn remove(family: Family) -> Transaction {
    remove_table(family, TABLE)
}

/// The transaction that removes a table, which must be there.
pub fn remove_table(family: Family, name: &'static str) -> Transaction {
    let mut transaction = Transaction::default();
    transaction.add(DEL_TABLE, 0, family, move |it| {
        it.attribute(1, &text(name));
    });
    transaction
}

fn set(
    transaction: &mut Transaction,
    family: Family,
    name: &'static str,
    fields: &'static [Field],
    is_interval: bool,
) {
    // Each part of a key fills whole registers.
    let length: u32 = fields.iter().map(|it| it.length(family).next_multiple_of(4)).sum();
    let kind = fields.iter().fold(0, |all, it| all << TYPE_BITS | it.type_number(family));
    let is_map = name == NO_ENDPOINTS;
    // Only for intervals does the kernel have to know the parts of a key.
    let has_parts = is_interval && fields.len() > 1;
    let mut flags = 0;
    for (holds, flag) in
        [(is_interval, SET_INTERVAL), (is_map, SET_MAP), (has_parts, SET_CONCATENATED)]
    {
        flags |= if holds { flag } else { 0 };
    }
    transaction.add(NEW_SET, CREATES, family, move |it| {
        it.attribute(1, &text(TABLE)).attribute(2, &text(name)).attribute(3, &be32(flags));
        it.attribute(4, &be32(kind)).attribute(5, &be32(length));
        if is_map {
            it.attribute(6, &be32(TYPE_VERDICT)).attribute(7, &be32(VERDICT_LENGTH));
        }
        // The number by which a transaction refers to a set that it makes.
        it.attribute(10, &be32(1));
        if has_parts {
            it.nested(9, |it| {
                it.nested(2, |it| {
                    for field in fields {
                        it.nested(1, |it| {
                            it.attribute(1, &be32(field.length(family)));
                        });
                    }
                });
            });
        }
    });
}

fn chain(
    transaction: &mut Transaction,
    family: Family,
    name: &'static str,
    base: Option<(&'static str, u32, i32)>,
) {
    transaction.add(NEW_CHAIN, CREATES, family, move |it| {
        it.attribute(1, &text(TABLE)).attribute(3, &text(name));
        if let Some((kind, hook, priority)) = base {
            it.nested(4, |it| {
                it.attribute(1, &be32(hook)).attribute(2, &priority.to_be_bytes());
            });
            it.attribute(7, &text(kind));
        }
    });
}

fn rule(
    transaction: &mut Transaction,
    family: Family,
    chain: &'static str,
    expressions: Vec<Expression>,
) {
    transaction.add(NEW_RULE, CREATES | NLM_F_APPEND, family, move |it| {
        it.attribute(1, &text(TABLE)).attribute(2, &text(chain));
        it.nested(4, |it| expressions.iter().for_each(|expression| expression.write(it)));
    });
}

/// The register behind an address that begins at the first one.
fn behind_address(family: Family) -> u32 {
    FIRST_REGISTER + u32::from(family.address_length()) / 4
}

/// Loads destination, protocol and port, the key of most sets.
fn load_where(family: Family) -> Vec<Expression> {
    let register = behind_address(family);
    vec![
        Expression::destination(family, FIRST_REGISTER),
        Expression::protocol(register),
        Expression::destination_port(register + 1),
    ]
}

fn load_where_from(family: Family) -> Vec<Expression> {
    let register = behind_address(family) + 2;
    [load_where(family), vec![Expression::source(family, register)]].concat()
}

fn is_new() -> Vec<Expression> {
    let register = FIRST_REGISTER;
    vec![
        Expression::State { register },
        Expression::Bitwise { register, mask: STATE_NEW, xor: 0 },
        Expression::Compare { register, is_equal: false, value: vec![0; 4] },
    ]
}

fn lookup(set: &'static str, is_in: bool) -> Vec<Expression> {
    vec![Expression::Lookup { set, register: FIRST_REGISTER, is_in }]
}

fn checks(transaction: &mut Transaction, family: Family) {
    let restricted = [
        load_where(family),
        lookup(RESTRICTED, true),
        load_where_from(family),
        lookup(ALLOWED, false),
        vec![Expression::Verdict(Verdict::Drop)],
    ];
    rule(transaction, family, CHECK, restricted.concat());
    let map = Expression::VerdictOf { map: NO_ENDPOINTS, register: FIRST_REGISTER };
    rule(transaction, family, CHECK, [is_new(), load_where(family), vec![map]].concat());
    // Ping: an echo request is the first packet of its flow.
    let (icmp, echo) = match family {
        Family::Ipv4 => (1, 8),
        Family::Ipv6 => (58, 128),
    };
    let register = FIRST_REGISTER;
    let is = |value: u8| Expression::Compare { register, is_equal: true, value: vec![value] };
    let to_vip =
        [vec![Expression::destination(family, FIRST_REGISTER)], lookup(VIPS, true)].concat();
    let ping = vec![
        Expression::protocol(register),
        is(icmp),
        Expression::icmp_type(register),
        is(echo),
        Expression::Verdict(Verdict::Accept),
    ];
    rule(transaction, family, CHECK, [to_vip.clone(), ping].concat());
    let other = [
        is_new(),
        to_vip,
        load_where(family),
        lookup(VIP_PORTS, false),
        vec![Expression::Verdict(Verdict::Jump(REJECT))],
    ];
    rule(transaction, family, CHECK, other.concat());
}

/// Goes on if the packet is from a Pod, or is not; `None` where that cannot be known.
fn from_pod(family: Family, pods: &PodDetection, is: bool) -> Option<Vec<Expression>> {
    let register = FIRST_REGISTER;
    let over = |value: Vec<u8>| {
        let compare = Expression::Compare { register, is_equal: is, value };
        vec![Expression::interface(register), compare]
    };
    match pods {
        PodDetection::Unknown => None,
        PodDetection::Networks => {
            Some([vec![Expression::source(family, register)], lookup(PODS, is)].concat())
        }
        PodDetection::Interface(name) => Some(over(whole_name(name))),
        PodDetection::InterfacePrefix(prefix) => Some(over(prefix.as_bytes().to_vec())),
    }
}

/// The name of an interface, as packets have it.
fn whole_name(name: &str) -> Vec<u8> {
    let mut value = name.as_bytes().to_vec();
    value.resize(16, 0);
    value
}

fn drops_outsiders(transaction: &mut Transaction, family: Family, pods: &PodDetection) {
    let register = FIRST_REGISTER;
    let back = vec![Expression::Verdict(Verdict::Return)];
    // What this node sends came over no interface.
    let value = whole_name("");
    let compare = Expression::Compare { register, is_equal: true, value };
    let of_node = [vec![Expression::interface(register), compare], back.clone()];
    rule(transaction, family, DROP_OUTSIDERS, of_node.concat());
    if let Some(of_pod) = from_pod(family, pods, true) {
        rule(transaction, family, DROP_OUTSIDERS, [of_pod, back].concat());
    }
    rule(transaction, family, DROP_OUTSIDERS, vec![Expression::Verdict(Verdict::Drop)]);
}

fn marks(transaction: &mut Transaction, family: Family, pods: &PodDetection, mark: u32) {
    let register = FIRST_REGISTER;
    let set_mark = vec![
        Expression::mark(register),
        Expression::Bitwise { register, mask: !mark, xor: mark },
        Expression::SetMark { register },
    ];
    let always = [is_new(), load_where(family), lookup(MASQUERADE_ALWAYS, true), set_mark.clone()];
    rule(transaction, family, MARK, always.concat());
    if let Some(not_from_pod) = from_pod(family, pods, false) {
        let off_cluster = [
            is_new(),
            load_where(family),
            lookup(MASQUERADE_OFF_CLUSTER, true),
            not_from_pod,
            set_mark.clone(),
        ];
        rule(transaction, family, MARK, off_cluster.concat());
    }
    // A connection of this machine to a virtual address has that address as its source.
    let from_vip = [
        is_new(),
        vec![Expression::source(family, register)],
        lookup(VIPS, true),
        load_where(family),
        lookup(VIP_PORTS, true),
        set_mark,
    ];
    rule(transaction, family, MARK, from_vip.concat());
}

fn masquerades(transaction: &mut Transaction, family: Family, mark: u32) {
    let hairpin = [load_where_from(family), lookup(HAIRPIN, true), vec![Expression::Masquerade]];
    rule(transaction, family, "postrouting", hairpin.concat());
    let register = FIRST_REGISTER;
    let marked = vec![
        Expression::mark(register),
        Expression::Bitwise { register, mask: mark, xor: 0 },
        Expression::Compare { register, is_equal: true, value: mark.to_ne_bytes().to_vec() },
        // Cleared, so that a tunnel's packets are not masqueraded once more.
        Expression::mark(register),
        Expression::Bitwise { register, mask: !mark, xor: 0 },
        Expression::SetMark { register },
        Expression::Masquerade,
    ];
    rule(transaction, family, "postrouting", marked);
}
