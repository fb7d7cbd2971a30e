//! I6: a process may end before any of its actions. Started again, it reaches the same result.

#![allow(clippy::panic)] // What fails here fails the test.

use std::time::Duration;

use fairway_cluster_simulation::{Misbehaviour, Op, Schedule, Step, Verdict, Who, shrink};

/// Longer than the cool-down of an address, which restarts with a new leader: a controller's memory of
/// it ends then, and is only a preference.
const PAUSE: Duration = Duration::from_secs(120);

/// A day of few changes, with time between them: the assignment of addresses must not depend on
/// which process is faster.
fn day(first: Option<Op>) -> Schedule {
    let ops = [
        Op::Peer { number: 0, variant: 0 },
        Op::Node { number: 0, variant: 0 },
        Op::Node { number: 1, variant: 0 },
        Op::Advertisement { number: 0, variant: 0 },
        Op::Pool { number: 0, variant: 0 },
        Op::Service { number: 0, variant: 0 },
        Op::Endpoints { number: 0, nodes: 3 },
        Op::Service { number: 1, variant: 3 },
        Op::Endpoints { number: 1, nodes: 1 },
        Op::Pool { number: 1, variant: 0 },
        Op::Service { number: 0, variant: 1 },
        Op::Service { number: 2, variant: 3 },
        Op::Endpoints { number: 2, nodes: 2 },
        Op::NoService { number: 1 },
        Op::Service { number: 3, variant: 5 },
        Op::Endpoints { number: 3, nodes: 2 },
    ];
    let steps = ops.into_iter().zip(1..);
    let steps = steps.map(|(op, number)| Step { at: PAUSE * number, op });
    let first = first.map(|op| Step { at: Duration::from_millis(500), op });
    Schedule { seed: 7, nodes: 2, controllers: 1, steps: first.into_iter().chain(steps).collect() }
}

fn run(first: Option<Op>) -> Verdict {
    let verdict = shrink::verdict(&day(first), &Misbehaviour::default(), true);
    if let Some((at, violation)) = &verdict.violation {
        panic!("{first:?}\n{}\nafter {at:?}: {violation}", verdict.story.join("\n"));
    }
    verdict
}

/// Every `step`th action of a process.
fn crash_everywhere(who: Who, step: usize) -> u64 {
    let undisturbed = run(None).outcome;
    let mut points = 0;
    for actions in (0..).step_by(step) {
        let verdict = run(Some(Op::CrashAt { who, actions, seconds: 1 }));
        if !verdict.story.iter().any(|line| line.contains("crashes between two actions")) {
            return points;
        }
        points += 1;
        assert_eq!(verdict.outcome, undisturbed, "{who} crashed before action {actions}");
    }
    points
}

#[test]
fn a_controller_may_crash_before_any_action() {
    let points = crash_everywhere(Who::Controller(0), 3);
    assert!(points > 60, "only {points} points");
}

#[test]
fn a_speaker_may_crash_before_any_action() {
    let points = crash_everywhere(Who::Speaker(0), 1);
    assert!(points > 30, "only {points} points");
}
