//! Does Fairway keep its promises when what is around it is taken away, replaced or held? A volume that is lost,
//! a pipe in place of a file, a lease, signals, clients that never speak. Each story is a Fairway with its
//! own sessions in one network namespace, and BIRD in another. Run as root by `make test-attack`:
//! `cargo test --test attack -- [WORD...]`.

mod attributes;
mod lease;
mod lost_volume;
mod page;
mod pipe;
mod scene;
mod signals;
mod silent_clients;
mod state_pipe;
mod strangers;
mod trials;
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

/// A trial that needs a scene of its own.
struct Story {
    name: &'static str,
    /// The field that it belongs to.
    field: &'static str,
    tried: &'static str,
    outcome: &'static str,
    /// Where an operator sees it.
    sign: &'static str,
    run: fn(&Cell) -> Result<()>,
}

macro_rules! stories {
    ($($field:literal $module:ident::$name:ident: $tried:literal, $outcome:literal, $sign:literal;)*) => {
        &[$(Story {
            name: stringify!($name),
            field: $field,
            tried: $tried,
            outcome: $outcome,
            sign: $sign,
            run: $module::$name,
        },)*]
    };
}

const STORIES: &[Story] = stories![
    "files" lost_volume::a_lost_volume_withdraws_nothing:
        "the volume of the configuration is lost: an empty folder is in its place",
        "all stays in force, until `fairway reload --empty`",
        "`show config`; `metallb_k8s_client_config_stale_bool`; log";
    "files" lost_volume::the_last_file_that_is_deleted_withdraws:
        "the last file is deleted", "what it had is withdrawn", "`show config`";
    "files" pipe::a_pipe_in_place_of_a_file_stops_no_reader:
        "a file and a pipe take turns under one name", "all other files are read", "`show config`";
    "files" lease::a_lease_on_one_file_holds_up_no_other:
        "another process holds a write lease on a file", "all other files are read", "`show config`";
    "lifecycles" signals::signals_that_log_rotation_sends_kill_nobody:
        "SIGUSR1, SIGUSR2, SIGALRM and SIGIO, which log rotation and timers send", "nothing changes", "log";
    "lifecycles" state_pipe::a_pipe_in_the_state_directory_does_not_hang_the_start:
        "pipes in the place of the state files", "Fairway starts without what they had, and says so", "log at the start";
    "sockets" silent_clients::idle_clients_of_the_socket_keep_nobody_waiting:
        "200 clients of the admin socket that never send anything", "others are answered", "`fairway_bound_reached_total{bound=\"admin-client\"}`";
    "bgp" attributes::long_attributes_end_the_session_of_the_neighbor_that_sends_them:
        "few prefixes with many bytes of attributes", "Cease 6/8 above `maxPrefixes.attributeBytes`", "`fairway_bgp_limit_exceeded_total`, `fairway_bgp_received_attribute_bytes`";
    "bgp" attributes::memory_that_runs_short_ends_the_session_of_one_neighbor:
        "more routes than there is memory for", "Cease 6/8 to the neighbor with the most routes, at `--memory-limit`", "`fairway_bgp_limit_exceeded_total`; log";
    "sockets" strangers::silent_strangers_keep_no_neighbor_out_of_a_listen_range:
        "silent strangers fill a listen range", "those without an OPEN make room", "`fairway_bound_reached_total{bound=\"listen-range\"}`; log";
];

/// What is around Fairway is taken away, replaced or held.
///
/// Words choose the stories with one of them in their name.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
    /// Write docs/attacks.md again
    #[arg(long)]
    document: bool,
}

fn main() -> ExitCode {
    suite::main("attack", run)
}

/// Whether every promise was kept.
fn run(options: Options) -> Result<bool> {
    if options.document {
        page::write()?;
        return Ok(true);
    }
    let suite = Suite::new("attack", options.suite).as_root().threads(THREADS);
    let mut suite = suite.several_words(Several::Any);
    for story in STORIES {
        let run = move |cell: &suite::Cell| {
            (story.run)(&Cell { number: cell.number, directory: cell.directory.clone() })
        };
        suite.add(Case::new(story.name.replace('_', " "), run));
    }
    for field in trials::FIELDS {
        let run = move |cell: &suite::Cell| {
            field.run(&Cell { number: cell.number, directory: cell.directory.clone() })
        };
        suite.add(Case::new(format!("trials of {}", field.name), run));
    }
    suite.add(Case::new("docs/attacks.md is current", |_| page::check()));
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    Ok(chosen.run()?.all_passed())
}
