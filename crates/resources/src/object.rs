//! Parses one document into one object, and determines its kind.
//!
//! Answers which documents are ours, which are ignored and which belong to no kind. Knows no
//! other document; the catalog calls it for each.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fairway_model::{Kind, Object, ObjectKey, ObjectName};

use super::backend::BackendKind;
use super::field_lines::FieldLines;
use super::field_path::{FieldPath, Segment};
use super::finding::FindingObject;
use super::metadata::{self, Metadata};
use super::report::{Remark, Report};
use super::yaml::node::{Entry, Node, Value};
use super::yaml::scalar::ScalarKind;
use super::yaml::{Document, YamlFault};
use super::{
    bfd_profile, bgp_advertisement, bgp_configuration, bgp_peer, community, config_map,
    endpoint_slice, ip_address_pool, l2_advertisement, namespace, node, proxied, secret, service,
    suggest,
};

/// The groups whose kinds configure Fairway.
const GROUPS: [&str; 2] = [METALLB, "fairway.dev"];
const METALLB: &str = "metallb.io";

/// The supported kinds and their `apiVersion`s, the preferred one first.
const KINDS: [(&str, Kind, &[&str]); 13] = [
    ("BGPPeer", Kind::BgpPeer, &["metallb.io/v1beta2", bgp_peer::VERSION_OLD]),
    ("BFDProfile", Kind::BfdProfile, &["metallb.io/v1beta1"]),
    ("IPAddressPool", Kind::IpAddressPool, &["metallb.io/v1beta1"]),
    ("BGPAdvertisement", Kind::BgpAdvertisement, &["metallb.io/v1beta1"]),
    ("L2Advertisement", Kind::Layer2Advertisement, &["metallb.io/v1beta1"]),
    ("Community", Kind::Community, &["metallb.io/v1beta1"]),
    ("BGPConfiguration", Kind::BgpConfiguration, &[bgp_configuration::VERSION]),
    ("Service", Kind::Service, &["v1"]),
    ("EndpointSlice", Kind::EndpointSlice, &["discovery.k8s.io/v1"]),
    ("Node", Kind::Node, &["v1"]),
    ("Namespace", Kind::Namespace, &["v1"]),
    ("Secret", Kind::Secret, &["v1"]),
    ("ConfigMap", Kind::ConfigMap, &["v1"]),
];

/// MetalLB's status kinds, which users do not write: they configure nothing, so they are ignored as
/// other groups' kinds are. (BGPSessionState is of frr-k8s's group.)
const STATUS_KINDS: [&str; 3] = ["ServiceL2Status", "ServiceBGPStatus", "ConfigurationState"];

/// The kind of frr-k8s that operators write.
pub const FRR_CONFIGURATION: &str = "FRRConfiguration";

/// The top-level fields of our kinds beside their content.
const TOP_FIELDS: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];

/// The result of a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// A valid object, with the lines of the fields in which other objects may cause faults.
    Object(Box<Object>, FieldLines),
    /// Valid, and nothing to act on.
    Nothing,
    /// Of a kind that Fairway ignores.
    Skipped,
    /// At fault.
    Broken {
        /// Which object it is, if that can be read.
        key: Option<ObjectKey>,
        /// Its kind, if that can be read.
        kind: Option<Kind>,
    },
}

/// A document as read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    /// Its first line.
    pub(crate) line: usize,
    /// Its name in findings.
    pub(crate) object: Option<FindingObject>,
    pub(crate) remarks: Vec<Remark>,
    pub(crate) outcome: Outcome,
}

/// Reads a document. One of kind `List`, or `ServiceList` and the like, is read as its items. `visit`
/// gets each object's tree and what came of it.
pub(crate) fn read(
    document: &Document,
    backend: BackendKind,
    visit: &mut dyn FnMut(Option<&Node>, Reading),
) {
    let Some(root) = &document.root else {
        if let Some(fault) = document.faults.first() {
            visit(
                None,
                Reading {
                    line: fault.line,
                    object: None,
                    remarks: document.faults.iter().map(|fault| remark(fault, 0)).collect(),
                    outcome: Outcome::Broken { key: None, kind: None },
                },
            );
        }
        return;
    };
    let faults: Vec<_> = document.faults.iter().collect();
    if document.is_complete {
        read_tree(root, &faults, 0, backend, visit);
    } else {
        visit(Some(root), read_incomplete(root, backend, &faults));
    }
}

