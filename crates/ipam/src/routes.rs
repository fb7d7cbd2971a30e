//! Which prefixes of Pods a node announces, and which of them the kernel drops where no Pod has the address.
//!
//! Only a block whose affinity is confirmed: before that two nodes may both believe that it is theirs, and after that it is
//! about to be given up. Knows no BGP and no kernel.

use std::collections::BTreeSet;

use fairway_ground::Prefix;

use crate::addressing::Addressing;
use crate::affinity::{Affinity, AffinityState};
use crate::block::{Block, Owner};
use crate::error::IpamError;
use crate::facts::Facts;
use crate::store::{self, Store};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routes {
    /// What routers hear of.
    pub announced: BTreeSet<Prefix>,
    /// What the kernel drops unless there is a longer route.
    pub blackholes: BTreeSet<Prefix>,
}

impl<S: Store> Addressing<'_, S> {
    /// The routes of a node, by all that the store has.
    ///
    /// # Errors
    /// The store fails.
    pub async fn routes(&self, host: &str) -> Result<Routes, IpamError> {
        let owner = Owner::Host(host.to_owned());
        let affinities = store::affinities(self.store, Some(&owner)).await?;
        let blocks = self.load_all().await?;
        let affinities = affinities.iter().map(|it| &it.value);
        Ok(routes(host, blocks.iter().map(|it| &it.value), affinities, self.facts))
    }
}

/// The routes of a node.
pub fn routes<'a>(
    host: &str,
    blocks: impl Iterator<Item = &'a Block>,
    affinities: impl Iterator<Item = &'a Affinity>,
    facts: &Facts,
) -> Routes {
    let owner = Owner::Host(host.to_owned());
    let confirmed: BTreeSet<Prefix> = affinities
        .filter(|it| it.owner == owner && it.state == AffinityState::Confirmed)
        .map(|it| it.prefix)
        .collect();
    let mut routes = Routes::default();
    for block in blocks {
        let prefix = block.prefix();
        let is_single = prefix.length() == prefix.family().address_bits();
        let is_announced = facts.pool_of_block(prefix).is_none_or(|it| !it.is_hidden_from_bgp);
        let is_own = block.owner() == Some(&owner);
        if is_own && !confirmed.contains(&prefix) {
            continue;
        }
        if is_own && !is_single {
            routes.blackholes.insert(prefix);
            if is_announced {
                routes.announced.insert(prefix);
            }
        } else if is_announced {
            // The router of a block's owner has a route for the block: only a longer one leads here.
            let here = block.taken().filter(|(_, it)| {
                let node = it.secondary.get("node").map(String::as_str);
                it.released_at.is_none() && (node == Some(host) || (is_own && node.is_none()))
            });
            routes.announced.extend(here.map(|(address, _)| Prefix::host(address)));
        }
    }
    routes
}
