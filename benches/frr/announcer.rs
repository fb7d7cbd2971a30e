//! The announcer that configures FRR: Fairway, or frr-reload.py as MetalLB runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::state::{State, standing_files};
use lab::Lab;
use lab::fairway::Fairway;
use lab::frr_speaker::Speaker;
use lab::process::output_of;
use lab::routers::Release;

/// The window in which MetalLB gathers changes before it writes a file: it starts with the first change and
/// is never shortened.
pub(crate) const WINDOW: Duration = Duration::from_secs(3);

pub(crate) const FRR_RELOAD: &str = "/usr/lib/frr/frr-reload.py";

/// Has FRR on the node announce routes.
pub(crate) trait Announcer {
    /// Makes this the state; returns when that was requested. May return before FRR is configured.
    fn announce(&mut self, state: &State) -> Result<Instant>;
}

/// Fairway and its FRR.
pub(crate) struct FairwayAnnouncer {
    pub(crate) fairway: Fairway,
    pub(crate) speaker: Speaker,
    /// The folder of its files.
    pub(crate) place: PathBuf,
    state: State,
}

impl FairwayAnnouncer {
    pub(crate) fn start(lab: &Lab, release: Release) -> Result<Self> {
        let mut speaker = Speaker::prepare(release, &lab.directory.join("node"))?;
        speaker.start(&lab.node)?;
        let mut fairway = Fairway::prepare(lab)?;
        fairway.log_level = "info";
        let state = State::FIRST;
        for (name, text) in standing_files().into_iter().chain(state.files()) {
            fairway.apply(&name, &text)?;
        }
        let folder = speaker.directory().display().to_string();
        let words = ["--bgp", "frr", "--frr-socket-dir", &folder];
        fairway.extra_arguments = words.map(str::to_owned).to_vec();
        fairway.start(&lab.node)?;
        Ok(Self { fairway, speaker, place: lab.directory.clone(), state })
    }
}

impl Announcer for FairwayAnnouncer {
    fn announce(&mut self, state: &State) -> Result<Instant> {
        let before = std::mem::replace(&mut self.state, state.clone()).files();
        let changed = state.files().into_iter().filter(|file| !before.contains(file));
        let mut moments = changed.map(|(name, text)| self.fairway.apply_timed(&name, &text));
        let moment = moments.next().context("nothing has changed")??;
        ensure!(moments.next().is_none(), "a change is one file");
        Ok(moment)
    }
}

/// The author of the configuration that is reloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    /// As MetalLB writes it.
    MetalLb,
    /// `fairway render`, from a folder of resources.
    Fairway,
}

/// frr-reload.py with its own FRR.
pub(crate) struct ReloadAnnouncer {
    speaker: Speaker,
    author: Author,
    /// Does not run; has the folder of resources.
    fairway: Fairway,
    file: PathBuf,
    /// Durations of the runs for the last change: `--test` and `--reload`.
    pub(crate) runs: Vec<[Duration; 2]>,
}

impl ReloadAnnouncer {
    /// Starts FRR with the first state, loaded at once.
    pub(crate) fn start(lab: &Lab, author: Author) -> Result<Self> {
        let mut speaker = Speaker::prepare(Release::Bookworm, &lab.directory.join("node"))?;
        speaker.start(&lab.node)?;
        let fairway = Fairway::prepare(lab)?;
        for (name, text) in standing_files() {
            fairway.apply(&name, &text)?;
        }
        let file = speaker.directory().join("frr.conf");
        let announcer = Self { speaker, author, fairway, file, runs: Vec::new() };
        announcer.write(&State::FIRST)?;
        let folder = announcer.speaker.directory();
        let mut load = Command::new("/usr/bin/vtysh");
        load.arg("--vty_socket").arg(folder).arg("--config_dir").arg(folder).arg("-b");
        output_of(&mut load)?;
        Ok(announcer)
    }

    fn write(&self, state: &State) -> Result<()> {
        let text = match self.author {
            Author::MetalLb => state.metallb_text(),
            Author::Fairway => {
                for (name, text) in state.files() {
                    self.fairway.apply(&name, &text)?;
                }
                self.fairway.render()?
            }
        };
        let staged = self.file.with_extension("new");
        fs::write(&staged, text).context("writing frr.conf")?;
        fs::rename(&staged, &self.file).context("frr.conf takes its place")
    }

    /// The command line of MetalLB's reloader.
    fn run(&self, words: &[&str]) -> Result<Duration> {
        let start = Instant::now();
        let folder: &Path = self.speaker.directory();
        let mut command = Command::new(FRR_RELOAD);
        command.args(words).args(["--stdout", "--bindir", "/usr/bin"]);
        for option in ["--confdir", "--rundir", "--vty_socket"] {
            command.arg(option).arg(folder);
        }
        output_of(command.arg(&self.file))?;
        Ok(start.elapsed())
    }
}

impl Announcer for ReloadAnnouncer {
    fn announce(&mut self, state: &State) -> Result<Instant> {
        // MetalLB has the text when its window ends; creating it is not measured.
        self.write(state)?;
        let moment = Instant::now();
        let test = self.run(&["--test"])?;
        let reload = self.run(&["--reload", "--overwrite"])?;
        self.runs.push([test, reload]);
        Ok(moment)
    }
}
