//! Is an address answered for, at every moment? A client in a namespace asks for addresses at a fixed interval
//! with ARP and neighbour solicitations, and notes who answers and who announces. It is this test's own binary,
//! run again inside the namespace; it builds and reads its frames by itself. Used by the benchmark of failover.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, ExitCode, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};

use crate::frames::{Frames, Mac};
use lab::namespace::Place;
use lab::wait::now;

/// First word of the command line of this binary in its other role.
const ROLE: &str = "@ask";

/// What is known of an address since the last [`Asker::begin`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) address: IpAddr,
    /// Who answered or announced last.
    pub(crate) mac: Option<String>,
    /// Who had done so before.
    pub(crate) former: Option<String>,
    /// The longest time between two answers; with one on every question this is the interval.
    pub(crate) gap_milliseconds: f64,
    /// Until somebody else than before answered or announced.
    pub(crate) taken_milliseconds: Option<f64>,
    /// Until the last answer of anybody else than who answered last.
    pub(crate) others_until_milliseconds: Option<f64>,
    pub(crate) asked: u64,
    pub(crate) answered: u64,
}

/// A client that asks, for as long as this value lives.
pub(crate) struct Asker {
    child: Child,
    orders: ChildStdin,
    reports: BufReader<ChildStdout>,
}

impl Asker {
    /// Asks for each of the addresses once in `interval`, as `ipv4` and `ipv6`, which are addresses of the place.
    pub(crate) fn start(
        place: &impl Place,
        (ipv4, ipv6): (Ipv4Addr, Ipv6Addr),
        interval: Duration,
        addresses: &[IpAddr],
    ) -> Result<Self> {
        let binary = std::env::current_exe().context("the path of this binary")?;
        let mut child = place
            .command(OsStr::new(&binary))
            .args([ROLE, &ipv4.to_string(), &ipv6.to_string()])
            .arg(interval.as_micros().to_string())
            .args(addresses.iter().map(IpAddr::to_string))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the client that asks")?;
        let orders = child.stdin.take().context("no input")?;
        let reports = BufReader::new(child.stdout.take().context("no output")?);
        Ok(Self { child, orders, reports })
    }

    /// Forgets everything but who answers.
    pub(crate) fn begin(&mut self) -> Result<()> {
        self.order("begin").map(drop)
    }

    /// What was seen since.
    pub(crate) fn report(&mut self) -> Result<Vec<Seen>> {
        self.order("report")
    }

