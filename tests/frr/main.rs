//! Does FRR accept what is rendered, and with the intended meaning? Each configuration of
//! crates/frr/tests/golden is checked by vtysh, loaded into daemons of FRR 8.4 (Debian 12) and 10.3
//! (Debian 13), read back line by line, and loaded again, which must change nothing. Then two FRRs have
//! a session by it, which the same configuration leaves alone. `make test-frr`, as root.

mod daemons;
mod session;
mod shown;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};

use clap::Parser;
use daemons::{Daemons, numbers_of};
use lab::namespace::Namespace;
use lab::routers::{Release, RouterKind};
use lab::suite::{self, Case, Cell, Suite};

const GOLDEN: &str = "crates/frr/tests/golden";

/// Fewer mean that they have moved.
const GOLDENS_MIN: usize = 30;

/// Each mostly waits for FRR's daemons.
const THREADS: usize = 4;

/// What the FRR backend renders, in FRR 8.4 and 10.3.
///
/// Words: frr8 and frr10 choose releases, all others must occur in the name of a configuration.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
    /// Fail without FRR 10 (scripts/setup.sh trixie)
    #[arg(long)]
    all: bool,
}

fn main() -> ExitCode {
    suite::main("frr", run)
}

fn run(options: Options) -> Result<bool> {
    let releases = [Release::Bookworm, Release::Trixie];
    let installed = releases.into_iter().filter(|it| it.file(daemons::VTYSH).exists());
    let installed: Vec<Release> = installed.collect();
    ensure!(!installed.is_empty(), "vtysh is missing; install the Debian package frr");
    ensure!(installed.len() == 2 || !options.all, "no FRR 10; run scripts/setup.sh trixie");
    let goldens = Arc::new(goldens()?);
    let mut suite = Suite::new("frr", options.suite).as_root().threads(THREADS);
    for release in installed {
        let kind = RouterKind::Frr(release);
        let version = numbers_of(&kind.version()?)?;
        for (place, golden) in goldens.iter().enumerate() {
            let is_older = golden.since.filter(|since| version < *since);
            let needs = is_older.map(|(major, minor)| format!("it needs FRR {major}.{minor}"));
            let goldens = Arc::clone(&goldens);
            let run = move |cell: &Cell| {
                let golden = goldens.get(place).context("a configuration")?;
                let namespace = Namespace::create(cell.number, "node")?;
                let daemons = Daemons::start(release, &namespace, &cell.directory.join("node"))?;
                is_taken(&daemons, &golden.text)
                    .with_context(|| format!("{} in FRR {:?}", golden.name, daemons.version))
            };
            suite.add(Case::new(&golden.name, run).at(&[kind.word()]).not_applicable(needs));
        }
        let name = "a session is told what was meant, and left alone by the same again";
        let run = move |cell: &Cell| session::survives(release, cell);
        suite.add(Case::new(name, run).at(&[kind.word()]));
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    Ok(chosen.run()?.all_passed())
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
    let files =
        fs::read_dir(lab::checkout().join(GOLDEN)).with_context(|| format!("reading {GOLDEN}"))?;
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