/// Reads a complete tree. `faults` are those inside it; their paths begin `depth` steps further
/// out.
fn read_tree(
    root: &Node,
    faults: &[&YamlFault],
    depth: usize,
    backend: BackendKind,
    visit: &mut dyn FnMut(Option<&Node>, Reading),
) {
    if list_of(root).is_none() {
        if !root.is_null() || !faults.is_empty() {
            visit(Some(root), read_object(root, faults, depth, backend));
        }
        return;
    }
    let mut of_items: BTreeMap<usize, Vec<&YamlFault>> = BTreeMap::new();
    let mut of_list = Vec::new();
    for fault in faults {
        match fault.path.segments().get(depth..).unwrap_or_default() {
            [Segment::Key(key), Segment::Index(position), ..] if key == "items" => {
                of_items.entry(*position).or_default().push(fault);
            }
            _ => of_list.push(remark(fault, depth)),
        }
    }
    of_list.extend(fault_of_items(root));
    if !of_list.is_empty() {
        visit(Some(root), broken_list(root, of_list));
    }
    let items = root.get("items").map_or(&[][..], Node::elements);
    for (position, item) in items.iter().enumerate() {
        let faults = of_items.remove(&position).unwrap_or_default();
        read_tree(&whole_item(root, item), &faults, depth + 2, backend, visit);
    }
}

/// The fault of the items of a list, if they are not a list. `null` is an empty list, which stands
/// for no results.
fn fault_of_items(root: &Node) -> Option<Remark> {
    let path = FieldPath::of("items");
    let problem = match root.get("items") {
        None => "is missing",
        Some(items) if items.is_null() || matches!(items.value, Value::Sequence(_)) => return None,
        Some(_) => "is not a list",
    };
    Some(Remark {
        severity: super::Severity::Fault,
        line: root.line_of(&path),
        path,
        message: format!("{problem}; expected a list of objects"),
    })
}

/// A list with a fault outside its items: any object may be in the unreadable part.
fn broken_list(root: &Node, remarks: Vec<Remark>) -> Reading {
    let kind = list_of(root).and_then(|element| KINDS.iter().find(|(name, _, _)| *name == element));
    Reading {
        line: root.line,
        object: finding_object(root),
        remarks,
        outcome: Outcome::Broken { key: None, kind: kind.map(|(_, kind, _)| *kind) },
    }
}

/// What a list holds items of: a kind, or anything (`""`); `None` for anything that is not a list.
fn list_of(root: &Node) -> Option<&str> {
    let element = root.get("kind")?.text()?.strip_suffix("List")?;
    let mut kinds = KINDS.iter().map(|(name, _, _)| *name).chain(STATUS_KINDS);
    (element.is_empty() || kinds.any(|kind| kind == element)).then_some(element)
}

/// The item with the kind and version of its list, which the API server leaves out of the items of
/// a `ServiceList` and the like.
fn whole_item<'a>(list: &Node, item: &'a Node) -> Cow<'a, Node> {
    let kind = list_of(list).filter(|kind| !kind.is_empty() && item.get("kind").is_none());
    let (Some(kind), Value::Mapping(entries)) = (kind, &item.value) else {
        return Cow::Borrowed(item);
    };
    let version = list.get("apiVersion").and_then(Node::text).unwrap_or_default();
    let given = [("apiVersion", version), ("kind", kind)].into_iter();
    let given = given.filter(|(key, _)| item.get(key).is_none()).map(|(key, text)| Entry {
        key: key.into(),
        line: item.line,
        value: Node { line: item.line, value: Value::Scalar(text.into(), ScalarKind::Text) },
    });
    let entries = given.chain(entries.iter().cloned()).collect();
    Cow::Owned(Node { line: item.line, value: Value::Mapping(entries) })
}

fn remark(fault: &YamlFault, depth: usize) -> Remark {
    let steps = fault.path.segments().get(depth..).unwrap_or_default();
    Remark {
        severity: super::Severity::Fault,
        path: FieldPath::from_segments(steps.to_vec()),
        line: fault.line,
        message: fault.message.clone(),
    }
}

/// A document that ends prematurely: only its name is used.
fn read_incomplete(root: &Node, backend: BackendKind, faults: &[&YamlFault]) -> Reading {
    let is_list = list_of(root).is_some();
    let outcome = match class_for(backend, root) {
        Ok(Class::Ours(kind)) => {
            let key = metadata::identify(root).map(|name| key(kind, name));
            Outcome::Broken { key, kind: Some(kind) }
        }
        Ok(Class::Other) if !is_list => Outcome::Nothing,
        _ => Outcome::Broken { key: None, kind: None },
    };
    Reading {
        line: root.line,
        object: if is_list { None } else { finding_object(root) },
        remarks: faults.iter().map(|fault| remark(fault, 0)).collect(),
        outcome,
    }
}

