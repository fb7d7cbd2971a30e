//! A node leaves and comes back, on a clock of its own.

use super::*;

const EPOCH_SECONDS: u64 = 1_795_192_683;

/// So many milliseconds after a process began.
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
    assert_eq!(drain.obey(at(0), begin(0)), DrainStep::Drained, "without a wait, at once");
    let before = drain;
    assert_eq!(drain.obey(at(5_000), begin(30)), DrainStep::None);
    assert_eq!(drain, before, "nothing is announced again to be withdrawn again");
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
    // The process has just begun: its monotonic clock says nothing of the time before.
    let now = |seconds: u64| Moment {
        epoch_seconds: EPOCH_SECONDS + seconds,
        monotonic: Instant::from_micros(7),
    };
    let rest = |status, seconds| {
        let drain = Drain::resume(now(seconds), status);
        drain.next_deadline().map(|deadline| deadline.since(now(0).monotonic).as_secs())
    };
    assert_eq!(rest(draining(100, 130), 110), Some(20));
    assert_eq!(rest(draining(100, 130), 50), Some(30), "the clock was set back");
    assert_eq!(rest(draining(130, 100), 0), None, "no daemon wrote that");
    for over in [130, 5_000] {
        let drain = Drain::resume(now(over), draining(100, 130));
        assert_eq!((drain.status(), drain.next_deadline()), (drained(over), None));
    }
    for status in [DrainStatus::InService, drained(3)] {
        assert_eq!(Drain::resume(now(9), status), Drain { status, deadline: None });
    }
}

#[test]
fn the_file_holds_what_programs_are_shown() {
    for status in [DrainStatus::InService, draining(1, 31), drained(31)] {
        assert_eq!(decode(&encode(status)).unwrap(), status);
    }
    let text = encode(draining(1, 31));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected = serde_json::json!({
        "version": 1,
        "state": "draining",
        "sinceEpochSeconds": EPOCH_SECONDS + 1,
        "untilEpochSeconds": EPOCH_SECONDS + 31,
    });
    assert_eq!(value, expected);
    for bad in [
        "",
        r#"{"state":"drained","sinceEpochSeconds":1}"#,
        r#"{"version":2,"state":"drained","sinceEpochSeconds":1}"#,
        r#"{"version":1,"state":"gone"}"#,
        r#"{"version":1,"state":"draining","sinceEpochSeconds":1}"#,
    ] {
        assert!(decode(bad).is_err(), "{bad}");
    }
}
