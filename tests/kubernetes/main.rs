//! Does Fairway do in a cluster what it promises? A real API server (and a model of one, which goes
//! wrong when it is told to), three speakers in network namespaces, controllers, and FRR and BIRD as
//! routers. Run as root: `cargo test --test kubernetes -- [WORD...] [--short] [--required]`.
//!
//! The programs of the API server are those that `scripts/kube-apiserver.sh` finds or builds; without
//! them the cases on the model are run, and the others are said to be skipped.

#![allow(dead_code)] // Only a part of the lab and of the routers is used here.
#![allow(
    clippy::indexing_slicing,
    reason = "of a JSON value it gives null, where there is nothing"
)]

mod api;
mod bench;
mod cases;
mod daemons;
mod install;
mod model;
mod objects;
mod stage;

#[path = "../cluster/mod.rs"]
mod cluster;
#[path = "../interop/lab/mod.rs"]
mod lab;
#[path = "../../benches/latency/report.rs"]
mod latencies;
#[allow(clippy::disallowed_methods, reason = "it says when it has read a line")]
#[path = "../../benches/latency/monitor.rs"]
mod monitor;
#[path = "../interop/routers/mod.rs"]
mod routers;
#[path = "../soak/usage.rs"]
mod usage;

use std::path::Path;
use std::process::ExitCode;

use std::thread;

use anyhow::{Context, Result, anyhow, bail, ensure};

use cases::Case;
use lab::wait::{end_on_signals, exit_code, is_interrupted, now};
use stage::{Kind, Stage};

const USAGE: &str = "\
usage: kubernetes [WORD...] [--short | --long | --bench] [--required]
  WORD        only cases that have one of these words in their name; `real`, `model`, `bare`: only there
  --short     each case on one kind of API server
  --long      outages as long as they are promised to be survived
  --bench     no case, but how long it takes and what it costs; on a real API server
  --required  fail where there is no API server, in place of skipping
FAIRWAY_BIN is the program under test, else the one that cargo has built.";

#[derive(Default)]
struct Options {
    words: Vec<String>,
    is_short: bool,
    is_long: bool,
    is_bench: bool,
    is_required: bool,
}

fn main() -> ExitCode {
    model::other_role().unwrap_or_else(|| exit_code("kubernetes", run()))
}

fn run() -> Result<bool> {
    let options = parse(std::env::args().skip(1))?;
    ensure!(nix::unistd::geteuid().is_root(), "network namespaces need root; run this as root");
    lab::check_tools()?;
    lab::namespace::remove_leftovers()?;
    end_on_signals()?;
    let assets = cluster::assets()?;
    ensure!(
        assets.is_some() || !options.is_required,
        "there is no API server here; run: scripts/kube-apiserver.sh"
    );
    if options.is_bench {
        return measure(assets.as_deref());
    }
    let folder = std::env::temp_dir().join(format!("fairway-kubernetes-{}", std::process::id()));
    let start = now();
    // They mostly wait, so all are played at once.
    let outcomes: Vec<Result<bool>> = thread::scope(|scope| {
        let playing = Kind::ALL.into_iter().enumerate().map(|(cell, kind)| {
            let (options, assets, folder) = (&options, assets.as_deref(), &folder);
            scope.spawn(move || play(cell, kind, options, assets, folder))
        });
        let playing: Vec<_> = playing.collect();
        let panicked = |_| Err(anyhow!("a thread has panicked"));
        playing.into_iter().map(|it| it.join().unwrap_or_else(panicked)).collect()
    });
    let mut is_good = true;
    for outcome in outcomes {
        is_good &= outcome.unwrap_or_else(|error| {
            println!("kubernetes: {error:#}");
            false
        });
    }
    // Only empty when all was well.
    let _ = std::fs::remove_dir(&folder);
    println!("kubernetes: {:.0} s", start.elapsed().as_secs_f64());
    Ok(is_good && !is_interrupted())
}

/// Whether all cases on one kind of API server went well.
fn play(
    cell: usize,
    kind: Kind,
    options: &Options,
    assets: Option<&Path>,
    folder: &Path,
) -> Result<bool> {
    let cases: Vec<Case> =
        cases::all().into_iter().filter(|case| options.wants(case, kind)).collect();
    if cases.is_empty() {
        return Ok(true);
    }
    if kind.is_real() && assets.is_none() {
        let (kind, count) = (kind.word(), cases.len());
        println!("{kind}: SKIPPED {count} cases: no API server here; `make kubernetes` builds one");
        return Ok(true);
    }
    let at = folder.join(kind.word());
    let begin = now();
    let built = Stage::build(cell, kind, assets, options.is_long, &at);
    let mut stage = built.with_context(|| format!("{}: see {}", kind.word(), at.display()))?;
    let all = cases::all();
    stage.is_whole = all.iter().filter(|it| options.is_for(it, kind)).count() == cases.len();
    println!("{}: everything runs after {:.1} s", kind.word(), begin.elapsed().as_secs_f32());
    let mut is_good = true;
    for case in &cases {
        is_good &= perform(case, kind, &mut stage);
        if is_interrupted() {
            return Ok(false);
        }
    }
    drop(stage);
    if is_good {
        std::fs::remove_dir_all(&at)?;
    }
    Ok(is_good)
}

/// The long way, that of `make bench`.
fn measure(assets: Option<&Path>) -> Result<bool> {
    let folder = std::env::temp_dir().join(format!("fairway-kubernetes-{}", std::process::id()));
    let mut stage = Stage::build(0, Kind::Real, assets, false, &folder)?;
    bench::run(&mut stage).inspect_err(|_| println!("{}", stage.logs()))?;
    drop(stage);
    std::fs::remove_dir_all(&folder)?;
    Ok(true)
}

/// Whether the case went well.
fn perform(case: &Case, kind: Kind, stage: &mut Stage) -> bool {
    let begin = now();
    let outcome = (case.run)(stage).and_then(|()| stage.restore());
    let seconds = begin.elapsed().as_secs_f32();
    match outcome {
        Ok(()) => {
            println!("{}: ok   {seconds:5.1} s  {}", kind.word(), case.name);
            true
        }
        Err(error) => {
            println!("{}: FAIL {seconds:5.1} s  {}: {error:#}", kind.word(), case.name);
            println!("{}", stage.logs());
            println!("  see {}", stage.directory.display());
            if let Err(error) = stage.restore() {
                println!("  and afterwards: {error:#}");
            }
            false
        }
    }
}

impl Options {
    /// Whether it is told on this kind of API server, whatever words there are.
    fn is_for(&self, case: &Case, kind: Kind) -> bool {
        let on = if self.is_short { case.on.get(..1).unwrap_or_default() } else { case.on };
        on.contains(&kind)
    }

    fn wants(&self, case: &Case, kind: Kind) -> bool {
        let names_kind = |word: &&String| Kind::ALL.iter().any(|kind| kind.word() == **word);
        let (kinds, words): (Vec<&String>, Vec<&String>) = self.words.iter().partition(names_kind);
        self.is_for(case, kind)
            && (kinds.is_empty() || kinds.contains(&&kind.word().to_owned()))
            && (words.is_empty() || words.iter().any(|word| case.name.contains(word.as_str())))
    }
}

fn parse(arguments: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options::default();
    for argument in arguments {
        match argument.as_str() {
            "--short" => options.is_short = true,
            "--long" => options.is_long = true,
            "--bench" => options.is_bench = true,
            "--required" => options.is_required = true,
            option if option.starts_with('-') => bail!("{USAGE}"),
            _ => options.words.push(argument),
        }
    }
    Ok(options)
}
