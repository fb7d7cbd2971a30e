//! A BFD session as text, in FRR's lines.

use std::fmt::Write;
use std::time::Duration;

use fairway_ground::BfdPath;
use fairway_seam::bfd::{BfdSessionView, BfdView, Drops, Realtime, State};

use crate::time::{milliseconds, spelled};

/// The first lines as FRR prints them, without what has its own line.
fn head(session: &BfdSessionView) -> String {
    let path = BfdPath { local: session.local, ..session.path };
    format!("\t{path}\n")
}

fn interval(duration: Option<Duration>) -> String {
    match duration.filter(|it| !it.is_zero()) {
        Some(duration) => format!("{}ms", milliseconds(duration)),
        None => "disabled".to_owned(),
    }
}

/// Everything but the counters.
pub(super) fn one(session: &BfdSessionView) -> String {
    let mut text = head(session);
    let mut line = |tabs: usize, words: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{:\t<tabs$}{words}", "");
    };
    line(2, format_args!("ID: {}", session.local_discriminator));
    line(2, format_args!("Remote ID: {}", session.remote_discriminator));
    line(2, format_args!("{} mode", if session.passive { "Passive" } else { "Active" }));
    if session.path.multihop {
        line(2, format_args!("Minimum TTL: {}", session.minimum_ttl));
    }
    line(2, format_args!("Status: {}", session.state));
    match session.state {
        State::Down => line(2, format_args!("Downtime: {}", spelled(session.since))),
        State::Up => line(2, format_args!("Uptime: {}", spelled(session.since))),
        State::AdminDown | State::Init => {}
    }
    line(2, format_args!("Diagnostics: {}", session.diagnostic));
    line(2, format_args!("Remote diagnostics: {}", session.remote_diagnostic));
    line(2, format_args!("Peer Type: dynamic"));
    let round_trip =
        session.round_trip.map_or([Duration::ZERO; 3], |it| [it.min, it.average, it.max]);
    let [min, average, max] = round_trip.map(|it| it.as_micros());
    line(2, format_args!("RTT min/avg/max: {min}/{average}/{max} usec"));
    line(2, format_args!("Local timers:"));
    line(3, format_args!("Detect-multiplier: {}", session.detect_multiplier));
    line(3, format_args!("Receive interval: {}", interval(Some(session.receive_interval))));
    line(3, format_args!("Transmission interval: {}", interval(Some(session.transmit_interval))));
    line(3, format_args!("Echo receive interval: {}", interval(session.echo_interval)));
    line(3, format_args!("Echo transmission interval: {}", interval(session.agreed_echo_interval)));
    let second = Duration::from_secs(1);
    let (receive, transmit, echo, multiplier) = match session.remote_timers {
        Some(it) => {
            let echo = Some(it.echo_receive_interval);
            (it.receive_interval, it.transmit_interval, echo, it.detect_multiplier)
        }
        None => (second, second, None, 3),
    };
    line(2, format_args!("Remote timers:"));
    line(3, format_args!("Detect-multiplier: {multiplier}"));
    line(3, format_args!("Receive interval: {}", interval(Some(receive))));
    line(3, format_args!("Transmission interval: {}", interval(Some(transmit))));
    line(3, format_args!("Echo receive interval: {}", interval(echo)));
    line(2, format_args!("Agreed:"));
    line(3, format_args!("Transmission interval: {}", interval(session.agreed_transmit_interval)));
    line(3, format_args!("Detection time: {}", interval(session.detection_time)));
    if let Some(kind) = session.authentication {
        line(2, format_args!("Authentication: {kind}"));
    }
    text.push_str(&trouble(session));
    text
}

/// What failed here, and which packets were dropped; usually empty.
fn trouble(session: &BfdSessionView) -> String {
    let mut text = String::new();
    let counters = session.counters;
    if counters.stalls > 0 {
        let put_off = counters.detections_put_off;
        let _ =
            writeln!(text, "\t\tOwn stalls: {}, detections put off: {put_off}", counters.stalls);
    }
    if let Some(dropped) = dropped(&session.drops) {
        let _ = writeln!(text, "\t\tDropped packets: {dropped}");
    }
    text
}

fn dropped(drops: &Drops) -> Option<String> {
    let some = drops.iter().filter(|(_, count)| *count > 0);
    let reasons: Vec<String> = some.map(|(reason, count)| format!("{reason} {count}")).collect();
    (!reasons.is_empty()).then(|| reasons.join(", "))
}

/// The counters.
pub(super) fn counters(session: &BfdSessionView) -> String {
    let counters = session.counters;
    let rows = [
        ("Control packet input", counters.control_in, " packets"),
        ("Control packet output", counters.control_out, " packets"),
        ("Echo packet input", counters.echo_in, " packets"),
        ("Echo packet output", counters.echo_out, " packets"),
        ("Session up events", counters.ups, ""),
        ("Session down events", counters.downs, ""),
        ("Zebra notifications", counters.events, ""),
        ("Tx fail packet", counters.transmit_failures, ""),
    ];
    let mut text = head(session);
    for (title, count, unit) in rows {
        let _ = writeln!(text, "\t\t{title}: {count}{unit}");
    }
    text + &trouble(session)
}

/// One line per session.
pub(super) fn brief(sessions: &[&BfdSessionView]) -> String {
    let row = |columns: [&str; 4]| {
        let [session, local, peer, status] = columns;
        format!("{session:<11}{local:<41}{peer:<40}{status:<15}\n")
    };
    let heads = ["SessionId", "LocalAddress", "PeerAddress", "Status"];
    let lines = ["=========", "============", "===========", "======"];
    let mut text = format!("Session count: {}\n{}{}", sessions.len(), row(heads), row(lines));
    for session in sessions {
        let local = session.local.map_or_else(|| "unknown".to_owned(), |it| it.to_string());
        let status = match session.state {
            State::AdminDown => "admin-down".to_owned(),
            state => state.to_string(),
        };
        text.push_str(&row([
            &session.local_discriminator.to_string(),
            &local,
            &session.path.remote.to_string(),
            &status,
        ]));
    }
    text
}

/// What holds for all sessions, if there is anything to report.
pub(super) fn node(view: &BfdView) -> String {
    let mut text = String::new();
    match &view.realtime {
        Realtime::Off => {}
        Realtime::Granted => text.push_str("Realtime: granted\n"),
        Realtime::Refused(why) => {
            let _ = writeln!(text, "Realtime: refused: {why}");
        }
    }
    if view.ended {
        text.push_str(
            "Internal error: BFD has stopped and no path is monitored until it restarts; please \
             report it with the log\n",
        );
    }
    for trouble in &view.trouble {
        let _ = writeln!(text, "Trouble: {trouble}");
    }
    if let Some(dropped) = dropped(&view.drops) {
        let _ = writeln!(text, "Packets that match no session: {dropped}");
    }
    text
}
