//! A container runtime as the CNI specification has it: it starts a plugin with an environment and a configuration, for
//! containers that are network namespaces.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::bench::host_local;
use crate::daemon;
use lab::namespace::{Namespace, Place};

/// A folder with standard plugins, and the newest version that they speak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plugins {
    pub(crate) folder: PathBuf,
    pub(crate) version: &'static str,
}

impl Plugins {
    /// Whether `ptp` takes a gateway that is not in the network of the address, as 1.6 and newer do.
    pub(crate) fn is_new(&self) -> bool {
        self.version == "1.1.0"
    }
}

/// Where Debian's package has them.
const PACKAGED: &str = "/usr/lib/cni";

/// Those of Go's modules, which speak CNI 1.1, and those of the distribution, which speak 1.0; the first one first.
pub(crate) fn plugins() -> Result<Vec<Plugins>> {
    let script = lab::checkout().join("scripts/cni-plugins.sh");
    let output = Command::new(script).arg("--find").stderr(Stdio::inherit()).output()?;
    let mut found = Vec::new();
    match output.status.code() {
        Some(0) => {
            let folder = PathBuf::from(String::from_utf8(output.stdout)?.trim_end());
            found.push(Plugins { folder, version: "1.1.0" });
        }
        Some(3) => {}
        _ => bail!("scripts/cni-plugins.sh ended with {}", output.status),
    }
    if Path::new(PACKAGED).join("ptp").exists() {
        found.push(Plugins { folder: PathBuf::from(PACKAGED), version: "1.0.0" });
    }
    Ok(found)
}

/// What a plugin ended with.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: Value,
    text: String,
}

impl Ended {
    /// What it printed, if it did not fail.
    pub(crate) fn done(self) -> Result<Value> {
        ensure!(self.code == 0, "the plugin ended with {}: {}", self.code, self.text);
        Ok(self.stdout)
    }

    /// The code of its error, if it failed.
    pub(crate) fn error(&self) -> Option<u64> {
        (self.code != 0).then(|| self.stdout["code"].as_u64()).flatten()
    }
}

/// A network of containers on one host.
pub(crate) struct Runtime<'a> {
    pub(crate) host: &'a Namespace,
    pub(crate) plugins: &'a Plugins,
    /// The configuration of the outer plugin, with that of ours in `ipam`.
    pub(crate) configuration: Value,
    /// The directory of the daemon.
    pub(crate) daemon: PathBuf,
    /// A folder with all plugins that are needed.
    path: PathBuf,
}

/// A container: its namespace, and what the plugin said of it.
pub(crate) struct Container {
    pub(crate) id: String,
    pub(crate) namespace: Namespace,
    pub(crate) result: Value,
}

impl Container {
    /// Its addresses, without lengths.
    pub(crate) fn addresses(&self) -> Vec<String> {
        addresses(&self.result)
    }
}

/// The addresses of a result.
pub(crate) fn addresses(result: &Value) -> Vec<String> {
    let ips = result["ips"].as_array().map(Vec::as_slice).unwrap_or_default();
    let address = |it: &Value| it["address"].as_str()?.split('/').next().map(str::to_owned);
    ips.iter().filter_map(address).collect()
}

impl<'a> Runtime<'a> {
    pub(crate) fn new(
        host: &'a Namespace,
        plugins: &'a Plugins,
        daemon: &Path,
        mut configuration: Value,
    ) -> Result<Self> {
        configuration["cniVersion"] = plugins.version.into();
        configuration["name"] = "pods".into();
        let path = daemon.join(format!("plugins-{}", plugins.version));
        lab::make_directory(&path)?;
        let ours = path.join("fairway-cni");
        if !ours.exists() {
            std::fs::copy(daemon::plugin(), &ours)?;
        }
        Ok(Self { host, plugins, configuration, daemon: daemon.to_owned(), path })
    }

    /// A container with an interface `eth0`.
    pub(crate) fn add(&self, cell: usize, id: &str) -> Result<Container> {
        let namespace = Namespace::create(cell, id)?;
        let result = self.call("ADD", id, namespace.name(), &self.configuration)?.done()?;
        Ok(Container { id: id.to_owned(), namespace, result })
    }

