//! What the write of an object that configures Fairway disrupts: withdrawals, resets, moved addresses.
//!
//! Keeps the objects in force as all speakers know them, and plans every node with and without the write, as
//! `fairway plan --against` does. The controller owns one if its webhook has a budget, and hands in what it receives.
//! A [`Forecast`] owns what it needs: it takes seconds in a large cluster, and runs where nobody waits for it.
//!
//! Secrets are not read: each key that is named has a value that no other has. (`Ours:` to name another key counts as
//! another key, also if both have the same value. A Secret that changes is not the write of an object of ours.)

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_allocator::{Allocator, Outcomes};
use fairway_model::{Changes, ClusterIndex, Kind, Node, ObjectKey, ObjectName};
use fairway_plan::report::{DisruptionBudget, Disruptions, Edit};
use fairway_plan::{AttributeDefaults, ClusterPlan, PlanOptions, for_node};
use fairway_resources::BackendKind;
use serde_json::{Map, Value, json};

use super::in_force::InForce;
use super::object_text::ObjectText;
use super::reflector::Delta;

/// What the webhook refuses beside faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisruptionLimit {
    /// How much one write may disrupt.
    pub budget: DisruptionBudget,
    /// Whether the speakers have `--ignore-exclude-lb`.
    pub ignore_exclude_label: bool,
}

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Foresight {
    limit: DisruptionLimit,
    load_balancer_class: Option<String>,
    known: Arc<Known>,
}

/// The objects in force, as far as they have been received.
#[derive(Debug, Clone)]
struct Known {
    in_force: InForce,
    /// The values of the keys that are named, by Secret and key.
    values: BTreeMap<(ObjectName, String), usize>,
    values_ever: usize,
}

/// The write that is asked about.
#[derive(Debug, Clone)]
enum Written {
    Object(Kind, ObjectText),
    Deletion(ObjectKey),
}

/// There was no time to find out what a write disrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late;

/// One write beside all that is in force.
#[derive(Debug, Clone)]
pub(super) struct Forecast {
    foresight: Foresight,
    written: Written,
}

impl Foresight {
    /// Nothing is known yet.
    pub(super) fn new(limit: DisruptionLimit, load_balancer_class: Option<String>) -> Self {
        let known = Known {
            in_force: InForce::for_backend(BackendKind::Native),
            values: BTreeMap::new(),
            values_ever: 0,
        };
        Self { limit, load_balancer_class, known: Arc::new(known) }
    }

    /// Follows what was received of a kind.
    pub(super) fn follow(&mut self, kind: Kind, deltas: &[Delta]) {
        if deltas.is_empty() {
            return;
        }
        let known = Arc::make_mut(&mut self.known);
        for delta in deltas {
            match delta {
                Delta::Applied(object) => known.in_force.read(kind, object),
                Delta::Deleted(name) => {
                    known.in_force.gone(&ObjectKey { kind, name: name.clone() })
                }
            };
        }
    }

    /// The forecast of a write; `object`: the new version, `None` for a deletion.
    pub(super) fn of(&mut self, key: ObjectKey, object: Option<&Value>) -> Forecast {
        if self.known.in_force.is_unsettled() {
            Arc::make_mut(&mut self.known).settle();
        }
        let written = match object {
            Some(object) => Written::Object(key.kind, ObjectText::from(object)),
            None => Written::Deletion(key),
        };
        Forecast { foresight: self.clone(), written }
    }
}

impl Known {
    /// Applies the rules between objects, with a value for each key that is named.
    fn settle(&mut self) -> Changes {
        let mut changes = self.in_force.settle();
        let named = self.in_force.keys_named();
        let is_named = |(secret, key): &(ObjectName, String)| {
            named.get(secret).is_some_and(|keys| keys.contains(key))
        };
        let gone = self.values.keys().map(|(secret, _)| secret);
        let gone: BTreeSet<ObjectName> =
            gone.filter(|it| !named.contains_key(it)).cloned().collect();
        for name in gone {
            self.in_force.gone(&ObjectKey { kind: Kind::Secret, name });
        }
        self.values.retain(|key, _| is_named(key));
        for (secret, keys) in &named {
            let mut values = Map::new();
            for key in keys {
                let value = self.values.entry((secret.clone(), key.clone())).or_insert_with(|| {
                    self.values_ever = self.values_ever.saturating_add(1);
                    self.values_ever
                });
                values.insert(key.clone(), json!(value.to_string()));
            }
            let assumed = json!({
                "apiVersion": "v1", "kind": "Secret", "type": secret_type(&values), "stringData": values,
                "metadata": { "name": secret.name, "namespace": secret.namespace },
            });
            self.in_force.read(Kind::Secret, &ObjectText::from(&assumed));
        }
        changes.absorb(self.in_force.settle());
        changes
    }
}

/// The type that a Secret with these keys must have.
fn secret_type(values: &Map<String, Value>) -> &'static str {
    if values.contains_key("password") { "kubernetes.io/basic-auth" } else { "Opaque" }
}

impl Forecast {
    /// What is disrupted, if that is more than is permitted. Ends soon after `is_late`.
    pub(super) fn excess(&self, is_late: impl Fn() -> bool) -> Result<Option<String>, Late> {
        let before = &self.foresight.known;
        let mut after = Known::clone(before);
        match &self.written {
            Written::Object(kind, object) => after.in_force.read(*kind, object),
            Written::Deletion(key) => after.in_force.gone(key),
        };
        let changes = after.settle();
        if changes.is_empty() {
            return Ok(None);
        }
        let (before, after) = (before.in_force.index(), after.in_force.index());
        let mut allocator = Allocator::new(self.foresight.load_balancer_class.clone());
        allocator.settle(before, &Changes::default());
        let old = allocator.outcomes().clone();
        allocator.settle(after, &changes);
        let new = allocator.outcomes();

        let mut disruptions = Disruptions::default();
        let services = |outcomes: &Outcomes| ClusterPlan {
            outcomes: outcomes.clone(),
            ..ClusterPlan::default()
        };
        disruptions.add(&Edit::new(&services(&old), &services(new)));
        let budget = &self.foresight.limit.budget;
        // One after the other: the plans of all nodes would take much memory.
        for node in before.nodes.values() {
            if is_late() {
                let at_least = budget.certain_excess(&disruptions).ok_or(Late)?;
                return Ok(Some(format!("at least {at_least}")));
            }
            let (old, new) = (self.plan(before, &old, node), self.plan(after, new, node));
            disruptions.add(&Edit::new(&old, &new));
        }
        Ok(budget.excess(&disruptions))
    }

    fn plan(&self, index: &ClusterIndex, outcomes: &Outcomes, node: &Node) -> ClusterPlan {
        let options = PlanOptions {
            ignore_exclude_label: self.foresight.limit.ignore_exclude_label,
            unsliced_services_are_served: false,
            // The same before and after.
            attribute_defaults: AttributeDefaults::default(),
        };
        let of_node = for_node(index, outcomes, node, options);
        ClusterPlan {
            nodes: BTreeMap::from([(node.name.clone(), of_node)]),
            ..ClusterPlan::default()
        }
    }
}

#[cfg(test)]
mod tests;
