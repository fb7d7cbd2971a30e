//! BGPPeer (metallb.io/v1beta2): a router to peer with.
//!
//! Answers which session a manifest asks for. Refuses, with the reason, every field that this
//! version cannot act on: a setting that is dropped in silence is worse than none. Knows no other
//! object; whether a Secret exists is for the catalog.

use std::net::IpAddr;
use std::time::Duration;

use fairway_sessions::types::{AddressFamily, Asn, HoldTime, RouterId};
use serde::Deserialize;

use super::field_path::FieldPath;
use super::fields::{
    AsNumber, GoDuration, HiddenMapping, HostAddress, KeyText, PeerPort, Text, Unsupported,
};
use super::label_selector::{self, RawLabelSelector};
use super::metadata::Metadata;
use super::report::{List, Report};
use super::route_policy::{self, RawToAdvertise, RawToReceive};
use crate::model::{Object, ObjectName, Peer, PeerPassword};

/// BGP's own port, dialled when a peer names none.
const PORT_DEFAULT: u16 = 179;
/// The seconds between attempts to connect that `connectTime` may ask for.
const CONNECT_SECONDS_MAX: u64 = 65_535;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "fields of later versions are read only to be refused")]
struct RawSpec {
    #[serde(rename = "myASN")]
    my_asn: Option<AsNumber>,
    #[serde(rename = "peerASN")]
    peer_asn: Option<AsNumber>,
    peer_address: Option<Text<HostAddress>>,
    source_address: Option<Text<HostAddress>>,
    peer_port: Option<PeerPort>,
    hold_time: Option<GoDuration>,
    keepalive_time: Option<GoDuration>,
    connect_time: Option<GoDuration>,
    #[serde(rename = "routerID")]
    router_id: Option<Text<RouterId>>,
    node_selectors: Option<List<RawLabelSelector>>,
    password: Option<KeyText>,
    password_secret: Option<HiddenMapping<RawSecretReference>>,
    ebgp_multi_hop: Option<bool>,
    dual_stack_address_family: Option<bool>,
    #[serde(rename = "disableMP")]
    disable_multiprotocol: Option<bool>,
    to_receive: Option<RawToReceive>,
    to_advertise: Option<RawToAdvertise>,

    #[serde(rename = "dynamicASN")]
    dynamic_asn: Option<Unsupported>,
    #[serde(rename = "localASN")]
    local_asn: Option<Unsupported>,
    interface: Option<Unsupported>,
    bfd_profile: Option<Unsupported>,
    enable_graceful_restart: Option<Unsupported>,
    vrf: Option<Unsupported>,
    passive: Option<Unsupported>,
    listen_range: Option<Unsupported>,
    listen_limit: Option<Unsupported>,
    ttl_security_hops: Option<Unsupported>,
    graceful_restart: Option<Unsupported>,
    add_path: Option<Unsupported>,
    extended_nexthop: Option<Unsupported>,
    #[serde(rename = "tcpAO")]
    tcp_authentication_option: Option<Unsupported>,
    bfd_strict: Option<Unsupported>,
    install_routes: Option<Unsupported>,
    role: Option<Unsupported>,
    role_strict: Option<Unsupported>,
    shutdown: Option<Unsupported>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawSecretReference {
    name: Option<String>,
    namespace: Option<String>,
}

/// Reads the object; `None` when a fault of it was noted.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let spec = FieldPath::of("spec");
    let raw: Option<RawSpec> = report.read(&spec);
    let raw = report.required(raw, &spec, "the settings of the session")?;
    let asn_words = "an AS number from 1 to 4294967295";
    // Another way to name the neighbour was tried, and its fault says all there is to say.
    if !report.is_faulty(&spec.key("dynamicASN")) && raw.peer_asn.is_none() {
        report.missing(&spec.key("peerASN"), asn_words);
    }
    let by_interface = ["interface", "listenRange"].map(|field| report.is_faulty(&spec.key(field)));
    if !by_interface.contains(&true) && raw.peer_address.is_none() {
        report.missing(&spec.key("peerAddress"), "the router's IP address");
    }
    let my_asn = report.required(raw.my_asn, &spec.key("myASN"), asn_words);
    let address = raw.peer_address.map(|Text(HostAddress(address))| address);
    let source_address = raw.source_address.map(|Text(HostAddress(address))| address);
    check_addresses(address, source_address, report);
    let ebgp_multihop = raw.ebgp_multi_hop.unwrap_or(false);
    if let (Some(AsNumber(ours)), Some(AsNumber(theirs)), true) =
        (my_asn, raw.peer_asn, ebgp_multihop)
        && ours == theirs
    {
        report.fault(
            &spec.key("ebgpMultiHop"),
            "is for eBGP only, and peerASN is myASN; leave it out",
        );
    }
    if raw.disable_multiprotocol == Some(true) {
        report.warning(
            &spec.key("disableMP"),
            "has no effect: a session carries the family of peerAddress, or both with \
             dualStackAddressFamily",
        );
    }
    let timers = timers(raw.hold_time, raw.keepalive_time, report);
    let connect_interval = connect_interval(raw.connect_time, report);
    let secret = raw.password_secret.map(|HiddenMapping(secret)| secret);
    let password = password(raw.password, secret, &metadata.name.namespace, report);
    let import = route_policy::to_receive(raw.to_receive, report);
    let pass_on = route_policy::to_advertise(raw.to_advertise, report);
    let node_selectors =
        label_selector::parse_list(raw.node_selectors, &spec.key("nodeSelectors"), report);
    let (hold_time, keepalive_interval) = timers?;
    Some(Object::Peer(Peer {
        name: metadata.name,
        my_asn: Asn::new(my_asn?.0)?,
        peer_asn: Asn::new(raw.peer_asn?.0)?,
        address: address?,
        port: raw.peer_port.map_or(PORT_DEFAULT, |PeerPort(port)| port),
        source_address,
        hold_time,
        keepalive_interval,
        connect_interval,
        router_id: raw.router_id.map(|Text(id)| id),
        node_selectors,
        password,
        ebgp_multihop,
        dual_stack: raw.dual_stack_address_family.unwrap_or(false),
        import,
        pass_on,
    }))
}