    fn order(&mut self, word: &str) -> Result<Vec<Seen>> {
        writeln!(self.orders, "{word}").context("the client that asks has ended")?;
        let mut line = String::new();
        self.reports.read_line(&mut line).context("a report")?;
        serde_json::from_str(&line).with_context(|| format!("a report: {line:?}"))
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Plays the other role when the command line asks for it.
pub(crate) fn other_role() -> Option<ExitCode> {
    let mut words = std::env::args().skip(1);
    if words.next()? != ROLE {
        return None;
    }
    let words: Vec<String> = words.collect();
    Some(match ask(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{ROLE}: {error:#}");
            ExitCode::FAILURE
        }
    })
}

struct Entry {
    mac: Option<Mac>,
    former: Option<Mac>,
    /// When each has answered last.
    answers: BTreeMap<Mac, Instant>,
    last_answer: Option<Instant>,
    gap: Duration,
    taken: Option<Instant>,
    asked: u64,
    answered: u64,
}

struct Ledger {
    begun: Instant,
    entries: BTreeMap<IpAddr, Entry>,
}

impl Ledger {
    fn begin(&mut self) {
        self.begun = now();
        for entry in self.entries.values_mut() {
            entry.former = entry.mac;
            entry.answers.clear();
            (entry.gap, entry.taken, entry.asked, entry.answered) = (Duration::ZERO, None, 0, 0);
        }
    }

    fn hear(&mut self, moment: Instant, heard: Heard) {
        let Some(entry) = self.entries.get_mut(&heard.address) else { return };
        if heard.is_answer {
            if let Some(before) = entry.last_answer.replace(moment) {
                entry.gap = entry.gap.max(moment.saturating_duration_since(before));
            }
            entry.answers.insert(heard.mac, moment);
            entry.answered += 1;
        }
        entry.mac = Some(heard.mac);
        if entry.former.is_some_and(|it| it != heard.mac) && entry.taken.is_none() {
            entry.taken = Some(moment);
        }
    }

    fn report(&self) -> Vec<Seen> {
        let since = |at: Instant| at.saturating_duration_since(self.begun).as_secs_f64() * 1000.0;
        let text = |mac: Mac| mac.map(|it| format!("{it:02x}")).join(":");
        let of = |(address, entry): (&IpAddr, &Entry)| {
            let silent = entry.last_answer.map_or(Duration::MAX, |at| at.elapsed());
            let others = entry.answers.iter().filter(|(mac, _)| entry.mac != Some(**mac));
            Seen {
                address: *address,
                mac: entry.mac.map(text),
                former: entry.former.map(text),
                gap_milliseconds: entry.gap.max(silent).as_secs_f64() * 1000.0,
                taken_milliseconds: entry.taken.map(since),
                others_until_milliseconds: others.map(|(_, at)| *at).max().map(since),
                asked: entry.asked,
                answered: entry.answered,
            }
        };
        self.entries.iter().map(of).collect()
    }
}

fn ask(words: &[String]) -> Result<()> {
    let [ipv4, ipv6, interval, addresses @ ..] = words else {
        bail!("expected IPV4 IPV6 MICROSECONDS ADDRESS...")
    };
    let socket = Frames::open()?;
    let client = Client {
        ipv4: ipv4.parse().context("an IPv4 address")?,
        ipv6: ipv6.parse().context("an IPv6 address")?,
        mac: socket.mac,
    };
    let interval = Duration::from_micros(interval.parse().context("an interval")?);
    let parse = |word: &String| word.parse().with_context(|| format!("address {word}"));
    let addresses: Vec<IpAddr> = addresses.iter().map(parse).collect::<Result<_>>()?;
    let new = || Entry {
        mac: None,
        former: None,
        answers: BTreeMap::new(),
        last_answer: None,
        gap: Duration::ZERO,
        taken: None,
        asked: 0,
        answered: 0,
    };
    let entries = addresses.iter().map(|it| (*it, new())).collect();
    let ledger = Arc::new(Mutex::new(Ledger { begun: now(), entries }));
    let shared = Arc::clone(&ledger);
    thread::spawn(move || {
        if let Err(error) = converse(&client, &socket, interval, &addresses, &shared) {
            eprintln!("{ROLE}: {error:#}");
            std::process::exit(1);
        }
    });
    for line in std::io::stdin().lines() {
        let report = {
            let mut ledger = lock(&ledger);
            if line? == "begin" {
                ledger.begin();
            }
            serde_json::to_string(&ledger.report())?
        };
        println!("{report}");
    }
    Ok(())
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks for ever. Questions of one interval are spread over it.
fn converse(
    client: &Client,
    socket: &Frames,
    interval: Duration,
    addresses: &[IpAddr],
    ledger: &Mutex<Ledger>,
) -> Result<()> {
    let step = interval / u32::try_from(addresses.len()).context("a number of addresses")?;
    let mut due = now();
    let mut buffer = [0; 2_048];
    for address in addresses.iter().cycle() {
        loop {
            while let Some(frame) = socket.receive(&mut buffer)? {
                if let Some(heard) = client.read(frame) {
                    lock(ledger).hear(now(), heard);
                }
            }
            let left = due.saturating_duration_since(now());
            if left.is_zero() {
                break;
            }
            // What is left of a millisecond is waited for without rest.
            let timeout = PollTimeout::try_from(left.as_millis()).unwrap_or(PollTimeout::MAX);
            poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], timeout)
                .context("waiting for frames")?;
        }
        if let Some(entry) = lock(ledger).entries.get_mut(address) {
            entry.asked += 1;
        }
        socket.send(&client.question(*address))?;
        // A pause of the machine is not made up for.
        due = (due + step).max(now().checked_sub(interval).unwrap_or(due));
    }
    Ok(())
}

/// The addresses of the client.
struct Client {
    ipv4: Ipv4Addr,
    ipv6: Ipv6Addr,
    mac: Mac,
}

/// A claim to an address.
struct Heard {
    address: IpAddr,
    mac: Mac,
    /// To the client alone.
    is_answer: bool,
}

impl Client {
    fn question(&self, address: IpAddr) -> Vec<u8> {
        match address {
            IpAddr::V4(address) => [
                &[0xFF; 6][..],
                &self.mac,
                &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
                &self.mac,
                &self.ipv4.octets(),
                &[0; 6],
                &address.octets(),
            ]
            .concat(),
            IpAddr::V6(address) => {
                let [.., a, b, c] = address.octets();
                let group = Ipv6Addr::from([0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, a, b, c]);
                let mut message = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &address.octets(), &[1, 1]];
                let with_option = [&message.concat()[..], &self.mac].concat();
                let sum = checksum(self.ipv6, group, &with_option).to_be_bytes();
                let head = [135, 0, sum[0], sum[1], 0, 0, 0, 0];
                message[0] = &head;
                [
                    &[0x33, 0x33, 0xFF, a, b, c][..],
                    &self.mac,
                    &[0x86, 0xDD, 0x60, 0, 0, 0, 0, 32, 58, 255],
                    &self.ipv6.octets(),
                    &group.octets(),
                    &message.concat(),
                    &self.mac,
                ]
                .concat()
            }
        }
    }

    /// ARP replies and announcements; advertisements of neighbours with their option.
    fn read(&self, frame: &[u8]) -> Option<Heard> {
        let is_answer = frame.get(..6)? == self.mac;
        match frame.get(12..14)? {
            [8, 6] => {
                let mac = Mac::try_from(frame.get(22..28)?).ok()?;
                let sender = <[u8; 4]>::try_from(frame.get(28..32)?).ok()?;
                Some(Heard { address: Ipv4Addr::from(sender).into(), mac, is_answer })
            }
            [0x86, 0xDD] if frame.get(20) == Some(&58) && frame.get(54) == Some(&136) => {
                let target = <[u8; 16]>::try_from(frame.get(62..78)?).ok()?;
                let mac = Mac::try_from(frame.get(80..86)?).ok()?;
                Some(Heard { address: Ipv6Addr::from(target).into(), mac, is_answer })
            }
            _ => None,
        }
    }
}

/// Of ICMPv6, over its pseudo-header.
fn checksum(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> u16 {
    let octets = [&source.octets()[..], &destination.octets(), message].concat();
    let words =
        octets.chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(*it.get(1).unwrap_or(&0)));
    let mut sum = words.sum::<u32>() + u32::try_from(message.len()).unwrap_or(0) + 58;
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}
