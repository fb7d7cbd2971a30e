//! Does Fairway keep its promises in a cluster? A real API server (and a model of one, with faults on
//! request), three speakers in network namespaces, controllers, and FRR and BIRD as routers. Run as root:
//! `cargo test --test kubernetes -- [WORD...] [--short] [--required]`.
//!
//! The programs of the API server are those that `scripts/kube-apiserver.sh` finds or builds; without
//! them the cases on the model are run, and the others are reported as skipped. The short form runs each case
//! on one API server that is there.

#![allow(
    clippy::indexing_slicing,
    reason = "of a JSON value it gives null, where there is nothing"
)]

mod api;
mod bench;
mod cases;
mod daemons;
mod install;
mod many_nodes;
mod model;
mod objects;
mod stage;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;

use lab::suite::{self, Case, Several, Suite};
use lab::wait::{end_on_signals, now};
use stage::{Kind, Stage};

/// Fairway in a cluster.
///
/// Words: the cases that have one of them in their name; real, model, bare choose API servers. Without
/// the programs of a real one only the cases on the model run.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
    /// Each case on one kind of API server
    #[arg(long)]
    short: bool,
    /// Outages as long as they are promised to be survived
    #[arg(long, conflicts_with = "short")]
    long: bool,
    /// With --bench: `kubectl fairway` with a hundred nodes, in place of latency
    #[arg(long)]
    many_nodes: bool,
    /// Fail where there is no API server, in place of skipping
    #[arg(long)]
    required: bool,
}

fn main() -> ExitCode {
    model::other_role().unwrap_or_else(|| suite::main("kubernetes", run))
}

/// Whether all cases passed. With `--bench` no case runs: it measures how long changes take and what they
/// cost, on a real API server.
fn run(options: Options) -> Result<bool> {
    let assets = lab::cluster::assets()?;
    ensure!(
        assets.is_some() || !options.required,
        "there is no API server here; run: scripts/kube-apiserver.sh"
    );
    if options.suite.is_bench() {
        let wanted = options.many_nodes;
        return measure(assets.as_deref(), if wanted { many_nodes::run } else { bench::run });
    }
    let mut suite = Suite::new("kubernetes", options.suite).as_root().several_words(Several::Any);
    let halls = Kind::ALL.map(|kind| Arc::new(Hall::new(kind, assets.clone(), options.long)));
    for case in cases::all() {
        let is_there = |kind: &&Kind| assets.is_some() || !kind.is_real();
        let first = case.on.iter().find(is_there).or(case.on.first());
        for hall in halls.iter().filter(|hall| case.on.contains(&hall.kind)) {
            let is_left_out = options.short && first != Some(&hall.kind);
            if !is_left_out {
                hall.numbers.lock().unwrap_or_else(PoisonError::into_inner).push(suite.len());
            }
            let is_missing = hall.kind.is_real() && assets.is_none();
            let lack = is_missing.then_some("no API server here; `make kubernetes` builds one");
            let (here, act) = (Arc::clone(hall), case.run);
            let run = move |_: &suite::Cell| here.perform(act);
            let case = Case::new(case.name, run)
                .at(&[hall.kind.word()])
                .in_line(hall.kind.word())
                .not_applicable(lack)
                .left_out(is_left_out)
                .covered_by(Some(case.covered_by));
            suite.add(case);
        }
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    let (numbers, folder) = (chosen.numbers(), chosen.directory().to_owned());
    for hall in &halls {
        let all = hall.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_whole = all.iter().all(|number| numbers.contains(number));
        let _ = hall.plan.set((folder.join(hall.kind.word()), is_whole));
    }
    let report = chosen.run()?;
    for hall in halls {
        hall.end(report.all_passed())?;
    }
    // Only empty when all was well.
    let _ = std::fs::remove_dir(&folder);
    Ok(report.all_passed())
}

/// The cases on one kind of API server, one after the other; the kinds at the same time, since cases
/// mostly wait.
struct Hall {
    kind: Kind,
    assets: Option<PathBuf>,
    is_long: bool,
    /// Those of its cases, chosen or not.
    numbers: Mutex<Vec<usize>>,
    /// Its directory, and whether all of its cases run.
    plan: OnceLock<(PathBuf, bool)>,
    stage: Mutex<Built>,
}

/// What the first case needs is built when it comes.
enum Built {
    NotYet,
    Stands(Box<Stage>),
    Never,
}

impl Hall {
    fn new(kind: Kind, assets: Option<PathBuf>, is_long: bool) -> Self {
        let (numbers, plan) = (Mutex::default(), OnceLock::new());
        Self { kind, assets, is_long, numbers, plan, stage: Mutex::new(Built::NotYet) }
    }

    fn build(&self) -> Result<Stage> {
        let (at, is_whole) = self.plan.get().context("no directory was given")?;
        let begin = now();
        // Cells of this suite are the kinds, not the cases.
        let cell = Kind::ALL.iter().position(|kind| *kind == self.kind).context("a kind")?;
        let built = Stage::build(cell, self.kind, self.assets.as_deref(), self.is_long, at);
        let mut stage = built.with_context(|| format!("building it; see {}", at.display()))?;
        stage.is_whole = *is_whole;
        let seconds = begin.elapsed().as_secs_f32();
        println!("{}: everything runs after {seconds:.1} s", self.kind.word());
        Ok(stage)
    }

    /// One case, and back to where all cases begin.
    fn perform(&self, run: fn(&mut Stage) -> Result<()>) -> Result<()> {
        let mut built = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if let Built::NotYet = *built {
            *built = Built::Never;
            *built = Built::Stands(Box::new(self.build()?));
        }
        let Built::Stands(stage) = &mut *built else { bail!("not run: nothing could be built") };
        let outcome = run(stage).and_then(|()| stage.restore());
        outcome.map_err(|error| {
            let (logs, at) = (stage.logs(), stage.directory.display().to_string());
            let after = stage.restore().err();
            let after = after.map(|it| format!("\n  and afterwards: {it:#}")).unwrap_or_default();
            anyhow::anyhow!("{error:#}\n{logs}\n  see {at}{after}")
        })
    }

    /// Ends what runs.
    fn end(&self, is_good: bool) -> Result<()> {
        let mut built = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let built = std::mem::replace(&mut *built, Built::Never);
        let Built::Stands(stage) = built else { return Ok(()) };
        let directory = stage.directory.clone();
        drop(stage);
        if is_good {
            std::fs::remove_dir_all(&directory).context("removing what was written")?;
        }
        Ok(())
    }
}

/// How long changes take, and what they cost: `make bench-kubernetes`.
fn measure(assets: Option<&Path>, act: fn(&mut Stage) -> Result<()>) -> Result<bool> {
    ensure!(nix::unistd::geteuid().is_root(), "network namespaces need root; run this as root");
    lab::check_tools()?;
    lab::namespace::remove_leftovers()?;
    end_on_signals()?;
    let folder = std::env::temp_dir().join(format!("fairway-kubernetes-{}", std::process::id()));
    let mut stage = Stage::build(0, Kind::Real, assets, false, &folder)?;
    act(&mut stage).inspect_err(|_| println!("{}", stage.logs()))?;
    drop(stage);
    std::fs::remove_dir_all(&folder)?;
    Ok(true)
}
