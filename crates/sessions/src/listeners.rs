//! The listening sockets: which exist, which keys they hold, which addresses may connect.
//!
//! One for each address and VRF. Owned by the core task; accepting is [`super::listen`]'s.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;

use nix::net::if_::if_nametoindex;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tracing::{error, info, warn};

use super::listen::{Listen, accept_all, bound, listen};
use super::news::NetworkEvent;
use super::{sockopt, tcp_ao};
use fairway_bgp::speaker::Admission;
use fairway_ground::{AddressFamily, AoKeys, InterfaceName, Password, PeerKey, Prefix, Remote};
use fairway_seam::PeerConfig;

/// Why a peer is not accepted, for `show`.
const UNPROTECTED: &str = "its TCP-MD5 or TCP-AO keys cannot be set on a listening socket (the \
                           kernel has no TCP-AO, or net.core.optmem_max is too low)";
/// The same of a passive peer, where no socket accepts connections of its family.
const NOT_LISTENING: &str =
    "this node does not listen for BGP (another program has the port, or it is not permitted)";
/// The same, where its VRF has no listener.
const NO_VRF: &str = "nothing listens in its VRF (is there a device of that name?)";

/// See the module.
#[derive(Debug)]
pub(super) struct Listeners {
    listen: Listen,
    events: mpsc::Sender<NetworkEvent>,
    admission: watch::Sender<Arc<Admission>>,
    /// Those of the main table under `None`, where there is always an entry unless no address was
    /// configured, or none is needed.
    open: BTreeMap<Option<InterfaceName>, Opened>,
    /// Addresses of the main table that could not be listened on.
    failed: BTreeSet<SocketAddr>,
    /// The VRFs that peers are in.
    wanted: BTreeSet<InterfaceName>,
    /// VRFs of peers that have no listener, and why, as it was logged.
    missing: BTreeMap<InterfaceName, String>,
    /// The keys that all listeners of their VRF hold.
    keys: BTreeMap<PeerKey, Keys>,
    /// Where unnumbered peers were discovered: a key belongs to an address.
    routers: BTreeMap<PeerKey, Ipv6Addr>,
    /// Peers with a key that could not be set on a listener: they are not accepted.
    unprotected: BTreeSet<PeerKey>,
}

/// What signs the packets of a peer: a key of TCP-MD5, or those of TCP-AO.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Keys {
    password: Option<Password>,
    tcp_ao: AoKeys,
}

/// The listeners of a VRF.
#[derive(Debug, Default)]
struct Opened {
    /// Which device of that name it was: a device that comes back is another one.
    device: u32,
    listeners: Vec<Listener>,
}

/// A listening socket; dropping it closes it.
#[derive(Debug)]
struct Listener {
    socket: Arc<TcpListener>,
    task: AbortHandle,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Listeners {
    /// Listens in the main table, if that is to be done before a peer needs it. An address that cannot
    /// be listened on is reported once and tried again; dialling continues.
    pub(super) fn open(listen: Listen, events: mpsc::Sender<NetworkEvent>) -> Self {
        let mut listeners = Self {
            listen,
            events,
            admission: watch::channel(Arc::default()).0,
            open: BTreeMap::new(),
            failed: BTreeSet::new(),
            wanted: BTreeSet::new(),
            missing: BTreeMap::new(),
            keys: BTreeMap::new(),
            routers: BTreeMap::new(),
            unprotected: BTreeSet::new(),
        };
        if !listeners.listen.only_when_needed {
            listeners.open_main();
        }
        listeners
    }

    fn open_main(&mut self) {
        let mut opened = Opened::default();
        for address in &self.listen.addresses {
            match self.open_one(*address, None) {
                Ok(listener) => opened.listeners.push(listener),
                Err(error) => {
                    warn!(
                        %address, %error,
                        "cannot listen for BGP on this address; dialling continues, and it is tried again"
                    );
                    self.failed.insert(*address);
                }
            }
        }
        self.open.insert(None, opened);
    }

    /// Whether a listener is needed for this neighbour.
    fn is_needed(&self, config: &PeerConfig) -> bool {
        !self.listen.only_when_needed || config.passive || config.key.is_range()
    }

    /// Opens the listeners of the main table with the first peer that needs them, and closes them with
    /// the last.
    fn follow_need(&mut self, is_needed: bool) {
        if !self.listen.only_when_needed || is_needed == self.open.contains_key(&None) {
            return;
        }
        if is_needed {
            self.open_main();
        } else {
            self.open.remove(&None);
            self.failed.clear();
        }
    }

    /// Listens on the addresses that were taken, as far as they are free now.
    fn retry_main(&mut self) {
        for address in self.failed.clone() {
            let Ok(listener) = self.open_one(address, None) else { continue };
            self.failed.remove(&address);
            self.open.entry(None).or_default().listeners.push(listener);
            self.bound_ttl();
        }
    }

    /// The addresses that accept connections in the main table.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let listeners = self.open.get(&None).map(|opened| &opened.listeners);
        listeners.into_iter().flatten().filter_map(|it| it.socket.local_addr().ok()).collect()
    }

