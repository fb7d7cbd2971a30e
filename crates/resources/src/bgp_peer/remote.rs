//! The neighbour of a BGPPeer: by address, by interface, from a range or as the default gateway, and its AS.
//!
//! Knows nothing of the messages of the session; `parse` calls it.

use std::net::IpAddr;
use std::str::FromStr;

use fairway_ground::{AddressFamily, Asn, Prefix, Remote, RemoteAs};
use fairway_seam::PeerConfig;
use schemars::JsonSchema;
use serde::Deserialize;

use super::RawSpec;
use crate::field_path::FieldPath;
use crate::fields::{AsNumber, Given, HostAddress, PeerAsNumber, Text};
use crate::report::Report;

/// The values of `myASN`, `localASN` and `peerASN`.
const AS_WORDS: &str = "an AS number from 1 to 4294967295";

/// `dynamicASN`: the AS of the neighbour comes from its OPEN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DynamicAs {
    /// Ours.
    Internal,
    /// Any other.
    External,
}

impl FromStr for DynamicAs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "internal" => Ok(Self::Internal),
            "external" => Ok(Self::External),
            other => Err(format!("{other:?} is not allowed; expected internal or external")),
        }
    }
}

/// `autoDiscovery`: the node finds out which router the peer is.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawAutoDiscovery {
    /// How: DefaultGateway.
    #[schemars(required, extend("enum" = ["DefaultGateway"]))]
    mode: Option<Text<DiscoveryMode>>,
    /// The family of the default route, whose gateway is the peer: ipv4 or ipv6.
    #[schemars(required, extend("enum" = ["ipv4", "ipv6"]))]
    address_family: Option<Text<GatewayFamily>>,
}

/// How the peer is found. There is one way.
#[derive(Debug, Clone, Copy)]
struct DiscoveryMode;

impl FromStr for DiscoveryMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "DefaultGateway" => Ok(Self),
            other => Err(format!("{other:?} is not allowed; expected DefaultGateway")),
        }
    }
}

/// The family of a default route.
#[derive(Debug, Clone, Copy)]
struct GatewayFamily(AddressFamily);

impl FromStr for GatewayFamily {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ipv4" => Ok(Self(AddressFamily::Ipv4Unicast)),
            "ipv6" => Ok(Self(AddressFamily::Ipv6Unicast)),
            other => Err(format!("{other:?} is not allowed; expected ipv4 or ipv6")),
        }
    }
}

/// The remote end, and our AS towards it.
pub(super) struct Neighbour {
    pub(super) my_asn: Asn,
    pub(super) local_asn: Option<Asn>,
    pub(super) remote_as: RemoteAs,
    pub(super) remote: Remote,
}

impl Neighbour {
    /// Whether the session is iBGP.
    pub(super) fn is_internal(&self) -> bool {
        self.remote_as == RemoteAs::Internal || self.remote_as == RemoteAs::Asn(self.my_asn)
    }

    /// The message for a field that no iBGP session has.
    pub(super) fn external_only(&self) -> String {
        let why = match self.remote_as {
            RemoteAs::Internal => "dynamicASN is internal",
            RemoteAs::Asn(_) | RemoteAs::External => "peerASN is myASN",
        };
        format!("is for eBGP only, and {why}; leave it out")
    }

    /// The message for a field that no eBGP session has.
    pub(super) fn internal_only(&self) -> String {
        let why = match self.remote_as {
            RemoteAs::External => "dynamicASN is external",
            RemoteAs::Asn(_) | RemoteAs::Internal => "peerASN is not myASN",
        };
        format!("is for iBGP only, and {why}; leave it out")
    }
}

/// The neighbour; `None` if it has a fault.
pub(super) fn neighbour(raw: &RawSpec, report: &mut Report<'_>) -> Option<Neighbour> {
    let spec = FieldPath::of("spec");
    let remote_as = remote_as(raw, report);
    let remote = remote(raw, report);
    let my_asn = raw.my_asn.and_then(|AsNumber(asn)| Asn::new(asn));
    let my_asn = report.required(my_asn, &spec.key("myASN"), AS_WORDS);
    check_dialling(raw, remote, report);
    let neighbour = Neighbour {
        my_asn: my_asn?,
        local_asn: raw.local_asn.and_then(|AsNumber(asn)| Asn::new(asn)),
        remote_as: remote_as?,
        remote: remote?,
    };
    check_local_asn(&neighbour, report);
    Some(neighbour)
}

