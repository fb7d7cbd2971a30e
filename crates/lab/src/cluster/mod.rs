//! How does a test get a Kubernetes API server? A real one with its etcd, in a folder of its own and
//! a network of the test's choice; it ends with the test. There is nothing else: no node, no
//! controller, no kubelet. Used by the suites `crds`, `kubernetes` and `soak`.

pub mod http;

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::namespace::{Network, Place};
use crate::process::{Process, tail};
use crate::wait::wait_until;

/// A machine that is busy with other tests is slow.
const START_LIMIT: Duration = Duration::from_secs(120);

/// The token of the test itself, with all permissions.
pub const TOKEN: &str = "of-the-test";

/// A running API server.
pub struct Cluster {
    assets: PathBuf,
    network: Network,
    address: IpAddr,
    ports: Ports,
    // Ended in this order: clients before servers.
    proxy: Option<Process>,
    server: Option<Process>,
    _etcd: Process,
    folder: tempfile::TempDir,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    etcd: u16,
    etcd_peers: u16,
    secure: u16,
}

/// The folder with the programs; `None` when there is none on this machine.
pub fn assets() -> Result<Option<PathBuf>> {
    let script = crate::checkout().join("scripts/kube-apiserver.sh");
    let output = Command::new(script).arg("--find").stderr(Stdio::inherit()).output()?;
    match output.status.code() {
        Some(0) => Ok(Some(PathBuf::from(String::from_utf8(output.stdout)?.trim_end()))),
        Some(3) => Ok(None),
        _ => anyhow::bail!("scripts/kube-apiserver.sh ended with {}", output.status),
    }
}

impl Cluster {
    /// Starts one that is reachable from this machine only, and waits until it is ready.
    pub fn start(assets: &Path) -> Result<Self> {
        let [etcd, etcd_peers, secure] = free_ports()?;
        let ports = Ports { etcd, etcd_peers, secure };
        Self::start_at(assets, Network::Own, Ipv4Addr::LOCALHOST.into(), ports)
    }

    /// Starts one at an address of a namespace that has nothing else, and waits until it is ready.
    pub fn start_in(assets: &Path, network: Network, address: IpAddr) -> Result<Self> {
        let ports = Ports { etcd: 2379, etcd_peers: 2380, secure: 6443 };
        Self::start_at(assets, network, address, ports)
    }

