//! Is each crate that Fairway depends on allowed by `deny.toml`? The smaller part of what cargo-deny checks, without
//! installing it: licences as the manifests declare them, versions, where a crate is from. No network.

#![allow(clippy::panic, clippy::unwrap_used)] // What fails here fails the test.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand, Package};
use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

/// What is read of `deny.toml`.
#[derive(Deserialize)]
struct Rules {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

#[derive(Deserialize)]
struct Skip {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
    allow_git: Vec<String>,
}

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn rules() -> Rules {
    toml::from_str(&std::fs::read_to_string(checkout().join("deny.toml")).unwrap()).unwrap()
}

/// All crates of Cargo.lock that are compiled for a target of a release, for tests and for building, too.
fn packages(rules: &Rules) -> Vec<Package> {
    let mut packages = BTreeMap::new();
    for target in &rules.graph.targets {
        let options = ["--locked", "--offline", "--filter-platform", target];
        let mut command = MetadataCommand::new();
        command.manifest_path(checkout().join("Cargo.toml"));
        command.other_options(options.map(str::to_owned));
        let Metadata { packages: all, resolve, .. } = command.exec().unwrap();
        let nodes: BTreeSet<_> = resolve.unwrap().nodes.into_iter().map(|it| it.id).collect();
        let compiled = all.into_iter().filter(|it| nodes.contains(&it.id));
        packages.extend(compiled.map(|it| (it.id.clone(), it)));
    }
    assert!(packages.len() > 150, "{} packages", packages.len());
    packages.into_values().collect()
}

/// Why this licence is none of those. One alternative of an OR is enough.
fn refusal(license: Option<&str>, allowed: &[Licensee]) -> Option<String> {
    let Some(license) = license else { return Some("it has no licence".to_owned()) };
    match Expression::parse_mode(license, ParseMode::LAX) {
        Err(error) => Some(error.to_string()),
        Ok(expression) => {
            let is_allowed = expression.evaluate(|it| allowed.iter().any(|one| one.satisfies(it)));
            (!is_allowed).then(|| format!("{license} is not in deny.toml"))
        }
    }
}

/// Crates with several versions, but for the versions that are excepted.
fn duplicates(packages: &[(String, String)], exceptions: &BTreeSet<String>) -> BTreeSet<String> {
    let mut versions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, version) in packages {
        let one = format!("{name}@{version}");
        if !exceptions.contains(&one) {
            versions.entry(name).or_default().push(one);
        }
    }
    versions.into_values().filter(|it| it.len() > 1).flatten().collect()
}

#[test]
fn each_crate_has_a_licence_that_is_allowed() {
    let rules = rules();
    let allowed = rules.licenses.allow.iter().map(|it| Licensee::parse(it).unwrap());
    let allowed: Vec<_> = allowed.collect();
    let packages = packages(&rules);
    let refusals = packages.iter().filter_map(|it| {
        Some(format!("{} {}: {}", it.name, it.version, refusal(it.license.as_deref(), &allowed)?))
    });
    assert_eq!(refusals.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn no_crate_is_there_in_two_versions_but_those_with_a_reason() {
    let rules = rules();
    let exceptions: BTreeSet<_> = rules.bans.skip.iter().map(|it| it.name.clone()).collect();
    assert!(rules.bans.skip.iter().all(|it| !it.reason.is_empty()));
    let all = packages(&rules);
    let all: Vec<_> = all.iter().map(|it| (it.name.to_string(), it.version.to_string())).collect();
    assert_eq!(duplicates(&all, &exceptions), BTreeSet::new());
    for exception in &exceptions {
        let mut others = exceptions.clone();
        others.remove(exception);
        assert!(duplicates(&all, &others).contains(exception), "{exception} needs no exception");
    }
}

#[test]
fn each_crate_is_of_this_checkout_or_of_crates_io() {
    let rules = rules();
    assert!(rules.sources.allow_git.is_empty());
    for package in packages(&rules) {
        let Some(source) = &package.source else {
            assert!(package.manifest_path.starts_with(checkout()), "{}", package.manifest_path);
            continue;
        };
        let registry = source.repr.strip_prefix("registry+").unwrap_or_default();
        let is_allowed = rules.sources.allow_registry.iter().any(|it| it == registry);
        assert!(is_allowed, "{}: {source}", package.name);
    }
}

#[test]
fn these_checks_would_notice() {
    let allowed = ["MIT", "Apache-2.0"].map(|it| Licensee::parse(it).unwrap());
    for license in ["MIT", "GPL-3.0-only OR MIT", "MIT/Apache-2.0", "MIT AND Apache-2.0"] {
        assert_eq!(refusal(Some(license), &allowed), None, "{license}");
    }
    let bad =
        ["GPL-3.0-only", "MIT AND GPL-3.0-only", "Apache-2.0 WITH LLVM-exception", "none of them"];
    for license in bad {
        assert!(refusal(Some(license), &allowed).is_some(), "{license}");
    }
    assert!(refusal(None, &allowed).is_some());
    let all = [("x", "1.0.0"), ("x", "2.0.0"), ("y", "1.0.0")];
    let all = all.map(|(name, version)| (name.to_owned(), version.to_owned()));
    let both = BTreeSet::from(["x@1.0.0", "x@2.0.0"].map(str::to_owned));
    assert_eq!(duplicates(&all, &BTreeSet::new()), both);
    assert_eq!(duplicates(&all, &BTreeSet::from(["x@1.0.0".to_owned()])), BTreeSet::new());
}
