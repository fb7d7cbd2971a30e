//! `fairway check`: the findings that the daemon would report for these files, without a daemon.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use fairway_allocator::{self as allocator, Outcomes};
use fairway_model::{ClusterIndex, Kind, Object, ObjectKey, Peer};
use fairway_plan::StatusChange;
use fairway_resources::{Catalog, FRR_CONFIGURATION, Finding, FindingObject, Severity};

use super::backend::BackendArguments;
use super::{for_metallb, output};
use crate::source::{nothing_to_read, read_all};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway check /etc/fairway
  fairway check peers.yaml services/
  kubectl get -A -o yaml bgppeers,ipaddresspools,bgpadvertisements,services | fairway check -
  fairway check --bgp frr --frr-version 10.4 /etc/fairway
  fairway check --namespace metallb-system migration/
  kubectl get -A -o yaml services,ipaddresspools,bgppeers,bgpadvertisements | fairway check --for metallb -

Objects that others refer to (Secrets, BFDProfiles, Communities) have to be in the files as well.
Each fault is a line: FILE:LINE: Kind/name: field.path: what is wrong, what is allowed.
Exit code 0: no faults (warnings do not count). 1: faults, or a folder with nothing to read.")]
pub(super) struct CheckArguments {
    /// Files and folders, as for `fairway run --config`; - is standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    backend: BackendArguments,

    /// Also report what would be lost if that program took over: addresses that it takes away or moves and
    /// objects that it refuses (faults), and settings that it does not have (warnings)
    #[arg(long = "for", value_name = "PROGRAM", value_enum)]
    takeover: Option<Takeover>,

