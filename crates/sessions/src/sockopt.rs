//! Typed socket options for BGP and BFD, and the few other system calls that `nix` does not wrap, or not in a
//! reusable form. This is the only unsafe code of the crate.

#![allow(unsafe_code)]

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::unix::AsyncFd;

use fairway_ground::{InterfaceName, Password, Prefix};
use fairway_seam::Stall;

/// DSCP CS6 (network control), which routers expect for routing protocols.
const TRAFFIC_CLASS: libc::c_int = 0xC0;

/// `ICMP6_FILTER` (RFC 3542 §3.2).
const ICMP6_FILTER: libc::c_int = 1;

/// Size of the kernel's `struct tcp_md5sig`: a socket address (128), flags, prefix length, key
/// length (2), interface (4), key (80).
const MD5_LENGTH_BYTES: usize = 216;
/// The offset of its flags and its prefix length; `TCP_MD5SIG_EXT` uses them.
const MD5_FLAGS: Range<usize> = 128..130;
/// `TCP_MD5SIG_FLAG_PREFIX`.
const MD5_FLAG_PREFIX: u8 = 1;

/// Maximum length of the headers of a SYN: 40 bytes of IPv6, its extensions, 60 of TCP.
const SYN_LENGTH_BYTES_MAX: usize = 512;

/// A segment that was repeated so often is a fault of the path, and no loss that passes: the third attempt is a second
/// or more after the first.
const STALLED: u8 = 2;

/// Linux's number of the option; `libc` does not define it.
const TCP_AO_GET_KEYS: libc::c_int = 41;

/// Size of the kernel's `struct tcp_ao_getsockopt`.
pub(super) const AO_STATE_LENGTH_BYTES: usize = 304;

/// Maximum number of keys of one peer: a key ID has one byte.
const AO_STATES_MAX: usize = 256;

/// Sets the TCP-MD5 key for all segments exchanged with `peer` (RFC 2385); `None` removes it. On a listener
/// it must be set before the first SYN.
pub(super) fn set_md5(
    socket: &impl AsFd,
    peer: IpAddr,
    key: Option<&Password>,
) -> Result<(), Errno> {
    let value = md5_option(peer, key.map_or(&[], Password::expose)).ok_or(Errno::EINVAL)?;
    match set_bytes(socket, libc::IPPROTO_TCP, libc::TCP_MD5SIG, &value) {
        // There was no key to remove.
        Err(Errno::ENOENT) if key.is_none() => Ok(()),
        outcome => outcome,
    }
}

/// Sets the TCP-MD5 key for connections from `range`; `None` removes it. A neighbour with its own key keeps
/// that: the kernel uses the key of the longest prefix. One without a key must use that of the range, since
/// the kernel does not support exceptions.
pub(super) fn set_md5_range(
    socket: &impl AsFd,
    range: Prefix,
    key: Option<&Password>,
) -> Result<(), Errno> {
    let mut value =
        md5_option(range.address(), key.map_or(&[], Password::expose)).ok_or(Errno::EINVAL)?;
    if let Some(flags) = value.get_mut(MD5_FLAGS) {
        flags.copy_from_slice(&[MD5_FLAG_PREFIX, range.length()]);
    }
    match set_bytes(socket, libc::IPPROTO_TCP, libc::TCP_MD5SIG_EXT, &value) {
        Err(Errno::ENOENT) if key.is_none() => Ok(()),
        outcome => outcome,
    }
}

/// Drops packets that arrive at a socket of the family of `address` with a TTL (or hop limit) of less than
/// `least` (RFC 5082 §3); 0 accepts all.
pub(super) fn set_ttl_min(socket: &impl AsFd, address: IpAddr, least: u8) -> Result<(), Errno> {
    let (level, option) = match address {
        IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MINTTL),
        IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MINHOPCOUNT),
    };
    set_bytes(socket, level, option, &libc::c_int::from(least).to_ne_bytes())
}

/// Binds a socket to `device`: if that is a VRF, to its interfaces.
pub(super) fn set_device(socket: &impl AsFd, device: InterfaceName) -> Result<(), Errno> {
    setsockopt(socket, sockopt::BindToDevice, &device.as_str().into())
}

