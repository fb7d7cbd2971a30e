//! The elements of the sets: what follows from the rules of virtual addresses, and back.
//!
//! A change adds and removes exactly the elements that differ.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::Prefix;
use fairway_model::TransportProtocol;
use fairway_proxy::{FilterRule, Hairpin, Masquerade, NoEndpoints, RealServer, VirtualAddress};
use netlink_packet_core::NLM_F_DUMP;

use super::layout::{
    ALLOWED, DROP, DROP_OUTSIDERS, HAIRPIN, MASQUERADE_ALWAYS, MASQUERADE_OFF_CLUSTER,
    NO_ENDPOINTS, PODS, REJECT, RESTRICTED, VIP_PORTS, VIPS,
};
use super::{
    CREATES, DATA_VALUE, DATA_VERDICT, DEL_ELEMENTS, Family, GET_ELEMENTS, GOTO, LIST_ELEMENT,
    NEW_ELEMENTS, TABLE, Transaction, VERDICT_CHAIN, VERDICT_CODE, be32, head, text,
};
use crate::message::{Message, attributes};

const ELEMENT_KEY: u16 = 1;
const ELEMENT_DATA: u16 = 2;
const ELEMENT_FLAGS: u16 = 3;
const ELEMENT_KEY_END: u16 = 10;
/// It is the first key behind an interval.
const INTERVAL_END: u32 = 1;

/// Elements of one message: their list is an attribute, of at most 64 KiB.
const ELEMENTS_MAX: usize = 500;

/// One element of one set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// The address is virtual: of its ports only those of Services are for others.
    Vip(IpAddr),
    /// A Service has this port.
    VipPort(VirtualAddress),
    /// See [`Masquerade::Always`].
    MasqueradeAlways(VirtualAddress),
    /// See [`Masquerade::OffCluster`].
    MasqueradeOffCluster(VirtualAddress),
    /// Only allowed sources may use it.
    Restricted(VirtualAddress),
    /// These sources may use it.
    Allowed(VirtualAddress, Prefix),
    /// What becomes of new connections, and whether it is so for those of Pods.
    NoEndpoints(VirtualAddress, NoEndpoints, bool),
    /// A Pod that may meet itself.
    Hairpin(Hairpin),
    /// A network of Pods.
    Pods(Prefix),
}

/// The elements of a rule.
pub fn of_rule(at: VirtualAddress, rule: &FilterRule) -> BTreeSet<Element> {
    let mut elements = BTreeSet::from([Element::VipPort(at)]);
    match rule.masquerade {
        Masquerade::Always => {
            elements.insert(Element::MasqueradeAlways(at));
        }
        Masquerade::OffCluster => {
            elements.insert(Element::MasqueradeOffCluster(at));
        }
        Masquerade::Never => {}
    }
    if let Some(sources) = &rule.allowed_sources {
        elements.insert(Element::Restricted(at));
        elements.extend(sources.iter().map(|it| Element::Allowed(at, *it)));
        let itself = rule.allows_node.then(|| Element::Allowed(at, Prefix::host(at.address)));
        elements.extend(itself);
    }
    elements.extend(rule.no_endpoints.map(|it| Element::NoEndpoints(at, it, rule.serves_pods)));
    elements
}

/// The rules that lead to these elements.
pub fn rules_of(elements: &BTreeSet<Element>) -> BTreeMap<VirtualAddress, FilterRule> {
    let nothing = FilterRule {
        allowed_sources: None,
        allows_node: false,
        no_endpoints: None,
        serves_pods: false,
        masquerade: Masquerade::Never,
    };
    let mut rules: BTreeMap<VirtualAddress, FilterRule> = BTreeMap::new();
    for element in elements {
        if let Element::VipPort(at) = element {
            rules.insert(*at, nothing.clone());
        }
    }
    for element in elements {
        let (Element::MasqueradeAlways(at)
        | Element::MasqueradeOffCluster(at)
        | Element::Restricted(at)
        | Element::Allowed(at, _)
        | Element::NoEndpoints(at, ..)) = element
        else {
            continue;
        };
        let Some(rule) = rules.get_mut(at) else { continue };
        match element {
            Element::MasqueradeAlways(_) => rule.masquerade = Masquerade::Always,
            Element::MasqueradeOffCluster(_) => rule.masquerade = Masquerade::OffCluster,
            Element::NoEndpoints(_, it, serves_pods) => {
                (rule.no_endpoints, rule.serves_pods) = (Some(*it), *serves_pods);
            }
            Element::Restricted(_) => drop(rule.allowed_sources.get_or_insert_default()),
            Element::Allowed(_, prefix) if *prefix == Prefix::host(at.address) => {
                rule.allows_node = true;
            }
            Element::Allowed(_, prefix) => {
                rule.allowed_sources.get_or_insert_default().push(*prefix);
            }
            _ => {}
        }
    }
    rules
}

