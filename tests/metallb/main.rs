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
    if options.suite.is_bench() {
        let (assets, programs) = (lab::cluster::assets()?, Programs::find()?);
        let assets = assets.context("no API server here: scripts/kube-apiserver.sh builds one")?;
        let programs = programs.context("no MetalLB here: scripts/metallb.sh builds it")?;
        return bench::run(&assets, &programs).map(|()| true);
    }
    let mut suite = Suite::new("metallb", options.suite).as_root().threads(1);
    let assets = lab::cluster::assets()?;
    let programs = Programs::find()?;
    let lack = match (&assets, &programs) {
        (None, _) => Some("no API server here: scripts/kube-apiserver.sh builds one"),
        (_, None) => Some("no MetalLB here: scripts/metallb.sh builds it"),
        _ => None,
    };
    ensure!(!options.required || lack.is_none(), "{}", lack.unwrap_or_default());
    for mode in [Mode::Native, Mode::Frr] {
        let name =
            format!("Fairway, MetalLB in {} mode, and both again: nothing moves", mode.word());
        let (assets, programs) = (assets.clone(), programs.clone());
        let run = move |cell: &Cell| match (&assets, &programs) {
            (Some(assets), Some(programs)) => there_and_back(cell, mode, assets, programs),
            _ => bail!("a program is missing"),
        };
        suite.add(Case::new(name, run).not_applicable(lack));
    }
    for mode in [Mode::Native, Mode::Frr] {
        let name = format!(
            "new Services get the same from Fairway and from MetalLB in {} mode",
            mode.word()
        );
        let (assets, programs) = (assets.clone(), programs.clone());
        let run = move |cell: &Cell| match (&assets, &programs) {
            (Some(assets), Some(programs)) => each_for_itself(cell, mode, assets, programs),
            _ => bail!("a program is missing"),
        };
        suite.add(Case::new(name, run).not_applicable(lack));
    }
    for mode in [Mode::Native, Mode::Frr] {
        let name = format!("check names each object that MetalLB refuses in {} mode", mode.word());
        let (assets, programs) = (assets.clone(), programs.clone());
        let run = move |cell: &Cell| match (&assets, &programs) {
            (Some(assets), Some(programs)) => refused::all(cell, mode, assets, programs),
            _ => bail!("a program is missing"),
        };
        suite.add(Case::new(name, run).not_applicable(lack));
    }
    let name = "fields of Fairway alone are named by check, and gone after the way back";
    let (kept, programs_kept) = (assets.clone(), programs.clone());
    let run = move |cell: &Cell| match (&kept, &programs_kept) {
        (Some(assets), Some(programs)) => own_fields::go(cell, assets, programs),
        _ => bail!("a program is missing"),
    };
    suite.add(Case::new(name, run).not_applicable(lack));
    suite.add(Case::new("the migration page lists what was seen", |_| {
        differences::are_on_the_page()
    }));
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    Ok(chosen.run()?.all_passed())
}

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
