//! What does BIRD make of the same bytes? The oracle: a real BIRD 2, one for each trial, on the
//! loopback address where the trial has fairway. Where it answers otherwise the entry must say so.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::bytes::{keepalive, kind};
use crate::entry::{Action, KEPT, Manner, Moment, OUR_AS, SENTINEL, SENTINEL_NLRI, Scene, Verdict};
use crate::runner::Subject;
use crate::speaker::{Heard, PORT, Speaker};
use crate::trial::{Trial, announce, was_announced};
use lab::wait::{PATIENCE, wait_until};

const BIRD: &str = "/usr/sbin/bird";
/// The version that the answers in the entries are of.
const VERSION: &str = "2.0.12";
const NETWORK_NOT_FOUND: &str = "8001";
/// BIRD's words for what it answers with a NOTIFICATION of this code and subcode, where the
/// bytes behind the fault can cost us that answer: see [`Bird::meant`].
const WORDS_OF_HEADER_ERRORS: [(&str, u8, u8); 3] = [
    ("Connection not synchronized", 1, 1),
    ("Bad message length", 1, 2),
    ("Bad message type", 1, 3),
];

pub(crate) fn check_program() -> Result<()> {
    ensure!(Path::new(BIRD).exists(), "there is no {BIRD}");
    Ok(())
}

/// Runs `trial` against BIRD; an answer that the entry does not expect is a fault.
pub(crate) fn compare(trial: &Trial<'_>, folder: &Path) -> Result<()> {
    let scene = trial.scene(Subject::Bird);
    let mut bird = Bird::start(folder, &scene)?;
    let verdict = match play(trial, &scene, &bird)? {
        Verdict::Closed => bird.meant()?.unwrap_or(Verdict::Closed),
        heard => heard,
    };
    ensure!(bird.child.try_wait()?.is_none(), "BIRD ended");
    let ours = expected(trial, &scene);
    let words = verdict.words();
    let surprise = match trial.entry.difference(trial.kind) {
        Some(listed) => {
            ensure!(listed.verdict != ours, "a difference is listed that would be none");
            if verdict == listed.verdict {
                println!("{}: BIRD: {words}: {}", trial.name(), listed.reason);
            }
            let other = listed.verdict.words();
            (verdict != listed.verdict).then(|| format!("BIRD: {words}; the entry lists {other}"))
        }
        None => {
            (verdict != ours).then(|| format!("BIRD: {words}; ours: {}; not listed", ours.words()))
        }
    };
    match surprise {
        None => Ok(()),
        Some(surprise) if is_listed_version()? => bail!(surprise),
        // The entries are about one version; another may answer differently.
        Some(surprise) => {
            println!("{}: {surprise}, which is about BIRD {VERSION}", trial.name());
            Ok(())
        }
    }
}

/// Whether this BIRD is the version of the entries.
fn is_listed_version() -> Result<bool> {
    let output = Command::new(BIRD).arg("--version").output().context("bird --version")?;
    // It goes to stderr.
    let text = String::from_utf8_lossy(&output.stderr);
    Ok(text.split_whitespace().any(|word| word == VERSION))
}

/// What BIRD would answer if it were us.
fn expected(trial: &Trial<'_>, scene: &Scene) -> Verdict {
    let present = |present| Verdict::Up { present };
    match trial.entry.action(trial.kind) {
        Action::Notification(code, subcode, _) => Verdict::Notified(code, subcode),
        Action::Silence => Verdict::Closed,
        Action::Withdraw | Action::Exclude => present(false),
        Action::Accept | Action::Discard(_) => present(true),
        Action::Ignore => {
            present(trial.entry.about.iter().all(|prefix| was_announced(prefix, scene)))
        }
    }
}