    fn start_at(assets: &Path, network: Network, address: IpAddr, ports: Ports) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let at = folder.path();
        let store = format!("http://127.0.0.1:{}", ports.etcd);
        let peers = format!("http://127.0.0.1:{}", ports.etcd_peers);
        let arguments = [
            format!("--data-dir={}", at.join("etcd").display()),
            format!("--listen-client-urls={store}"),
            format!("--advertise-client-urls={store}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
        ];
        let log = at.join("etcd.log");
        let etcd = Process::spawn(&network, &assets.join("etcd"), &arguments, &log)?;
        let key = at.join("service-accounts.key");
        let made = Command::new("openssl").args(["genrsa", "-out"]).arg(&key).output();
        ensure!(made.context("openssl")?.status.success(), "openssl makes no key");
        make_front_proxy(at)?;
        std::fs::write(at.join("tokens.csv"), format!("{TOKEN},test,1,system:masters\n"))?;
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": [{ "level": "Metadata", "userGroups": ["system:serviceaccounts"] }, { "level": "None" }],
        });
        std::fs::write(at.join("audit-policy.json"), policy.to_string())?;
        let assets = assets.to_owned();
        let (proxy, server) = (None, None);
        let mut cluster =
            Self { assets, network, address, ports, proxy, server, _etcd: etcd, folder };
        cluster.start_server()?;
        let arguments =
            ["proxy".to_owned(), format!("--unix-socket={}", cluster.socket().display())];
        let arguments: Vec<_> = cluster.credentials().into_iter().chain(arguments).collect();
        let (kubectl, log) = (cluster.assets.join("kubectl"), cluster.path("proxy.log"));
        cluster.proxy = Some(Process::spawn(&cluster.network, &kubectl, &arguments, &log)?);
        cluster.wait_until_ready()?;
        Ok(cluster)
    }

    /// Starts the API server again, with all its data.
    pub fn start_server(&mut self) -> Result<()> {
        let path = |option: &str, name: &str| format!("--{option}={}", self.path(name).display());
        let arguments = [
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd),
            format!("--bind-address={}", self.address),
            format!("--advertise-address={}", self.address),
            format!("--secure-port={}", self.ports.secure),
            path("cert-dir", "certificates"),
            path("token-auth-file", "tokens.csv"),
            path("service-account-key-file", "service-accounts.key"),
            path("service-account-signing-key-file", "service-accounts.key"),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--service-cluster-ip-range=10.96.0.0/16,fd96::/112".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            // There is no controller to create the ServiceAccounts that it waits for.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            // As kubeadm sets it: how it proves itself to servers behind it, and names the user.
            path("requestheader-client-ca-file", "front-proxy-ca.crt"),
            path("proxy-client-cert-file", "front-proxy-client.crt"),
            path("proxy-client-key-file", "front-proxy-client.key"),
            "--requestheader-allowed-names=front-proxy-client".to_owned(),
            "--requestheader-username-headers=X-Remote-User".to_owned(),
            "--requestheader-group-headers=X-Remote-Group".to_owned(),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
            path("audit-policy-file", "audit-policy.json"),
            path("audit-log-path", "audit.log"),
        ];
        let program = self.assets.join("kube-apiserver");
        let log = self.path("kube-apiserver.log");
        self.server = Some(Process::spawn(&self.network, &program, &arguments, &log)?);
        Ok(())
    }

    /// Where it answers with TLS.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.ports.secure)
    }

    /// Ends the API server in the middle of its work. etcd stays.
    pub fn kill_server(&mut self) {
        self.server = None;
    }

    pub fn wait_until_ready(&mut self) -> Result<()> {
        let outcome = wait_until("the API server is ready", START_LIMIT, || {
            self.server.as_mut().context("it was not started")?.check_running()?;
            let reply = http::ask(&self.socket(), "GET", "/readyz", None)?;
            ensure!(reply.status == 200, "it says {} {}", reply.status, reply.text);
            // Made by the server itself, a moment later.
            let reply = http::ask(&self.socket(), "GET", "/api/v1/namespaces/default", None)?;
            ensure!(reply.status == 200, "there is no namespace yet");
            Ok(())
        });
        outcome.inspect_err(|_| eprintln!("{}", tail(&self.path("kube-apiserver.log"), 20)))
    }

    /// Sends a request in plain HTTP.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<http::Reply> {
        http::ask(&self.socket(), method, path, body).with_context(|| format!("{method} {path}"))
    }

    /// Where it answers in plain HTTP, with the rights of the test.
    pub fn socket(&self) -> PathBuf {
        self.path("proxy.sock")
    }

    /// What `kubectl` with these words prints; `input` is what it reads. It has to succeed.
    pub fn kubectl(&self, words: &[&str], input: Option<&Path>) -> Result<String> {
        let mut command = self.network.command(self.assets.join("kubectl").as_os_str());
        command
            .env("HOME", self.folder())
            .env("KUBECONFIG", self.path("none"))
            .args(self.credentials())
            .stdin(Stdio::null());
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

    /// `kubectl` with this kubeconfig and these folders of plugins, in the network of the cluster.
    pub fn kubectl_of(&self, kubeconfig: &Path, plugins: &Path) -> Command {
        let mut command = self.network.command(self.assets.join("kubectl").as_os_str());
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("HOME", self.folder())
            .env("KUBECONFIG", kubeconfig)
            .env("PATH", format!("{}:{path}", plugins.display()))
            .stdin(Stdio::null());
        command
    }

    /// Writes a program into `folder` that is `kubectl` with the rights of the test.
    pub fn write_kubectl(&self, folder: &Path) -> Result<()> {
        let command = self.network.command(self.assets.join("kubectl").as_os_str());
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        let script = format!(
            "#!/bin/sh\nexport HOME={} KUBECONFIG=none\nexec {} {} \"$@\"\n",
            self.folder().display(),
            words.join(" "),
            self.credentials().join(" ")
        );
        let file = folder.join("kubectl");
        std::fs::write(&file, script).with_context(|| format!("writing {}", file.display()))?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&file, mode).context("making it a program")
    }

    /// Writes a kubeconfig with the server and this token.
    pub fn kubeconfig(&self, name: &str, token: &str) -> Result<PathBuf> {
        let certificate = self.path("certificates/apiserver.crt");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{
                "name": "it",
                "cluster": { "server": self.server_url(), "certificate-authority": certificate },
            }],
            "users": [{ "name": "it", "user": { "token": token } }],
            "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
        });
        let file = self.path(&format!("{name}.kubeconfig"));
        std::fs::write(&file, config.to_string())
            .with_context(|| format!("writing {}", file.display()))?;
        Ok(file)
    }

    /// The requests of service accounts until now, one JSON object a line.
    pub fn audit_log(&self) -> PathBuf {
        self.path("audit.log")
    }

    /// A folder that goes with the cluster.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    fn server_url(&self) -> String {
        format!("https://{}", std::net::SocketAddr::new(self.address, self.ports.secure))
    }

    /// Options of `kubectl`.
    fn credentials(&self) -> [String; 3] {
        let (server, token) = (self.server_url(), TOKEN);
        [
            format!("--server={server}"),
            format!("--token={token}"),
            "--insecure-skip-tls-verify".to_owned(),
        ]
    }
}

/// A CA, and the certificate of the API server that it signs.
fn make_front_proxy(at: &Path) -> Result<()> {
    let openssl = |words: &str| {
        let output = Command::new("openssl").args(words.split(' ')).current_dir(at).output();
        let output = output.context("openssl")?;
        ensure!(
            output.status.success(),
            "openssl {words}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        anyhow::Ok(())
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(&format!(
        "req -x509 {key} -days 2 -subj /CN=front-proxy-ca -keyout front-proxy-ca.key \
         -out front-proxy-ca.crt"
    ))?;
    openssl(&format!(
        "req {key} -subj /CN=front-proxy-client -keyout front-proxy-client.key -out front-proxy.csr"
    ))?;
    std::fs::write(at.join("front-proxy.ext"), "extendedKeyUsage=clientAuth\n")?;
    openssl(
        "x509 -req -in front-proxy.csr -days 2 -CA front-proxy-ca.crt -CAkey front-proxy-ca.key \
         -CAcreateserial -extfile front-proxy.ext -out front-proxy-client.crt",
    )
}

/// Ports that nothing listens on now.
fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let sockets: Vec<_> =
        (0..N).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    let mut ports = [0; N];
    for (port, socket) in ports.iter_mut().zip(&sockets) {
        *port = socket.local_addr()?.port();
    }
    Ok(ports)
}
