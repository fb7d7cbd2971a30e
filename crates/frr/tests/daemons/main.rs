//! A real FRR, configured by the backend: normal operation, interruptions, and manual changes.
//!
//! Needs root, and FRR 8.4 of Debian 12; FRR 10.3 where `scripts/trixie.sh` installed it. Reports and skips
//! otherwise. `make test-frr`; words after `--` choose stories, `--bench` measures.

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

use anyhow::Result;
use lab::Release;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if !std::path::Path::new("/usr/lib/frr/bgpd").exists() || !nix::unistd::geteuid().is_root() {
        println!("skipped: needs root and FRR (scripts/setup.sh routers)");
        return Ok(());
    }
    let trixie = PathBuf::from(
        std::env::var_os("FAIRWAY_TRIXIE").unwrap_or_else(|| "/var/cache/fairway/trixie".into()),
    );
    let mut releases = vec![Release::Bookworm];
    match trixie.join("usr/lib/frr/bgpd").exists() {
        true => releases.push(Release::Trixie(trixie)),
        false => println!("skipped: FRR 10.3 (scripts/trixie.sh)"),
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if words.iter().any(|it| it == "--bench") {
        return releases.into_iter().try_for_each(|it| runtime.block_on(bench::run(it)));
    }
    let filters: Vec<&String> = words.iter().filter(|it| !it.starts_with('-')).collect();
    let mut failed = Vec::new();
    for release in releases {
        for (name, story) in stories::ALL {
            if !filters.iter().all(|filter| name.contains(filter.as_str())) {
                continue;
            }
            let begun = std::time::Instant::now();
            let outcome =
                runtime.block_on(async { story(node::Node::start(release.clone()).await?).await });
            let mark = if outcome.is_ok() { "ok" } else { "FAILED" };
            println!("{mark} {name} {release:?} ({:.1} s)", begun.elapsed().as_secs_f32());
            if let Err(error) = outcome {
                println!("  {error:#}");
                failed.push(name);
            }
        }
    }
    anyhow::ensure!(failed.is_empty(), "failed: {failed:?}");
    Ok(())
}
