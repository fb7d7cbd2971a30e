//! Does a key of TCP-MD5 or TCP-AO show itself anywhere? The real daemon is given keys in every way that there
//! is, right and wrong, and everything that it says at trace level, shows, writes and is made of is
//! searched for them. No root, loopback only.

#![allow(clippy::panic, clippy::unwrap_used)] // What fails here fails the test.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairway");
/// A dial that nobody answers is given up, and explained, after 5 s.
const PATIENCE: Duration = Duration::from_secs(20);

/// Stands for the port that our router listens on; fairway takes 16384 at most.
const PORT: &str = "PORT";

/// Every key begins with this, and goes on with where it was written.
const CANARY: &str = "Canary7";

/// What is put before the daemon: a file's name and its text.
#[rustfmt::skip] // Manifests, one after the other.
const RESOURCES: &[(&str, &str)] = &[
    ("inline", PEER_WITH_INLINE_KEY),
    (
        "secret",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: text}\ntype: kubernetes.io/basic-auth\n\
         stringData: {password: Canary7-string-data}\n",
    ),
    (
        "encoded",
        // Canary7-encoded, and what kubectl leaves of the manifest that it applied.
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: encoded\n  annotations:\n    \
         kubectl.kubernetes.io/last-applied-configuration: '{\"stringData\": {\"password\": \
         \"Canary7-annotation\"}}'\ntype: kubernetes.io/basic-auth\n\
         data: {password: Q2FuYXJ5Ny1lbmNvZGVk}\n",
    ),
    (
        "of-secrets",
        "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: text}\n\
         spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.3, peerPort: PORT, \
         passwordSecret: {name: text}}\n---\n\
         apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: encoded}\n\
         spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.4, peerPort: PORT, \
         passwordSecret: {name: encoded}}\n",
    ),
    (
        "signed",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: ao}\ntype: Opaque\n\
         stringData: {first: Canary7-ao-first}\ndata: {second: Q2FuYXJ5Ny1hby1zZWNvbmQ=}\n---\n\
         apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: signed}\n\
         spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.12, peerPort: PORT, tcpAO: {keys: \
         [{sendID: 1, recvID: 2, algorithm: hmac-sha-1-96, secret: {name: ao, key: first}}, {sendID: \
         3, recvID: 4, algorithm: aes-128-cmac-96, secret: {name: ao, key: second}}]}}\n",
    ),
    // Each of these is at fault, most of them where the key stands.
    ("long", "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: long}\n\
         spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.5, password: \
         Canary7-toolong0000000000000000000000000000000000000000000000000000000000000000000000}\n"),
    ("both", "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: both}\n\
         spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.6, password: Canary7-both, \
         passwordSecret: {name: text}}\n"),
    ("list", "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: list}\n\
         spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.7, password: [Canary7-list]}\n"),
    ("mistyped", "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: mistyped}\n\
         spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.8, pasword: Canary7-mistyped}\n"),
    ("in-name", "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: in-name}\n\
         spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.9, \
         passwordSecret: Canary7-in-place-of-name}\n"),
    ("twice", "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: twice}\n\
         spec:\n  myASN: 65001\n  peerASN: 65002\n  peerAddress: 127.0.0.10\n  \
         password: Canary7-first\n  password: Canary7-second\n"),
    ("outside", "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: outside}\n\
         password: Canary7-outside\n\
         spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.11}\n"),
    ("no-yaml", "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: no-yaml}\n\
         spec:\n  myASN: 65001\n  password: \"Canary7-unclosed\n  peerASN: 65002\n"),
    ("no-mapping", "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: no-mapping}\n\
         spec:\n  myASN: 65001\n  password: Canary7-colon: Canary7-after\n"),
    ("no-base64", "apiVersion: v1\nkind: Secret\nmetadata: {name: no-base64}\n\
         type: kubernetes.io/basic-auth\ndata: {password: Canary7-no-base64}\n"),
    ("not-under", "apiVersion: v1\nkind: Secret\nmetadata: {name: not-under}\n\
         type: kubernetes.io/basic-auth\nstringData: Canary7-not-under\n"),
    ("ao-plain", "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: ao-plain}\n\
         spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.13, tcpAO: Canary7-ao-plain}\n"),
    ("ao-list", "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: ao-list}\n\
         spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.14, tcpAO: {keys: \
         Canary7-ao-list}}\n"),
    ("ao-element", "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: ao-element}\n\
         spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.15, tcpAO: {keys: \
         [Canary7-ao-element]}}\n"),
    ("ao-secret", "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: ao-secret}\n\
         spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.16, tcpAO: {keys: [{sendID: 1, \
         recvID: 1, algorithm: hmac-sha-1-96, secret: Canary7-ao-secret}]}}\n"),
    ("ao-long", "apiVersion: v1\nkind: Secret\nmetadata: {name: ao-long}\nstringData: {first: \
         Canary7-toolong0000000000000000000000000000000000000000000000000000000000000000000000}\n\
         ---\napiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: ao-long}\n\
         spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.17, tcpAO: {keys: [{sendID: 1, \
         recvID: 1, algorithm: hmac-sha-1-96, secret: {name: ao-long, key: first}}]}}\n"),
    ("other-key", "apiVersion: v1\nkind: Secret\nmetadata: {name: other-key}\n\
         type: kubernetes.io/basic-auth\nstringData: {pasword: Canary7-other-key}\n"),
    ("other-type", "apiVersion: v1\nkind: Secret\nmetadata: {name: other-type}\n\
         type: Opaque\nstringData: {password: Canary7-other-type}\n"),
];

