//! FRR on a node and on a router, in two network namespaces, each with its sockets in its own folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use fairway_frr::io::vty::Connection;
use tokio::time::{Instant, sleep};

/// Timeout for everything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Where a release of FRR is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Release {
    /// 8.4, of this machine.
    Bookworm,
    /// 10.3, in its own root.
    Trixie(PathBuf),
}

impl Release {
    fn daemons(&self) -> &'static [&'static str] {
        match self {
            Self::Bookworm => &["zebra", "staticd", "bfdd", "bgpd"],
            Self::Trixie(_) => &["mgmtd", "zebra", "staticd", "bfdd", "bgpd"],
        }
    }
}

/// A namespace with FRR in it.
pub(crate) struct Host {
    namespace: String,
    release: Release,
    /// The folder of its sockets, as seen from outside.
    pub(crate) directory: PathBuf,
    /// The same, as the daemons see it.
    seen: PathBuf,
    _folder: tempfile::TempDir,
}

/// Runs a command to its end. Its output is not captured: a daemon that it starts would keep it open.
pub(crate) fn run(command: &[&str]) -> Result<()> {
    let [program, arguments @ ..] = command else { bail!("no program") };
    let mut command_line = Command::new(program);
    command_line.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command_line.status().context(program.to_string())?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// A node, 10.77.0.1, and a router, 10.77.0.2, on one cable.
pub(crate) fn node_and_router(node: Release) -> Result<(Host, Host)> {
    let (node, router) = (Host::new("node", node)?, Host::new("router", Release::Bookworm)?);
    let (one, two) = (node.namespace.as_str(), router.namespace.as_str());
    run(&[
        "ip", "link", "add", "cable", "netns", one, "type", "veth", "peer", "name", "cable",
        "netns", two,
    ])?;
    for (namespace, address) in [(one, "10.77.0.1/24"), (two, "10.77.0.2/24")] {
        run(&["ip", "-n", namespace, "link", "set", "lo", "up"])?;
        run(&["ip", "-n", namespace, "address", "add", address, "dev", "cable"])?;
        run(&["ip", "-n", namespace, "link", "set", "cable", "up"])?;
    }
    Ok((node, router))
}

impl Host {
    fn new(name: &str, release: Release) -> Result<Self> {
        let namespace = format!("frr-{}-{name}", std::process::id());
        run(&["ip", "netns", "add", &namespace])?;
        let root = match &release {
            Release::Bookworm => PathBuf::from("/"),
            Release::Trixie(root) => root.clone(),
        };
        let folder =
            tempfile::Builder::new().prefix("fairway-frr-").tempdir_in(root.join("tmp"))?;
        let directory = folder.path().to_owned();
        let seen = Path::new("/").join(directory.strip_prefix(&root)?);
        let host = Self { namespace, release, directory, seen, _folder: folder };
        std::fs::write(host.directory.join("empty.conf"), "")?;
        let seen = host.seen.display().to_string();
        host.execute(&["chown", "-R", "frr:frr", &seen])?;
        host.execute(&["chmod", "755", &seen])?;
        Ok(host)
    }

    /// Runs a command in the root of the daemons.
    fn execute(&self, command: &[&str]) -> Result<()> {
        let namespace = ["ip", "netns", "exec", &self.namespace];
        match &self.release {
            Release::Bookworm => run(&[&namespace, command].concat()),
            Release::Trixie(root) => {
                let root = root.display().to_string();
                let script = "mount -t proc p \"$0/proc\" && exec chroot \"$0\" \"$@\"";
                let outer = ["unshare", "-m", "sh", "-c", script, &root];
                run(&[&namespace, outer.as_slice(), command].concat())
            }
        }
    }

    pub(crate) fn start(&self) -> Result<()> {
        self.release.daemons().iter().try_for_each(|daemon| self.start_daemon(daemon))
    }

    pub(crate) fn start_daemon(&self, daemon: &str) -> Result<()> {
        let seen = self.seen.display();
        let program = format!("/usr/lib/frr/{daemon}");
        let file = |name: &str| format!("{seen}/{name}");
        let mut words = vec![program, "-d".to_owned(), "--vty_socket".to_owned(), seen.to_string()];
        words.extend(["-i".to_owned(), file(&format!("{daemon}.pid"))]);
        words.extend(["-z".to_owned(), file("zserv.api"), "-A".to_owned(), "127.0.0.1".to_owned()]);
        words.extend([
            "-P".to_owned(),
            "0".to_owned(),
            "--log".to_owned(),
            format!("file:{}", file("log")),
        ]);
        if self.release == Release::Bookworm {
            words.extend(["-f".to_owned(), file("empty.conf")]);
            if daemon == "bfdd" {
                words.extend(["--bfdctl".to_owned(), file("bfdd.sock")]);
            }
        }
        self.execute(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub(crate) fn signal(&self, daemon: &str, signal: &str) -> Result<()> {
        let pid = std::fs::read_to_string(self.directory.join(format!("{daemon}.pid")))?;
        run(&["kill", signal, pid.trim()])
    }

    /// A connection to one of its daemons.
    pub(crate) async fn vty(&self, daemon: &str) -> Result<Connection> {
        let mut vty = Connection::connect(self.directory.join(format!("{daemon}.vty"))).await?;
        vty.command("enable").await?;
        Ok(vty)
    }

    /// Configures bgpd by hand.
    pub(crate) async fn configure(&self, lines: &[&str]) -> Result<()> {
        let mut bgpd = self.vty("bgpd").await?;
        for line in ["configure terminal"].iter().chain(lines) {
            let reply = bgpd.command(line).await?;
            ensure!(!reply.text.contains("Unknown"), "{line}: {}", reply.text);
        }
        Ok(())
    }

    /// The answer of bgpd.
    pub(crate) async fn ask(&self, command: &str) -> Result<String> {
        Ok(self.vty("bgpd").await?.command(command).await?.text)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for daemon in self.release.daemons() {
            // It may be dead already.
            let _ = self.signal(daemon, "-KILL");
        }
        let _ = Command::new("ip")
            .args(["netns", "delete", &self.namespace])
            .stderr(Stdio::null())
            .status();
    }
}

/// Waits until the condition holds, and returns how long that took.
pub(crate) async fn wait_until<F: Future<Output = Result<bool>>>(
    what: &str,
    mut is_so: impl FnMut() -> F,
) -> Result<Duration> {
    let begun = Instant::now();
    loop {
        let found = is_so().await;
        if matches!(found, Ok(true)) {
            return Ok(begun.elapsed());
        }
        ensure!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what} ({found:?})");
        sleep(Duration::from_millis(2)).await;
    }
}
