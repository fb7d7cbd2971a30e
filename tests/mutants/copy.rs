//! Where is a mistake planted, and which test fails then? In a workspace of its own that holds copies of the
//! crates with mistakes and of what they depend on. Used by main.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;

use crate::variants::{Subject, Variant};

/// The crates that the copy needs: those with mistakes, and what they depend on.
const CRATES: &[&str] = &[
    "crates/allocator",
    "crates/bgp",
    "crates/cluster",
    "crates/ground",
    "crates/layer2",
    "crates/members",
    "crates/model",
    "crates/model-api",
    "crates/netlink",
    "crates/node",
    "crates/plan",
    "crates/resources",
    "crates/seam",
];
/// A test that runs forever does not keep the others from noticing.
const TEST_THREADS: &str = "--test-threads=2";
/// Of one build, on a busy machine.
const BUILD_LIMIT_SECONDS: &str = "900";
/// The exit code of `timeout` when the time is over.
const TIMED_OUT: i32 = 124;

/// The result of the tests on a copy.
pub(crate) enum Verdict {
    Passed,
    /// The first that failed.
    Failed(String),
    Endless,
}

/// A workspace of its own that holds the crates with mistakes and what they depend on.
pub(crate) struct Copy {
    directory: PathBuf,
}

impl Copy {
    /// The copy with this number.
    pub(crate) fn make(number: usize) -> Result<Self> {
        let root = lab::checkout();
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
        let directory = target.join("mutants").join(number.to_string());
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
        // The simulator of members takes a large part of its time in these two.
        let profile = "\n[profile.dev]\ndebug = false\n\n[profile.dev.package]\n\
            fairway-ground = { opt-level = 1 }\nfairway-members = { opt-level = 1 }\n";
        fs::write(directory.join("Cargo.toml"), alone + profile).context("writing Cargo.toml")?;
        fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock")).context("Cargo.lock")?;
        Ok(Self { directory })
    }

    /// The file of a mistake as it is, and with the mistake.
    pub(crate) fn replaced(&self, of: &Subject, variant: &Variant) -> Result<(String, String)> {
        let path = self.directory.join(of.path(variant));
        let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
        let wrong = variant.plant(&text)?;
        Ok((text, wrong))
    }

    /// Acts while the mistake is there.
    pub(crate) fn with<T>(
        &self,
        of: &Subject,
        variant: &Variant,
        act: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let (right, wrong) = self.replaced(of, variant)?;
        let path = self.directory.join(of.path(variant));
        fs::write(&path, wrong).context("writing a mistake")?;
        let outcome = act();
        fs::write(&path, right).context("taking a mistake back")?;
        outcome
    }

    /// Builds the tests; the program that they are.
    pub(crate) fn build(&self, subject: &Subject) -> Result<PathBuf> {
        // Offline: what is needed here was fetched for the workspace that this test belongs to.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new("timeout")
            .arg(BUILD_LIMIT_SECONDS)
            .arg(cargo)
            .args(["test", "--offline", "--lib", "--no-run"])
            .args(["--package", subject.package, "--message-format=json-render-diagnostics"])
            // The other cores have copies of their own.
            .args(["--jobs", "1"])
            .current_dir(&self.directory)
            .env("CARGO_TARGET_DIR", self.directory.join("target"))
            .output()
            .context("running cargo")?;
        if !output.status.success() {
            bail!("it does not build:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        let messages = String::from_utf8_lossy(&output.stdout);
        let mut messages =
            messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let program = messages.find_map(|it| Some(PathBuf::from(it.get("executable")?.as_str()?)));
        program.context("cargo names no program")
    }

    /// Runs the tests with one of these words in their names, until the first fails.
    pub(crate) fn test(
        &self,
        subject: &Subject,
        program: &Path,
        words: &[&str],
        limit: Duration,
    ) -> Result<Verdict> {
        let mut child = Command::new("timeout")
            .arg(limit.as_secs().to_string())
            .arg(program)
            .args(words)
            .arg(TEST_THREADS)
            .current_dir(self.directory.join(subject.folder))
            .env("FAIRWAY_SEEDS", subject.seeds)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("starting the tests")?;
        let output = child.stdout.take().context("no output")?;
        let is_failure = |line: String| {
            let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
            Some(name.to_owned())
        };
        // No other test has to run once one has failed.
        let failed = BufReader::new(output).lines().map_while(Result::ok).find_map(is_failure);
        if failed.is_some() {
            end(&child)?;
        }
        let status = child.wait().context("waiting for the tests")?;
        match failed {
            Some(test) => Ok(Verdict::Failed(test)),
            None if status.success() => Ok(Verdict::Passed),
            None if status.code() == Some(TIMED_OUT) => Ok(Verdict::Endless),
            None => bail!("the tests ended with {status}, and none of them is named"),
        }
    }
}

/// Ends the tests, which are a process group of their own.
fn end(child: &Child) -> Result<()> {
    let group = Pid::from_raw(i32::try_from(child.id()).context("a process id")?);
    killpg(group, Signal::SIGKILL).context("ending the tests")
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
