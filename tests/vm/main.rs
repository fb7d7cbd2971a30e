//! What needs a kernel that a machine may not have: sessions in VRFs, TCP-AO, layer 2 on VLANs and bonds, and IPVS. Run by `make vm`
//! on another kernel (`scripts/vm.sh`), all cases in one boot: `cargo test --test vm -- [WORD...]`.

mod cases;
mod node;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use cases::{CASES, bench, has_api_server};
use lab::suite::{self, Case, Several, Suite};

/// Sessions in VRFs, TCP-AO, layer 2 on VLANs and bonds, and the service proxy.
///
/// Words: the cases with one of them in their name. This machine's kernel must have VRF, TCP-AO and IPVS;
/// `make vm` boots one that has.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("vm", run)
}

/// Whether every case has passed. An emulated machine is slow: one case at a time.
fn run(options: Options) -> Result<bool> {
    if options.suite.is_bench() {
        return bench().map(|()| true);
    }
    let mut suite = Suite::new("vm", options.suite).as_root().several_words(Several::Any);
    for case in CASES {
        let run = |cell: &suite::Cell| (case.run)(cell.number, &cell.directory);
        let lacks = case.needs_api_server && !has_api_server();
        let lacks = lacks.then_some("no API server outside: tests/vm/with_api_server.sh");
        suite.add(Case::new(case.name, run).in_line("one by one").not_applicable(lacks));
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    Ok(chosen.run()?.all_passed())
}
