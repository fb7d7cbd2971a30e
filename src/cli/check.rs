//! `fairway check`: what the daemon would say of these files, without a daemon.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::allocator::Allocator;
use crate::model::ClusterIndex;
use crate::resources::Catalog;
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
    let faults = resolution.findings.iter().filter(|finding| finding.is_fault()).count();
    let objects = resolution.objects.len();
    let pending = pending_services(resolution.objects);
    if arguments.json {
        let items = &resolution.findings;
        let report = serde_json::json!({ "items": items, "pending": pending, "objects": objects });
        println!("{report:#}");
    } else {
        for finding in &resolution.findings {
            println!("{finding}");
        }
        for line in &pending {
            println!("{line}");
        }
        let skipped = resolution.skipped;
        let others =
            if skipped > 0 { format!(", {skipped} of other kinds skipped") } else { String::new() };
        eprintln!("{}{others}, {}", counted(objects, "object"), counted(faults, "fault"));
    }
    Ok(if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `1 fault`, `2 faults`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Services that would not get what they ask for: legal, and worth knowing beforehand.
fn pending_services(objects: Vec<crate::model::Object>) -> Vec<String> {
    let mut index = ClusterIndex::default();
    index.reset(objects);
    let classes = index.services.values().map(|it| it.load_balancer_class.clone());
    let classes: std::collections::BTreeSet<Option<String>> = classes.collect();
    let outcomes = classes.iter().flat_map(|class| {
        // Each class has a daemon of its own, with an allocator of its own.
        Allocator::default().converge(&index, class.as_deref())
    });
    let lines = outcomes.filter_map(|(name, outcome)| {
        let reason = outcome.reason?;
        Some(format!("Service/{}: warning: {reason}", name.name))
    });
    lines.collect()
}
