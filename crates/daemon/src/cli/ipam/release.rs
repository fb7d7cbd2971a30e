//! `fairway ipam release`: addresses are given back by hand.

use std::net::IpAddr;
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use clap::Args;
use fairway_ipam::calico::Cluster;
use fairway_ipam::{PodName, is_for_no_pod};

use super::read::{ClusterArguments, running};
use crate::cli::output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway ipam release 10.244.12.7 fd00:244::c:7
  fairway ipam show --ip 10.244.12.7         who has it

An address that a Pod lists, or that is a gateway, is not released without --force. Nothing is released if one of the
addresses is refused.
Exit code 0: all are released, or were. 1: one is refused, or the API server does not answer.")]
pub(super) struct ReleaseArguments {
    /// The addresses
    #[arg(required = true, value_name = "ADDRESS")]
    addresses: Vec<IpAddr>,

    /// Also addresses that Pods use
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    cluster: ClusterArguments,
}

pub(super) fn run(arguments: &ReleaseArguments) -> Result<ExitCode> {
    let ReleaseArguments { addresses, force, cluster: connection } = arguments;
    running(async {
        let live = connection.connect().await?;
        let cluster = live.read().await?;
        let mut due = Vec::new();
        for address in addresses {
            let block = cluster.block_with(*address);
            let Some((attributes, sequence)) = block.and_then(|it| it.inspect(*address)) else {
                output::say(&format!("{address} is not assigned"));
                continue;
            };
            let is_reserved = attributes.handle.as_deref().is_some_and(is_for_no_pod);
            ensure!(
                *force || !is_reserved,
                "{address} is reserved in its block; --force releases it"
            );
            if let Some(PodName { namespace, name }) = user(&cluster, *address).filter(|_| !force) {
                bail!(
                    "{address} is used by Pod {namespace}/{name}; --force releases it all the same"
                );
            }
            due.push((*address, sequence));
        }
        let freed = live.release(&cluster.facts, &due).await?;
        for address in &freed.released {
            output::say(&format!("{address} released"));
        }
        match freed.errors.first() {
            Some(error) => bail!("{error}; look again, and repeat it"),
            None => Ok(ExitCode::SUCCESS),
        }
    })
}

/// The Pod that lists an address.
fn user(cluster: &Cluster, address: IpAddr) -> Option<PodName> {
    let pods = cluster.pods.as_ref()?.iter();
    let mut users = pods.filter(|(_, it)| !it.is_finished && it.addresses.contains(&address));
    users.next().map(|(name, _)| name.clone())
}
