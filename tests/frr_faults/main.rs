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

const BOTH: &[Release] = &[Release::Bookworm, Release::Trixie];
const OLD: &[Release] = &[Release::Bookworm];

/// The input of a story.
pub(crate) struct Cell {
    number: usize,
    release: Release,
    directory: PathBuf,
}

/// A story, and the releases of FRR that it runs with.
struct Story {
    name: &'static str,
    releases: &'static [Release],
    run: fn(&Cell) -> Result<()>,
}

macro_rules! stories {
    ($($releases:ident $module:ident::$name:ident,)*) => {
        &[$(Story { name: stringify!($name), releases: $releases, run: $module::$name },)*]
    };
}

const STORIES: &[Story] = stories![
    BOTH breakage::frr_that_comes_later_is_told_all,
    BOTH breakage::bgpd_killed_amid_five_hundred_changes_is_told_all_again,
    OLD breakage::bgpd_killed_while_it_hangs_is_told_all_again,
    BOTH breakage::a_daemon_that_hangs_is_named_and_told_later,
    BOTH breakage::a_load_that_was_cut_short_holds_no_peer,
    BOTH breakage::a_peer_without_a_route_says_so,
    OLD breakage::a_full_disk_delays_no_route_and_is_said,
    BOTH configuration::a_bad_line_of_extras_takes_no_other_along,
    BOTH configuration::one_bad_line_of_many_is_named,
    OLD configuration::broken_extras_delay_no_route,
    BOTH configuration::a_hand_edit_is_healed,
    BOTH configuration::what_others_configured_stays,
    BOTH operator::an_operators_bgp_stays_as_it_was,
    BOTH operator::peers_behind_the_default_route_come_up,
    BOTH operator::an_operators_neighbor_is_never_taken_over,
    BOTH operator::a_second_fairway_stands_aside,
    BOTH operator::a_second_fairway_beside_an_operator_stands_aside,
    BOTH operator::a_router_that_became_the_operators_stays_theirs,
    BOTH operator::the_first_contact_is_known_before,
    BOTH operator::what_is_forgotten_leaves_nothing,
    BOTH operator::extras_go_with_their_config_map,
    BOTH operator::names_of_an_earlier_version_are_taken_over,
    BOTH operators::six_operators_get_back_what_they_had,
    BOTH operators::files_of_single_daemons_are_given_back,
    BOTH edits::the_operators_sessions_survive_a_hundred_edits,
    BOTH restarts::fairway_killed_leaves_frr_speaking,
    OLD restarts::fairway_ended_leaves_frr_speaking,
    OLD restarts::what_went_meanwhile_is_withdrawn_and_nothing_else,
    OLD restarts::a_reload_of_frr_is_healed,
    OLD restarts::a_reload_of_frr_beside_an_operator_is_healed,
    OLD restarts::a_router_that_a_reload_makes_the_operators_stays_theirs,
    OLD restarts::a_node_goes_over_to_frr_and_back,
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
        for &release in story.releases {
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
    for release in BOTH {
        let kind = RouterKind::Frr(*release);
        println!("{} {}", kind.word(), kind.version()?);
    }
    Ok(chosen.run()?.all_passed())
}
