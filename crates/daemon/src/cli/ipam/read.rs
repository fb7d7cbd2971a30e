//! Calico's objects out of files, or of a cluster.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use fairway_ipam::calico::Cluster;
use fairway_resources::plain_documents;

use crate::cli::output;
use crate::kubernetes::{ConnectionOptions, LiveError, LiveObjects};
use crate::source::{FileChange, nothing_to_read, read_all};

/// How a cluster is found.
#[derive(Debug, Args)]
pub(super) struct ClusterArguments {
    /// Which cluster [default: in a pod its own, else KUBECONFIG and the usual files]
    #[arg(long, value_name = "PATH", env = "FAIRWAY_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
}

impl ClusterArguments {
    pub(super) async fn connect(&self) -> Result<LiveObjects, LiveError> {
        let kubeconfig = self.kubeconfig().cloned();
        LiveObjects::connect(&ConnectionOptions { kubeconfig, namespace: None }).await
    }

    /// Whether a cluster is named.
    pub(super) fn is_given(&self) -> bool {
        self.kubeconfig().is_some()
    }

    fn kubeconfig(&self) -> Option<&PathBuf> {
        self.kubeconfig.as_ref().filter(|it| !it.as_os_str().is_empty())
    }
}

/// Where objects are read.
#[derive(Debug, Args)]
pub(super) struct ObjectArguments {
    /// Files and folders of YAML and JSON with Calico's objects; - is standard input; without any, the cluster is asked
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    cluster: ClusterArguments,
}

/// Runs a command that asks a cluster.
pub(super) fn running<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start")?.block_on(command)
}

impl ObjectArguments {
    /// The cluster that is asked without files.
    pub(super) fn cluster(&self) -> &ClusterArguments {
        &self.cluster
    }

    /// What files, or the cluster, have. What cannot be read of files is on stderr, and counted.
    pub(super) fn read(&self) -> Result<(Cluster, usize)> {
        if !self.paths.is_empty() {
            return read(&self.paths);
        }
        let live = async { Ok(self.cluster.connect().await?.read().await?) };
        Ok((running(live)?, 0))
    }
}

fn read(paths: &[PathBuf]) -> Result<(Cluster, usize)> {
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
