//! How is FRR run where it speaks for Fairway? Each daemon in the foreground with its socket in one
//! directory, without a configuration, so that each can be killed, frozen and started again by name.
//! Used by the stories and by the benchmark.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::make_directory;
use crate::namespace::Namespace;
use crate::process::{Process, output_of};
use crate::routers::Release;
use crate::routers::installation::{Installation, Within};
use crate::wait::{PATIENCE, wait_until};

const FOLDER_OF_PROGRAMS: &str = "/usr/lib/frr";
const FRR_RELOAD: &str = "/usr/lib/frr/frr-reload.py";
const VTYSH: &str = "/usr/bin/vtysh";

/// FRR on the node. Its daemons end with this value.
pub struct Speaker {
    release: Release,
    installation: Installation,
    directory: PathBuf,
    daemons: BTreeMap<&'static str, Process>,
}

impl Speaker {
    /// Makes its directory; nothing runs yet.
    pub fn prepare(release: Release, parent: &Path) -> Result<Self> {
        let directory = parent.join("frr");
        make_directory(&directory)?;
        // mgmtd has its sockets and its file here, whatever option it gets.
        let installation = Installation::new(release, &directory, "/run/frr").also_at("/etc/frr");
        for (name, text) in
            [("empty.conf", ""), ("vtysh.conf", "service integrated-vtysh-config\n")]
        {
            fs::write(directory.join(name), text).with_context(|| format!("writing {name}"))?;
        }
        output_of(installation.command("chown").args(["-R", "frr:frr", &installation.seen("")]))?;
        Ok(Self { release, installation, directory, daemons: BTreeMap::new() })
    }

    /// The folder of the sockets.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// From now on each daemon has a file of its own, as before FRR had one for all: it starts with what is in it, and
    /// `write memory` writes it.
    pub fn keep_own_files(&self) -> Result<()> {
        let write = |name: &str, text: &str| {
            fs::write(self.directory.join(name), text).with_context(|| format!("writing {name}"))
        };
        write("vtysh.conf", "no service integrated-vtysh-config\n")?;
        self.names().iter().try_for_each(|name| write(&format!("{name}.conf"), ""))?;
        let folder = self.installation.seen("");
        output_of(self.installation.command("chown").args(["-R", "frr:frr", &folder])).map(drop)
    }

    /// From now on this daemon starts with this configuration: what somebody saved while it was down.
    pub fn keep_own_file(&self, name: &str, text: &str) -> Result<()> {
        let file = self.directory.join(format!("{name}.conf"));
        fs::write(file, text).with_context(|| format!("writing {name}.conf"))
    }

    /// The files of the daemons that have one, by their names.
    pub fn own_files(&self) -> Result<BTreeMap<String, String>> {
        let name_of = |daemon: &&str| format!("{daemon}.conf");
        let names = self.names().iter().map(name_of);
        let names = names.filter(|name| self.directory.join(name).exists());
        let read = |name: String| {
            let text = fs::read_to_string(self.directory.join(&name));
            Ok((name.clone(), text.with_context(|| format!("reading {name}"))?))
        };
        names.map(read).collect()
    }

    /// A file of its directory, as its programs see it.
    pub fn seen(&self, name: &str) -> String {
        self.installation.seen(name)
    }

    /// Where its programs run.
    pub fn within<'a>(&'a self, node: &'a Namespace) -> Within<'a> {
        self.installation.within(node)
    }

    /// Starts all daemons, each without a configuration but that of its own file.
    pub fn start(&mut self, node: &Namespace) -> Result<()> {
        self.names().iter().try_for_each(|name| self.start_daemon(node, name))
    }

