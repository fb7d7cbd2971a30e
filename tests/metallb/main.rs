//! Does a cluster change from Fairway to MetalLB and back without a surprise? MetalLB's own controller and speakers and Fairway's
//! run in turn on one API server, with Services of all kinds, three nodes and two routers. What the Services have and what
//! the routers hear is compared, and each difference is one that docs/migrate-from-metallb.md lists.
//! `cargo test --test metallb`, as root.

#![allow(
    clippy::indexing_slicing,
    reason = "of a JSON value it gives null, where there is nothing; other positions are constants"
)]

mod bench;
mod cluster;
mod differences;
mod node;
mod own_fields;
mod refused;
mod seen;
mod services;
mod stage;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;

use lab::metallb::{Mode, Programs};
use lab::suite::{self, Case, Cell, Suite};

use differences::KNOWN;
use seen::Seen;
use stage::{Software, Stage};

/// MetalLB and Fairway in turn on one API server.
#[derive(Parser)]
struct Options {
    /// MetalLB and an API server have to be here
    #[arg(long)]
    required: bool,
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("metallb", run)
}

fn run(options: Options) -> Result<bool> {
    let both = lab::cluster::assets()?.zip(Programs::find()?);
    let lack = both.is_none().then_some(LACK);
    if options.suite.is_bench() {
        let (assets, programs) = both.context(LACK)?;
        return bench::run(&assets, &programs).map(|()| true);
    }
    ensure!(!options.required || lack.is_none(), LACK);
    let mut suite = Suite::new("metallb", options.suite).as_root().threads(1);
    for (name, modes, act) in CASES {
        for mode in *modes {
            let both = both.clone();
            let run = move |cell: &Cell| {
                let (assets, programs) = both.as_ref().context(LACK)?;
                act(cell, *mode, assets, programs)
            };
            let name = format!("{name} ({} mode)", mode.word());
            suite.add(Case::new(name, run).not_applicable(lack));
        }
    }
    suite.add(Case::new("the migration page lists what was seen", |_| {
        differences::are_on_the_page()
    }));
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    Ok(chosen.run()?.all_passed())
}

const LACK: &str = "scripts/kube-apiserver.sh and scripts/metallb.sh build what it needs";

type Act = fn(&Cell, Mode, &Path, &Programs) -> Result<()>;

const CASES: &[(&str, &[Mode], Act)] = &[
    ("Fairway, MetalLB, and both again: nothing moves", &Mode::ALL, there_and_back),
    ("new Services get the same from Fairway and from MetalLB", &Mode::ALL, each_for_itself),
    ("check names each object that MetalLB refuses", &Mode::ALL, refused::all),
    // Definitions are the same in each mode.
    (
        "fields of Fairway alone are named by check, and gone after the way back",
        &[Mode::Native],
        own_fields::go,
    ),
];

/// Both begin with a cluster of their own, in which no Service has an address.
fn each_for_itself(cell: &Cell, mode: Mode, assets: &Path, programs: &Programs) -> Result<()> {
    let mut both = Vec::new();
    for software in [Software::Fairway, Software::Metallb] {
        let mut stage = Stage::build(cell, mode, assets, programs)?;
        stage.start(software)?;
        let seen = stage.settle()?;
        println!("  {}: {}", software.word(), seen.summary());
        let has_conditions = seen.conditions() > 0;
        ensure!(has_conditions == (software == Software::Fairway), "{}", seen.conditions());
        both.push(seen.of_allocation());
        stage.stop()?;
    }
    let [ours, theirs] = both.as_slice() else { bail!("not two") };
    let differences = ours.differences(theirs);
    ensure!(differences.is_empty(), "Fairway beside MetalLB: {differences:#?}");
    Ok(())
}

/// Each of both twice, in turn.
fn there_and_back(cell: &Cell, mode: Mode, assets: &Path, programs: &Programs) -> Result<()> {
    let mut stage = Stage::build(cell, mode, assets, programs)?;
    let mut before: Option<Seen> = None;
    let mut of_software: Vec<(Software, Seen)> = Vec::new();
    for software in [Software::Fairway, Software::Metallb, Software::Fairway, Software::Metallb] {
        stage.start(software)?;
        let seen = stage.settle()?;
        println!("  {}: {}", software.word(), seen.summary());
        if let Some(before) = &before {
            let moved = seen.moved(before);
            ensure!(moved.is_empty(), "{} takes over, and {moved:#?}", software.word());
        }
        before = Some(seen.clone());
        of_software.push((software, seen));
        stage.stop()?;
    }
    let [first, second, third, fourth] = of_software.as_slice() else { bail!("not four turns") };
    for (one, other) in [(first, third), (second, fourth)] {
        let mut differences = one.1.differences(&other.1);
        // In the first turn addresses are assigned, and in the third one they are there.
        differences.retain(|it| !it.is_event() || one.0 == Software::Metallb);
        ensure!(differences.is_empty(), "{} twice: {differences:#?}", one.0.word());
    }
    let (ours, mut theirs) = (&third.1, second.1.clone());
    let mut absent = Vec::new();
    for known in KNOWN.iter().filter(|it| it.modes.contains(&mode)) {
        let (without, is_there) = theirs.without(known);
        theirs = without;
        if !is_there && !known.may_be_absent {
            absent.push(known.about());
        }
    }
    let differences = ours.differences(&theirs);
    ensure!(differences.is_empty(), "Fairway beside MetalLB: {differences:#?}");
    ensure!(absent.is_empty(), "on the page, and not seen: {absent:?}");
    Ok(())
}
