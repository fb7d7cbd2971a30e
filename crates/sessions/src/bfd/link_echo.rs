//! Echo packets over IPv4, as in FRR: from our own address to our own address, sent to the link-layer address
//! of the remote system. It forwards them back like any router, and its BFD never sees them (RFC 5881 §4).
//!
//! This requires a packet socket, and the capability `NET_RAW`. The link-layer address of the remote system
//! is in the kernel's neighbour table, since control packets are sent to it, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::libc::sock_filter;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt as options};

use crate::{addresses, sockopt};
use fairway_ground::{BfdPath, InterfaceName};

/// Octets of the headers of IPv4 (without options) and UDP.
const HEADERS_LENGTH_BYTES: usize = 28;

/// Octets of one of our packets: headers, and the payload of an echo packet.
const PACKET_LENGTH_BYTES_MAX: usize = 128;

/// Maximum number of rows of the kernel's table: a full one of the largest common size.
const NEIGHBOURS_MAX: usize = 4_096;

/// DSCP CS6, as for control packets.
const TRAFFIC_CLASS: u8 = 0xC0;
const TTL: u8 = 255;
const UDP: u8 = 17;

/// The link-layer address of the remote system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkNeighbour {
    /// The interface index.
    pub(super) index: u32,
    /// Its link-layer address.
    pub(super) address: [u8; 6],
}

/// The known neighbours, by VRF and address: each VRF may use the same addresses.
#[derive(Debug, Default)]
pub(super) struct Neighbours(BTreeMap<NeighbourKey, LinkNeighbour>);

type NeighbourKey = (Option<InterfaceName>, Ipv4Addr);

/// A device and its VRF.
type Device = (u32, Option<InterfaceName>);

impl Neighbours {
    /// Reads the kernel's table again, and keeps only the `wanted` neighbours.
    pub(super) fn look(&mut self, wanted: &BTreeSet<NeighbourKey>) {
        let mut devices = BTreeMap::new();
        let mut device = |name: &str| -> Option<Device> {
            *devices.entry(name.to_owned()).or_insert_with(|| {
                let vrf = addresses::vrf_of(name).map(|vrf| vrf.parse()).transpose();
                Some((if_nametoindex(name).ok()?, vrf.ok()?))
            })
        };
        // An empty table, if none is wanted.
        let table = match wanted.is_empty() {
            true => String::new(),
            false => fs::read_to_string("/proc/thread-self/net/arp").unwrap_or_default(),
        };
        self.learn(wanted, &table, &mut device);
    }

    /// A neighbour that is missing while the kernel resolves it again keeps its last address.
    fn learn(
        &mut self,
        wanted: &BTreeSet<NeighbourKey>,
        table: &str,
        device: &mut impl FnMut(&str) -> Option<Device>,
    ) {
        self.0.retain(|key, _| wanted.contains(key));
        let rows = table.lines().skip(1).take(NEIGHBOURS_MAX).filter_map(parse_row);
        for (neighbour, address, name) in rows {
            if let Some((index, vrf)) = device(name)
                && wanted.contains(&(vrf, neighbour))
            {
                self.0.insert((vrf, neighbour), LinkNeighbour { index, address });
            }
        }
    }

    /// The link-layer address for `path`.
    pub(super) fn of(&self, path: &BfdPath) -> Option<LinkNeighbour> {
        self.0.get(&key(path)?).copied()
    }
}

/// The key of the remote system of `path`, if it can be in the table.
pub(super) fn key(path: &BfdPath) -> Option<NeighbourKey> {
    match path.remote {
        IpAddr::V4(address) => Some((path.vrf, address)),
        IpAddr::V6(_) => None,
    }
}

/// Address, link-layer address and device of a complete row.
fn parse_row(row: &str) -> Option<(Ipv4Addr, [u8; 6], &str)> {
    const ETHERNET: u32 = 1;
    const COMPLETE: u32 = 2;
    let number = |text: &str| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let mut words = row.split_ascii_whitespace();
    let neighbour = words.next()?.parse().ok()?;
    let is_ethernet = number(words.next()?)? == ETHERNET;
    let is_complete = number(words.next()?)? & COMPLETE != 0;
    let octet = |text: &str| u8::from_str_radix(text, 16).ok();
    let octets: Vec<u8> = words.next()?.split(':').map(octet).collect::<Option<_>>()?;
    let _mask = words.next()?;
    let device = words.next()?;
    (is_ethernet && is_complete).then_some((neighbour, octets.try_into().ok()?, device))
}

