//! The timers of a BGPPeer: hold, keepalive, connect.
//!
//! Knows nothing else of the peer; `parse` calls it.

use std::time::Duration;

use fairway_sessions::types::HoldTime;

use crate::resources::field_path::FieldPath;
use crate::resources::fields::GoDuration;
use crate::resources::report::Report;

/// The seconds between attempts to connect that `connectTime` may ask for.
const CONNECT_SECONDS_MAX: u64 = 65_535;

/// The hold time to offer and our keepalive interval. Seconds count; what one timer leaves open,
/// the other decides: the hold time is three keepalive intervals.
pub(super) fn timers(
    hold: Option<GoDuration>,
    keepalive: Option<GoDuration>,
    report: &mut Report<'_>,
) -> Option<(HoldTime, Option<Duration>)> {
    let hold_path = FieldPath::of("spec.holdTime");
    let keepalive_path = FieldPath::of("spec.keepaliveTime");
    let hold = hold.map(|duration| whole_seconds(duration, &hold_path, report));
    let keepalive = keepalive.map(|duration| whole_seconds(duration, &keepalive_path, report));
    let (path, seconds) = match (hold, keepalive) {
        (None, None) => return Some((HoldTime::DEFAULT, None)),
        (Some(hold), _) => (&hold_path, hold),
        (None, Some(keepalive)) => (&keepalive_path, keepalive.saturating_mul(3)),
    };
    let hold_time = match HoldTime::from_seconds(seconds) {
        Ok(hold_time) => hold_time,
        Err(error) => {
            report.fault(path, error);
            return None;
        }
    };
    if hold_time == HoldTime::OFF {
        report.warning(path, "turns the hold timer off: a router that is gone is never noticed");
        if hold.is_some() && keepalive.is_some_and(|seconds| seconds > 0) {
            report.fault(&keepalive_path, "is more than the hold time of 0 s; leave it out");
        }
        return Some((hold_time, None));
    }
    match keepalive {
        Some(0) => {
            report.warning(
                &keepalive_path,
                "0 s would let the session expire; a third of the hold time is used",
            );
            Some((hold_time, None))
        }
        Some(seconds) if seconds > u64::from(hold_time.seconds()) => {
            report.fault(
                &keepalive_path,
                format_args!(
                    "{seconds} s is more than the hold time of {hold} s; expected at most {hold} \
                     s, usually a third of it",
                    hold = hold_time.seconds()
                ),
            );
            None
        }
        seconds => Some((hold_time, seconds.map(Duration::from_secs))),
    }
}

fn whole_seconds(duration: GoDuration, path: &FieldPath, report: &mut Report<'_>) -> u64 {
    let GoDuration(duration) = duration;
    if duration.subsec_nanos() != 0 {
        report.warning(path, format_args!("only whole seconds count: {} s", duration.as_secs()));
    }
    duration.as_secs()
}

/// The most time between two attempts to connect.
pub(super) fn connect_interval(
    raw: Option<GoDuration>,
    report: &mut Report<'_>,
) -> Option<Duration> {
    let GoDuration(duration) = raw?;
    let is_whole = duration.subsec_nanos() == 0;
    if is_whole && (1..=CONNECT_SECONDS_MAX).contains(&duration.as_secs()) {
        return Some(duration);
    }
    report.fault(
        &FieldPath::of("spec.connectTime"),
        format_args!(
            "{duration:?} is not allowed; expected whole seconds from 1s to {CONNECT_SECONDS_MAX}s"
        ),
    );
    None
}
