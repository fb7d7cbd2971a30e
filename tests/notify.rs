//! What the daemon tells a service manager, with a socket of ours in systemd's place. The real daemon,
//! a second one as its router, no root, loopback only.

#![allow(clippy::panic, clippy::unwrap_used)] // What fails here fails the test.
#![allow(clippy::disallowed_methods, reason = "a real daemon lives in real time")]

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairway");
/// Far more than anything here takes; a neighbour that is off is waited for 10 s.
const PATIENCE: Duration = Duration::from_secs(30);
const WATCHDOG: Duration = Duration::from_secs(1);

const ANNOUNCER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

const ROUTE: &str = "apiVersion: metallb.io/v1beta1\nkind: BGPAdvertisement\n\
                     metadata: {name: all}\nspec: {prefixes: [198.51.100.0/24]}\n";

/// A place for daemons, and the end of systemd.
struct Stage {
    place: TempDir,
    manager: UnixDatagram,
    router_port: u16,
}

struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // It has ended already where the test got that far.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Daemon {
    fn signal(&self, signal: Signal) {
        let process = Pid::from_raw(i32::try_from(self.0.id()).unwrap());
        nix::sys::signal::kill(process, signal).unwrap();
    }
}

impl Stage {
    fn new() -> Self {
        let place = TempDir::new().unwrap();
        let manager = UnixDatagram::bind(place.path().join("notify")).unwrap();
        let router_port = TcpListener::bind((ROUTER, 0)).unwrap().local_addr().unwrap().port();
        // The largest port that a BGPPeer may have.
        let router_port = if router_port > 16_384 { router_port / 4 } else { router_port };
        Self { place, manager, router_port }
    }

    fn peer(&self, name: &str, own: Ipv4Addr, other: Ipv4Addr, rest: &str) -> String {
        let (my_asn, peer_asn) = if own == ANNOUNCER { (65001, 65002) } else { (65002, 65001) };
        format!(
            "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {{name: {name}}}\nspec:\n  \
             myASN: {my_asn}\n  peerASN: {peer_asn}\n  peerAddress: {other}\n  peerPort: {}\n  \
             sourceAddress: {own}\n  routerID: {own}\n{rest}",
            self.router_port
        )
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.place.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn start(&self, name: &str, listen: &str) -> Daemon {
        let below = |what: &str| self.place.path().join(format!("{name}{what}"));
        fs::create_dir_all(below("")).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["run", "--node", name, "--bgp-listen", listen, "--config"]);
        command.arg(below("")).arg("--state-dir").arg(below(".state"));
        command.arg("--socket").arg(below(".sock"));
        command.stderr(File::create(below(".log")).unwrap());
        if name == "announcer" {
            command.env("NOTIFY_SOCKET", self.place.path().join("notify"));
            command.env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
        }
        Daemon(command.spawn().unwrap())
    }

    fn start_announcer(&self) -> Daemon {
        self.start("announcer", "none")
    }

    fn start_router(&self) -> Daemon {
        self.write(
            "router/peer.yaml",
            &self.peer(
                "announcer",
                ROUTER,
                ANNOUNCER,
                "  passive: true\n  toReceive: {allowed: {mode: all}}\n",
            ),
        );
        self.start("router", &format!("{ROUTER}:{}", self.router_port))
    }

    /// The next message, if one comes within this time.
    fn next(&self, within: Duration) -> Option<String> {
        self.manager.set_read_timeout(Some(within)).unwrap();
        let mut message = vec![0; 4096];
        let length = self.manager.recv(&mut message).ok()?;
        message.truncate(length);
        Some(String::from_utf8(message).unwrap())
    }

    /// All messages up to the first that has this line.
    fn messages_until(&self, line: &str) -> Vec<String> {
        let start = Instant::now();
        let mut messages = Vec::new();
        while let Some(message) = self.next(PATIENCE.saturating_sub(start.elapsed())) {
            messages.push(message);
            if messages.last().unwrap().lines().any(|it| it == line) {
                return messages;
            }
        }
        panic!("expected {line} within {PATIENCE:?}, got {messages:#?}");
    }

    fn is_at_router(&self, prefix: &str) -> bool {
        let mut ask = Command::new(PROGRAM);
        ask.args(["show", "bgp", "ipv4", "unicast", "--socket"]);
        let answer = ask.arg(self.place.path().join("router.sock")).output().unwrap();
        String::from_utf8_lossy(&answer.stdout).contains(prefix)
    }
}

