//! Who gets the traffic while nodes change from MetalLB to Fairway, one by one, and back? Three routers in the nodes' own
//! AS, six nodes, and a client whose connections are counted where they arrive. `cargo test --test migration`, as root.
//!
//! In the place of MetalLB's speaker in its native mode is BIRD, which sends what that sends: LOCAL_PREF 0, or what a
//! BGPAdvertisement says.

#![allow(
    clippy::indexing_slicing,
    reason = "of a JSON value it gives null, where there is nothing; nodes have the numbers that the stage gives"
)]

mod flows;
mod stage;

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Parser;

use lab::suite::{self, Case, Cell, Suite};
use stage::{NODES, Preference, Software, Stage};

/// Traffic while nodes are migrated one by one.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    flows::other_role().unwrap_or_else(|| suite::main("migration", run))
}

fn run(options: Options) -> Result<bool> {
    let mut suite = Suite::new("migration", options.suite).as_root().threads(1);
    for (name, act) in [
        ("local_pref_in_each_advertisement_keeps_the_shares", each_advertisement as Act),
        ("the_default_of_the_other_one_keeps_the_shares", default_of_the_other_one),
        ("defaults_give_all_traffic_to_one_node", defaults),
    ] {
        suite.add(Case::new(name.replace('_', " "), act));
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    Ok(chosen.run()?.all_passed())
}

type Act = fn(&Cell) -> Result<()>;

/// The largest share at each step, there and back, in parts of the fair one.
fn largest_shares(cell: &Cell, preference: Preference) -> Result<Vec<f64>> {
    let mut stage = Stage::build(cell, preference)?;
    let mut all = Vec::new();
    let there = (0..NODES).map(|node| (node, Software::Fairway));
    let back = (0..NODES).map(|node| (node, Software::Other));
    let mut look = |stage: &Stage, what: &str| -> Result<()> {
        let shares = stage.shares()?;
        let texts: Vec<String> = shares.iter().map(|it| format!("{:.0} %", it * 100.0)).collect();
        println!("  {what}: {}", texts.join(", "));
        let largest = shares.into_iter().fold(0.0, f64::max);
        all.push(largest * f64::from(u32::try_from(NODES)?));
        Ok(())
    };
    look(&stage, "before")?;
    for (node, software) in there.chain(back) {
        stage.change(node, software)?;
        look(&stage, &format!("node {} runs {}", node + 1, software.word()))?;
    }
    Ok(all)
}

/// No step, the last included, gives a node more than twice its fair share.
fn stays_fair(cell: &Cell, preference: Preference) -> Result<()> {
    let largest = largest_shares(cell, preference)?;
    let worst = largest.iter().copied().fold(0.0, f64::max);
    println!("  the largest share of a step is {worst:.2} times the fair one");
    ensure!(worst <= 2.0, "a node has {worst:.2} times its fair share: {largest:?}");
    Ok(())
}

/// `localPref: 100` in the BGPAdvertisement, which both send.
fn each_advertisement(cell: &Cell) -> Result<()> {
    stays_fair(cell, Preference::InAdvertisement)
}

/// `--default-local-preference 0`, as MetalLB sends.
fn default_of_the_other_one(cell: &Cell) -> Result<()> {
    stays_fair(cell, Preference::DefaultOfTheOther)
}

/// The control run: it shows that the others could fail.
fn defaults(cell: &Cell) -> Result<()> {
    let largest = largest_shares(cell, Preference::Defaults)?;
    let first = largest.get(1).copied().unwrap_or_default();
    let fair = f64::from(u32::try_from(NODES)?);
    ensure!(first >= fair * 0.99, "the first migrated node has {first:.2} times its share");
    ensure!(largest.first().is_some_and(|it| *it <= 2.0), "before it was unfair: {largest:?}");
    Ok(())
}
