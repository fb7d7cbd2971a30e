//! `fairway ipam show`: how full pools and blocks are, and who has an address.

use std::net::IpAddr;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use fairway_ground::columns::{aligned, or_none};
use fairway_ipam::calico::Cluster;
use fairway_ipam::{Block, Owner, Usage, usage};

use super::read::ObjectArguments;
use crate::cli::output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway ipam show                          of the cluster
  kubectl get -o yaml ippools.crd.projectcalico.org,ipamblocks.crd.projectcalico.org | fairway ipam show -
  fairway ipam show --blocks ipam/
  fairway ipam show --node node-1 ipam/
  fairway ipam show --ip 10.244.12.7 ipam/

IN USE counts addresses that rest after their release. FREE is without reserved ones.
Exit code 0: done. 1: the address is in no block, or files cannot be read.")]
pub(super) struct ShowArguments {
    #[command(flatten)]
    objects: ObjectArguments,

    /// Each block
    #[arg(long)]
    blocks: bool,

    /// Who has this address
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["blocks", "node"])]
    ip: Option<IpAddr>,

    /// The blocks of this node, and what it has of others' blocks
    #[arg(long, value_name = "NAME", conflicts_with = "blocks")]
    node: Option<String>,
}

pub(super) fn run(arguments: &ShowArguments) -> Result<ExitCode> {
    let (cluster, unreadable) = arguments.objects.read()?;
    for fault in &cluster.faults {
        output::say(&fault.to_string());
    }
    if let Some(node) = arguments.node.as_ref().filter(|_| arguments.ip.is_none())
        && !cluster.blocks.values().any(|it| is_of(it, node))
    {
        bail!("node {node:?} has no block and no address in these files");
    }
    let text = match (&arguments.ip, &arguments.node) {
        (Some(address), _) => of_address(&cluster, *address)?,
        (None, Some(node)) => of_blocks(&cluster, |it| is_of(it, node), Some(node)),
        (None, None) if arguments.blocks => of_blocks(&cluster, |_| true, None),
        (None, None) => of_pools(&cluster),
    };
    output::print(&text)?;
    Ok(if unreadable == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether a node owns a block, or has an address of it.
fn is_of(block: &Block, node: &str) -> bool {
    let is_owner = matches!(block.owner(), Some(Owner::Host(name)) if name == node);
    is_owner || block.taken().any(|(_, it)| it.secondary.get("node").is_some_and(|it| it == node))
}

fn of_pools(cluster: &Cluster) -> String {
    let blocks: Vec<&Block> = cluster.blocks.values().collect();
    let mut rows = vec![
        ["POOL", "CIDR", "BLOCKS", "ADDRESSES", "IN USE", "RESERVED", "FREE"].map(str::to_owned),
    ];
    for pool in &cluster.facts.pools {
        let (of_pool, of_blocks) = usage(pool.prefix, &blocks, &cluster.facts);
        let Usage { prefix, capacity, in_use, reserved, available } = of_pool;
        rows.push([
            pool.name.clone(),
            prefix.to_string(),
            of_blocks.len().to_string(),
            capacity.to_string(),
            in_use.to_string(),
            reserved.to_string(),
            available.to_string(),
        ]);
    }
    aligned(&rows)
}

fn of_blocks(
    cluster: &Cluster,
    is_shown: impl Fn(&Block) -> bool,
    node: Option<&String>,
) -> String {
    let mut rows =
        vec![["BLOCK", "OWNER", "IN USE", "RESTING", "BORROWED", "FREE"].map(str::to_owned)];
    for block in cluster.blocks.values().filter(|it| is_shown(it)) {
        let resting = block.taken().filter(|(_, it)| it.released_at.is_some()).count();
        let borrowed =
            block.taken().filter(|(_, it)| it.released_at.is_none()).filter(|(_, it)| {
                let of_node = it.secondary.get("node");
                let owner = match block.owner() {
                    Some(Owner::Host(name)) => Some(name),
                    _ => None,
                };
                let is_wanted = node.is_none_or(|it| of_node == Some(it) || owner == Some(it));
                is_wanted && of_node.is_some() && of_node != owner
            });
        let in_use = block.taken().count().saturating_sub(resting);
        rows.push([
            block.prefix().to_string(),
            or_none(block.owner().map(ToString::to_string).unwrap_or_default()),
            in_use.to_string(),
            resting.to_string(),
            borrowed.count().to_string(),
            block.free_count().to_string(),
        ]);
    }
    aligned(&rows)
}

fn of_address(cluster: &Cluster, address: IpAddr) -> Result<String> {
    let Some(block) = cluster.block_with(address) else {
        bail!("{address} is in no block");
    };
    let owner = block.owner().map_or_else(|| "nobody".to_owned(), ToString::to_string);
    let pool = cluster.facts.pool_of(address).map_or("none", |it| it.name.as_str());
    let state = match block.inspect(address) {
        None => "free",
        Some((attributes, _)) if attributes.released_at.is_some() => "resting",
        Some(_) => "assigned",
    };
    let mut rows = vec![
        ["Address:".to_owned(), address.to_string()],
        ["Pool:".to_owned(), pool.to_owned()],
        ["Block:".to_owned(), format!("{} ({owner})", block.prefix())],
        ["State:".to_owned(), state.to_owned()],
    ];
    if let Some((attributes, _)) = block.inspect(address).filter(|_| state == "assigned") {
        let handle = attributes.handle.clone().unwrap_or_default();
        rows.push(["Handle:".to_owned(), or_none(handle)]);
        let others = attributes.secondary.iter();
        rows.extend(others.map(|(key, value)| [format!("{key}:"), value.clone()]));
    }
    Ok(aligned(&rows))
}