fn remote_as(raw: &RawSpec, report: &mut Report<'_>) -> Option<RemoteAs> {
    let spec = FieldPath::of("spec");
    let (path, dynamic_path) = (spec.key("peerASN"), spec.key("dynamicASN"));
    let dynamic = raw.dynamic_asn.as_ref().and_then(|Text(Given(dynamic))| *dynamic);
    match (raw.peer_asn, dynamic) {
        (Some(PeerAsNumber(1..)), Some(_)) => {
            report.fault(&dynamic_path, "and spec.peerASN cannot both be set; remove one");
            None
        }
        (_, Some(DynamicAs::Internal)) => Some(RemoteAs::Internal),
        (_, Some(DynamicAs::External)) => Some(RemoteAs::External),
        (Some(PeerAsNumber(asn)), None) => {
            let asn = Asn::new(asn);
            if asn.is_none() && !report.is_faulty(&dynamic_path) {
                report.fault(&path, format_args!("0 is not allowed; expected {AS_WORDS}"));
            }
            asn.map(RemoteAs::Asn)
        }
        (None, None) => {
            // dynamicASN is given and faulty; its finding suffices.
            if !report.is_faulty(&dynamic_path) {
                report.missing(&path, &format!("{AS_WORDS}, or dynamicASN in its place"));
            }
            None
        }
    }
}

fn remote(raw: &RawSpec, report: &mut Report<'_>) -> Option<Remote> {
    let spec = FieldPath::of("spec");
    let address = raw.peer_address.as_ref().and_then(|Text(Given(given))| *given);
    let address = address.map(|HostAddress(address)| Remote::Address(address));
    let interface = raw.interface.as_ref().and_then(|Text(Given(name))| *name);
    let range = raw.listen_range.as_ref().and_then(|Text(Given(range))| *range);
    let gateway = raw.auto_discovery.as_ref().and_then(|it| gateway(it, report));
    let ways = [
        ("peerAddress", address),
        ("interface", interface.map(Remote::Interface)),
        ("listenRange", range.map(Remote::Range)),
        ("autoDiscovery", gateway),
    ];
    let mut given = ways.into_iter().filter_map(|(field, way)| Some((field, way?)));
    let Some((first, remote)) = given.next() else {
        let is_faulty = ways.iter().any(|(field, _)| report.is_faulty(&spec.key(field)));
        // What is missing of autoDiscovery was said.
        if !is_faulty && raw.auto_discovery.is_none() {
            let expected =
                "the router's IP address, or interface, listenRange or autoDiscovery in its place";
            report.missing(&spec.key("peerAddress"), expected);
        }
        return None;
    };
    for (field, _) in given {
        let message = format_args!("and spec.{first} cannot both be set; remove one");
        report.fault(&spec.key(field), message);
    }
    match remote {
        Remote::Address(IpAddr::V6(address)) if address.is_unicast_link_local() => {
            report.fault(
                &spec.key("peerAddress"),
                format_args!(
                    "{address} is link-local and ambiguous without an interface; expected a global \
                     address, or interface in place of peerAddress"
                ),
            );
        }
        Remote::Range(range) => check_range(range, report),
        Remote::Address(_) | Remote::Interface(_) | Remote::DefaultGateway(_) => {}
    }
    Some(remote)
}

fn gateway(raw: &RawAutoDiscovery, report: &mut Report<'_>) -> Option<Remote> {
    let path = FieldPath::of("spec.autoDiscovery");
    let mode = report.required(raw.mode.as_ref(), &path.key("mode"), "DefaultGateway");
    let family = raw.address_family.as_ref().map(|Text(GatewayFamily(family))| *family);
    let family = report.required(family, &path.key("addressFamily"), "ipv4 or ipv6");
    mode.and(family).map(Remote::DefaultGateway)
}