/// A warning about an object of frr-k8s: nothing of it is in force here.
fn left_behind(root: &Node) -> Option<Remark> {
    let text = |name: &str| root.get(name).and_then(Node::text);
    let is_frr_k8s = text("apiVersion")?.starts_with("frrk8s.metallb.io/");
    (is_frr_k8s && text("kind") == Some(FRR_CONFIGURATION)).then(|| Remark {
        severity: super::Severity::Warning,
        path: FieldPath::default(),
        line: root.line,
        message: "is not read: it configures frr-k8s; unless MetalLB has made it, write its neighbors \
                  as BGPPeers and its prefixes as BGPAdvertisements, or its lines into the ConfigMap \
                  bgpextras with `--bgp frr`"
            .to_owned(),
    })
}

/// Reads one object. `faults` are those inside it; their paths begin `depth` steps further out.
pub(super) fn read_object(
    root: &Node,
    faults: &[&YamlFault],
    depth: usize,
    backend: BackendKind,
) -> Reading {
    let mut reading = Reading {
        line: root.line,
        object: finding_object(root),
        remarks: Vec::new(),
        outcome: Outcome::Skipped,
    };
    let mut report = Report::new(root);
    let class = class_for(backend, root);
    if matches!(class, Ok(Class::Other)) {
        if backend != BackendKind::Proxy {
            reading.remarks.extend(left_behind(root));
        }
        return reading;
    }
    for fault in faults {
        let Remark { path, line, message, .. } = remark(fault, depth);
        report.fault_at(path, line, message);
    }
    let (kind, object) = match class {
        Ok(Class::Ours(kind)) => (Some(kind), parse(kind, backend, &mut report)),
        Ok(Class::Other) => (None, None),
        Err(problem) => {
            report.fault(&problem.path, problem.message);
            (problem.kind, None)
        }
    };
    if let Some(object) = &object {
        backend.check(object, &mut report);
    }
    reading.outcome = if report.has_faults() {
        let key = kind.zip(metadata::identify(root)).map(|(kind, name)| key(kind, name));
        Outcome::Broken { key, kind }
    } else {
        match object {
            Some(object) => Outcome::Object(Box::new(object), field_lines(root, kind)),
            None => Outcome::Nothing,
        }
    };
    reading.remarks = report.into_remarks();
    reading
}

/// Which object of ours the tree at `root` is, if that can be read.
pub(super) fn identify(root: &Node) -> Option<ObjectKey> {
    match class(root) {
        Ok(Class::Ours(kind)) => metadata::identify(root).map(|name| key(kind, name)),
        _ => None,
    }
}

/// Core kinds never depend on others, so their lines are not needed later.
fn field_lines(root: &Node, kind: Option<Kind>) -> FieldLines {
    match kind {
        Some(kind) if kind.is_ours() => FieldLines::below(root, &FieldPath::of("spec")),
        _ => FieldLines::default(),
    }
}

pub(super) fn parse(kind: Kind, backend: BackendKind, report: &mut Report<'_>) -> Option<Object> {
    let is_proxied = backend == BackendKind::Proxy;
    if is_proxied && kind == Kind::ConfigMap {
        return proxied::parse_configuration(report);
    }
    let is_ours = kind.is_ours();
    if is_ours {
        let root = report.root();
        for entry in root.entries().iter().filter(|entry| !TOP_FIELDS.contains(&&*entry.key)) {
            let path = FieldPath::default().key(&entry.key);
            report.unknown_field(&path, &entry.key, &TOP_FIELDS, entry.line);
        }
    }
    let metadata: Metadata = metadata::read(report, is_ours).or_else(|| nameless(report))?;
    match kind {
        Kind::BgpPeer => bgp_peer::parse(metadata, report),
        Kind::BfdProfile => bfd_profile::parse(metadata, report),
        Kind::IpAddressPool => ip_address_pool::parse(metadata, report),
        Kind::BgpAdvertisement => bgp_advertisement::parse(metadata, report),
        Kind::Layer2Advertisement => l2_advertisement::parse(metadata, report),
        Kind::Community => community::parse(metadata, report),
        Kind::BgpConfiguration => bgp_configuration::parse(metadata, report),
        Kind::Service if is_proxied => proxied::parse_service(metadata, report),
        Kind::Service => service::parse(metadata, report),
        Kind::EndpointSlice if is_proxied => proxied::parse_slice(metadata, report),
        Kind::EndpointSlice => endpoint_slice::parse(metadata, report),
        Kind::Node if is_proxied => proxied::parse_node(metadata, report),
        Kind::Node => node::parse(metadata, report),
        Kind::Namespace => Some(namespace::parse(metadata)),
        Kind::Secret => secret::parse(metadata, report),
        Kind::ConfigMap => config_map::parse(metadata, report),
    }
}

/// Stands in for faulty metadata, so that the faults of the rest are found too.
fn nameless(report: &Report<'_>) -> Option<Metadata> {
    report.has_faults().then(|| Metadata {
        name: ObjectName::new("", ""),
        labels: Default::default(),
        annotations: Default::default(),
    })
}

