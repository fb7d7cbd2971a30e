//! Mistakes in what a BMP station is sent, and in what somebody who watches a node is shown.

use super::{Subject, Variant, variant};

pub(crate) const BMP: Subject = Subject {
    folder: "crates/bmp",
    package: "fairway-bmp",
    is_story: false,
    rounds: &[&["station::"]],
    seeds: "2000",
    variants: STATION,
};

pub(crate) const WATCHED: Subject = Subject {
    folder: "crates/show",
    package: "fairway-show",
    is_story: false,
    rounds: &[&["overview::"]],
    seeds: "1",
    variants: EVENTS,
};

const MACHINE: &str = "station.rs";
const EVENT_LOG: &str = "overview/event_log.rs";

const STATION: &[Variant] = &[
    variant(
        "bmp: a station that takes nothing is waited for without end",
        MACHINE,
        "Link::Up(_) if self.stalls_at().is_some_and(|at| at <= now) => {",
        "Link::Up(_) if self.stalls_at().is_some_and(|at| at < Instant::ZERO) => {",
    ),
    variant(
        "bmp: what waits for a station has no bound",
        MACHINE,
        "if queued_bytes > QUEUE_BYTES_MAX {",
        "if queued_bytes == usize::MAX {",
    ),
    variant(
        "bmp: a new connection goes on where the last one ended",
        MACHINE,
        "        (self.head, self.queue, self.tables) = Default::default();\n",
        "        self.tables = None;\n",
    ),
    variant(
        "bmp: what was pushed before the tables comes after them",
        MACHINE,
        "            self.head.append(&mut self.queue);\n",
        "",
    ),
    variant(
        "bmp: a second chunk is written before the first has gone",
        MACHINE,
        "if !self.is_up() || self.writing_since.is_some() {",
        "if !self.is_up() {",
    ),
    variant(
        "bmp: the wait between attempts does not grow",
        MACHINE,
        "        self.failures = self.failures.saturating_add(1);\n        self.link",
        "        self.link",
    ),
    variant(
        "bmp: the wait between attempts grows for ever",
        MACHINE,
        "self.rng.jittered(doubled.min(RECONNECT_WAIT_MAX))",
        "self.rng.jittered(doubled)",
    ),
];

const EVENTS: &[Variant] = &[
    variant(
        "watching: an event that is known is told again when its age is rounded",
        EVENT_LOG,
        "at.abs_diff(event.at_epoch_seconds) <= JITTER_SECONDS",
        "*at == event.at_epoch_seconds",
    ),
    variant(
        "watching: events have no bound",
        EVENT_LOG,
        "        self.events.truncate(Self::EVENTS_MAX);\n",
        "",
    ),
    variant(
        "watching: a session that was down between two looks never was",
        EVENT_LOG,
        "if resets.contains_key(&event.about) || !(is_same || is_old) {",
        "if !(is_same || is_old) {",
    ),
];