/// A socket that receives echo packets on the interface with index `index`.
pub(super) fn open(index: u32, port: u16) -> Result<OwnedFd, Errno> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    // Without a protocol it receives nothing until the filter is set and it is bound.
    let fd = socket(AddressFamily::Packet, SockType::Datagram, flags, None)?;
    sockopt::set_filter(&fd, &filter(port))?;
    setsockopt(&fd, options::ReceiveTimestampns, &true)?;
    sockopt::bind_link(&fd, index)?;
    Ok(fd)
}

/// Accepts forwarded UDP packets to `port`: packets from the remote system itself are for the kernel to
/// forward. Packets begin with the IPv4 header.
fn filter(port: u16) -> [sock_filter; 11] {
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    [
        // The TTL differs from the one it was sent with,
        instruction(0x30, 0, 0, 8),
        instruction(0x15, 8, 0, u32::from(TTL)),
        // the protocol is UDP,
        instruction(0x30, 0, 0, 9),
        instruction(0x15, 0, 6, u32::from(UDP)),
        // it is not a later fragment,
        instruction(0x28, 0, 0, 6),
        instruction(0x45, 4, 0, 0x1FFF),
        // and the destination port after the header matches.
        instruction(0xB1, 0, 0, 0),
        instruction(0x48, 0, 0, 2),
        instruction(0x15, 0, 1, u32::from(port)),
        instruction(0x06, 0, 0, 0xFFFF),
        instruction(0x06, 0, 0, 0),
    ]
}

/// Sends `payload` from `own` to `own` via `neighbour`.
pub(super) fn send(
    socket: &OwnedFd,
    neighbour: LinkNeighbour,
    own: Ipv4Addr,
    port: u16,
    payload: &[u8],
) -> Result<(), Errno> {
    let mut packet = [0; PACKET_LENGTH_BYTES_MAX];
    let length = build(&mut packet, own, port, payload).ok_or(Errno::EMSGSIZE)?;
    let packet = packet.get(..length).ok_or(Errno::EMSGSIZE)?;
    sockopt::send_to_link(socket, neighbour.index, neighbour.address, packet)
}

/// Assembles a packet; returns its length.
fn build(packet: &mut [u8], own: Ipv4Addr, port: u16, payload: &[u8]) -> Option<usize> {
    let length = HEADERS_LENGTH_BYTES.checked_add(payload.len())?;
    let total = u16::try_from(length).ok()?.to_be_bytes();
    let udp = u16::try_from(payload.len().checked_add(8)?).ok()?.to_be_bytes();
    let port = port.to_be_bytes();
    let mut headers = [0; HEADERS_LENGTH_BYTES];
    headers[0] = 0x45;
    headers[1] = TRAFFIC_CLASS;
    headers[2..4].copy_from_slice(&total);
    headers[8] = TTL;
    headers[9] = UDP;
    headers[12..16].copy_from_slice(&own.octets());
    headers[16..20].copy_from_slice(&own.octets());
    let sum = checksum(headers.first_chunk()?).to_be_bytes();
    headers[10..12].copy_from_slice(&sum);
    headers[20..22].copy_from_slice(&port);
    headers[22..24].copy_from_slice(&port);
    headers[24..26].copy_from_slice(&udp);
    // No UDP checksum (RFC 768): only we read this packet, and a session verifies its content.
    let (place, rest) = packet.split_at_mut_checked(HEADERS_LENGTH_BYTES)?;
    place.copy_from_slice(&headers);
    rest.get_mut(..payload.len())?.copy_from_slice(payload);
    Some(length)
}

/// The checksum of an IPv4 header (RFC 791 §3.1).
fn checksum(header: &[u8; 20]) -> u16 {
    let words = header.as_chunks::<2>().0.iter();
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    let folded = (sum & 0xFFFF).wrapping_add(sum >> 16);
    let folded = (folded & 0xFFFF).wrapping_add(folded >> 16);
    !u16::try_from(folded & 0xFFFF).unwrap_or(0)
}

/// An echo packet that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Returned<'a> {
    pub(super) source: Ipv4Addr,
    pub(super) source_port: u16,
    pub(super) destination: Ipv4Addr,
    pub(super) ttl: u8,
    pub(super) payload: &'a [u8],
}

