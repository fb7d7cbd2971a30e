//! `fairway check`: what the daemon would say of these files, without a daemon.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::allocator::Allocator;
use crate::model::{ClusterIndex, Kind, Object, ObjectKey};
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
    findings.extend(pending_services(&catalog, resolution.objects));
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

/// Services that would not get what they ask for: legal, and worth knowing beforehand.
fn pending_services(catalog: &Catalog, objects: Vec<Object>) -> Vec<Finding> {
    let mut index = ClusterIndex::default();
    index.reset(objects);
    let classes: BTreeSet<Option<String>> =
        index.services.values().map(|it| it.load_balancer_class.clone()).collect();
    // Each class has a daemon of its own, with an allocator of its own.
    let outcomes = classes
        .iter()
        .flat_map(|class| Allocator::default().converge(&index, class.as_deref()))
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
