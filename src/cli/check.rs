//! `fairway check`: what the daemon would say of these files, without a daemon.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::allocator::Allocator;
use crate::model::{ClusterIndex, Kind, ObjectKey};
use crate::resources::{Catalog, Finding, FindingObject, Severity};
use crate::source::read_all;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway check /etc/fairway
  fairway check peers.yaml services/

Each fault is a line: FILE:LINE: Kind/name: field.path: what is wrong, what is allowed.
Exit code 0: no faults (warnings do not count). 1: faults.")]
pub(super) struct CheckArguments {
    /// Files and folders, as for `fairway run --config`
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// JSON for programs
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &CheckArguments) -> Result<ExitCode> {
    let mut catalog = Catalog::default();
    for change in read_all(&arguments.paths)? {
        change.apply_to(&mut catalog);
    }
    let resolution = catalog.resolve();
    let objects = resolution.objects.len();
    let mut findings = resolution.findings;
    let mut index = ClusterIndex::default();
    index.reset(resolution.objects);
    findings.extend(kernel_features(&catalog, &index));
    findings.extend(pending_services(&catalog, &index));
    let faults = findings.iter().filter(|finding| finding.is_fault()).count();
    if arguments.json {
        println!("{:#}", serde_json::json!({ "items": findings, "objects": objects }));
    } else {
        for finding in &findings {
            println!("{finding}");
        }
        let skipped = match resolution.skipped {
            0 => String::new(),
            skipped => format!(", {skipped} of other kinds skipped"),
        };
        eprintln!("{}{skipped}, {}", counted(objects, "object"), counted(faults, "fault"));
    }
    Ok(if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `1 fault`, `2 faults`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// What peers ask of the kernel that not every kernel has: legal, and not to be decided here.
fn kernel_features(catalog: &Catalog, index: &ClusterIndex) -> Vec<Finding> {
    let mut findings = Vec::new();
    for peer in index.peers.values() {
        let key = ObjectKey { kind: Kind::BgpPeer, name: peer.name.clone() };
        let Some((file, line)) = catalog.place_of(&key) else { continue };
        let vrf = peer.vrf.map(|vrf| {
            format!(
                "needs a kernel with VRFs (CONFIG_NET_VRF), and the device {vrf}; whether the node \
                 has them cannot be seen from here"
            )
        });
        let tcp_ao = (!peer.tcp_ao.is_empty()).then(|| {
            "needs a kernel with TCP-AO (Linux 6.7 and newer, CONFIG_TCP_AO); whether the node has \
             it cannot be seen from here, and without it the peer is set aside"
                .to_owned()
        });
        for (field, message) in [("spec.vrf", vrf), ("spec.tcpAO", tcp_ao)] {
            let Some(message) = message else { continue };
            findings.push(Finding {
                severity: Severity::Warning,
                file: file.to_owned(),
                line: catalog.line_of(&key, field).or(Some(line)),
                object: Some(FindingObject {
                    kind: key.kind.to_string(),
                    name: key.name.name.clone(),
                }),
                field: Some(field.to_owned()),
                message,
            });
        }
    }
    findings
}

/// Services that would not get what they ask for: legal, and worth knowing beforehand.
fn pending_services(catalog: &Catalog, index: &ClusterIndex) -> Vec<Finding> {
    let classes: BTreeSet<Option<String>> =
        index.services.values().map(|it| it.load_balancer_class.clone()).collect();
    // Each class has a daemon of its own, with an allocator of its own.
    let outcomes = classes
        .iter()
        .flat_map(|class| Allocator::default().converge(index, class.as_deref()))
        .filter_map(|(name, outcome)| Some((name, outcome.reason?)));
    let findings = outcomes.map(|(name, reason)| {
        let object = FindingObject { kind: Kind::Service.to_string(), name: name.name.clone() };
        let place = catalog.place_of(&ObjectKey { kind: Kind::Service, name });
        Finding {
            severity: Severity::Warning,
            file: place.map(|(file, _)| file.to_owned()).unwrap_or_default(),
            line: place.map(|(_, line)| line),
            object: Some(object),
            field: None,
            message: reason.to_string(),
        }
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_some_kernels_have_is_a_warning() {
        let text = "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: new}\nspec:\n  \
                    myASN: 1\n  peerASN: 2\n  peerAddress: 192.0.2.9\n  vrf: blue\n  tcpAO:\n    \
                    keys:\n    - {sendID: 1, recvID: 1, algorithm: hmac-sha-1-96, secret: {name: \
                    ao, key: a}}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: ao}\n\
                    stringData: {a: one}\n";
        let mut catalog = Catalog::new();
        catalog.file_read("peer.yaml", text);
        let mut index = ClusterIndex::default();
        index.reset(catalog.resolve().objects);
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
}
