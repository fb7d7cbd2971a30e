//! What needs a kernel that a machine may not have: sessions in VRFs, and TCP-AO. Run by `make vm`
//! on another kernel (`scripts/vm.sh`), all cases in one boot:
//! `cargo test --test vm -- [WORD...] [--list]`.

#![allow(dead_code)] // Only a part of the lab and of the routers is used here.

mod cases;
mod node;

#[path = "../interop/lab/mod.rs"]
mod lab;
#[path = "../interop/routers/mod.rs"]
mod routers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use cases::{CASES, Case};
use lab::process::tail;
use lab::wait::{end_on_signals, exit_code, is_interrupted, now};
use lab::{fairway, make_directory};

const USAGE: &str = "\
usage: vm [WORD...] [--list]
  WORD    run only the cases with one of these words in their name
  --list  print the cases that would run, and run none
The program under test is FAIRWAY_BIN, else the one that cargo has built. This machine's kernel must
have VRF and TCP-AO; `make vm` boots one that has.";

/// How much of each log a failing case shows: the VM is gone afterwards.
const TAIL_LINES: usize = 60;

fn main() -> ExitCode {
    exit_code("vm", run())
}

/// Whether every case has passed.
fn run() -> Result<bool> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| matches!(word.as_str(), "--help" | "-h")) {
        println!("{USAGE}");
        return Ok(true);
    }
    let (options, words): (Vec<_>, Vec<_>) = words.iter().partition(|word| word.starts_with('-'));
    if let Some(unknown) = options.iter().find(|option| option.as_str() != "--list") {
        bail!("unknown option {unknown}\n{USAGE}");
    }
    let is_wanted = |case: &&Case| {
        words.is_empty() || words.iter().any(|word| case.name.contains(word.as_str()))
    };
    let cases: Vec<&Case> = CASES.iter().filter(is_wanted).collect();
    ensure!(!cases.is_empty(), "no case matches {words:?}; see --list");
    if !options.is_empty() {
        cases.iter().for_each(|case| println!("{}", case.name));
        return Ok(true);
    }
    ensure!(nix::unistd::geteuid().is_root(), "network namespaces need root; run this as root");
    lab::check_tools()?;
    let program = fairway::program();
    ensure!(program.exists(), "the program under test, {}, does not exist", program.display());
    end_on_signals()?;
    let directory = std::env::temp_dir().join(format!("fairway-vm-{}", std::process::id()));
    let mut all_passed = true;
    for (number, case) in cases.into_iter().enumerate() {
        let directory = directory.join(number.to_string());
        make_directory(&directory)?;
        all_passed &= run_case(case, number, &directory)?;
        if is_interrupted() {
            break;
        }
    }
    if all_passed {
        std::fs::remove_dir_all(&directory).context("removing the directory of the run")?;
    }
    Ok(all_passed)
}

fn run_case(case: &Case, number: usize, directory: &Path) -> Result<bool> {
    let start = now();
    let outcome = (case.run)(number, directory);
    let seconds = start.elapsed().as_secs_f64();
    let Err(error) = outcome else {
        println!("{}: passed, {seconds:.1} s", case.name);
        return Ok(true);
    };
    println!("{}: FAILED after {seconds:.1} s: {error:#}", case.name);
    for log in logs_below(directory)? {
        println!("  the end of {}:\n{}", log.display(), tail(&log, TAIL_LINES));
    }
    Ok(false)
}

fn logs_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(directory).context("the directory of the case")? {
        let path = entry.context("the directory of the case")?.path();
        if path.is_dir() {
            logs.extend(logs_below(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "log") {
            logs.push(path);
        }
    }
    Ok(logs)
}
