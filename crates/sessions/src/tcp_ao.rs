//! The kernel's TCP-AO (RFC 5925, Linux 6.7): keys of listeners and of connections.
//!
//! `session::key_rollover` decides which key to add or remove; this module does it. Called by the core task for
//! listeners, by the dialler, and for each connection with keys.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::libc;

use super::sockopt::{self, AO_STATE_LENGTH_BYTES};
use fairway_bgp::session::{HeldKey, KeyChange, KeyRing};
use fairway_ground::{AoAlgorithm, AoKey, AoKeys, Prefix};

/// Linux's numbers of the options; `libc` does not define them.
const TCP_AO_ADD_KEY: libc::c_int = 38;
const TCP_AO_DEL_KEY: libc::c_int = 39;
const TCP_AO_INFO: libc::c_int = 40;

/// Sizes of the kernel's structures, which are part of its stable interface.
const ADD_LENGTH_BYTES: usize = 288;
const DELETE_LENGTH_BYTES: usize = 144;
const INFO_LENGTH_BYTES: usize = 48;

/// The first two bits of a bit field of 32 or 16 bits, in C's layout.
const SET_CURRENT: u32 = if cfg!(target_endian = "big") { 1 << 31 } else { 1 };
const SET_RNEXT: u32 = if cfg!(target_endian = "big") { 1 << 30 } else { 1 << 1 };
const IS_CURRENT: u16 = if cfg!(target_endian = "big") { 1 << 15 } else { 1 };
const IS_RNEXT: u16 = if cfg!(target_endian = "big") { 1 << 14 } else { 1 << 1 };

/// Why this kernel does not support the keys of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsupported {
    /// The kernel has no TCP-AO.
    #[error("this kernel has no TCP-AO; it needs Linux 6.7 or newer, built with CONFIG_TCP_AO")]
    Option,
    /// The kernel has TCP-AO, but not this algorithm.
    #[error("this kernel has TCP-AO, but does not support {0}")]
    Algorithm(AoAlgorithm),
    /// Another error.
    #[error("this kernel rejected the TCP-AO key with send ID {0}: {1}")]
    Key(u8, Errno),
}

/// Whether this kernel supports these keys: tried on a temporary socket.
pub(super) fn supports(keys: &AoKeys) -> Result<(), Unsupported> {
    let Some(first) = keys.preferred() else { return Ok(()) };
    let anybody = IpAddr::from(Ipv4Addr::LOCALHOST);
    let socket = TcpListener::bind((anybody, 0)).map_err(|error| {
        let errno = error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw);
        Unsupported::Key(first.send_id(), errno)
    })?;
    for key in keys {
        add(&socket, Prefix::host(anybody), key).map_err(|errno| match errno {
            Errno::ENOPROTOOPT => Unsupported::Option,
            Errno::ENOENT => Unsupported::Algorithm(key.algorithm()),
            errno => Unsupported::Key(key.send_id(), errno),
        })?;
    }
    Ok(())
}

/// Applies the difference of two lists of keys for `peers` to a listener.
pub(super) fn change_listener(
    socket: &impl AsFd,
    peers: Prefix,
    before: &AoKeys,
    wanted: &AoKeys,
) -> Result<(), Errno> {
    for old in before.iter().filter(|old| !wanted.contains(old)) {
        match delete(socket, peers, old, None) {
            // It did not exist.
            Err(Errno::ENOENT) | Ok(()) => {}
            Err(errno) => return Err(errno),
        }
    }
    let mut new = wanted.iter().filter(|new| !before.contains(new));
    new.try_for_each(|new| add(socket, peers, new))
}

/// Sets the keys of a socket that will dial `peer`; `first` signs the SYN.
pub(super) fn prepare_dial(
    socket: &impl AsFd,
    peer: IpAddr,
    keys: &AoKeys,
    first: &AoKey,
) -> Result<(), Errno> {
    for key in keys {
        let mut option = add_option(Prefix::host(peer), key)?;
        if key == first {
            put(&mut option, 196, &(SET_CURRENT | SET_RNEXT).to_ne_bytes())?;
        }
        sockopt::set_bytes(socket, libc::IPPROTO_TCP, TCP_AO_ADD_KEY, &option)?;
    }
    Ok(())
}

