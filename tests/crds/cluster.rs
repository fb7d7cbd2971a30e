//! How does a test get a Kubernetes API server? A real one with its etcd, on loopback, in a folder
//! of its own; it ends with the test. There is nothing else: no node, no controller, no kubelet.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::http;
use crate::wait::wait_until;

/// A machine that is busy with other tests takes its time.
const START_LIMIT: Duration = Duration::from_secs(120);

const TOKEN: &str = "loopback-only";

/// A running API server.
pub(crate) struct Cluster {
    assets: PathBuf,
    folder: tempfile::TempDir,
    server: String,
    /// Where `kubectl proxy` answers in plain HTTP.
    proxy: SocketAddr,
    // Ended in this order: who asks before who is asked.
    processes: Vec<Process>,
}

/// A process that does not outlive the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The folder with the programs; `None` when there is none on this machine.
pub(crate) fn assets() -> Result<Option<PathBuf>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/kube-apiserver.sh");
    let output = Command::new(script).arg("--find").stderr(Stdio::inherit()).output()?;
    match output.status.code() {
        Some(0) => Ok(Some(PathBuf::from(String::from_utf8(output.stdout)?.trim_end()))),
        Some(3) => Ok(None),
        _ => anyhow::bail!("scripts/kube-apiserver.sh ended with {}", output.status),
    }
}

impl Cluster {
    /// Starts one and waits until it is ready.
    pub(crate) fn start(assets: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let at = folder.path();
        let [etcd, etcd_peers, secure] = free_ports()?;
        let store = format!("http://127.0.0.1:{etcd}");
        let peers = format!("http://127.0.0.1:{etcd_peers}");
        let mut processes = vec![start(
            Command::new(assets.join("etcd"))
                .args(["--data-dir".as_ref(), at.join("etcd").as_os_str()])
                .args(["--listen-client-urls", &store, "--advertise-client-urls", &store])
                .args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers])
                .args(["--initial-cluster", &format!("default={peers}")]),
            &at.join("etcd.log"),
        )?];
        let key = at.join("service-accounts.key");
        let made = Command::new("openssl").args(["genrsa", "-out"]).arg(&key).output();
        ensure!(made.context("openssl")?.status.success(), "openssl makes no key");
        std::fs::write(at.join("tokens.csv"), format!("{TOKEN},test,1,system:masters\n"))?;
        let path = |option: &str, path: &Path| format!("--{option}={}", path.display());
        processes.push(start(
            Command::new(assets.join("kube-apiserver"))
                .arg(format!("--etcd-servers={store}"))
                .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
                .arg(format!("--secure-port={secure}"))
                .arg(path("cert-dir", &at.join("certificates")))
                .arg(path("token-auth-file", &at.join("tokens.csv")))
                .arg(path("service-account-key-file", &key))
                .arg(path("service-account-signing-key-file", &key))
                .arg("--service-account-issuer=https://kubernetes.default.svc")
                .arg("--service-cluster-ip-range=10.96.0.0/16,fd96::/112")
                .args(["--authorization-mode=RBAC", "--endpoint-reconciler-type=none"])
                .arg("--disable-admission-plugins=ServiceAccount"),
            &at.join("kube-apiserver.log"),
        )?);
        let server = format!("https://127.0.0.1:{secure}");
        let mut proxy = kubectl(assets, at, &server)
            .args(["proxy", "--port=0"])
            .stdout(Stdio::piped())
            .stderr(File::create(at.join("proxy.log"))?)
            .spawn()
            .context("starting kubectl proxy")?;
        let mut line = String::new();
        let answer = proxy.stdout.take().context("kubectl proxy says nothing")?;
        processes.insert(0, Process(proxy));
        BufReader::new(answer).read_line(&mut line)?;
        let address = line.rsplit(' ').next().unwrap_or_default().trim_end();
        let proxy = address.parse().with_context(|| format!("kubectl proxy says {line:?}"))?;
        let assets = assets.to_owned();
        let cluster = Self { assets, folder, server, proxy, processes };
        cluster.wait_until_ready()?;
        Ok(cluster)
    }

    fn wait_until_ready(&self) -> Result<()> {
        let is_ready = || {
            let reply = http::ask(self.proxy, "GET", "/readyz", None)?;
            ensure!(reply.status == 200, "it says {} {}", reply.status, reply.text);
            // Made by the server itself, a moment later.
            let reply = http::ask(self.proxy, "GET", "/api/v1/namespaces/default", None)?;
            ensure!(reply.status == 200, "there is no namespace yet");
            Ok(())
        };
        wait_until("the API server is ready", START_LIMIT, is_ready).inspect_err(|_| {
            let log = self.folder.path().join("kube-apiserver.log");
            let text = std::fs::read_to_string(log).unwrap_or_default();
            let lines: Vec<_> = text.lines().collect();
            let last = lines.len().saturating_sub(20);
            eprintln!("{}", lines.get(last..).unwrap_or_default().join("\n"));
        })
    }

    /// Asks in plain HTTP.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<http::Reply> {
        http::ask(self.proxy, method, path, body)
            .with_context(|| format!("{method} {path}: {} processes run", self.processes.len()))
    }

    /// What `kubectl` with these words prints; `input` is what it reads. It has to succeed.
    pub(crate) fn kubectl(&self, words: &[&str], input: Option<&Path>) -> Result<String> {
        let mut command = kubectl(&self.assets, self.folder.path(), &self.server);
        if let Some(input) = input {
            command.stdin(File::open(input)?);
        }
        let output = command.args(words).output()?;
        ensure!(
            output.status.success(),
            "kubectl {}: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// A folder that goes with the cluster.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn kubectl(assets: &Path, folder: &Path, server: &str) -> Command {
    let mut command = Command::new(assets.join("kubectl"));
    command
        .env("HOME", folder)
        .env("KUBECONFIG", folder.join("none"))
        .args(["--server", server, "--token", TOKEN, "--insecure-skip-tls-verify"])
        .stdin(Stdio::null());
    command
}

fn start(command: &mut Command, log: &Path) -> Result<Process> {
    let output = File::create(log)?;
    let child = command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).spawn();
    let program = command.get_program().to_owned();
    Ok(Process(child.with_context(|| format!("starting {}", program.display()))?))
}

/// Ports that nobody listens on just now.
fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let sockets: Vec<_> =
        (0..N).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    let mut ports = [0; N];
    for (port, socket) in ports.iter_mut().zip(&sockets) {
        *port = socket.local_addr()?.port();
    }
    Ok(ports)
}
