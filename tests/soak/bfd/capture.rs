//! What passes an interface, and when? tcpdump writes each packet of BGP and BFD with the kernel's time
//! stamp; what matters of it is kept. Times are those of the day in UTC, as every log has them.

use std::io::{BufReader, Read};
use std::net::Ipv4Addr;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use lab::namespace::{Namespace, Place};
use lab::wait::PATIENCE;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const FILTER: &str = "udp dst port 3784 or (tcp port 179 and tcp[tcpflags] & tcp-push != 0)";
/// Of pcap with nanoseconds, as this machine writes it.
const MAGIC: u32 = 0xa1b2_3c4d;
const ETHERNET_BYTES: usize = 14;
/// More of no packet is read.
const LONGEST_BYTES: usize = 512;

/// The content of a packet, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saying {
    /// A control packet, in whatever state.
    Bfd,
    /// A NOTIFICATION with code and subcode.
    Notification(u8, u8),
}

/// A packet as it passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// The time of day.
    pub(crate) at: Duration,
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    pub(crate) saying: Saying,
}

/// tcpdump on one interface, for as long as this value lives.
pub(crate) struct Capture {
    child: Child,
    packets: Arc<Mutex<Vec<Packet>>>,
}

impl Capture {
    pub(crate) fn start(namespace: &Namespace, interface: &str) -> Result<Self> {
        let length = LONGEST_BYTES.to_string();
        let mut child = namespace
            .command("tcpdump".as_ref())
            .args(["-i", interface, "--immediate-mode", "-U", "-B", "8192", "-s", &length])
            .args(["--time-stamp-precision=nano", "-Z", "root", "-w", "-", FILTER])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting tcpdump")?;
        let stdout = child.stdout.take().context("tcpdump has no output")?;
        let packets = Arc::new(Mutex::new(Vec::new()));
        let (sender, started) = std::sync::mpsc::channel();
        let kept = Arc::clone(&packets);
        thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            // Its header comes when it listens.
            if sender.send(read_header(&mut reader)).is_err() {
                return;
            }
            while let Ok((at, bytes)) = read_packet(&mut reader) {
                let Some(packet) = understand(at, &bytes) else { continue };
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(packet);
            }
        });
        started.recv_timeout(PATIENCE).context("tcpdump does not listen")??;
        Ok(Self { child, packets })
    }

    /// All packets that were read since the last call.
    pub(crate) fn take(&self) -> Vec<Packet> {
        std::mem::take(&mut *self.packets.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // It may have ended with its namespace.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_header(reader: &mut impl Read) -> Result<()> {
    let mut header = [0; 24];
    reader.read_exact(&mut header).context("tcpdump's header")?;
    let magic = number(&header, 0).context("tcpdump's magic number")?;
    ensure!(magic == MAGIC, "expected pcap with nanoseconds, got {magic:08x}");
    Ok(())
}

fn read_packet(reader: &mut impl Read) -> Result<(Duration, Vec<u8>)> {
    let mut header = [0; 16];
    reader.read_exact(&mut header)?;
    let field = |offset| number(&header, offset).context("a field of pcap");
    let at = Duration::new(field(0)?.into(), field(4)?);
    let length = usize::try_from(field(8)?)?;
    ensure!(length <= LONGEST_BYTES, "a packet of {length} bytes");
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    Ok((at, bytes))
}

fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

/// None for what is neither BFD nor a NOTIFICATION over IPv4.
fn understand(at: Duration, frame: &[u8]) -> Option<Packet> {
    let packet = frame.get(ETHERNET_BYTES..)?;
    let first = *packet.first()?;
    if first >> 4 != 4 {
        return None;
    }
    let length = usize::from(u16::from_be_bytes(packet.get(2..4)?.try_into().ok()?));
    let payload = packet.get(usize::from(first & 15) * 4..length.min(packet.len()))?;
    let address = |offset: usize| {
        let octets: [u8; 4] = packet.get(offset..offset + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(octets))
    };
    let saying = match packet.get(9)? {
        17 => Saying::Bfd,
        6 => notification(payload.get(usize::from(payload.get(12)? >> 4) * 4..)?)?,
        _ => return None,
    };
    let at = Duration::from_nanos(u64::try_from(at.as_nanos() % DAY.as_nanos()).ok()?);
    Some(Packet { at, source: address(12)?, destination: address(16)?, saying })
}

/// The first NOTIFICATION among whole messages of a segment.
fn notification(mut messages: &[u8]) -> Option<Saying> {
    loop {
        let header = messages.get(..19)?;
        let length = usize::from(u16::from_be_bytes(header.get(16..18)?.try_into().ok()?));
        if header.get(18) == Some(&3) {
            return Some(Saying::Notification(*messages.get(19)?, *messages.get(20)?));
        }
        messages = messages.get(length.max(19)..)?;
    }
}

/// The time of day at the beginning of a line such as `2026-11-21T22:40:01.123456Z`.
pub(crate) fn time_of_day(line: &str) -> Option<Duration> {
    let (_, time) = line.split_once('T')?;
    let mut parts = time.get(..15)?.split([':', '.']);
    let mut next = || parts.next()?.parse::<u64>().ok();
    let (hours, minutes, seconds, microseconds) = (next()?, next()?, next()?, next()?);
    let whole = Duration::from_secs((hours * 60 + minutes) * 60 + seconds);
    Some(whole + Duration::from_micros(microseconds))
}

/// From one time of day to a later one, midnight or not; none when it is hours later.
pub(crate) fn between(earlier: Duration, later: Duration) -> Option<Duration> {
    let span = (later + DAY).checked_sub(earlier)?;
    let span = if span >= DAY { span - DAY } else { span };
    (span < DAY / 24).then_some(span)
}
