//! What do routers and nodes tell each other? tcpdump writes each packet of BGP on an interface; the UPDATE messages of it are
//! looked through for a prefix.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use ipnet::IpNet;

use lab::namespace::Place;
use lab::process::Process;
use lab::wait::{PATIENCE, wait_until};

/// Of pcap with microseconds, as the machine itself writes it.
const MAGIC: u32 = 0xa1b2_c3d4;
const FILE_HEADER_BYTES: usize = 24;
const PACKET_HEADER_BYTES: usize = 16;
const ETHERNET_BYTES: usize = 14;
/// What each BGP message begins with, RFC 4271 §4.1.
const MARKER: [u8; 16] = [0xff; 16];
const MESSAGE_HEADER_BYTES: usize = 19;
const UPDATE: u8 = 2;

/// tcpdump on one interface, for as long as this value lives.
pub(crate) struct Capture {
    _process: Process,
    file: PathBuf,
}

/// The direction of a TCP connection: addresses and ports.
type Flow = [u8; 12];

/// What was sent in one direction: segments by their distance from the first one.
#[derive(Default)]
struct Stream {
    first: Option<u32>,
    segments: BTreeMap<u32, Vec<u8>>,
}

impl Capture {
    /// Begins when it listens.
    pub(crate) fn start(place: &impl Place, interface: &str, directory: &Path) -> Result<Self> {
        let file = directory.join("bgp.pcap");
        let path = file.display().to_string();
        let words = ["-i", interface, "--immediate-mode", "-U", "-B", "8192", "-s", "0"];
        let words = [words.as_slice(), &["-Z", "root", "-w", &path, "tcp port 179"]].concat();
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let log = directory.join("tcpdump.log");
        let mut process = Process::spawn(place, Path::new("tcpdump"), &words, &log)?;
        wait_until("tcpdump listens", PATIENCE, || {
            process.check_running()?;
            let length = std::fs::metadata(&file)?.len();
            ensure!(length >= u64::try_from(FILE_HEADER_BYTES)?, "its file has {length} bytes");
            Ok(())
        })?;
        Ok(Self { _process: process, file })
    }

    /// Whether an UPDATE message until now has this prefix, announced or withdrawn.
    pub(crate) fn has(&self, prefix: &str) -> Result<bool> {
        let prefix: IpNet = prefix.parse()?;
        let octets = match prefix {
            IpNet::V4(it) => it.network().octets().to_vec(),
            IpNet::V6(it) => it.network().octets().to_vec(),
        };
        let length = usize::from(prefix.prefix_len()).div_ceil(8);
        let bytes = [&[prefix.prefix_len()], octets.get(..length).context("its bytes")?].concat();
        Ok(self.updates()?.iter().any(|it| it.windows(bytes.len()).any(|it| it == bytes)))
    }

    /// The content of all UPDATE messages until now.
    fn updates(&self) -> Result<Vec<Vec<u8>>> {
        let bytes = std::fs::read(&self.file)?;
        ensure!(number(&bytes, 0) == Some(MAGIC), "{} is no pcap", self.file.display());
        let mut streams: BTreeMap<Flow, Stream> = BTreeMap::new();
        let mut rest = bytes.get(FILE_HEADER_BYTES..).context("the header of pcap")?;
        while let Some((frame, after)) = next_frame(rest) {
            rest = after;
            if let Some((flow, sequence, payload)) = segment_of(frame) {
                streams.entry(flow).or_default().add(sequence, payload);
            }
        }
        Ok(streams.into_values().flat_map(|it| updates_in(&it.assembled())).collect())
    }
}

impl Stream {
    fn add(&mut self, sequence: u32, payload: &[u8]) {
        let first = *self.first.get_or_insert(sequence);
        let segment = self.segments.entry(sequence.wrapping_sub(first)).or_default();
        if payload.len() > segment.len() {
            *segment = payload.to_vec();
        }
    }

    /// All of it in its order, what was sent again only once.
    fn assembled(self) -> Vec<u8> {
        let (mut bytes, mut next) = (Vec::new(), 0_usize);
        for (begin, segment) in self.segments {
            let Ok(begin) = usize::try_from(begin) else { continue };
            let known = next.saturating_sub(begin).min(segment.len());
            bytes.extend(segment.iter().skip(known));
            next = next.max(begin + segment.len());
        }
        bytes
    }
}

fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

/// The first packet and what is after it; none where it is not written as a whole yet.
fn next_frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::try_from(number(bytes, 8)?).ok()?;
    bytes.get(PACKET_HEADER_BYTES..)?.split_at_checked(length)
}

/// The content of a TCP segment over IPv4.
fn segment_of(frame: &[u8]) -> Option<(Flow, u32, &[u8])> {
    let packet = frame.get(ETHERNET_BYTES..)?;
    let first = *packet.first()?;
    if first >> 4 != 4 {
        return None;
    }
    let length = usize::from(u16::from_be_bytes(packet.get(2..4)?.try_into().ok()?));
    let segment = packet.get(usize::from(first & 15) * 4..length)?;
    let flow: Vec<u8> = [packet.get(12..20)?, segment.get(..4)?].concat();
    let sequence = u32::from_be_bytes(segment.get(4..8)?.try_into().ok()?);
    let payload = segment.get(usize::from(segment.get(12)? >> 4) * 4..)?;
    (!payload.is_empty()).then_some((flow.try_into().ok()?, sequence, payload))
}

/// The content of UPDATE messages; what is before the first marker belongs to a message whose begin is unknown.
fn updates_in(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut updates, mut rest) = (Vec::new(), bytes);
    while let Some(begin) = rest.windows(MARKER.len()).position(|it| it == MARKER) {
        let message = rest.get(begin..).unwrap_or_default();
        let Some(&[high, low, kind]) = message.get(MARKER.len()..MESSAGE_HEADER_BYTES) else {
            break;
        };
        let length = usize::from(u16::from_be_bytes([high, low])).max(MESSAGE_HEADER_BYTES);
        let Some(content) = message.get(MESSAGE_HEADER_BYTES..length) else { break };
        if kind == UPDATE {
            updates.push(content.to_vec());
        }
        rest = message.get(length..).unwrap_or_default();
    }
    updates
}
