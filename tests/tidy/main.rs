//! The rules of the house, read from the source: the pure stays pure, files stay readable.
//!
//! Each rule is a test, so that it needs no debate in a review.

#![allow(clippy::panic, clippy::unwrap_used)] // What fails here fails the test.

mod mistakes;
mod modules;
#[path = "../mutants/variants/mod.rs"]
mod variants;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lab::tiers::Tiers;

use modules::Modules;

/// What decides or encodes, and so must give the same answer to the same question: it must not depend on
/// the time, on where it runs, or on what else runs there.
const PURE: &[&str] = &[
    "crates/allocator/src",
    "crates/bfd/src",
    "crates/bgp/src",
    "crates/bmp/src",
    "crates/cluster/src",
    "crates/dataplane/src/conntrack.rs",
    "crates/dataplane/src/ipvs",
    "crates/dataplane/src/ipvs.rs",
    "crates/dataplane/src/message.rs",
    "crates/dataplane/src/nftables",
    "crates/dataplane/src/nftables.rs",
    "crates/daemon/src/metrics/bfd.rs",
    "crates/daemon/src/metrics/bgp.rs",
    "crates/daemon/src/metrics/families.rs",
    "crates/daemon/src/metrics/page.rs",
    "crates/frr/src/application",
    "crates/frr/src/application.rs",
    "crates/frr/src/configuration.rs",
    "crates/frr/src/daemon.rs",
    "crates/frr/src/difference",
    "crates/frr/src/difference.rs",
    "crates/frr/src/render",
    "crates/frr/src/status",
    "crates/ground/src",
    "crates/import/src",
    "crates/recording/src",
    "crates/ipam/src",
    "crates/layer2/src/arp.rs",
    "crates/layer2/src/ethernet.rs",
    "crates/layer2/src/filter.rs",
    "crates/layer2/src/ndp.rs",
    "crates/layer2/src/responder",
    "crates/layer2/src/segment.rs",
    "crates/looking-glass/src",
    "crates/members/src",
    "crates/model/src",
    "crates/model-api/src",
    "crates/fib/src/fib",
    "crates/fib/src/fib.rs",
    "crates/fib/src/interned.rs",
    "crates/fib/src/order.rs",
    "crates/fib/src/surroundings.rs",
    "crates/rpki/src",
    "crates/netlink/src/address.rs",
    "crates/netlink/src/decode",
    "crates/netlink/src/decode.rs",
    "crates/netlink/src/follower",
    "crates/netlink/src/follower.rs",
    "crates/netlink/src/kind.rs",
    "crates/netlink/src/link.rs",
    "crates/netlink/src/machine",
    "crates/netlink/src/machine.rs",
    "crates/netlink/src/neighbour.rs",
    "crates/netlink/src/request.rs",
    "crates/netlink/src/route.rs",
    "crates/netlink/src/scope.rs",
    "crates/node/src",
    "crates/plan/src",
    "crates/proxy/src",
    "crates/resources/src",
    "crates/seam/src",
    "crates/show/src",
    "crates/top/src",
];

/// The crates, and which others of ours each may name: the arrows of ARCHITECTURE.md. What a crate
/// only needs for its tests does not count.
const CRATES: &[(&str, &[&str])] = &[
    ("ground", &[]),
    ("seam", &["ground"]),
    ("model", &["ground"]),
    ("allocator", &["ground", "model"]),
    ("plan", &["allocator", "ground", "model", "seam"]),
    ("ipam", &["ground", "model"]),
    ("cni", &["ipam"]),
    ("proxy", &["ground", "model"]),
    ("dataplane", &["ground", "model", "netlink", "proxy"]),
    ("resources", &["ground", "model", "seam"]),
    ("node", &["allocator", "ground", "model", "plan", "seam"]),
    ("cluster", &["allocator", "ground", "model", "node", "plan", "resources", "seam"]),
    ("show", &["allocator", "ground", "model", "node", "plan", "resources", "seam"]),
    ("top", &["ground", "show"]),
    ("looking-glass", &["ground", "model", "seam", "show"]),
    ("netlink", &[]),
    ("layer2", &["ground", "netlink", "seam"]),
    ("fib", &["ground", "netlink", "seam"]),
    ("members", &["ground"]),
    ("bfd", &["ground", "seam"]),
    ("rpki", &["ground"]),
    ("bmp", &["ground"]),
    ("bgp", &["ground", "rpki", "seam"]),
    ("sessions", &["bfd", "bgp", "bmp", "fib", "ground", "netlink", "rpki", "seam"]),
    ("frr", &["ground", "seam"]),
    ("import", &["frr", "ground", "resources"]),
    ("recording", &["bgp", "ground", "seam"]),
    (
        "daemon",
        &[
            "allocator",
            "bgp",
            "cluster",
            "cni",
            "dataplane",
            "frr",
            "ground",
            "import",
            "ipam",
            "layer2",
            "looking-glass",
            "members",
            "model",
            "netlink",
            "node",
            "plan",
            "proxy",
            "recording",
            "resources",
            "seam",
            "sessions",
            "show",
            "top",
        ],
    ),
    ("fuzzing", &["bgp", "ground", "seam"]),
    ("release", &[]),
    ("lab", &[]),
    ("model-api", &["ground"]),
    (
        "cluster-simulation",
        &[
            "allocator",
            "cluster",
            "ground",
            "model",
            "model-api",
            "node",
            "plan",
            "resources",
            "seam",
        ],
    ),
];

