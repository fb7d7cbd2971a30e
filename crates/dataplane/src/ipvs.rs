//! IPVS over generic netlink: virtual servers and real servers as the kernel takes and gives them.
//!
//! The numbers are those of Linux (`linux/ip_vs.h`). Fairway forwards by masquerading alone, as kube-proxy does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use fairway_model::{IpvsScheduler, IpvsTimeouts, TransportProtocol};
use fairway_proxy::{RealServer, ServerSettings, VirtualAddress};
use netlink_packet_core::NLM_F_DUMP;

use crate::message::{Message, attributes};

/// The name of the family, whose number the kernel chooses when it loads the module.
pub const FAMILY: &str = "IPVS";
/// Its version.
const VERSION: u8 = 1;
/// The family that knows the others.
const CONTROLLER: u16 = 0x10;

const NEW_SERVICE: u8 = 1;
const SET_SERVICE: u8 = 2;
const DEL_SERVICE: u8 = 3;
const GET_SERVICE: u8 = 4;
const NEW_DEST: u8 = 5;
const SET_DEST: u8 = 6;
const DEL_DEST: u8 = 7;
const GET_DEST: u8 = 8;

const SET_CONFIG: u8 = 12;
const GET_CONFIG: u8 = 13;

const SERVICE: u16 = 1;
const DEST: u16 = 2;
const TIMEOUT_TCP: u16 = 4;
const TIMEOUT_TCP_FIN: u16 = 5;
const TIMEOUT_UDP: u16 = 6;

const SERVICE_AF: u16 = 1;
const SERVICE_PROTOCOL: u16 = 2;
const SERVICE_ADDRESS: u16 = 3;
const SERVICE_PORT: u16 = 4;
const SERVICE_MARK: u16 = 5;
const SERVICE_SCHEDULER: u16 = 6;
const SERVICE_FLAGS: u16 = 7;
const SERVICE_TIMEOUT: u16 = 8;
const SERVICE_NETMASK: u16 = 9;
const SERVICE_ENGINE: u16 = 11;
const SERVICE_STATISTICS: u16 = 12;

const DEST_ADDRESS: u16 = 1;
const DEST_PORT: u16 = 2;
const DEST_METHOD: u16 = 3;
const DEST_WEIGHT: u16 = 4;
const DEST_UPPER: u16 = 5;
const DEST_LOWER: u16 = 6;
const DEST_ACTIVE: u16 = 7;
const DEST_INACTIVE: u16 = 8;
const DEST_FAMILY: u16 = 11;

const PERSISTENT: u32 = 0x1;
/// The kernel's own: the service is in its table.
const HASHED: u32 = 0x2;
/// Of `mh` and `sh`: where the chosen real server has no weight, another one is chosen.
const FALLBACK: u32 = 0x8;
/// The port of the client counts, too.
const HASHES_PORT: u32 = 0x10;

const METHOD_MASQUERADE: u32 = 0;

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// One virtual server of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedServer {
    /// Where it is.
    pub at: VirtualAddress,
    /// Its settings; `None` if it has some that Fairway never makes.
    pub settings: Option<ServerSettings>,
    /// What it has carried since it was made.
    pub traffic: Traffic,
}

/// What a virtual server has carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Connections, or flows of protocols that have none.
    pub connections: u64,
    /// Packets from clients.
    pub packets_in: u64,
    /// Packets to clients.
    pub packets_out: u64,
    /// Octets from clients.
    pub bytes_in: u64,
    /// Octets to clients.
    pub bytes_out: u64,
}

impl Traffic {
    fn of(statistics: &[u8]) -> Self {
        let count = |kind: u16| {
            let found = attributes(statistics).find(|(it, _)| *it == kind);
            found.and_then(|(_, value)| number(value)).map_or(0, u64::from_ne_bytes)
        };
        Self {
            connections: count(1),
            packets_in: count(2),
            packets_out: count(3),
            bytes_in: count(4),
            bytes_out: count(5),
        }
    }
}

/// One real server of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedRealServer {
    /// Where it is.
    pub real_server: RealServer,
    /// Its share of new connections.
    pub weight: u32,
    /// Connections that it has, ending ones included.
    pub connections: u64,
}

