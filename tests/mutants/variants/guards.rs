//! Guards that are missing, held against the tests beside them, or against the story of `tests/attack` that needs each.
//! A guard bounds what comes from outside, or keeps what it does from harming others: docs/attacks.md, docs/runbook.md.

use super::{Subject, Variant, variant};

pub(super) const GUARDS: &[Subject] = &[
    Subject {
        folder: "crates/ground",
        package: "fairway-ground",
        is_story: false,
        rounds: &[&["allowance::", "printable::"]],
        seeds: "1",
        variants: OF_GROUND,
    },
    Subject {
        folder: "crates/resources",
        package: "fairway-resources",
        is_story: false,
        rounds: &[&["yaml::", "hidden::", "field_path::", "report::"]],
        seeds: "1",
        variants: OF_RESOURCES,
    },
    Subject {
        folder: "crates/daemon",
        package: "fairway-daemon",
        is_story: false,
        rounds: &[
            &["telemetry::", "host::", "source::", "admin::"],
            &["kubernetes::", "metrics::server::"],
        ],
        seeds: "1",
        variants: OF_DAEMON,
    },
    story(DAEMON, &[&["a lost volume withdraws nothing"]], OF_LOST_VOLUMES),
    story(DAEMON, &[&["a pipe in place of a file stops no reader"]], OF_PIPES),
    story(DAEMON, &[&["a lease on one file holds up no other"]], OF_LEASES),
    story(DAEMON, &[&["a pipe in the state directory does not hang the start"]], OF_STATE),
    story(DAEMON, &[&["signals that log rotation sends kill nobody"]], OF_SIGNALS),
    story(DAEMON, &[&["idle clients of the socket keep nobody waiting"]], OF_ADMIN_CLIENTS),
    story(DAEMON, &[&["trials of files"]], OF_FILES),
    story(DAEMON, &[&["trials of sockets"]], OF_SOCKETS),
    story(SESSIONS, &[&["trials of sockets"]], OF_CONNECTIONS),
    story(SESSIONS, &[&["trials of bgp"]], OF_FLAPPING),
    story(SESSIONS, &[&["memory that runs short ends the session of one neighbor"]], OF_MEMORY),
    story(BGP, &[&["silent strangers keep no neighbor out of a listen range"]], OF_RANGES),
];

const BGP: [&str; 2] = ["crates/bgp", "fairway-bgp"];
const DAEMON: [&str; 2] = ["crates/daemon", "fairway-daemon"];
const SESSIONS: [&str; 2] = ["crates/sessions", "fairway-sessions"];