    /// Sets which peers may connect. A peer with a key that cannot be set on a listener is dialled, with the
    /// key, but not accepted without it; every change of the desired state tries again.
    pub(super) fn admit<'a>(&mut self, configs: impl Iterator<Item = &'a PeerConfig> + Clone) {
        let keys: BTreeSet<PeerKey> = configs.clone().map(|config| config.key).collect();
        let gone: Vec<PeerKey> =
            self.keys.keys().filter(|it| !keys.contains(it)).copied().collect();
        for key in gone {
            // A key that stays behind only refuses an address that is no peer any more.
            let _ = self.change_keys(key, &Keys::default());
        }
        self.routers.retain(|key, _| keys.contains(key));
        self.unprotected.retain(|key| keys.contains(key));
        for config in configs.clone() {
            self.protect(config);
        }
        let mut admission: Admission = configs.clone().collect();
        self.unprotected.iter().for_each(|key| admission.refuse(*key));
        self.admission.send_replace(Arc::new(admission));
        let needed = configs.filter(|config| self.is_needed(config)).map(|config| config.key.vrf);
        let needed: BTreeSet<Option<InterfaceName>> = needed.collect();
        self.follow_need(needed.contains(&None));
        self.wanted = needed.into_iter().flatten().collect();
        self.follow_devices();
        self.bound_ttl();
    }

    /// Unnumbered peer `key` is at `router` now. Before that is known, no connection from it is
    /// accepted, signed or unsigned.
    pub(super) fn set_router(&mut self, key: PeerKey, router: Option<Ipv6Addr>) {
        if self.routers.get(&key).copied() == router {
            return;
        }
        let keys = self.keys.get(&key).cloned();
        if keys.is_some() {
            // A key that stays behind only refuses an address that is no peer any more.
            let _ = self.change_keys(key, &Keys::default());
        }
        match router {
            Some(router) => self.routers.insert(key, router),
            None => self.routers.remove(&key),
        };
        if let Some(keys) = keys
            && let Err(cause) = self.change_keys(key, &keys)
        {
            error!(
                peer = %key, %cause,
                "cannot set its keys on a listening socket: the peer is dialled, but not accepted"
            );
        }
    }

    /// Whether a VRF may appear or disappear, or an address become free.
    pub(super) fn follows_devices(&self) -> bool {
        !self.wanted.is_empty() || !self.failed.is_empty()
    }

    /// Opens listeners in VRFs that have appeared, and closes those in VRFs that are gone or that no
    /// peer is in any more; likewise of addresses that were taken.
    pub(super) fn follow_devices(&mut self) {
        self.retry_main();
        let Self { open, wanted, missing, .. } = self;
        missing.retain(|vrf, _| wanted.contains(vrf));
        open.retain(|vrf, opened| match vrf {
            None => true,
            Some(vrf) => wanted.contains(vrf) && if_nametoindex(vrf.as_str()) == Ok(opened.device),
        });
        for vrf in self.wanted.clone() {
            if self.open.contains_key(&Some(vrf)) || self.listen.addresses.is_empty() {
                continue;
            }
            match self.open_in(vrf) {
                Ok(opened) => {
                    info!(%vrf, "listening for BGP in the VRF");
                    self.missing.remove(&vrf);
                    self.open.insert(Some(vrf), opened);
                    self.bound_ttl();
                }
                Err(error) => {
                    let why = error.to_string();
                    if self.missing.get(&vrf) != Some(&why) {
                        warn!(
                            %vrf, %error,
                            "cannot listen for BGP in the VRF; trying again (not logged again \
                             until the reason changes)"
                        );
                        self.missing.insert(vrf, why);
                    }
                }
            }
        }
    }

    /// Why connections of `key` are refused, if they are.
    pub(super) fn not_accepted(&self, key: PeerKey) -> Option<&'static str> {
        let no_vrf = key.vrf.is_some_and(|vrf| self.missing.contains_key(&vrf));
        let unprotected = self.unprotected.contains(&key);
        no_vrf.then_some(NO_VRF).or(unprotected.then_some(UNPROTECTED))
    }

    /// Why no connection of passive peer `config` can arrive, if none can.
    pub(super) fn not_listening(&self, config: &PeerConfig) -> Option<&'static str> {
        if !config.passive || config.key.vrf.is_some() {
            return None;
        }
        let is_of_peer = |address: &SocketAddr| match self.remote(config.key) {
            Remote::Address(peer) => peer.is_ipv4() == address.is_ipv4(),
            _ => address.is_ipv6(),
        };
        let has_failed = self.failed.iter().any(is_of_peer);
        (has_failed && !self.addresses().iter().any(is_of_peer)).then_some(NOT_LISTENING)
    }

    fn open_in(&self, vrf: InterfaceName) -> io::Result<Opened> {
        let device = if_nametoindex(vrf.as_str())?;
        let listeners =
            self.listen.addresses.iter().map(|address| self.open_one(*address, Some(vrf)));
        Ok(Opened { device, listeners: listeners.collect::<io::Result<_>>()? })
    }

    /// The keys first: a listener must have them before the first SYN comes.
    fn open_one(&self, address: SocketAddr, vrf: Option<InterfaceName>) -> io::Result<Listener> {
        let socket: TcpSocket = bound(address, vrf)?;
        let of_vrf = self.keys.iter().filter(|(key, _)| key.vrf == vrf);
        for (key, keys) in of_vrf {
            change_keys_of(&socket, address.ip(), self.remote(*key), &Keys::default(), keys)?;
        }
        let socket = Arc::new(listen(socket)?);
        let local = socket.local_addr()?;
        info!(address = %local, "listening for BGP");
        let accepting = Arc::clone(&socket);
        let (admission, events) = (self.admission.subscribe(), self.events.clone());
        let task = tokio::spawn(accept_all(accepting, vrf, admission, events)).abort_handle();
        Ok(Listener { socket, task })
    }

    /// Packets from further away than any peer may be are not even answered.
    fn bound_ttl(&self) {
        let admission = self.admission.borrow();
        for (vrf, opened) in &self.open {
            for Listener { socket, .. } in &opened.listeners {
                let Ok(local) = socket.local_addr() else { continue };
                let least = admission.ttl_min_of_all(*vrf, AddressFamily::of(local.ip()));
                if let Err(error) = sockopt::set_ttl_min(&**socket, local.ip(), least) {
                    // Each session still sets its own minimum.
                    warn!(%error, least, "cannot set the minimum TTL of a listening socket");
                }
            }
        }
    }

    fn protect(&mut self, config: &PeerConfig) {
        let PeerConfig { key, name, password, tcp_ao, .. } = config;
        let wanted = Keys { password: password.clone(), tcp_ao: tcp_ao.clone() };
        match self.change_keys(*key, &wanted) {
            Ok(()) => {
                self.unprotected.remove(key);
            }
            Err(cause) => {
                if !self.unprotected.insert(*key) {
                    return;
                }
                match tcp_ao::supports(tcp_ao) {
                    Ok(()) => error!(
                        peer = %key, name, %cause,
                        "cannot set the TCP-MD5 key or the TCP-AO keys on a listening socket (if there \
                         are many keys, raise net.core.optmem_max): connections from this peer \
                         are refused"
                    ),
                    // For a single peer this is logged elsewhere; a range is no peer.
                    Err(why) if key.is_range() => {
                        error!(peer = %key, name, %why, "connections from this range are refused");
                    }
                    Err(_) => {}
                }
            }
        }
    }

    /// Makes the keys of `key` those that are wanted, on all listeners of its VRF or on none.
    fn change_keys(&mut self, key: PeerKey, wanted: &Keys) -> Result<(), nix::Error> {
        let remote = self.remote(key);
        let before = self.keys.remove(&key).unwrap_or_default();
        let opened = self.open.get(&key.vrf).map(|opened| &opened.listeners);
        let listeners = || {
            opened.into_iter().flatten().filter_map(|Listener { socket, .. }| {
                Some((&**socket, socket.local_addr().ok()?.ip()))
            })
        };
        let changed = listeners().try_for_each(|(listener, local)| {
            change_keys_of(listener, local, remote, &before, wanted)
        });
        if changed.is_err() {
            // Undo what was set: the next attempt begins with none.
            for (listener, local) in listeners() {
                for some in [&before, wanted] {
                    let _ = change_keys_of(listener, local, remote, some, &Keys::default());
                }
            }
        } else if *wanted != Keys::default() {
            self.keys.insert(key, wanted.clone());
        }
        changed
    }

    /// The addresses that a key of `key` applies to.
    fn remote(&self, key: PeerKey) -> Remote {
        let router = self.routers.get(&key).map(|router| IpAddr::V6(*router));
        router.map_or(key.remote, Remote::Address)
    }
}