fn has_line(messages: &[String], line: &str) -> bool {
    messages.iter().flat_map(|message| message.lines()).any(|it| it == line)
}

#[test]
fn a_daemon_without_neighbors_is_ready_reloads_lives_and_leaves() {
    let stage = Stage::new();
    stage.write("announcer/route.yaml", ROUTE);
    let mut daemon = stage.start_announcer();
    let start = Instant::now();
    let messages = stage.messages_until("READY=1");
    assert!(has_line(&messages, "STATUS=no neighbors"), "{messages:#?}");
    assert!(start.elapsed() < Duration::from_secs(5), "there was nothing to wait for");

    // Signs of life go on and on, faster than they are asked for.
    let start = Instant::now();
    for _ in 0..4 {
        stage.messages_until("WATCHDOG=1");
    }
    assert!(start.elapsed() < 4 * WATCHDOG, "{:?}", start.elapsed());

    // While files are read again, a changed one among them, it is not ready.
    daemon.signal(Signal::SIGHUP);
    let reloading = stage.messages_until("RELOADING=1");
    let last = reloading.last().unwrap();
    assert!(last.lines().any(|line| line.starts_with("MONOTONIC_USEC=")), "{last}");
    stage.messages_until("READY=1");

    daemon.signal(Signal::SIGTERM);
    stage.messages_until("STOPPING=1");
    assert!(daemon.0.wait().unwrap().success());
}

#[test]
fn a_daemon_is_ready_when_its_routes_are_at_the_neighbor() {
    let stage = Stage::new();
    stage.write("announcer/route.yaml", ROUTE);
    stage.write("announcer/peer.yaml", &stage.peer("router", ANNOUNCER, ROUTER, ""));
    let _announcer = stage.start_announcer();
    // Its router is off, and it says so.
    let waiting = "STATUS=0 of 1 neighbor Established, 0 routes announced; waiting for router (";
    let start = Instant::now();
    let is_waiting = |message: &String| message.lines().any(|line| line.starts_with(waiting));
    let mut before = Vec::new();
    while !before.iter().any(is_waiting) {
        before.extend(stage.next(PATIENCE.saturating_sub(start.elapsed())));
        assert!(start.elapsed() < PATIENCE, "{before:#?}");
    }
    assert!(!has_line(&before, "READY=1"), "{before:#?}");
    assert!(before.iter().any(|message| message.contains("EXTEND_TIMEOUT_USEC=")), "{before:#?}");

    let _router = stage.start_router();
    let messages = stage.messages_until("READY=1");
    let up = "STATUS=1 of 1 neighbor Established, 1 route announced";
    assert!(messages.last().unwrap().lines().any(|line| line == up), "{messages:#?}");
    // It has been sent; the router may need a moment to read it.
    let start = Instant::now();
    while !stage.is_at_router("198.51.100.0/24") {
        assert!(start.elapsed() < Duration::from_secs(1), "ready, and the route is not there");
    }
}

#[test]
fn a_router_that_stays_off_is_waited_for_so_long_and_no_longer() {
    let stage = Stage::new();
    stage.write("announcer/route.yaml", ROUTE);
    stage.write("announcer/peer.yaml", &stage.peer("router", ANNOUNCER, ROUTER, ""));
    let start = Instant::now();
    let _announcer = stage.start_announcer();
    let messages = stage.messages_until("READY=1");
    assert!(start.elapsed() >= Duration::from_secs(10), "{:?}", start.elapsed());
    let named = |message: &String| message.contains("waiting for router (");
    assert!(messages.iter().any(named), "{messages:#?}");
}

#[test]
fn nobody_is_told_where_nobody_asked() {
    let stage = Stage::new();
    stage.write("router/route.yaml", ROUTE);
    let mut daemon = stage.start_router();
    let log = || fs::read_to_string(stage.place.path().join("router.log")).unwrap();
    let start = Instant::now();
    while !log().contains("fairway is running") {
        assert!(start.elapsed() < PATIENCE, "{}", log());
    }
    daemon.signal(Signal::SIGTERM);
    assert!(daemon.0.wait().unwrap().success());
    assert_eq!(stage.next(Duration::from_millis(1)), None);
    assert!(!log().contains("service manager"), "{}", log());
}
