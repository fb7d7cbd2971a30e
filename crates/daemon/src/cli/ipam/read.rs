//! Calico's objects out of files.

use std::path::PathBuf;

use anyhow::{Result, bail};
use fairway_ipam::calico::Cluster;
use fairway_resources::plain_documents;

use crate::cli::output;
use crate::source::{FileChange, nothing_to_read, read_all};

/// What the files have. What cannot be read of them is on stderr, and counted.
pub(super) fn read(paths: &[PathBuf]) -> Result<(Cluster, usize)> {
    let (mut cluster, mut faults) = (Cluster::default(), 0_usize);
    let mut complain = |line: String| {
        output::say(&line);
        faults = faults.saturating_add(1);
    };
    for change in read_all(paths)? {
        match change {
            FileChange::Read { path, text } => {
                for document in plain_documents(&text) {
                    match document {
                        Ok(object) => cluster.read(&object),
                        Err(fault) => complain(format!("{path}: {fault}")),
                    }
                }
            }
            FileChange::Unreadable { path, why } => complain(format!("{path}: {why}")),
            _ => {}
        }
    }
    for (folder, why) in nothing_to_read(paths) {
        complain(format!("{folder}: {why}"));
    }
    if cluster.read == 0 && faults == 0 {
        bail!("no objects of crd.projectcalico.org/v1 and no Pods are in these files");
    }
    Ok((cluster, faults))
}
