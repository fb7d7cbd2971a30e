//! Does what somebody tries first work as it is printed? The commands of README.md in an empty folder, and the labs of
//! `examples/`, each beside the FRR of this machine until it has the route.
//! Run as root by `cargo test --test first_steps`; with `--bench` the commands and how long they take.

mod empty_root;
mod labs;
mod page;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use empty_root::EmptyRoot;
use lab::frr_speaker::Speaker;
use lab::namespace::Namespace;
use lab::routers::Release;
use lab::suite::{self, Case, Cell, Suite};
use lab::wait::{now, wait_until};
use page::FirstRoute;

/// What README.md promises, from the first command to the route.
const PROMISE: Duration = Duration::from_secs(60);

/// What somebody tries first, as it is printed: README.md, examples/containerlab, examples/kind.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("first_steps", run)
}

/// Whether all cases passed. With `--bench` no case runs: the commands of README.md do, three times.
fn run(options: Options) -> Result<bool> {
    if options.suite.is_bench() {
        return bench();
    }
    let mut suite = Suite::new("first_steps", options.suite).as_root();
    suite.add(Case::new("readme: three commands to a first route", |cell| {
        first_route(&page::readme()?, cell).map(drop)
    }));
    suite.add(Case::new("examples/containerlab: a server and a router", labs::containerlab));
    suite.add(Case::new("examples/kind: the router of the cluster", labs::kind));
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    Ok(chosen.run()?.all_passed())
}

/// Prints the commands, and the seconds from the first of them to the route in FRR.
fn bench() -> Result<bool> {
    ensure!(nix::unistd::Uid::effective().is_root(), "this needs root: network namespaces");
    lab::fairway::existing_program()?;
    let page = page::readme()?;
    println!("{}", page.commands);
    for number in 0..3 {
        let folder = tempfile::tempdir().context("a folder")?;
        lab::make_directory(folder.path())?;
        let directory = folder.path().to_owned();
        let took = first_route(&page, &Cell { number, directory })?;
        println!("{} is in FRR's `show bgp ipv4` after {:.2} s", page.route, took.as_secs_f64());
    }
    Ok(true)
}

/// A router with FRR as the page has it, then the commands in a folder that is the root of their process and has only
/// the archive and a shell. How long it takes until the router has the route.
fn first_route(page: &FirstRoute, cell: &Cell) -> Result<Duration> {
    let node = Namespace::create(cell.number, "node")?;
    let router = Namespace::create(cell.number, "router")?;
    node.connect("eth0", &router, "eth0")?;
    node.add_address("eth0", &format!("{}/24", page.node))?;
    router.add_address("eth0", &format!("{}/24", page.router))?;
    let frr = start_frr(&router, cell, &page.frr)?;
    let root = EmptyRoot::make(&cell.directory.join("root"), &page.archive)?;
    let begin = now();
    let mut shell = root.run(&node, &page.commands, &cell.directory.join("commands.log"))?;
    wait_until(&format!("FRR has {}", page.route), PROMISE, || {
        shell.check_running()?;
        has_route(&frr, &page.route)
    })?;
    Ok(begin.elapsed())
}

/// FRR of this machine with this configuration, before its neighbor is there.
pub(crate) fn start_frr(router: &Namespace, cell: &Cell, configuration: &str) -> Result<Speaker> {
    let mut frr = Speaker::prepare(Release::Bookworm, &cell.directory)?;
    frr.start(router)?;
    frr.load(configuration)?;
    Ok(frr)
}

/// Fails while the route is not in the table that an operator looks at.
pub(crate) fn has_route(frr: &Speaker, route: &str) -> Result<()> {
    let table = frr.vtysh(&["show bgp ipv4"])?;
    let is_there = table.split_whitespace().any(|word| word.trim_start_matches("*>") == route);
    ensure!(is_there, "expected {route} in:\n{table}");
    Ok(())
}