    pub(crate) fn delete(&self, container: &Container) -> Result<()> {
        let name = container.namespace.name();
        self.call("DEL", &container.id, name, &self.with_result(container))?.done().map(drop)
    }

    pub(crate) fn check(&self, container: &Container) -> Result<Ended> {
        self.call("CHECK", &container.id, container.namespace.name(), &self.with_result(container))
    }

    fn with_result(&self, container: &Container) -> Value {
        let mut configuration = self.configuration.clone();
        configuration["prevResult"] = container.result.clone();
        configuration
    }

    /// Starts the outer plugin.
    pub(crate) fn call(
        &self,
        command: &str,
        id: &str,
        netns: &str,
        configuration: &Value,
    ) -> Result<Ended> {
        let kind = configuration["type"].as_str().context("the type of a plugin")?;
        self.start(&self.plugins.folder.join(kind), command, id, netns, configuration)
    }

    /// Starts our plugin by itself.
    pub(crate) fn ask(&self, command: &str, id: &str, configuration: &Value) -> Result<Ended> {
        self.start(&self.path.join("fairway-cni"), command, id, "of-the-test", configuration)
    }

    /// Starts host-local by itself.
    pub(crate) fn local(&self, command: &str, id: &str) -> Result<Ended> {
        let folder = self.daemon.join("local").display().to_string();
        let program = self.plugins.folder.join("host-local");
        self.start(&program, command, id, "of-the-test", &host_local(&folder))
    }

    pub(crate) fn command(&self, program: &Path, command: &str, id: &str, netns: &str) -> Command {
        let mut started = self.host.command(program.as_os_str());
        started.env_clear();
        started.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        for (name, value) in [
            ("CNI_COMMAND", command),
            ("CNI_CONTAINERID", id),
            ("CNI_IFNAME", "eth0"),
            ("CNI_NETNS", &format!("/var/run/netns/{netns}")),
            ("CNI_ARGS", &format!("IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME={id}")),
        ] {
            started.env(name, value);
        }
        let folders = [&self.path, &self.plugins.folder].map(|it| it.display().to_string());
        started.env("CNI_PATH", folders.join(":"));
        started.env("FAIRWAY_CNI_SOCKET", daemon::socket(&self.daemon));
        started.env("FAIRWAY_CNI_SPOOL", daemon::spool(&self.daemon));
        started.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        started
    }

    /// A command that will start our plugin, which reads its configuration from a pipe.
    pub(crate) fn ours(&self, command: &str, id: &str) -> Command {
        self.command(&self.path.join("fairway-cni"), command, id, "of-the-test")
    }

    /// Starts our plugin and does not wait for it.
    pub(crate) fn begin(&self, command: &str, id: &str) -> Result<Child> {
        self.begin_at(&daemon::socket(&self.daemon), command, id)
    }

    /// The same, with another socket of a daemon.
    pub(crate) fn begin_at(&self, socket: &Path, command: &str, id: &str) -> Result<Child> {
        let mut child = self.ours(command, id).env("FAIRWAY_CNI_SOCKET", socket).spawn()?;
        let mut stdin = child.stdin.take().context("its stdin")?;
        stdin.write_all(self.configuration.to_string().as_bytes())?;
        Ok(child)
    }

    fn start(
        &self,
        program: &Path,
        command: &str,
        id: &str,
        netns: &str,
        configuration: &Value,
    ) -> Result<Ended> {
        let mut child = self.command(program, command, id, netns).spawn()?;
        let mut stdin = child.stdin.take().context("its stdin")?;
        stdin.write_all(configuration.to_string().as_bytes())?;
        drop(stdin);
        let output = child.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        let stdout = match text.trim() {
            "" => json!({}),
            printed => serde_json::from_str(printed).with_context(|| printed.to_owned())?,
        };
        let code = output.status.code().unwrap_or(-1);
        Ok(Ended { code, stdout, text: format!("{text}{errors}") })
    }
}
