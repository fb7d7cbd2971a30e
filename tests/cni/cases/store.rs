//! Where are the addresses, and how many are taken? The same questions to the disk of a machine and to a cluster.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::{Scene, cluster, disk};
use crate::daemon::{Daemon, pool};
use crate::runtime::addresses;
use lab::cluster::Cluster;

/// See the module. In both, pools have blocks of 16 addresses.
pub(super) enum Store {
    Disk(PathBuf),
    Cluster(Box<Cluster>),
}

impl Store {
    /// On disk, with a daemon that was not started.
    pub(super) fn on_disk(scene: &Scene) -> Result<(Self, Daemon)> {
        let pools = [pool("v4", "10.244.0.0/24", 28), pool("v6", "fd00:244::/120", 124)];
        let daemon = Daemon::on_disk(&scene.directory, "n1", &pools)?;
        Ok((Self::Disk(scene.directory.clone()), daemon))
    }

    /// In a cluster, with a daemon that was not started.
    pub(super) fn in_cluster(scene: &Scene) -> Result<(Self, Daemon)> {
        let cluster = cluster::cluster(scene, &["n1"])?;
        let daemon = Daemon::in_cluster(&scene.directory, "n1", &cluster)?;
        Ok((Self::Cluster(Box::new(cluster)), daemon))
    }

    /// How many addresses the blocks say are taken.
    pub(super) fn taken(&self) -> Result<usize> {
        match self {
            Self::Disk(directory) => disk::taken(directory),
            Self::Cluster(cluster) => cluster::taken(cluster),
        }
    }

    pub(super) fn has_taken(&self, expected: usize) -> Result<()> {
        let taken = self.taken()?;
        ensure!(taken == expected, "{taken} addresses are taken, expected {expected}");
        Ok(())
    }

    /// On disk, there are none.
    pub(super) fn has_no_handles(&self) -> Result<()> {
        let Self::Cluster(cluster) = self else { return Ok(()) };
        let handles = cluster::list(cluster, "ipamhandles")?;
        ensure!(handles.is_empty(), "handles stay behind: {handles:?}");
        Ok(())
    }
}

/// Whether a container has one IPv4 address and one IPv6 address.
pub(super) fn is_one_of_each_family(result: &Value) -> bool {
    let addresses = addresses(result);
    let families: BTreeSet<bool> = addresses.iter().map(|it| it.contains(':')).collect();
    addresses.len() == 2 && families.len() == 2
}
