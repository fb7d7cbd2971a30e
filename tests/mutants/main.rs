//! Do the tests of the state machine and the speaker notice when these are wrong? Puts one mistake at a time
//! into a copy of `bgp`, and runs its simulator and its tables: each mistake must make one of them fail.
//! Run by `make mutants`: `cargo test --test mutants -- [WORD...]`, words filter by name.

mod variants;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, bail};
use clap::Parser;

use lab::suite::{self, Case, Suite};
use variants::{VARIANTS, Variant};

/// What is run against each variant.
const TESTS: &[&str] = &["session::", "rib::", "sim::", "speaker::", "wire::header::"];
/// Schedules of the simulator: a mistake that needs more of them is a hole.
const SEEDS: &str = "300";
/// A variant may make a test run forever; that is noticed, too.
const LIMIT_SECONDS: &str = "180";
/// The exit code of `timeout` when the time is over.
const TIMED_OUT: i32 = 124;

/// The result of the tests on a copy.
enum Verdict {
    Passed,
    Failed(Vec<String>),
    Endless,
}

/// Mistakes in the state machine, each of which its tests must notice.
///
/// Words: the mistakes with all of them in their name.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("mutants", run)
}

/// Whether every mistake was noticed.
fn run(options: Options) -> Result<bool> {
    let mut suite = Suite::new("mutants", options.suite);
    let copy: Arc<OnceLock<Copy>> = Arc::default();
    for variant in VARIANTS {
        let copy = Arc::clone(&copy);
        let run = move |_: &suite::Cell| notice(copy.get().context("no copy")?, variant);
        suite.add(Case::new(variant.name, run).in_line("one copy"));
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    let made = Copy::make()?;
    // Drift is reported at once, not after a quarter of an hour; of all mistakes, whichever were chosen.
    for variant in VARIANTS {
        made.replaced(variant)?;
    }
    match made.test()? {
        Verdict::Passed => println!("without a mistake: all tests pass"),
        Verdict::Failed(tests) => bail!("without a mistake, these fail: {}", tests.join(", ")),
        Verdict::Endless => bail!("without a mistake, the tests do not end"),
    }
    let _ = copy.set(made);
    Ok(chosen.run()?.all_passed())
}

/// Fails where no test notices the mistake.
fn notice(copy: &Copy, variant: &Variant) -> Result<()> {
    let caught_by = match copy.with(variant, Copy::test)? {
        Verdict::Passed => bail!("no test notices it"),
        Verdict::Failed(tests) => match tests.split_first() {
            Some((first, [])) => first.clone(),
            Some((first, others)) => format!("{first} and {} more", others.len()),
            None => bail!("the tests failed, and none of them is named"),
        },
        Verdict::Endless => format!("a test that no longer ends in {LIMIT_SECONDS} s"),
    };
    println!("{}: caught by {caught_by}", variant.name);
    Ok(())
}

/// The crates that the copy needs: `bgp`, and what it depends on.
const CRATES: &[&str] = &["crates/bgp", "crates/ground", "crates/seam"];

/// A workspace of its own that holds `bgp` and what it depends on.
struct Copy {
    directory: PathBuf,
}

impl Copy {
    fn make() -> Result<Self> {
        let root = lab::checkout();
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
        let directory = target.join("mutants");
        let manifest = fs::read_to_string(root.join("Cargo.toml")).context("reading Cargo.toml")?;
        let workspace = manifest.split("\n[package]").next().unwrap_or_default();
        let members = |line: &&str| line.starts_with("members = ");
        let line = workspace.lines().find(members).context("Cargo.toml lists no members")?;
        let alone = workspace.replace(line, &format!("members = {CRATES:?}"));
        let is_default = |line: &&str| line.starts_with("default-members = ");
        let alone: String = alone
            .lines()
            .filter(|it| !is_default(it))
            .fold(String::new(), |text, line| text + line + "\n");
        for folder in CRATES {
            if directory.join(folder).exists() {
                fs::remove_dir_all(directory.join(folder)).context("removing the last copy")?;
            }
            copy_folder(&root.join(folder), &directory.join(folder))?;
        }
        let profile = "\n[profile.dev]\ndebug = false\n";
        fs::write(directory.join("Cargo.toml"), alone + profile).context("writing Cargo.toml")?;
        fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock")).context("Cargo.lock")?;
        Ok(Self { directory })
    }

    fn path(&self, variant: &Variant) -> PathBuf {
        self.directory.join(variant.path())
    }

    /// The file as it is, and with the mistake.
    fn replaced(&self, variant: &Variant) -> Result<(String, String)> {
        let path = self.path(variant);
        let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
        let wrong = variant.plant(&text)?;
        Ok((text, wrong))
    }

    fn with<T>(&self, variant: &Variant, act: impl Fn(&Self) -> Result<T>) -> Result<T> {
        let (right, wrong) = self.replaced(variant)?;
        fs::write(self.path(variant), wrong).context("writing a mistake")?;
        let outcome = act(self).with_context(|| variant.name.to_owned());
        fs::write(self.path(variant), right).context("taking a mistake back")?;
        outcome
    }

    fn test(&self) -> Result<Verdict> {
        let build = self.cargo(&["--no-run"])?;
        if !build.status.success() {
            bail!("it does not build:\n{}", String::from_utf8_lossy(&build.stderr));
        }
        let words: Vec<&str> = ["--"].into_iter().chain(TESTS.iter().copied()).collect();
        let tests = self.cargo(&words)?;
        if tests.status.code() == Some(TIMED_OUT) {
            return Ok(Verdict::Endless);
        }
        if tests.status.success() {
            return Ok(Verdict::Passed);
        }
        let output = String::from_utf8_lossy(&tests.stdout);
        // The list at the end: the output of a failing test may stand in front of its own result.
        let list = output.rsplit("\nfailures:\n").next().unwrap_or_default();
        let names = list.lines().filter_map(|line| line.strip_prefix("    "));
        Ok(Verdict::Failed(names.map(str::to_owned).collect()))
    }

    fn cargo(&self, arguments: &[&str]) -> Result<Output> {
        // Offline: what is needed here was fetched for the workspace that this test belongs to.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Command::new("timeout")
            .arg(LIMIT_SECONDS)
            .arg(cargo)
            .args(["test", "--offline", "--lib"])
            .args(["-p", "fairway-ground", "-p", "fairway-bgp"])
            .args(arguments)
            .current_dir(&self.directory)
            .env("CARGO_TARGET_DIR", self.directory.join("target"))
            .env("FAIRWAY_SEEDS", SEEDS)
            .env("RUST_BACKTRACE", "0")
            .output()
            .context("running cargo")
    }
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("{}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).with_context(|| format!("{}", target.display()))?;
        }
    }
    Ok(())
}