/// Reads the keys of a connection, and makes the changes that are due. Returns them.
pub(super) fn follow(
    socket: &impl AsFd,
    peer: Prefix,
    ring: &mut KeyRing,
    wanted: &AoKeys,
) -> Result<Vec<KeyChange>, Errno> {
    let changes = ring.follow(wanted, &held(socket)?);
    for change in &changes {
        match change {
            KeyChange::Add(key) => add(socket, peer, key),
            KeyChange::Ask(key) => ask(socket, key),
            KeyChange::Delete(key, other) => delete(socket, peer, key, other.as_ref()),
        }?;
    }
    Ok(changes)
}

/// The kernel's state of the keys of a connection.
pub(super) fn held(socket: &impl AsFd) -> Result<Vec<HeldKey>, Errno> {
    sockopt::ao_keys(socket)?.iter().map(held_key).collect()
}

fn add(socket: &impl AsFd, peers: Prefix, key: &AoKey) -> Result<(), Errno> {
    sockopt::set_bytes(socket, libc::IPPROTO_TCP, TCP_AO_ADD_KEY, &add_option(peers, key)?)
}

fn ask(socket: &impl AsFd, key: &AoKey) -> Result<(), Errno> {
    let mut option = [0; INFO_LENGTH_BYTES];
    put(&mut option, 0, &SET_RNEXT.to_ne_bytes())?;
    put(&mut option, 7, &[key.recv_id()])?;
    sockopt::set_bytes(socket, libc::IPPROTO_TCP, TCP_AO_INFO, &option)
}

fn delete(
    socket: &impl AsFd,
    peers: Prefix,
    key: &AoKey,
    other: Option<&AoKey>,
) -> Result<(), Errno> {
    sockopt::set_bytes(
        socket,
        libc::IPPROTO_TCP,
        TCP_AO_DEL_KEY,
        &delete_option(peers, key, other)?,
    )
}

/// `struct tcp_ao_add`: address (128), algorithm (64), interface (4), two flags (4), padding (2),
/// prefix length, send ID, receive ID, MAC length (0 is 96 bits), flags, key length, key (80).
fn add_option(peers: Prefix, key: &AoKey) -> Result<[u8; ADD_LENGTH_BYTES], Errno> {
    let mut option = [0; ADD_LENGTH_BYTES];
    put_address(&mut option, peers)?;
    let algorithm = match key.algorithm() {
        AoAlgorithm::HmacSha1 => "hmac(sha1)",
        AoAlgorithm::AesCmac128 => "cmac(aes128)",
        AoAlgorithm::HmacSha256 => "hmac(sha256)",
    };
    put(&mut option, 128, algorithm.as_bytes())?;
    put(&mut option, 202, &[peers.length(), key.send_id(), key.recv_id()])?;
    let secret = key.expose();
    put(&mut option, 207, &[u8::try_from(secret.len()).map_err(|_| Errno::EINVAL)?])?;
    put(&mut option, 208, secret)?;
    Ok(option)
}

/// `struct tcp_ao_del`: address (128), interface (4), three flags (4), padding (2), prefix length, send ID,
/// receive ID, the next send ID, the next receive ID, flags.
fn delete_option(
    peers: Prefix,
    key: &AoKey,
    other: Option<&AoKey>,
) -> Result<[u8; DELETE_LENGTH_BYTES], Errno> {
    let mut option = [0; DELETE_LENGTH_BYTES];
    put_address(&mut option, peers)?;
    put(&mut option, 138, &[peers.length(), key.send_id(), key.recv_id()])?;
    if let Some(other) = other {
        put(&mut option, 132, &(SET_CURRENT | SET_RNEXT).to_ne_bytes())?;
        put(&mut option, 141, &[other.send_id(), other.recv_id()])?;
    }
    Ok(option)
}

