//! On which interfaces can this machine answer? Decided by what the kernel says of each link: its kind, its
//! master, its state, and by names that are left out.
//!
//! Pure. Called by the edge after each change of the machine.

use std::fmt;
use std::sync::Arc;

use fairway_ground::MacAddress;
use fairway_netlink::{Link, Machine};
use regex::RegexSet;

/// An interface on which addresses are answered for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The kernel's number of it.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its other names.
    pub alternative_names: Vec<String>,
    /// Its hardware address.
    pub mac: MacAddress,
    /// It forwards IPv6 packets, which neighbours are told.
    pub is_router: bool,
}

impl Segment {
    /// All its names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.alternative_names).map(String::as_str)
    }

    /// Whether `name` is one of its names.
    pub fn is_called(&self, name: &str) -> bool {
        self.names().any(|it| it == name)
    }
}

/// Why an interface cannot be answered on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsuited {
    /// Its name is one of those that are left out.
    Excluded,
    /// It is the loopback interface.
    Loopback,
    /// It is administratively down.
    Down,
    /// It has no carrier.
    NoCarrier,
    /// It does not resolve addresses (`NOARP`), or has no address of Ethernet's kind: a tunnel, a dummy.
    NoResolution,
    /// It is a port of this device, which receives its frames.
    PortOf(String),
    /// It is the device of a VRF, and carries no frames itself.
    Vrf,
}

impl fmt::Display for Unsuited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Excluded => f.write_str("its name is excluded from layer 2"),
            Self::Loopback => f.write_str("it is the loopback interface"),
            Self::Down => f.write_str("it is down"),
            Self::NoCarrier => f.write_str("it has no carrier"),
            Self::NoResolution => f.write_str("it does not use ARP"),
            Self::PortOf(master) => write!(f, "it is a port of {master}"),
            Self::Vrf => f.write_str("it is the device of a VRF"),
        }
    }
}

/// Names of interfaces that are left out, as regular expressions that match anywhere in a name.
#[derive(Debug, Clone)]
pub struct Excluded(Arc<RegexSet>);

/// Those of MetalLB's ConfigMap `metallb-excludel2`, as it installs it: interfaces of containers and overlays.
pub const EXCLUDED_BY_DEFAULT: [&str; 14] = [
    "^docker.*",
    "^cbr.*",
    "^dummy.*",
    "^virbr.*",
    "^lxcbr.*",
    "^veth.*",
    "^lo$",
    "^cali.*",
    "^tunl.*",
    "^flannel.*",
    "^kube-ipvs.*",
    "^cni.*",
    "^nodelocaldns.*",
    "^lxc.*",
];

impl Excluded {
    /// Those names.
    ///
    /// # Errors
    /// An expression is not valid; which one and why.
    pub fn new(expressions: &[impl AsRef<str>]) -> Result<Self, regex::Error> {
        RegexSet::new(expressions).map(|set| Self(Arc::new(set)))
    }

    /// Nothing.
    pub fn nothing() -> Self {
        Self(Arc::new(RegexSet::empty()))
    }