impl Element {
    /// The name of its set.
    fn set(self) -> &'static str {
        match self {
            Self::Vip(_) => VIPS,
            Self::VipPort(_) => VIP_PORTS,
            Self::MasqueradeAlways(_) => MASQUERADE_ALWAYS,
            Self::MasqueradeOffCluster(_) => MASQUERADE_OFF_CLUSTER,
            Self::Restricted(_) => RESTRICTED,
            Self::Allowed(..) => ALLOWED,
            Self::NoEndpoints(..) => NO_ENDPOINTS,
            Self::Hairpin(_) => HAIRPIN,
            Self::Pods(_) => PODS,
        }
    }

    /// The table that it is in.
    pub fn family(self) -> Family {
        match self {
            Self::Vip(address) => Family::of(address),
            Self::VipPort(at)
            | Self::MasqueradeAlways(at)
            | Self::MasqueradeOffCluster(at)
            | Self::Restricted(at)
            | Self::Allowed(at, _)
            | Self::NoEndpoints(at, ..) => Family::of(at.address),
            Self::Hairpin(it) => Family::of(it.real_server.address),
            Self::Pods(prefix) => Family::of(prefix.address()),
        }
    }

    fn write(self, message: &mut Message) {
        let value = |it: &mut Message, kind: u16, key: &[u8]| {
            it.nested(kind, |it| {
                it.attribute(DATA_VALUE, key);
            });
        };
        match self {
            Self::Pods(prefix) => {
                message
                    .nested(LIST_ELEMENT, |it| value(it, ELEMENT_KEY, &octets(prefix.address())));
                // An interval ends before the next address, if there is one.
                if let Some(next) = next_address(prefix.last_address()) {
                    message.nested(LIST_ELEMENT, |it| {
                        it.attribute(ELEMENT_FLAGS, &be32(INTERVAL_END));
                        value(it, ELEMENT_KEY, &octets(next));
                    });
                }
            }
            Self::Allowed(at, prefix) => {
                let key = |address| [where_(at), octets(address)].concat();
                message.nested(LIST_ELEMENT, |it| {
                    value(it, ELEMENT_KEY, &key(prefix.address()));
                    value(it, ELEMENT_KEY_END, &key(prefix.last_address()));
                });
            }
            Self::NoEndpoints(at, what, serves_pods) => {
                let chain = match (what, serves_pods) {
                    (NoEndpoints::Reject, _) => REJECT,
                    (NoEndpoints::Drop, false) => DROP,
                    (NoEndpoints::Drop, true) => DROP_OUTSIDERS,
                };
                message.nested(LIST_ELEMENT, |it| {
                    value(it, ELEMENT_KEY, &where_(at));
                    it.nested(ELEMENT_DATA, |it| {
                        it.nested(DATA_VERDICT, |it| {
                            it.attribute(VERDICT_CODE, &GOTO.to_be_bytes());
                            it.attribute(VERDICT_CHAIN, &text(chain));
                        });
                    });
                });
            }
            Self::Vip(address) => {
                message.nested(LIST_ELEMENT, |it| value(it, ELEMENT_KEY, &octets(address)));
            }
            Self::Hairpin(Hairpin { real_server: RealServer { address, port }, protocol }) => {
                let at = VirtualAddress { address, port, protocol };
                let key = [where_(at), octets(address)].concat();
                message.nested(LIST_ELEMENT, |it| value(it, ELEMENT_KEY, &key));
            }
            Self::VipPort(at)
            | Self::MasqueradeAlways(at)
            | Self::MasqueradeOffCluster(at)
            | Self::Restricted(at) => {
                message.nested(LIST_ELEMENT, |it| value(it, ELEMENT_KEY, &where_(at)));
            }
        }
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn next_address(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) => u32::from(address).checked_add(1).map(|it| IpAddr::V4(it.into())),
        IpAddr::V6(address) => u128::from(address).checked_add(1).map(|it| IpAddr::V6(it.into())),
    }
}

/// Address, protocol and port as a key: each fills whole registers of four octets.
fn where_(at: VirtualAddress) -> Vec<u8> {
    let protocol = match at.protocol {
        TransportProtocol::Tcp => 6,
        TransportProtocol::Udp => 17,
        TransportProtocol::Sctp => 132,
    };
    let [high, low] = at.port.to_be_bytes();
    [octets(at.address), vec![protocol, 0, 0, 0, high, low, 0, 0]].concat()
}

/// The transaction that makes the elements `before` of tables into those `after`. What goes is removed first: a map has one
/// value for a key.
pub fn change<'a>(
    before: impl IntoIterator<Item = &'a Element>,
    after: impl IntoIterator<Item = &'a Element>,
) -> Transaction {
    let mut transaction = Transaction::default();
    for (message_type, flags, elements) in
        [(DEL_ELEMENTS, 0, by_set(before)), (NEW_ELEMENTS, CREATES, by_set(after))]
    {
        for ((family, set), elements) in elements {
            for part in elements.chunks(ELEMENTS_MAX) {
                let part = part.to_vec();
                transaction.add(message_type, flags, family, move |it| {
                    it.attribute(1, &text(TABLE)).attribute(2, &text(set));
                    it.nested(3, |it| part.iter().for_each(|element| element.write(it)));
                });
            }
        }
    }
    transaction
}

