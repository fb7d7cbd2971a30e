//! Which stage of the tests runs in which tier? `tests/tiers.toml`, read and checked against its own rules.
//! Pure but for reading that file. Used by the program `stages`, which runs them, and by `tests/tidy`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// Where the stages are written down.
pub const FILE: &str = "tests/tiers.toml";

/// The tier that CI runs, and the one that has all.
pub const TEST: &str = "test";
pub const ALL: &str = "all";

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiers {
    pub tier: BTreeMap<String, Tier>,
    pub stage: Vec<Stage>,
}

/// The settings of a tier.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// How long it may take, with crates and Debian packages there and nothing built.
    pub minutes: u64,
    /// The program under test.
    pub binary: Option<String>,
}

/// What a stage mostly does, and so what may run beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Keeps the cores busy.
    Computing,
    /// Waits for routers and timers: runs beside what computes.
    Waiting,
    /// Measures time: nothing else runs beside it.
    Alone,
}

/// One stage.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stage {
    pub name: String,
    /// What it shows, in a few words.
    pub what: String,
    /// The tiers that have it.
    pub tiers: Vec<String>,
    pub kind: Kind,
    /// A line for bash, or
    #[serde(default)]
    pub command: Option<String>,
    /// the name of a test target that an earlier stage has built, which is run without cargo,
    #[serde(default)]
    pub suite: Option<String>,
    /// with these arguments.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Environment variables that are paths, from the folder of the checkout on.
    #[serde(default)]
    pub paths: BTreeMap<String, String>,
    /// The folder below `target` that cargo locks while it runs: no other stage uses it meanwhile.
    #[serde(default)]
    pub folder: Option<String>,
    /// It needs root.
    #[serde(default)]
    pub root: bool,
    /// It begins when these have passed, as far as they run at all.
    #[serde(default)]
    pub after: Vec<String>,
    /// The files of the tests that it runs.
    #[serde(default)]
    pub tests: Vec<String>,
    /// It makes what other stages need: it runs again when a run is resumed.
    #[serde(default)]
    pub makes: bool,
    /// Of a stage that `make test` does not have: the one there that covers it.
    #[serde(default)]
    pub covered_by: Option<String>,
    /// Of a stage that `make test-all` does not have: the one there that has all of it and more.
    #[serde(default)]
    pub extended_by: Option<String>,
    /// Of a stage in no tier: the command that runs it, and why a person decides when.
    #[serde(default)]
    pub by_hand: Option<String>,
}

impl Tiers {
    /// Reads the file of a checkout.
    pub fn read(checkout: &Path) -> Result<Self> {
        let file = checkout.join(FILE);
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        Self::parse(&text)
    }

    pub fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context(FILE)
    }

    /// The stages of a tier, in the order of the file.
    pub fn stages_of(&self, tier: &str) -> Vec<&Stage> {
        self.stage.iter().filter(|stage| stage.is_in(tier)).collect()
    }

    fn named(&self, name: &str) -> Option<&Stage> {
        self.stage.iter().find(|stage| stage.name == name)
    }

    /// What is wrong with the file, one sentence each. `test_files` are all that the checkout has.
    pub fn faults(&self, test_files: &[String]) -> Vec<String> {
        let mut faults = Vec::new();
        let mut names = BTreeSet::new();
        for stage in &self.stage {
            if !names.insert(&stage.name) {
                faults.push(format!("stage {}: there are two of this name", stage.name));
            }
            faults.extend(self.faults_of(stage).map(|it| format!("stage {}: {it}", stage.name)));
        }
        let named: BTreeSet<&String> = self.stage.iter().flat_map(|stage| &stage.tests).collect();
        let missing = test_files.iter().filter(|file| !named.contains(file));
        faults.extend(missing.map(|file| format!("{file} is in no tier")));
        let gone = named.iter().filter(|file| !test_files.contains(file));
        faults.extend(gone.map(|file| format!("{file}, which a stage names, is no test file")));
        faults
    }

    fn faults_of(&self, stage: &Stage) -> impl Iterator<Item = String> {
        let mut faults = Vec::new();
        let unknown = stage.tiers.iter().filter(|tier| !self.tier.contains_key(*tier));
        faults.extend(unknown.map(|tier| format!("there is no tier {tier}")));
        if stage.command.is_some() == stage.suite.is_some() {
            faults.push("expected either a command or a suite".to_owned());
        }
        for after in &stage.after {
            let place = |name: &str| self.stage.iter().position(|it| it.name == name);
            match (place(after), place(&stage.name)) {
                (Some(earlier), Some(own)) if earlier < own => {}
                _ => faults.push(format!("{after}, which it comes after, is no stage before it")),
            }
        }
        let mut refers = |what: &str, name: Option<&String>, tier: &str| {
            let Some(name) = name else {
                faults.push(format!("is not in {tier}, and has no `{what}`"));
                return;
            };
            if !self.named(name).is_some_and(|other| other.is_in(tier)) {
                faults.push(format!("{what} {name}: there is no such stage in {tier}"));
            }
        };
        match (stage.is_in(TEST), stage.is_in(ALL)) {
            _ if stage.makes => {}
            (true, true) => {}
            (true, false) => refers("extended-by", stage.extended_by.as_ref(), ALL),
            (false, true) => refers("covered-by", stage.covered_by.as_ref(), TEST),
            (false, false) if stage.by_hand.is_some() => {}
            (false, false) => faults.push("is in no tier, and has no `by-hand`".to_owned()),
        }
        faults.into_iter()
    }
}

