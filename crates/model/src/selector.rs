//! Label selectors, with the meaning Kubernetes gives them.

use std::collections::{BTreeMap, BTreeSet};

/// The labels of an object.
pub type Labels = BTreeMap<String, String>;

/// The operator of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// One condition on one label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// The comparison.
    pub operator: Operator,
    /// The values to compare with; empty for `Exists` and `DoesNotExist`.
    pub values: BTreeSet<String>,
}

impl Requirement {
    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.contains(value)),
            Operator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

/// All its requirements must hold; without any it matches everything. `matchLabels` entries are
/// `In` with one value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LabelSelector {
    /// Sorted, so that equal selectors are equal values.
    pub requirements: BTreeSet<Requirement>,
}

impl LabelSelector {
    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(labels))
    }
}

/// Whether any selector of a list matches; the empty list selects everything, as in all lists of
/// selectors in MetalLB's resources.
pub fn any_matches(selectors: &[LabelSelector], labels: &Labels) -> bool {
    selectors.is_empty() || selectors.iter().any(|selector| selector.matches(labels))
}

/// Whether an advertisement with these names and selectors selects `pool`, which has these
/// labels. Both add up; without either it selects every pool.
pub(super) fn chooses_pool(
    names: &BTreeSet<String>,
    selectors: &[LabelSelector],
    pool: &str,
    labels: &Labels,
) -> bool {
    (names.is_empty() && selectors.is_empty())
        || names.contains(pool)
        || selectors.iter().any(|selector| selector.matches(labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(key: &str, operator: Operator, values: &[&str]) -> LabelSelector {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        LabelSelector {
            requirements: BTreeSet::from([Requirement { key: key.to_owned(), operator, values }]),
        }
    }

    #[test]
    fn operators_mean_what_kubernetes_means() {
        let labels = Labels::from([("rack".to_owned(), "a".to_owned())]);
        assert!(selector("rack", Operator::In, &["a", "b"]).matches(&labels));
        assert!(!selector("rack", Operator::NotIn, &["a"]).matches(&labels));
        assert!(selector("row", Operator::NotIn, &["a"]).matches(&labels));
        assert!(selector("rack", Operator::Exists, &[]).matches(&labels));
        assert!(selector("row", Operator::DoesNotExist, &[]).matches(&labels));
        assert!(LabelSelector::default().matches(&labels));
        assert!(any_matches(&[], &labels));
        assert!(!any_matches(&[selector("row", Operator::Exists, &[])], &labels));
    }
}