/// Makes a listener save the SYN of each connection, for [`syn_ttl`].
pub(super) fn keep_syn(listener: &impl AsFd) -> Result<(), Errno> {
    set_bytes(listener, libc::IPPROTO_TCP, libc::TCP_SAVE_SYN, &1_i32.to_ne_bytes())
}

/// The TTL (or hop limit) of the SYN of an accepted connection. It can be read once.
pub(super) fn syn_ttl(socket: &impl AsFd) -> Result<u8, Errno> {
    let mut header = [0_u8; SYN_LENGTH_BYTES_MAX];
    let mut length = libc::socklen_t::try_from(header.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; the kernel writes at
    // most `length` bytes to `header` and their number to `length`, which both outlive the call.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_SAVED_SYN,
            header.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    Errno::result(outcome)?;
    let header = usize::try_from(length).ok().and_then(|length| header.get(..length));
    let header = header.unwrap_or_default();
    // The version is in the first four bits of either header.
    let position = match header.first().map(|byte| byte >> 4) {
        Some(4) => 8,
        Some(6) => 7,
        _ => return Err(Errno::ENODATA),
    };
    header.get(position).copied().ok_or(Errno::ENODATA)
}

/// Sets an option to the bytes of a kernel structure.
pub(super) fn set_bytes(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &[u8],
) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(value.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the kernel reads
    // `length` bytes from `value`, which lives until the call returns.
    let outcome = unsafe {
        let value = value.as_ptr().cast();
        libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, value, length)
    };
    Errno::result(outcome).map(drop)
}

