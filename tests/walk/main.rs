//! Does `docs/peers.md` work, letter by letter? Each of its sections is set up as it is printed:
//! our YAML, FRR's or BIRD's configuration, the commands at the prompts, and what they answer.
//! Run as root by `cargo test --test walk -- [WORD...] [--list] [--vm]`.

#![allow(dead_code)] // Only a part of the lab is used here.

mod document;
mod stage;

#[path = "../interop/lab/mod.rs"]
mod lab;
#[path = "../interop/routers/mod.rs"]
mod routers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use document::{Section, Walk};
use lab::process::tail;
use lab::wait::{end_on_signals, exit_code, is_interrupted, now};
use stage::{RouterKind, Stage};

const USAGE: &str = "\
usage: walk [WORD...] [--list] [--vm]
  WORD    run only the sections with all of these words in their heading; frr and bird choose routers
  --list  print what would run, and run nothing
  --vm    run the sections that need a kernel with VRFs and TCP-AO, and only those
The program under test is FAIRWAY_BIN, else the one that cargo has built.";

/// How much of each log a failing section shows.
const TAIL_LINES: usize = 40;

struct Options {
    words: Vec<String>,
    list: bool,
    vm: bool,
}

fn main() -> ExitCode {
    exit_code("walk", run())
}

/// Whether every section went as it is written.
fn run() -> Result<bool> {
    let Some(options) = parse(std::env::args().skip(1))? else {
        println!("{USAGE}");
        return Ok(true);
    };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/peers.md");
    let text = std::fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    let walk = Walk::parse(&text).with_context(|| page.display().to_string())?;
    let wanted: Vec<_> = walk
        .sections
        .iter()
        .filter(|section| section.needs_vm() == options.vm)
        .flat_map(|section| RouterKind::ALL.map(|router| (section, router)))
        .filter(|(section, router)| section.mentions(*router))
        .filter(|(section, router)| is_wanted(section, *router, &options.words))
        .collect();
    ensure!(!wanted.is_empty(), "no section matches {:?}; see --list", options.words);
    if options.list {
        wanted.iter().for_each(|(section, router)| println!("{router}: {}", section.heading));
        return Ok(true);
    }
    ensure!(nix::unistd::geteuid().is_root(), "network namespaces need root; run this as root");
    lab::check_tools()?;
    lab::namespace::remove_leftovers()?;
    end_on_signals()?;
    let directory = std::env::temp_dir().join(format!("fairway-walk-{}", std::process::id()));
    let mut all_went = true;
    for (number, (section, router)) in wanted.into_iter().enumerate() {
        all_went &= go(&walk, section, router, number, &directory)?;
        if is_interrupted() {
            break;
        }
    }
    // Only empty when all went well; a failed section keeps its own directory.
    let _ = std::fs::remove_dir(&directory);
    Ok(all_went)
}

fn is_wanted(section: &Section, router: RouterKind, words: &[String]) -> bool {
    let names_router = |word: &&String| RouterKind::ALL.iter().any(|it| it.to_string() == **word);
    let (routers, others): (Vec<_>, Vec<_>) = words.iter().partition(names_router);
    let heading = section.heading.to_lowercase();
    others.iter().all(|word| heading.contains(word.as_str()))
        && (routers.is_empty() || routers.iter().any(|word| router.to_string() == **word))
}

/// One section with one router.
fn go(
    walk: &Walk,
    section: &Section,
    router: RouterKind,
    number: usize,
    directory: &Path,
) -> Result<bool> {
    let place: PathBuf = directory.join(number.to_string());
    lab::make_directory(&place)?;
    let start = now();
    let outcome = Stage::set_up(walk, section, router, number, &place).and_then(|mut stage| {
        let prompts = section.prompts.iter().filter(|it| it.is_for(router));
        prompts.into_iter().try_for_each(|prompt| stage.follow(prompt))
    });
    let seconds = start.elapsed().as_secs_f64();
    match outcome {
        Ok(()) => {
            println!("ok    {seconds:>5.1} s  {router:<5} {}", section.heading);
            std::fs::remove_dir_all(&place).context("removing the directory of the section")?;
            Ok(true)
        }
        Err(_) if is_interrupted() => {
            let _ = std::fs::remove_dir_all(&place);
            Ok(false)
        }
        Err(error) => {
            println!("FAIL  {seconds:>5.1} s  {router:<5} {}\n  {error:#}", section.heading);
            for log in stage::logs_in(&place) {
                println!("  the end of {}:\n{}", log.display(), tail(&log, TAIL_LINES));
            }
            Ok(false)
        }
    }
}

/// None when help was asked for.
fn parse(arguments: impl Iterator<Item = String>) -> Result<Option<Options>> {
    let mut options = Options { words: Vec::new(), list: false, vm: false };
    for argument in arguments {
        match argument.as_str() {
            "--help" | "-h" => return Ok(None),
            "--list" => options.list = true,
            "--vm" => options.vm = true,
            other if other.starts_with('-') => bail!("unknown option {other}\n{USAGE}"),
            word => options.words.push(word.to_lowercase()),
        }
    }
    Ok(Some(options))
}