fn by_set<'a>(
    elements: impl IntoIterator<Item = &'a Element>,
) -> BTreeMap<(Family, &'static str), Vec<Element>> {
    let mut by_set: BTreeMap<_, Vec<Element>> = BTreeMap::new();
    for element in elements {
        by_set.entry((element.family(), element.set())).or_default().push(*element);
    }
    by_set
}

/// The sets of a table whose elements are read. (Networks of Pods are written again instead.)
pub(crate) const READ: [&str; 8] = [
    VIPS,
    VIP_PORTS,
    MASQUERADE_ALWAYS,
    MASQUERADE_OFF_CLUSTER,
    RESTRICTED,
    ALLOWED,
    HAIRPIN,
    NO_ENDPOINTS,
];

/// Asks for the elements of a set.
pub(crate) fn list(family: Family, set: &str, sequence: u32) -> Vec<u8> {
    let mut message = head(GET_ELEMENTS, NLM_F_DUMP, family, sequence);
    message.attribute(1, &text(TABLE)).attribute(2, &text(set));
    message.finish()
}

/// The elements in one message of a list; those that Fairway never makes are left out.
pub(crate) fn listed(payload: &[u8], family: Family, set: &str) -> Vec<Element> {
    let find = |within: &[u8], kind: u16| -> Option<Vec<u8>> {
        attributes(within).find(|(it, _)| *it == kind).map(|(_, value)| value.to_vec())
    };
    let list = payload.get(4..).and_then(|it| find(it, 3)).unwrap_or_default();
    let element = |element: &[u8]| -> Option<Element> {
        let key = find(&find(element, ELEMENT_KEY)?, DATA_VALUE)?;
        if set == VIPS {
            return Some(Element::Vip(address(&key, family)?));
        }
        let (at, rest) = read_where(&key, family)?;
        Some(match set {
            VIP_PORTS => Element::VipPort(at),
            MASQUERADE_ALWAYS => Element::MasqueradeAlways(at),
            MASQUERADE_OFF_CLUSTER => Element::MasqueradeOffCluster(at),
            RESTRICTED => Element::Restricted(at),
            HAIRPIN => {
                let real_server = RealServer { address: at.address, port: at.port };
                Element::Hairpin(Hairpin { real_server, protocol: at.protocol })
            }
            ALLOWED => {
                let first = address(rest, family)?;
                let end = find(&find(element, ELEMENT_KEY_END)?, DATA_VALUE)?;
                let (_, end) = read_where(&end, family)?;
                Element::Allowed(at, between(first, address(end, family)?)?)
            }
            NO_ENDPOINTS => {
                let verdict = find(&find(element, ELEMENT_DATA)?, DATA_VERDICT)?;
                let chain = find(&verdict, VERDICT_CHAIN)?;
                let (what, serves_pods) = match chain.split(|it| *it == 0).next()? {
                    it if it == REJECT.as_bytes() => (NoEndpoints::Reject, false),
                    it if it == DROP.as_bytes() => (NoEndpoints::Drop, false),
                    it if it == DROP_OUTSIDERS.as_bytes() => (NoEndpoints::Drop, true),
                    _ => return None,
                };
                Element::NoEndpoints(at, what, serves_pods)
            }
            _ => return None,
        })
    };
    attributes(&list).filter_map(|(_, it)| element(it)).collect()
}

/// Whether a part of a list has elements.
pub(crate) fn has_elements(payload: &[u8]) -> bool {
    let list = payload.get(4..).unwrap_or_default();
    attributes(list).any(|(kind, value)| kind == 3 && !value.is_empty())
}

fn address(bytes: &[u8], family: Family) -> Option<IpAddr> {
    match family {
        Family::Ipv4 => {
            let octets: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
            Some(IpAddr::from(octets))
        }
        Family::Ipv6 => {
            let octets: [u8; 16] = bytes.get(..16)?.try_into().ok()?;
            Some(IpAddr::from(octets))
        }
    }
}

/// A key as [`where_`] makes it, and what follows it.
fn read_where(key: &[u8], family: Family) -> Option<(VirtualAddress, &[u8])> {
    let address = address(key, family)?;
    let rest = key.get(usize::from(family.address_length())..)?;
    let protocol = match rest.first()? {
        6 => TransportProtocol::Tcp,
        17 => TransportProtocol::Udp,
        132 => TransportProtocol::Sctp,
        _ => return None,
    };
    let port = u16::from_be_bytes(rest.get(4..6)?.try_into().ok()?);
    Some((VirtualAddress { address, port, protocol }, rest.get(8..)?))
}

/// The prefix with these first and last addresses.
fn between(first: IpAddr, last: IpAddr) -> Option<Prefix> {
    let bits = if first.is_ipv4() { 32 } else { 128 };
    (0..=bits).find_map(|length| {
        let prefix = Prefix::new(first, length).ok()?;
        (prefix.address() == first && prefix.last_address() == last).then_some(prefix)
    })
}