/// Changes the keys for `remote` on a listener at `local`, if that is of its family. The kernel takes
/// no keys of one kind where there are some of the other.
fn change_keys_of(
    listener: &impl AsFd,
    local: IpAddr,
    remote: Remote,
    before: &Keys,
    wanted: &Keys,
) -> Result<(), nix::Error> {
    let peers = match remote {
        Remote::Address(address) => Prefix::host(address),
        Remote::Range(range) => range,
        // The address of an unnumbered one is not known yet.
        Remote::Interface(_) | Remote::DefaultGateway(_) => return Ok(()),
    };
    if before == wanted || peers.family() != AddressFamily::of(local) {
        return Ok(());
    }
    let set_password = |password| match remote {
        Remote::Range(range) => sockopt::set_md5_range(listener, range, password),
        _ => sockopt::set_md5(listener, peers.address(), password),
    };
    if wanted.password.is_none() && before.password.is_some() {
        set_password(None)?;
    }
    tcp_ao::change_listener(listener, peers, &before.tcp_ao, &wanted.tcp_ao)?;
    match &wanted.password {
        Some(password) if before.password.as_ref() != Some(password) => {
            set_password(Some(password))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example as _;
    use crate::tcp_ao::tests::kernel_has_it;
    use fairway_ground::{AoAlgorithm, AoKey, Prefix};

    fn listeners() -> Listeners {
        Listeners::open(Listen::at([([127, 0, 0, 1], 0).into()]), mpsc::channel(1).0)
    }

    fn peer(remote: Remote, vrf: Option<&str>) -> PeerConfig {
        let key = PeerKey { remote, vrf: vrf.map(|vrf| vrf.parse().unwrap()) };
        PeerConfig { key, ..PeerConfig::example(1) }
    }

    fn one() -> Remote {
        Remote::Address([127, 0, 0, 9].into())
    }

    #[tokio::test]
    async fn a_vrf_without_a_device_has_no_listener_and_says_so() {
        let mut listeners = listeners();
        let peers = [peer(one(), Some("no-such-vrf")), peer(one(), None)];
        listeners.admit(peers.iter());
        assert_eq!(listeners.not_accepted(peers[0].key), Some(NO_VRF));
        assert_eq!(listeners.not_accepted(peers[1].key), None);
        listeners.admit(peers[1..].iter());
        assert_eq!(listeners.not_accepted(peers[0].key), None, "it is not needed any more");
    }

    /// Any device can be bound to; the loopback one is on every machine.
    #[tokio::test]
    async fn a_vrf_is_listened_in_for_as_long_as_a_peer_is_in_it() {
        let (events, mut network) = mpsc::channel(1);
        let mut listeners = Listeners::open(Listen::at([([127, 0, 0, 1], 0).into()]), events);
        let peers = [peer(one(), Some("lo"))];
        listeners.admit(peers.iter());
        let in_vrf = listeners.open[&peers[0].key.vrf].listeners[0].socket.local_addr().unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 9], 0).into()).unwrap();
        let _stream = socket.connect(in_vrf).await.unwrap();
        assert_eq!(network.recv().await.unwrap().key, peers[0].key);
        assert_eq!(listeners.not_accepted(peers[0].key), None);
        listeners.admit(std::iter::empty());
        assert_eq!(listeners.open.len(), 1);
    }

    #[tokio::test]
    async fn a_port_is_left_to_others_until_a_peer_needs_it() {
        let at = Listen::at([([127, 0, 0, 1], 0).into()]);
        let listen = Listen { only_when_needed: true, ..at };
        let mut listeners = Listeners::open(listen, mpsc::channel(1).0);
        let active = peer(one(), None);
        let passive = PeerConfig { passive: true, ..active.clone() };
        let range = peer(Remote::Range("127.0.0.0/24".parse().unwrap()), None);
        for (config, is_open) in
            [(&active, false), (&passive, true), (&active, false), (&range, true)]
        {
            listeners.admit([config.clone()].iter());
            assert_eq!(!listeners.addresses().is_empty(), is_open, "{config:?}");
        }
    }

    #[tokio::test]
    async fn the_key_of_an_unnumbered_peer_follows_its_router() {
        let loopback = Ipv6Addr::LOCALHOST;
        let mut listeners = Listeners::open(Listen::at([(loopback, 0).into()]), mpsc::channel(1).0);
        let remote = Remote::Interface("eth0".parse().unwrap());
        let config = PeerConfig { password: Password::new("key").ok(), ..peer(remote, None) };
        listeners.admit([config.clone()].iter());
        listeners.set_router(config.key, Some(loopback));
        assert_eq!(listeners.remote(config.key), Remote::Address(loopback.into()));
        let to = listeners.addresses()[0];
        let unsigned = TcpSocket::new_v6().unwrap().connect(to);
        let patience = std::time::Duration::from_millis(200);
        let outcome = tokio::time::timeout(patience, unsigned).await;
        assert!(outcome.is_err(), "a SYN without its key is not answered");
        listeners.set_router(config.key, None);
        assert!(TcpSocket::new_v6().unwrap().connect(to).await.is_ok());
    }

    #[tokio::test]
    async fn a_range_whose_keys_no_listener_takes_lets_nobody_in_by_a_wider_one() {
        if kernel_has_it() {
            return;
        }
        let mut listeners = listeners();
        let [wide, small] = ["127.0.0.0/8", "127.0.0.0/24"]
            .map(|range| peer(Remote::Range(range.parse().unwrap()), None));
        let key = AoKey::new(1, 1, AoAlgorithm::HmacSha1, "key").unwrap();
        let small = PeerConfig { tcp_ao: AoKeys::new(vec![key]).unwrap(), ..small };
        listeners.admit([wide.clone(), small.clone()].iter());
        assert_eq!(listeners.not_accepted(small.key), Some(UNPROTECTED));
        let found =
            |octet| listeners.admission.borrow().find(None, [127, 0, octet, 9].into(), None);
        assert_eq!(found(0), None);
        assert_eq!(found(1).unwrap().key, wide.key);
    }

    #[tokio::test]
    async fn a_range_is_protected_as_a_whole() {
        let mut listeners = listeners();
        let range: Prefix = "127.0.0.0/24".parse().unwrap();
        let password = Password::new("key").ok();
        let config = PeerConfig { password, ..peer(Remote::Range(range), None) };
        listeners.admit([config.clone()].iter());
        assert!(listeners.keys.contains_key(&config.key));
        assert_eq!(listeners.not_accepted(config.key), None);
        listeners.admit(std::iter::empty());
        assert!(listeners.keys.is_empty());
    }
}
