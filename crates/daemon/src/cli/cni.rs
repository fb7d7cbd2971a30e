//! The options of the role that gives Pods their addresses.

use std::path::PathBuf;

use clap::Args;

use crate::ipam::IpamOptions;
use crate::options::HostOptions;

#[derive(Debug, Args)]
pub(super) struct CniArguments {
    /// Also give Pods their addresses, for the CNI plugin fairway-cni: from the IPPools of this cluster, or of the
    /// files with `fairway run`
    #[arg(long, env = "FAIRWAY_IPAM")]
    ipam: bool,

    /// Where the CNI plugin connects; the plugin has to have the same
    #[arg(
        long,
        value_name = "PATH",
        default_value = fairway_cni::SOCKET,
        env = "FAIRWAY_CNI_SOCKET"
    )]
    cni_socket: PathBuf,

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
        self.ipam.then(|| IpamOptions {
            node: host.node.clone(),
            socket: self.cni_socket,
            spool: self.cni_spool,
            state_dir: host.state_dir.clone(),
        })
    }
}