    /// In the order in which they are started.
    fn names(&self) -> &'static [&'static str] {
        match self.release {
            Release::Bookworm => &["zebra", "staticd", "bfdd", "bgpd"],
            Release::Trixie => &["mgmtd", "zebra", "staticd", "bfdd", "bgpd"],
        }
    }

    /// Starts one, again after its end, and waits for its socket.
    pub fn start_daemon(&mut self, node: &Namespace, name: &'static str) -> Result<()> {
        let file = |name: &str| self.installation.seen(name);
        let socket = self.directory.join(format!("{name}.vty"));
        // The socket of an earlier start would be taken for a sign of life.
        let _ = fs::remove_file(&socket);
        let mut arguments = vec!["-i".to_owned(), file(&format!("{name}.pid"))];
        arguments.extend(["-z".to_owned(), file("zserv.api")]);
        arguments.extend(["--vty_socket".to_owned(), file("")]);
        arguments.extend(["-A", "127.0.0.1", "-P", "0", "--log", "stdout"].map(str::to_owned));
        let is_old = self.release == Release::Bookworm;
        if is_old || !matches!(name, "mgmtd" | "staticd") {
            let own = format!("{name}.conf");
            let has_own = self.directory.join(&own).exists();
            arguments.extend(["-f".to_owned(), file(if has_own { &own } else { "empty.conf" })]);
        }
        if is_old && name == "bfdd" {
            arguments.extend(["--bfdctl".to_owned(), file("bfdd.sock")]);
        }
        let program = Path::new(FOLDER_OF_PROGRAMS).join(name);
        let log = self.directory.join("daemons.log");
        let mut process =
            Process::spawn(&self.installation.within(node), &program, &arguments, &log)?;
        wait_until(&format!("FRR's {name} opens its socket"), PATIENCE, || {
            process.check_running()?;
            socket.exists().then_some(()).context("no socket yet")
        })?;
        self.daemons.insert(name, process);
        Ok(())
    }

    fn daemon(&self, name: &str) -> Result<&Process> {
        self.daemons.get(name).with_context(|| format!("{name} does not run"))
    }

    /// SIGKILL.
    pub fn kill(&mut self, name: &str) -> Result<()> {
        self.daemons.remove(name).with_context(|| format!("{name} does not run"))?.kill();
        Ok(())
    }

    /// SIGTERM to all, as a service manager does it, in the order that FRR's own script has.
    pub fn stop(&mut self) -> Result<()> {
        for name in self.names().iter().rev() {
            if let Some(mut process) = self.daemons.remove(name) {
                process.stop(PATIENCE)?;
            }
        }
        Ok(())
    }

    pub fn freeze(&self, name: &str) -> Result<()> {
        self.daemon(name)?.freeze()
    }

    pub fn thaw(&self, name: &str) -> Result<()> {
        self.daemon(name)?.thaw()
    }

    /// Fails, for good, when a daemon has ended.
    pub fn check_running(&mut self) -> Result<()> {
        self.daemons.values_mut().try_for_each(Process::check_running)
    }

    /// Resident memory of a daemon, KiB.
    pub fn memory_kib(&self, name: &str) -> Result<u64> {
        resident_kib(self.daemon(name)?.id())
    }

    /// What vtysh answers.
    pub fn vtysh(&self, commands: &[&str]) -> Result<String> {
        let directory = self.installation.seen("");
        let mut command = self.installation.command(VTYSH);
        command.args(["--vty_socket", &directory, "--config_dir", &directory]);
        output_of(command.args(commands.iter().flat_map(|line| ["-c", line])))
    }

    /// What an operator types in configuration mode.
    pub fn configure(&self, lines: &[&str]) -> Result<()> {
        self.vtysh(&[&["configure terminal"], lines].concat()).map(drop)
    }

    /// Begins a configuration of bgpd and never ends it: vtysh was killed while it loaded a file.
    pub fn begin_load(&self) -> Result<()> {
        self.vtysh(&["configure terminal", "XFRR_start_configuration"]).map(drop)
    }

    /// What `vtysh -f` reads.
    pub fn load(&self, text: &str) -> Result<()> {
        fs::write(self.directory.join("given.conf"), text).context("writing given.conf")?;
        let directory = self.installation.seen("");
        let mut command = self.installation.command(VTYSH);
        command.args(["--vty_socket", &directory, "--config_dir", &directory]);
        output_of(command.args(["-f", &self.installation.seen("given.conf")])).map(drop)
    }

    /// What `systemctl reload frr` does with this text in the file.
    pub fn reload(&self, text: &str) -> Result<()> {
        // vtysh shows a heading above the configuration.
        let lines = text.lines().skip_while(|it| !it.starts_with('!'));
        let text: String = lines.map(|it| it.to_owned() + "\n").collect();
        fs::write(self.directory.join("reloaded.conf"), text).context("writing reloaded.conf")?;
        let mut command = self.installation.command(FRR_RELOAD);
        command.args(["--reload", "--stdout", "--bindir", "/usr/bin"]);
        for option in ["--confdir", "--rundir", "--vty_socket"] {
            command.args([option, &self.installation.seen("")]);
        }
        output_of(command.arg(self.installation.seen("reloaded.conf"))).map(drop)
    }

    pub fn running_configuration(&self) -> Result<String> {
        self.vtysh(&["show running-config"])
    }

    /// Fails while one of these lines is missing.
    pub fn expect_lines(&self, lines: &[&str]) -> Result<()> {
        let text = self.running_configuration()?;
        for line in lines {
            let is_there = text.lines().any(|one| one.trim() == *line);
            ensure!(is_there, "expected {line:?} in the running configuration:\n{text}");
        }
        Ok(())
    }

    /// How often the session with this neighbour was established.
    pub fn connections_established(&self, neighbour: &str) -> Result<u64> {
        let text = self.vtysh(&[&format!("show bgp neighbors {neighbour} json")])?;
        let answer: Value = serde_json::from_str(&text).context("FRR's JSON")?;
        let count = answer.get(neighbour).and_then(|it| it.get("connectionsEstablished")?.as_u64());
        count.with_context(|| format!("expected {neighbour} in {answer}"))
    }
}

/// Resident memory of a process, KiB.
pub fn resident_kib(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).context("a process")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .context("no VmRSS in /proc/PID/status")
}
