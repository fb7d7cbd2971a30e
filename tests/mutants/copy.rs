//! Where is a mistake planted, and which test fails then? In a workspace of its own that holds copies of the
//! crates with mistakes and of what they depend on, the daemon among them: for the stories that start it. Used by main.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;

use crate::variants::{Subject, Variant};

/// The crates that the copy needs: those with mistakes, and what they and the daemon depend on.
const CRATES: &[&str] = &[
    "crates/allocator",
    "crates/bfd",
    "crates/bgp",
    "crates/cluster",
    "crates/cni",
    "crates/daemon",
    "crates/dataplane",
    "crates/fib",
    "crates/frr",
    "crates/ground",
    "crates/import",
    "crates/ipam",
    "crates/lab",
    "crates/layer2",
    "crates/looking-glass",
    "crates/members",
    "crates/model",
    "crates/model-api",
    "crates/netlink",
    "crates/node",
    "crates/plan",
    "crates/proxy",
    "crates/recording",
    "crates/resources",
    "crates/rpki",
    "crates/bmp",
    "crates/seam",
    "crates/sessions",
    "crates/show",
    "crates/top",
];
/// What the daemon's program is made of beside them.
const PROGRAM: &[&str] = &["build.rs", "src", "templates"];
/// The suite with the stories.
const STORIES: &str = "attack";
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

/// What is run against a mistake.
pub(crate) struct Tests {
    program: PathBuf,
    /// The daemon that it starts, with the mistake.
    daemon: Option<PathBuf>,
}

/// Builds the stories: those of the checkout, which know nothing of a mistake.
pub(crate) fn build_stories() -> Result<PathBuf> {
    // Of the whole workspace, as all suites are built for `make test-all`.
    build(cargo(&lab::checkout()).args(["test", "--workspace", "--test", STORIES, "--no-run"]))
}

/// A workspace of its own that holds the crates with mistakes and what they depend on.
pub(crate) struct Copy {
    directory: PathBuf,
    /// The program with the stories, where one is to be run.
    stories: Option<PathBuf>,
}

