//! Which lines configure one neighbour, and does FRR support it?
//!
//! One [`PeerConfig`] as the words of its lines, or the reason why FRR cannot have such a neighbour. Knows no
//! other neighbour and no route. Called by `render`.

use std::time::Duration;

use fairway_ground::{
    AddressFamily, ChosenNextHops, ClientKind, FamilySet, MaximumPrefixes, PeerKey, PeerKind,
    Remote, RemoteAs, RouteRule,
};
use fairway_seam::PeerConfig;
use serde::Serialize;

use super::filters::{In, PassOn};
use super::rules::{RuleRefusal, Rules, Way};
use super::shared::Shared;
use super::words::{Word, WordError, Words};
use super::{Settings, Site, names};

/// The first version with `addpath-tx-best-selected`.
const PATHS_SINCE: (u8, u8) = (9, 1);
/// The maximum number of paths that it accepts.
const PATHS_MAX: u8 = 6;
/// The first version with `bfd strict`.
const STRICT_BFD_SINCE: (u8, u8) = (10, 4);
/// The first version with roles.
const ROLES_SINCE: (u8, u8) = (8, 4);
/// The TTL of a multihop session: the kernel's default, as for our own sessions. FRR's default of 255 is
/// shown differently by its versions.
const MULTIHOP_TTL: u8 = 64;

/// Why FRR cannot have a neighbour.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("{what} {error}")]
    Word { what: &'static str, error: WordError },
    #[error("{what} needs FRR {}.{} or newer; this is {}.{}", since.0, since.1, has.0, has.1)]
    Version { what: &'static str, since: (u8, u8), has: (u8, u8) },
    #[error("tcpAO is not supported with FRR, which has no TCP-AO")]
    TcpAo,
    #[error("the address of the default gateway is known on the node alone")]
    NoAddress,
    #[error("{direction}.rules[{number}].{why}")]
    Rule { direction: &'static str, number: usize, why: RuleRefusal },
    #[error("installRoutes is not supported with FRR for a listenRange")]
    InstallRange,
    #[error(
        "installRoutes is not supported where FRR has a `router bgp` that is not Fairway's: FRR installs no \
         routes of a view"
    )]
    InstallInView,
    #[error(
        "a BFDProfile with authentication is not supported with FRR, which has no BFD \
             authentication"
    )]
    BfdAuthentication,
    #[error("addPath.send {0} is more than FRR supports; expected 1 to {PATHS_MAX}")]
    Paths(u8),
    #[error("sourceAddress is not supported with FRR where the neighbor is an interface")]
    InterfaceSource,
    #[error("extendedNexthop cannot be off with FRR where the neighbor is an interface")]
    InterfaceNextHop,
    #[error("roleStrict is not supported with FRR for a listenRange")]
    StrictRange,
    #[error(
        "{0} is not supported where FRR has a `router bgp` that is not Fairway's: FRR passes all incoming \
         connections to that one"
    )]
    Incoming(&'static str),
    #[error(
        "an interface is not supported where FRR has a `router bgp` that is not Fairway's: in a view FRR does \
         not find the neighbor"
    )]
    InterfaceInView,
    #[error("localASN is not supported with FRR for a neighbor in myASN, or in localASN itself")]
    InternalLocalAs,
    #[error(
        "{field} is {this}, but {that} in BGPPeer {other}; FRR has one value for all peers of a VRF"
    )]
    Shared { field: &'static str, this: String, that: String, other: String },
}

