//! The speaker in the middle: Fairway, BIRD or FRR, with the same configuration in its own syntax.

use std::fmt;
use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::Way;
use crate::neighbours::{self, RANGE};
use lab::fairway::Fairway;
use lab::make_directory;
use lab::namespace::Namespace;
use lab::process::{Process, bounded, output_of};
use lab::wait::{PATIENCE, wait_until};

pub(crate) const ASN: u32 = 65_001;
const ROUTER_ID: &str = "10.81.0.1";

/// The address of the speaker for neighbour `number`.
pub(crate) fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 81, 0, 1)) + number)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpeakerKind {
    Fairway,
    Bird,
    Frr,
}

impl SpeakerKind {
    pub(crate) const ALL: [Self; 3] = [Self::Fairway, Self::Bird, Self::Frr];
}

impl fmt::Display for SpeakerKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Fairway => "Fairway",
            Self::Bird => "BIRD",
            Self::Frr => "FRR",
        })
    }
}

/// One of the speakers, running or not.
pub(crate) struct Speaker {
    kind: SpeakerKind,
    place: PathBuf,
    fairway: Fairway,
    /// The one that speaks BGP is the last.
    daemons: Vec<Process>,
}

impl Speaker {
    pub(crate) fn prepare(kind: SpeakerKind, place: &Path) -> Result<Self> {
        let mut fairway = Fairway::prepare_in(place)?;
        fairway.log_level = "warn";
        Ok(Self { kind, place: place.to_owned(), fairway, daemons: Vec::new() })
    }

    pub(crate) fn start(&mut self, middle: &Namespace, way: Way, peers: u32) -> Result<()> {
        match self.kind {
            SpeakerKind::Fairway => {
                self.fairway.apply("peers", &fairway_text(way, peers))?;
                self.fairway.start(middle)
            }
            SpeakerKind::Bird => self.start_bird(middle, &bird_text(way, peers)),
            SpeakerKind::Frr => self.start_frr(middle, &frr_text(way, peers)),
        }
    }

    pub(crate) fn stop(&mut self) -> Result<()> {
        if self.kind == SpeakerKind::Fairway {
            return self.fairway.stop();
        }
        while let Some(mut daemon) = self.daemons.pop() {
            daemon.stop(PATIENCE)?;
        }
        Ok(())
    }

    /// The process of Fairway.
    pub(crate) fn process_id(&self) -> Result<u32> {
        self.fairway.process_id()
    }

    /// The socket of Fairway.
    pub(crate) fn socket(&self) -> PathBuf {
        self.fairway.socket()
    }

    /// Resident memory of the process that speaks BGP.
    pub(crate) fn memory_kib(&self) -> Result<f64> {
        let process = match self.daemons.last() {
            Some(daemon) => daemon.id(),
            None => self.fairway.process_id()?,
        };
        let status = fs::read_to_string(format!("/proc/{process}/status"))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        kib.context("no VmRSS in /proc")
    }

    fn start_bird(&mut self, middle: &Namespace, text: &str) -> Result<()> {
        let file = |name: &str| self.place.join(name).to_string_lossy().into_owned();
        fs::write(file("speaker.conf"), text).context("the configuration of BIRD")?;
        let words = ["-f", "-c", &file("speaker.conf"), "-s", &file("speaker.ctl")];
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        words.extend(["-P".to_owned(), file("speaker.pid")]);
        let log = self.place.join("speaker.log");
        self.daemons.push(Process::spawn(middle, Path::new("/usr/sbin/bird"), &words, &log)?);
        wait_until("BIRD answers", PATIENCE, || {
            let mut command = bounded("birdc");
            output_of(command.args(["-s", &file("speaker.ctl"), "show", "status"])).map(drop)
        })
    }

    fn start_frr(&mut self, middle: &Namespace, text: &str) -> Result<()> {
        let folder = self.place.join("frr");
        make_directory(&folder)?;
        let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
        fs::write(file("empty.conf"), "")?;
        fs::write(file("vtysh.conf"), "service integrated-vtysh-config\n")?;
        fs::write(file("frr.conf"), text)?;
        output_of(bounded("chown").args(["-R", "frr:frr"]).arg(&folder))?;
        for name in ["zebra", "bgpd"] {
            let _ = fs::remove_file(file(&format!("{name}.vty")));
            let mut words = vec!["-f".to_owned(), file("empty.conf"), "-P".to_owned()];
            words.extend(["0".to_owned(), "-i".to_owned(), file(&format!("{name}.pid"))]);
            words.extend(["-z".to_owned(), file("zserv.api"), "--vty_socket".to_owned()]);
            words.push(folder.to_string_lossy().into_owned());
            let program = Path::new("/usr/lib/frr").join(name);
            let log = self.place.join("speaker.log");
            self.daemons.push(Process::spawn(middle, &program, &words, &log)?);
            wait_until(&format!("{name} answers"), PATIENCE, || {
                let socket = file(&format!("{name}.vty"));
                Ok(std::os::unix::net::UnixStream::connect(socket).map(drop)?)
            })?;
        }
        let folder = folder.to_string_lossy().into_owned();
        let mut command = bounded("vtysh");
        command.args(["--vty_socket", &folder, "--config_dir", &folder, "-b"]);
        output_of(&mut command).map(drop)
    }
}

fn fairway_text(way: Way, peers: u32) -> String {
    let head = |name: &str| {
        format!(
            "---\napiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata:\n  name: {name}\nspec:\n  \
             myASN: {ASN}\n  peerASN: {}\n",
            neighbours::ASN
        )
    };
    match way {
        Way::Range => head("range") + &format!("  listenRange: {RANGE}\n  listenLimit: {peers}\n"),
        Way::Configured => (0..peers)
            .map(|number| {
                let address = neighbours::address(number);
                head(&format!("r{number}"))
                    + &format!(
                        "  peerAddress: {address}\n  sourceAddress: {}\n",
                        self::address(number)
                    )
            })
            .collect(),
    }
}

fn bird_text(way: Way, peers: u32) -> String {
    let channel = "ipv4 { import none; export none; };";
    let asn = neighbours::ASN;
    let mut text = format!("router id {ROUTER_ID};\nprotocol device {{}}\n");
    match way {
        Way::Range => {
            let _ = writeln!(
                text,
                "protocol bgp dyn {{ local as {ASN}; neighbor range {RANGE} as {asn}; \
                 {channel} }}"
            );
        }
        Way::Configured => {
            for number in 0..peers {
                let address = neighbours::address(number);
                let _ = writeln!(
                    text,
                    "protocol bgp p{number} {{ local {} as {ASN}; neighbor {address} as {asn}; \
                     connect delay time 1; {channel} }}",
                    self::address(number)
                );
            }
        }
    }
    text
}

fn frr_text(way: Way, peers: u32) -> String {
    let asn = neighbours::ASN;
    let mut text = format!("router bgp {ASN}\n bgp router-id {ROUTER_ID}\n");
    match way {
        Way::Range => {
            let _ = write!(
                text,
                " neighbor DYN peer-group\n neighbor DYN remote-as {asn}\n bgp listen limit \
                 {peers}\n bgp listen range {RANGE} peer-group DYN\n"
            );
        }
        Way::Configured => {
            for number in 0..peers {
                let address = neighbours::address(number);
                let _ = write!(
                    text,
                    " neighbor {address} remote-as {asn}\n neighbor {address} timers connect 1\n \
                     neighbor {address} update-source {}\n",
                    self::address(number)
                );
            }
        }
    }
    text
}
