//! BGPPeer (metallb.io/v1beta2, and the older v1beta1): a router to peer with.
//!
//! Answers which session a manifest requests. Refuses, with the reason, every field that this
//! version does not support: a silently ignored setting is worse than none. Knows no other object;
//! whether a Secret exists is for the catalog.

mod keys;
mod remote;
mod timers;
pub(super) mod v1beta1;

use std::num::NonZeroU8;

use fairway_ground::{
    AddPath, AddressFamily, ClientKind, ClusterId, InterfaceName, ListenRange, Prefix, Remote,
    Role, RouterId, ShutdownMessage,
};
use fairway_model::{Object, Peer};
use fairway_seam::PeerConfig;
use keys::{RawAuthenticationOption, RawSecretReference};
use remote::{DynamicAs, Neighbour, RawAutoDiscovery};
use schemars::JsonSchema;
use serde::Deserialize;
use timers::RawGracefulRestart;

use super::crds::rules;
use super::field_path::FieldPath;
use super::fields::{
    AsNumber, Given, GoDuration, Hops, HostAddress, ListenLimit, OwnAsCount, PathCount,
    PeerAsNumber, PeerPort, Text,
};
use super::hidden::{HiddenMapping, KeyText};
use super::label_selector::{self, RawLabelSelector};
use super::metadata::Metadata;
use super::report::{List, Report};
use super::route_policy::{self, RawToAdvertise, RawToReceive};
use super::yaml::node::Node;

