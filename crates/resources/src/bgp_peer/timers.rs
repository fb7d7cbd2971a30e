//! The timers of a BGPPeer: hold, keepalive, connect, and how long routes outlive a session.
//!
//! Knows nothing else of the peer; `parse` calls it.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use fairway_ground::{GracefulRestart, HoldTime};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::field_path::FieldPath;
use crate::fields::GoDuration;
use crate::report::Report;

/// The seconds between connection attempts that `connectTime` accepts.
const CONNECT_SECONDS: RangeInclusive<u64> = 1..=65_535;

/// The field that enables it.
const ENABLE: &str = "spec.enableGracefulRestart";

/// `spec.gracefulRestart`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawGracefulRestart {
    /// How long the peer keeps our routes, from 1s to 4095s. Default: 120s.
    restart_time: Option<GoDuration>,
    /// How long they are used after that as a last resort, up to 16777215s. Default: 0s.
    long_lived_stale_time: Option<GoDuration>,
}

/// The hold time to offer and our keepalive interval. They are in whole seconds; if one of them is
/// not set, it follows from the other: the hold time is three keepalive intervals.
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
        report.warning(path, "turns the hold timer off: a dead router is never detected");
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
        report.warning(
            path,
            format_args!("is rounded down to whole seconds: {} s", duration.as_secs()),
        );
    }
    duration.as_secs()
}

/// The maximum time between two connection attempts.
pub(super) fn connect_interval(
    raw: Option<GoDuration>,
    report: &mut Report<'_>,
) -> Option<Duration> {
    let path = FieldPath::of("spec.connectTime");
    let seconds: u64 = seconds_within(CONNECT_SECONDS, raw?, &path, report)?;
    Some(Duration::from_secs(seconds))
}

/// How long routes outlive a session, if they do.
pub(super) fn graceful_restart(
    enabled: Option<bool>,
    raw: Option<RawGracefulRestart>,
    report: &mut Report<'_>,
) -> Option<GracefulRestart> {
    let path = FieldPath::of("spec.gracefulRestart");
    let is_enabled = enabled == Some(true);
    if raw.is_some() && !is_enabled && !report.is_faulty(&FieldPath::of(ENABLE)) {
        report.warning(&path, format_args!("has no effect without {ENABLE}: true"));
    }
    let raw = raw.unwrap_or_default();
    let default = GracefulRestart::default();
    let restart_time = raw.restart_time.map_or(Some(default.restart_time_seconds()), |given| {
        let allowed = 1..=GracefulRestart::RESTART_TIME_SECONDS_MAX;
        seconds_within(allowed, given, &path.key("restartTime"), report)
    });
    let stale_time = raw.long_lived_stale_time;
    let stale_time = stale_time.map_or(Some(default.long_lived_stale_time_seconds()), |given| {
        let allowed = 0..=GracefulRestart::LONG_LIVED_STALE_TIME_SECONDS_MAX;
        seconds_within(allowed, given, &path.key("longLivedStaleTime"), report)
    });
    GracefulRestart::new(restart_time?, stale_time?).filter(|_| is_enabled)
}

/// A duration that must be in whole seconds and within the range.
fn seconds_within<T>(
    allowed: RangeInclusive<T>,
    duration: GoDuration,
    path: &FieldPath,
    report: &mut Report<'_>,
) -> Option<T>
where
    T: TryFrom<u64> + PartialOrd + Display,
{
    let GoDuration(duration) = duration;
    let seconds = T::try_from(duration.as_secs()).ok().filter(|it| allowed.contains(it));
    if seconds.is_some() && duration.subsec_nanos() == 0 {
        return seconds;
    }
    let shown = if duration.is_zero() { "0s".to_owned() } else { format!("{duration:?}") };
    report.fault(
        path,
        format_args!(
            "{shown} is not allowed; expected whole seconds from {}s to {}s",
            allowed.start(),
            allowed.end()
        ),
    );
    None
}
