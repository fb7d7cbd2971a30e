//! The two daemons of the demo, their files, and the wall clock.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

use super::router::{Heard, Log};

/// How long each step may take before the demo fails.
const PATIENCE: Duration = Duration::from_secs(20);
/// Both are on this machine, and each reaches the other by its address.
const ANNOUNCER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Everything that runs. Dropping it ends the daemons and removes the files.
pub(super) struct Stage {
    /// The daemons end when they are dropped: before their files are removed, so above them.
    _daemons: [Child; 2],
    folder: Folder,
    started: Instant,
    log: Log,
}

impl Stage {
    /// Writes the files and starts both daemons.
    pub(super) fn set() -> Result<Self> {
        let folder = Folder::new()?;
        let (announcer_port, router_port) = (free_port(ANNOUNCER)?, free_port(ROUTER)?);
        let peer = |name, my_asn, peer_asn, own, other, port| {
            format!(
                "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {{name: {name}}}\n\
                 spec:\n  myASN: {my_asn}\n  peerASN: {peer_asn}\n  peerAddress: {other}\n  \
                 peerPort: {port}\n  sourceAddress: {own}\n  routerID: {own}\n"
            )
        };
        folder.write(
            "announcer/peer.yaml",
            &peer("router", 65001, 65002, ANNOUNCER, ROUTER, router_port),
        )?;
        folder.write("announcer/network.yaml", NETWORK)?;
        folder.write(
            "router/peer.yaml",
            &(peer("announcer", 65002, 65001, ROUTER, ANNOUNCER, announcer_port)
                + "  toReceive: {allowed: {mode: all}}\n"),
        )?;
        let started = Instant::now();
        let mut router = folder.daemon("router", ROUTER, router_port)?;
        let announcer = folder.daemon("announcer", ANNOUNCER, announcer_port)?;
        let log = Log::of(router.stderr.take().context("the router has no log")?);
        Ok(Self { _daemons: [announcer, router], folder, started, log })
    }

    /// The folder that the announcer watches.
    pub(super) fn announcer_files(&self) -> PathBuf {
        self.folder.0.join("announcer")
    }

    /// The socket of the announcer.
    pub(super) fn announcer_socket(&self) -> PathBuf {
        self.folder.0.join("announcer.sock")
    }

    /// Waits for the session; returns how long it took from the start of the daemons.
    pub(super) async fn session_up(&mut self) -> Result<Duration> {
        self.wait_for("the session", |heard| (*heard == Heard::SessionUp).then_some(())).await?;
        Ok(self.started.elapsed())
    }

    /// Adds a Service; returns which prefix arrived at the router, and after how long.
    pub(super) async fn add_service(&mut self, name: &str) -> Result<(String, Duration)> {
        let text = format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n\
             spec:\n  type: LoadBalancer\n  ports: [{{port: 80, protocol: TCP}}]\n"
        );
        let renamed = self.folder.write(&format!("announcer/{name}.yaml"), &text)?;
        let what = format!("the route of {name}");
        let announced = |heard: &Heard| match heard {
            Heard::Announced(prefix) => Some(prefix.clone()),
            _ => None,
        };
        let prefix = self.wait_for(&what, announced).await?;
        Ok((prefix, renamed.elapsed()))
    }

    /// Removes a Service; returns which prefix the router lost, and after how long.
    pub(super) async fn remove_service(&mut self, name: &str) -> Result<(String, Duration)> {
        let path = self.announcer_files().join(format!("{name}.yaml"));
        let removed = Instant::now();
        fs::remove_file(&path).with_context(|| path.display().to_string())?;
        let what = format!("the withdrawal of {name}");
        let withdrawn = |heard: &Heard| match heard {
            Heard::Withdrawn(prefix) => Some(prefix.clone()),
            _ => None,
        };
        let prefix = self.wait_for(&what, withdrawn).await?;
        Ok((prefix, removed.elapsed()))
    }

    /// The next event at the router, as text.
    pub(super) async fn next_event(&mut self) -> Result<String> {
        Ok(match self.log.next().await? {
            Heard::SessionUp => "session up".to_owned(),
            Heard::SessionDown(reason) => format!("session down: {reason}"),
            Heard::Announced(prefix) => format!("{prefix} announced"),
            Heard::Withdrawn(prefix) => format!("{prefix} withdrawn"),
        })
    }

    async fn wait_for<T>(&mut self, what: &str, wanted: impl Fn(&Heard) -> Option<T>) -> Result<T> {
        let heard = async {
            loop {
                let heard = self.log.next().await?;
                if let Some(found) = wanted(&heard) {
                    return Ok(found);
                }
            }
        };
        let seconds = PATIENCE.as_secs();
        let outcome = timeout(PATIENCE, heard).await;
        outcome.with_context(|| format!("{what} did not come within {seconds} s"))?
    }
}

/// A pool, and an advertisement of all its addresses to all peers.
const NETWORK: &str = "\
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: demo}
spec:
  addresses: [198.51.100.0/24]
---
apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: demo}
";

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("fairway-demo-{}", std::process::id()));
        // Ours alone, and new: others may write to the folder above.
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| path.display().to_string())?;
        for part in ["announcer", "router"] {
            let part = path.join(part);
            fs::create_dir_all(&part).with_context(|| part.display().to_string())?;
        }
        Ok(Self(path))
    }

    /// Puts a whole file in place with a rename; returns when.
    fn write(&self, name: &str, text: &str) -> Result<Instant> {
        let path = self.0.join(name);
        let beside = path.with_extension("new");
        fs::write(&beside, text).with_context(|| beside.display().to_string())?;
        let now = Instant::now();
        fs::rename(&beside, &path).with_context(|| path.display().to_string())?;
        Ok(now)
    }

    fn daemon(&self, name: &str, address: Ipv4Addr, port: u16) -> Result<Child> {
        let binary = std::env::current_exe().context("cannot find the path of this binary")?;
        let path = |suffix: &str| self.0.join(format!("{name}{suffix}"));
        let log = if name == "router" { Stdio::piped() } else { Stdio::null() };
        Command::new(binary)
            .args(["--log-format", "json", "--log-level", "debug", "run", "--node", name])
            .args([Path::new("--config"), &path("")])
            .args([Path::new("--socket"), &path(".sock")])
            .args([Path::new("--state-dir"), &path(".state")])
            .args(["--bgp-listen", &format!("{address}:{port}")])
            .args(["--metrics-listen", "none"])
            .stdin(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start the daemon {name}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed stays in /tmp.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Those that peerPort allows, without the well-known ones.
const PORTS: std::ops::Range<u16> = 10_790..16_384;

/// A port that is free at the moment. Each process begins elsewhere: between this and the daemon's own look another demo
/// must not find the same.
fn free_port(address: Ipv4Addr) -> Result<u16> {
    let own = usize::try_from(std::process::id()).unwrap_or_default() % PORTS.len();
    let mut ports = PORTS.skip(own).chain(PORTS.take(own));
    ports
        .find(|port| TcpListener::bind((address, *port)).is_ok())
        .with_context(|| format!("no free port on {address}"))
}
