//! The daemon that gives addresses, and what it reads.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use lab::cluster::Cluster;
use lab::fairway::Fairway;
use lab::namespace::{Network, Place};
use lab::wait::{PATIENCE, wait_until};

/// The plugin under test: `FAIRWAY_CNI_BIN`, else the one beside the daemon's binary.
pub(crate) fn plugin() -> PathBuf {
    let beside = || {
        let beside = lab::fairway::program().with_file_name("fairway-cni");
        // As the package has it.
        let packed = beside.with_file_name("../lib/cni/fairway-cni");
        if packed.exists() { packed } else { beside }
    };
    std::env::var_os("FAIRWAY_CNI_BIN").map_or_else(beside, |path| lab::checkout().join(path))
}

/// The daemon of one node.
pub(crate) struct Daemon {
    pub(crate) fairway: Fairway,
    words: Vec<String>,
    pub(crate) directory: PathBuf,
}

impl Daemon {
    /// With pools of files, and blocks on disk.
    pub(crate) fn on_disk(directory: &Path, node: &str, pools: &[Value]) -> Result<Self> {
        let daemon = Self::prepare(directory, "run", node)?;
        let texts: Vec<String> = pools.iter().map(ToString::to_string).collect();
        daemon.fairway.apply("pools.yaml", &texts.join("\n---\n"))?;
        let config = directory.join("config").display().to_string();
        let words = daemon.words.into_iter().chain(["--config".to_owned(), config]).collect();
        Ok(Self { words, ..daemon })
    }

    /// With the API server.
    pub(crate) fn in_cluster(directory: &Path, node: &str, cluster: &Cluster) -> Result<Self> {
        let kubeconfig = cluster.kubeconfig(node, lab::cluster::TOKEN)?;
        let daemon = Self::prepare(directory, "speaker", node)?;
        let kubeconfig = ["--kubeconfig".to_owned(), kubeconfig.display().to_string()];
        let listen = ["--node-api-listen".to_owned(), "none".to_owned()];
        let words = daemon.words.into_iter().chain(kubeconfig).chain(listen).collect();
        Ok(Self { words, ..daemon })
    }

    fn prepare(directory: &Path, role: &str, node: &str) -> Result<Self> {
        lab::make_directory(directory)?;
        let mut fairway = Fairway::prepare_in(directory)?;
        fairway.log_level = "info";
        let words =
            [role, "--node", node, "--ipam", "--bgp-listen", "none", "--metrics-listen", "none"];
        let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
        let socket = ["--cni-socket".to_owned(), socket(directory).display().to_string()];
        let spool = ["--cni-spool".to_owned(), spool(directory).display().to_string()];
        let words = words.into_iter().chain(spool).chain(socket).collect();
        Ok(Self { fairway, words, directory: directory.to_owned() })
    }

    /// Starts it and waits until the plugin can ask it.
    pub(crate) fn start(&mut self) -> Result<()> {
        self.start_in(&Network::Own)
    }

    /// The same, in a namespace.
    pub(crate) fn start_in(&mut self, place: &impl Place) -> Result<()> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        self.fairway.start_as(place, &words)?;
        let socket = socket(&self.directory);
        wait_until("the socket of the plugin is there", PATIENCE, || {
            std::os::unix::net::UnixStream::connect(&socket).map(drop).context("it is not")
        })
    }
}

/// Where the plugin asks the daemon of this directory.
pub(crate) fn socket(directory: &Path) -> PathBuf {
    directory.join("cni.sock")
}

/// Where calls wait for it.
pub(crate) fn spool(directory: &Path) -> PathBuf {
    directory.join("spool")
}

/// A pool.
pub(crate) fn pool(name: &str, cidr: &str, block_size: u8) -> Value {
    json!({
        "apiVersion": "crd.projectcalico.org/v1", "kind": "IPPool", "metadata": {"name": name},
        "spec": {"cidr": cidr, "blockSize": block_size, "nodeSelector": "all()"},
    })
}