/// Those of them that are at fault.
const FAULTY: &[&str] = &[
    "long",
    "both",
    "list",
    "mistyped",
    "in-name",
    "twice",
    "outside",
    "no-yaml",
    "no-mapping",
    "no-base64",
    "not-under",
    "ao-plain",
    "ao-list",
    "ao-element",
    "ao-secret",
    "ao-long",
    "other-key",
];

/// What YAML makes of a key that is not in quotes: tags, anchors, aliases, merge keys, blocks, mappings, half a quote.
const YAML_FORMS: &[&str] = &[
    "password: !Canary7-tag",
    "password: !Canary7-tag value",
    "password: !<tag:Canary7-verbatim> value",
    "password: !!int Canary7-int",
    "password: !!binary Canary7-binary",
    "password: &Canary7-anchor",
    "password: &anchor Canary7-anchored\n  password: Canary7-again",
    "password: *Canary7-alias",
    "<<: {password: Canary7-merged, nonsense: 1}",
    "<<: Canary7-merge",
    "password: |Canary7-block",
    "password: |\n    Canary7-block\n    Canary7-line",
    "password: {Canary7-mapping: 1}",
    "password: {a: Canary7-mapping}",
    "password: [[Canary7-nested]]",
    "password: \"Canary7-quote",
    "password: 'Canary7-quote",
    "password: \"Canary7-escape\\q\"",
    "password: Canary7-colon: value",
    "password: @Canary7-at",
    "password: `Canary7-backtick",
    "password: %Canary7-percent",
    "password:Canary7-no-blank",
    "password:\tCanary7-tab\n  password: Canary7-tab",
    "? password\n  : !Canary7-explicit",
    "Password: Canary7-case",
    "password: - Canary7-dash",
    "password: ? Canary7-question",
    "tcpAO: {keys: !Canary7-keys}",
    "tcpAO: {keys: [{secret: !Canary7-secret}]}",
    "passwordSecret: !Canary7-reference",
];

/// Each of them in a peer and in a Secret.
fn with_yaml_forms() -> Vec<(String, String)> {
    let files = YAML_FORMS.iter().enumerate().flat_map(|(number, form)| {
        let peer = format!(
            "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {{name: form-{number}}}\nspec:\n  \
             myASN: 65001\n  peerASN: 65002\n  peerAddress: 127.0.1.{number}\n  {form}\n"
        );
        let secret = format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: form-{number}}}\n\
             type: kubernetes.io/basic-auth\nstringData:\n  {form}\n"
        );
        [(format!("form-{number}"), peer), (format!("secret-form-{number}"), secret)]
    });
    files.collect()
}

const PEER_WITH_INLINE_KEY: &str = "\
apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: inline}\n\
spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.2, peerPort: PORT, \
password: Canary7-inline}\n";

const SHOWS: &[&[&str]] = &[
    &["bgp", "summary"],
    &["bgp", "neighbors"],
    &["bgp", "neighbors", "127.0.0.2"],
    &["bgp", "neighbors", "encoded"],
    &["bgp", "neighbors", "nobody"],
    &["bgp", "neighbors", "inline", "advertised-routes"],
    &["bgp", "neighbors", "inline", "received-routes"],
    &["bgp", "ipv4", "unicast", "statistics"],
    &["bgp", "ipv4", "unicast"],
    &["services"],
    &["pools"],
    &["config"],
];

/// What FRR's tools ask, and where.
const VTY: &[(&str, &str)] = &[
    ("bgpd.vty", "show bgp summary json"),
    ("bgpd.vty", "show bgp vrf all neighbors json"),
    ("bgpd.vty", "show bgp neighbors"),
    ("bgpd.vty", "do write terminal"),
    ("bgpd.vty", "show running-config"),
    ("bfdd.vty", "show bfd peers"),
    ("zebra.vty", "show version"),
];

/// A daemon and everything that it has said.
struct Daemon {
    child: Child,
    place: TempDir,
}