/// The modules with calls of the kernel and the allocator that no safe library has.
const UNSAFE: &[&str] = &[
    "crates/layer2/src/io/socket.rs",
    "crates/netlink/src/io/socket.rs",
    "crates/sessions/src/sockopt.rs",
    "src/allocator.rs",
];

/// What no pure module may name, and why.
const IMPURE: &[(&str, &str)] = &[
    ("tokio", "the runtime belongs to the edges"),
    ("tracing::", "what happened is returned, not logged"),
    ("nix::", "system calls belong to the edges"),
    ("notify::", "file events belong to the daemon's `source`"),
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
    ("HashTable", "its order is random, and order is output"),
    ("RandomState", "randomness comes seeded"),
];

/// Those hide the random order of their tables behind their types.
const WITHOUT_ORDER: [&str; 3] = [
    "crates/bgp/src/rib/prefix_table.rs",
    "crates/bgp/src/rib/unordered.rs",
    "crates/bgp/src/wire/known.rs",
];

/// Words that no comment, message or page uses, and what it says instead.
const WORDS: &[(&str, &str)] = &[
    ("whom", "which, that"),
    ("whoever", "any that"),
    ("anew", "again, from scratch; a session restarts"),
    ("begins anew", "restarts"),
    ("a fault of ours", "internal error"),
    ("said and done without", "reported and ignored"),
    ("brought about", "applied"),
];

/// Where words are quoted: this test, and the rows of pages that are kept as they are for comparison.
const KEPT: &[&str] = &[
    "docs/conformance.md",
    "docs/corpus.md",
    "docs/interop.md",
    "tests/conformance",
    "tests/corpus/entries",
    "tests/interop/cases/mod.rs",
    "tests/tidy",
];

/// Words of the glossary (CONTRIBUTING.md) that name one type each.
const TYPES: &[&str] = &[
    "Announced",
    "Announcements",
    "Announcing",
    "Assigner",
    "Backend",
    "Controller",
    "Desired",
    "NodePlanner",
    "Source",
    "Speaker",
    "Told",
];

/// Lines that a source file may have before its tests; a file answers one question.
const LINES_MAX: usize = 500;
/// Stories come one after the other, and are read one at a time.
const TEST_LINES_MAX: usize = 700;
/// Test code that is no test of its own package.
const TEST_CODE: &[&str] = &["crates/lab"];
/// Tables of cases, one line each.
const TABLES: &[&str] = &["crates/bgp/src/wire/update/rfc7606.rs"];

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