/// Mistakes in a crate that a story must notice.
const fn story(
    [folder, package]: [&'static str; 2],
    rounds: &'static [&'static [&'static str]],
    variants: &'static [Variant],
) -> Subject {
    Subject { folder, package, is_story: true, rounds, seeds: "1", variants }
}

const OF_GROUND: &[Variant] = &[
    variant(
        "guards: an allowance of log lines is never used up",
        "allowance.rs",
        "            left.count = count;\n",
        "            let _ = count;\n",
    ),
    variant(
        "guards: causes of log lines are remembered without a bound",
        "allowance.rs",
        "if self.causes.len() >= CAUSES_MAX && !self.causes.contains_key(&cause) {",
        "if false {",
    ),
    variant(
        "guards: an escape sequence counts as text",
        "printable.rs",
        "    it.is_control()\n        || matches!(it,",
        "    matches!(it,",
    ),
];

const OF_RESOURCES: &[Variant] = &[
    variant(
        "guards: a number in the place of a key is quoted",
        "hidden.rs",
        "_: i64) -> Result<HiddenText, E> {\n                Err(E::custom(\"reads as a number;",
        "it: i64) -> Result<HiddenText, E> {\n                Err(E::custom(it.to_string() + \" reads as a number;",
    ),
    variant(
        "guards: text in the place of a mapping or list with keys is quoted",
        "hidden.rs",
        "_: &str) -> Result<$type, E> {\n            Err(E::custom(concat!(\"is a",
        "it: &str) -> Result<$type, E> {\n            Err(E::custom(it.to_owned() + concat!(\" is a",
    ),
    variant(
        "guards: what a missing blank made part of a name is shown",
        "field_path.rs",
        "Some(name) => format!(\"{name}...\").into(),",
        "Some(_) => key.into(),",
    ),
    variant(
        "guards: lists may be nested as deep as a file likes",
        "yaml/tree.rs",
        "if self.frames.len() >= DEPTH_MAX {",
        "if self.frames.len() >= usize::MAX {",
    ),
    variant(
        "guards: aliases expand to as many values as a file likes",
        "yaml/tree.rs",
        "if self.size.nodes > NODES_MAX {",
        "if self.size.nodes > 4 * NODES_MAX {",
    ),
    variant(
        "guards: aliases expand to as much text as a file likes",
        "yaml/tree.rs",
        "if self.size.text_bytes > TEXT_BYTES_MAX {",
        "if self.size.text_bytes > 50 * TEXT_BYTES_MAX {",
    ),
    variant(
        "guards: an object has as many findings as it has faults",
        "report.rs",
        "match known.cmp(&FAULTS_MAX) {",
        "match known.cmp(&usize::MAX) {",
    ),
];

const CLIENTS: &str = "host/clients.rs";
const FRONT_PROXY: &str = "kubernetes/aggregation/front_proxy.rs";
const SEATS: &str = "kubernetes/aggregation/seats.rs";
const CALL: &str = "kubernetes/aggregation/call.rs";
const READING: &str = "kubernetes/reading.rs";
const BODY: &str = "kubernetes/webhook/body.rs";
const METRICS: &str = "metrics/server.rs";
const ADMIN: &str = "admin/socket.rs";
const LOG: &str = "telemetry.rs";
const TRACKER: &str = "source/tracker.rs";

const OF_DAEMON: &[Variant] = &[
    variant(
        "guards: a line of the log is as long as others make it",
        LOG,
        "    if text.len() <= bytes_max {\n",
        "    if text.len() <= usize::MAX {\n",
    ),
    variant(
        "guards: text of others acts on the terminal that the log is on",
        LOG,
        "false => printable(event).into_owned(),",
        "false => event.to_owned(),",
    ),
    variant(
        "guards: text of others acts on the terminal that a log of JSON is on",
        LOG,
        "    let event = printable_json(event);\n",
        "    let event = std::borrow::Cow::Borrowed(event);\n",
    ),
    variant(
        "guards: a file that turns faulty again and again is logged each time",
        "host/findings.rs",
        "take(now, cause(finding)) else {\n                self.unlogged",
        "take(now, cause(finding)).or(Some(0)) else {\n                self.unlogged",
    ),
    variant(
        "guards: `fairway show` reads an answer that never ends",
        "admin/client.rs",
        "answers.take(length_max)",
        "answers.take(length_max << 20)",
    ),
    variant(
        "guards: a client that does not read its answer keeps its place",
        ADMIN,
        "    timeout(patience, client.write_all(reply)).await?\n",
        "    let _ = patience;\n    client.write_all(reply).await\n",
    ),
    variant(
        "guards: a second daemon takes the socket of the first",
        "admin/listen.rs",
        "Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {",
        "Ok(_) if false => {",
    ),
    variant(
        "guards: a second daemon writes into the state of the first",
        "host/saver.rs",
        "Err(TryLockError::WouldBlock) => Err(LockError(directory.to_owned())),",
        "Err(TryLockError::WouldBlock) => Ok(None),",
    ),
    variant(
        "guards: another folder without files is believed at once",
        TRACKER,
        "} else if self.is_emptied(folder) {",
        "} else if false && self.is_emptied(folder) {",
    ),
    variant(
        "guards: the first file that comes back takes the others along",
        TRACKER,
        "if self.held.contains(folder) && !self.is_back(folder, &present) {",
        "if false && self.held.contains(folder) && !self.is_back(folder, &present) {",
    ),
    variant(
        "guards: a reader that hangs counts as ready",
        "source/files.rs",
        "saturating_sub(waited_at) < ROUND_MAX",
        "saturating_sub(waited_at) < Duration::MAX",
    ),
    variant(
        "guards: a silent client of the webhook keeps its place",
        CLIENTS,
        "self.clients.iter().position(is_silent)",
        "self.clients.iter().position(|it| is_silent(it) && it.task.is_finished())",
    ),
    variant(
        "guards: a client of the webhook makes room while it is answered",
        CLIENTS,
        "it.work.is_done() && it.since",
        "it.since",
    ),
    variant(
        "guards: any certificate of the CA is the front proxy's",
        FRONT_PROXY,
        "if self.names.is_empty() {",
        "if self.names.is_empty() || !self.names.is_empty() {",
    ),
    variant(
        "guards: one user takes the places of all others at the node API",
        SEATS,
        "|| of_user >= SEATS_OF_USER_MAX",
        "",
    ),
    variant(
        "guards: draining a node takes the right to look at it",
        CALL,
        "drains(\"create\", What::Drain)",
        "drains(\"get\", What::Drain)",
    ),
    variant(
        "guards: objects that go with their definition count as deleted",
        READING,
        "if self.is_being_removed().await {",
        "if false && self.is_being_removed().await {",
    ),
    variant(
        "guards: a list of nothing counts although the definition is being removed",
        READING,
        "Ok(_) if self.is_being_removed().await => (Reply::Undefined, None),",
        "Ok(_) if false => (Reply::Undefined, None),",
    ),
    variant(
        "guards: the body of a review is as long as a client makes it",
        BODY,
        "Limited::new(body, BYTES_MAX)",
        "Limited::new(body, usize::MAX)",
    ),
    variant(
        "guards: the body of a review has as many values as a client likes",
        BODY,
        ".checked_sub(1).ok_or_else(|| E::custom(\"too many values\"))?",
        ".saturating_sub(1)",
    ),
    variant(
        "guards: any number of large bodies is in memory",
        BODY,
        "Self(Semaphore::new(LARGE_MAX))",
        "Self(Semaphore::new(LARGE_MAX << 10))",
    ),
    variant(
        "guards: a large body that never ends keeps others waiting",
        BODY,
        "timeout(LARGE_TIMEOUT, rest",
        "timeout(LARGE_TIMEOUT * 1_000, rest",
    ),
    variant(
        "guards: the newest client of metrics makes room, and is a probe",
        METRICS,
        "by_age.pop_front()",
        "by_age.pop_back()",
    ),
    variant(
        "guards: a client of metrics may take its time to ask",
        METRICS,
        ".header_read_timeout(REQUEST_TIMEOUT)",
        ".header_read_timeout(CONNECTION_TIMEOUT)",
    ),
    variant(
        "guards: a request for metrics is as long as a client makes it",
        METRICS,
        ".max_buf_size(REQUEST_LENGTH_BYTES_MAX)",
        ".max_buf_size(REQUEST_LENGTH_BYTES_MAX << 10)",
    ),
];

const OF_LOST_VOLUMES: &[Variant] = &[variant(
    "guards: a start without files knows nothing of the run before",
    "standalone/mod.rs",
    "catalog.files_in_force()",
    "<_>::default()",
)];

const OF_PIPES: &[Variant] = &[
    variant(
        "guards: a pipe is opened when somebody writes into it",
        "host/machine.rs",
        "OFlags::NONBLOCK | OFlags::NOCTTY",
        "OFlags::NOCTTY",
    ),
    variant(
        "guards: what took the place of a file before it was opened is read",
        "source/disk.rs",
        "    if let Some(no_file) = no_file(&metadata) {\n        return Err(no_file);\n    }\n",
        "",
    ),
];

const OF_LEASES: &[Variant] = &[variant(
    "guards: a file with a lease is not tried again",
    "source/disk.rs",
    "ReadFailure::Busy(\"cannot be read: another",
    "ReadFailure::Unreadable(\"cannot be read: another",
)];

const OF_STATE: &[Variant] = &[variant(
    "guards: a pipe in the state directory is waited for",
    "host/state_file.rs",
    "let file = open_at_once(path)?;",
    "let file = File::open(path)?;",
)];

const OF_SIGNALS: &[Variant] = &[variant(
    "guards: signals of log rotation end the daemon",
    "node/mod.rs",
    "        host::outlive_signals()?;\n",
    "",
)];

const OF_ADMIN_CLIENTS: &[Variant] = &[
    variant(
        "guards: any number of clients is at the admin socket",
        CLIENTS,
        "if self.clients.len() < self.limits.clients_max {",
        "if self.clients.len() < usize::MAX {",
    ),
    variant(
        "guards: an idle client of the admin socket keeps its place",
        CLIENTS,
        "self.clients.iter().position(is_silent)",
        "self.clients.iter().position(|it| is_silent(it) && it.task.is_finished())",
    ),
];

const OF_FILES: &[Variant] = &[variant(
    "guards: a resource file is read whole, however long it is",
    "source/disk.rs",
    "source.take(limit.saturating_add(1))",
    "source.take(limit << 6)",
)];

const OF_SOCKETS: &[Variant] = &[
    variant(
        "guards: any number of clients is at the metrics port",
        METRICS,
        "if by_age.len() >= CONNECTIONS_MAX",
        "if by_age.len() >= usize::MAX",
    ),
    variant(
        "guards: a request to the admin socket is as long as a client makes it",
        ADMIN,
        "(&mut read).take(limit)",
        "(&mut read).take(limit << 20)",
    ),
];

const OF_CONNECTIONS: &[Variant] = &[variant(
    "guards: a neighbor may connect as often as it can",
    "core_task/events.rs",
    "if self.accepts.take(now, (key, remote.ip())).is_none() {",
    "if self.accepts.take(now, (key, remote.ip())).is_none() && false {",
)];

const OF_FLAPPING: &[Variant] = &[variant(
    "guards: a neighbor that comes and goes writes as many lines as it can",
    "neighbour.rs",
    "Allowance { burst: 60,",
    "Allowance { burst: 60_000,",
)];

const OF_MEMORY: &[Variant] = &[variant(
    "guards: memory that runs short is nobody's",
    "core_task.rs",
    "        self.relieve_memory(now);\n",
    "",
)];

const OF_RANGES: &[Variant] = &[variant(
    "guards: nobody makes room in a full listen range",
    "speaker/desired.rs",
    "if self.make_room(range) =>",
    "if false && self.make_room(range) =>",
)];