    /// The namespace that Fairway reads in the cluster: objects of metallb.io outside it are faults, because they would not
    /// be in force [default: all namespaces, as with `fairway run`]
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A program that reads the same objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Takeover {
    /// MetalLB 0.16: what holds in each of its modes
    #[value(name = "metallb")]
    AnyMode,
    /// The same, and what it refuses where its speakers speak BGP themselves (frrk8s.enabled=false, speaker.frr.enabled=false)
    #[value(name = "metallb-native")]
    Native,
    /// The same, and what it refuses where each speaker has an FRR (speaker.frr.enabled=true)
    #[value(name = "metallb-frr")]
    Frr,
}

impl Takeover {
    fn mode(self) -> Option<for_metallb::Mode> {
        match self {
            Self::AnyMode => None,
            Self::Native => Some(for_metallb::Mode::Native),
            Self::Frr => Some(for_metallb::Mode::Frr),
        }
    }
}

pub(super) fn run(arguments: &CheckArguments) -> Result<ExitCode> {
    let mut catalog = Catalog::for_backend(arguments.backend.kind());
    for change in read_all(&arguments.paths)? {
        change.apply_to(&mut catalog);
    }
    let resolution = catalog.resolve();
    let objects = resolution.objects.len();
    let mut findings = resolution.findings;
    findings.extend(nothing_to_read(&arguments.paths).into_iter().map(|(file, message)| Finding {
        severity: Severity::Fault,
        file,
        line: None,
        object: None,
        field: None,
        message,
    }));
    for finding in &mut findings {
        if finding.object.as_ref().is_some_and(is_left_behind) {
            finding.severity = Severity::Fault;
        }
    }
    if let Some(namespace) = &arguments.namespace {
        let keys = resolution.objects.iter().map(Object::key);
        findings.extend(keys.filter_map(|key| outside(&catalog, &key, namespace)));
    }
    let mut index = ClusterIndex::default();
    index.reset(resolution.objects);
    findings.extend(kernel_features(&catalog, &index));
    findings.extend(forgetful_routers(&catalog, &index));
    let outcomes = outcomes(&index);
    findings.extend(surprised_services(&catalog, &index, &outcomes));
    if let Some(takeover) = arguments.takeover {
        findings.extend(for_metallb::findings(&catalog, &index, &outcomes, takeover.mode()));
    }
    let faults = findings.iter().filter(|finding| finding.is_fault()).count();
    if arguments.json {
        let answer = serde_json::json!({ "items": findings, "objects": objects });
        output::print_json(&format!("{answer:#}\n"))?;
    } else {
        let lines: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
        output::print(&lines)?;
        let skipped = match resolution.skipped {
            0 => String::new(),
            skipped => format!(", {skipped} of other kinds skipped"),
        };
        eprintln!("{}{skipped}, {}", counted(objects, "object"), counted(faults, "fault"));
    }
    Ok(if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether an operator has to carry it over. MetalLB makes one for each node, from its other objects.
fn is_left_behind(object: &FindingObject) -> bool {
    object.kind == FRR_CONFIGURATION && !object.name.starts_with("metallb-")
}

/// A fault if the object is one that a daemon in the cluster reads in `namespace` alone, and is elsewhere.
fn outside(catalog: &Catalog, key: &ObjectKey, namespace: &str) -> Option<Finding> {
    if !key.kind.is_ours() || key.name.namespace == namespace {
        return None;
    }
    let (file, line) = catalog.place_of(key)?;
    Some(Finding {
        severity: Severity::Fault,
        file: file.to_owned(),
        line: Some(line),
        object: Some(FindingObject { kind: key.kind.to_string(), name: key.name.name.clone() }),
        field: Some("metadata.namespace".to_owned()),
        message: format!(
            "is {}; expected {namespace}, the namespace that is read",
            key.name.namespace
        ),
    })
}

/// `1 fault`, `2 faults`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Kernel features that peers need and not every kernel has: a warning, since only the node can tell.
fn kernel_features(catalog: &Catalog, index: &ClusterIndex) -> Vec<Finding> {
    let mut findings = Vec::new();
    for peer in index.peers.values() {
        let vrf = peer.vrf.map(|vrf| {
            format!(
                "needs a kernel with VRFs (CONFIG_NET_VRF), and the device {vrf}; the \
                 offline check cannot see whether the node has them"
            )
        });
        let tcp_ao = (!peer.tcp_ao.is_empty()).then(|| {
            "needs a kernel with TCP-AO (Linux 6.7 and newer, CONFIG_TCP_AO), without which the \
             peer is set aside; the offline check cannot see whether the node has it"
                .to_owned()
        });
        for (field, message) in [("spec.vrf", vrf), ("spec.tcpAO", tcp_ao)] {
            findings.extend(message.and_then(|it| of_peer(catalog, peer, field, it)));
        }
    }
    findings
}

/// Peers that drop our routes whenever this daemon restarts. An explicit `false` is deliberate.
fn forgetful_routers(catalog: &Catalog, index: &ClusterIndex) -> Vec<Finding> {
    let field = "spec.enableGracefulRestart";
    let without = index.peers.values().filter(|peer| peer.graceful_restart.is_none());
    let findings = without.filter_map(|peer| {
        let message = "is not set: at each restart and upgrade of the daemon the router drops our \
                       routes until the session is back; set it to true and enable graceful \
                       restart on the router, or set it to false if that is intended";
        let is_meant = catalog.is_written(&key_of(peer), field);
        if is_meant { None } else { of_peer(catalog, peer, field, message.to_owned()) }
    });
    findings.collect()
}

/// A warning about a field of a peer, at the field's line, or at the object's line if the field is absent.
fn of_peer(catalog: &Catalog, peer: &Peer, field: &str, message: String) -> Option<Finding> {
    let key = key_of(peer);
    let (file, line) = catalog.place_of(&key)?;
    Some(Finding {
        severity: Severity::Warning,
        file: file.to_owned(),
        line: catalog.line_of(&key, field).or(Some(line)),
        object: Some(FindingObject { kind: key.kind.to_string(), name: key.name.name.clone() }),
        field: Some(field.to_owned()),
        message,
    })
}

fn key_of(peer: &Peer) -> ObjectKey {
    ObjectKey { kind: Kind::BgpPeer, name: peer.name.clone() }
}

/// The addresses of all Services. Each class has a daemon of its own, with an allocator of its own.
fn outcomes(index: &ClusterIndex) -> Outcomes {
    let classes: BTreeSet<Option<String>> =
        index.services.values().map(|it| it.load_balancer_class.clone()).collect();
    let of_class = |class: &Option<String>| allocator::from_scratch(index, class.as_deref());
    classes.iter().flat_map(of_class).collect()
}

/// Services that would not get the addresses that they request, or others than those in their status:
/// legal, but worth knowing beforehand.
fn surprised_services(
    catalog: &Catalog,
    index: &ClusterIndex,
    outcomes: &Outcomes,
) -> Vec<Finding> {
    let messages = outcomes.iter().flat_map(|(name, outcome)| {
        let service = index.services.get(name);
        let change = service.and_then(|service| StatusChange::of(service, outcome));
        let change = change.map(|it| format!("{it}, which is not what its status says"));
        let reason = outcome.reason.as_ref().map(ToString::to_string);
        change.into_iter().chain(reason).map(|message| (name.clone(), message))
    });
    let findings = messages.map(|(name, message)| {
        let object = FindingObject { kind: Kind::Service.to_string(), name: name.name.clone() };
        let place = catalog.place_of(&ObjectKey { kind: Kind::Service, name });
        Finding {
            severity: Severity::Warning,
            file: place.map(|(file, _)| file.to_owned()).unwrap_or_default(),
            line: place.map(|(_, line)| line),
            object: Some(object),
            field: None,
            message,
        }
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Catalog, ClusterIndex) {
        let mut catalog = Catalog::new();
        catalog.file_read("peer.yaml", text);
        let mut index = ClusterIndex::default();
        index.reset(catalog.resolve().objects);
        (catalog, index)
    }

    #[test]
    fn what_only_some_kernels_have_is_a_warning() {
        let text = "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: new}\nspec:\n  \
                    myASN: 1\n  peerASN: 2\n  peerAddress: 192.0.2.9\n  vrf: blue\n  tcpAO:\n    \
                    keys:\n    - {sendID: 1, recvID: 1, algorithm: hmac-sha-1-96, secret: {name: \
                    ao, key: a}}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: ao}\n\
                    stringData: {a: one}\n";
        let (catalog, index) = read(text);
        let found = kernel_features(&catalog, &index);
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2);
        let expected = [
            "peer.yaml:8: BGPPeer/new: spec.vrf: warning: needs a kernel with VRFs",
            "peer.yaml:9: BGPPeer/new: spec.tcpAO: warning: needs a kernel with TCP-AO",
        ];
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}");
        }
    }
    #[test]
    fn a_router_that_forgets_our_routes_at_a_restart_is_a_warning() {
        let peer = |more: &str| {
            format!(
                "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {{name: new}}\nspec:\n  \
                 myASN: 1\n  peerASN: 2\n  peerAddress: 192.0.2.9\n{more}"
            )
        };
        for said in ["  enableGracefulRestart: true\n", "  enableGracefulRestart: false\n"] {
            let (catalog, index) = read(&peer(said));
            assert_eq!(index.peers.len(), 1);
            assert_eq!(forgetful_routers(&catalog, &index), [], "{said}");
        }
        let (catalog, index) = read(&peer(""));
        let found = forgetful_routers(&catalog, &index);
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        let expected = "peer.yaml:4: BGPPeer/new: spec.enableGracefulRestart: warning: is not set";
        assert!(finding.to_string().starts_with(expected), "{finding}");
    }
}