/// The length of `::ffff:0:0/96`, the IPv4-mapped IPv6 addresses.
const MAPPED_LENGTH: u8 = 96;

fn check_range(range: Prefix, report: &mut Report<'_>) {
    let path = FieldPath::of("spec.listenRange");
    if range.is_multicast() {
        let message = format_args!("{range} has no unicast addresses; expected a unicast prefix");
        report.fault(&path, message);
    }
    let IpAddr::V6(address) = range.address() else { return };
    if range.length() >= MAPPED_LENGTH && address.to_ipv4_mapped().is_some() {
        let message = format_args!(
            "{range} holds IPv4-mapped IPv6 addresses, which no peer connects from; expected an \
             IPv4 prefix"
        );
        report.fault(&path, message);
    }
    if address.is_unicast_link_local() {
        report.fault(
            &path,
            format_args!(
                "{range} is link-local and ambiguous without an interface; expected global \
                 addresses, or interface in place of listenRange"
            ),
        );
    }
}

/// The fields about which side connects, and from which address.
fn check_dialling(raw: &RawSpec, remote: Option<Remote>, report: &mut Report<'_>) {
    let spec = FieldPath::of("spec");
    let is_range = matches!(remote, Some(Remote::Range(_)));
    if raw.listen_limit.is_some() && remote.is_some() && !is_range {
        report.fault(&spec.key("listenLimit"), "is for listenRange only; remove it");
    }
    let source = raw.source_address.as_ref().and_then(|Text(Given(given))| *given);
    if let Some(HostAddress(source)) = source {
        let path = spec.key("sourceAddress");
        match remote {
            Some(Remote::Address(address))
                if AddressFamily::of(address) != AddressFamily::of(source) =>
            {
                let message =
                    format_args!("{source} is not of the family of peerAddress, {address}");
                report.fault(&path, message);
            }
            Some(Remote::Interface(_)) => report.fault(
                &path,
                "and spec.interface cannot both be set: such a session runs between link-local \
                 addresses; remove one",
            ),
            Some(Remote::DefaultGateway(family)) if family != AddressFamily::of(source) => {
                let family = family.ip_version();
                let message =
                    format_args!("{source} is not of the family of the {family} default gateway");
                report.fault(&path, message);
            }
            Some(Remote::Range(_)) => report.fault(
                &path,
                "and spec.listenRange cannot both be set: the neighbors of a range are never \
                 dialled; remove one",
            ),
            Some(Remote::Address(_) | Remote::DefaultGateway(_)) | None => {}
        }
    }
    // The API server fills in the default port, so that one carries no intent.
    let has_port = super::port(raw.peer_port) != PeerConfig::PORT_DEFAULT;
    let is_passive = raw.passive == Some(true);
    if has_port && is_range {
        let message = "and spec.listenRange cannot both be set: the neighbors of a range are \
                       never dialled; remove one";
        report.fault(&spec.key("peerPort"), message);
    } else if has_port && is_passive {
        report.warning(&spec.key("peerPort"), "has no effect: a passive peer is never dialled");
    }
    if raw.connect_time.is_some() && (is_range || is_passive) {
        report.warning(&spec.key("connectTime"), "has no effect: the neighbor is never dialled");
    }
}

/// FRR's rules for `local-as`.
fn check_local_asn(neighbour: &Neighbour, report: &mut Report<'_>) {
    let Some(local_asn) = neighbour.local_asn else { return };
    let path = FieldPath::of("spec.localASN");
    if neighbour.is_internal() {
        report.fault(&path, neighbour.external_only());
    } else if local_asn == neighbour.my_asn {
        report.fault(&path, format_args!("{local_asn} is myASN already; leave it out"));
    } else if neighbour.remote_as == RemoteAs::Asn(local_asn) {
        report.fault(
            &path,
            format_args!(
                "{local_asn} is peerASN: the session would be iBGP in an AS that is not ours; \
                 expected another AS number"
            ),
        );
    }
}
