//! The rules of the house, read from the source: the pure stays pure, files stay readable.
//!
//! Each rule is a test, so that nobody has to argue about it in a review.

#![allow(clippy::panic, clippy::unwrap_used)] // What fails here fails the test.

use std::fs;
use std::path::{Path, PathBuf};

/// What decides or encodes, and so must give the same answer to the same question: it may not
/// know what time it is, where it runs, or who else does.
const PURE: &[&str] = &[
    "frr/src/application",
    "frr/src/application.rs",
    "frr/src/configuration.rs",
    "frr/src/daemon.rs",
    "frr/src/difference",
    "frr/src/difference.rs",
    "frr/src/render",
    "frr/src/status",
    "model-api/src",
    "sessions/src/backend",
    "sessions/src/backend.rs",
    "sessions/src/bfd",
    "sessions/src/bgp",
    "sessions/src/latencies.rs",
    "sessions/src/ndp",
    "sessions/src/rib",
    "sessions/src/rng.rs",
    "sessions/src/sim",
    "sessions/src/speaker",
    "sessions/src/time.rs",
    "sessions/src/types",
    "sessions/src/wire",
    "src/admin/show",
    "src/admin/vty/commands.rs",
    "src/admin/vty/grammar.rs",
    "src/admin/vty/reply.rs",
    "src/admin/vty/search.rs",
    "src/admin/vty/vrf.rs",
    "src/allocator",
    "src/cluster",
    "src/drain",
    "src/history.rs",
    "src/metrics/bfd.rs",
    "src/metrics/bgp.rs",
    "src/metrics/families.rs",
    "src/metrics/page.rs",
    "src/model",
    "src/plan",
    "src/resources",
    "src/service/condition.rs",
    "src/service/condition",
    "src/utc.rs",
];

/// What no pure module may name, and why.
const IMPURE: &[(&str, &str)] = &[
    ("tokio", "the runtime belongs to the edges"),
    ("tracing::", "what happened is returned, not logged"),
    ("nix::", "system calls belong to the edges"),
    ("notify::", "file events belong to `source`"),
    ("std::fs", "files belong to the edges"),
    ("std::io", "reading and writing belong to the edges"),
    ("std::env", "the environment belongs to the command line"),
    ("std::process", "processes belong to the edges"),
    ("std::thread", "threads belong to the edges"),
    ("std::time::Instant", "`now` is an argument"),
    ("SystemTime", "`now` is an argument"),
    ("TcpStream", "sockets belong to the edges"),
    ("TcpListener", "sockets belong to the edges"),
    ("UdpSocket", "sockets belong to the edges"),
    ("HashMap", "its order is random, and order is output"),
    ("HashSet", "its order is random, and order is output"),
    ("RandomState", "randomness comes seeded"),
];

/// Lines that a source file may have before its tests; a file answers one question.
const LINES_MAX: usize = 500;
/// Stories come one after the other, and are read one at a time.
const TEST_LINES_MAX: usize = 700;
/// Tables of cases, one line each.
const TABLES: &[&str] = &["sessions/src/wire/update/rfc7606.rs"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(below: &Path) -> Vec<PathBuf> {
    if below.is_file() {
        return vec![below.to_owned()];
    }
    let entries = fs::read_dir(below).unwrap_or_else(|error| panic!("{below:?}: {error}"));
    let paths = entries.map(|entry| entry.unwrap().path());
    let files = paths.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|it| it == "rs")).collect()
}