/// `struct tcp_ao_getsockopt`: address (128), algorithm (64), key (80), count (4), flags (2), send
/// ID, receive ID, prefix length, MAC length, flags, key length, interface (4), good segments (8),
/// bad ones (8).
fn held_key(state: &[u8; AO_STATE_LENGTH_BYTES]) -> Result<HeldKey, Errno> {
    let flags = u16::from_ne_bytes(take(state, 276)?);
    let [send_id, recv_id] = take(state, 278)?;
    Ok(HeldKey {
        send_id,
        recv_id,
        current: flags & IS_CURRENT != 0,
        asked: flags & IS_RNEXT != 0,
        segments: u64::from_ne_bytes(take(state, 288)?),
    })
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Errno> {
    bytes.get(at..).and_then(|rest| rest.first_chunk().copied()).ok_or(Errno::EINVAL)
}

fn put(option: &mut [u8], at: usize, bytes: &[u8]) -> Result<(), Errno> {
    let end = at.checked_add(bytes.len()).ok_or(Errno::EINVAL)?;
    option.get_mut(at..end).ok_or(Errno::EINVAL)?.copy_from_slice(bytes);
    Ok(())
}

/// A `struct sockaddr_storage` at the beginning of a structure.
fn put_address(option: &mut [u8], peers: Prefix) -> Result<(), Errno> {
    let (family, at) = match peers.address() {
        IpAddr::V4(_) => (libc::AF_INET, 4),
        IpAddr::V6(_) => (libc::AF_INET6, 8),
    };
    let family = u16::try_from(family).map_err(|_| Errno::EINVAL)?;
    put(option, 0, &family.to_ne_bytes())?;
    match peers.address() {
        IpAddr::V4(address) => put(option, at, &address.octets()),
        IpAddr::V6(address) => put(option, at, &address.octets()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpSocket, TcpStream};
    use tokio::time::timeout;

    use super::*;

    const NEAR: Ipv4Addr = Ipv4Addr::LOCALHOST;

    fn key(id: u8, secret: &str) -> AoKey {
        let algorithm = AoAlgorithm::ALL[usize::from(id) % AoAlgorithm::ALL.len()];
        AoKey::new(id, id, algorithm, secret).unwrap()
    }

    fn keys(keys: &[AoKey]) -> AoKeys {
        AoKeys::new(keys.to_vec()).unwrap()
    }

    /// The tests below need a kernel with TCP-AO; `make vm` runs them on one.
    pub(crate) fn kernel_has_it() -> bool {
        let supported = supports(&keys(&[key(1, "a")]));
        assert!(
            supported.is_ok() || std::env::var_os("FAIRWAY_TCP_AO").is_none(),
            "this kernel should have TCP-AO: {supported:?}"
        );
        supported.is_ok()
    }

    async fn connect(
        listener: &tokio::net::TcpListener,
        keys: &AoKeys,
        first: &AoKey,
    ) -> Option<(TcpStream, TcpStream)> {
        let socket = TcpSocket::new_v4().unwrap();
        prepare_dial(&socket, NEAR.into(), keys, first).unwrap();
        let connecting = socket.connect(listener.local_addr().unwrap());
        let both = async { tokio::join!(connecting, listener.accept()) };
        let (near, far) = timeout(Duration::from_secs(2), both).await.ok()?;
        Some((near.unwrap(), far.unwrap().0))
    }

    async fn talk(near: &mut TcpStream, far: &mut TcpStream) {
        for _ in 0..2 {
            near.write_all(b"x").await.unwrap();
            timeout(Duration::from_secs(5), far.read_u8()).await.expect("heard").unwrap();
            far.write_all(b"y").await.unwrap();
            timeout(Duration::from_secs(5), near.read_u8()).await.expect("heard").unwrap();
        }
    }

    #[test]
    fn a_key_becomes_the_structure_of_the_kernel() {
        let key = AoKey::new(7, 9, AoAlgorithm::AesCmac128, "secret").unwrap();
        let peers = Prefix::host("192.0.2.1".parse().unwrap());
        let option = add_option(peers, &key).unwrap();
        assert_eq!(option[..8], [2, 0, 0, 0, 192, 0, 2, 1]);
        assert_eq!(option[128..141], *b"cmac(aes128)\0");
        assert_eq!(option[192..208], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 7, 9, 0, 0, 6]);
        assert_eq!(option[208..215], *b"secret\0");
        let peers = Prefix::new("2001:db8::".parse().unwrap(), 64).unwrap();
        let option = delete_option(peers, &key, Some(&key)).unwrap();
        assert_eq!(option[..12], [10, 0, 0, 0, 0, 0, 0, 0, 0x20, 1, 0x0d, 0xb8]);
        assert_eq!(option[128..], [0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 64, 7, 9, 7, 9, 0]);
    }

    #[test]
    fn a_kernel_without_it_is_named() {
        let wanted = keys(&[key(0, "a"), key(1, "b"), key(2, "c")]);
        let supported = supports(&wanted);
        assert!(matches!(supported, Ok(()) | Err(Unsupported::Option)), "{supported:?}");
        assert_eq!(supported.is_ok(), kernel_has_it());
        assert_eq!(supports(&AoKeys::default()), Ok(()));
    }

    //= RFC 5925 §7.3 MUST: every segment is checked against the keys of its connection.
    #[tokio::test]
    async fn a_wrong_secret_and_no_key_at_all_get_no_connection() {
        if !kernel_has_it() {
            return;
        }
        let listener = tokio::net::TcpListener::bind((NEAR, 0)).await.unwrap();
        let right = keys(&[key(1, "right")]);
        let peers = Prefix::host(NEAR.into());
        change_listener(&listener, peers, &AoKeys::default(), &right).unwrap();
        let wrong = key(1, "wrong");
        assert!(connect(&listener, &keys(std::slice::from_ref(&wrong)), &wrong).await.is_none());
        let without = TcpStream::connect(listener.local_addr().unwrap());
        assert!(timeout(Duration::from_secs(2), without).await.is_err());
        assert!(connect(&listener, &right, &key(1, "right")).await.is_some());
    }

    #[tokio::test]
    async fn keys_of_a_connection_are_exchanged_while_it_talks() {
        if !kernel_has_it() {
            return;
        }
        for near_first in [true, false] {
            let (old, new) = (keys(&[key(1, "old")]), keys(&[key(2, "new")]));
            let peer = Prefix::host(NEAR.into());
            let listener = tokio::net::TcpListener::bind((NEAR, 0)).await.unwrap();
            change_listener(&listener, peer, &AoKeys::default(), &old).unwrap();
            let (mut near, mut far) = connect(&listener, &old, &key(1, "old")).await.unwrap();
            let mut rings = [KeyRing::new(&old), KeyRing::new(&old)];
            let mut wanted = [&old, &old];
            for turn in 0..12 {
                if turn == if near_first { 2 } else { 5 } {
                    wanted[0] = &new;
                }
                if turn == if near_first { 5 } else { 2 } {
                    wanted[1] = &new;
                    change_listener(&listener, peer, &old, &new).unwrap();
                }
                follow(&near, peer, &mut rings[0], wanted[0]).unwrap();
                follow(&far, peer, &mut rings[1], wanted[1]).unwrap();
                talk(&mut near, &mut far).await;
            }
            for end in [&near, &far] {
                let ids: Vec<u8> = held(end).unwrap().iter().map(|it| it.send_id).collect();
                assert_eq!(ids, [2], "near first: {near_first}");
            }
            // A new connection uses the new key, and only that.
            assert!(connect(&listener, &old, &key(1, "old")).await.is_none());
            assert!(connect(&listener, &new, &key(2, "new")).await.is_some());
        }
    }
}
