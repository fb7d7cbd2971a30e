//! How is Fairway queried? By vtysh of Debian 12 and of Debian 13, and over the sockets, as an
//! exporter does it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use lab::routers::installation::{Installation, Release};

const VTYSH: &str = "/usr/bin/vtysh";
/// Where vtysh of another Debian sees the sockets.
const MOUNT_POINT: &str = "/mnt";

/// An installation of vtysh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Vtysh {
    pub(crate) version: String,
    release: Release,
}

impl Vtysh {
    /// Those that are installed.
    pub(crate) fn installed() -> Result<Vec<Self>> {
        let releases = [Release::Bookworm, Release::Trixie].into_iter();
        releases.filter(|release| release.file(VTYSH).exists()).map(Self::of).collect()
    }

    fn of(release: Release) -> Result<Self> {
        // There is no --version.
        let output = release.command(VTYSH).arg("--help").output().context("vtysh --help")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.split_once("(version ").and_then(|(_, rest)| rest.split_once(')'));
        let version = version.with_context(|| format!("a version in {text}"))?.0.to_owned();
        Ok(Self { version, release })
    }

    /// Whether it supports the commands of FRR 10.
    pub(crate) fn is_new(&self) -> bool {
        let major = self.version.split('.').next().and_then(|text| text.parse::<u32>().ok());
        major.is_some_and(|major| major >= 10)
    }

    /// vtysh itself, for a terminal.
    pub(crate) fn on_terminal(&self, sockets: &Path) -> Command {
        let installation = Installation::new(self.release, sockets, MOUNT_POINT);
        let mut command = installation.command(VTYSH);
        command.args(["--vty_socket", &installation.seen("")]);
        command
    }

    /// What `vtysh -c WORDS` prints.
    pub(crate) fn ask(&self, sockets: &Path, words: &str) -> Result<String> {
        let installation = Installation::new(self.release, sockets, MOUNT_POINT);
        let output = installation
            .command(VTYSH)
            .args(["--vty_socket", &installation.seen("")])
            .args(["-c", words])
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("vtysh {} -c '{words}'", self.version))?;
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8(text).with_context(|| format!("the answer to {words}"))
    }

    /// The same, as JSON: nothing else may be printed.
    pub(crate) fn ask_json(&self, sockets: &Path, words: &str) -> Result<Value> {
        let text = self.ask(sockets, words)?;
        serde_json::from_str(&text)
            .with_context(|| format!("vtysh {} -c '{words}' prints {text}", self.version))
    }
}

/// How long an exporter waits.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What frr_exporter does: `enable`, one read, the command, and reads until one ends in NUL.
pub(crate) fn scrape(socket: &Path, words: &str) -> Result<String> {
    let mut stream = UnixStream::connect(socket).with_context(|| socket.display().to_string())?;
    stream.set_read_timeout(Some(TIMEOUT)).context("a limit for reading")?;
    let mut buffer = [0; 4096];
    stream.write_all(b"enable\0").context("enable")?;
    ensure!(stream.read(&mut buffer).context("the answer to enable")? > 0, "nothing but an end");
    stream.write_all(format!("{words}\0").as_bytes()).with_context(|| words.to_owned())?;
    let mut answer = Vec::new();
    loop {
        let length = stream.read(&mut buffer).with_context(|| format!("answer to {words}"))?;
        let read = buffer.get(..length).unwrap_or_default();
        answer.extend_from_slice(read);
        match read.last() {
            None => bail!("{words}: the connection ended in the answer"),
            Some(0) => break,
            Some(_) => {}
        }
    }
    let text = String::from_utf8(answer).with_context(|| format!("the answer to {words}"))?;
    Ok(text.trim_end_matches('\0').to_owned())
}

/// The same, as JSON.
pub(crate) fn scrape_json(socket: &Path, words: &str) -> Result<Value> {
    let text = scrape(socket, words)?;
    serde_json::from_str(&text).with_context(|| format!("{words}: {text}"))
}

/// The bytes of the whole answer to `words`, with the status.
pub(crate) fn raw(socket: &Path, words: &str) -> Result<(String, u8)> {
    let mut stream = UnixStream::connect(socket).with_context(|| socket.display().to_string())?;
    stream.set_read_timeout(Some(TIMEOUT)).context("a limit for reading")?;
    stream.write_all(format!("{words}\0").as_bytes()).with_context(|| words.to_owned())?;
    let (mut answer, mut byte) = (Vec::new(), [0]);
    loop {
        stream.read_exact(&mut byte).with_context(|| format!("answer to {words}"))?;
        answer.extend(byte);
        if let [text @ .., 0, 0, 0, status] = answer.as_slice() {
            let text = String::from_utf8(text.to_vec()).context("text")?;
            return Ok((text, *status));
        }
    }
}
