//! The real daemon with a folder of its own, and what it says.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use tempfile::TempDir;

use crate::PATIENCE;
use crate::router::Router;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairway");

/// A router with graceful restart, and what is announced to it: 203.0.113.1.
const PEER: &str = "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: router}\n\
    spec: {myASN: 65001, peerASN: 65002, peerAddress: 127.0.0.2, peerPort: PORT, \
    enableGracefulRestart: true}\n---\n\
    apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {name: pool}\n\
    spec: {addresses: [203.0.113.0/24]}\n---\n\
    apiVersion: metallb.io/v1beta1\nkind: BGPAdvertisement\nmetadata: {name: all}\n";

fn service(name: &str, address: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\n  \
         annotations: {{metallb.io/loadBalancerIPs: {address}}}\n\
         spec: {{type: LoadBalancer, ports: [{{port: 80}}]}}\n"
    )
}

/// Configuration and state of a daemon that is started again and again.
pub(crate) struct Place {
    folder: TempDir,
}

/// One run of it.
pub(crate) struct Daemon {
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Place {
    /// Two folders of files: the first has all but a second Service, which has 203.0.113.2.
    pub(crate) fn new(router: &Router) -> Self {
        let place = Self { folder: TempDir::new().unwrap() };
        for folder in ["config", "more", "state"] {
            fs::create_dir(place.path(folder)).unwrap();
        }
        let peer = PEER.replace("PORT", &router.port().to_string());
        fs::write(place.path("config/peer.yaml"), peer).unwrap();
        fs::write(place.path("config/web.yaml"), service("web", "203.0.113.1")).unwrap();
        fs::write(place.path("more/dns.yaml"), service("dns", "203.0.113.2")).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn announced(&self) -> PathBuf {
        self.path("state/announced.json")
    }

    /// Starts the daemon.
    pub(crate) fn run(&self) -> Daemon {
        self.run_under(&[])
    }

    /// Starts it without the privilege to bypass permissions, even if root runs the test.
    pub(crate) fn run_without_privileges(&self) -> Daemon {
        let without = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"];
        self.run_under(if geteuid().is_root() { &without } else { &[] })
    }

    /// Starts it through another program.
    pub(crate) fn run_under(&self, before: &[&str]) -> Daemon {
        let words: Vec<&str> = before.iter().copied().chain([PROGRAM]).collect();
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .args(["run", "--node", "node-a", "--bgp-listen", "none"])
            .arg("--config")
            .arg(self.path("config"))
            .arg("--config")
            .arg(self.path("more"))
            .arg("--state-dir")
            .arg(self.path("state"))
            .arg("--socket")
            .arg(self.path("socket"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // No file: it may not be allowed to write any.
        let log = Arc::default();
        listen(child.stdout.take().unwrap(), &log);
        listen(child.stderr.take().unwrap(), &log);
        Daemon { child, log }
    }
}

impl Daemon {
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits for a line that has all these words.
    pub(crate) fn wait_for_line(&self, words: &[&str]) {
        let is_there = || self.log().lines().any(|line| words.iter().all(|it| line.contains(it)));
        wait_until(&format!("{words:?}"), is_there, || self.log());
    }

    /// Whether nothing was said that an operator must look at.
    pub(crate) fn complains(&self) -> bool {
        self.log().contains("ERROR")
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn end(mut self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
        self.child.wait().unwrap();
    }
}

fn listen(output: impl Read + Send + 'static, log: &Arc<Mutex<String>>) {
    let log = Arc::clone(log);
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            *log.lock().unwrap() += &(line + "\n");
        }
    });
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[allow(clippy::disallowed_methods, reason = "a real daemon lives in real time")]
pub(crate) fn wait_until(what: &str, done: impl Fn() -> bool, seen: impl Fn() -> String) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "expected {what} within {PATIENCE:?}:\n{}", seen());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a file is there and holds `text`.
pub(crate) fn wait_for_text(path: &Path, text: &str) {
    let read = || fs::read_to_string(path).unwrap_or_default();
    wait_until(&format!("{text} in {}", path.display()), || read().contains(text), read);
}