impl Copy {
    /// The copy with this number.
    pub(crate) fn make(number: usize, stories: Option<PathBuf>) -> Result<Self> {
        let root = lab::checkout();
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
        let directory = target.join("mutants").join(number.to_string());
        let manifest = fs::read_to_string(root.join("Cargo.toml")).context("reading Cargo.toml")?;
        // Tests and benchmarks of the whole stay behind.
        let kept = manifest.split("\n[dev-dependencies]").next().unwrap_or_default();
        let members = |line: &&str| line.starts_with("members = ");
        let line = kept.lines().find(members).context("Cargo.toml lists no members")?;
        let alone = kept.replace(line, &format!("members = {CRATES:?}"));
        let is_default = |line: &&str| line.starts_with("default-members = ");
        let alone: String = alone
            .lines()
            .filter(|it| !is_default(it))
            .fold(String::new(), |text, line| text + line + "\n");
        for part in CRATES.iter().chain(PROGRAM) {
            copy(&root.join(part), &directory.join(part))?;
        }
        // The simulator of members takes a large part of its time in these two.
        let profile = "\n[profile.dev]\ndebug = false\n\n[profile.dev.package]\n\
            fairway-ground = { opt-level = 1 }\nfairway-members = { opt-level = 1 }\n";
        fs::write(directory.join("Cargo.toml"), alone + profile).context("writing Cargo.toml")?;
        fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock")).context("Cargo.lock")?;
        Ok(Self { directory, stories })
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

    /// Builds what is run against the mistakes of a subject.
    pub(crate) fn build(&self, subject: &Subject) -> Result<Tests> {
        let words: &[&str] = match subject.is_story {
            true => &["build", "--package", "fairway", "--bin", "fairway"],
            false => &["test", "--package", subject.package, "--lib", "--no-run"],
        };
        let mut cargo = cargo(&self.directory);
        cargo.args(words).env("CARGO_TARGET_DIR", self.directory.join("target"));
        // The other cores have copies of their own.
        let program = build(cargo.args(["--jobs", "1"]))?;
        Ok(match subject.is_story {
            true => {
                let stories = self.stories.clone().context("the stories were not built")?;
                Tests { program: stories, daemon: Some(program) }
            }
            false => Tests { program, daemon: None },
        })
    }

    /// Runs the tests with one of these words in their names, until the first fails. What they leave is in `scratch`.
    pub(crate) fn test(
        &self,
        subject: &Subject,
        tests: &Tests,
        words: &[&str],
        limit: Duration,
        scratch: &Path,
    ) -> Result<Verdict> {
        let mut child = Command::new("timeout")
            .arg(limit.as_secs().to_string())
            .arg(&tests.program)
            .args(words)
            .arg(TEST_THREADS)
            .current_dir(self.directory.join(subject.folder))
            .env("FAIRWAY_SEEDS", subject.seeds)
            .env("RUST_BACKTRACE", "0")
            .env("TMPDIR", scratch)
            .envs(tests.daemon.iter().map(|daemon| ("FAIRWAY_BIN", daemon)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("starting the tests")?;
        let output = child.stdout.take().context("no output")?;
        let is_failure = |line: String| {
            let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
            Some(name.trim_end().to_owned())
        };
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let mut failed = lines.find_map(is_failure);
        if let Some(test) = &mut failed {
            // A story says why: on a busy machine it may fail for another reason than the mistake.
            if subject.is_story
                && let Some(why) = lines.find(|line| line.starts_with("after "))
            {
                *test = format!("{test}: {why}");
            }
            // No other test has to run once one has failed.
            end(&child)?;
        }
        let status = child.wait().context("waiting for the tests")?;
        match failed {
            Some(test) => Ok(Verdict::Failed(test)),
            None if status.success() => Ok(Verdict::Passed),
            None if status.code() == Some(TIMED_OUT) => Ok(Verdict::Endless),
            // A stack that is used up ends all of the tests.
            None if status.signal().is_some() => {
                Ok(Verdict::Failed(format!("a test that ends with {status}")))
            }
            None => bail!("the tests ended with {status}, and none of them is named"),
        }
    }
}

/// Ends the tests, which are a process group of their own.
fn end(child: &Child) -> Result<()> {
    let group = Pid::from_raw(i32::try_from(child.id()).context("a process id")?);
    killpg(group, Signal::SIGKILL).context("ending the tests")
}

/// In this folder, and with what is there: all that is needed was fetched for the workspace that this test belongs to.
fn cargo(folder: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.arg(BUILD_LIMIT_SECONDS);
    command.arg(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).current_dir(folder);
    // What cargo tells this test about itself: a build script that reads it would run again.
    let is_of_test =
        |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars().filter(|(name, _)| is_of_test(name)) {
        command.env_remove(name);
    }
    command
}

/// The program that cargo builds.
fn build(cargo: &mut Command) -> Result<PathBuf> {
    let cargo = cargo.args(["--offline", "--message-format=json-render-diagnostics"]);
    let output = cargo.output().context("running cargo")?;
    if !output.status.success() {
        bail!("it does not build:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = messages.find_map(|it| Some(PathBuf::from(it.get("executable")?.as_str()?)));
    program.context("cargo names no program")
}

/// Makes `to` what `from` is. What is so already stays untouched, and need not be compiled again.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_file() {
        let text = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
        if fs::read(to).ok().as_ref() != Some(&text) {
            fs::write(to, text).with_context(|| format!("writing {}", to.display()))?;
        }
        return Ok(());
    }
    fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    for name in names_in(to)? {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() != to.is_dir() || !from.exists() {
            let removed = if to.is_dir() { fs::remove_dir_all(&to) } else { fs::remove_file(&to) };
            removed.with_context(|| format!("removing {}", to.display()))?;
        }
    }
    names_in(from)?.iter().try_for_each(|name| copy(&from.join(name), &to.join(name)))
}

fn names_in(folder: &Path) -> Result<Vec<OsString>> {
    let names = fs::read_dir(folder).and_then(|all| all.map(|it| Ok(it?.file_name())).collect());
    names.with_context(|| format!("listing {}", folder.display()))
}
