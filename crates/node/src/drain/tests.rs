//! A node leaves and returns, on a virtual clock.

use super::*;

const EPOCH_SECONDS: u64 = 1_795_192_683;

/// This many milliseconds after the process started.
fn at(milliseconds: u64) -> Moment {
    Moment {
        epoch_seconds: EPOCH_SECONDS + milliseconds / 1_000,
        monotonic: Instant::from_micros(milliseconds * 1_000),
    }
}

fn begin(seconds: u64) -> DrainOrder {
    DrainOrder::Begin { wait: Duration::from_secs(seconds) }
}

fn draining(since: u64, until: u64) -> DrainStatus {
    DrainStatus::Draining {
        since_epoch_seconds: EPOCH_SECONDS + since,
        until_epoch_seconds: EPOCH_SECONDS + until,
    }
}

fn drained(since: u64) -> DrainStatus {
    DrainStatus::Drained { since_epoch_seconds: EPOCH_SECONDS + since }
}

#[test]
fn a_node_asks_to_be_left_then_withdraws_then_comes_back() {
    let mut drain = Drain::default();
    assert_eq!(drain.obey(at(1_000), begin(30)), DrainStep::Began);
    assert_eq!((drain.state(), drain.status()), (DrainState::Draining, draining(1, 31)));
    assert_eq!(drain.next_deadline(), Some(at(31_000).monotonic));
    assert_eq!(drain.tick(at(30_999)), DrainStep::None);
    assert_eq!(drain.tick(at(31_000)), DrainStep::Drained);
    assert_eq!((drain.state(), drain.status()), (DrainState::Drained, drained(31)));
    assert_eq!(drain.next_deadline(), None);
    assert_eq!(drain.tick(at(99_000)), DrainStep::None);
    assert_eq!(drain.obey(at(100_000), DrainOrder::Undo), DrainStep::Undone);
    assert_eq!(drain, Drain::default());
}

#[test]
fn a_second_order_moves_the_end_of_the_wait_and_not_its_beginning() {
    let mut drain = Drain::default();
    drain.obey(at(0), begin(30));
    assert_eq!(drain.obey(at(10_000), begin(60)), DrainStep::Moved);
    assert_eq!(drain.status(), draining(0, 70));
    assert_eq!(drain.tick(at(31_000)), DrainStep::None, "the first deadline is void");
    assert_eq!(drain.obey(at(40_000), begin(0)), DrainStep::Drained);
    assert_eq!(drain.status(), drained(40));
}

#[test]
fn what_is_so_already_is_no_step() {
    let mut drain = Drain::default();
    assert_eq!(drain.obey(at(0), DrainOrder::Undo), DrainStep::None);
    assert_eq!(drain.obey(at(0), begin(0)), DrainStep::Drained, "without a wait, immediately");
    let before = drain;
    assert_eq!(drain.obey(at(5_000), begin(30)), DrainStep::None);
    assert_eq!(drain, before, "routes are not announced just to be withdrawn again");
}

#[test]
fn a_wait_can_be_undone_before_its_end() {
    let mut drain = Drain::default();
    drain.obey(at(0), begin(30));
    assert_eq!(drain.obey(at(29_999), DrainOrder::Undo), DrainStep::Undone);
    assert_eq!(drain.tick(at(31_000)), DrainStep::None);
    assert_eq!(drain.state(), DrainState::InService);
}

#[test]
fn a_restart_goes_on_with_the_rest_of_the_wait() {
    // The process has just started: its monotonic clock has no relation to the time before.
    let now = |seconds: u64| Moment {
        epoch_seconds: EPOCH_SECONDS + seconds,
        monotonic: Instant::from_micros(7),
    };
    let by_command = |command| DrainRecord { command, ..DrainRecord::default() };
    let rest = |status, seconds| {
        let drain = Drain::resume(now(seconds), by_command(status));
        drain.next_deadline().map(|deadline| deadline.since(now(0).monotonic).as_secs())
    };
    assert_eq!(rest(draining(100, 130), 110), Some(20));
    assert_eq!(rest(draining(100, 130), 50), Some(30), "the clock was set back");
    assert_eq!(rest(draining(130, 100), 0), None, "no daemon writes that");
    for over in [130, 5_000] {
        let drain = Drain::resume(now(over), by_command(draining(100, 130)));
        assert_eq!((drain.status(), drain.next_deadline()), (drained(over), None));
    }
    for status in [DrainStatus::InService, drained(3)] {
        let drain = Drain::resume(now(9), by_command(status));
        assert_eq!((drain.status(), drain.next_deadline()), (status, None));
    }
}

