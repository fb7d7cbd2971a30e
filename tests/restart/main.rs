//! Does a restart lose anything? A node announces a thousand prefixes to four routers that keep its
//! routes meanwhile; its daemon is killed, ended and upgraded, and no router may lose a route nor a
//! probe every 10 ms an answer. Run as root by `make restart`:
//! `cargo test --test restart -- [WORD...] [--short] [--rounds N]`.

mod announced;
mod helper;
mod stage;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use helper::{Help, KINDS};
use lab::routers::{Release, RouterKind};
use lab::suite::{self, Case, Several, Suite};
use stage::{Stage, Way};

const ROUNDS: usize = 10;
/// Restarts beside routers that keep routes meanwhile.
///
/// Words: only what has one of them in its name: on, off, control. FAIRWAY_BIN is the program under
/// test; FAIRWAY_NEXT, or the one that cargo has built beside this test, is what it is upgraded to, and
/// back.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
    /// Each way once, beside routers with the N bit and without
    #[arg(long)]
    short: bool,
    /// How often in each way
    #[arg(long, value_name = "N", default_value_t = ROUNDS, value_parser = at_least_one)]
    rounds: usize,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|rounds| *rounds > 0).ok_or_else(|| "expected 1 or more".to_owned())
}

/// What is done with one set of routers.
struct Act {
    name: &'static str,
    /// Words that choose it.
    words: &'static [&'static str],
    help: fn(RouterKind) -> Help,
    /// In which ways, and how often; none in the control.
    rounds: Vec<(Way, usize)>,
    /// The form of the suite that lacks it, and the case that covers it there.
    lacking: Option<(Form, &'static str)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Short,
    Long,
}

/// The names of the acts that one form has and the other lacks.
const ON: &str = "N bit: on";
const OFF: &str = "N bit: off";
const MIXED: &str = "N bit: on or off";

fn main() -> ExitCode {
    suite::main("restart", run)
}

/// Whether nothing was lost.
fn run(options: Options) -> Result<bool> {
    let form = if options.short { Form::Short } else { Form::Long };
    let acts = acts(if options.short { 1 } else { options.rounds });
    let mut suite = Suite::new("restart", options.suite).as_root().several_words(Several::Any);
    for act in acts {
        let (name, words) = (act.name, act.words);
        let cover = act.lacking.filter(|(lacks, _)| *lacks == form).map(|(_, cover)| cover);
        // Of two builds, as an upgrade needs them.
        let run = move |cell: &suite::Cell| perform(&act, builds()?, &cell.directory);
        let case = Case::new(name, run).at(words).in_line("one by one");
        suite.add(case.left_out(cover.is_some()).covered_by(cover));
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    builds()?;
    for kind in KINDS {
        println!("{} {}", kind.name(), kind.version()?);
    }
    Ok(chosen.run()?.all_passed())
}

/// The program under test, and another build of it.
fn builds() -> Result<[PathBuf; 2]> {
    let first = lab::fairway::existing_program()?;
    let next = std::env::var_os("FAIRWAY_NEXT").map(PathBuf::from);
    let second = next.unwrap_or_else(lab::fairway::built_beside);
    let read = |build: &Path| {
        std::fs::read(build).with_context(|| {
            format!("reading {}; `cargo build --bin fairway` builds it", build.display())
        })
    };
    ensure!(
        read(&first)? != read(&second)?,
        "an upgrade needs two builds: FAIRWAY_BIN must differ from {}",
        second.display()
    );
    Ok([first, second])
}

/// All of them, `count` restarts in each way.
fn acts(count: usize) -> Vec<Act> {
    let rounds = || Way::ALL.iter().map(|way| (*way, count)).collect();
    vec![
        Act {
            name: ON,
            words: &["on"],
            help: |_| Help::Always,
            rounds: rounds(),
            lacking: Some((Form::Short, MIXED)),
        },
        Act {
            name: OFF,
            words: &["off"],
            help: |_| Help::Silent,
            rounds: rounds(),
            lacking: Some((Form::Short, MIXED)),
        },
        Act {
            name: MIXED,
            words: &["on", "off"],
            help: |kind| match kind {
                RouterKind::Frr(Release::Bookworm) => Help::Silent,
                _ => Help::Always,
            },
            rounds: rounds(),
            lacking: Some((Form::Long, ON)),
        },
        Act {
            name: "control: no graceful restart, so routes must go",
            words: &["control"],
            help: |_| Help::None,
            rounds: Vec::new(),
            lacking: None,
        },
    ]
}

/// Fails where the routers lost something; in the control, where one of them did not lose all.
fn perform(act: &Act, builds: [PathBuf; 2], directory: &Path) -> Result<()> {
    println!("\n{}", act.name);
    let mut stage = Stage::set_up(act.help, builds, directory)?;
    println!("  {}", stage.agreed()?);
    if act.rounds.is_empty() {
        stage.control()?;
        tell_routes("gone", &mut stage);
        ensure!(tell_probes(&mut stage, |lost| lost > 0)?, "a router lost nothing: see above");
        return Ok(());
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
    ensure!(is_kept, "routes or probes were lost: see above");
    Ok(())
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