/// The code of a file: no comments, and nothing from its tests on.
fn code_of(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

fn is_test(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs")
        || TABLES.iter().any(|table| path.ends_with(table))
        || path.components().any(|part| part.as_os_str() == "tests")
}

fn assert_none(offences: &[String]) {
    assert!(offences.is_empty(), "\n{}\n", offences.join("\n"));
}

#[test]
fn pure_modules_know_no_clock_socket_file_or_runtime() {
    let files = PURE.iter().flat_map(|module| rust_files(&root().join(module)));
    let files: Vec<PathBuf> = files.filter(|path| !is_test(path)).collect();
    assert!(files.len() > 40, "the pure modules moved: only {} files found", files.len());
    let mut offences = Vec::new();
    for path in files {
        let code = code_of(&path);
        for (word, why) in IMPURE.iter().filter(|(word, _)| code.contains(word)) {
            offences.push(format!("{}: names {word}: {why}", path.display()));
        }
    }
    assert_none(&offences);
}

#[test]
fn the_purity_rule_would_notice() {
    let file = std::env::temp_dir().join(format!("fairway-tidy-{}.rs", std::process::id()));
    fs::write(&file, "//! tokio in a comment is fine\nfn f() { std::fs::read(\"x\"); }\n").unwrap();
    let code = code_of(&file);
    fs::remove_file(&file).unwrap();
    assert!(code.contains("std::fs") && !code.contains("tokio"));
}

#[test]
fn only_the_edge_of_sessions_names_tokio_and_unsafe() {
    let mut offences = Vec::new();
    for path in rust_files(&root().join("sessions/src")) {
        let in_io = path.components().any(|part| part.as_os_str() == "io");
        let code = code_of(&path);
        if code.contains("tokio") && !in_io {
            offences.push(format!("{}: names tokio outside io", path.display()));
        }
        if code.contains("unsafe {") && !path.ends_with("io/sockopt.rs") {
            offences.push(format!("{}: unsafe outside io/sockopt.rs", path.display()));
        }
    }
    let daemon = ["src", "fuzzing/src"].map(|folder| rust_files(&root().join(folder))).concat();
    let unsafe_code = daemon.iter().filter(|path| code_of(path).contains("unsafe {"));
    offences.extend(unsafe_code.map(|path| format!("{}: unsafe", path.display())));
    assert_none(&offences);
}

#[test]
fn layers_import_only_what_is_below_them() {
    // Who may not be named by whom: the arrows of ARCHITECTURE.md.
    let forbidden: &[(&str, &[&str])] = &[
        (
            "sessions/src/types",
            &["crate::wire", "crate::rib", "crate::bgp", "crate::bfd", "crate::backend"],
        ),
        ("sessions/src/wire", &["crate::rib", "crate::bgp", "crate::bfd", "crate::backend"]),
        ("sessions/src/ndp", &["crate::wire", "crate::rib", "crate::bgp", "crate::backend"]),
        (
            "sessions/src/bfd",
            &["crate::wire", "crate::rib", "crate::bgp", "crate::ndp", "crate::backend"],
        ),
        ("sessions/src/rib", &["crate::bgp", "crate::speaker"]),
        ("sessions/src/bgp", &["crate::speaker", "crate::io"]),
        ("sessions/src/speaker", &["crate::io"]),
        ("src/model", &["crate::resources", "crate::allocator", "crate::plan", "crate::source"]),
        ("src/allocator", &["crate::resources", "crate::plan", "crate::source"]),
        ("src/plan", &["crate::resources", "crate::source", "crate::controller"]),
        (
            "src/cluster",
            &["crate::source", "crate::speaker", "crate::standalone", "crate::controller"],
        ),
        ("src/host", &["crate::source", "crate::standalone", "crate::kubernetes"]),
        ("src/kubernetes", &["crate::source", "crate::standalone"]),
        ("src/resources", &["crate::source", "crate::allocator", "crate::plan"]),
    ];
    let mut offences = Vec::new();
    for (module, words) in forbidden {
        for path in rust_files(&root().join(module)).iter().filter(|path| !is_test(path)) {
            let code = code_of(path);
            for word in words.iter().filter(|word| code.contains(**word)) {
                offences.push(format!("{}: imports {word}", path.display()));
            }
        }
    }
    assert_none(&offences);
}

#[test]
fn files_answer_one_question_and_say_which() {
    let mut offences = Vec::new();
    let folders = [
        "src",
        "sessions/src",
        "fuzzing/src",
        "fuzzing/tests",
        "model-api",
        "cluster-simulation",
        "tests",
        "benches",
    ];
    for folder in folders {
        for path in rust_files(&root().join(folder)) {
            let text = fs::read_to_string(&path).unwrap();
            if !text.starts_with("//!") && !is_test(&path) {
                offences.push(format!("{}: does not open with //!", path.display()));
            }
            let lines = code_of(&path).lines().count();
            let most = if is_test(&path) { TEST_LINES_MAX } else { LINES_MAX };
            if lines > most && !TABLES.iter().any(|table| path.ends_with(table)) {
                offences.push(format!("{}: {lines} lines, at most {most}", path.display()));
            }
        }
    }
    assert_none(&offences);
}
