//! Which crates, and what else, is linked into the programs, as cargo and the compiler say.
//!
//! Refuses to know formats: `bill_of_materials` writes one, `main` calls both.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::{DependencyKind, MetadataCommand, PackageId};
use serde::Deserialize;

/// The packages whose programs are released.
const PROGRAMS: [&str; 2] = ["fairway", "fairway-cni"];

/// A name and a version.
pub(crate) type Key = (String, String);

/// Something that is linked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Crate {
    /// Its licence, as an SPDX expression.
    pub(crate) license: String,
    /// One line about it.
    pub(crate) description: Option<String>,
    /// Where its source is.
    pub(crate) repository: Option<String>,
    /// SHA-256 of what crates.io has; none for a crate of this checkout, and for what is no crate.
    pub(crate) checksum: Option<String>,
    /// What of the list it uses.
    pub(crate) uses: BTreeSet<Key>,
}

/// All that is linked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Linked {
    /// By name and version.
    pub(crate) crates: BTreeMap<Key, Crate>,
    /// The packages with the programs.
    pub(crate) programs: BTreeSet<Key>,
    /// The version of Rust, whose standard library is linked.
    pub(crate) rust: String,
    /// The version of glibc, which is linked statically.
    pub(crate) glibc: String,
}

/// What the programs consist of that are compiled for any of these targets.
pub(crate) fn crates(targets: &[String]) -> Result<Linked> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let mut names = BTreeSet::new();
    for target in targets {
        names.extend(names_for(target, &manifest)?);
    }
    let lock = manifest.with_file_name("Cargo.lock");
    let lock = std::fs::read_to_string(&lock).with_context(|| lock.display().to_string())?;
    let checksums = checksums(&lock)?;
    let mut command = MetadataCommand::new();
    command.manifest_path(&manifest).other_options(["--locked".to_owned()]);
    let metadata = command.exec().context("cargo metadata")?;
    let key_of = |id: &PackageId| {
        let package = metadata.packages.iter().find(|it| it.id == *id)?;
        Some((package.name.to_string(), package.version.to_string()))
    };
    let resolve = metadata.resolve.as_ref().context("cargo metadata has no graph")?;
    let mut linked = Linked { rust: rust()?, glibc: glibc()?, ..Linked::default() };
    for package in &metadata.packages {
        let key = (package.name.to_string(), package.version.to_string());
        if !names.contains(&key) {
            continue;
        }
        let node = resolve.nodes.iter().find(|it| it.id == package.id);
        let used = node
            .iter()
            .flat_map(|it| &it.deps)
            .filter(|it| it.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal));
        let uses = used.filter_map(|it| key_of(&it.pkg)).filter(|it| names.contains(it)).collect();
        let name = &package.name;
        let license = package.license.as_ref().with_context(|| format!("{name}: no licence"))?;
        if package.source.is_none() && PROGRAMS.contains(&name.as_str()) {
            linked.programs.insert(key.clone());
        }
        let crate_ = Crate {
            // As some older crates write it.
            license: license.replace('/', " OR "),
            description: package.description.as_deref().map(first_line),
            repository: package.repository.clone(),
            checksum: checksums.get(&key).cloned(),
            uses,
        };
        linked.crates.insert(key, crate_);
    }
    ensure!(
        linked.crates.len() == names.len(),
        "cargo tree names crates that cargo metadata lacks"
    );
    ensure!(linked.programs.len() == PROGRAMS.len(), "the packages {PROGRAMS:?} are not all here");
    Ok(linked)
}

fn first_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As cargo resolves features for these programs alone: `cargo metadata` has those that any test asks for.
fn names_for(target: &str, manifest: &Path) -> Result<BTreeSet<Key>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none"]);
    cargo.args(["--format", "{p}", "--target", target]).arg("--manifest-path").arg(manifest);
    cargo.args(PROGRAMS.iter().flat_map(|program| ["--package", program]));
    let text = output_of(cargo)?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| key_of_line(line).with_context(|| format!("cargo tree says {line:?}")))
        .collect()
}

/// `NAME vVERSION`, and what may follow.
fn key_of_line(line: &str) -> Option<Key> {
    let mut words = line.split_whitespace();
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    Some((name.to_owned(), version.to_owned()))
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

fn checksums(lock: &str) -> Result<BTreeMap<Key, String>> {
    let lock: Lock = toml::from_str(lock).context("Cargo.lock")?;
    let with =
        lock.package.into_iter().filter_map(|it| Some(((it.name, it.version), it.checksum?)));
    Ok(with.collect())
}

fn rust() -> Result<String> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.arg("--version");
    let text = output_of(rustc)?;
    Ok(text.split_whitespace().nth(1).context("rustc has no version")?.to_owned())
}

fn glibc() -> Result<String> {
    let mut getconf = Command::new("getconf");
    getconf.arg("GNU_LIBC_VERSION");
    let text = output_of(getconf)?;
    Ok(text.split_whitespace().nth(1).context("getconf has no version of glibc")?.to_owned())
}

fn output_of(mut command: Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_what_cargo_compiles_for_the_programs_alone() {
        let target = "x86_64-unknown-linux-gnu".to_owned();
        let linked = crates(&[target]).unwrap();
        let names: BTreeSet<_> = linked.crates.keys().map(|(name, _)| name.as_str()).collect();
        for linked in ["fairway", "fairway-cni", "fairway-bgp", "tokio", "libmimalloc-sys", "ring"]
        {
            assert!(names.contains(linked), "{linked} is linked");
        }
        // A procedural macro, dependencies of tests, of build scripts and of other systems.
        for other in
            ["serde_derive", "criterion", "bgpkit-parser", "cc", "windows-sys", "fairway-lab"]
        {
            assert!(!names.contains(other), "{other} is not linked");
        }
        for (key, it) in &linked.crates {
            assert_eq!(it.checksum.is_none(), key.0.starts_with("fairway"), "{key:?}");
            assert!(!it.license.is_empty() && !it.license.contains('/'), "{key:?}: {}", it.license);
        }
        let used: BTreeSet<_> = linked.crates.values().flat_map(|it| &it.uses).collect();
        let roots: BTreeSet<_> = linked.crates.keys().filter(|it| !used.contains(it)).collect();
        let programs: BTreeSet<_> =
            linked.programs.iter().filter(|it| !used.contains(it)).collect();
        assert_eq!(roots, programs, "nothing is linked that nothing uses");
    }

    #[test]
    fn a_line_of_the_tree_has_name_and_version() {
        let key = |name: &str, version: &str| Some((name.to_owned(), version.to_owned()));
        assert_eq!(key_of_line("serde v1.0.229"), key("serde", "1.0.229"));
        assert_eq!(key_of_line("fairway v0.1.0 (/somewhere) (*)"), key("fairway", "0.1.0"));
        assert_eq!(key_of_line("something else"), None);
    }
}
