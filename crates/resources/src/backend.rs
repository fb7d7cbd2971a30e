//! What applies the objects of manifests, and what it supports of what they ask for.
//!
//! Answers, object by object, which fields a backend cannot honour: a fault before anything is
//! applied, never a silently ignored setting. FRR's commands and the versions that introduced them
//! are those of its manual and of the releases 8.4 and 10.3. Knows no other object; FRR's
//! constraints between several objects belong to the catalog.

use fairway_ground::{AsPathPattern, ChosenNextHops, RouteMatch, RouteRule};
use fairway_model::{Bandwidth, BfdProfile, BgpAdvertisement, BgpConfiguration, Object, Peer};

use super::field_path::FieldPath;
use super::report::Report;

/// What applies the objects: a BGP implementation (`--bgp native` or `--bgp frr`), or the service proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackendKind {
    /// Our own sessions.
    #[default]
    Native,
    /// FRR.
    Frr {
        /// Its major and minor version, if known. Without it, what only newer versions support is a
        /// warning.
        version: Option<(u8, u8)>,
    },
    /// The service proxy, which reads Services, EndpointSlices, Nodes and a KubeProxyConfiguration, and ignores all
    /// other kinds.
    Proxy,
}

/// The most paths that `addpath-tx-best-selected` takes.
const FRR_PATHS_MAX: u8 = 6;
/// How often FRR prepends the first AS of a path, at most.
const FRR_LAST_AS_MAX: u8 = 10;
/// FRR's unit of link bandwidth, in bits per second.
const FRR_BANDWIDTH_UNIT: u64 = 1_000_000;
/// The largest link bandwidth that every version accepts, in that unit.
const FRR_BANDWIDTH_MAX: u64 = 25_600;

impl BackendKind {
    /// Notes what this backend does not support of `object`.
    pub(crate) fn check(self, object: &Object, report: &mut Report<'_>) {
        match (self, object) {
            (Self::Native, Object::FrrExtras(_)) => report.warning(
                &FieldPath::of("data.extras"),
                "has no effect: it configures FRR, which needs --bgp frr",
            ),
            (Self::Frr { version }, Object::Peer(it)) => frr_peer(it, version, report),
            (Self::Frr { .. }, Object::BfdProfile(it)) => frr_profile(it, report),
            (Self::Frr { .. }, Object::BgpConfiguration(it)) => frr_configuration(it, report),
            (Self::Frr { version }, Object::BgpAdvertisement(it)) => {
                frr_advertisement(it, version, report);
            }
            _ => {}
        }
    }
}

fn frr_peer(it: &Peer, version: Option<(u8, u8)>, report: &mut Report<'_>) {
    let spec = FieldPath::of("spec");
    if !it.tcp_ao.is_empty() {
        report.fault(
            &spec.key("tcpAO"),
            "is not supported with FRR, which has no TCP-AO; use password or passwordSecret, or \
             --bgp native",
        );
    }
    if it.import.maximum.is_some_and(|maximum| maximum.attribute_bytes.is_some()) {
        report.fault(
            &spec.key("toReceive").key("maxPrefixes").key("attributeBytes"),
            "is not supported with FRR, which counts prefixes only; remove it, or use --bgp native",
        );
    }
    frr_rules(it, &it.import.rules, &spec.key("toReceive").key("rules"), true, report);
    frr_rules(it, &it.pass_on_rules, &spec.key("toAdvertise").key("rules"), false, report);
    if it.install_routes && it.key().is_range() {
        report.fault(
            &spec.key("installRoutes"),
            "is not supported with FRR for a listenRange; remove it, or use --bgp native",
        );
    }
    if it.bfd_strict {
        needs((10, 4), version, &spec.key("bfdStrict"), report);
    }
    if it.role.is_some() {
        needs((8, 4), version, &spec.key("role"), report);
    }
    if let Some(paths) = it.add_path.send.map(u8::from) {
        let path = spec.key("addPath").key("send");
        if paths > FRR_PATHS_MAX {
            let message =
                format_args!("{paths} is more than FRR can do; expected 1 to {FRR_PATHS_MAX}");
            report.fault(&path, message);
        } else {
            needs((9, 1), version, &path, report);
        }
    }
}