/// The wait of the Node's mark.
fn mark(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

#[test]
fn a_mark_takes_a_node_out_for_as_long_as_it_is_there() {
    let mut drain = Drain::default();
    assert_eq!(drain.follow_mark(at(0), None), DrainStep::None);
    assert_eq!(drain.follow_mark(at(1_000), mark(30)), DrainStep::Began);
    assert_eq!(
        drain.follow_mark(at(9_000), mark(30)),
        DrainStep::None,
        "another change of the Node"
    );
    assert_eq!(drain.status(), draining(1, 31));
    assert_eq!(drain.follow_mark(at(11_000), mark(60)), DrainStep::Moved);
    assert_eq!(drain.status(), draining(1, 71));
    assert_eq!(
        drain.obey(at(12_000), DrainOrder::Undo),
        DrainStep::None,
        "the mark is not the operator's order"
    );
    assert_eq!(drain.tick(at(71_000)), DrainStep::Drained);
    assert_eq!(drain.follow_mark(at(80_000), mark(5)), DrainStep::None);
    assert_eq!(drain.follow_mark(at(99_000), None), DrainStep::Undone);
    assert_eq!(drain, Drain::default());
}

#[test]
fn a_node_is_out_of_service_while_one_of_two_wants_it() {
    let mut drain = Drain::default();
    drain.follow_mark(at(0), mark(600));
    assert_eq!(drain.obey(at(10_000), begin(30)), DrainStep::Moved);
    assert_eq!(drain.status(), draining(0, 40), "the shorter wait wins");
    assert_eq!(drain.next_deadline(), Some(at(40_000).monotonic));
    assert_eq!(drain.tick(at(40_000)), DrainStep::Drained);
    assert_eq!(drain.obey(at(50_000), DrainOrder::Undo), DrainStep::None, "the mark is there");
    assert_eq!(drain.status(), drained(40), "and withdrawn routes stay withdrawn");
    assert_eq!(drain.next_deadline(), None);
    assert_eq!(drain.obey(at(60_000), begin(30)), DrainStep::None);
    assert_eq!(
        drain.follow_mark(at(70_000), None),
        DrainStep::None,
        "now the operator's drain holds"
    );
    assert_eq!(drain.status(), drained(60));
    assert_eq!(drain.obey(at(80_000), DrainOrder::Undo), DrainStep::Undone);
}

#[test]
fn taking_one_wait_back_leaves_the_other() {
    let mut drain = Drain::default();
    drain.obey(at(0), begin(30));
    assert_eq!(drain.follow_mark(at(10_000), mark(60)), DrainStep::None, "the first one ends it");
    assert_eq!(drain.obey(at(20_000), DrainOrder::Undo), DrainStep::Moved);
    assert_eq!(drain.status(), draining(10, 70));
}

#[test]
fn a_mark_that_was_there_before_a_restart_goes_on_where_it_was() {
    let restart = |record, seconds: u64| Drain::resume(at(seconds * 1_000), record);
    let mut drain = Drain::default();
    drain.follow_mark(at(0), mark(30));
    let mut second = restart(drain.record(), 10);
    assert_eq!(second.follow_mark(at(12_000), mark(30)), DrainStep::None);
    assert_eq!(second.status(), draining(0, 30), "no second wait");
    assert_eq!(second.tick(at(30_000)), DrainStep::Drained);
    let mut third = restart(second.record(), 500);
    assert_eq!(third.state(), DrainState::Drained, "whether or not the Node is known yet");
    assert_eq!(third.follow_mark(at(501_000), mark(30)), DrainStep::None);
    let mut fourth = restart(third.record(), 900);
    assert_eq!(fourth.follow_mark(at(901_000), None), DrainStep::Undone, "it went meanwhile");
}