fn pages(below: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(below).unwrap().map(|entry| entry.unwrap().path());
    let files = paths.flat_map(|path| if path.is_dir() { pages(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|it| it == "md")).collect()
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
        || TEST_CODE.iter().any(|folder| path.starts_with(root().join(folder)))
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
        let hides_order = WITHOUT_ORDER.iter().any(|it| path.ends_with(it));
        let is_allowed =
            |word: &str| hides_order && ["HashMap", "HashTable", "RandomState"].contains(&word);
        let named = IMPURE.iter().filter(|(word, _)| code.contains(word) && !is_allowed(word));
        for (word, why) in named {
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
fn only_system_call_modules_are_unsafe() {
    let mut offences = Vec::new();
    for path in ["crates", "src"].iter().flat_map(|folder| rust_files(&root().join(folder))) {
        let code = code_of(&path);
        let makes_system_calls = UNSAFE.iter().any(|file| path.ends_with(file));
        if code.contains("unsafe {") && !makes_system_calls {
            offences.push(format!("{}: unsafe", path.display()));
        }
    }
    assert_none(&offences);
}

/// The crates of ours that a manifest names, up to its development dependencies.
fn dependencies_of(manifest: &str) -> BTreeSet<String> {
    let part = manifest.split("[dev-dependencies]").next().unwrap_or_default();
    let part = part.split_once("[dependencies]").map_or("", |(_, rest)| rest);
    let names = part.lines().filter_map(|line| line.strip_prefix("fairway-"));
    names.filter_map(|name| Some(name.split(['.', ' ', '=']).next()?.to_owned())).collect()
}

#[test]
fn crates_name_only_what_is_below_them() {
    let mut offences = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().to_str().unwrap().to_owned();
        let manifest =
            fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
        let Some((_, allowed)) = CRATES.iter().find(|(it, _)| *it == name) else {
            offences.push(format!("crates/{name}: has no row in CRATES"));
            continue;
        };
        for other in dependencies_of(&manifest).iter().filter(|it| !allowed.contains(&it.as_str()))
        {
            offences.push(format!("crates/{name}: may not depend on {other}"));
        }
    }
    assert_none(&offences);
}

#[test]
fn the_rule_about_crates_would_notice() {
    let manifest = "[dependencies]\nfairway-ground.workspace = true\nfairway-plan = { path = \"x\" }\n\
                    serde = \"1\"\n[dev-dependencies]\nfairway-show.workspace = true\n";
    let expected = BTreeSet::from(["ground".to_owned(), "plan".to_owned()]);
    assert_eq!(dependencies_of(manifest), expected);
}

#[test]
fn layers_inside_a_crate_import_only_what_is_below_them() {
    // Which module may not be named by which.
    let forbidden: &[(&str, &[&str])] = &[
        ("crates/bgp/src/wire", &["crate::rib", "crate::session", "crate::speaker", "crate::ndp"]),
        ("crates/bgp/src/ndp", &["crate::rib", "crate::session", "crate::speaker", "crate::wire"]),
        ("crates/bgp/src/rib", &["crate::session", "crate::speaker", "crate::ndp"]),
        ("crates/bgp/src/session", &["crate::speaker", "crate::ndp"]),
        ("crates/bgp/src/speaker", &["crate::ndp"]),
        (
            "crates/daemon/src/host",
            &["crate::source", "crate::standalone", "crate::kubernetes", "crate::node"],
        ),
        ("crates/daemon/src/node", &["crate::source", "crate::standalone", "crate::kubernetes"]),
        ("crates/daemon/src/kubernetes", &["crate::source", "crate::standalone"]),
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
fn no_module_of_a_crate_depends_on_itself_by_a_detour() {
    let mut offences = Vec::new();
    for (name, _) in CRATES {
        let modules = Modules::of(&root().join(format!("crates/{name}/src")));
        let circles = modules.circles();
        offences.extend(circles.iter().map(|circle| format!("crates/{name}: {circle}")));
    }
    assert_none(&offences);
}

#[test]
fn the_rule_about_circles_would_notice() {
    let folder = std::env::temp_dir().join(format!("fairway-tidy-circle-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("lib.rs", "mod a;\nmod b;\nmod c;\npub use c::Thing;\n");
    write("a.rs", "use crate::b::two;\n");
    write("b.rs", "use super::Thing;\n");
    write("c.rs", "// use crate::a::one;\nfn f() { std::f(); }\n");
    assert_eq!(Modules::of(&folder).circles(), [""; 0], "a comment is no import");
    write("c.rs", "use crate::{\n    a::one,\n    b,\n};\n");
    let circles = Modules::of(&folder).circles();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(circles, ["a -> b -> c -> a", "b -> c -> b"]);
}

#[test]
fn files_answer_one_question_and_say_which() {
    let mut offences = Vec::new();
    let folders = ["src", "crates", "tests", "benches"];
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

#[test]
fn every_test_file_is_in_a_tier_and_what_leaves_make_test_is_covered_there() {
    let files = lab::tiers::test_files(&root()).unwrap();
    assert!(files.len() > 30, "the tests moved: only {} files found", files.len());
    assert_none(&Tiers::read(&root()).unwrap().faults(&files));
}

#[test]
fn the_rule_about_tiers_would_notice() {
    let mut files = lab::tiers::test_files(&root()).unwrap();
    files.push("tests/new.rs".to_owned());
    let faults = Tiers::read(&root()).unwrap().faults(&files);
    assert_eq!(faults, ["tests/new.rs is in no tier"]);
}

#[test]
fn the_lab_and_the_suites_know_nothing_of_the_daemons_library() {
    // So that a change there recompiles none of them.
    let mut offences = Vec::new();
    for manifest in ["crates/lab/Cargo.toml", "tests/Cargo.toml"] {
        let text = fs::read_to_string(root().join(manifest)).unwrap();
        let names = text.lines().filter_map(|line| line.split([' ', '.', '=']).next());
        let known =
            names.filter(|name| name.starts_with("fairway") && *name != "fairway-model-api");
        offences.extend(known.map(|name| format!("{manifest}: depends on {name}")));
    }
    assert_none(&offences);
}

/// The comments and the texts of a line of code; of a page the whole line.
fn prose_of(line: &str, is_code: bool) -> String {
    if !is_code {
        return line.to_lowercase();
    }
    let (code, comment) = line.split_once("//").unwrap_or((line, ""));
    let texts: Vec<&str> = code.split('"').skip(1).step_by(2).collect();
    format!("{} {comment}", texts.join(" ")).to_lowercase()
}

/// The forbidden words in a text of prose.
fn forbidden_in(prose: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_letter = |it: Option<char>| it.is_some_and(char::is_alphabetic);
    let stands_alone = move |word: &str| {
        prose.match_indices(word).any(|(at, _)| {
            let before = prose.get(..at).and_then(|it| it.chars().next_back());
            let after = prose.get(at + word.len()..).and_then(|it| it.chars().next());
            !is_letter(before) && !is_letter(after)
        })
    };
    WORDS
        .iter()
        .filter(move |(word, _)| stands_alone(word))
        .copied()
        .collect::<Vec<_>>()
        .into_iter()
}

#[test]
fn comments_messages_and_pages_use_plain_words() {
    let folders =
        ["src", "crates", "tests", "benches"].map(|folder| rust_files(&root().join(folder)));
    let pages = pages(&root().join("docs"));
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root().join(page));
    let files = folders.concat().into_iter().chain(pages).chain(top);
    let mut offences = Vec::new();
    let is_kept = |path: &PathBuf| KEPT.iter().any(|place| path.starts_with(root().join(place)));
    for path in files.filter(|path| !is_kept(path)) {
        let is_code = path.extension().is_some_and(|it| it == "rs");
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().enumerate();
        for (number, line) in lines.filter(|(_, line)| !line.trim_start().starts_with("//=")) {
            for (word, instead) in forbidden_in(&prose_of(line, is_code)) {
                let place = format!("{}:{}", path.display(), number + 1);
                offences.push(format!("{place}: {word:?}, say: {instead}"));
            }
        }
    }
    assert_none(&offences);
}

#[test]
fn the_rule_about_words_would_notice() {
    let words = |line| forbidden_in(&prose_of(line, true)).map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(words("let anew = f(\"begins Anew\"); // whomever"), ["anew", "begins anew"]);
    assert_eq!(words("let anew = whom; // those that asked"), [""; 0]);
    assert_eq!(words("error!(\"x\"); // a fault of ours"), ["a fault of ours"]);
}

/// Where a type of this name is defined, in the crates that users run.
fn definitions_of(name: &str) -> Vec<String> {
    let test_code =
        ["crates/lab", "crates/fuzzing", "crates/model-api", "crates/cluster-simulation"];
    let is_product = |path: &&PathBuf| {
        !is_test(path) && !test_code.iter().any(|folder| path.starts_with(root().join(folder)))
    };
    let files = rust_files(&root().join("crates"));
    let defines = |code: &str| {
        ["struct", "enum", "trait"].iter().any(|kind| {
            code.match_indices(&format!("{kind} {name}")).any(|(at, text)| {
                let after = code.get(at + text.len()..).and_then(|it| it.chars().next());
                !after.is_some_and(|it| it.is_alphanumeric() || it == '_')
            })
        })
    };
    let files = files.iter().filter(is_product).filter(|path| defines(&code_of(path)));
    files.map(|path| path.display().to_string()).collect()
}

#[test]
fn a_word_of_the_glossary_names_one_type() {
    let mut offences = Vec::new();
    for name in TYPES {
        let definitions = definitions_of(name);
        if definitions.len() != 1 {
            offences.push(format!("{name}: defined in {}: {definitions:?}", definitions.len()));
        }
    }
    assert_none(&offences);
}
