//! Runs inputs: in which order ([`schedule`]), at which cost ([`measure`]), with which results ([`tally`]);
//! stores failing ones ([`finding`]), and supervises the workers ([`watchdog`]).

pub(crate) mod finding;
pub(crate) mod measure;
pub(crate) mod options;
pub(crate) mod schedule;
pub(crate) mod tally;
pub(crate) mod watchdog;
pub(crate) mod worker;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use fairway_fuzzing::Target;

use finding::Finding;
use options::{Input, Limits, Options};
use schedule::Schedule;
use tally::Tally;
use watchdog::Watchdog;

/// Runs until the limits are reached; prints the results, and returns whether there were no findings.
pub(crate) fn run(options: &Options, limits: &Limits) -> bool {
    measure::keep_panics_quiet();
    let schedule = Schedule::new(&options.targets, limits);
    let tally = Mutex::new(Tally::new(&options.targets));
    let watchdog = Watchdog::new(limits.threads);
    let began = tally::wall_clock();
    std::thread::scope(|scope| {
        let workers: Vec<_> = watchdog
            .posts()
            .map(|post| {
                let (schedule, tally) = (&schedule, &tally);
                scope.spawn(move || worker::work(schedule, tally, post))
            })
            .collect();
        let watchdog = &watchdog;
        scope.spawn(move || watchdog.watch());
        for worker in workers {
            // A worker catches panics of its targets; any other panic is a bug of the driver.
            if worker.join().is_err() {
                eprintln!("internal error: a worker panicked; the run is not complete");
                schedule.stop();
            }
        }
        watchdog.dismiss();
    });
    let tally = tally.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    tally.print(&schedule, began.elapsed());
    let complete = limits.inputs.is_none_or(|wanted| tally.inputs() >= wanted);
    if !complete {
        eprintln!("the run stopped before all inputs were run");
    }
    complete && tally.is_clean()
}

/// Runs one input again.
pub(crate) fn replay(target: &'static Target, input: &Input) -> Result<bool, String> {
    let (seed, bytes) = match input {
        Input::Seed(seed) => (Some(*seed), target.input(*seed)),
        Input::File(path) if path == Path::new("-") => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().read_to_end(&mut bytes);
            read.map_err(|error| format!("standard input: {error}"))?;
            (None, bytes)
        }
        Input::File(path) => {
            (None, fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?)
        }
    };
    println!("{}: {} bytes: {}", target.name, bytes.len(), finding::hex(&bytes));
    let cost = measure::alone(target, &bytes);
    println!("outcome: {:?}", cost.outcome);
    println!("thread CPU time: {:?}, peak allocation: {} bytes", cost.cpu, cost.peak_bytes);
    match Finding::of(target, seed, &bytes, &cost) {
        Some(finding) => {
            println!("{finding}");
            Ok(false)
        }
        None => Ok(true),
    }
}

/// Writes initial inputs for libFuzzer, in a folder for each target.
pub(crate) fn write_corpus(options: &Options, folder: &Path) -> Result<bool, String> {
    const INPUTS: u64 = 200;
    for target in &options.targets {
        let folder = folder.join(target.name);
        let complain = |error| format!("{}: {error}", folder.display());
        fs::create_dir_all(&folder).map_err(complain)?;
        for seed in 0..INPUTS {
            let path = folder.join(format!("seed-{seed}"));
            fs::write(&path, target.input(seed)).map_err(complain)?;
        }
    }
    println!("{} targets, {INPUTS} inputs each", options.targets.len());
    Ok(true)
}

/// Maximum CPU time of an input of up to 32 KiB; longer ones in proportion.
pub(crate) const CPU_TIME_MAX: Duration = Duration::from_millis(50);
