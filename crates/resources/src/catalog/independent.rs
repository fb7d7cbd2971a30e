//! Objects that no rule relates to others, Services and EndpointSlices: what is known of those that did not change.
//!
//! There may be ten thousand of them, so a resolution decides only about those of files that changed. Knows no rule
//! and no version. Used by `resolve`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_model::{Kind, ObjectKey};

use super::file::FileState;
use super::resolve::StaleObject;
use crate::finding::Finding;

/// Whether no rule and no warning about other objects looks at those of this kind.
pub(super) fn is_independent(kind: Kind) -> bool {
    matches!(kind, Kind::Service | Kind::EndpointSlice)
}

/// What the last decision about each object came to, where that is not simply that its document is in force.
#[derive(Debug, Clone, Default)]
pub(super) struct Independent {
    /// Those to decide about next.
    changed: BTreeSet<Arc<ObjectKey>>,
    /// Those without a document that were in force in this run or an earlier one: what becomes of them depends on
    /// files that hold no other object.
    pub(super) orphans: BTreeSet<Arc<ObjectKey>>,
    pub(super) stale: BTreeMap<Arc<ObjectKey>, StaleObject>,
    pub(super) left_out: BTreeSet<Arc<ObjectKey>>,
    /// Definitions beside the first.
    pub(super) duplicates: BTreeMap<Arc<ObjectKey>, Vec<Finding>>,
}

impl Independent {
    /// The objects of this file change, or whether it can be read.
    pub(super) fn file_changed(&mut self, file: Option<&FileState>) {
        let entries = file.into_iter().flat_map(|file| &file.entries);
        let keys = entries.map(|entry| &entry.key).filter(|key| is_independent(key.kind));
        self.changed.extend(keys.cloned());
    }

    /// What was known of the object's last version is known no more, or was restored.
    pub(super) fn version_changed(&mut self, key: &Arc<ObjectKey>) {
        if is_independent(key.kind) {
            self.changed.insert(Arc::clone(key));
        }
    }

    /// The objects to decide about now. What was known of them is forgotten.
    pub(super) fn take_changed(&mut self) -> BTreeSet<Arc<ObjectKey>> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.append(&mut self.orphans);
        for key in &changed {
            self.stale.remove(key);
            self.left_out.remove(key);
            self.duplicates.remove(key);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use fairway_ground::Rng;
    use fairway_model::ClusterIndex;

    use super::super::Catalog;
    use super::*;

    fn below(dice: &mut Rng, end: u64) -> usize {
        usize::try_from(dice.next_u64() % end).unwrap()
    }

    /// One document: of a Service or an EndpointSlice, of other kinds, at fault, or of no readable kind.
    fn document(dice: &mut Rng) -> String {
        let name = dice.next_u64() % 4;
        match dice.next_u64() % 10 {
            0..4 => {
                let protocol = ["TCP", "UDP"][below(dice, 2)];
                format!(
                    "apiVersion: v1\nkind: Service\nmetadata: {{name: s{name}}}\nspec: {{type: LoadBalancer, \
                     ports: [{{port: 80, protocol: {protocol}}}]}}\n"
                )
            }
            4 => format!("apiVersion: v1\nkind: Service\nmetadata: {{name: s{name}}}\nspec: 7\n"),
            5 => "apiVersion: v1\nkind: Service\nspec: 7\n".to_owned(),
            6 => "apiVersion: v1\nkind: [\n".to_owned(),
            7 => "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n".to_owned(),
            8 => format!(
                "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: e{name}, labels: \
                 {{kubernetes.io/service-name: s{name}}}}}\naddressType: IPv4\nendpoints: []\nports: []\n"
            ),
            _ => format!(
                "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {{name: p{name}}}\nspec: \
                 {{addresses: [192.0.2.{}/32]}}\n",
                below(dice, 3)
            ),
        }
    }

    /// Something happens to one of three files, or to a folder.
    fn change(catalog: &mut Catalog, dice: &mut Rng) {
        let path = ["a/1.yaml", "a/2.yaml", "b.yaml"][below(dice, 3)];
        match below(dice, 12) {
            0..6 => {
                let documents: Vec<_> = (0..below(dice, 4)).map(|_| document(dice)).collect();
                catalog.file_read(path, &documents.join("---\n"));
            }
            6 => catalog.file_gone(path),
            7 => catalog.file_ignored(path, "is a pipe"),
            8 => catalog.file_unreadable(path, "permission denied"),
            9 => catalog.file_unreadable("a/", "permission denied"),
            10 => catalog.folder_readable("a/"),
            _ => catalog.forget_unread(),
        }
    }

    /// A resolution that decides about every object.
    fn full(catalog: &Catalog) -> Catalog {
        let mut full = catalog.clone();
        full.in_force.clear();
        let known = full.definitions.iter().map(|(key, _)| key).chain(full.held.keys());
        let keys = known.filter(|key| is_independent(key.kind)).cloned();
        full.independent = Independent { changed: keys.collect(), ..Independent::default() };
        full
    }

    #[test]
    fn what_did_not_change_is_as_if_it_were_decided_again() {
        for seed in 0..500 {
            let mut dice = Rng::seeded(seed);
            let (mut catalog, mut index) = (Catalog::new(), ClusterIndex::default());
            for step in 0..30 {
                change(&mut catalog, &mut dice);
                if below(&mut dice, 12) == 0 {
                    // A restart.
                    let kept = catalog.last_good().to_json();
                    (catalog, index) = (Catalog::new(), ClusterIndex::default());
                    catalog.restore(&kept).unwrap();
                }
                if below(&mut dice, 3) == 0 {
                    continue;
                }
                let mut full = full(&catalog);
                let changes = catalog.resolve_changes();
                index.follow(changes.objects.iter().cloned());
                let expected = full.resolve();
                assert_eq!(changes.findings, expected.findings, "seed {seed}, step {step}");
                assert_eq!(changes.stale, expected.stale, "seed {seed}, step {step}");
                assert_eq!(changes.left_out, expected.left_out, "seed {seed}, step {step}");
                assert_eq!(changes.skipped, expected.skipped, "seed {seed}, step {step}");
                let held = |it: &Catalog| it.held.keys().cloned().collect::<Vec<_>>();
                assert_eq!(held(&catalog), held(&full), "seed {seed}, step {step}");
                let mut replaced = ClusterIndex::default();
                replaced.reset(expected.objects);
                assert_eq!(index, replaced, "seed {seed}, step {step}");
                let again = catalog.resolve_changes();
                assert_eq!(again.objects, [], "seed {seed}, step {step}");
            }
        }
    }

    #[test]
    fn a_document_at_fault_does_not_replace_the_other_one_that_is_in_force() {
        let valid = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: LoadBalancer, \
                     ports: [{port: 80}]}\n";
        let broken = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: 7\n";
        let mut catalog = Catalog::new();
        catalog.file_read("a.yaml", &format!("{broken}---\n{valid}"));
        let first = catalog.resolve();
        assert_eq!((first.objects.len(), first.stale.len(), first.findings.len()), (1, 0, 1));
        catalog.file_unreadable("a.yaml", "permission denied");
        catalog.resolve();
        catalog.file_read("a.yaml", &format!("{broken}---\n{valid}"));
        assert_eq!(catalog.resolve(), first);
    }
}
