//! Does a restart lose anything? A node announces a thousand prefixes to four routers that keep its
//! routes meanwhile; its daemon is killed, ended and upgraded, and no router may lose a route nor a
//! probe every 10 ms an answer. Run as root by `make restart`:
//! `cargo test --test restart -- [WORD...] [--short] [--rounds N]`.

#![allow(dead_code)] // Only a part of the lab and of the routers is used here.

mod announced;
mod helper;
mod stage;

#[path = "../interop/lab/mod.rs"]
mod lab;
#[path = "../interop/routers/mod.rs"]
mod routers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use helper::{Help, KINDS};
use lab::make_directory;
use lab::process::tail;
use lab::wait::{end_on_signals, exit_code, is_interrupted, now};
use routers::{Release, RouterKind};
use stage::{Stage, Way};

const USAGE: &str = "\
usage: restart [WORD...] [--short] [--rounds N]
  WORD        only what has one of these words in its name: on, off, control
  --short     each way once, beside routers with the N bit and without
  --rounds N  how often in each way (default 10)
FAIRWAY_BIN is the program under test, and the one that cargo has built is what it is upgraded to,
and back.";

const ROUNDS: usize = 10;
/// How much of each log a broken promise shows.
const TAIL_LINES: usize = 30;

struct Options {
    words: Vec<String>,
    short: bool,
    rounds: usize,
}

/// What is done with one set of routers.
struct Act {
    name: &'static str,
    help: fn(RouterKind) -> Help,
    /// In which ways, and how often; none in the control.
    rounds: Vec<(Way, usize)>,
}

fn main() -> ExitCode {
    lab::probe::other_role().unwrap_or_else(|| exit_code("restart", run()))
}

/// Whether nothing was lost.
fn run() -> Result<bool> {
    let Some(options) = parse(std::env::args().skip(1))? else {
        println!("{USAGE}");
        return Ok(true);
    };
    ensure!(nix::unistd::geteuid().is_root(), "network namespaces need root; run this as root");
    lab::check_tools()?;
    lab::namespace::remove_leftovers()?;
    let builds = [lab::fairway::program(), PathBuf::from(env!("CARGO_BIN_EXE_fairway"))];
    let [first, second] = &builds;
    let read = |build: &Path| std::fs::read(build).with_context(|| build.display().to_string());
    ensure!(
        read(first)? != read(second)?,
        "an upgrade needs two builds: FAIRWAY_BIN must be another one than {}",
        second.display()
    );
    for kind in KINDS {
        println!("{} {}", kind.name(), kind.version()?);
    }
    end_on_signals()?;
    let acts = acts(&options);
    ensure!(!acts.is_empty(), "nothing has one of {:?} in its name", options.words);
    let folder = std::env::temp_dir().join(format!("fairway-restart-{}", std::process::id()));
    let start = now();
    let mut is_kept = true;
    for (number, act) in acts.iter().enumerate() {
        let directory = folder.join(number.to_string());
        make_directory(&directory)?;
        let kept = perform(act, builds.clone(), &directory)
            .inspect_err(|_| show_logs(&directory))
            .with_context(|| format!("{}; see {}", act.name, directory.display()))?;
        if kept {
            std::fs::remove_dir_all(&directory).context("removing the directory of an act")?;
        } else {
            show_logs(&directory);
        }
        is_kept &= kept;
    }
    // Only empty when nothing was lost.
    let _ = std::fs::remove_dir(&folder);
    println!("restart: {:.0} s", start.elapsed().as_secs_f64());
    Ok(is_kept && !is_interrupted())
}

fn acts(options: &Options) -> Vec<Act> {
    let rounds = |ways: &[Way]| ways.iter().map(|way| (*way, options.rounds)).collect();
    let control = Act {
        name: "control: no graceful restart, so routes must go",
        help: |_| Help::None,
        rounds: Vec::new(),
    };
    let mut acts = if options.short {
        let help = |kind| match kind {
            RouterKind::Frr(Release::Bookworm) => Help::Silent,
            _ => Help::Always,
        };
        vec![Act { name: "N bit: on or off", help, rounds: rounds(&Way::ALL) }]
    } else {
        vec![
            Act { name: "N bit: on", help: |_| Help::Always, rounds: rounds(&Way::ALL) },
            Act { name: "N bit: off", help: |_| Help::Silent, rounds: rounds(&Way::ALL) },
        ]
    };
    acts.push(control);
    let has = |act: &Act, word: &String| act.name.split([' ', ':']).any(|part| part == word);
    acts.retain(|act| options.words.is_empty() || options.words.iter().any(|word| has(act, word)));
    acts
}