/// The older `apiVersion`.
pub(super) const VERSION_OLD: &str = "metallb.io/v1beta1";

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RawSpec {
    /// Our AS number.
    #[schemars(required, extend("minimum" = 0))]
    #[serde(rename = "myASN")]
    my_asn: Option<AsNumber>,
    /// Another AS number of ours, used only towards this peer. eBGP only.
    #[serde(rename = "localASN")]
    local_asn: Option<AsNumber>,
    /// The AS number of the peer. This or dynamicASN.
    #[serde(rename = "peerASN")]
    peer_asn: Option<PeerAsNumber>,
    /// Accepts any AS number of the peer: internal for ours, external for any other.
    #[schemars(extend("enum" = ["internal", "external"]))]
    #[serde(rename = "dynamicASN")]
    dynamic_asn: Option<Text<Given<DynamicAs>>>,
    /// The address of the peer. This, interface, listenRange or autoDiscovery.
    peer_address: Option<Text<Given<HostAddress>>>,
    /// The interface that leads to the peer, which needs no address there (unnumbered).
    interface: Option<Text<Given<InterfaceName>>>,
    /// A prefix from which any peer may connect, in place of one peer. Fairway only.
    listen_range: Option<Text<Given<Prefix>>>,
    /// The peer is the default gateway of the node. Fairway only.
    auto_discovery: Option<RawAutoDiscovery>,
    /// The most peers of listenRange at a time. Default: 100. Fairway only.
    listen_limit: Option<ListenLimit>,
    /// The VRF that the session runs in.
    vrf: Option<Text<Given<InterfaceName>>>,
    /// Never connects; waits for the peer to connect. Fairway only.
    passive: Option<bool>,
    /// Administrative shutdown: takes the session down and keeps it down. Fairway only.
    shutdown: Option<RawShutdown>,
    /// The address that we connect from.
    source_address: Option<Text<Given<HostAddress>>>,
    /// The port of the peer.
    #[schemars(extend("default" = PeerConfig::PORT_DEFAULT))]
    peer_port: Option<PeerPort>,
    /// How long the peer may be silent, as 90s: 0s or 3s and more. Default: 90s, or three times
    /// keepaliveTime.
    hold_time: Option<GoDuration>,
    /// The interval of our KEEPALIVE messages. Default: a third of holdTime.
    keepalive_time: Option<GoDuration>,
    /// The maximum time between two connection attempts, from 1s to 65535s.
    #[schemars(extend("x-kubernetes-validations" = rules::CONNECT_TIME))]
    connect_time: Option<GoDuration>,
    /// Our router ID towards this peer, as an IPv4 address.
    #[serde(rename = "routerID")]
    router_id: Option<Text<Given<RouterId>>>,
    /// Selects the nodes that have this peer. None: all.
    node_selectors: Option<List<RawLabelSelector>>,
    /// The key of TCP-MD5. Better in a Secret: passwordSecret.
    password: Option<KeyText>,
    /// The Secret with the key of TCP-MD5, as password.
    password_secret: Option<HiddenMapping<RawSecretReference>>,
    /// Keys of TCP-AO (RFC 5925), in place of TCP-MD5. Fairway only.
    #[serde(rename = "tcpAO")]
    tcp_authentication_option: Option<HiddenMapping<RawAuthenticationOption>>,
    /// Whether the peer may be several hops away. eBGP only.
    ebgp_multi_hop: Option<bool>,
    /// The maximum number of hops to the peer; packets from farther away are dropped (RFC 5082). Fairway
    /// only.
    ttl_security_hops: Option<Hops>,
    /// Carries IPv4 and IPv6 over this one session.
    #[schemars(extend("default" = false))]
    dual_stack_address_family: Option<bool>,
    /// Has no effect: a session carries the family of its address unless dualStackAddressFamily is set.
    #[schemars(extend("default" = false))]
    #[serde(rename = "disableMP")]
    disable_multiprotocol: Option<bool>,
    /// IPv4 routes with IPv6 next hops (RFC 8950). Default: true with interface. Fairway only.
    extended_nexthop: Option<bool>,
    /// Several paths to a prefix (RFC 7911). Fairway only.
    add_path: Option<RawAddPath>,
    /// The peer is a client of this route reflector (RFC 4456): it receives the routes of iBGP peers, and they receive
    /// its routes, as toAdvertise allows. iBGP only. Fairway only.
    route_reflector_client: Option<bool>,
    /// The cluster of this route reflector towards the peer, as an IPv4 address. Default: our router ID. iBGP only.
    /// Fairway only.
    #[serde(rename = "clusterID")]
    cluster_id: Option<Text<Given<ClusterId>>>,
    /// The peer is a client of this route server (RFC 7947): our AS is not in the paths that it receives, and next hop and
    /// MED stay. eBGP only. Fairway only.
    route_server_client: Option<bool>,
    /// How often our own AS may be in a path of the peer, 1 to 10. Default: a path with our AS is a loop. Fairway only.
    #[serde(rename = "allowASIn")]
    allow_as_in: Option<OwnAsCount>,
    /// Our role towards the peer (RFC 9234). Fairway only.
    #[schemars(extend("enum" = ["provider", "customer", "peer", "rs-server", "rs-client"]))]
    role: Option<Text<Given<Role>>>,
    /// Refuses peers that do not send their role. Fairway only.
    role_strict: Option<bool>,
    /// Routes outlive a restart of either side (RFC 4724). Cannot be changed later.
    #[schemars(extend("x-kubernetes-validations" = rules::IMMUTABLE))]
    enable_graceful_restart: Option<bool>,
    /// How long they do. Fairway only.
    graceful_restart: Option<RawGracefulRestart>,
    /// What is accepted from the peer; not set: nothing. Fairway only.
    to_receive: Option<RawToReceive>,
    /// Which learned routes are advertised to the peer, too. Fairway only.
    to_advertise: Option<RawToAdvertise>,
    /// The BFDProfile of the session; not set: no BFD.
    bfd_profile: Option<String>,
    /// No session before BFD is up. Only with a bfdProfile. Fairway only.
    bfd_strict: Option<bool>,
    /// Whether nodes forward by the routes that are accepted from the peer: they are installed in the kernel. Default:
    /// false. Fairway only.
    install_routes: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawShutdown {
    /// The reason, which is sent to the peer (RFC 9003).
    message: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawAddPath {
    /// How many paths to a prefix are sent to the peer.
    send: Option<PathCount>,
    /// Whether it may send several.
    receive: Option<bool>,
}

/// Parses the object; `None` if it has a fault.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let spec = FieldPath::of("spec");
    let version = report.root().get("apiVersion").and_then(Node::text);
    let is_old = version == Some(VERSION_OLD);
    let raw: Option<RawSpec> = if is_old { v1beta1::read(report) } else { report.read(&spec) };
    let raw = report.required(raw, &spec, "the settings of the session")?;
    if !is_old {
        check_port(raw.peer_port, report);
    }
    let neighbour = remote::neighbour(&raw, report);
    check(&raw, neighbour.as_ref(), report);
    let role = role(&raw, neighbour.as_ref(), report);
    let client = client(&raw, neighbour.as_ref(), report);
    let timers = timers::timers(raw.hold_time, raw.keepalive_time, report);
    let connect_interval = timers::connect_interval(raw.connect_time, report);
    let graceful_restart =
        timers::graceful_restart(raw.enable_graceful_restart, raw.graceful_restart, report);
    let bfd_profile = raw.bfd_profile.clone().filter(|name| !name.is_empty());
    let bfd_strict = bfd_strict(raw.bfd_strict, bfd_profile.as_deref(), report);
    let shutdown = raw.shutdown.and_then(|raw| shutdown(raw, report));
    let namespace = &metadata.name.namespace;
    let secret = raw.password_secret.map(|HiddenMapping(secret)| secret);
    let text = raw.password.and_then(|KeyText(text)| text);
    let password = keys::password(text, secret, namespace, report);
    let tcp_ao = raw.tcp_authentication_option.map(|HiddenMapping(raw)| raw);
    let tcp_ao = keys::tcp_ao(tcp_ao, &password, namespace, report);
    let import = route_policy::to_receive(raw.to_receive, raw.allow_as_in, report);
    let (pass_on, pass_on_rules, next_hops) = route_policy::to_advertise(raw.to_advertise, report);
    let node_selectors =
        label_selector::parse_list(raw.node_selectors, &spec.key("nodeSelectors"), report);
    let (hold_time, keepalive_interval) = timers?;
    let neighbour = neighbour?;
    let is_unnumbered = matches!(neighbour.remote, Remote::Interface(_));
    Some(Object::from(Peer {
        name: metadata.name,
        my_asn: neighbour.my_asn,
        local_asn: neighbour.local_asn,
        remote_as: neighbour.remote_as,
        remote: neighbour.remote,
        listen_limit: raw.listen_limit.map_or(ListenRange::LIMIT_DEFAULT, |it| it.0),
        vrf: given(raw.vrf),
        passive: raw.passive.unwrap_or(false),
        shutdown,
        port: port(raw.peer_port),
        source_address: given(raw.source_address).map(|HostAddress(address)| address),
        hold_time,
        keepalive_interval,
        connect_interval,
        router_id: given(raw.router_id),
        node_selectors,
        password,
        tcp_ao,
        ebgp_multihop: raw.ebgp_multi_hop.unwrap_or(false) && !is_unnumbered,
        ttl_security_hops: raw.ttl_security_hops.and_then(|Hops(hops)| NonZeroU8::new(hops)),
        dual_stack: raw.dual_stack_address_family.unwrap_or(false),
        extended_next_hop: raw.extended_nexthop.unwrap_or(is_unnumbered),
        add_path: raw.add_path.map(add_path).unwrap_or_default(),
        client,
        cluster_id: given(raw.cluster_id),
        role,
        role_strict: raw.role_strict.unwrap_or(false),
        graceful_restart,
        bfd_profile,
        bfd_strict,
        import,
        pass_on,
        pass_on_rules: pass_on_rules.into(),
        next_hops,
        install_routes: raw.install_routes.unwrap_or(false),
    }))
}

/// The fields that depend on others.
fn check(raw: &RawSpec, neighbour: Option<&Neighbour>, report: &mut Report<'_>) {
    if let Some(neighbour) = neighbour {
        check_distance(raw, neighbour, report);
        check_families(raw, neighbour, report);
    }
    warn_of_disable_multiprotocol(raw, report);
}

/// The schema of v1beta2 has no port 0, that of v1beta1 has. An API server checks an object in the version
/// in which it is written and serves it in both, so one that has a UID may have been written as v1beta1.
fn check_port(given: Option<PeerPort>, report: &mut Report<'_>) {
    let is_stored = report.root().get("metadata").and_then(|it| it.get("uid")).is_some();
    if given == Some(PeerPort(0)) && !is_stored {
        report.fault(
            &FieldPath::of("spec.peerPort"),
            "0 is not allowed; expected a port from 1 to 16384",
        );
    }
}

/// The port of the neighbour.
fn port(given: Option<PeerPort>) -> u16 {
    let given = given.map(|PeerPort(port)| port).filter(|port| *port != 0);
    given.unwrap_or(PeerConfig::PORT_DEFAULT)
}

/// The value of the text, if it is not empty.
fn given<T>(field: Option<Text<Given<T>>>) -> Option<T> {
    field.and_then(|Text(Given(value))| value)
}

/// The fields about the distance of the neighbour.
fn check_distance(raw: &RawSpec, neighbour: &Neighbour, report: &mut Report<'_>) {
    let multihop_path = FieldPath::of("spec.ebgpMultiHop");
    let hops_path = FieldPath::of("spec.ttlSecurityHops");
    let is_unnumbered = matches!(neighbour.remote, Remote::Interface(_));
    let is_multihop = raw.ebgp_multi_hop == Some(true);
    if is_multihop && neighbour.is_internal() {
        report.fault(&multihop_path, neighbour.external_only());
    } else if is_multihop && raw.ttl_security_hops.is_some() {
        report.fault(
            &hops_path,
            "and spec.ebgpMultiHop cannot both be set: one limits the hops to the neighbor, the \
             other lifts the limit; remove one",
        );
    } else if is_multihop && is_unnumbered {
        let message = "has no effect: the neighbor of an interface is directly connected";
        report.warning(&multihop_path, message);
    }
    if let Some(Hops(hops)) = raw.ttl_security_hops
        && hops > 1
        && is_unnumbered
    {
        let message =
            format_args!("{hops} is too many: the neighbor of an interface is one hop away; use 1");
        report.fault(&hops_path, message);
    }
}

/// Fields about a family that the session does not carry.
fn check_families(raw: &RawSpec, neighbour: &Neighbour, report: &mut Report<'_>) {
    let family = match neighbour.remote {
        _ if raw.dual_stack_address_family == Some(true) => return,
        Remote::Interface(_) => return,
        Remote::Address(address) => AddressFamily::of(address),
        Remote::Range(range) => range.family(),
        Remote::DefaultGateway(family) => family,
    };
    if raw.extended_nexthop == Some(true) && family == AddressFamily::Ipv6Unicast {
        report.warning(
            &FieldPath::of("spec.extendedNexthop"),
            "has no effect: the session carries no IPv4; set dualStackAddressFamily",
        );
    }
    let next_hop = FieldPath::of("spec.toAdvertise.nextHop");
    for (field, other) in
        [("ipv4", AddressFamily::Ipv4Unicast), ("ipv6", AddressFamily::Ipv6Unicast)]
    {
        let path = next_hop.key(field);
        if family != other && report.is_given(&path) && !report.is_faulty(&path) {
            report.warning(
                &path,
                format_args!(
                    "has no effect: the session carries {family} only; set dualStackAddressFamily"
                ),
            );
        }
    }
}

fn role(raw: &RawSpec, neighbour: Option<&Neighbour>, report: &mut Report<'_>) -> Option<Role> {
    let path = FieldPath::of("spec.role");
    let role = raw.role.as_ref().and_then(|Text(Given(role))| *role);
    if let Some(neighbour) = neighbour.filter(|it| role.is_some() && it.is_internal()) {
        report.fault(&path, neighbour.external_only());
    }
    if raw.role_strict == Some(true) && role.is_none() && !report.is_faulty(&path) {
        report.fault(
            &FieldPath::of("spec.roleStrict"),
            "needs a role; set spec.role, or leave it out",
        );
    }
    role
}

fn client(
    raw: &RawSpec,
    neighbour: Option<&Neighbour>,
    report: &mut Report<'_>,
) -> Option<ClientKind> {
    let spec = FieldPath::of("spec");
    let neighbour = neighbour?;
    let is_reflector_client = raw.route_reflector_client == Some(true);
    let is_server_client = raw.route_server_client == Some(true);
    if is_reflector_client && !neighbour.is_internal() {
        report.fault(&spec.key("routeReflectorClient"), neighbour.internal_only());
    }
    if raw.cluster_id.is_some() && !neighbour.is_internal() {
        report.fault(&spec.key("clusterID"), neighbour.internal_only());
    }
    if is_server_client && neighbour.is_internal() {
        report.fault(&spec.key("routeServerClient"), neighbour.external_only());
    }
    if neighbour.is_internal() {
        is_reflector_client.then_some(ClientKind::Reflector)
    } else {
        is_server_client.then_some(ClientKind::RouteServer)
    }
}

fn warn_of_disable_multiprotocol(raw: &RawSpec, report: &mut Report<'_>) {
    if raw.disable_multiprotocol == Some(true) {
        report.warning(
            &FieldPath::of("spec.disableMP"),
            "has no effect: a session carries the family of peerAddress, or both with \
             dualStackAddressFamily",
        );
    }
}

fn bfd_strict(given: Option<bool>, profile: Option<&str>, report: &mut Report<'_>) -> bool {
    let strict = given.unwrap_or(false);
    if strict && profile.is_none() && !report.is_faulty(&FieldPath::of("spec.bfdProfile")) {
        report.fault(
            &FieldPath::of("spec.bfdStrict"),
            "needs BFD; set spec.bfdProfile, or leave it out",
        );
    }
    strict
}

fn shutdown(raw: RawShutdown, report: &mut Report<'_>) -> Option<ShutdownMessage> {
    match ShutdownMessage::new(raw.message.unwrap_or_default()) {
        Ok(message) => Some(message),
        Err(error) => {
            report.fault(&FieldPath::of("spec.shutdown.message"), error);
            None
        }
    }
}

fn add_path(raw: RawAddPath) -> AddPath {
    AddPath {
        send: raw.send.and_then(|PathCount(paths)| NonZeroU8::new(paths)),
        receive: raw.receive.unwrap_or(false),
    }
}
