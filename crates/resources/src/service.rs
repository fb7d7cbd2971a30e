//! Service (v1): a request for addresses.
//!
//! Answers which families, addresses, pool and sharing a Service of type LoadBalancer requests;
//! other types are valid and make no object. Defaults of the API server are applied here; where it
//! has applied them, `clusterIPs` define the families of the Service, as in MetalLB.
//! Knows no pool: whether an address is available is for the allocator.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_ground::AddressFamily;
use fairway_model::{
    FamilyPolicy, HealthCheck, Object, Service, ServicePort, TrafficPolicy, TransportProtocol,
};
use serde::Deserialize;

use super::field_path::FieldPath;
use super::fields::{HostAddress, PortNumber, Text};
use super::health_check::{self, HEALTH_CHECK};
use super::metadata::Metadata;
use super::report::{List, Report, elements};
use super::service_words::{PolicyName, ProtocolName, ServiceType, TypeName, words};
use super::suggest;

const PREFIX: &str = "metallb.io/";
const PREFIX_OLD: &str = "metallb.universe.tf/";
/// `Ours:` names two pools, one for each family; without it both families come from one, as in MetalLB.
pub(super) const POOLS: &str = "fairway.dev/address-pools";

#[derive(Deserialize)]
struct RawType {
    #[serde(rename = "type")]
    service_type: Option<Text<TypeName>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpec {
    ports: Option<List<RawPort>>,
    #[serde(default)]
    selector: BTreeMap<String, String>,
    external_traffic_policy: Option<Text<PolicyName>>,
    ip_families: Option<List<Text<FamilyName>>>,
    ip_family_policy: Option<Text<FamilyPolicyName>>,
    #[serde(rename = "clusterIP")]
    cluster_address: Option<String>,
    #[serde(rename = "clusterIPs")]
    cluster_addresses: Option<List<String>>,
    #[serde(rename = "loadBalancerIP")]
    load_balancer_address: Option<String>,
    load_balancer_class: Option<String>,
}

#[derive(Deserialize)]
struct RawPort {
    port: Option<PortNumber>,
    protocol: Option<Text<ProtocolName>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stack {
    Single,
    PreferDual,
    RequireDual,
}

words!(FamilyName(AddressFamily), "IPv4 or IPv6",
    "IPv4" => AddressFamily::Ipv4Unicast, "IPv6" => AddressFamily::Ipv6Unicast);
words!(FamilyPolicyName(Stack), "SingleStack, PreferDualStack or RequireDualStack",
    "SingleStack" => Stack::Single, "PreferDualStack" => Stack::PreferDual,
    "RequireDualStack" => Stack::RequireDual);

/// Parses the object; `None` if it has a fault, and for Services of other types.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let spec = FieldPath::of("spec");
    let kind: Option<RawType> = report.read(&spec);
    let Some(Text(TypeName(ServiceType::LoadBalancer))) = kind.and_then(|raw| raw.service_type)
    else {
        return None;
    };
    let raw: RawSpec = report.read(&spec)?;
    let annotations = Annotations::new(&metadata.annotations, report);
    let (requested_addresses, requested_at) =
        requested_addresses(raw.load_balancer_address, &annotations, report);
    let families = families(
        &families_in_cluster(raw.cluster_addresses, raw.cluster_address),
        raw.ip_families,
        raw.ip_family_policy,
        (&requested_addresses, &requested_at),
        report,
    );
    let ports = ports(raw.ports, report);
    let health_check = health_check(&metadata.annotations, report);
    let requested_pools = requested_pools(&metadata.annotations, &annotations, report);
    let selector: Vec<_> =
        raw.selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
    Some(Object::from(Service {
        families: families?,
        requested_addresses,
        requested_pools,
        sharing_key: annotations.sharing_key().map(str::to_owned),
        name: metadata.name,
        labels: metadata.labels,
        load_balancer_class: raw.load_balancer_class.filter(|class| !class.is_empty()),
        ports,
        traffic_policy: raw
            .external_traffic_policy
            .map_or(TrafficPolicy::Cluster, |Text(PolicyName(policy))| policy),
        selector: selector.join(","),
        status_addresses: status_addresses(report),
        health_check,
    }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawStatus {
    load_balancer: Option<RawLoadBalancer>,
}

#[derive(Deserialize)]
struct RawLoadBalancer {
    ingress: Option<List<RawIngress>>,
}

#[derive(Deserialize)]
struct RawIngress {
    ip: Option<String>,
}

/// The addresses in the status. Controllers write them, and a host name among them is not ours.
/// Addresses that no host can use are ignored, as in MetalLB: the next status update corrects them,
/// and the user cannot.
fn status_addresses(report: &mut Report<'_>) -> Vec<IpAddr> {
    let raw: Option<RawStatus> = report.read(&FieldPath::of("status"));
    let ingress = raw.and_then(|raw| raw.load_balancer).and_then(|raw| raw.ingress);
    let list = FieldPath::of("status.loadBalancer.ingress");
    let mut addresses = Vec::new();
    for (position, raw) in elements(ingress) {
        let Some(text) = raw.ip.filter(|text| !text.is_empty()) else { continue };
        match text.parse() {
            Ok(HostAddress(address)) => addresses.push(address),
            Err(error) => {
                report.warning(&list.index(position).key("ip"), format_args!("is ignored: {error}"))
            }
        }
    }
    addresses
}

/// MetalLB's annotations, by their names without a prefix.
pub(super) struct Annotations<'a>(BTreeMap<&'static str, (FieldPath, &'a str)>);

impl<'a> Annotations<'a> {
    pub(super) const NAMES: [&'static str; 3] =
        ["loadBalancerIPs", "address-pool", "allow-shared-ip"];
    /// What MetalLB itself writes.
    const STATUS_NAME: &'static str = "ip-allocated-from-pool";

    fn new(all: &'a BTreeMap<String, String>, report: &mut Report<'_>) -> Self {
        let path = FieldPath::of("metadata.annotations");
        Self::warn_of_unknown(all, &path, report);
        let mut found = BTreeMap::new();
        for name in Self::NAMES {
            let (new, old) = (format!("{PREFIX}{name}"), format!("{PREFIX_OLD}{name}"));
            if all.contains_key(&old) {
                let effect = if all.contains_key(&new) {
                    "has no effect beside"
                } else {
                    "is a deprecated name of"
                };
                report.warning(&path.key(&old), format_args!("{effect} {new}; use only that one"));
            }
            let key = if all.contains_key(&new) { new } else { old };
            if let Some(text) = all.get(&key) {
                found.insert(name, (path.key(&key), text.trim()));
            }
        }
        Self(found)
    }

    /// A misspelled name would be a request without effect.
    fn warn_of_unknown(all: &BTreeMap<String, String>, path: &FieldPath, report: &mut Report<'_>) {
        let known = || Self::NAMES.into_iter().chain([Self::STATUS_NAME]);
        for key in all.keys() {
            let name = [PREFIX, PREFIX_OLD].iter().find_map(|prefix| key.strip_prefix(prefix));
            let Some(name) = name.filter(|name| known().all(|known| known != *name)) else {
                continue;
            };
            let names: Vec<_> = known().map(|known| format!("{PREFIX}{known}")).collect();
            let message = match suggest::nearest(name, known()) {
                Some(meant) => format!("did you mean {PREFIX}{meant}?"),
                None => format!("expected one of {}", names.join(", ")),
            };
            report.warning(
                &path.key(key),
                format_args!("is not a known annotation and has no effect; {message}"),
            );
        }
    }

    /// A non-empty annotation.
    fn get(&self, name: &str) -> Option<(&FieldPath, &'a str)> {
        self.0.get(name).map(|(path, text)| (path, *text)).filter(|(_, text)| !text.is_empty())
    }

    /// The sharing key, which counts for layer 2 even if it is empty.
    fn sharing_key(&self) -> Option<&'a str> {
        self.0.get("allow-shared-ip").map(|(_, text)| *text)
    }
}

/// The requested addresses, and the field that requests them.
fn requested_addresses(
    field: Option<String>,
    annotations: &Annotations<'_>,
    report: &mut Report<'_>,
) -> (Vec<IpAddr>, FieldPath) {
    let field_path = FieldPath::of("spec.loadBalancerIP");
    let field = field.filter(|text| !text.trim().is_empty());
    let (path, texts): (FieldPath, Vec<String>) = match (annotations.get("loadBalancerIPs"), field)
    {
        (Some((path, _)), Some(_)) => {
            let message = format!("and {path} cannot both be set; remove one");
            report.fault(&field_path, message);
            return (Vec::new(), field_path);
        }
        (Some((path, text)), None) => (path.clone(), text.split(',').map(str::to_owned).collect()),
        (None, Some(text)) => (field_path, vec![text]),
        (None, None) => return (Vec::new(), field_path),
    };
    let mut addresses: Vec<IpAddr> = Vec::new();
    for text in texts {
        match text.parse::<HostAddress>() {
            Ok(HostAddress(address)) => addresses.push(address),
            Err(error) => report.fault(&path, error),
        }
    }
    let of_family =
        |family| addresses.iter().filter(|address| AddressFamily::of(**address) == family).count();
    if AddressFamily::ALL.into_iter().any(|family| of_family(family) > 1) {
        report.fault(
            &path,
            format_args!(
                "asks for {} IPv4 and {} IPv6 addresses; expected at most one of each",
                of_family(AddressFamily::Ipv4Unicast),
                of_family(AddressFamily::Ipv6Unicast)
            ),
        );
        addresses.clear();
    }
    (addresses, path)
}

/// The pools that the Service names: one for all its addresses, or two.
fn requested_pools(
    all: &BTreeMap<String, String>,
    annotations: &Annotations<'_>,
    report: &mut Report<'_>,
) -> Vec<String> {
    let one = annotations.get("address-pool");
    let path = FieldPath::of("metadata.annotations").key(POOLS);
    let text = all.get(POOLS).map(|text| text.trim()).filter(|text| !text.is_empty());
    match (text, one) {
        (None, one) => one.map(|(_, text)| text.to_owned()).into_iter().collect(),
        (Some(_), Some((other, _))) => {
            report.fault(&path, format_args!("and {other} cannot both be set; remove one"));
            Vec::new()
        }
        (Some(text), None) => {
            let names: Vec<_> = text.split(',').map(|name| name.trim().to_owned()).collect();
            match names.as_slice() {
                [one, other] if one != other && !one.is_empty() && !other.is_empty() => names,
                _ => {
                    report.fault(
                        &path,
                        format_args!(
                            "{text:?} is not allowed; expected the names of two pools, for example \
                             four,six ({PREFIX}address-pool names one for both families)"
                        ),
                    );
                    Vec::new()
                }
            }
        }
    }
}

fn health_check(all: &BTreeMap<String, String>, report: &mut Report<'_>) -> Option<HealthCheck> {
    let text = all.get(HEALTH_CHECK)?;
    match health_check::parse(text) {
        Ok(check) => Some(check),
        Err(error) => {
            let path = FieldPath::of("metadata.annotations").key(HEALTH_CHECK);
            report.fault(&path, error);
            None
        }
    }
}

/// The families of the cluster IPs of the Service, the first one first; none if it has none, as in a
/// file written by a user.
fn families_in_cluster(all: Option<List<String>>, first: Option<String>) -> Vec<AddressFamily> {
    let all = elements(all).map(|(_, text)| text).chain(first);
    let mut families = Vec::new();
    for address in all.filter_map(|text| text.parse::<IpAddr>().ok()) {
        let family = AddressFamily::of(address);
        if !families.contains(&family) {
            families.push(family);
        }
    }
    families
}

/// The requested families: those of the Service's cluster IPs, else from `ipFamilies`, else
/// `ipFamilyPolicy`, else the requested addresses, else IPv4.
fn families(
    in_cluster: &[AddressFamily],
    raw: Option<List<Text<FamilyName>>>,
    policy: Option<Text<FamilyPolicyName>>,
    (requested, requested_at): (&[IpAddr], &FieldPath),
    report: &mut Report<'_>,
) -> Option<FamilyPolicy> {
    let path = FieldPath::of("spec.ipFamilies");
    let mut named: Vec<_> = elements(raw).map(|(_, Text(FamilyName(family)))| family).collect();
    if !in_cluster.is_empty() {
        named = in_cluster.to_vec();
    }
    let stack = policy.map(|Text(FamilyPolicyName(stack))| stack);
    let is_repeated = matches!(named.as_slice(), [first, second] if first == second);
    if named.len() > 2 || is_repeated {
        report.fault(&path, "names a family twice; expected IPv4, IPv6 or one of each");
        return None;
    }
    if named.len() == 2 && stack == Some(Stack::Single) {
        report.fault(&path, "names two families, but ipFamilyPolicy is SingleStack; expected one");
        return None;
    }
    if in_cluster.len() == 1 && stack == Some(Stack::RequireDual) {
        let has = in_cluster.iter().map(|family| family.ip_version()).collect::<String>();
        report.fault(
            &FieldPath::of("spec.clusterIPs"),
            format_args!(
                "has only an {has} address, but ipFamilyPolicy is RequireDualStack; expected one of \
                 each family"
            ),
        );
        return None;
    }
    let from_request = requested.first().map(|address| AddressFamily::of(*address));
    let first = named.first().copied().or(from_request).unwrap_or(AddressFamily::Ipv4Unicast);
    let is_dual = named.len() == 2 || (named.is_empty() && requested.len() == 2);
    let families = match stack {
        // A single-stack cluster.
        Some(Stack::PreferDual) if in_cluster.len() == 1 => FamilyPolicy::Single(first),
        Some(Stack::PreferDual) => FamilyPolicy::PreferDual(first),
        Some(Stack::RequireDual) => FamilyPolicy::RequireDual(first),
        None if is_dual => FamilyPolicy::RequireDual(first),
        None | Some(Stack::Single) => FamilyPolicy::Single(first),
    };
    let problem = match families {
        _ if requested.is_empty() => None,
        FamilyPolicy::Single(family) => (requested.len() > 1
            || from_request.is_some_and(|requested| requested != family))
        .then(|| {
            format!("does not match the single family of the Service, {}", family.ip_version())
        }),
        FamilyPolicy::RequireDual(_) => (requested.len() < 2).then(|| {
            "asks for one address, but the Service requires one of each family".to_owned()
        }),
        FamilyPolicy::PreferDual(_) => (in_cluster.len() == 2 && requested.len() < 2)
            .then(|| "asks for one address, but the Service has one of each family".to_owned()),
    };
    if let Some(problem) = problem {
        report.fault(requested_at, format_args!("{problem}; see ipFamilies and ipFamilyPolicy"));
        return None;
    }
    Some(families)
}

fn ports(raw: Option<List<RawPort>>, report: &mut Report<'_>) -> Vec<ServicePort> {
    let list = FieldPath::of("spec.ports");
    let mut ports = Vec::new();
    for (position, raw) in elements(raw) {
        let path = list.index(position).key("port");
        let Some(port) = report.required(raw.port, &path, "a port from 1 to 65535") else {
            continue;
        };
        let protocol = raw.protocol.map_or(TransportProtocol::Tcp, |Text(ProtocolName(it))| it);
        ports.push(ServicePort { protocol: protocol.name().to_owned(), port: port.0 });
    }
    ports
}
