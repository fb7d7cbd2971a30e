//! Who gets the traffic while nodes change from MetalLB to Fairway, one by one, and back? Three routers in the nodes' own
//! AS, six nodes, and a client whose connections are counted where they arrive. `cargo test --test migration`, as root.
//!
//! MetalLB's own speakers run, in their native mode, with an API server.

#![allow(
    clippy::indexing_slicing,
    reason = "of a JSON value it gives null, where there is nothing; nodes have the numbers that the stage gives"
)]

mod flows;
mod metallb;
mod stage;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use lab::metallb::Programs;
use lab::suite::{self, Case, Cell, Suite};
use stage::{NODES, Preference, Software, Stage};

/// Traffic while nodes are migrated one by one.
#[derive(Parser)]
struct Options {
    /// MetalLB and an API server have to be here
    #[arg(long)]
    required: bool,
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    flows::other_role().unwrap_or_else(|| suite::main("migration", run))
}

fn run(options: Options) -> Result<bool> {
    let mut suite = Suite::new("migration", options.suite).as_root().threads(1);
    let both = lab::cluster::assets()?.zip(Programs::find()?);
    let lack = both
        .is_none()
        .then_some("scripts/kube-apiserver.sh and scripts/metallb.sh build what it needs");
    ensure!(!options.required || lack.is_none(), "{}", lack.unwrap_or_default());
    for (name, act) in [
        ("local_pref_in_each_advertisement_keeps_the_shares", each_advertisement as Act),
        ("the_default_of_metallb_keeps_the_shares", default_of_metallb),
        ("defaults_give_all_traffic_to_one_node", defaults),
    ] {
        let both = both.clone();
        let run = move |cell: &Cell| {
            let (assets, programs) = both.as_ref().context("a program is missing")?;
            act(&Scene { cell, assets, programs })
        };
        suite.add(Case::new(name.replace('_', " "), run).not_applicable(lack));
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    Ok(chosen.run()?.all_passed())
}

/// What a case has.
struct Scene<'a> {
    cell: &'a Cell,
    assets: &'a Path,
    programs: &'a Programs,
}

type Act = fn(&Scene<'_>) -> Result<()>;

/// The largest share at each step, there and back, in parts of the fair one.
fn largest_shares(scene: &Scene<'_>, preference: Preference) -> Result<Vec<f64>> {
    let Scene { cell, assets, programs } = scene;
    let mut stage = Stage::build(cell, preference, assets, programs)?;
    let mut all = Vec::new();
    let there = (0..NODES).map(|node| (node, Software::Fairway));
    let back = (0..NODES).map(|node| (node, Software::Metallb));
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
fn stays_fair(scene: &Scene<'_>, preference: Preference) -> Result<()> {
    let largest = largest_shares(scene, preference)?;
    let worst = largest.iter().copied().fold(0.0, f64::max);
    println!("  the largest share of a step is {worst:.2} times the fair one");
    ensure!(worst <= 2.0, "a node has {worst:.2} times its fair share: {largest:?}");
    Ok(())
}

/// `localPref: 100` in the BGPAdvertisement, which both send.
fn each_advertisement(scene: &Scene<'_>) -> Result<()> {
    stays_fair(scene, Preference::InAdvertisement)
}

/// `--default-local-preference 0`, as MetalLB sends.
fn default_of_metallb(scene: &Scene<'_>) -> Result<()> {
    stays_fair(scene, Preference::DefaultOfMetallb)
}

/// The control run: it shows that the others could fail.
fn defaults(scene: &Scene<'_>) -> Result<()> {
    let largest = largest_shares(scene, Preference::Defaults)?;
    let first = largest.get(1).copied().unwrap_or_default();
    let fair = f64::from(u32::try_from(NODES)?);
    ensure!(first >= fair * 0.99, "the first migrated node has {first:.2} times its share");
    ensure!(largest.first().is_some_and(|it| *it <= 2.0), "before it was unfair: {largest:?}");
    Ok(())
}