fn key(kind: Kind, name: ObjectName) -> ObjectKey {
    let has_namespace = !matches!(kind, Kind::Node | Kind::Namespace);
    let name = if has_namespace { name } else { ObjectName::new("", &name.name) };
    ObjectKey { kind, name }
}

fn finding_object(root: &Node) -> Option<FindingObject> {
    let kind = root.get("kind")?.text()?.to_owned();
    let name = root.get("metadata").and_then(|metadata| metadata.get("name"));
    Some(FindingObject { kind, name: name.and_then(Node::text).unwrap_or_default().to_owned() })
}

enum Class {
    Ours(Kind),
    Other,
}

/// Why a document is of no kind.
struct ClassProblem {
    path: FieldPath,
    message: String,
    /// The kind that was probably intended.
    kind: Option<Kind>,
}

/// What a document is to `backend`. The proxy leaves it to others to find faults in what it does not read.
fn class_for(backend: BackendKind, root: &Node) -> Result<Class, ClassProblem> {
    if backend != BackendKind::Proxy {
        return class(root);
    }
    if proxied::is_configuration(root) {
        return Ok(Class::Ours(Kind::ConfigMap));
    }
    let version = root.get("apiVersion").and_then(Node::text).unwrap_or_default();
    match class(root) {
        Ok(Class::Ours(kind @ (Kind::Service | Kind::EndpointSlice | Kind::Node))) => {
            Ok(Class::Ours(kind))
        }
        Ok(_) => Ok(Class::Other),
        Err(_) if GROUPS.contains(&group(version)) => Ok(Class::Other),
        Err(problem) => Err(problem),
    }
}

fn class(root: &Node) -> Result<Class, ClassProblem> {
    let problem = |path: &str, message: String, kind| {
        let path = if path.is_empty() { FieldPath::default() } else { FieldPath::of(path) };
        Err(ClassProblem { path, message, kind })
    };
    if !matches!(root.value, Value::Mapping(_)) {
        let message = "is not a resource; expected apiVersion, kind, metadata and spec";
        return problem("", message.to_owned(), None);
    }
    let field = |name: &str| root.get(name).and_then(Node::text).filter(|text| !text.is_empty());
    let named = |kind: &str| KINDS.iter().find(|(name, _, _)| *name == kind);
    match (field("apiVersion"), field("kind")) {
        (None, None) => {
            problem("", "is not a resource: apiVersion and kind are missing".to_owned(), None)
        }
        (Some(_), None) => {
            problem("kind", "is missing; expected one such as BGPPeer".to_owned(), None)
        }
        (None, Some(kind)) => {
            let expected = named(kind).map_or("one such as v1", |(_, _, versions)| best(versions));
            let kind = named(kind).map(|(_, kind, _)| *kind);
            problem("apiVersion", format!("is missing; expected {expected}"), kind)
        }
        (Some(version), Some(kind)) => match named(kind) {
            Some((_, Kind::ConfigMap, _)) if config_map::is_another(root) => Ok(Class::Other),
            Some((_, kind, versions)) if versions.contains(&version) => Ok(Class::Ours(*kind)),
            Some((name, kind, versions)) if is_meant(*kind, best(versions), version) => problem(
                "apiVersion",
                format!("{version} is not supported for {name}; use {}", best(versions)),
                Some(*kind),
            ),
            _ if !GROUPS.contains(&group(version)) || STATUS_KINDS.contains(&kind) => {
                Ok(Class::Other)
            }
            _ => problem("kind", unknown_kind(kind, group(version)), None),
        },
    }
}

/// Whether `version`, which `kind` does not have, stands for `best`. Other groups have kinds of the
/// same names; without this, a typo in our group would silently drop an object.
fn is_meant(kind: Kind, best: &str, version: &str) -> bool {
    let group_given = group(version);
    let is_near = || {
        group_given.is_empty()
            || group_given.contains("metallb")
            || suggest::nearest(group_given, GROUPS).is_some()
    };
    group(best) == group_given || (kind.is_ours() && is_near())
}

fn unknown_kind(kind: &str, of_group: &str) -> String {
    let known = KINDS.iter().filter(|(_, _, versions)| group(best(versions)) == of_group);
    let status_kinds = STATUS_KINDS.into_iter().filter(|_| of_group == METALLB);
    let names: Vec<_> = known.map(|(name, _, _)| *name).chain(status_kinds).collect();
    match suggest::nearest(kind, names.iter().copied()) {
        Some(meant) => format!("{kind} is not a kind of {of_group}; did you mean {meant}?"),
        None => format!("{kind} is not a kind of {of_group}; expected one of {}", names.join(", ")),
    }
}

fn best<'a>(versions: &[&'a str]) -> &'a str {
    versions.first().copied().unwrap_or_default()
}

fn group(version: &str) -> &str {
    version.split_once('/').map_or("", |(group, _)| group)
}