    /// Whether an interface of this name is left out.
    pub fn has(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

/// Devices that receive the frames of their ports. Ports of others, as of a VRF, receive their own.
const TAKES_FRAMES_OF_PORTS: [&str; 7] =
    ["bridge", "bond", "team", "openvswitch", "ovs", "hsr", "batadv"];

/// Whether addresses can be answered for on an interface.
///
/// # Errors
/// Why not.
pub fn segment(
    machine: &Machine,
    link: &Link,
    excluded: &Excluded,
    is_router: bool,
) -> Result<Segment, Unsuited> {
    let names = std::iter::once(&link.name).chain(&link.alternative_names);
    if names.into_iter().any(|name| excluded.has(name)) {
        return Err(Unsuited::Excluded);
    }
    if link.is_loopback {
        return Err(Unsuited::Loopback);
    }
    if link.is_vrf() {
        return Err(Unsuited::Vrf);
    }
    let master = link.master.and_then(|index| machine.link(index));
    let taken_by = master
        .filter(|it| it.kind.as_deref().is_some_and(|kind| TAKES_FRAMES_OF_PORTS.contains(&kind)));
    // A device that Open vSwitch made for the host is listed below its datapath, and receives its frames.
    let is_of_host = link.kind.as_deref() == Some("openvswitch");
    if let Some(master) = taken_by.filter(|_| !is_of_host) {
        return Err(Unsuited::PortOf(master.name.clone()));
    }
    let Some(mac) = link.mac.map(MacAddress).filter(|_| link.resolves_addresses) else {
        return Err(Unsuited::NoResolution);
    };
    if !link.is_up {
        return Err(Unsuited::Down);
    }
    if !link.has_carrier {
        return Err(Unsuited::NoCarrier);
    }
    Ok(Segment {
        index: link.index,
        name: link.name.clone(),
        alternative_names: link.alternative_names.clone(),
        mac,
        is_router,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairway_netlink::Fact;

    fn link(index: u32, name: &str) -> Link {
        Link {
            index,
            name: name.to_owned(),
            alternative_names: Vec::new(),
            kind: None,
            is_up: true,
            has_carrier: true,
            is_loopback: false,
            resolves_addresses: true,
            mtu_bytes: 1_500,
            mac: Some([2, 0, 0, 0, 0, 1]),
            master: None,
            vrf_table: None,
        }
    }

    fn of_kind(index: u32, name: &str, kind: &str) -> Link {
        Link { kind: Some(kind.to_owned()), ..link(index, name) }
    }

    fn outcome(links: &[Link]) -> Result<String, Unsuited> {
        let machine: Machine = links.iter().cloned().map(Fact::Link).collect();
        let excluded = Excluded::new(&EXCLUDED_BY_DEFAULT).unwrap();
        segment(&machine, &links[0], &excluded, false).map(|it| it.name)
    }

    #[test]
    fn what_receives_frames_itself_is_answered_on() {
        for link in [
            link(1, "eth0"),
            of_kind(1, "bond0", "bond"),
            of_kind(1, "br0", "bridge"),
            of_kind(1, "eth0.10", "vlan"),
            of_kind(1, "mv0", "macvlan"),
            of_kind(1, "ovs-int", "openvswitch"),
        ] {
            assert_eq!(outcome(std::slice::from_ref(&link)), Ok(link.name));
        }
        let below = |master: &Link, link: Link| Link { master: Some(master.index), ..link };
        let vrf = of_kind(9, "red", "vrf");
        assert!(outcome(&[below(&vrf, link(1, "eth0")), vrf.clone()]).is_ok());
        let switch = of_kind(9, "ovs-system", "openvswitch");
        assert!(
            outcome(&[below(&switch, of_kind(1, "br-ex", "openvswitch")), switch.clone()]).is_ok()
        );
        let port_of = |name: &str| Err(Unsuited::PortOf(name.to_owned()));
        assert_eq!(
            outcome(&[below(&switch, link(1, "eth0")), switch.clone()]),
            port_of("ovs-system")
        );
        for kind in ["bridge", "bond", "team"] {
            let master = of_kind(9, "m0", kind);
            assert_eq!(outcome(&[below(&master, link(1, "eth0")), master.clone()]), port_of("m0"));
        }
    }

    #[test]
    fn what_cannot_answer_says_why() {
        let down = Link { is_up: false, has_carrier: false, ..link(1, "eth0") };
        let unplugged = Link { has_carrier: false, ..link(1, "eth0") };
        let tunnel = Link { resolves_addresses: false, ..link(1, "wg0") };
        let addressless = Link { mac: None, ..link(1, "ppp0") };
        let loopback = Link { is_loopback: true, mac: None, ..link(1, "loop") };
        for (link, reason) in [
            (down, Unsuited::Down),
            (unplugged, Unsuited::NoCarrier),
            (tunnel, Unsuited::NoResolution),
            (addressless, Unsuited::NoResolution),
            (loopback, Unsuited::Loopback),
            (of_kind(1, "red", "vrf"), Unsuited::Vrf),
            (of_kind(1, "veth12ab", "veth"), Unsuited::Excluded),
            (link(1, "docker0"), Unsuited::Excluded),
        ] {
            assert_eq!(outcome(&[link]), Err(reason));
        }
    }
}
