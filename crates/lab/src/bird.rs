//! BIRD as a program: for benchmarks one that installs received routes in the kernel and one that announces, and any
//! other by its configuration.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::namespace::Place;
use crate::process::Process;
use crate::wait::{PATIENCE, wait_until};

/// Fast connection setup; otherwise defaults.
const SESSION: &str =
    "connect retry time 1; connect delay time 1; error wait time 1, 2; hold time 90; direct;";

/// The router: AS 65002, both addresses, all received routes go to the kernel.
pub fn receiving() -> String {
    format!(
        "router id 10.0.0.2;\nprotocol device {{ scan time 1; }}\n\
         protocol direct {{ ipv4; ipv6; }}\n\
         protocol kernel {{ ipv4 {{ export where source = RTS_BGP; }}; }}\n\
         protocol kernel {{ ipv6 {{ export where source = RTS_BGP; }}; }}\n\
         protocol bgp node4 {{ {SESSION} local 10.77.0.2 as 65002; neighbor 10.77.0.1 as 65001; \
         ipv4 {{ import all; export none; }}; }}\n\
         protocol bgp node6 {{ {SESSION} local fd77::2 as 65002; neighbor fd77::1 as 65001; \
         ipv6 {{ import all; export none; }}; }}\n"
    )
}

/// The competitor of Fairway: AS 65001, static routes from its own file.
pub fn announcing(routes: &Path) -> String {
    format!(
        "router id 10.0.0.1;\nprotocol device {{ scan time 1; }}\n\
         protocol direct {{ ipv4; }}\n\
         protocol static services {{ ipv4;\n\
         include \"{}\";\n}}\n\
         protocol bgp upstream {{ {SESSION} local 10.77.0.1 as 65001; neighbor 10.77.0.2 as 65002; \
         ipv4 {{ import none; export where proto = \"services\"; next hop self; }}; }}\n",
        routes.display()
    )
}

/// A running BIRD and one open control connection.
pub struct Bird {
    process: Process,
    control: BufReader<UnixStream>,
}

impl Bird {
    /// Starts one in `place`, with its files in `folder` under `name`.
    pub fn start(
        place: &impl Place,
        folder: &Path,
        name: &str,
        configuration: &str,
    ) -> Result<Self> {
        let file = folder.join(format!("{name}.conf"));
        fs::write(&file, configuration).context("writing BIRD's configuration")?;
        let socket = folder.join(format!("{name}.ctl"));
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let arguments =
            ["-f".to_owned(), "-c".to_owned(), text(&file), "-s".to_owned(), text(&socket)];
        let log = folder.join(format!("{name}.log"));
        let process = Process::spawn(place, Path::new("/usr/sbin/bird"), &arguments, &log)?;
        let control = wait_until("BIRD's control socket", PATIENCE, || {
            let mut control = BufReader::new(UnixStream::connect(&socket)?);
            read_reply(&mut control)?;
            Ok(control)
        })?;
        Ok(Self { process, control })
    }

    /// Reads the configuration again, and waits for the answer.
    pub fn configure(&mut self) -> Result<()> {
        self.ask("configure").map(drop)
    }

    /// Sends one command; the texts of all lines of the reply.
    pub fn ask(&mut self, command: &str) -> Result<Vec<String>> {
        self.control.get_mut().write_all(format!("{command}\n").as_bytes())?;
        read_reply(&mut self.control).with_context(|| format!("asking BIRD to {command}"))
    }

    /// Fails when it has ended.
    pub fn check_running(&mut self) -> Result<()> {
        self.process.check_running()
    }
}

impl Drop for Bird {
    fn drop(&mut self) {
        self.process.kill();
    }
}

/// The texts of the lines of a reply. A line has a code and, except for the last, a dash after it; one that belongs to
/// the code before has a blank in place of both.
fn read_reply(control: &mut impl BufRead) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    loop {
        let mut line = String::new();
        if control.read_line(&mut line)? == 0 {
            bail!("BIRD closed its control connection");
        }
        let line = line.trim_end_matches('\n');
        let is_coded = |(code, _): &(&str, &str)| code.bytes().all(|it| it.is_ascii_digit());
        let Some((code, rest)) = line.split_at_checked(4).filter(is_coded) else {
            texts.push(line.strip_prefix(' ').unwrap_or(line).to_owned());
            continue;
        };
        // `0001 text` ends a reply, `0001-text` does not; codes from 8000 on are errors.
        let is_last = rest.starts_with(' ');
        if is_last && code.starts_with(['8', '9']) {
            bail!("BIRD reports an error: {line}");
        }
        texts.push(rest.get(1..).unwrap_or_default().to_owned());
        if is_last {
            return Ok(texts);
        }
    }
}
