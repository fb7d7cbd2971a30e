//! Does fairway get along with the routers that people run? The matrix of cases and routers, each
//! cell in network namespaces of its own, run as root by
//! `cargo test --test interop -- [WORD...] [--bgp WHO] [--short] [--table FILE]`.

mod cases;
mod matrix;
mod speaker;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use cases::CASES;
use lab::routers::RouterKind;
use lab::suite::{self, Suite};
use lab::wait::is_interrupted;
use matrix::{Matrix, Square};
use speaker::SpeakerKind;

/// Cells mostly wait for timers: four at a time leave the clocks true on two cores, busy ones too.
const THREADS: usize = 4;

/// Fairway among real routers.
///
/// Words: frr8, frr10, bird2, bird3, gobgp, openbgpd choose routers, frr and bird two of them; every
/// other word must occur in the name of the case.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
    /// Which daemon speaks BGP on the node: native, frr8 or frr10. FRR meets FRR and BIRD unless other
    /// routers are named
    #[arg(long, value_name = "WHO", default_value = "native", value_parser = speaker_called)]
    bgp: SpeakerKind,
    /// Each case about BFD with one router, not with all; with --bgp frr8|frr10 a handful
    #[arg(long)]
    short: bool,
    /// Write the result as a Markdown table
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
}

fn speaker_called(word: &str) -> Result<SpeakerKind, String> {
    SpeakerKind::called(word).ok_or_else(|| "expected native, frr8 or frr10".to_owned())
}

fn main() -> ExitCode {
    suite::main("interop", run)
}

/// Whether every cell has passed.
fn run(options: Options) -> Result<bool> {
    let names_router = options.suite.words().iter().any(|word| is_router(word));
    let squares = CASES.iter().flat_map(|case| {
        RouterKind::ALL.map(|router| Square { case, router, speaker: options.bgp })
    });
    let is_wanted = |square: &Square| names_router || square.speaker.meets(square.router);
    let squares: Vec<Square> = squares.filter(is_wanted).collect();
    let mut suite = Suite::new("interop", options.suite).as_root().threads(THREADS);
    for square in &squares {
        suite.add(square.to_case(options.short));
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    let numbers = chosen.numbers();
    let matrix = Matrix::of(squares, &numbers)?;
    let report = chosen.run()?;
    matrix.print_summary(&report.outcomes);
    if let (Some(file), false) = (&options.table, is_interrupted()) {
        std::fs::write(file, matrix.markdown(&report.outcomes))
            .with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(report.all_passed())
}

fn is_router(word: &str) -> bool {
    RouterKind::ALL.into_iter().any(|kind| kind.is_called(word))
}