/// Asks for the number of the family.
pub(crate) fn family_request(sequence: u32) -> Vec<u8> {
    let mut message = Message::new(CONTROLLER, 0, sequence, &[3, 1, 0, 0]);
    message.attribute(2, &[FAMILY.as_bytes(), &[0]].concat());
    message.finish()
}

/// The number of the family.
pub(crate) fn family_of(payload: &[u8]) -> Option<u16> {
    let all = attributes(payload.get(4..)?);
    let id = all.filter(|(kind, _)| *kind == 1).find_map(|(_, value)| value.try_into().ok())?;
    Some(u16::from_ne_bytes(id))
}

fn message(family: u16, command: u8, flags: u16, sequence: u32) -> Message {
    Message::new(family, flags, sequence, &[command, VERSION, 0, 0])
}

/// How long connections without packets are known, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Of TCP.
    pub tcp: u32,
    /// Of TCP after a FIN.
    pub tcp_fin: u32,
    /// Of UDP.
    pub udp: u32,
}

impl Timeouts {
    /// These, with those that an operator chose.
    pub fn with(self, chosen: IpvsTimeouts) -> Self {
        let seconds = |chosen: Option<Duration>, now: u32| {
            chosen.map_or(now, |it| u32::try_from(it.as_secs()).unwrap_or(u32::MAX))
        };
        Self {
            tcp: seconds(chosen.tcp, self.tcp),
            tcp_fin: seconds(chosen.tcp_fin, self.tcp_fin),
            udp: seconds(chosen.udp, self.udp),
        }
    }
}

impl std::fmt::Display for Timeouts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{},{}", self.tcp, self.tcp_fin, self.udp)
    }
}

impl std::str::FromStr for Timeouts {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = text.split(',').map(str::parse);
        let mut next = || all.next().unwrap_or_else(|| "".parse());
        Ok(Self { tcp: next()?, tcp_fin: next()?, udp: next()? })
    }
}

/// Asks for the timeouts.
pub(crate) fn get_timeouts(family: u16, sequence: u32) -> Vec<u8> {
    message(family, GET_CONFIG, 0, sequence).finish()
}

/// Sets the timeouts.
pub(crate) fn set_timeouts(family: u16, timeouts: Timeouts, sequence: u32) -> Vec<u8> {
    let mut message = message(family, SET_CONFIG, 0, sequence);
    message.attribute(TIMEOUT_TCP, &timeouts.tcp.to_ne_bytes());
    message.attribute(TIMEOUT_TCP_FIN, &timeouts.tcp_fin.to_ne_bytes());
    message.attribute(TIMEOUT_UDP, &timeouts.udp.to_ne_bytes());
    message.finish()
}

/// The timeouts, from the answer.
pub(crate) fn timeouts(payload: &[u8]) -> Option<Timeouts> {
    let seconds = |kind: u16| within(payload, kind).and_then(number).map(u32::from_ne_bytes);
    Some(Timeouts {
        tcp: seconds(TIMEOUT_TCP)?,
        tcp_fin: seconds(TIMEOUT_TCP_FIN)?,
        udp: seconds(TIMEOUT_UDP)?,
    })
}

/// Asks for all virtual servers.
pub(crate) fn list(family: u16, sequence: u32) -> Vec<u8> {
    message(family, GET_SERVICE, NLM_F_DUMP, sequence).finish()
}

/// Asks for one virtual server.
pub(crate) fn get(family: u16, at: VirtualAddress, sequence: u32) -> Vec<u8> {
    let mut message = message(family, GET_SERVICE, 0, sequence);
    message.nested(SERVICE, |it| name(it, at));
    message.finish()
}

/// Asks for the real servers of one.
pub(crate) fn list_real_servers(family: u16, at: VirtualAddress, sequence: u32) -> Vec<u8> {
    let mut message = message(family, GET_DEST, NLM_F_DUMP, sequence);
    message.nested(SERVICE, |it| name(it, at));
    message.finish()
}