/// The words of its lines, in the order in which FRR shows them.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Neighbour {
    #[serde(skip)]
    pub(super) key: PeerKey,
    #[serde(skip)]
    pub(super) vrf: Option<Word>,
    /// The resource.
    pub(super) origin: Words,
    /// Its name in FRR: address, interface or peer group.
    pub(super) name: Word,
    /// Its part of route map names.
    id: String,
    /// `interface`, `group`, or empty for an address.
    form: &'static str,
    remote_as: String,
    local_as: Option<String>,
    description: Words,
    is_down: bool,
    shutdown_message: Option<Words>,
    bfd_profile: Option<String>,
    bfd_strict: bool,
    password: Option<Word>,
    port: Option<u16>,
    passive: bool,
    multihop_ttl: Option<u8>,
    role: Option<&'static str>,
    role_strict: bool,
    ttl_security_hops: Option<u8>,
    disable_connected_check: bool,
    source: Option<String>,
    keepalive: u64,
    hold: u16,
    connect: u64,
    extended_next_hop: bool,
    graceful_restart: bool,
    paths_sent: Option<u8>,
    paths_received: bool,
    keeps_filtered: bool,
    maximum: Option<String>,
    is_reflector_client: bool,
    is_server_client: bool,
    allowas_in: Option<String>,
    /// Routes that are accepted.
    pub(super) accepts: In,
    accept_rules: Rules,
    /// Learned routes that are passed on to it.
    pub(super) passes_on: PassOn,
    pub(super) pass_on_rules: Rules,
    /// Routes that it sends are installed.
    #[serde(skip)]
    pub(super) installs: bool,
    #[serde(skip)]
    families: FamilySet,
    #[serde(skip)]
    is_distant: bool,
    #[serde(skip)]
    pub(super) shared: Shared,
}

impl Neighbour {
    /// Fails for a neighbour that FRR would reject or handle differently.
    pub(super) fn new(peer: &PeerConfig, settings: &Settings) -> Result<Self, Refusal> {
        refuse(peer, settings)?;
        let mark = settings.mark();
        let what = |what| move |error| Refusal::Word { what, error };
        let description = Words::new(peer.name.as_bytes()).map_err(what("metadata.name"))?;
        let message = peer.shutdown.as_ref().map(|it| it.as_str()).filter(|it| !it.is_empty());
        let message = message.map(|text| Words::new(text.as_bytes()));
        let password = peer.password.as_ref().map(|it| Word::new(it.expose()));
        let password = password.transpose().map_err(what("the password"))?;
        let (form, name) = match peer.key.remote {
            Remote::Address(address) => ("", address.to_string()),
            Remote::Interface(name) => ("interface", name.to_string()),
            Remote::Range(_) => ("group", names::of_group(&mark, peer.key)),
            Remote::DefaultGateway(_) => return Err(Refusal::NoAddress),
        };
        let name = Word::new(name.as_bytes()).map_err(what("the interface"))?;
        let vrf = peer.key.vrf.map(|vrf| Word::new(vrf.as_str().as_bytes()));
        let hold = peer.hold_time.seconds();
        let id = names::of_neighbour(peer.key);
        let (accept_rules, pass_on_rules) = rules(peer, &mark, &id)?;
        Ok(Self {
            key: peer.key,
            vrf: vrf.transpose().map_err(what("the VRF"))?,
            origin: resource("BGPPeer", &peer.name)?,
            installs: peer.install_routes,
            name,
            id,
            form,
            remote_as: remote_as(peer.remote_as),
            local_as: (peer.local_asn != peer.router_asn).then(|| peer.local_asn.to_string()),
            description,
            is_down: peer.shutdown.is_some(),
            shutdown_message: message.transpose().map_err(what("shutdown.message"))?,
            bfd_profile: peer.bfd.as_ref().map(|bfd| names::of_profile(&mark, &bfd.profile)),
            bfd_strict: peer.bfd.as_ref().is_some_and(|bfd| bfd.strict),
            password: password.map(|it| if settings.hide_secrets { Word::hidden() } else { it }),
            port: (peer.port != PeerConfig::PORT_DEFAULT).then_some(peer.port),
            passive: peer.passive,
            multihop_ttl: is_multihop(peer).then_some(MULTIHOP_TTL),
            role: peer.external_role().map(|role| role.name()),
            role_strict: peer.role_strict,
            ttl_security_hops: peer.ttl_security_hops.map(u8::from),
            disable_connected_check: needs_no_network(peer),
            source: peer.source_address.map(|it| it.to_string()),
            keepalive: keepalive(peer.keepalive_interval, hold),
            hold,
            connect: seconds(peer.connect_retry_interval).clamp(1, u64::from(u16::MAX)),
            // FRR enables it by default if the neighbour is an interface, and does not show it.
            extended_next_hop: peer.extended_next_hop && form != "interface",
            graceful_restart: peer.graceful_restart.is_some(),
            paths_sent: peer.add_path.send.map(u8::from),
            paths_received: peer.add_path.receive,
            keeps_filtered: peer.import.keeps_filtered,
            maximum: peer.import.maximum.map(maximum),
            is_reflector_client: peer.client == Some(ClientKind::Reflector),
            is_server_client: peer.client == Some(ClientKind::RouteServer),
            allowas_in: match peer.import.own_as_max {
                0 => None,
                // FRR does not show its default.
                3 => Some("allowas-in".to_owned()),
                count => Some(format!("allowas-in {count}")),
            },
            accepts: In::new(&peer.import.allowed, peer.families),
            accept_rules,
            passes_on: PassOn::new(&peer.pass_on, peer.families),
            pass_on_rules,
            families: peer.families,
            is_distant: peer.kind() == PeerKind::Internal || !peer.is_next_door(),
            shared: Shared::of(peer),
        })
    }