/// Whether the routers lost nothing; or, in the control, whether all of them lost all.
fn perform(act: &Act, builds: [PathBuf; 2], directory: &Path) -> Result<bool> {
    println!("\n{}", act.name);
    let mut stage = Stage::set_up(act.help, builds, directory)?;
    println!("  {}", stage.agreed()?);
    if act.rounds.is_empty() {
        stage.control()?;
        tell_routes("gone", &mut stage);
        return tell_probes(&mut stage, |lost| lost > 0);
    }
    let mut is_kept = true;
    for (way, rounds) in &act.rounds {
        for round in 1..=*rounds {
            // In turn: the daemon is away until all have noticed, or it is back at once.
            let time = stage.round(*way, round % 2 == 1)?;
            println!("  {} {round} of {rounds}: {:.1} s", way.word(), time.as_secs_f64());
        }
        is_kept &= tell_routes(way.word(), &mut stage);
    }
    is_kept &= tell_probes(&mut stage, |lost| lost == 0)?;
    stage.gather()?;
    let is_quiet = stage.take_counts().iter().all(|(_, count)| count.withdrawn == 0);
    ensure!(is_quiet, "a route was withdrawn after the last round");
    Ok(is_kept)
}

/// Whether no router missed a route.
fn tell_routes(when: &str, stage: &mut Stage) -> bool {
    let mut is_kept = true;
    for (kind, count) in stage.take_counts() {
        println!(
            "  {when:<8} {:<6} {:>2} rounds: {} routes withdrawn, {} of {} samples incomplete; \
             session after {:.1} s, settled after {:.1} s at most",
            kind.word(),
            count.rounds,
            count.withdrawn,
            count.incomplete,
            count.samples,
            count.established_max.as_secs_f64(),
            count.settled_max.as_secs_f64(),
        );
        count.faults.iter().for_each(|fault| println!("    {fault}"));
        is_kept &= count.withdrawn == 0 && count.incomplete == 0;
    }
    is_kept
}

/// Whether as many probes were lost as should be, to each address from each router.
fn tell_probes(stage: &mut Stage, is_right: fn(u64) -> bool) -> Result<bool> {
    let mut is_kept = true;
    for witness in &mut stage.witnesses {
        let name = witness.helper.kind.word();
        for tally in witness.helper.tallies()? {
            println!(
                "  {name:<6} probes to {:<14} {} sent, {} lost ({} in a row), longest pause {} ms",
                tally.target,
                tally.sent,
                tally.lost,
                tally.lost_in_a_row_max,
                tally.pause_max_milliseconds
            );
            tally.losses.iter().for_each(|loss| println!("    {loss}"));
            is_kept &= is_right(tally.lost);
        }
    }
    Ok(is_kept)
}

fn show_logs(directory: &Path) {
    let of_routers = KINDS.map(|kind| routers::log_in(&directory.join(kind.word())));
    for log in [lab::fairway::log_in(directory)].iter().chain(&of_routers) {
        println!("  the end of {}:\n{}", log.display(), tail(log, TAIL_LINES));
    }
}

/// None when help was asked for.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>> {
    let mut options = Options { words: Vec::new(), short: false, rounds: ROUNDS };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => return Ok(None),
            "--short" => (options.short, options.rounds) = (true, 1),
            "--rounds" => {
                let text = arguments.next().context("--rounds needs a value")?;
                let rounds = text.parse().ok().filter(|rounds| *rounds > 0);
                options.rounds =
                    rounds.with_context(|| format!("--rounds {text}: expected 1 or more"))?;
            }
            other if other.starts_with('-') => bail!("unknown option {other}\n{USAGE}"),
            word => options.words.push(word.to_lowercase()),
        }
    }
    Ok(Some(options))
}