/// What the kernel of an established connection repeats in vain; `None` if the neighbour acknowledges what it is sent.
pub(super) fn stall(socket: &impl AsFd) -> Result<Option<Stall>, Errno> {
    // SAFETY: the structure has integers only, for which all zeros are a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length =
        libc::socklen_t::try_from(size_of::<libc::tcp_info>()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; the kernel writes at most `length` bytes to
    // `info` and their number to `length`, which both outlive the call.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    Errno::result(outcome)?;
    let is_stalled = info.tcpi_retransmits >= STALLED && info.tcpi_unacked > 0;
    Ok(is_stalled.then_some(Stall {
        repetitions: info.tcpi_retransmits,
        segments: info.tcpi_unacked,
        segment_bytes: info.tcpi_snd_mss,
        has_later: info.tcpi_sacked > 0,
    }))
}

/// The TCP-AO keys of a socket, each as the kernel's `struct tcp_ao_getsockopt`: as many as there can be for
/// one peer.
pub(super) fn ao_keys(socket: &impl AsFd) -> Result<Vec<[u8; AO_STATE_LENGTH_BYTES]>, Errno> {
    let mut keys = vec![[0; AO_STATE_LENGTH_BYTES]; AO_STATES_MAX];
    let room = u32::try_from(AO_STATES_MAX).map_err(|_| Errno::EINVAL)?;
    let question = keys.first_mut().ok_or(Errno::EINVAL)?;
    // `nkeys`, the available room, and `get_all`, the third bit of a bit field.
    question.get_mut(272..276).ok_or(Errno::EINVAL)?.copy_from_slice(&room.to_ne_bytes());
    let get_all: u16 = if cfg!(target_endian = "big") { 1 << 13 } else { 1 << 2 };
    question.get_mut(276..278).ok_or(Errno::EINVAL)?.copy_from_slice(&get_all.to_ne_bytes());
    let mut length = libc::socklen_t::try_from(AO_STATE_LENGTH_BYTES).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed. The kernel writes `room`
    // structures of `length` bytes at most, which is what `keys` has room for, and a length; both
    // live until the call returns.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_AO_GET_KEYS,
            keys.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    Errno::result(outcome)?;
    let count = keys.first().and_then(|first| first.get(272..276)?.try_into().ok());
    let count = u32::from_ne_bytes(count.unwrap_or_default());
    keys.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    Ok(keys)
}

/// Maximum number of datagrams of one call.
pub(super) const DATAGRAMS_MAX: usize = 64;

/// Octets of a datagram that are kept. The length of a BFD packet has one octet.
pub(super) const DATAGRAM_LENGTH_BYTES_MAX: usize = 256;

/// Room for the metadata of a datagram: time stamp (32), TTL (24), interface and address (40), drop count
/// (24).
const CONTROL_LENGTH_BYTES_MAX: usize = 128;

/// One datagram with the kernel's metadata. Reused, so that reading does not allocate.
#[derive(Debug, Clone)]
#[repr(C, align(8))]
pub(super) struct Datagram {
    /// A list of `struct cmsghdr`, each with its data.
    control: [u8; CONTROL_LENGTH_BYTES_MAX],
    /// A `struct sockaddr_in` or `sockaddr_in6`.
    name: [u8; size_of::<libc::sockaddr_in6>()],
    payload: [u8; DATAGRAM_LENGTH_BYTES_MAX],
    control_length: usize,
    name_length: usize,
    payload_length: usize,
    is_cut: bool,
}

impl Datagram {
    /// An empty one to read into.
    pub(super) const fn empty() -> Self {
        Self {
            control: [0; CONTROL_LENGTH_BYTES_MAX],
            name: [0; size_of::<libc::sockaddr_in6>()],
            payload: [0; DATAGRAM_LENGTH_BYTES_MAX],
            control_length: 0,
            name_length: 0,
            payload_length: 0,
            is_cut: false,
        }
    }

    /// The list of `struct cmsghdr`, each with its data, in the order of this machine.
    pub(super) fn control(&self) -> &[u8] {
        self.control.get(..self.control_length).unwrap_or_default()
    }

    /// The bytes of the sender's socket address.
    pub(super) fn name(&self) -> &[u8] {
        self.name.get(..self.name_length).unwrap_or_default()
    }

    /// The payload; `None` if it or its metadata did not fit.
    pub(super) fn payload(&self) -> Option<&[u8]> {
        if self.is_cut { None } else { self.payload.get(..self.payload_length) }
    }
}

/// Reads the datagrams that wait in a socket, at most [`DATAGRAMS_MAX`], without blocking. Returns how many
/// of `into` were filled; fewer than there is room for means that none is left.
#[allow(clippy::useless_conversion, reason = "types of fields are not the same with every libc")]
pub(super) fn receive_datagrams(socket: &impl AsFd, into: &mut [Datagram]) -> Result<usize, Errno> {
    // SAFETY: both are structures of integers and pointers of C, for which all zeros are a value.
    let (mut parts, mut headers): ([libc::iovec; DATAGRAMS_MAX], [libc::mmsghdr; DATAGRAMS_MAX]) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let room = into.len().min(DATAGRAMS_MAX);
    for ((datagram, part), header) in into.iter_mut().zip(&mut parts).zip(&mut headers) {
        part.iov_base = datagram.payload.as_mut_ptr().cast();
        part.iov_len = datagram.payload.len();
        let header = &mut header.msg_hdr;
        header.msg_name = datagram.name.as_mut_ptr().cast();
        header.msg_namelen = libc::socklen_t::try_from(datagram.name.len()).unwrap_or(0);
        header.msg_iov = part;
        header.msg_iovlen = 1;
        header.msg_control = datagram.control.as_mut_ptr().cast();
        header.msg_controllen = datagram.control.len().try_into().unwrap_or(0);
    }
    // SAFETY: the descriptor is open for as long as `socket` is borrowed. `room` headers were
    // filled above; each points to one `iovec` and to three buffers of the `Datagram` it was made
    // from, with their lengths, and all of them live, unmoved and otherwise untouched, until the
    // call returns. Any bytes are values of what the kernel writes there.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_fd().as_raw_fd(),
            headers.as_mut_ptr(),
            room.try_into().unwrap_or(0),
            libc::MSG_DONTWAIT.try_into().unwrap_or(0),
            std::ptr::null_mut(),
        )
    };
    let received = usize::try_from(Errno::result(received)?).unwrap_or(0);
    for (datagram, header) in into.iter_mut().zip(&headers).take(received) {
        datagram.payload_length = usize::try_from(header.msg_len).unwrap_or(usize::MAX);
        let header = &header.msg_hdr;
        datagram.name_length = usize::try_from(header.msg_namelen).unwrap_or(usize::MAX);
        datagram.control_length = header.msg_controllen.try_into().unwrap_or(usize::MAX);
        datagram.is_cut = header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0;
    }
    Ok(received)
}