/// Decodes a packet that passed the filter.
pub(super) fn parse(packet: &[u8]) -> Option<Returned<'_>> {
    let (first, _) = packet.split_first()?;
    let header_length = usize::from(first & 0x0F).checked_mul(4)?;
    let (header, datagram) = packet.split_at_checked(header_length)?;
    let address = |at| header.get(at..)?.first_chunk::<4>().copied().map(Ipv4Addr::from);
    let word = |at| datagram.get(at..)?.first_chunk::<2>().copied().map(u16::from_be_bytes);
    let payload = datagram.get(8..usize::from(word(4)?))?;
    Some(Returned {
        source: address(12)?,
        source_port: word(0)?,
        destination: address(16)?,
        ttl: *header.get(8)?,
        payload,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_taken_apart_as_it_was_put_together() {
        let own = Ipv4Addr::new(192, 0, 2, 1);
        let mut packet = [0; PACKET_LENGTH_BYTES_MAX];
        let length = build(&mut packet, own, 3785, &[7; 24]).unwrap();
        assert_eq!(length, 52);
        let payload: &[u8] = &[7; 24];
        let expected =
            Returned { source: own, source_port: 3785, destination: own, ttl: 255, payload };
        assert_eq!(parse(&packet[..length]), Some(expected));
        // A header including its checksum has a checksum of zero.
        assert_eq!(checksum(packet.first_chunk().unwrap()), 0);
        for cut in 0..length {
            assert_eq!(parse(&packet[..cut]), None, "{cut}");
        }
        assert_eq!(build(&mut packet, own, 3785, &[0; 101]), None);
    }

    #[test]
    fn each_vrf_has_neighbours_of_its_own_and_they_stay_while_the_kernel_asks_again() {
        let address = Ipv4Addr::new(192, 0, 2, 7);
        let red: Option<InterfaceName> = "red".parse().ok();
        let table = |flags: &str| {
            format!(
                "IP address HW type Flags HW address Mask Device\n\
                 192.0.2.7  0x1  0x2    02:00:00:00:00:0a  *  eth0\n\
                 192.0.2.7  0x1  {flags}  02:00:00:00:00:0b  *  eth1\n\
                 192.0.2.8  0x1  0x2    02:00:00:00:00:0c  *  eth0\n\
                 192.0.2.7  0x1  0x2    02:00:00:00:00:0d  *  gone\n"
            )
        };
        let mut device = |name: &str| match name {
            "eth0" => Some((2, None)),
            "eth1" => Some((3, red)),
            _ => None,
        };
        let both = BTreeSet::from([(None, address), (red, address)]);
        let mut neighbours = Neighbours::default();
        let mut indices = |wanted: &BTreeSet<_>, table: &str| {
            neighbours.learn(wanted, table, &mut device);
            neighbours.0.iter().map(|((vrf, _), it)| (*vrf, it.index)).collect::<Vec<_>>()
        };
        assert_eq!(indices(&both, &table("0x0")), [(None, 2)]);
        assert_eq!(indices(&both, &table("0x2")), [(None, 2), (red, 3)]);
        assert_eq!(indices(&both, &table("0x0")), [(None, 2), (red, 3)]);
        assert_eq!(indices(&both, ""), [(None, 2), (red, 3)]);
        let one = BTreeSet::from([(red, address)]);
        assert_eq!(indices(&one, ""), [(red, 3)]);
        assert_eq!(indices(&both, ""), [(red, 3)]);
    }

    #[test]
    fn rows_of_the_table_that_are_not_complete_name_nobody() {
        let row = "192.0.2.7  0x1  0x2  02:00:00:00:00:0a  *  eth0";
        let address = [2, 0, 0, 0, 0, 10];
        assert_eq!(parse_row(row), Some((Ipv4Addr::new(192, 0, 2, 7), address, "eth0")));
        assert_eq!(parse_row(&row.replace("0x2 ", "0x0 ")), None);
        assert_eq!(parse_row(&row.replace("0x1 ", "0x304 ")), None);
        assert_eq!(parse_row(&row.replace("eth0", "")), None);
        assert_eq!(parse_row(&row.replace(":0a", "")), None);
        assert_eq!(parse_row(""), None);
    }
}