    /// Whether its session carries `family`.
    pub(super) fn carries(&self, family: AddressFamily) -> bool {
        self.families.contains(family)
    }

    /// The family of its address, if FRR looks for a route to it before it dials: a neighbour that is not directly
    /// connected.
    pub(super) fn tracked(&self) -> Option<AddressFamily> {
        let Remote::Address(address) = self.key.remote else { return None };
        let family =
            if address.is_ipv4() { AddressFamily::Ipv4Unicast } else { AddressFamily::Ipv6Unicast };
        (self.is_distant && self.vrf.is_none()).then_some(family)
    }

    /// Its sort key: FRR shows groups first, then interfaces, then addresses.
    pub(super) fn rank(&self) -> (u8, PeerKey) {
        let rank = match self.key.remote {
            Remote::Range(_) => 0,
            Remote::Interface(_) => 1,
            Remote::Address(_) | Remote::DefaultGateway(_) => 2,
        };
        (rank, self.key)
    }

    /// The listen range, with the name of its peer group.
    pub(super) fn range(&self) -> Option<(String, Word)> {
        match self.key.remote {
            Remote::Range(prefix) => Some((prefix.to_string(), self.name.clone())),
            Remote::Address(_) | Remote::Interface(_) | Remote::DefaultGateway(_) => None,
        }
    }
}

fn remote_as(remote: RemoteAs) -> String {
    match remote {
        RemoteAs::Asn(asn) => asn.to_string(),
        RemoteAs::Internal => "internal".to_owned(),
        RemoteAs::External => "external".to_owned(),
    }
}

/// Those about routes that it sends, and about learned ones that it is sent.
fn rules(peer: &PeerConfig, mark: &str, id: &str) -> Result<(Rules, Rules), Refusal> {
    let of = |direction, rules: &[RouteRule], way, map: &str| {
        let refusal = |(number, why)| Refusal::Rule { direction, number, why };
        if let Some(number) = rules.iter().position(|it| !it.matches.next_hops.is_empty()) {
            if peer.extended_next_hop && peer.families.contains(AddressFamily::Ipv4Unicast) {
                return Err(refusal((number, RuleRefusal::ForeignNextHop)));
            }
            if way != Way::In && peer.next_hops != ChosenNextHops::default() {
                return Err(refusal((number, RuleRefusal::ReplacedNextHop)));
            }
        }
        Rules::new(rules, peer.families, way, &format!("{mark}{map}-{id}")).map_err(refusal)
    };
    let accepting = of("toReceive", &peer.import.rules, Way::In, "in")?;
    let way = Way::Out(peer.local_asn.get());
    Ok((accepting, of("toAdvertise", &peer.pass_on_rules, way, "out")?))
}