/// A change of a virtual server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Make it.
    Add(VirtualAddress, ServerSettings),
    /// Change its settings; its real servers stay.
    Set(VirtualAddress, ServerSettings),
    /// Remove it.
    Remove(VirtualAddress),
    /// Add a real server of this weight.
    AddReal(VirtualAddress, RealServer, u32),
    /// Change its weight.
    SetReal(VirtualAddress, RealServer, u32),
    /// Remove it.
    RemoveReal(VirtualAddress, RealServer),
}

impl Change {
    /// The request.
    pub(crate) fn request(self, family: u16, sequence: u32) -> Vec<u8> {
        let (command, at) = match self {
            Self::Add(at, _) => (NEW_SERVICE, at),
            Self::Set(at, _) => (SET_SERVICE, at),
            Self::Remove(at) => (DEL_SERVICE, at),
            Self::AddReal(at, ..) => (NEW_DEST, at),
            Self::SetReal(at, ..) => (SET_DEST, at),
            Self::RemoveReal(at, _) => (DEL_DEST, at),
        };
        let mut message = message(family, command, 0, sequence);
        message.nested(SERVICE, |it| {
            name(it, at);
            if let Self::Add(_, settings) | Self::Set(_, settings) = self {
                settings_of(it, at, settings);
            }
        });
        match self {
            Self::AddReal(_, real, weight) | Self::SetReal(_, real, weight) => {
                message.nested(DEST, |it| {
                    real_name(it, at, real);
                    it.attribute(DEST_METHOD, &METHOD_MASQUERADE.to_ne_bytes());
                    it.attribute(DEST_WEIGHT, &weight.to_ne_bytes());
                    it.attribute(DEST_UPPER, &0_u32.to_ne_bytes());
                    it.attribute(DEST_LOWER, &0_u32.to_ne_bytes());
                });
            }
            Self::RemoveReal(_, real) => {
                message.nested(DEST, |it| real_name(it, at, real));
            }
            Self::Add(..) | Self::Set(..) | Self::Remove(_) => {}
        }
        message.finish()
    }
}

fn family_number(address: IpAddr) -> u16 {
    if address.is_ipv4() { AF_INET } else { AF_INET6 }
}

/// The kernel fills a shorter address up with zeros.
fn write_address(message: &mut Message, kind: u16, address: IpAddr) {
    match address {
        IpAddr::V4(address) => message.attribute(kind, &address.octets()),
        IpAddr::V6(address) => message.attribute(kind, &address.octets()),
    };
}

fn protocol_number(protocol: TransportProtocol) -> u16 {
    match protocol {
        TransportProtocol::Tcp => 6,
        TransportProtocol::Udp => 17,
        TransportProtocol::Sctp => 132,
    }
}

fn name(message: &mut Message, at: VirtualAddress) {
    message.attribute(SERVICE_AF, &family_number(at.address).to_ne_bytes());
    message.attribute(SERVICE_PROTOCOL, &protocol_number(at.protocol).to_ne_bytes());
    write_address(message, SERVICE_ADDRESS, at.address);
    message.attribute(SERVICE_PORT, &at.port.to_be_bytes());
}

fn settings_of(message: &mut Message, at: VirtualAddress, settings: ServerSettings) {
    let ServerSettings { scheduler, persistence } = settings;
    let timeout = persistence.map_or(0, |it| u32::try_from(it.as_secs()).unwrap_or(u32::MAX));
    let netmask = if at.address.is_ipv4() { u32::MAX } else { 128 };
    message.attribute(SERVICE_SCHEDULER, &[scheduler.name().as_bytes(), &[0]].concat());
    let flags = [flags_of(settings).to_ne_bytes(), u32::MAX.to_ne_bytes()].concat();
    message.attribute(SERVICE_FLAGS, &flags);
    message.attribute(SERVICE_TIMEOUT, &timeout.to_ne_bytes());
    message.attribute(SERVICE_NETMASK, &netmask.to_ne_bytes());
}

/// `Ours:` `mh` falls back: without it a real server of weight 0 still gets new connections.
fn flags_of(settings: ServerSettings) -> u32 {
    let persistent = if settings.persistence.is_some() { PERSISTENT } else { 0 };
    let scheduler = match settings.scheduler {
        IpvsScheduler::MaglevHash => FALLBACK | HASHES_PORT,
        _ => 0,
    };
    persistent | scheduler
}

