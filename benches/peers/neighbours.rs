//! Five hundred neighbours: addresses of one interface, sessions of one BIRD. Each has its own address of the
//! speaker, since BIRD supports only one session to an address.

use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::Way;
use crate::speaker;
use lab::namespace::Namespace;
use lab::process::{Process, bounded, output_of};
use lab::wait::{PATIENCE, wait_until};

/// The AS of all neighbours.
pub(crate) const ASN: u32 = 65_010;
/// The network of all neighbours.
pub(crate) const RANGE: &str = "10.80.0.0/16";

/// The address of neighbour `number`, from 0.
pub(crate) fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 80, 0, 1)) + number)
}

/// The running neighbours.
pub(crate) struct Neighbours {
    _bird: Process,
    socket: PathBuf,
}

impl Neighbours {
    pub(crate) fn start(around: &Namespace, place: &Path, way: Way, peers: u32) -> Result<Self> {
        let file = |name: &str| place.join(name).to_string_lossy().into_owned();
        let passive = if way == Way::Configured { "passive; " } else { "" };
        let mut text = "router id 10.80.0.1;\nprotocol device {}\n".to_owned();
        for number in 0..peers {
            let _ = writeln!(
                text,
                "protocol bgp r{number} {{ local {} as {ASN}; neighbor {} as {}; {passive}\
                 connect delay time 1; connect retry time 1; ipv4 {{ import all; export none; }}; \
                 }}",
                address(number),
                speaker::address(number),
                speaker::ASN,
            );
        }
        fs::write(file("neighbours.conf"), text).context("the configuration of the neighbors")?;
        let words = ["-f", "-c", &file("neighbours.conf"), "-s", &file("neighbours.ctl")];
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        words.extend(["-P".to_owned(), file("neighbours.pid")]);
        let log = place.join("neighbours.log");
        let bird = Process::spawn(around, Path::new("/usr/sbin/bird"), &words, &log)?;
        let neighbours = Self { _bird: bird, socket: place.join("neighbours.ctl") };
        wait_until("the neighbors answer", PATIENCE, || neighbours.established())?;
        Ok(neighbours)
    }

    pub(crate) fn birdc(&self, words: &[&str]) -> Result<String> {
        output_of(bounded("birdc").arg("-s").arg(&self.socket).args(words))
    }

    /// The number of established sessions, as BIRD reports it.
    fn established(&self) -> Result<usize> {
        let text = self.birdc(&["show", "protocols"])?;
        ensure!(text.contains("ready"), "no answer: {text}");
        Ok(text.lines().filter(|line| line.trim_end().ends_with("Established")).count())
    }

    pub(crate) fn wait_for_all(&self, peers: u32, limit: Duration) -> Result<()> {
        wait_until("all sessions", limit, || {
            let established = self.established()?;
            if established < usize::try_from(peers)? {
                bail!("{established} of {peers} are up");
            }
            Ok(())
        })
    }
}
