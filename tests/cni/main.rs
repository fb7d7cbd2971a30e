//! Do Pods get addresses? The daemon with `--ipam`, its plugin below the standard plugins `ptp` and `bridge`, and a real API
//! server. The test is the container runtime. Run as root: `cargo test --test cni -- [WORD...] [--short] [--required]`.
//!
//! The plugins are those that `scripts/cni-plugins.sh` finds or builds, or a distribution's; without an API server the cases that need
//! one are reported as skipped.

#![allow(
    clippy::indexing_slicing,
    reason = "of a JSON value it gives null, where there is nothing"
)]

mod bench;
mod capture;
mod cases;
mod daemon;
mod runtime;
mod weight;
mod writer;

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Parser;

use lab::suite::{self, Case, Suite};

use cases::{Kind, Scene};
use runtime::Plugins;

/// Each case waits for programs more than it computes.
const THREADS: usize = 2;

/// Addresses for Pods.
///
/// Words: the cases that have one of them in their name; disk and cluster choose stores.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
    /// Fewer containers
    #[arg(long)]
    short: bool,
    /// Fail where there are no plugins or no API server, in place of skipping
    #[arg(long)]
    required: bool,
}

fn main() -> ExitCode {
    suite::main("cni", run)
}

fn run(options: Options) -> Result<bool> {
    let assets = lab::cluster::assets()?;
    let plugins = runtime::plugins()?;
    ensure!(
        !options.required || (assets.is_some() && plugins.iter().any(Plugins::is_new)),
        "there is no API server, or there are no plugins of 1.6 or newer; run: scripts/kube-apiserver.sh and scripts/cni-plugins.sh"
    );
    if options.suite.is_bench() {
        let directory = tempfile::tempdir()?;
        let scene = Scene {
            cell: 0,
            directory: directory.path().to_owned(),
            assets,
            plugins,
            is_short: false,
        };
        weight::run(&scene)?;
        return bench::run(&Scene { cell: 1, ..scene }).map(|()| true);
    }
    let mut suite = Suite::new("cni", options.suite).as_root().threads(THREADS);
    for case in cases::all() {
        let needed = case.on == Kind::Cluster;
        let missing = match () {
            () if plugins.is_empty() => Some("there are no CNI plugins here"),
            () if case.on != Kind::Bridge && !plugins.iter().any(Plugins::is_new) => {
                Some("the CNI plugins here are older than 1.6; run: scripts/cni-plugins.sh")
            }
            () if needed && assets.is_none() => Some("there is no API server here"),
            () if case.on == Kind::Cnitool
                && cases::cnitool::plugins_with_tool(&plugins).is_none() =>
            {
                Some("there is no cnitool here")
            }
            () => None,
        };
        let (assets, plugins, is_short) = (assets.clone(), plugins.clone(), options.short);
        let run = move |cell: &suite::Cell| {
            let assets = assets.as_deref().filter(|_| needed);
            let scene = Scene {
                cell: cell.number,
                directory: cell.directory.clone(),
                assets: assets.map(ToOwned::to_owned),
                plugins: plugins.clone(),
                is_short,
            };
            (case.run)(&scene)
        };
        let covered = needed.then_some("unit");
        suite.add(
            Case::new(case.name, run)
                .at(&[case.on.word()])
                .not_applicable(missing)
                .covered_by(covered),
        );
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    ensure!(
        daemon::plugin().exists(),
        "{} does not exist; run `cargo build -p fairway-cni`",
        daemon::plugin().display()
    );
    Ok(chosen.run()?.all_passed())
}