/// Without a family of its own it is of that of its virtual server.
fn real_name(message: &mut Message, at: VirtualAddress, real: RealServer) {
    write_address(message, DEST_ADDRESS, real.address);
    message.attribute(DEST_PORT, &real.port.to_be_bytes());
    if real.address.is_ipv4() != at.address.is_ipv4() {
        message.attribute(DEST_FAMILY, &family_number(real.address).to_ne_bytes());
    }
}

fn number<const LENGTH: usize>(value: &[u8]) -> Option<[u8; LENGTH]> {
    value.get(..LENGTH)?.try_into().ok()
}

fn address(value: &[u8], family: u16) -> Option<IpAddr> {
    match family {
        AF_INET => number(value).map(|it: [u8; 4]| Ipv4Addr::from(it).into()),
        AF_INET6 => number(value).map(|it: [u8; 16]| Ipv6Addr::from(it).into()),
        _ => None,
    }
}

/// What holds the attribute of this kind.
fn within(payload: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(payload.get(4..)?).find(|(it, _)| *it == kind).map(|(_, value)| value)
}

/// A virtual server of a list; `None` if it is one by mark, which has no address, or of a protocol that Services lack.
pub fn listed_server(payload: &[u8]) -> Option<ListedServer> {
    let service = within(payload, SERVICE)?;
    let find = |kind: u16| attributes(service).find(|(it, _)| *it == kind).map(|(_, value)| value);
    if find(SERVICE_MARK).is_some() {
        return None;
    }
    let family = u16::from_ne_bytes(number(find(SERVICE_AF)?)?);
    let protocol = match u16::from_ne_bytes(number(find(SERVICE_PROTOCOL)?)?) {
        6 => TransportProtocol::Tcp,
        17 => TransportProtocol::Udp,
        132 => TransportProtocol::Sctp,
        _ => return None,
    };
    let at = VirtualAddress {
        address: address(find(SERVICE_ADDRESS)?, family)?,
        port: u16::from_be_bytes(number(find(SERVICE_PORT)?)?),
        protocol,
    };
    let settings = || {
        let scheduler = find(SERVICE_SCHEDULER)?.split(|it| *it == 0).next()?;
        let scheduler = IpvsScheduler::named(std::str::from_utf8(scheduler).ok()?)?;
        let flags = u32::from_ne_bytes(number(find(SERVICE_FLAGS)?)?) & !HASHED;
        let timeout = u32::from_ne_bytes(number(find(SERVICE_TIMEOUT)?)?);
        let is_persistent = flags & PERSISTENT != 0;
        let persistence = is_persistent.then(|| Duration::from_secs(timeout.into()));
        let settings = ServerSettings { scheduler, persistence };
        (flags == flags_of(settings) && find(SERVICE_ENGINE).is_none()).then_some(settings)
    };
    let traffic = find(SERVICE_STATISTICS).map(Traffic::of).unwrap_or_default();
    Some(ListedServer { at, settings: settings(), traffic })
}

/// A real server of a list, of a virtual server of this family.
pub fn listed_real_server(payload: &[u8], of: IpAddr) -> Option<ListedRealServer> {
    let dest = within(payload, DEST)?;
    let find = |kind: u16| attributes(dest).find(|(it, _)| *it == kind).map(|(_, value)| value);
    let count = |kind: u16| find(kind).and_then(number).map_or(0, u32::from_ne_bytes);
    let family = find(DEST_FAMILY).and_then(number).map(u16::from_ne_bytes);
    let family = family.unwrap_or_else(|| family_number(of));
    Some(ListedRealServer {
        real_server: RealServer {
            address: address(find(DEST_ADDRESS)?, family)?,
            port: u16::from_be_bytes(number(find(DEST_PORT)?)?),
        },
        weight: count(DEST_WEIGHT),
        connections: u64::from(count(DEST_ACTIVE)) + u64::from(count(DEST_INACTIVE)),
    })
}

#[cfg(test)]
mod tests;
