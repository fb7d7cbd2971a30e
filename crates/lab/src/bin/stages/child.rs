//! How does a stage run? As a process group of its own, with its output in a log; its end is sent through
//! a channel. Used by main.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Deserialize;

use lab::tiers::Stage;

/// A stage has ended.
pub(crate) struct Ended {
    pub(crate) name: String,
    pub(crate) passed: bool,
}

/// A stage that runs.
pub(crate) struct Child {
    group: Pid,
}

/// The program and its arguments.
pub(crate) fn words(stage: &Stage, checkout: &Path) -> Result<Vec<String>> {
    let own = match (&stage.command, &stage.suite) {
        (Some(command), _) => {
            let targets: String =
                stage.targets().iter().map(|it| format!(" --test {it}")).collect();
            let line = command.replace("{tests}", targets.trim_start());
            ["bash", "-euo", "pipefail", "-c", &line].map(str::to_owned).to_vec()
        }
        (None, Some(suite)) => vec![executable(suite, &checkout.join("target/stages"))?],
        (None, None) => anyhow::bail!("there is nothing to run"),
    };
    Ok([own, stage.arguments.clone()].concat())
}

/// What cargo reports about a target that it has built.
#[derive(Deserialize)]
struct Artifact {
    target: Target,
    executable: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// The executable of a test target, as the messages of cargo in `*.json` of this folder name it.
fn executable(suite: &str, folder: &Path) -> Result<String> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|it| it != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for line in text.lines() {
            let Ok(artifact) = serde_json::from_str::<Artifact>(line) else { continue };
            let is_it = artifact.target.name == suite && artifact.target.kind == ["test"];
            if let (true, Some(file)) = (is_it, artifact.executable) {
                crate::is_there(Path::new(&file))?;
                return Ok(file);
            }
        }
    }
    anyhow::bail!("no stage before it has built the test {suite}")
}

impl Child {
    /// Without a log it prints where this program does.
    pub(crate) fn start(
        name: &str,
        words: &[String],
        paths: &BTreeMap<String, String>,
        checkout: &Path,
        log: Option<&Path>,
        ended: Sender<Ended>,
    ) -> Result<Self> {
        let (program, arguments) = words.split_first().context("no program")?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(checkout);
        command.envs(paths.iter().map(|(name, path)| (name, checkout.join(path))));
        // These are set by cargo for this program; they must not reach a build in there.
        for (variable, _) in std::env::vars_os() {
            let text = variable.to_string_lossy();
            if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|it| text.starts_with(it)) {
                command.env_remove(variable);
            }
        }
        command.stdin(Stdio::null()).process_group(0);
        if let Some(log) = log {
            let output = File::create(log).with_context(|| log.display().to_string())?;
            let errors = output.try_clone().context("second handle of a log")?;
            command.stdout(output).stderr(errors);
        }
        let mut child = command.spawn().with_context(|| format!("starting {program}"))?;
        let group = Pid::from_raw(i32::try_from(child.id()).context("a process id")?);
        let name = name.to_owned();
        std::thread::spawn(move || {
            let passed = child.wait().is_ok_and(|status| status.success());
            // The receiver goes when the run does.
            let _ = ended.send(Ended { name, passed });
        });
        Ok(Self { group })
    }

    /// Sends SIGTERM to it and its children, so that they clean up.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Ends it and its children at once.
    pub(crate) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// It leads its group, which may have gone a moment ago.
    fn signal(&self, signal: Signal) {
        let _ = killpg(self.group, signal);
    }
}