fn frr_rules(
    peer: &Peer,
    rules: &[RouteRule],
    list: &FieldPath,
    receives: bool,
    report: &mut Report<'_>,
) {
    for (number, RouteRule { matches, settings, .. }) in rules.iter().enumerate() {
        let (path, set) = (list.index(number), list.index(number).key("set"));
        if matches.origin_validation.is_some() {
            report.fault(
                &path.key("match").key("originValidation"),
                "is not supported with FRR; remove it, or use --bgp native",
            );
        }
        frr_match(peer, matches, &path.key("match"), receives, report);
        if receives && settings.prepend > FRR_LAST_AS_MAX {
            let message = format_args!(
                "{} is more than FRR can do with a received route; expected 0 to {FRR_LAST_AS_MAX}",
                settings.prepend
            );
            report.fault(&set.key("asPathPrepend"), message);
        }
        let communities = set.key("communities");
        if !settings.removed.extended.is_empty() {
            report.fault(
                &communities.key("remove"),
                "with rt: or soo: is not supported with FRR, which removes none of them alone; expected \
                 other communities, or use --bgp native",
            );
        }
        if settings.removes_communities && !settings.added.extended.is_empty() {
            report.fault(
                &communities.key("replace"),
                "with rt: or soo: is not supported with FRR, which sets none or adds some; expected other \
                 communities, or use --bgp native",
            );
        }
    }
}

fn frr_match(
    peer: &Peer,
    matches: &RouteMatch,
    path: &FieldPath,
    receives: bool,
    report: &mut Report<'_>,
) {
    let ends_in_pipe = |it: &AsPathPattern| it.as_str().split(' ').any(|word| word.ends_with('|'));
    if matches.as_path.as_ref().is_some_and(|it| it.unknown_to_frr().is_some() || ends_in_pipe(it))
    {
        report.fault(
            &path.key("asPath"),
            "is no expression of FRR's; expected digits, blanks and _^|[],{}()$*+.?-\\, and no | at the end of a \
             word",
        );
    }
    let is_replaced = !receives && peer.next_hops != ChosenNextHops::default();
    if !matches.next_hops.is_empty() && (is_replaced || peer.extended_next_hop) {
        let beside = if is_replaced { "toAdvertise.nextHop" } else { "extendedNexthop" };
        let message = format_args!("beside {beside} is not supported with FRR; remove one of both");
        report.fault(&path.key("nextHops"), message);
    }
}

fn frr_configuration(it: &BgpConfiguration, report: &mut Report<'_>) {
    if !it.rpki_servers.is_empty() {
        report.fault(
            &FieldPath::of("spec.rpki"),
            "is not supported with FRR; remove it, or use --bgp native",
        );
    }
    if !it.bmp_stations.is_empty() {
        report.fault(
            &FieldPath::of("spec.bmp"),
            "is not supported with FRR, whose instance others may use too; write bmp targets into the \
             ConfigMap bgpextras, or use --bgp native",
        );
    }
    if it.always_compare_med {
        report.fault(
            &FieldPath::of("spec.alwaysCompareMED"),
            "is not supported with FRR, whose instance others may use too; write bgp \
             always-compare-med into the ConfigMap bgpextras, or use --bgp native",
        );
    }
}

fn frr_profile(it: &BfdProfile, report: &mut Report<'_>) {
    if it.authentication.is_some() {
        report.fault(
            &FieldPath::of("spec.authentication"),
            "is not supported with FRR, which has no BFD authentication; leave it out",
        );
    }
}

fn frr_advertisement(it: &BgpAdvertisement, version: Option<(u8, u8)>, report: &mut Report<'_>) {
    if it.blackhole {
        report.fault(
            &FieldPath::of("spec.blackhole"),
            "is not supported with FRR; write `ip route PREFIX blackhole` into the ConfigMap bgpextras, or use \
             --bgp native",
        );
    }
    let Some(Bandwidth::Fixed(bandwidth)) = it.link_bandwidth else { return };
    let path = FieldPath::of("spec.linkBandwidth");
    let bits = bandwidth.bits_per_second;
    if bits % FRR_BANDWIDTH_UNIT != 0 {
        let message = format_args!(
            "{bits} is not supported with FRR, which uses Mbit/s; expected a multiple of \
             {FRR_BANDWIDTH_UNIT}"
        );
        report.fault(&path, message);
    } else if bits / FRR_BANDWIDTH_UNIT > FRR_BANDWIDTH_MAX {
        needs((10, 3), version, &path, report);
    }
}

/// Notes that the field needs FRR of this version or newer.
fn needs(
    (major, minor): (u8, u8),
    version: Option<(u8, u8)>,
    path: &FieldPath,
    report: &mut Report<'_>,
) {
    match version {
        None => report.warning(
            path,
            format_args!("needs FRR {major}.{minor} or newer; check with --frr-version X.Y to see whether yours is"),
        ),
        Some((has_major, has_minor)) if (has_major, has_minor) < (major, minor) => report.fault(
            path,
            format_args!(
                "needs FRR {major}.{minor} or newer, and this is {has_major}.{has_minor}; leave it out"
            ),
        ),
        Some(_) => {}
    }
}
