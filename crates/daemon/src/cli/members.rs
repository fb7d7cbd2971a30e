//! Options about the machines that share layer 2 addresses.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::host::wrong_usage;
use crate::members::{MemberOptions, MemberTarget};

/// Where other members come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// From the options.
    Standalone,
    /// The nodes of a cluster.
    Cluster,
}

/// The other members, and what they share.
#[derive(Debug, Args)]
pub(super) struct MemberArguments {
    /// The other hosts that share layer 2 addresses with this one, as a list separated by commas; in a cluster
    /// they are its nodes
    #[arg(long, value_name = "HOST[:PORT]", env = "FAIRWAY_MEMBERS", value_delimiter = ',')]
    members: Vec<MemberTarget>,

    /// Receive heartbeats of members on this address, over UDP
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "[::]:7946",
        env = "FAIRWAY_MEMBER_LISTEN"
    )]
    member_listen: SocketAddr,

    /// The file with the key that all members share, a line of at least 16 bytes; a second line has the key that
    /// it replaces
    #[arg(long, value_name = "PATH", env = "FAIRWAY_MEMBER_KEY_FILE")]
    member_key_file: Option<PathBuf>,
}

impl MemberArguments {
    /// `None` where this machine shares addresses with no other, or, in a cluster, where there is no key.
    pub(super) fn options(&self, role: Role) -> Option<MemberOptions> {
        let key_file = self.member_key_file.clone().filter(|it| !it.as_os_str().is_empty());
        let Some(key_file) = key_file else {
            if !self.members.is_empty() {
                wrong_usage(
                    "--members needs --member-key-file: heartbeats are encrypted; make a key with \
                     `openssl rand -base64 32`, the same file on all hosts",
                );
            }
            return None;
        };
        if role == Role::Standalone && self.members.is_empty() {
            wrong_usage("--member-key-file needs --members: the other hosts that share addresses");
        }
        let (listen, targets) = (self.member_listen, self.members.clone());
        Some(MemberOptions { listen, targets, key_file })
    }
}