/// The script, as with fairway, but whatever comes of it is an answer.
fn play(trial: &Trial<'_>, scene: &Scene, bird: &Bird) -> Result<Verdict> {
    let bytes = (trial.entry.bytes)(scene);
    let moment = trial.entry.moment;
    let manner = trial.entry.manner;
    let mut peer = bird.dial(scene)?;
    match moment {
        Moment::InsteadOfOpen => peer.send_in(manner, &bytes)?,
        Moment::BehindOpen => peer.send(&[scene.open().bytes(), bytes.clone()].concat())?,
        _ => peer.send(&scene.open().bytes())?,
    }
    if let Some(verdict) = until_keepalive(&mut peer)? {
        return Ok(verdict);
    }
    match moment {
        Moment::InsteadOfKeepalive => peer.send_in(manner, &bytes)?,
        _ => peer.send_in(Manner::Whole, &keepalive())?,
    }
    // A side that has ended the session takes no more; reading will show it.
    let _ = announce(scene, &mut peer);
    if moment == Moment::Established {
        bird.wait_for(KEPT)?;
        peer.send_in(manner, &bytes)?;
        if manner == Manner::ThenReset {
            return wait_until("BIRD forgets the routes", PATIENCE, || {
                ensure!(!bird.has(KEPT)?, "{KEPT} is still there");
                Ok(Verdict::Closed)
            });
        }
    }
    peer.send_in(Manner::Whole, &scene.announcement(SENTINEL_NLRI).bytes())?;
    wait_until("BIRD ends the session, or knows the sentinel", PATIENCE, || {
        if let Some(verdict) = ended(&peer.heard_so_far()?) {
            return Ok(verdict);
        }
        ensure!(bird.has(SENTINEL)?, "neither");
        let about = trial.entry.about.iter().map(|prefix| bird.has(prefix));
        let present = about.collect::<Result<Vec<_>>>()?;
        let all = present.iter().all(|it| *it);
        ensure!(all || !present.contains(&true), "some are there, some not: {present:?}");
        Ok(Verdict::Up { present: all })
    })
}

/// None when the neighbour's KEEPALIVE came.
fn until_keepalive(peer: &mut Speaker) -> Result<Option<Verdict>> {
    peer.listen_until("a KEEPALIVE or the end", |heard| {
        Ok(match heard {
            Heard::Message(kind::KEEPALIVE, _) => Some(None),
            other => ended(std::slice::from_ref(other)).map(Some),
        })
    })
}

fn ended(heard: &[Heard]) -> Option<Verdict> {
    heard.iter().find_map(|heard| match heard {
        Heard::Message(kind::NOTIFICATION, body) => {
            Some(Verdict::Notified(*body.first()?, *body.get(1)?))
        }
        Heard::End => Some(Verdict::Closed),
        Heard::Message(..) => None,
    })
}

/// A running BIRD.
struct Bird {
    child: Child,
    socket: PathBuf,
    log: PathBuf,
}

