//! An interface of the machine.
//!
//! Knows its own attributes only; what is on it is in [`crate::Machine`]. Made by [`crate::decode`].

/// An interface, as the kernel last described it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The kernel's number of it. An interface that is deleted and made again has another one.
    pub index: u32,
    /// Its name, which can change.
    pub name: String,
    /// Alternative names (`ip link property add ... altname`). The kernel reports a change of them while the
    /// interface is up.
    pub alternative_names: Vec<String>,
    /// The kind of a virtual interface, in the kernel's word: `veth`, `bridge`, `vrf`. Hardware and the
    /// loopback interface have none.
    pub kind: Option<String>,
    /// Whether it is administratively up.
    pub is_up: bool,
    /// Whether it can carry frames: a cable is plugged in, or the other end of a veth pair is up. False
    /// while the interface is administratively down.
    pub has_carrier: bool,
    /// Whether it is the loopback interface.
    pub is_loopback: bool,
    /// Whether neighbours on it are found by ARP and neighbour discovery: not on tunnels and dummies
    /// (`NOARP`).
    pub resolves_addresses: bool,
    /// The largest packet that it carries, in bytes.
    pub mtu_bytes: u32,
    /// Its hardware address, where that is of Ethernet's kind and not all zeros.
    pub mac: Option<[u8; 6]>,
    /// The interface that it is a port of: a bridge, a bond or a VRF.
    pub master: Option<u32>,
    /// The routing table of a VRF device.
    pub vrf_table: Option<u32>,
}

impl Link {
    /// Whether it is the device of a VRF.
    pub fn is_vrf(&self) -> bool {
        self.kind.as_deref() == Some("vrf")
    }

    /// Whether it is administratively up and can carry frames.
    pub fn is_usable(&self) -> bool {
        self.is_up && self.has_carrier
    }

    /// Whether `name` is one of its names.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.alternative_names.iter().any(|it| it == name)
    }
}
