//! How does a trial drive fairway? As an operator does: resource files, `fairway show`,
//! `fairway clear`, SIGTERM. Used by the trials.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::entry::{Kind, OBSERVER_AS, ORIGINATED, OUR_AS, Scene};
use crate::speaker::PORT;
use lab::fairway::program;
use lab::wait::{PATIENCE, wait_until};

/// A running `fairway run`.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    folder: PathBuf,
}

/// A command that ended.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Daemon {
    /// Starts it in `folder`, with a BGPPeer for the peer of `scene` and one for `observer`.
    pub(crate) fn start(
        folder: &Path,
        scene: &Scene,
        observer: [u8; 4],
        adjacent: bool,
    ) -> Result<Self> {
        fs::write(folder.join("peers.yaml"), resources(scene, observer, adjacent))
            .context("writing the resources")?;
        let log = File::create(folder.join("log")).context("the log")?;
        let child = Command::new(program())
            .args(["run", "--node", "node-a", "--bgp-listen", "none", "--log-level", "debug"])
            // The interfaces of this machine are not the test's.
            .env("FAIRWAY_LAYER2_EXCLUDE", ".")
            .args(["--config".as_ref(), folder.join("peers.yaml").as_os_str()])
            .args(["--state-dir".as_ref(), folder.join("state").as_os_str()])
            .args(["--socket".as_ref(), folder.join("socket").as_os_str()])
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", program().display()))?;
        Ok(Self { child, folder: folder.to_owned() })
    }

    /// Runs `fairway WORDS --socket ...` to its end.
    pub(crate) fn ask(&self, words: &[&str]) -> Result<Answer> {
        let socket = self.folder.join("socket");
        let output = Command::new("timeout")
            .args(["--kill-after=1", "10"])
            .arg(program())
            .args(words)
            .arg("--socket")
            .arg(socket)
            .stdin(Stdio::null())
            .output()
            .context("running fairway")?;
        let output_text = String::from_utf8(output.stdout).context("output that is UTF-8")?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(Answer { status: output.status, output: output_text, errors })
    }

    /// `fairway show WORDS`; failing is a fault.
    pub(crate) fn show(&self, words: &[&str]) -> Result<String> {
        let answer = self.ask(&[&["show"], words].concat())?;
        let line = words.join(" ");
        ensure!(answer.status.success(), "show {line}: {}: {}", answer.status, answer.errors);
        Ok(answer.output)
    }

    /// `fairway show WORDS --json`.
    pub(crate) fn show_json(&self, words: &[&str]) -> Result<Value> {
        let text = self.show(&[words, &["--json"]].concat())?;
        serde_json::from_str(&text).with_context(|| format!("JSON of show {}", words.join(" ")))
    }

    /// The only path to `prefix`, as `show` has it.
    pub(crate) fn path(&self, prefix: &str) -> Result<Option<Value>> {
        let family = if prefix.contains(':') { "ipv6" } else { "ipv4" };
        let entry = self.show_json(&["bgp", family, "unicast", prefix])?;
        let Some(paths) = entry.get("paths").and_then(Value::as_array) else { return Ok(None) };
        match paths.as_slice() {
            [] => Ok(None),
            [path] => Ok(Some(path.clone())),
            _ => bail!("more than one path to {prefix}: {entry}"),
        }
    }

    /// SIGTERM.
    pub(crate) fn terminate(&mut self) -> Result<()> {
        ensure!(self.child.try_wait()?.is_none(), "fairway has ended before SIGTERM");
        let process = Pid::from_raw(i32::try_from(self.child.id()).context("a process id")?);
        kill(process, Signal::SIGTERM).context("SIGTERM")
    }

    /// Its end, which SIGTERM has caused, and a log without an internal error.
    pub(crate) fn ended(mut self) -> Result<()> {
        let status = wait_until("fairway ends after SIGTERM", PATIENCE, || {
            self.child.try_wait()?.context("it still runs")
        })?;
        ensure!(status.success(), "exit status 0 after SIGTERM; got {status}");
        let log = self.log();
        for word in ["panicked", "internal error", "cannot be shown"] {
            ensure!(!log.contains(word), "no word of {word:?} in the log");
        }
        Ok(())
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        log_in(&self.folder)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The log of the daemon of `folder`.
pub(crate) fn log_in(folder: &Path) -> String {
    let bytes = fs::read(folder.join("log")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn resources(scene: &Scene, observer: [u8; 4], adjacent: bool) -> String {
    let speaker = Ipv4Addr::from(scene.speaker);
    let peer = |name: &str, address: [u8; 4], asn: u16, multihop: bool, rest: &str| {
        let address = Ipv4Addr::from(address);
        let multihop = if multihop { "\n  ebgpMultiHop: true" } else { "" };
        format!(
            "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {{name: {name}}}\nspec:\n  \
             myASN: {OUR_AS}\n  peerASN: {asn}\n  peerAddress: {address}\n  peerPort: {PORT}\n  \
             sourceAddress: {speaker}\n  routerID: {speaker}\n  dualStackAddressFamily: true\
             {multihop}\n{rest}---\n"
        )
    };
    let far = scene.kind == Kind::External && !adjacent;
    let several = if scene.offer.has_paths() { "  addPath: {receive: true}\n" } else { "" };
    let receiving = format!("  toReceive: {{allowed: {{mode: all}}}}\n{several}");
    let telling = "  toAdvertise: {allowed: {mode: all}}\n";
    peer("first", scene.peer, scene.kind.peer_asn(), far, &receiving)
        + &peer("second", observer, OBSERVER_AS, false, telling)
        + &format!(
            "apiVersion: metallb.io/v1beta1\nkind: BGPAdvertisement\nmetadata: {{name: own}}\n\
             spec: {{prefixes: [{ORIGINATED}]}}\n"
        )
}
