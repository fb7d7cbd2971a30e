//! By which earlier policies was a neighbour told prefixes that were not looked at since?
//!
//! Another policy, or other data of RPKI, may concern a million prefixes that the neighbour was told. They are looked at in
//! parts, one each turn, so that no other neighbour waits for all of them; until then, what the neighbour has of such a
//! prefix follows from the policy of before. Knows no route. Used by [`super::Outbound`].

use crate::rib::{Exporter, PrefixId, PrefixSet};

/// Of more, the oldest is done with at once: each keeps its table of origins. Two are those of a change that comes while the
/// one before is worked on.
const POLICIES_MAX: usize = 2;

/// See the module. No prefix is in two of them.
#[derive(Debug, Default)]
pub(super) struct EarlierPolicies {
    oldest_first: Vec<EarlierPolicy>,
}

#[derive(Debug)]
struct EarlierPolicy {
    exporter: Exporter,
    prefixes: PrefixSet,
    /// None is below.
    first: PrefixId,
}

impl EarlierPolicies {
    pub(super) fn is_empty(&self) -> bool {
        self.oldest_first.is_empty()
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.oldest_first.len()
    }

    /// Whether there are so many that the oldest has to go.
    pub(super) fn are_too_many(&self) -> bool {
        self.oldest_first.len() > POLICIES_MAX
    }

    /// `exporter` is no longer in force, by which the neighbour was told `prefixes`, but for those of earlier policies.
    pub(super) fn push(&mut self, exporter: Exporter, mut prefixes: PrefixSet) {
        self.oldest_first.iter().for_each(|it| prefixes.subtract(&it.prefixes));
        self.oldest_first.push(EarlierPolicy { exporter, prefixes, first: PrefixId::FIRST });
        self.remove_done();
    }

    /// The policy by which the neighbour was told a prefix.
    pub(super) fn policy_of(&mut self, id: PrefixId) -> Option<&mut Exporter> {
        let policy = self.oldest_first.iter_mut().find(|it| it.prefixes.contains(id));
        policy.map(|it| &mut it.exporter)
    }

    /// The same; the prefix is looked at now, so that it is that of the policy in force from now on.
    pub(super) fn take(&mut self, id: PrefixId) -> Option<&mut Exporter> {
        let policy = self.oldest_first.iter_mut().find(|it| it.prefixes.contains(id))?;
        policy.prefixes.remove(id);
        Some(&mut policy.exporter)
    }

    /// Takes the next prefix.
    pub(super) fn pop(&mut self) -> Option<(PrefixId, &mut Exporter)> {
        self.remove_done();
        let policy = self.oldest_first.first_mut()?;
        let id = policy.first;
        policy.prefixes.remove(id);
        policy.first = id.next();
        Some((id, &mut policy.exporter))
    }

    /// Policies without a prefix go. The first prefix of the others is found.
    fn remove_done(&mut self) {
        self.oldest_first.retain_mut(|it| {
            let first = it.prefixes.first_from(it.first);
            first.is_some_and(|first| {
                it.first = first;
                true
            })
        });
    }

    /// The same policies and prefixes, beside which nothing is cached.
    pub(super) fn with_own_cache(&self) -> Self {
        let copied = self.oldest_first.iter().map(|it| EarlierPolicy {
            exporter: it.exporter.with_own_cache(),
            prefixes: it.prefixes.clone(),
            first: it.first,
        });
        Self { oldest_first: copied.collect() }
    }

    /// A part is over. Attributes that no route has any more would accumulate beside the policies.
    pub(super) fn forget(&mut self) {
        self.remove_done();
        self.oldest_first.iter_mut().for_each(|it| it.exporter.forget());
    }
}
