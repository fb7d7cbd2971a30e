//! Does Fairway keep its promises when what is around it is taken away, replaced or held? A volume that is lost,
//! a pipe in place of a file, a lease, signals, clients that never speak. Each story is a Fairway with its
//! own sessions in one network namespace, and BIRD in another. Run as root by `make test-attack`:
//! `cargo test --test attack -- [WORD...]`.

mod attributes;
mod lease;
mod lost_volume;
mod outsider;
mod pipe;
mod scene;
mod signals;
mod silent_clients;
mod state_pipe;
mod strangers;
mod volume;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use lab::suite::{self, Case, Several, Suite};

/// Stories at a time.
const THREADS: usize = 4;

/// The input of a story.
pub(crate) struct Cell {
    number: usize,
    directory: PathBuf,
}

/// A story.
struct Story {
    name: &'static str,
    run: fn(&Cell) -> Result<()>,
}

macro_rules! stories {
    ($($module:ident::$name:ident,)*) => {
        &[$(Story { name: stringify!($name), run: $module::$name },)*]
    };
}

const STORIES: &[Story] = stories![
    lost_volume::a_lost_volume_withdraws_nothing,
    lost_volume::the_last_file_that_is_deleted_withdraws,
    pipe::a_pipe_in_place_of_a_file_stops_no_reader,
    lease::a_lease_on_one_file_holds_up_no_other,
    signals::signals_that_log_rotation_sends_kill_nobody,
    state_pipe::a_pipe_in_the_state_directory_does_not_hang_the_start,
    silent_clients::idle_clients_of_the_socket_keep_nobody_waiting,
    attributes::long_attributes_end_the_session_of_the_neighbor_that_sends_them,
    attributes::memory_that_runs_short_ends_the_session_of_one_neighbor,
    strangers::silent_strangers_keep_no_neighbor_out_of_a_listen_range,
];

/// What is around Fairway is taken away, replaced or held.
///
/// Words choose the stories with one of them in their name.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("attack", run)
}

/// Whether every promise was kept.
fn run(options: Options) -> Result<bool> {
    let suite = Suite::new("attack", options.suite).as_root().threads(THREADS);
    let mut suite = suite.several_words(Several::Any);
    for story in STORIES {
        let run = move |cell: &suite::Cell| {
            (story.run)(&Cell { number: cell.number, directory: cell.directory.clone() })
        };
        suite.add(Case::new(story.name.replace('_', " "), run));
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    Ok(chosen.run()?.all_passed())
}
