//! Pods of one node that ask at the same time are served together: one write for each handle, and one for each block.
//!
//! Out of the node's own blocks alone; what they do not have, and what somebody else's write prevents, is assigned for each Pod
//! by itself. Knows no queue: the caller says which requests wait.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_ground::{AddressFamily, Prefix};
use futures_util::future::join_all;

use crate::addressing::Addressing;
use crate::assign::Assigned;
use crate::block::Block;
use crate::error::IpamError;
use crate::handle::Generation;
use crate::request::AddressRequest;
use crate::store::{Object, Store, StoreError, Versioned};

/// What came of a request. It has what it got even where an error ended it.
#[derive(Debug, Default)]
pub struct Answered {
    /// The addresses.
    pub got: Vec<Assigned>,
    /// Why there are no more.
    pub error: Option<IpamError>,
}

/// A block out of which addresses are given, and to which request.
struct Plan {
    block: Versioned<Block>,
    given: Vec<(usize, Vec<IpAddr>)>,
}

impl<S: Store> Addressing<'_, S> {
    /// Serves requests, each as [`Self::assign_families`] does but that an address of IPv6 may be given where there is none
    /// of IPv4.
    pub async fn assign_together(&self, requests: &[AddressRequest]) -> Vec<Answered> {
        let mut answers: Vec<Answered> = requests.iter().map(|_| Answered::default()).collect();
        if let Ok(plans) = self.plan(requests).await {
            self.carry_out(requests, plans, &mut answers).await;
        }
        for (request, answer) in requests.iter().zip(&mut answers) {
            if answer.error.is_none() {
                answer.error = self.assign_families(request, &mut answer.got).await.err();
            }
        }
        answers
    }

    /// Gives addresses out of blocks that nobody has written yet.
    async fn plan(&self, requests: &[AddressRequest]) -> Result<Vec<Plan>, IpamError> {
        let mut plans = Vec::new();
        let Some(first) = requests.first() else { return Ok(plans) };
        for family in [AddressFamily::Ipv4Unicast, AddressFamily::Ipv6Unicast] {
            let scope = first.scope(family);
            let is_served =
                |it: &AddressRequest| it.per_handle_max.is_none() && it.scope(family) == scope;
            let mut missing: Vec<(usize, usize)> = requests
                .iter()
                .enumerate()
                .filter(|(_, it)| is_served(it))
                .map(|(index, it)| (index, it.of(family).count))
                .filter(|(_, count)| *count > 0)
                .collect();
            if missing.is_empty() {
                continue;
            }
            let mut search = self.search(&scope).await?;
            while !missing.is_empty() {
                let Some(mut block) = self.next_own_block(&mut search).await? else { break };
                let mut given = Vec::new();
                for (index, count) in &mut missing {
                    let Some(request) = requests.get(*index) else { continue };
                    let is_reserved = |it| search.reserved.contain(it);
                    let addresses = block.value.assign(*count, &request.attributes, is_reserved);
                    *count = count.saturating_sub(addresses.len());
                    if !addresses.is_empty() {
                        given.push((*index, addresses));
                    }
                }
                missing.retain(|(_, count)| *count > 0);
                if !given.is_empty() {
                    plans.push(Plan { block, given });
                }
            }
        }
        Ok(plans)
    }

    async fn carry_out(
        &self,
        requests: &[AddressRequest],
        plans: Vec<Plan>,
        answers: &mut [Answered],
    ) {
        let mut counts: BTreeMap<&str, BTreeMap<Prefix, u32>> = BTreeMap::new();
        for Plan { block, given } in &plans {
            for (index, addresses) in given {
                let handle = requests.get(*index).and_then(|it| it.attributes.handle.as_deref());
                let Some(handle) = handle else { continue };
                let count = counts.entry(handle).or_default().entry(block.value.prefix());
                let count = count.or_default();
                *count = count.saturating_add(u32::try_from(addresses.len()).unwrap_or(u32::MAX));
            }
        }
        let counted = counts.iter().map(|(handle, counts)| self.add_to_handle(handle, counts));
        // A handle that is not written leads to no address: its Pod gets none, and what is planned for it rests in no block.
        let mut generations: BTreeMap<&str, Generation> = BTreeMap::new();
        let mut failures: BTreeMap<&str, IpamError> = BTreeMap::new();
        for (handle, outcome) in counts.keys().copied().zip(join_all(counted).await) {
            match outcome {
                Ok(generation) => _ = generations.insert(handle, generation),
                Err(error) => _ = failures.insert(handle, error),
            }
        }
        if !failures.is_empty() {
            for (request, answer) in requests.iter().zip(answers) {
                let handle = request.attributes.handle.as_deref().unwrap_or_default();
                answer.error = failures.get(handle).cloned();
            }
            for (handle, generation) in &generations {
                // What fails here is corrected by the collector.
                if let Some(counts) = counts.get(handle) {
                    _ = self.take_from_handle(handle, generation, counts).await;
                }
            }
            return;
        }
        for Plan { block, given } in plans {
            let prefix = block.value.prefix();
            let outcome = self.store.write(Object::Block(block.value), Some(&block.version)).await;
            for (index, addresses) in given {
                let (Some(request), Some(answer)) = (requests.get(index), answers.get_mut(index))
                else {
                    continue;
                };
                match &outcome {
                    Ok(_) => {
                        let assigned = |address| Assigned { address, block: prefix };
                        answer.got.extend(addresses.into_iter().map(assigned));
                    }
                    Err(StoreError::Conflict) => {
                        let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
                        let counts = BTreeMap::from([(prefix, count)]);
                        let handle = request.attributes.handle.as_deref().unwrap_or_default();
                        if let Some(generation) = generations.get(handle) {
                            let taken = self.take_from_handle(handle, generation, &counts).await;
                            answer.error = taken.err();
                        }
                    }
                    // It may have been written: the handles have to lead to it.
                    Err(error) => answer.error = Some(error.clone().into()),
                }
            }
        }
    }
}
