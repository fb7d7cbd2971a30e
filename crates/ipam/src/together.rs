//! Pods of one node that ask at the same time are served together: one write for each handle, and one for each block.
//!
//! Out of the node's own blocks, and then out of new ones that nobody has; what these do not have, and what somebody else's write
//! prevents, is assigned for each Pod by itself. Knows no queue: the caller says which requests wait.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::{AddressFamily, Prefix};
use futures_util::future::join_all;

use crate::addressing::Addressing;
use crate::assign::Assigned;
use crate::block::Block;
use crate::error::IpamError;
use crate::handle::Generation;
use crate::request::AddressRequest;
use crate::search::Scope;
use crate::store::{Object, Store, StoreError, Versioned};

/// What came of a request. It has what it got even where an error ended it.
#[derive(Debug, Default)]
pub struct Answered {
    /// The addresses.
    pub got: Vec<Assigned>,
    /// Why there are no more.
    pub error: Option<IpamError>,
}

const FAMILIES: [AddressFamily; 2] = [AddressFamily::Ipv4Unicast, AddressFamily::Ipv6Unicast];

/// A block out of which addresses are given, and to which request.
struct Plan {
    block: Versioned<Block>,
    given: Vec<(usize, Vec<IpAddr>)>,
}

/// Requests that are served out of the same blocks, by their numbers.
struct Group {
    /// For each family.
    scopes: [Scope; 2],
    members: Vec<usize>,
}

/// The handles of what is planned.
#[derive(Default)]
struct Handles<'a> {
    /// What each is to have more.
    counts: BTreeMap<&'a str, BTreeMap<Prefix, u32>>,
    /// Those that nothing leads to yet.
    are_new: BTreeSet<&'a str>,
    /// Which one of its ID each is, once it is written.
    generations: BTreeMap<&'a str, Generation>,
    /// Why some were not written.
    failures: BTreeMap<&'a str, IpamError>,
}