/// Sets the filter of a packet socket; the program is one of the kernel's packet filters.
pub(super) fn set_filter(socket: &impl AsFd, program: &[libc::sock_filter]) -> Result<(), Errno> {
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno::EINVAL)?,
        filter: program.as_ptr().cast_mut(),
    };
    let length = libc::socklen_t::try_from(size_of_val(&filter)).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed. The kernel reads `length`
    // bytes from `filter`, and as many instructions as that says from `program`; both live until
    // the call returns, and it writes to neither.
    let outcome = unsafe {
        let filter = (&raw const filter).cast();
        let socket = socket.as_fd().as_raw_fd();
        libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, filter, length)
    };
    Errno::result(outcome).map(drop)
}

/// Makes a packet socket receive the IPv4 packets of the interface with this index.
pub(super) fn bind_link(socket: &impl AsFd, index: u32) -> Result<(), Errno> {
    let address = link_address(index, [0; 6])?;
    let length = libc::socklen_t::try_from(size_of_val(&address)).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the kernel reads
    // `length` bytes from `address`, which lives until the call returns.
    let outcome =
        unsafe { libc::bind(socket.as_fd().as_raw_fd(), (&raw const address).cast(), length) };
    Errno::result(outcome).map(drop)
}

/// Sends an IPv4 packet to this link-layer address on the interface `index`.
pub(super) fn send_to_link(
    socket: &impl AsFd,
    index: u32,
    neighbour: [u8; 6],
    packet: &[u8],
) -> Result<(), Errno> {
    let address = link_address(index, neighbour)?;
    let length = libc::socklen_t::try_from(size_of_val(&address)).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the kernel reads
    // `packet.len()` bytes from `packet` and `length` from `address`, which live until the call
    // returns.
    let outcome = unsafe {
        libc::sendto(
            socket.as_fd().as_raw_fd(),
            packet.as_ptr().cast(),
            packet.len(),
            libc::MSG_DONTWAIT,
            (&raw const address).cast(),
            length,
        )
    };
    Errno::result(outcome).map(drop)
}

fn link_address(index: u32, neighbour: [u8; 6]) -> Result<libc::sockaddr_ll, Errno> {
    let [a, b, c, d, e, f] = neighbour;
    Ok(libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).map_err(|_| Errno::EINVAL)?,
        sll_protocol: u16::try_from(libc::ETH_P_IP).map_err(|_| Errno::EINVAL)?.to_be(),
        sll_ifindex: libc::c_int::try_from(index).map_err(|_| Errno::EINVAL)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr: [a, b, c, d, e, f, 0, 0],
    })
}

/// Gives the calling thread real-time priority: SCHED_FIFO with `priority` (1 to 99). Requires the capability
/// `SYS_NICE`, or a limit (`RLIMIT_RTPRIO`) that allows it.
pub(super) fn set_realtime(priority: libc::c_int) -> Result<(), Errno> {
    // SAFETY: a structure of integers, for which all zeros are a value.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // The system call itself, since musl does not implement the function; 0 is the calling thread.
    // SAFETY: the kernel reads one `sched_param`, which lives until the call returns; C libraries
    // put more fields behind the one that the kernel knows, never before it.
    let outcome = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const parameters)
    };
    Errno::result(outcome).map(drop)
}

/// Requests time slices of `nanoseconds` (100 µs to 100 ms) for the calling thread, without real time: a
/// thread with short slices is scheduled sooner. Needs no privilege; kernels before Linux 6.12 ignore it.
pub(super) fn set_slice(nanoseconds: u64) -> Result<(), Errno> {
    // `struct sched_attr`: size and policy, flags, nice and priority, runtime, deadline, period and two
    // hints. All current values are kept except for the runtime.
    let mut attributes = [0_u64; 7];
    let length = libc::c_uint::try_from(size_of_val(&attributes)).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the kernel writes at most `length` bytes to `attributes`, of which any are values of
    // its integers, and which lives until the call returns. 0 is the calling thread.
    let outcome =
        unsafe { libc::syscall(libc::SYS_sched_getattr, 0, attributes.as_mut_ptr(), length, 0) };
    Errno::result(outcome)?;
    attributes[3] = nanoseconds;
    // SAFETY: the kernel reads as many bytes from `attributes` as their first four say, which it
    // wrote itself and which are `length` at most; it lives until the call returns.
    let outcome = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, attributes.as_ptr(), 0) };
    Errno::result(outcome).map(drop)
}

