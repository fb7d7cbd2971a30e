//! Either speaker restarts, at any time: the other loses no prefix before its time.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::super::faults::Faults;
use super::super::helper::Gone;
use super::super::process::{Found, Routes};
use super::super::restart::{Ending, Restart, routes_that_stay};
use super::super::settings::{drawn_with_restarts, speaker};
use super::super::world::World;
use super::{BOUND, Kind, assert_all_seeds, live_through, number, seeds};
use fairway_ground::{Community, GracefulRestart, Prefix, Rng};

const RESTARTS: Kind = Kind {
    name: "restarts",
    world: |seed, keep_log| {
        let mut rng = Rng::seeded(seed ^ 0x4724_8538);
        let configs = drawn_with_restarts(&mut rng);
        let mut world = World::seeded(seed, configs, Faults::RESTARTS, keep_log);
        world.is_plain = rng.next_u64().is_multiple_of(3);
        world
    },
};

/// A tenth of what `make sim` asks for: these take longer.
#[test]
fn restarts_lose_nothing_before_its_time() {
    assert_all_seeds(RESTARTS, (seeds::asked(2_000) / 10).max(seeds::asked(2_000).min(2_000)));
}

/// What never happens is not tested.
#[test]
fn among_the_schedules_is_every_way_to_lose_a_prefix_and_to_keep_it() {
    let mut seen = BTreeSet::new();
    for seed in 0..120 {
        let mut world = (RESTARTS.world)(seed, false);
        live_through(&mut world);
        for side in &world.sides {
            seen.extend(side.helper.gone.iter().map(|(_, gone)| format!("{gone:?}")));
            seen.extend(side.helper.is_kept.iter().map(|kept| format!("{kept:?}")));
        }
    }
    let expected = [
        "Cleared",
        "ForGood",
        "LostTwice",
        "NotForwarded",
        "NotSaidAgain",
        "SaidAgain",
        "SaidAgainAfterTwoLosses",
        "TimeIsOver",
        "Withdrawn",
    ];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
}

/// What is configured on a side: what stays, and these.
fn routes(others: &[(u32, u32)]) -> Routes {
    let route = |(number, community): &(u32, u32)| {
        (Prefix::from_ipv4_bits(0x0A02_0000 + number, 32).unwrap(), Community(*community))
    };
    others.iter().map(route).chain(routes_that_stay()).collect()
}

/// Two speakers that keep each other's routes for 20 s.
fn pair(byte_by_byte: bool) -> World {
    let faults = Faults { delay_max_ms: 0, pieces_max: 1, byte_by_byte, ..Faults::NONE };
    let configs = [(1, 1), (2, 2)].map(|(number, router_id)| {
        let mut config = speaker(number, router_id);
        config.graceful_restart = GracefulRestart::new(20, 0);
        config
    });
    World::seeded(7, configs, faults, false)
}

/// The whole life of a session: both dial, OPENs, KEEPALIVEs, UPDATEs, End-of-RIB, a steady time, a full
/// refresh, a withdrawal, a change, a NOTIFICATION, and another session.
fn live(world: &mut World) {
    world.configure(0, routes(&[(1, 1), (2, 1)]));
    world.configure(1, routes(&[(3, 1), (4, 1)]));
    world.run_for(Duration::from_secs(7));
    world.ask_again(0);
    world.run_for(Duration::from_millis(500));
    world.configure(0, routes(&[(2, 2)]));
    world.run_for(Duration::from_millis(500));
    world.ask_again(1);
    world.configure(1, routes(&[(4, 1), (5, 1)]));
    world.run_for(Duration::from_secs(3));
    world.clear(0);
    world.run_for(Duration::from_secs(4));
}

/// Why the neighbour may lose what the restarted side always announces.
fn excuses(ending: Ending, is_plain: bool) -> Vec<Gone> {
    let of_ending = match ending {
        Ending::PoweredOff => Some(Gone::NotForwarded),
        Ending::Left => Some(Gone::ForGood),
        _ => None,
    };
    // `clear` ends a session with a NOTIFICATION, and so does a hold timer.
    let of_plain = [Gone::ForGood, Gone::LostTwice].into_iter().filter(|_| is_plain);
    [Gone::Cleared].into_iter().chain(of_ending).chain(of_plain).collect()
}

fn assert_nothing_is_lost(restart: Restart, at: u64, byte_by_byte: bool, is_plain: bool) {
    let mut world = pair(byte_by_byte);
    world.is_plain = is_plain;
    world.restart_at = Some((at, Some(restart)));
    live(&mut world);
    world.heal_and_converge(BOUND);
    let excuses = excuses(restart.ending, is_plain);
    for (side, router) in world.sides.iter().enumerate() {
        for (prefix, gone) in &router.helper.gone {
            let is_excused = excuses.contains(gone) && (is_plain || side != restart.side);
            let stays = routes_that_stay().contains_key(prefix);
            assert!(!stays || is_excused, "side {side} lost {prefix}: {gone:?}");
        }
    }
}

/// Before each event of a life, each side restarts in each way.
fn restart_everywhere(byte_by_byte: bool, is_plain: bool) {
    let mut undisturbed = pair(byte_by_byte);
    live(&mut undisturbed);
    undisturbed.assert_converged();
    let mut count = 0;
    for at in 0..undisturbed.steps {
        for (side, ending) in [0, 1].iter().flat_map(|side| Ending::ALL.map(|it| (*side, it))) {
            let after = Duration::from_millis(at % 5 * 400);
            let silence = Duration::from_millis(at % 3 * 500);
            let restart = Restart { side, ending, after, found: Found::Everything, silence };
            let check = || assert_nothing_is_lost(restart, at, byte_by_byte, is_plain);
            let outcome = catch_unwind(AssertUnwindSafe(check));
            assert!(outcome.is_ok(), "before event {at}: {restart:?}");
            count += 1;
        }
    }
    println!("{count} restarts, before each of {} events", undisturbed.steps);
}

/// Before each byte in `make sim`, else before each message.
#[test]
fn a_restart_before_any_event_of_a_session_loses_nothing() {
    restart_everywhere(number("FAIRWAY_DEPTH").is_some(), false);
}

#[test]
fn nor_does_one_between_two_that_know_nothing_of_rfc_8538() {
    restart_everywhere(false, true);
}
