//! A real FRR, configured by the backend: normal operation, interruptions, and manual changes.
//!
//! Needs root, and FRR 8.4 of Debian 12; FRR 10.3 where `scripts/trixie.sh` made it. Says so and does
//! nothing without. `make test-frr`; words choose stories, `--bench` measures.

// What fails here fails the test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing
)]

mod bench;
mod lab;
mod node;
mod stories;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ::lab::suite::{self, Case, Suite};
use anyhow::Result;
use clap::Parser;
use lab::Release;

/// FRR as it is, told by the backend.
///
/// Words: frr8 and frr10 choose releases, all others must occur in the name of a story. `--bench` runs
/// no story, but measures.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("daemons", run)
}

fn run(options: Options) -> Result<bool> {
    let trixie = PathBuf::from(
        std::env::var_os("FAIRWAY_TRIXIE").unwrap_or_else(|| "/var/cache/fairway/trixie".into()),
    );
    let has_new = trixie.join("usr/lib/frr/bgpd").exists();
    let is_root = nix::unistd::geteuid().is_root();
    let has_old = std::path::Path::new("/usr/lib/frr/bgpd").exists();
    let lack = match (is_root && has_old, has_new) {
        (true, true) => [None, None],
        (true, false) => [None, Some("needs FRR 10.3 (scripts/setup.sh trixie)")],
        (false, _) => [Some("needs root and FRR (scripts/setup.sh routers)"); 2],
    };
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().enable_all().build()?);
    let releases = [("frr8", Release::Bookworm), ("frr10", Release::Trixie(trixie))];
    if options.suite.is_bench() {
        let measured = releases.into_iter().zip(lack).filter(|(_, lack)| lack.is_none());
        measured.map(|((_, it), _)| it).try_for_each(|it| runtime.block_on(bench::run(it)))?;
        return Ok(true);
    }
    let mut suite = Suite::new("daemons", options.suite);
    for ((place, release), lack) in releases.into_iter().zip(lack) {
        for &(name, story) in stories::ALL {
            let (runtime, release) = (Arc::clone(&runtime), release.clone());
            let run = move |_: &suite::Cell| {
                runtime.block_on(async { story(node::Node::start(release).await?).await })
            };
            let case = Case::new(name, run).at(&[place]).not_applicable(lack);
            suite.add(case.in_line("one by one"));
        }
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    Ok(chosen.run()?.all_passed())
}