impl Bird {
    fn start(folder: &Path, scene: &Scene) -> Result<Self> {
        let configuration = folder.join("bird.conf");
        fs::write(&configuration, configured(scene)).context("bird.conf")?;
        let log = folder.join("log");
        let log_file = File::create(&log).context("the log")?;
        let socket = folder.join("control");
        let child = Command::new(BIRD)
            .arg("-f")
            .args(["-c".as_ref(), configuration.as_os_str()])
            .args(["-s".as_ref(), socket.as_os_str()])
            .args(["-P".as_ref(), folder.join("pid").as_os_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log_file)
            .spawn()
            .context("starting BIRD")?;
        Ok(Self { child, socket, log })
    }

    /// BIRD's log where nothing was received. It closes with bytes of ours unread, so the kernel resets the
    /// connection, and a NOTIFICATION that waits for the acknowledgement of an earlier message (BIRD leaves
    /// Nagle's algorithm on) is dropped. Its log has it.
    fn meant(&self) -> Result<Option<Verdict>> {
        let log = fs::read(&self.log).context("reading BIRD's log")?;
        // It repeats what neighbours sent, which need not be text.
        Ok(String::from_utf8_lossy(&log).lines().find_map(|line| {
            let (_, said) = line.split_once("<RMT> peer: Error: ")?;
            let (_, code, subcode) =
                WORDS_OF_HEADER_ERRORS.iter().find(|(words, ..)| said.starts_with(words))?;
            Some(Verdict::Notified(*code, *subcode))
        }))
    }

    /// Dials from the peer's address, until BIRD sends OPEN.
    fn dial(&self, scene: &Scene) -> Result<Speaker> {
        wait_until("BIRD says OPEN", PATIENCE, || {
            let mut peer = Speaker::over(dialled(scene)?)?;
            peer.expect(kind::OPEN, "an OPEN")?;
            Ok(peer)
        })
    }

    fn has(&self, prefix: &str) -> Result<bool> {
        let table = if prefix.contains(':') { "master6" } else { "master4" };
        let lines = self.ask(&format!("show route {prefix} table {table} protocol peer"))?;
        Ok(lines.iter().any(|line| line.starts_with(prefix)))
    }

    fn wait_for(&self, prefix: &str) -> Result<()> {
        wait_until(&format!("BIRD knows {prefix}"), PATIENCE, || {
            ensure!(self.has(prefix)?, "it does not");
            Ok(())
        })
    }

    /// Sends one command; the texts of all lines of the answer.
    fn ask(&self, command: &str) -> Result<Vec<String>> {
        let mut stream = UnixStream::connect(&self.socket).context("BIRD's control socket")?;
        stream.set_read_timeout(Some(PATIENCE)).context("a limit for reading")?;
        let reader = BufReader::new(stream.try_clone().context("BIRD's control socket")?);
        let mut lines = reader.lines();
        let mut next = || lines.next().context("BIRD closed its socket")?.context("reading");
        next()?;
        stream.write_all(format!("{command}\n").as_bytes()).context("asking BIRD")?;
        let mut texts = Vec::new();
        loop {
            let line = next()?;
            let coded = line
                .split_at_checked(4)
                .filter(|(code, _)| code.bytes().all(|digit| digit.is_ascii_digit()));
            let Some((code, rest)) = coded else {
                texts.push(line.trim_start().to_owned());
                continue;
            };
            if code == NETWORK_NOT_FOUND {
                return Ok(Vec::new());
            }
            if code.starts_with(['8', '9']) {
                bail!("BIRD answers {command} with {line}");
            }
            texts.push(rest.get(1..).unwrap_or_default().to_owned());
            if rest.starts_with(' ') {
                return Ok(texts);
            }
        }
    }
}

impl Drop for Bird {
    fn drop(&mut self) {
        // It may have ended; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A stream from the peer's address to BIRD.
fn dialled(scene: &Scene) -> Result<TcpStream> {
    use nix::sys::socket::{
        AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, setsockopt, socket, sockopt,
    };
    use std::os::fd::AsRawFd;
    let flags = SockFlag::SOCK_CLOEXEC;
    let fd = socket(AddressFamily::Inet, SockType::Stream, flags, None).context("a socket")?;
    setsockopt(&fd, sockopt::ReuseAddr, &true).context("the address again")?;
    let [a, b, c, d] = scene.peer;
    bind(fd.as_raw_fd(), &SockaddrIn::new(a, b, c, d, 0)).context("the peer's address")?;
    let [a, b, c, d] = scene.speaker;
    connect(fd.as_raw_fd(), &SockaddrIn::new(a, b, c, d, PORT)).context("dialling BIRD")?;
    Ok(TcpStream::from(fd))
}

fn configured(scene: &Scene) -> String {
    let [speaker, peer] = [scene.speaker, scene.peer].map(Ipv4Addr::from);
    let asn = scene.kind.peer_asn();
    let several = if scene.offer.has_paths() { " add paths rx;" } else { "" };
    format!(
        "router id {speaker};\nlog stderr all;\nprotocol device {{ }}\nprotocol bgp peer {{\n  \
         local {speaker} port {PORT} as {OUR_AS};\n  neighbor {peer} as {asn};\n  passive;\n  strict bind;\n  \
         multihop 2;\n  ipv4 {{ import all; export none;{several} }};\n  \
         ipv6 {{ import all; export none; }};\n}}\n"
    )
}
