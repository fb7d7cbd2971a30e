//! Every field that a parser reads is in the table of what its change does.

use std::collections::BTreeSet;

use fairway_model::Kind;

use super::backend::BackendKind;
use super::object;
use super::report::Report;
use super::service::Annotations;
use super::yaml;
use crate::change::{Change, Part};

/// A document of each kind that makes its parser read every field.
const DOCUMENTS: &[(Kind, &str)] = &[
    (Kind::BgpPeer, "spec: {myASN: 1, peerASN: 2, peerAddress: 192.0.2.1}"),
    (Kind::BfdProfile, "spec: {}"),
    (Kind::IpAddressPool, "spec: {addresses: [192.0.2.0/24]}"),
    (Kind::BgpAdvertisement, "spec: {}"),
    (Kind::Layer2Advertisement, "spec: {}"),
    (Kind::Community, "spec: {}"),
    (Kind::Service, "spec: {type: LoadBalancer}"),
    (Kind::EndpointSlice, "endpoints: []"),
    (Kind::Node, "status: {}"),
    (Kind::Namespace, ""),
    (Kind::Secret, "type: kubernetes.io/basic-auth\nstringData: {password: x}"),
    (Kind::ConfigMap, "data: {extras: x}"),
];

/// Fields of the table that no parser reads, which is what the table states about them.
const UNREAD: &[&str] = &["status", "endpoints[].conditions.terminating"];

/// The fields that the parser of `kind` reads in `text`.
fn fields_read(kind: Kind, text: &str) -> BTreeSet<String> {
    let labels = "labels: {kubernetes.io/service-name: a}";
    let text = format!("metadata: {{name: a, {labels}}}\n{text}\n");
    let root = yaml::documents(&text).next().unwrap().root.unwrap();
    let mut report = Report::new(&root);
    report.asked_for = Some(BTreeSet::new());
    assert!(object::parse(kind, BackendKind::Native, &mut report).is_some(), "{kind}: {report:?}");
    report.asked_for.unwrap()
}

fn fields_in_table(kind: Kind) -> BTreeSet<&'static str> {
    let fields = Change::all(kind).iter().filter_map(|change| match change.part {
        Part::Field(path) => Some(path),
        _ => None,
    });
    fields.collect()
}

#[test]
fn every_field_that_is_read_has_its_line_in_the_table_of_changes() {
    for (kind, text) in DOCUMENTS {
        let read = fields_read(*kind, text);
        let table = fields_in_table(*kind);
        let missing: Vec<_> = read.iter().filter(|field| !table.contains(field.as_str())).collect();
        assert!(
            missing.is_empty(),
            "{kind}: add to resources::change what a change of {missing:?} does"
        );
        let unknown: Vec<_> =
            table.iter().filter(|it| !read.contains(**it) && !UNREAD.contains(it)).collect();
        assert!(unknown.is_empty(), "{kind}: no parser reads {unknown:?}");
    }
}

#[test]
fn the_older_version_of_a_peer_has_no_field_of_its_own() {
    let (kind, text) = DOCUMENTS[0];
    let old = fields_read(kind, &format!("apiVersion: metallb.io/v1beta1\n{text}"));
    let new = fields_read(kind, text);
    assert!(old.is_subset(&new) && old.len() < new.len(), "{old:?}");
}

#[test]
fn fields_are_found_however_they_are_read() {
    let [peer, ..] = DOCUMENTS else { panic!("no documents") };
    let read = fields_read(peer.0, peer.1);
    for field in [
        "metadata.labels",
        "spec.shutdown.message",
        "spec.passwordSecret.name",
        "spec.tcpAO.keys[].secret.key",
        "spec.toReceive.allowed.prefixes[].ge",
        "spec.nodeSelectors",
        "spec.bfdProfile",
    ] {
        assert!(read.contains(field), "{field} in {read:?}");
    }
    assert!(!read.iter().any(|field| field.contains("matchLabels")), "{read:?}");
}

#[test]
fn every_annotation_that_is_read_has_its_line_in_the_table_of_changes() {
    for name in Annotations::NAMES {
        let key = format!("metallb.io/{name}");
        let has_line = |change: &Change| matches!(change.part, Part::Key("metadata.annotations", it) if it == key);
        assert!(Change::all(Kind::Service).iter().any(has_line), "{key}");
    }
}

#[test]
fn every_kind_says_what_becomes_of_its_objects() {
    for (kind, _) in DOCUMENTS {
        for part in [
            Part::OtherFields,
            Part::Appears,
            Part::Vanishes,
            Part::Breaks,
            Part::Moves,
            Part::Field("metadata.name"),
        ] {
            assert!(Change::all(*kind).iter().any(|it| it.part == part), "{kind}: {part:?}");
        }
    }
}

#[test]
fn no_line_of_the_table_hides_another() {
    for (kind, _) in DOCUMENTS {
        let mut seen = Vec::new();
        for change in Change::all(*kind) {
            assert!(
                !seen.contains(&(change.part, change.when)),
                "{kind}: {change:?} is there twice"
            );
            // A lookup of the first matching line must not stop at one that always matches.
            assert!(!seen.contains(&(change.part, "")), "{kind}: {change:?} comes too late");
            seen.push((change.part, change.when));
        }
    }
}
