//! Does FRR take what is rendered, and take it as it was meant? Each configuration of
//! crates/frr/tests/golden is checked by vtysh, loaded into daemons of FRR 8.4 (Debian 12) and 10.3
//! (Debian 13), read back line by line, and loaded again, which must change nothing. Then two FRRs have
//! a session by it, which the same configuration leaves alone. `make test-frr`, as root.

#![allow(dead_code)] // Only a part of the lab is used here.

mod daemons;
mod session;
mod shown;

#[path = "../interop/lab/mod.rs"]
mod lab;
#[path = "../interop/routers/mod.rs"]
mod routers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use daemons::Daemons;
use lab::namespace::Namespace;
use lab::wait::{end_on_signals, exit_code};
use routers::Release;

const USAGE: &str = "\
usage: frr [--all]
  --all  fail without FRR 10 (scripts/setup.sh trixie)";

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/frr/tests/golden");

/// Fewer mean that they have moved.
const GOLDENS_MIN: usize = 30;

fn main() -> ExitCode {
    exit_code("frr", run())
}

fn run() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let needs_all = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => false,
        ["--all"] => true,
        _ => bail!("{USAGE}"),
    };
    lab::check_tools()?;
    lab::namespace::remove_leftovers()?;
    end_on_signals()?;
    let releases = [Release::Bookworm, Release::Trixie];
    let installed = releases.into_iter().filter(|it| it.file(daemons::VTYSH).exists());
    let installed: Vec<Release> = installed.collect();
    ensure!(!installed.is_empty(), "vtysh is missing; install the Debian package frr");
    ensure!(installed.len() == 2 || !needs_all, "no FRR 10; run scripts/setup.sh trixie");
    let directory = std::env::temp_dir().join(format!("fairway-frr-{}", std::process::id()));
    let outcome = installed.iter().try_for_each(|release| play(*release, &directory));
    match outcome {
        Ok(()) => fs::remove_dir_all(&directory).context("removing what was written")?,
        Err(_) => eprintln!("logs are in {}", directory.display()),
    }
    outcome.map(|()| true)
}

fn play(release: Release, directory: &Path) -> Result<()> {
    let place = |name: &str| directory.join(format!("{release:?}-{name}"));
    let goldens = goldens()?;
    let mut count = 0;
    for golden in &goldens {
        let namespace = Namespace::create(0, "node")?;
        let daemons = Daemons::start(release, &namespace, &place(&golden.name))?;
        if golden.since.is_some_and(|since| daemons.version < since) {
            continue;
        }
        is_taken(&daemons, &golden.text)
            .with_context(|| format!("{} in FRR {:?}", golden.name, daemons.version))?;
        count += 1;
    }
    println!("frr: {count} of {} configurations, in {release:?}", goldens.len());
    session::survives(release, &place("session"))?;
    println!("frr: a session is told what was meant, and left alone by the same again");
    Ok(())
}

/// Checked, loaded, shown as it was sent, and loaded again.
fn is_taken(daemons: &Daemons, text: &str) -> Result<()> {
    daemons.check(text)?;
    daemons.load(text)?;
    let before = daemons.running()?;
    shown::as_sent(text, &before)?;
    daemons.load_again(text).context("for the second time")?;
    let after = daemons.running()?;
    ensure!(before == after, "loaded again, it is:\n{after}\nand was:\n{before}");
    Ok(())
}

/// A configuration, and the version of FRR that it needs.
struct Golden {
    name: String,
    since: Option<(u8, u8)>,
    text: String,
}

fn goldens() -> Result<Vec<Golden>> {
    let files = fs::read_dir(GOLDEN).with_context(|| format!("reading {GOLDEN}"))?;
    let mut paths = files.map(|it| Ok(it?.path())).collect::<Result<Vec<PathBuf>>>()?;
    paths.sort();
    let golden = |path: PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let numbers: Vec<u8> = name.split('.').skip(1).map(str::parse).collect::<Result<_, _>>()?;
        let since = numbers.first().zip(numbers.get(1)).map(|(major, minor)| (*major, *minor));
        Ok(Golden { name, since, text: fs::read_to_string(&path)? })
    };
    let goldens: Vec<Golden> = paths.into_iter().map(golden).collect::<Result<_>>()?;
    ensure!(goldens.len() >= GOLDENS_MIN, "only {} configurations in {GOLDEN}", goldens.len());
    Ok(goldens)
}
