//! The driver: runs mutants through all targets and fails if one panics, hangs, or exceeds its CPU time or
//! memory. Needs no nightly compiler, and replays any input from its seed.

// A failure here ends the run with a message.
#![allow(clippy::indexing_slicing, clippy::print_stdout)]

mod driver;

use std::process::ExitCode;

use driver::options::{Options, Task, USAGE};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let done = match &options.task {
        Task::Help => {
            println!("{USAGE}");
            Ok(true)
        }
        Task::Run(limits) => Ok(driver::run(&options, limits)),
        Task::Replay { target, input } => driver::replay(target, input),
        Task::WriteCorpus(folder) => driver::write_corpus(&options, folder),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