fn check_addresses(address: Option<IpAddr>, source: Option<IpAddr>, report: &mut Report<'_>) {
    if let Some(IpAddr::V6(address)) = address
        && address.is_unicast_link_local()
    {
        report.fault(
            &FieldPath::of("spec.peerAddress"),
            format_args!(
                "{address} is link-local and would need an interface, which is not supported by \
                 this version yet; expected a global address"
            ),
        );
    }
    if let (Some(address), Some(source)) = (address, source)
        && AddressFamily::of(address) != AddressFamily::of(source)
    {
        report.fault(
            &FieldPath::of("spec.sourceAddress"),
            format_args!("{source} is not of the family of peerAddress, {address}"),
        );
    }
}

/// The hold time to offer and our keepalive interval. Seconds count; what one timer leaves open,
/// the other decides: the hold time is three keepalive intervals.
fn timers(
    hold: Option<GoDuration>,
    keepalive: Option<GoDuration>,
    report: &mut Report<'_>,
) -> Option<(HoldTime, Option<Duration>)> {
    let hold_path = FieldPath::of("spec.holdTime");
    let keepalive_path = FieldPath::of("spec.keepaliveTime");
    let hold = hold.map(|duration| whole_seconds(duration, &hold_path, report));
    let keepalive = keepalive.map(|duration| whole_seconds(duration, &keepalive_path, report));
    let (path, seconds) = match (hold, keepalive) {
        (None, None) => return Some((HoldTime::DEFAULT, None)),
        (Some(hold), _) => (&hold_path, hold),
        (None, Some(keepalive)) => (&keepalive_path, keepalive.saturating_mul(3)),
    };
    let hold_time = match HoldTime::from_seconds(seconds) {
        Ok(hold_time) => hold_time,
        Err(error) => {
            report.fault(path, error);
            return None;
        }
    };
    if hold_time == HoldTime::OFF {
        report.warning(path, "turns the hold timer off: a router that is gone is never noticed");
        if hold.is_some() && keepalive.is_some_and(|seconds| seconds > 0) {
            report.fault(&keepalive_path, "is more than the hold time of 0 s; leave it out");
        }
        return Some((hold_time, None));
    }
    match keepalive {
        Some(0) => {
            report.warning(
                &keepalive_path,
                "0 s would let the session expire; a third of the hold time is used",
            );
            Some((hold_time, None))
        }
        Some(seconds) if seconds > u64::from(hold_time.seconds()) => {
            report.fault(
                &keepalive_path,
                format_args!(
                    "{seconds} s is more than the hold time of {hold} s; expected at most {hold} \
                     s, usually a third of it",
                    hold = hold_time.seconds()
                ),
            );
            None
        }
        seconds => Some((hold_time, seconds.map(Duration::from_secs))),
    }
}

fn whole_seconds(duration: GoDuration, path: &FieldPath, report: &mut Report<'_>) -> u64 {
    let GoDuration(duration) = duration;
    if duration.subsec_nanos() != 0 {
        report.warning(path, format_args!("only whole seconds count: {} s", duration.as_secs()));
    }
    duration.as_secs()
}

fn connect_interval(raw: Option<GoDuration>, report: &mut Report<'_>) -> Option<Duration> {
    let GoDuration(duration) = raw?;
    let is_whole = duration.subsec_nanos() == 0;
    if is_whole && (1..=CONNECT_SECONDS_MAX).contains(&duration.as_secs()) {
        return Some(duration);
    }
    report.fault(
        &FieldPath::of("spec.connectTime"),
        format_args!(
            "{duration:?} is not allowed; expected whole seconds from 1s to {CONNECT_SECONDS_MAX}s"
        ),
    );
    None
}

fn password(
    text: Option<KeyText>,
    secret: Option<RawSecretReference>,
    namespace: &str,
    report: &mut Report<'_>,
) -> PeerPassword {
    let path = FieldPath::of("spec.passwordSecret");
    // MetalLB's own objects carry an empty reference where none was given.
    let secret = secret.filter(|secret| secret.name.is_some() || secret.namespace.is_some());
    if let Some(secret) = &secret {
        if secret.namespace.as_deref().is_some_and(|given| given != namespace) {
            report.warning(
                &path.key("namespace"),
                format_args!(
                    "has no effect: the Secret is looked up beside the peer, in {namespace}"
                ),
            );
        }
        if text.is_some() {
            report.fault(&path, "and spec.password cannot both be set; remove one");
        }
    }
    match (text, secret) {
        (Some(KeyText(password)), _) => PeerPassword::Text(password),
        (None, None) => PeerPassword::None,
        (None, Some(secret)) => {
            let name = secret.name.filter(|name| !name.is_empty());
            match report.required(name, &path.key("name"), "the name of a Secret") {
                Some(name) => PeerPassword::Secret(ObjectName::new(namespace, name)),
                None => PeerPassword::None,
            }
        }
    }
}
