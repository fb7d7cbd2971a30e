//! Which stage begins next? Those that wait beside those that compute, and nothing beside what measures
//! time. Pure. Used by main.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use lab::tiers::{Kind, Stage};

/// How many stages of a kind run at a time: two that compile keep two cores busy through the parts of a
/// build that use one, and suites run several cases at a time each.
const COMPUTING_MAX: usize = 2;
const WAITING_MAX: usize = 3;

/// What to do next.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    Begin(&'a Stage),
    /// What it comes after has failed, or was not run.
    Skip(&'a Stage),
}

/// What runs and what is to run.
pub(crate) struct Schedule<'a> {
    waiting: Vec<&'a Stage>,
    running: Vec<&'a Stage>,
    failed: BTreeSet<String>,
}

/// The stages of this name, and what they come after; all when there is no name.
pub(crate) fn chosen<'a>(stages: &[&'a Stage], names: &[String]) -> Result<Vec<&'a Stage>> {
    let mut wanted: BTreeSet<&str> = BTreeSet::new();
    for name in names {
        match stages.iter().find(|stage| stage.name == *name) {
            Some(stage) => wanted.insert(&stage.name),
            None => bail!("there is no stage {name} in this tier; see --list"),
        };
    }
    // What a stage comes after stands before it.
    for stage in stages.iter().rev().filter(|_| !names.is_empty()) {
        if wanted.contains(stage.name.as_str()) {
            let needed = |name: &&String| stages.iter().any(|it| it.name == **name && it.makes);
            wanted.extend(stage.after.iter().filter(needed).map(String::as_str));
        }
    }
    let is_wanted = |stage: &&&Stage| names.is_empty() || wanted.contains(stage.name.as_str());
    Ok(stages.iter().filter(is_wanted).copied().collect())
}

impl<'a> Schedule<'a> {
    pub(crate) fn of(stages: &[&'a Stage]) -> Self {
        Self { waiting: stages.to_vec(), running: Vec::new(), failed: BTreeSet::new() }
    }

    /// None when nothing can begin now.
    pub(crate) fn next(&mut self) -> Option<Step<'a>> {
        let is_lost = |stage: &&Stage| stage.after.iter().any(|it| self.failed.contains(it));
        if let Some(place) = self.waiting.iter().position(is_lost) {
            let stage = self.waiting.remove(place);
            self.failed.insert(stage.name.clone());
            return Some(Step::Skip(stage));
        }
        let place = self.waiting.iter().position(|stage| self.may_begin(stage))?;
        let stage = self.waiting.remove(place);
        self.running.push(stage);
        Some(Step::Begin(stage))
    }

    pub(crate) fn end(&mut self, name: &str, passed: bool) {
        self.running.retain(|stage| stage.name != name);
        if !passed {
            self.failed.insert(name.to_owned());
        }
    }

    fn may_begin(&self, stage: &Stage) -> bool {
        let is_open = |name: &String| {
            self.waiting.iter().chain(&self.running).any(|other| other.name == *name)
        };
        if stage.after.iter().any(is_open) {
            return false;
        }
        let of_kind = |kind| self.running.iter().filter(|it| it.kind == kind).count();
        let is_locked =
            stage.folder.is_some() && self.running.iter().any(|it| it.folder == stage.folder);
        match stage.kind {
            _ if of_kind(Kind::Alone) > 0 => false,
            Kind::Computing => of_kind(Kind::Computing) < COMPUTING_MAX && !is_locked,
            Kind::Waiting => of_kind(Kind::Waiting) < WAITING_MAX,
            // When all others are done: waiting for a gap would let all others wait.
            Kind::Alone => {
                self.running.is_empty() && self.waiting.iter().all(|it| it.kind == Kind::Alone)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &str, kind: Kind, after: &[&str], folder: Option<&str>) -> Stage {
        Stage {
            name: name.to_owned(),
            what: String::new(),
            tiers: Vec::new(),
            kind,
            command: None,
            suite: None,
            arguments: Vec::new(),
            paths: <_>::default(),
            folder: folder.map(str::to_owned),
            root: false,
            after: after.iter().map(|it| (*it).to_owned()).collect(),
            tests: Vec::new(),
            makes: false,
            covered_by: None,
            extended_by: None,
            by_hand: None,
        }
    }

    /// What begins now, and what is left out with `!` in front.
    fn begun(schedule: &mut Schedule<'_>) -> Vec<String> {
        let steps = std::iter::from_fn(|| schedule.next());
        let word = |step: Step<'_>| match step {
            Step::Begin(stage) => stage.name.clone(),
            Step::Skip(stage) => format!("!{}", stage.name),
        };
        steps.map(word).collect()
    }

    #[test]
    fn what_waits_runs_beside_what_computes() {
        let stages = [
            stage("build", Kind::Computing, &[], Some("fuzzing")),
            stage("lint", Kind::Computing, &[], Some("debug")),
            stage("unit", Kind::Computing, &[], Some("debug")),
            stage("routers", Kind::Waiting, &["build"], None),
            stage("times", Kind::Alone, &["build"], None),
        ];
        let mut schedule = Schedule::of(&stages.iter().collect::<Vec<_>>());
        assert_eq!(begun(&mut schedule), ["build", "lint"]);
        schedule.end("build", true);
        assert_eq!(begun(&mut schedule), ["routers"], "cargo has locked the folder of `unit`");
        schedule.end("lint", true);
        assert_eq!(begun(&mut schedule), ["unit"]);
        schedule.end("unit", true);
        assert_eq!(begun(&mut schedule), [] as [&str; 0], "not beside others");
        schedule.end("routers", true);
        assert_eq!(begun(&mut schedule), ["times"]);
    }

    #[test]
    fn what_comes_after_a_failure_is_left_out() {
        let stages = [
            stage("build", Kind::Computing, &[], None),
            stage("routers", Kind::Waiting, &["build"], None),
            stage("report", Kind::Waiting, &["routers"], None),
            stage("lint", Kind::Computing, &[], None),
        ];
        let mut schedule = Schedule::of(&stages.iter().collect::<Vec<_>>());
        assert_eq!(begun(&mut schedule), ["build", "lint"]);
        schedule.end("build", false);
        assert_eq!(begun(&mut schedule), ["!routers", "!report"]);
    }

    #[test]
    fn a_named_stage_brings_what_makes_its_programs() {
        let mut build = stage("build", Kind::Computing, &[], None);
        build.makes = true;
        let lint = stage("lint", Kind::Computing, &[], None);
        let routers = stage("routers", Kind::Waiting, &["build", "lint"], None);
        let stages = [&build, &lint, &routers];
        let names = |chosen: Vec<&Stage>| -> Vec<String> {
            chosen.iter().map(|it| it.name.clone()).collect()
        };
        let chosen_names = names(chosen(&stages, &["routers".to_owned()]).unwrap());
        assert_eq!(chosen_names, ["build", "routers"]);
        assert_eq!(chosen(&stages, &[]).unwrap().len(), 3);
        assert!(chosen(&stages, &["nothing".to_owned()]).is_err());
    }
}
