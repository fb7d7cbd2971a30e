//! The options of the role that gives Pods their addresses.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::ipam::IpamOptions;
use crate::options::HostOptions;

/// The name of the socket of the CNI plugin, beside the daemon's own.
const SOCKET: &str = "cni.sock";

#[derive(Debug, Args)]
pub(super) struct CniArguments {
    /// Also give Pods their addresses, for the CNI plugin fairway-cni: from the IPPools of this cluster, or of the
    /// files with `fairway run`
    #[arg(long, env = "FAIRWAY_IPAM")]
    ipam: bool,

    /// Where the CNI plugin connects [default: cni.sock beside the socket of the daemon, which is
    /// /run/fairway/cni.sock for root]
    #[arg(long, value_name = "PATH", env = "FAIRWAY_CNI_SOCKET")]
    cni_socket: Option<PathBuf>,

    /// The folder in which the deletions of containers wait that could not be served; the plugin has to have the same
    #[arg(
        long,
        value_name = "DIR",
        default_value = fairway_cni::SPOOL,
        env = "FAIRWAY_CNI_SPOOL"
    )]
    cni_spool: PathBuf,
}

impl CniArguments {
    /// The options, if the role is asked for.
    pub(super) fn options(self, host: &HostOptions) -> Option<IpamOptions> {
        let beside = || host.socket.parent().unwrap_or(Path::new("")).join(SOCKET);
        let set = self.cni_socket.filter(|it| !it.as_os_str().is_empty());
        self.ipam.then(|| IpamOptions {
            node: host.node.clone(),
            socket: set.unwrap_or_else(beside),
            spool: self.cni_spool,
            state_dir: host.state_dir.clone(),
        })
    }
}