/// Locks the memory of the process, from the first use of each page. Only for a process without a limit on
/// locked memory: with one, later allocations would fail.
pub(super) fn lock_memory() -> Result<(), Errno> {
    // SAFETY: a call without pointers that changes no value of any memory.
    let outcome =
        unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) };
    Errno::result(outcome).map(drop)
}

/// The bytes of `struct tcp_md5sig`, which is part of the kernel's stable interface.
fn md5_option(peer: IpAddr, key: &[u8]) -> Option<[u8; MD5_LENGTH_BYTES]> {
    let mut option = [0; MD5_LENGTH_BYTES];
    let mut put = |at: usize, bytes: &[u8]| -> Option<()> {
        option.get_mut(at..at.checked_add(bytes.len())?)?.copy_from_slice(bytes);
        Some(())
    };
    match peer {
        IpAddr::V4(address) => {
            put(0, &u16::try_from(libc::AF_INET).ok()?.to_ne_bytes())?;
            put(4, &address.octets())?;
        }
        IpAddr::V6(address) => {
            put(0, &u16::try_from(libc::AF_INET6).ok()?.to_ne_bytes())?;
            put(8, &address.octets())?;
        }
    }
    put(130, &u16::try_from(key.len()).ok()?.to_ne_bytes())?;
    put(136, key)?;
    Some(option)
}

/// Sets the TTL (hop limit) and traffic class of a socket of the family of `local`.
pub(super) fn set_network(socket: &impl AsFd, local: IpAddr, ttl: u8) -> Result<(), Errno> {
    let ttl = libc::c_int::from(ttl);
    match local {
        IpAddr::V4(_) => {
            setsockopt(socket, sockopt::Ipv4Ttl, &ttl)?;
            setsockopt(socket, sockopt::Ipv4Tos, &TRAFFIC_CLASS)
        }
        IpAddr::V6(_) => {
            setsockopt(socket, sockopt::Ipv6Ttl, &ttl)?;
            setsockopt(socket, sockopt::Ipv6TClass, &TRAFFIC_CLASS)
        }
    }
}

/// Enables TCP keepalive for sessions without a hold timer: after a minute of silence, three probes ten
/// seconds apart.
pub(super) fn set_keepalive(socket: &impl AsFd) -> Result<(), Errno> {
    setsockopt(socket, sockopt::KeepAlive, &true)?;
    setsockopt(socket, sockopt::TcpKeepIdle, &60)?;
    setsockopt(socket, sockopt::TcpKeepInterval, &10)?;
    setsockopt(socket, sockopt::TcpKeepCount, &3)
}

/// Makes a socket reset its connection when it is dropped, without lingering state.
pub(super) fn set_reset_on_drop(socket: &impl AsFd) -> Result<(), Errno> {
    setsockopt(socket, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 })
}

/// Restricts an IPv6 listener to IPv6, so that one for IPv4 can use the same port.
pub(super) fn set_ipv6_only(socket: &impl AsFd, address: SocketAddr) -> Result<(), Errno> {
    if address.is_ipv6() { setsockopt(socket, sockopt::Ipv6V6Only, &true) } else { Ok(()) }
}

/// Registers a descriptor with the runtime.
pub(super) fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: it is open, and it is closed only when the returned value is dropped.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}

/// Passes only ICMPv6 messages of these types to a raw socket (RFC 3542 §3.2).
pub(super) fn pass_icmpv6_types(socket: &impl AsFd, types: &[u8]) -> Result<(), Errno> {
    // A bit for each type; a set bit blocks it.
    let mut blocked = [u32::MAX; 8];
    for kind in types {
        if let Some(word) = blocked.get_mut(usize::from(kind / 32)) {
            *word &= !(1 << (kind % 32));
        }
    }
    let value = blocked.map(u32::to_ne_bytes);
    set_bytes(socket, libc::IPPROTO_ICMPV6, ICMP6_FILTER, value.as_flattened())
}

