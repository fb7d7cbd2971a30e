//! Mistakes in which objects are in force, held against a resolution that decides about all of them.

use super::{Subject, Variant, variant};

pub(crate) const CATALOG: Subject = Subject {
    folder: "crates/resources",
    package: "fairway-resources",
    is_story: false,
    rounds: &[&["catalog::"]],
    seeds: "1",
    variants: VARIANTS,
};

const CATALOG_FILE: &str = "catalog/mod.rs";
const INDEPENDENT: &str = "catalog/independent.rs";
const RESOLVE: &str = "catalog/resolve.rs";

const VARIANTS: &[Variant] = &[
    variant(
        "catalog: objects that a file no longer defines are not decided again",
        CATALOG_FILE,
        "        self.independent.file_changed(self.files.get(&path));\n",
        "",
    ),
    variant(
        "catalog: objects of a file that cannot be read are not decided again",
        CATALOG_FILE,
        "        self.independent.file_changed(self.files.get(path));\n        self.unreadable.insert(",
        "        self.unreadable.insert(",
    ),
    variant(
        "catalog: a forgotten version stays in force",
        CATALOG_FILE,
        "            self.independent.version_changed(&key);\n",
        "",
    ),
    variant(
        "catalog: an object without a document is not looked at again",
        INDEPENDENT,
        "        changed.append(&mut self.orphans);\n",
        "",
    ),
    variant(
        "catalog: a fault that was mended is still said",
        INDEPENDENT,
        "            self.duplicates.remove(key);\n",
        "",
    ),
    variant(
        "catalog: a stale object stays stale",
        INDEPENDENT,
        "            self.stale.remove(key);\n",
        "",
    ),
    variant(
        "catalog: an object that is gone stays in force",
        RESOLVE,
        "        for key in related.map(|(key, _)| key).chain(independent) {\n",
        "        for key in related.map(|(key, _)| key).chain(independent.take(0)) {\n",
    ),
    variant(
        "catalog: a document at fault replaces the other one that is in force",
        RESOLVE,
        "!has_held && held",
        "held",
    ),
    variant(
        "catalog: objects of other files are withdrawn",
        RESOLVE,
        "kinds_with_rules().flat_map(|kind| of_kind(&self.in_force, kind));",
        "Kind::ALL.into_iter().flat_map(|kind| of_kind(&self.in_force, kind));",
    ),
];