/// The name of a resource in messages and comments.
pub(super) fn resource(kind: &'static str, name: &str) -> Result<Words, Refusal> {
    let words = Words::new(format!("{kind} {name}").as_bytes());
    words.map_err(|error| Refusal::Word { what: "metadata.name", error })
}

fn refuse(peer: &PeerConfig, settings: &Settings) -> Result<(), Refusal> {
    let needs = |what, since| match settings.version {
        Some(has) if has < since => Err(Refusal::Version { what, since, has }),
        _ => Ok(()),
    };
    if !peer.tcp_ao.is_empty() {
        return Err(Refusal::TcpAo);
    }
    if peer.install_routes && peer.key.is_range() {
        return Err(Refusal::InstallRange);
    }
    if let Some(bfd) = &peer.bfd {
        if bfd.settings.authentication.is_some() {
            return Err(Refusal::BfdAuthentication);
        }
        if bfd.strict {
            needs("bfdStrict", STRICT_BFD_SINCE)?;
        }
    }
    if let Some(paths) = peer.add_path.send.map(u8::from) {
        needs("addPath.send", PATHS_SINCE)?;
        if paths > PATHS_MAX {
            return Err(Refusal::Paths(paths));
        }
    }
    if peer.external_role().is_some() {
        needs("role", ROLES_SINCE)?;
        if peer.role_strict && peer.key.is_range() {
            return Err(Refusal::StrictRange);
        }
    }
    if peer.key.interface().is_some() {
        if peer.source_address.is_some() {
            return Err(Refusal::InterfaceSource);
        }
        if !peer.extended_next_hop {
            return Err(Refusal::InterfaceNextHop);
        }
    }
    if settings.site == Site::Beside && peer.key.vrf.is_none() {
        if peer.install_routes {
            return Err(Refusal::InstallInView);
        }
        if peer.key.is_range() {
            return Err(Refusal::Incoming("listenRange"));
        }
        if peer.passive {
            return Err(Refusal::Incoming("passive"));
        }
        if peer.key.interface().is_some() {
            return Err(Refusal::InterfaceInView);
        }
    }
    let is_own = peer.remote_as == RemoteAs::Asn(peer.router_asn);
    if peer.local_asn != peer.router_asn && (is_own || peer.kind() == PeerKind::Internal) {
        return Err(Refusal::InternalLocalAs);
    }
    Ok(())
}

/// FRR accepts only one of multihop and TTL security, and neither has an effect inside the AS.
fn is_multihop(peer: &PeerConfig) -> bool {
    peer.multihop && peer.kind() == PeerKind::External && peer.ttl_security_hops.is_none()
}

/// FRR does not dial an external neighbour outside of all connected networks. A neighbour with an IPv6
/// address may still be directly connected: clouds give a machine an address without a network.
fn needs_no_network(peer: &PeerConfig) -> bool {
    let is_ipv6 = match peer.key.remote {
        Remote::Address(address) => address.is_ipv6(),
        Remote::Range(prefix) => prefix.family() == AddressFamily::Ipv6Unicast,
        Remote::Interface(_) | Remote::DefaultGateway(_) => false,
    };
    is_ipv6 && peer.kind() == PeerKind::External && peer.is_next_door()
}

/// At most a third of the hold time, as FRR limits and shows it.
fn keepalive(interval: Option<Duration>, hold: u16) -> u64 {
    let third = u64::from(hold / 3);
    let interval = interval.map_or(third, |it| seconds(it).max(1));
    interval.min(third)
}

/// Whole seconds, rounded up.
fn seconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0))
}

/// A session that exceeded its prefix limit restarts after a minute.
fn maximum(maximum: MaximumPrefixes) -> String {
    let MaximumPrefixes { limit, warn_percent, .. } = maximum;
    if warn_percent == MaximumPrefixes::WARN_PERCENT_DEFAULT {
        format!("{limit} restart 1")
    } else {
        format!("{limit} {warn_percent} restart 1")
    }
}
