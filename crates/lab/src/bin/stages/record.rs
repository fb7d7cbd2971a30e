//! Which stages have passed on this state of the checkout? A file beside the logs, one line each: the
//! state, the stage, its seconds. Used by main, for `--resume`.

use std::collections::hash_map::DefaultHasher;
use std::fs::OpenOptions;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use lab::tiers::Stage;

/// The record of a tier.
pub(crate) struct Record {
    file: PathBuf,
    state: String,
    passed: Vec<String>,
}

impl Record {
    /// What has passed before counts only where a run is resumed; otherwise the record starts empty.
    pub(crate) fn open(checkout: &Path, folder: &Path, resumes: bool) -> Result<Self> {
        let (file, state) = (folder.join("passed"), state_of(checkout)?);
        let text = if resumes {
            std::fs::read_to_string(&file).unwrap_or_default()
        } else {
            String::new()
        };
        let own = text.lines().filter_map(|line| line.strip_prefix(state.as_str()));
        let passed = own.filter_map(|rest| rest.split_whitespace().next());
        let passed = passed.map(str::to_owned).collect();
        std::fs::write(&file, &text).with_context(|| file.display().to_string())?;
        Ok(Self { file, state, passed })
    }

    /// Whether it need not run again.
    pub(crate) fn has(&self, stage: &Stage) -> bool {
        !stage.makes && self.passed.contains(&stage.name)
    }

    pub(crate) fn add(&self, stage: &Stage, time: Duration) -> Result<()> {
        let mut file = OpenOptions::new().append(true).open(&self.file).context("the record")?;
        writeln!(file, "{} {} {}", self.state, stage.name, time.as_secs()).context("the record")
    }
}

/// The commit, and a number that stands for all that differs from it.
fn state_of(checkout: &Path) -> Result<String> {
    let git = |words: &[&str]| -> Result<Vec<u8>> {
        let output = Command::new("git").args(words).current_dir(checkout).output();
        let output = output.context("running git")?;
        ensure!(output.status.success(), "git {words:?} ended with {}", output.status);
        Ok(output.stdout)
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    let mut hasher = DefaultHasher::new();
    git(&["diff", "HEAD"])?.hash(&mut hasher);
    let others = git(&["ls-files", "--others", "--exclude-standard", "-z"])?;
    for name in others.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        name.hash(&mut hasher);
        let name = String::from_utf8_lossy(name).into_owned();
        std::fs::read(checkout.join(name)).unwrap_or_default().hash(&mut hasher);
    }
    Ok(format!("{} {:016x}", String::from_utf8_lossy(&commit).trim(), hasher.finish()))
}