impl<S: Store> Addressing<'_, S> {
    /// Serves requests, each as [`Self::assign_families`] does but that an address of IPv6 may be given where there is none
    /// of IPv4.
    pub async fn assign_together(&self, requests: &[AddressRequest]) -> Vec<Answered> {
        let mut answers: Vec<Answered> = requests.iter().map(|_| Answered::default()).collect();
        for group in self.groups(requests) {
            if let Ok(plans) = self.plan(requests, &group).await {
                self.carry_out(requests, plans, &mut answers).await;
            }
        }
        for (request, answer) in requests.iter().zip(&mut answers) {
            if answer.error.is_none() {
                answer.error = self.complete(request, answer).await.err();
            }
        }
        answers
    }

    /// Serves one request by itself, as far as it is not served.
    async fn complete(
        &self,
        request: &AddressRequest,
        answer: &mut Answered,
    ) -> Result<(), IpamError> {
        let new = request.attributes.handle.as_ref().filter(|_| request.is_first);
        if let Some(handle) = new.filter(|_| answer.got.is_empty())
            && self.generation(handle).await?.is_some()
        {
            return Err(IpamError::HandleInUse(handle.clone()));
        }
        self.assign_families(request, &mut answer.got).await
    }

    fn groups(&self, requests: &[AddressRequest]) -> Vec<Group> {
        let namespaces_matter = self.facts.pools.iter().any(|it| it.namespaces.is_some());
        let mut groups: Vec<Group> = Vec::new();
        for (index, request) in requests.iter().enumerate() {
            if request.per_handle_max.is_some() {
                continue;
            }
            let scopes = FAMILIES.map(|family| {
                let mut scope = request.scope(family);
                scope.namespace = scope.namespace.filter(|_| namespaces_matter);
                scope
            });
            match groups.iter_mut().find(|it| it.scopes == scopes) {
                Some(group) => group.members.push(index),
                None => groups.push(Group { scopes, members: vec![index] }),
            }
        }
        groups
    }

    /// Gives addresses out of blocks that nobody has written yet.
    async fn plan(
        &self,
        requests: &[AddressRequest],
        group: &Group,
    ) -> Result<Vec<Plan>, IpamError> {
        let mut plans = Vec::new();
        for scope in &group.scopes {
            let members = group.members.iter().filter_map(|it| Some((*it, requests.get(*it)?)));
            let mut missing: Vec<(usize, usize)> = members
                .map(|(index, it)| (index, it.of(scope.family).count))
                .filter(|(_, count)| *count > 0)
                .collect();
            if missing.is_empty() {
                continue;
            }
            let mut search = self.search(scope).await?;
            while !missing.is_empty() {
                let own = self.next_own_block(&mut search).await?;
                let Some(mut block) = (match own {
                    Some(block) => Some(block),
                    None => self.next_free_block(&mut search).await?,
                }) else {
                    break;
                };
                let (mut given, prefix) = (Vec::new(), block.value.prefix());
                for (index, count) in &mut missing {
                    let Some(request) = requests.get(*index) else { continue };
                    let is_withheld = |it| search.withheld().contain(prefix, it);
                    let addresses = block.value.assign(*count, &request.attributes, is_withheld);
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
        mut plans: Vec<Plan>,
        answers: &mut [Answered],
    ) {
        let mut handles = Handles::of(requests, &plans);
        self.write_handles(&mut handles).await;
        for (request, answer) in requests.iter().zip(answers.iter_mut()) {
            if let Some(failure) = handles.failure(request) {
                answer.error = Some(failure.clone());
            }
        }
        for Plan { block, given } in &mut plans {
            // A handle that is not written leads to no address: its Pod gets none.
            given.retain(|(index, addresses)| {
                let is_failed =
                    requests.get(*index).is_some_and(|it| handles.failure(it).is_some());
                if is_failed {
                    block.value.take_back(addresses);
                }
                !is_failed
            });
        }
        for plan in plans.into_iter().filter(|it| !it.given.is_empty()) {
            self.carry_out_in_block(requests, plan, &handles, answers).await;
        }
    }

    async fn write_handles(&self, handles: &mut Handles<'_>) {
        let are_new = &handles.are_new;
        let counted =
            handles.counts.iter().map(async |(handle, counts)| match are_new.contains(handle) {
                true => self.make_handle(handle, counts).await,
                false => self.add_to_handle(handle, counts).await,
            });
        let outcomes = join_all(counted).await;
        for (handle, outcome) in handles.counts.keys().copied().zip(outcomes) {
            match outcome {
                Ok(generation) => _ = handles.generations.insert(handle, generation),
                Err(error) => _ = handles.failures.insert(handle, error),
            }
        }
    }

    async fn carry_out_in_block(
        &self,
        requests: &[AddressRequest],
        Plan { block, given }: Plan,
        handles: &Handles<'_>,
        answers: &mut [Answered],
    ) {
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
                    if let Some(generation) = handles.generations.get(handle) {
                        let taken = self.take_from_handle(handle, generation, &counts).await;
                        // What became of another block may be unknown already: nothing more is given then.
                        answer.error = answer.error.take().or(taken.err());
                    }
                }
                // It may have been written: the handles have to lead to it.
                Err(error) => answer.error = Some(error.clone().into()),
            }
        }
    }
}

impl<'a> Handles<'a> {
    fn of(requests: &'a [AddressRequest], plans: &[Plan]) -> Self {
        let mut handles = Self::default();
        for Plan { block, given } in plans {
            for (index, addresses) in given {
                let Some(request) = requests.get(*index) else { continue };
                let Some(handle) = request.attributes.handle.as_deref() else { continue };
                let counts = handles.counts.entry(handle).or_default();
                let count = counts.entry(block.value.prefix()).or_default();
                *count = count.saturating_add(u32::try_from(addresses.len()).unwrap_or(u32::MAX));
                if request.is_first {
                    handles.are_new.insert(handle);
                }
            }
        }
        handles
    }

    /// Why the handle of a request was not written.
    fn failure(&self, request: &AddressRequest) -> Option<&IpamError> {
        self.failures.get(request.attributes.handle.as_deref()?)
    }
}