/// Joins `group` on the interface with this index. `nix` has no option for an index.
pub(super) fn join_group(socket: &impl AsFd, group: Ipv6Addr, index: u32) -> Result<(), Errno> {
    // `struct ipv6_mreq`.
    let value = [&group.octets()[..], &index.to_ne_bytes()].concat();
    set_bytes(socket, libc::IPPROTO_IPV6, libc::IPV6_ADD_MEMBERSHIP, &value)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use nix::sys::socket::getsockopt;

    use super::*;

    //= RFC 4271 §E MUST: TCP MD5 is supported.
    #[test]
    fn the_kernel_takes_keys_of_both_families_and_forgets_them() {
        for address in ["127.0.0.1", "::1"] {
            let address: IpAddr = address.parse().unwrap();
            let listener = TcpListener::bind((address, 0)).unwrap();
            let key = Password::new([b'k'; 80]).unwrap();
            assert_eq!(set_md5(&listener, address, Some(&key)), Ok(()));
            assert_eq!(set_md5(&listener, address, None), Ok(()));
            assert_eq!(set_md5(&listener, address, None), Ok(()));
        }
    }

    /// The basis of password changes: TCP retransmits segments that the other end could not verify.
    #[tokio::test]
    async fn a_connection_lives_while_its_ends_change_their_keys_one_after_the_other() {
        use std::time::Duration;

        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        use tokio::net::{TcpListener, TcpSocket};
        use tokio::time::timeout;

        for address in ["127.0.0.1", "::1"] {
            let address: IpAddr = address.parse().unwrap();
            let (old, new) = (Password::new("old").unwrap(), Password::new("new").unwrap());
            let listener = TcpListener::bind((address, 0)).await.unwrap();
            set_md5(&listener, address, Some(&old)).unwrap();
            let dialler = match address {
                IpAddr::V4(_) => TcpSocket::new_v4().unwrap(),
                IpAddr::V6(_) => TcpSocket::new_v6().unwrap(),
            };
            set_md5(&dialler, address, Some(&old)).unwrap();
            let mut near = dialler.connect(listener.local_addr().unwrap()).await.unwrap();
            let (mut far, _) = listener.accept().await.unwrap();

            set_md5(&near, address, Some(&new)).unwrap();
            near.write_all(b"x").await.unwrap();
            let unheard = timeout(Duration::from_millis(100), far.read_u8()).await;
            assert!(unheard.is_err(), "the far end still has the old key");
            set_md5(&far, address, Some(&new)).unwrap();
            let heard = timeout(Duration::from_secs(10), far.read_u8()).await;
            assert_eq!(heard.expect("it is repeated").unwrap(), b'x');
            far.write_all(b"y").await.unwrap();
            let heard = timeout(Duration::from_secs(10), near.read_u8()).await;
            assert_eq!(heard.expect("both have the new key").unwrap(), b'y');
        }
    }

    //= RFC 4271 §E SHOULD: packets carry the precedence of network control, DSCP 110xxx.
    #[test]
    fn packets_leave_as_network_control_and_as_far_as_they_may() {
        for address in ["127.0.0.1", "::1"] {
            let address: IpAddr = address.parse().unwrap();
            let listener = TcpListener::bind((address, 0)).unwrap();
            set_network(&listener, address, 1).unwrap();
            let (ttl, class) = match address {
                IpAddr::V4(_) => (
                    getsockopt(&listener, sockopt::Ipv4Ttl).unwrap(),
                    getsockopt(&listener, sockopt::Ipv4Tos).unwrap(),
                ),
                IpAddr::V6(_) => (
                    getsockopt(&listener, sockopt::Ipv6Ttl).unwrap(),
                    getsockopt(&listener, sockopt::Ipv6TClass).unwrap(),
                ),
            };
            assert_eq!((ttl, class >> 5), (1, 0b110), "{address}");
        }
    }
}
