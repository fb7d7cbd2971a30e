//! Does Fairway keep its promises when FRR speaks for it, and something breaks? Daemons that hang, die
//! or come late, configuration that FRR refuses, operators who edit it by hand, a full disk, restarts
//! of Fairway. Each story is a FRR in one network namespace and a router in another. Run as root by
//! `make test-frr`: `cargo test --test frr_faults -- [WORD...]`.

mod breakage;
mod configuration;
mod edits;
mod operator;
mod operators;
mod restarts;
mod scene;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use lab::routers::{Release, RouterKind};
use lab::suite::{self, Case, Several, Suite};

/// Stories at a time.
const THREADS: usize = 4;

const RELEASES: &[Release] = &[Release::Bookworm, Release::Trixie];

/// The input of a story.
pub(crate) struct Cell {
    number: usize,
    release: Release,
    directory: PathBuf,
}

/// A story. It runs with each release of FRR.
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
    breakage::frr_that_comes_later_is_told_all,
    breakage::bgpd_killed_amid_five_hundred_changes_is_told_all_again,
    breakage::bgpd_killed_while_it_hangs_is_told_all_again,
    breakage::a_daemon_that_hangs_is_named_and_told_later,
    breakage::a_load_that_was_cut_short_holds_no_peer,
    breakage::a_peer_without_a_route_says_so,
    breakage::a_full_disk_delays_no_route_and_is_said,
    configuration::a_bad_line_of_extras_takes_no_other_along,
    configuration::one_bad_line_of_many_is_named,
    configuration::broken_extras_delay_no_route,
    configuration::a_hand_edit_is_healed,
    configuration::what_others_configured_stays,
    operator::an_operators_bgp_stays_as_it_was,
    operator::peers_behind_the_default_route_come_up,
    operator::an_operators_neighbor_is_never_taken_over,
    operator::a_second_fairway_stands_aside,
    operator::a_second_fairway_beside_an_operator_stands_aside,
    operator::a_router_that_became_the_operators_stays_theirs,
    operator::the_first_contact_is_known_before,
    operator::what_is_forgotten_leaves_nothing,
    operator::extras_go_with_their_config_map,
    operator::names_of_an_earlier_version_are_taken_over,
    operators::six_operators_get_back_what_they_had,
    operators::files_of_single_daemons_are_given_back,
    edits::the_operators_sessions_survive_a_hundred_edits,
    restarts::fairway_killed_leaves_frr_speaking,
    restarts::fairway_ended_leaves_frr_speaking,
    restarts::what_went_meanwhile_is_withdrawn_and_nothing_else,
    restarts::a_reload_of_frr_is_healed,
    restarts::a_reload_of_frr_beside_an_operator_is_healed,
    restarts::a_router_that_a_reload_makes_the_operators_stays_theirs,
    restarts::a_node_goes_over_to_frr_and_back,
];

/// FRR speaks for Fairway, and something breaks.
///
/// Words: frr8 and frr10 choose the release of FRR that speaks for Fairway, all others the stories with
/// one of them in their name.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
}

fn main() -> ExitCode {
    suite::main("frr_faults", run)
}

/// Whether every promise was kept.
fn run(options: Options) -> Result<bool> {
    let suite = Suite::new("frr-faults", options.suite).as_root().threads(THREADS);
    let mut suite = suite.several_words(Several::Any);
    for story in STORIES {
        for &release in RELEASES {
            let run = move |cell: &suite::Cell| {
                let directory = cell.directory.clone();
                (story.run)(&Cell { number: cell.number, release, directory })
            };
            let place = RouterKind::Frr(release).word();
            suite.add(Case::new(story.name.replace('_', " "), run).at(&[place]));
        }
    }
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    for release in RELEASES {
        let kind = RouterKind::Frr(*release);
        println!("{} {}", kind.word(), kind.version()?);
    }
    Ok(chosen.run()?.all_passed())
}
