//! The desired settings of one neighbour.

use std::net::IpAddr;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::{
    AddPath, AddressFamily, AoKeys, Asn, BfdSettings, ChosenNextHops, ClientKind, ClusterId,
    FamilySet, GracefulRestart, HoldTime, ImportPolicy, ListenRange, Password, PeerKey, PeerKind,
    PrefixFilter, Remote, RemoteAs, Role, RouteRule, RouterId, ShutdownMessage,
};

/// How BFD monitors the path to a neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerBfd {
    /// The name of the BFDProfile.
    pub profile: String,
    /// The settings of its BFD session, which other neighbours on the same path share.
    pub settings: BfdSettings,
    /// BGP waits until BFD is Up.
    pub strict: bool,
}

/// The desired settings of one neighbour, valid by construction: `resources` checks what users
/// write before it becomes this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerConfig {
    /// The neighbour.
    pub key: PeerKey,
    /// The operator's name for it; shown, and referred to by advertisements.
    pub name: String,
    /// The listen range that it belongs to. Routes for such a neighbour refer to the range.
    pub listen_range: Option<ListenRange>,
    /// Our AS for this neighbour.
    pub local_asn: Asn,
    /// Our AS otherwise: a path that contains it is a loop, too. It is not in the paths that this neighbour
    /// is sent (FRR's `local-as no-prepend replace-as`).
    pub router_asn: Asn,
    /// Its AS.
    pub remote_as: RemoteAs,
    /// Our BGP identifier for this neighbour.
    pub router_id: RouterId,
    /// Never dialled, only accepted.
    pub passive: bool,
    /// Administratively down, with the message that the neighbour is sent (RFC 9003).
    pub shutdown: Option<ShutdownMessage>,
    /// The remote port, 1 to 65535.
    pub port: u16,
    /// The local address of outgoing connections; the kernel chooses when `None`.
    pub source_address: Option<IpAddr>,
    /// Our hold time in OPEN.
    pub hold_time: HoldTime,
    /// Our keepalive interval; the smaller of this and a third of the negotiated hold time is
    /// used (RFC 4271 §4.4). `None` is a third.
    pub keepalive_interval: Option<Duration>,
    /// Maximum interval between two connection attempts.
    pub connect_retry_interval: Duration,
    /// How long a connection waits for the neighbour's OPEN before it sends ours (RFC 4271 §8.1.1,
    /// DelayOpen). `None` disables it, which the daemon always does: no resource has a field for it.
    pub delay_open_time: Option<Duration>,
    /// The TCP-MD5 key.
    pub password: Option<Password>,
    /// The keys of TCP-AO (RFC 5925), instead of a TCP-MD5 key; empty if it is not used.
    pub tcp_ao: AoKeys,
    /// Whether the neighbour may be more than one hop away; otherwise, packets to an external one have a TTL
    /// of 1.
    pub multihop: bool,
    /// The maximum number of hops to the neighbour; packets from further away are dropped: packets are sent
    /// with a TTL of 255 and must arrive with at least 256 less this value (GTSM, RFC 5082). 1 to 254.
    pub ttl_security_hops: Option<NonZeroU8>,
    /// The families that we advertise.
    pub families: FamilySet,
    /// IPv4 routes may have IPv6 next hops (RFC 8950).
    pub extended_next_hop: bool,
    /// Several paths to a prefix (RFC 7911).
    pub add_path: AddPath,
    /// Advertises enhanced route refresh (RFC 7313). The daemon always does: no resource has a field for it.
    pub enhanced_refresh: bool,
    /// Graceful restart, ours and the neighbour's (RFC 4724); `None` disables it.
    pub graceful_restart: Option<GracefulRestart>,
    /// It is a client of ours: a route reflector's if it is internal, a route server's if it is external.
    pub client: Option<ClientKind>,
    /// Our cluster, if that is not our BGP identifier (RFC 4456 §7). Has no effect for an external neighbour.
    pub cluster_id: Option<ClusterId>,
    /// Our role towards it (RFC 9234).
    pub role: Option<Role>,
    /// A neighbour that does not advertise its role is rejected.
    pub role_strict: bool,
    /// Which routes are accepted from it.
    pub import: ImportPolicy,
    /// Which learned routes it is sent, in addition to those that refer to it.
    pub pass_on: PrefixFilter,
    /// What happens to those routes, in order.
    pub pass_on_rules: Arc<[RouteRule]>,
    /// The next hops that it is sent instead of those of this end.
    pub next_hops: ChosenNextHops,
    /// This machine forwards by the routes that are accepted from it.
    pub install_routes: bool,
    /// BFD for the path to it; `None` disables it.
    pub bfd: Option<PeerBfd>,
}