impl Daemon {
    fn start() -> Self {
        let place = TempDir::new().unwrap();
        fs::create_dir(place.path().join("config")).unwrap();
        for (name, text) in with_yaml_forms() {
            fs::write(place.path().join(format!("config/{name}.yaml")), text).unwrap();
        }
        for (name, text) in RESOURCES {
            fs::write(place.path().join(format!("config/{name}.yaml")), with_port(text)).unwrap();
        }
        let log = File::create(place.path().join("log")).unwrap();
        let child = Command::new(PROGRAM)
            .args(["run", "--log-level", "trace", "--log-format", "json", "--node", "node-a"])
            // The interfaces of this machine are not the test's.
            .env("FAIRWAY_LAYER2_EXCLUDE", ".")
            .args(["--bgp-listen", "127.0.0.1:0", "--config"])
            .arg(place.path().join("config"))
            .arg("--state-dir")
            .arg(place.path().join("state"))
            .arg("--socket")
            .arg(place.path().join("socket"))
            .arg("--vty-dir")
            .arg(place.path().join("vty"))
            .args(["--metrics-listen", &format!("127.0.0.1:{}", metrics_port())])
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, place }
    }

    fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.place.path().join("log")).unwrap()).into_owned()
    }

    fn wait_for(&self, what: &str) {
        self.wait_until(what, || self.log().contains(what));
    }

    #[allow(clippy::disallowed_methods, reason = "a real daemon lives in real time")]
    fn wait_until(&self, what: &str, done: impl Fn() -> bool) {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < PATIENCE, "expected {what:?} within {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Replaces a resource file in one step.
    fn apply(&self, name: &str, text: &str) {
        let staged = self.place.path().join("staged");
        fs::write(&staged, with_port(text)).unwrap();
        fs::rename(staged, self.place.path().join(format!("config/{name}.yaml"))).unwrap();
    }

    fn ask(&self, words: &[&str]) -> Output {
        let mut command = Command::new(PROGRAM);
        command.args(words).arg("--socket").arg(self.place.path().join("socket"));
        command.output().unwrap()
    }

    fn expect_nothing_shown(&self, when: &str) {
        for words in SHOWS {
            for format in [[].as_slice(), &["--json"]] {
                let output = self.ask(&[&["show"], *words, format].concat());
                expect_no_key(&format!("show {words:?} {when}"), &output.stdout);
                expect_no_key(&format!("show {words:?} {when}"), &output.stderr);
            }
        }
        let bundle = self.place.path().join(format!("{}.tar", when.replace(' ', "-")));
        let output = self.ask(&["support", "--routes", "-o", &bundle.to_string_lossy()]);
        assert!(output.status.success(), "{output:?}");
        let bundle = fs::read(bundle).unwrap();
        let has = |name: &str| bundle.windows(name.len()).any(|it| it == name.as_bytes());
        assert!(
            has("fairway-support/config.json") && has("fairway-support/recordings/127.0.0.2.mrt")
        );
        expect_no_key(&format!("support {when}"), &bundle);
        for (socket, words) in VTY {
            expect_no_key(&format!("{socket}: {words} {when}"), &self.ask_vty(socket, words));
        }
        self.wait_for("serving metrics and probes");
        expect_no_key(&format!("metrics {when}"), &metrics());
    }

    /// The answer to a command in FRR's protocol.
    fn ask_vty(&self, socket: &str, words: &str) -> Vec<u8> {
        let path = self.place.path().join("vty").join(socket);
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(format!("{words}\0exit\0").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(answer.len() > 8, "{words} has no answer");
        answer
    }

    fn signal(&self, signal: nix::sys::signal::Signal) {
        let process = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        nix::sys::signal::kill(process, signal).unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It has ended already where the test got that far.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The forms in which a program may let a text slip: as it is, as hexadecimal digits, as a list of
/// numbers, and in base64 at each of the three places that it can have there.
fn forms() -> Vec<String> {
    let bytes = CANARY.as_bytes();
    let joined = |digit: fn(&u8) -> String, between: &str| {
        bytes.iter().map(digit).collect::<Vec<_>>().join(between)
    };
    let mut forms = vec![
        CANARY.to_owned(),
        joined(|byte| format!("{byte:02x}"), ""),
        joined(|byte| format!("{byte:02X}"), ""),
        joined(|byte| format!("{byte:02x}"), " "),
        joined(u8::to_string, ", "),
        joined(u8::to_string, ","),
    ];
    // "Canary7" in base64: alone, after one byte, after two bytes; ends that depend on others cut.
    forms.extend(["Q2FuYXJ5N", "NhbmFyeT", "DYW5hcnk3"].map(str::to_owned));
    forms
}

fn finds_key(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    forms().iter().any(|form| text.contains(form.as_str()))
}

fn expect_no_key(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for form in forms() {
        if let Some(line) = text.lines().find(|line| line.contains(&form)) {
            panic!("{what} shows a key, as {form}:\n{line}");
        }
    }
}

/// One of those that two runs on one machine do not share.
fn port() -> u16 {
    6_000 + u16::try_from(std::process::id() % 6_000).unwrap()
}

fn metrics_port() -> u16 {
    port() + 6_000
}

/// The page that Prometheus would get.
fn metrics() -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", metrics_port())).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(String::from_utf8_lossy(&answer).contains("fairway_bgp_peer_info{"), "no page");
    answer
}

fn with_port(text: &str) -> String {
    text.replace(PORT, &port().to_string())
}

fn files_below(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|it| if it.is_dir() { files_below(&it) } else { vec![it] }).collect()
}

#[test]
fn the_search_would_notice() {
    for leak in [
        "password=Canary7-inline",
        "43616e61727937",
        "[67, 97, 110, 97, 114, 121, 55]",
        "Q2FuYXJ5Ny1pbmxpbmU=",
        "eENhbmFyeTct",
        "eHhDYW5hcnk3LQ==",
    ] {
        assert!(finds_key(leak.as_bytes()), "{leak}");
    }
    assert!(!finds_key(b"Password(hidden)"));
}

#[test]
fn a_running_daemon_shows_its_keys_to_nobody() {
    // Takes no key: our dials to it are never answered, which is what a wrong key looks like.
    let _router = TcpListener::bind(("127.0.0.2", port())).unwrap();
    let mut daemon = Daemon::start();
    daemon.wait_for("fairway is running");
    daemon.expect_nothing_shown("at the start");
    let process = Path::new("/proc").join(daemon.child.id().to_string());
    for file in ["cmdline", "environ", "comm", "maps"] {
        expect_no_key(file, &fs::read(process.join(file)).unwrap());
    }
    daemon.wait_for("is the TCP-MD5 password the same on both sides?");
    daemon.expect_nothing_shown("with a key that the neighbor does not have");

    for peer in ["inline", "127.0.0.3", "nobody"] {
        let output = daemon.ask(&["clear", "bgp", peer]);
        expect_no_key("clear", &output.stdout);
        expect_no_key("clear", &output.stderr);
    }
    let other = PEER_WITH_INLINE_KEY.replace("Canary7-inline", "Canary7-changed");
    daemon.apply("inline", &other);
    daemon.wait_until("the changed key is in the state", || {
        let state = fs::read(daemon.place.path().join("state/resources.json"));
        state.is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains("Canary7-changed"))
    });
    let broken = PEER_WITH_INLINE_KEY.replace("Canary7-inline", &"Canary7-broken".repeat(9));
    daemon.apply("inline", &broken);
    daemon.wait_for("bytes; TCP-MD5 allows 1 to 80");
    daemon.expect_nothing_shown("with a stale peer");
    daemon.signal(nix::sys::signal::Signal::SIGHUP);
    daemon.expect_nothing_shown("after SIGHUP");
    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(daemon.child.wait().unwrap().success());
    for name in FAULTY {
        assert!(daemon.log().contains(&format!("{name}.yaml")), "nothing was said of {name}");
    }
    expect_no_key("the log", daemon.log().as_bytes());
}

/// The last good version of a peer holds its key, so that a restart with a broken file keeps the
/// session: what holds a key is for the daemon's user alone.
#[test]
fn a_key_on_disk_is_for_the_daemon_alone() {
    let daemon = Daemon::start();
    daemon.wait_for("fairway is running");
    let state = daemon.place.path().join("state");
    daemon.wait_until("the state is on disk", || state.join("resources.json").exists());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    let with_key: Vec<PathBuf> = files_below(&state)
        .into_iter()
        .filter(|path| finds_key(&fs::read(path).unwrap()))
        .collect();
    for path in &with_key {
        assert_eq!(mode(path), 0o600, "{}", path.display());
    }
    assert_eq!(with_key, [state.join("resources.json")]);
}

#[test]
fn check_shows_no_key() {
    let place = TempDir::new().unwrap();
    let config = place.path().join("config");
    fs::create_dir(&config).unwrap();
    for (name, text) in RESOURCES {
        fs::write(config.join(format!("{name}.yaml")), with_port(text)).unwrap();
    }
    for format in [[].as_slice(), &["--json"]] {
        let mut command = Command::new(PROGRAM);
        command.args(["check", "--log-level", "trace"]).args(format).arg(&config);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "these files are at fault");
        let text = String::from_utf8_lossy(&output.stdout);
        for name in FAULTY {
            assert!(text.contains(&format!("{name}.yaml")), "nothing is said of {name}: {text}");
        }
        expect_no_key("check", &output.stdout);
        expect_no_key("check", &output.stderr);
    }
}
