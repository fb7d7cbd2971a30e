//! Which advertisements would give one route two values of an attribute that a route has once, such
//! as two local preferences.
//!
//! MetalLB refuses such a pair of local preferences; Fairway refuses all such pairs, before they silence the
//! services of a shared pool. With service selectors this depends on the services, and the plan decides.
//! Knows no files.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_ground::AddressFamily;
use fairway_model::{BgpAdvertisement, Contradiction, ObjectKey, SingleValue};

use super::advertisements::{aggregation_length, is_by_name};
use super::nodes::Nodes;
use super::pools::PoolFacts;
use super::settle::Problem;
use super::version::Version;
use crate::field_path::FieldPath;

/// The advertisements admitted so far that announce every service of their pools.
#[derive(Default)]
pub(super) struct Contradictions {
    /// Those that name their pools, by pool: there may be thousands of both.
    by_pool: BTreeMap<String, Vec<Arc<Version>>>,
    /// Those that select pools in other ways.
    choosing: Vec<Arc<Version>>,
}

impl Contradictions {
    /// Why `version` conflicts with those admitted before it.
    pub(super) fn problem(
        &self,
        version: &Version,
        it: &BgpAdvertisement,
        pools: &BTreeMap<String, PoolFacts>,
        nodes: &Nodes,
    ) -> Option<Problem> {
        if !it.service_selectors.is_empty() {
            return None;
        }
        let named = it.pools.iter().filter_map(|pool| self.by_pool.get(pool));
        let others = (!is_by_name(it)).then(|| self.by_pool.values()).into_iter().flatten();
        let rivals = named.chain(others).flatten().chain(&self.choosing);
        let is_near = |rival: &BgpAdvertisement| {
            it.contradiction(rival).is_some()
                && may_share_a_peer(it, rival)
                && nodes.may_share(&it.node_selectors, &rival.node_selectors)
        };
        let mut conflicts = rivals.filter_map(|version| {
            let rival = version.advertisement().filter(|rival| is_near(rival))?;
            Some((version, it.contradiction(rival)?, common_pool(it, rival, pools)?))
        });
        let (rival, Contradiction { field, this, that }, pool) = conflicts.next()?;
        let message = |this: Option<SingleValue>, that: Option<SingleValue>, other: &ObjectKey| {
            format!(
                "is {}, but {} in {other}, which may announce {} to the same peers; expected the \
                 same value, or peers, nodeSelectors or an aggregationLength that keep the two \
                 apart",
                shown(this),
                shown(that),
                pool.key,
            )
        };
        let path = || FieldPath::of("spec").key(field);
        let problem = Problem::new(path(), message(this, that, &rival.key))
            .because(&rival.key, path(), message(that, this, &version.key))
            .because(
                &pool.key,
                FieldPath::of("metadata.labels"),
                format!(
                    "would be announced by {} with {field} {} and by {} with {field} {}; expected \
                     labels or a name that only one of them selects",
                    version.key,
                    shown(this),
                    rival.key,
                    shown(that),
                ),
            );
        Some(problem)
    }

    /// Later advertisements must agree with this one.
    pub(super) fn remember(&mut self, version: &Arc<Version>) {
        let Some(it) = version.advertisement() else { return };
        if !it.service_selectors.is_empty() || it.is_about_prefixes_alone() {
            return;
        }
        if !is_by_name(it) {
            self.choosing.push(Arc::clone(version));
            return;
        }
        for pool in &it.pools {
            self.by_pool.entry(pool.clone()).or_default().push(Arc::clone(version));
        }
    }
}

fn may_share_a_peer(a: &BgpAdvertisement, b: &BgpAdvertisement) -> bool {
    a.peers.is_empty() || b.peers.is_empty() || !a.peers.is_disjoint(&b.peers)
}

/// A pool of which both announce the same prefixes.
fn common_pool<'a>(
    a: &BgpAdvertisement,
    b: &BgpAdvertisement,
    pools: &'a BTreeMap<String, PoolFacts>,
) -> Option<&'a PoolFacts> {
    let is_common = |(name, pool): &(&'a String, &'a PoolFacts)| {
        let is_same_length =
            |family: AddressFamily| aggregation_length(a, family) == aggregation_length(b, family);
        a.selects_pool(name, &pool.labels)
            && b.selects_pool(name, &pool.labels)
            && pool.families().any(is_same_length)
    };
    let by_name = [a, b].into_iter().find(|it| is_by_name(it));
    let found = match by_name {
        Some(it) => it.pools.iter().filter_map(|name| pools.get_key_value(name)).find(is_common),
        None => pools.iter().find(is_common),
    };
    found.map(|(_, pool)| pool)
}

fn shown(value: Option<SingleValue>) -> String {
    value.map_or_else(|| "unset".to_owned(), |value| value.to_string())
}