impl PeerConfig {
    /// Default of the maximum interval between two connection attempts.
    pub const CONNECT_RETRY_INTERVAL_DEFAULT: Duration = Duration::from_secs(5);

    /// The BGP port.
    pub const PORT_DEFAULT: u16 = 179;

    /// A neighbour with default settings: it is dialled, accepts no routes and carries the family of its
    /// address, or both if it has none.
    pub fn new(key: PeerKey, local_asn: Asn, remote_as: RemoteAs, router_id: RouterId) -> Self {
        Self {
            key,
            name: key.to_string(),
            listen_range: None,
            local_asn,
            router_asn: local_asn,
            remote_as,
            router_id,
            passive: false,
            shutdown: None,
            port: Self::PORT_DEFAULT,
            source_address: None,
            hold_time: HoldTime::DEFAULT,
            keepalive_interval: None,
            connect_retry_interval: Self::CONNECT_RETRY_INTERVAL_DEFAULT,
            delay_open_time: None,
            password: None,
            tcp_ao: AoKeys::default(),
            multihop: false,
            ttl_security_hops: None,
            families: match key.remote {
                Remote::Address(address) => FamilySet::only(AddressFamily::of(address)),
                Remote::Range(range) => FamilySet::only(range.family()),
                Remote::DefaultGateway(family) => FamilySet::only(family),
                Remote::Interface(_) => FamilySet::BOTH,
            },
            extended_next_hop: false,
            add_path: AddPath::default(),
            enhanced_refresh: true,
            graceful_restart: None,
            client: None,
            cluster_id: None,
            role: None,
            role_strict: false,
            import: ImportPolicy::default(),
            pass_on: PrefixFilter::Nothing,
            pass_on_rules: Arc::default(),
            next_hops: ChosenNextHops::default(),
            install_routes: false,
            bfd: None,
        }
    }

    /// iBGP or eBGP.
    pub fn kind(&self) -> PeerKind {
        match self.remote_as {
            RemoteAs::Internal => PeerKind::Internal,
            RemoteAs::Asn(asn) if asn == self.local_asn => PeerKind::Internal,
            RemoteAs::Asn(_) | RemoteAs::External => PeerKind::External,
        }
    }

    /// Our cluster, towards an internal neighbour.
    pub fn internal_cluster_id(&self) -> Option<ClusterId> {
        let cluster_id = self.cluster_id.unwrap_or_else(|| ClusterId::from(self.router_id));
        (self.kind() == PeerKind::Internal).then_some(cluster_id)
    }

    /// Our role, if it is in effect: roles are for external neighbours only (RFC 9234 §4).
    pub fn external_role(&self) -> Option<Role> {
        self.role.filter(|_| self.kind() == PeerKind::External)
    }

    /// The key that routes for this neighbour refer to: that of its range, if it has one.
    pub fn route_key(&self) -> PeerKey {
        match self.listen_range {
            Some(range) => PeerKey { remote: Remote::Range(range.prefix), vrf: self.key.vrf },
            None => self.key,
        }
    }

    /// Whether it belongs to a listen range instead of being configured.
    pub fn is_dynamic(&self) -> bool {
        self.listen_range.is_some() && !self.key.is_range()
    }

    /// Whether it is dialled at all.
    pub fn is_dialled(&self) -> bool {
        !self.passive && self.shutdown.is_none() && !self.key.is_range()
    }

    /// Whether it must be directly connected, if it is external.
    pub fn is_next_door(&self) -> bool {
        !self.multihop && self.ttl_security_hops.is_none_or(|hops| hops.get() == 1)
    }

    /// The minimum TTL (or hop limit) of its packets (RFC 5082 §3).
    pub fn ttl_min(&self) -> Option<u8> {
        self.ttl_security_hops.map(|hops| u8::MAX.saturating_sub(hops.get().saturating_sub(1)))
    }

    /// The TTL (or hop limit) of our packets: 1 for a neighbour that must be directly connected.
    pub fn ttl(&self) -> u8 {
        if self.ttl_security_hops.is_some() {
            return u8::MAX;
        }
        match self.kind() {
            PeerKind::External if !self.multihop => 1,
            // The kernel's default, set explicitly so that the listener's own setting is never inherited.
            _ => 64,
        }
    }
}
