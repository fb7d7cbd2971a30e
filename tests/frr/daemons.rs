//! How is an empty FRR started, configured, and queried? Its daemons with sockets of their own, without
//! the configuration of the machine. Used by all stories.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use lab::make_directory;
use lab::namespace::Namespace;
use lab::process::{Process, output_of};
use lab::routers::Release;
use lab::routers::installation::Installation;
use lab::wait::{PATIENCE, wait_until};

pub(crate) const VTYSH: &str = "/usr/bin/vtysh";
const DAEMONS: &str = "/usr/lib/frr";

pub(crate) struct Daemons {
    installation: Installation,
    directory: PathBuf,
    /// The first two numbers.
    pub(crate) version: (u8, u8),
    processes: Vec<Process>,
}

impl Daemons {
    pub(crate) fn start(release: Release, namespace: &Namespace, directory: &Path) -> Result<Self> {
        if let Some(above) = directory.parent() {
            make_directory(above)?;
        }
        make_directory(directory)?;
        fs::write(directory.join("empty.conf"), "").context("writing empty.conf")?;
        fs::write(directory.join("vtysh.conf"), "service integrated-vtysh-config\n")
            .context("writing vtysh.conf")?;
        // mgmtd has its sockets here, whatever option it gets.
        let installation = Installation::new(release, directory, "/run/frr");
        let owned = ["-R", "frr:frr", &installation.seen("")];
        output_of(installation.command("chown").args(owned))?;
        let (directory, version) = (directory.to_owned(), (0, 0));
        let mut started = Self { installation, directory, version, processes: Vec::new() };
        let is_new = release == Release::Trixie;
        if is_new {
            started.add("mgmtd", namespace, &[])?;
        }
        let empty = ["-f".to_owned(), started.installation.seen("empty.conf")];
        started.add("zebra", namespace, &empty)?;
        let mut bfdd = empty.to_vec();
        if !is_new {
            bfdd.extend(["--bfdctl".to_owned(), started.installation.seen("bfdd.sock")]);
        }
        started.add("bfdd", namespace, &bfdd)?;
        started.add("bgpd", namespace, &empty)?;
        started.version = version_in(&started.ask("show version")?)?;
        Ok(started)
    }

    fn add(&mut self, name: &str, namespace: &Namespace, extra: &[String]) -> Result<()> {
        let file = |name: &str| self.installation.seen(name);
        let mut arguments = vec!["-i".to_owned(), file(&format!("{name}.pid"))];
        arguments.extend(["-z".to_owned(), file("zserv.api"), "--vty_socket".to_owned(), file("")]);
        arguments.extend(["-A", "127.0.0.1", "-P", "0", "--log", "stdout"].map(str::to_owned));
        arguments.extend_from_slice(extra);
        let place = self.installation.within(namespace);
        let program = Path::new(DAEMONS).join(name);
        let log = self.directory.join("log");
        let mut process = Process::spawn(&place, &program, &arguments, &log)?;
        let socket = self.directory.join(format!("{name}.vty"));
        wait_until(&format!("FRR's {name} opens its socket"), PATIENCE, || {
            process.check_running()?;
            socket.exists().then_some(()).context("no socket yet")
        })?;
        self.processes.insert(0, process);
        Ok(())
    }

    fn vtysh(&self, words: &[&str]) -> Result<String> {
        let directory = self.installation.seen("");
        let places = ["--vty_socket", directory.as_str(), "--config_dir", directory.as_str()];
        output_of(self.installation.command(VTYSH).args(places).args(words))
    }

    pub(crate) fn ask(&self, command: &str) -> Result<String> {
        self.vtysh(&["-c", command])
    }

    pub(crate) fn json(&self, command: &str) -> Result<Value> {
        let text = self.ask(&format!("{command} json"))?;
        serde_json::from_str(&text).with_context(|| format!("{command}: no JSON: {text}"))
    }

    pub(crate) fn running(&self) -> Result<String> {
        self.ask("show running-config")
    }

    fn written(&self, text: &str) -> Result<String> {
        fs::write(self.directory.join("given.conf"), text).context("writing given.conf")?;
        Ok(self.installation.seen("given.conf"))
    }

    /// Fails at a line that vtysh does not know.
    pub(crate) fn check(&self, text: &str) -> Result<()> {
        self.vtysh(&["-C", "-f", &self.written(text)?]).map(drop)
    }

    /// Fails at a line that a daemon refuses.
    pub(crate) fn load(&self, text: &str) -> Result<()> {
        self.load_but(text, |_| false)
    }

    /// What is in force already. FRR refuses to set graceful restart of a neighbour once more, or to unset it;
    /// it accepts everything else.
    pub(crate) fn load_again(&self, text: &str) -> Result<()> {
        self.load_but(text, |line| line.contains(" graceful-restart"))
    }

    fn load_but(&self, text: &str, may_be_refused: impl Fn(&str) -> bool) -> Result<()> {
        let directory = self.installation.seen("");
        let given = self.written(text)?;
        let places = ["--vty_socket", directory.as_str(), "--config_dir", directory.as_str()];
        let mut command = self.installation.command(VTYSH);
        let output = command.args(places).args(["-f", &given]).output().context("running vtysh")?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        // Where one of several daemons refuses a line, the exit code does not always say so.
        let mut refused = said.lines().filter(|line| line.starts_with("line ")).peekable();
        let has_failed = !output.status.success() && refused.peek().is_none();
        ensure!(!has_failed && refused.all(may_be_refused), "{}: {said}", output.status);
        Ok(())
    }
}

/// `FRRouting 8.4.4 (host) on Linux(...)`.
fn version_in(text: &str) -> Result<(u8, u8)> {
    let word = text.split_whitespace().nth(1).with_context(|| format!("no version in {text}"))?;
    numbers_of(word)
}

/// The first two numbers of `8.4.4`.
pub(crate) fn numbers_of(word: &str) -> Result<(u8, u8)> {
    let mut numbers = word.split('.').map(str::parse);
    let mut next =
        || numbers.next().and_then(Result::ok).with_context(|| format!("version {word}"));
    Ok((next()?, next()?))
}