impl Stage {
    pub fn is_in(&self, tier: &str) -> bool {
        self.tiers.iter().any(|it| it == tier)
    }

    /// The names of its test targets: those of the files, or of the folders of `main.rs`.
    pub fn targets(&self) -> Vec<&str> {
        self.tests.iter().filter_map(|file| target_of(file)).collect()
    }
}

fn target_of(file: &str) -> Option<&str> {
    let path = Path::new(file);
    let stem = path.file_stem()?.to_str()?;
    if stem == "main" { path.parent()?.file_name()?.to_str() } else { Some(stem) }
}

/// All test files of a checkout: `tests/*.rs` and `tests/*/main.rs` of each package, and scripts that are
/// tests.
pub fn test_files(checkout: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for package in packages(checkout)? {
        let tests = if package == "tests" {
            checkout.join("tests")
        } else {
            checkout.join(&package).join("tests")
        };
        let Ok(entries) = std::fs::read_dir(&tests) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let is_rust = path.extension().is_some_and(|it| it == "rs");
            let candidates = [path.join("main.rs"), path.join("run.sh")];
            if path.is_file() && is_rust {
                files.push(path);
            } else {
                files.extend(candidates.into_iter().filter(|it| it.is_file()));
            }
        }
    }
    let relative = |path: &std::path::PathBuf| {
        let path = path.strip_prefix(checkout).unwrap_or(path).to_string_lossy().into_owned();
        path.trim_start_matches("./").to_owned()
    };
    let files: BTreeSet<String> = files.iter().map(relative).collect();
    Ok(files.into_iter().collect())
}

/// The folders of the members of the workspace.
fn packages(checkout: &Path) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Manifest {
        workspace: Workspace,
    }
    #[derive(Deserialize)]
    struct Workspace {
        members: Vec<String>,
    }
    let text = std::fs::read_to_string(checkout.join("Cargo.toml")).context("Cargo.toml")?;
    let manifest: Manifest = toml::from_str(&text).context("Cargo.toml")?;
    let mut packages = Vec::new();
    for member in manifest.workspace.members {
        match member.strip_suffix("/*") {
            None => packages.push(member),
            Some(folder) => {
                let entries = std::fs::read_dir(checkout.join(folder)).context(member.clone())?;
                let names =
                    entries.flatten().map(|it| it.file_name().to_string_lossy().into_owned());
                packages.extend(names.map(|name| format!("{folder}/{name}")));
            }
        }
    }
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        [tier.unit]
        minutes = 3
        [tier.test]
        minutes = 15
        [tier.all]
        minutes = 120
        [[stage]]
        name = "short"
        what = "some"
        tiers = ["test"]
        kind = "waiting"
        suite = "interop"
        tests = ["tests/interop/main.rs"]
        extended-by = "long"
        [[stage]]
        name = "long"
        what = "all"
        tiers = ["all"]
        kind = "waiting"
        suite = "interop"
        covered-by = "short"
    "#;

    fn faults(text: &str, files: &[&str]) -> Vec<String> {
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        Tiers::parse(text).unwrap().faults(&files)
    }

    #[test]
    fn a_good_file_has_no_faults() {
        assert_eq!(faults(GOOD, &["tests/interop/main.rs"]), [] as [String; 0]);
    }

    #[test]
    fn a_test_file_in_no_tier_is_a_fault() {
        let found = faults(GOOD, &["tests/interop/main.rs", "tests/new.rs"]);
        assert_eq!(found, ["tests/new.rs is in no tier"]);
    }

    #[test]
    fn a_stage_that_names_a_file_that_is_gone_is_a_fault() {
        assert_eq!(faults(GOOD, &[]).len(), 1);
    }

    #[test]
    fn what_leaves_make_test_names_what_covers_it() {
        let text = GOOD.replace("covered-by = \"short\"", "");
        assert_eq!(
            faults(&text, &["tests/interop/main.rs"]),
            ["stage long: is not in test, and has no `covered-by`"]
        );
        let text = GOOD.replace("covered-by = \"short\"", "covered-by = \"long\"");
        assert_eq!(
            faults(&text, &["tests/interop/main.rs"]),
            ["stage long: covered-by long: there is no such stage in test"]
        );
    }

    #[test]
    fn what_is_in_no_tier_says_how_it_is_run() {
        let text = GOOD.replace("tiers = [\"test\"]", "tiers = []");
        assert!(
            faults(&text, &["tests/interop/main.rs"])
                .contains(&"stage short: is in no tier, and has no `by-hand`".to_owned())
        );
    }

    #[test]
    fn targets_are_files_or_folders_of_main() {
        let tiers = Tiers::parse(GOOD).unwrap();
        assert_eq!(tiers.stage[0].targets(), ["interop"]);
    }
}
