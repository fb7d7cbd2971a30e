//! The neighbours around the speaker: each announces its part of the table, and counts what it is told. A run counts
//! only when each has every prefix.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::message::{self, KEEPALIVE, NOTIFICATION, OPEN, UPDATE};
use crate::scenario::Scenario;
use crate::speaker;

/// How long one run may take.
const LIMIT: Duration = Duration::from_secs(120);

/// What all neighbours saw.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// From the start to the last prefix at the last neighbour.
    pub(crate) time: Duration,
    pub(crate) updates: u64,
    pub(crate) bytes: u64,
    /// Of changes one by one, the median and the 99th percentile.
    pub(crate) changes: Option<[Duration; 2]>,
    /// From the moment at which all left to the last route that was removed from the kernel.
    pub(crate) removed: Option<Duration>,
}

/// How often the kernel is asked how many routes it has: it counts them one by one.
const COUNT_PAUSE: Duration = Duration::from_millis(100);
/// The routes that it has without any neighbour.
const ROUTES_MIN: usize = 100;

/// After each change.
const CHANGE_PAUSE: Duration = Duration::from_millis(1);

/// Connects all, and waits until each has what it must have. The clock starts when they connect if only the speaker has
/// routes, else when all sessions are up.
///
/// `installed` is how many routes the speaker's kernel has.
pub(crate) fn run(scenario: &Scenario, installed: impl Fn() -> Result<usize>) -> Result<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        timeout(LIMIT, all(*scenario, installed)).await.context("it takes too long")?
    })
}

async fn all(scenario: Scenario, installed: impl Fn() -> Result<usize>) -> Result<Seen> {
    let peers = scenario.peers();
    let ready = Arc::new(Barrier::new(peers + 1));
    let mut tasks = JoinSet::new();
    let connecting = Instant::now();
    for number in 0..peers {
        let mut neighbour = Neighbour::new(scenario, number);
        let ready = Arc::clone(&ready);
        tasks.spawn(async move {
            neighbour.connect().await.with_context(|| format!("neighbor {number}"))?;
            if scenario.sends() {
                ready.wait().await;
            }
            neighbour.exchange().await.with_context(|| format!("neighbor {number}"))
        });
    }
    let start = if scenario.sends() {
        ready.wait().await;
        Instant::now()
    } else {
        connecting
    };
    let mut seen = Seen::default();
    let mut last = start;
    // Nobody leaves before all have everything: what they announced would go.
    let mut connected = Vec::new();
    while let Some(outcome) = tasks.join_next().await {
        let done: Done = outcome.context("a task")??;
        last = last.max(done.at);
        seen.updates += done.updates;
        seen.bytes += done.bytes;
        connected.push((done.number, done.stream));
    }
    seen.time = last - start;
    if scenario.installs {
        let routes = scenario.senders * scenario.routes_each;
        while installed()? < routes {
            sleep(COUNT_PAUSE).await;
        }
        seen.time = start.elapsed();
        connected.clear();
        let leaving = Instant::now();
        while installed()? > ROUTES_MIN {
            sleep(COUNT_PAUSE).await;
        }
        seen.removed = Some(leaving.elapsed());
    }
    if scenario.changes > 0 {
        connected.sort_unstable_by_key(|(number, _)| *number);
        let mut streams = connected.iter_mut().map(|(_, stream)| stream);
        let sender = streams.next().context("a sender")?;
        let receiver = streams.nth(scenario.senders - 1).context("a receiver")?;
        seen.changes = Some(changes(&scenario, sender, receiver).await?);
    }
    Ok(seen)
}

/// The first neighbour announces its part until `ends` is set, over one session after the other.
pub(crate) fn feed(scenario: &Scenario, ends: &AtomicBool) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = async {
        while !ends.load(Ordering::Relaxed) {
            sleep(COUNT_PAUSE).await;
        }
    };
    runtime.block_on(async {
        tokio::select! {
            () = ended => Ok(()),
            outcome = feed_on(*scenario) => outcome,
        }
    })
}

async fn feed_on(scenario: Scenario) -> Result<()> {
    loop {
        let mut neighbour = Neighbour::new(scenario, 0);
        // A speaker that ends is there again soon.
        if neighbour.connect().await.is_err() {
            continue;
        }
        if let Ok(Done { mut stream, .. }) = neighbour.exchange().await {
            let mut ignored = Vec::new();
            while stream.read_buf(&mut ignored).await.is_ok_and(|count| count > 0) {
                ignored.clear();
            }
        }
    }
}

/// How long each change takes from the sender to the receiver.
async fn changes(
    scenario: &Scenario,
    sender: &mut TcpStream,
    receiver: &mut TcpStream,
) -> Result<[Duration; 2]> {
    let routes = u32::try_from(scenario.routes_each)?;
    let mut buffer: Vec<u8> = Vec::new();
    let mut times = Vec::with_capacity(scenario.changes);
    for round in 0..u32::try_from(scenario.changes)? {
        // Anywhere in the table.
        let number = round.wrapping_mul(7_919) % routes;
        let bytes = message::change(speaker::asn(0), scenario.neighbour_address(0), number, round);
        let start = Instant::now();
        sender.write_all(&bytes).await?;
        let mut is_there = false;
        while !is_there {
            ensure!(receiver.read_buf(&mut buffer).await? > 0, "the speaker closed the connection");
            while let Some((length, kind)) = message::first(&buffer) {
                let body = buffer.get(19..length).context("a message that is too short")?;
                if kind == UPDATE {
                    message::announced(body, |_, it| is_there |= it == number)?;
                }
                buffer.drain(..length);
            }
        }
        times.push(start.elapsed());
        sleep(CHANGE_PAUSE).await;
    }
    times.sort_unstable();
    let of = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default();
    Ok([of(50), of(99)])
}

/// A neighbour that has everything.
struct Done {
    number: usize,
    at: Instant,
    updates: u64,
    bytes: u64,
    stream: TcpStream,
}

struct Neighbour {
    number: usize,
    asn: u32,
    address: Ipv4Addr,
    speaker: Ipv4Addr,
    announcements: Vec<u8>,
    stream: Option<TcpStream>,
    /// A bit for each prefix: the speaker's own, then those of all neighbours.
    has: Vec<u64>,
    own: u32,
    missing: usize,
    buffer: Vec<u8>,
    updates: u64,
    bytes: u64,
}

impl Neighbour {
    fn new(scenario: Scenario, number: usize) -> Self {
        let (asn, address) = (speaker::asn(number), scenario.neighbour_address(number));
        let count = scenario.routes_each;
        let announcements = if number < scenario.senders {
            let first = u32::try_from(number * count).unwrap_or_default();
            let last = first + u32::try_from(count).unwrap_or_default();
            message::announcements(asn, address, first..last, scenario.per_update)
        } else {
            Vec::new()
        };
        let total = scenario.own + scenario.senders * count;
        let missing = total - if number < scenario.senders { count } else { 0 };
        Self {
            number,
            asn,
            address,
            speaker: scenario.speaker_address(number),
            announcements,
            stream: None,
            has: vec![0; total / 64 + 1],
            own: u32::try_from(scenario.own).unwrap_or_default(),
            missing,
            buffer: Vec::with_capacity(1 << 17),
            updates: 0,
            bytes: 0,
        }
    }

    /// Until the session is Established.
    async fn connect(&mut self) -> Result<()> {
        let mut stream = loop {
            let socket = TcpSocket::new_v4()?;
            socket.bind((self.address, 0).into())?;
            match socket.connect(SocketAddr::from((self.speaker, 179))).await {
                Ok(stream) => break stream,
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        };
        stream.set_nodelay(true)?;
        stream.write_all(&message::open(self.asn, self.address)).await?;
        self.stream = Some(stream);
        let (mut is_open, mut is_up) = (false, false);
        while !is_up {
            let was_open = is_open;
            self.read(|kind| {
                is_open |= kind == OPEN;
                is_up |= kind == KEEPALIVE;
            })
            .await?;
            if is_open && !was_open {
                let stream = self.stream.as_mut().context("no connection")?;
                stream.write_all(&message::message(KEEPALIVE, &[])).await?;
            }
        }
        Ok(())
    }

    /// Writes everything and reads everything; when the last prefix came.
    async fn exchange(mut self) -> Result<Done> {
        let stream = self.stream.take().context("no connection")?;
        let (reader, mut writer) = stream.into_split();
        let announcements = std::mem::take(&mut self.announcements);
        let writing = tokio::spawn(async move {
            let outcome = writer.write_all(&announcements).await;
            (writer, outcome)
        });
        let mut reader = reader;
        while self.missing > 0 {
            let count = reader.read_buf(&mut self.buffer).await?;
            if count == 0 {
                bail!("the speaker closed the connection with {} missing", self.missing);
            }
            self.take_messages(|_| {})?;
        }
        let at = Instant::now();
        let (writer, written) = writing.await.context("a writer")?;
        written.context("writing")?;
        let stream = reader.reunite(writer).context("one connection")?;
        Ok(Done { number: self.number, at, updates: self.updates, bytes: self.bytes, stream })
    }

    async fn read(&mut self, each: impl FnMut(u8)) -> Result<()> {
        let stream = self.stream.as_mut().context("no connection")?;
        if stream.read_buf(&mut self.buffer).await? == 0 {
            bail!("the speaker closed the connection");
        }
        self.take_messages(each)
    }

    fn take_messages(&mut self, mut each: impl FnMut(u8)) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let mut rest = buffer.as_slice();
        while let Some((length, kind)) = message::first(rest) {
            let body = rest.get(19..length).context("a message that is too short")?;
            match kind {
                UPDATE => self.take_update(length, body)?,
                NOTIFICATION => bail!("NOTIFICATION {body:?}"),
                OPEN | KEEPALIVE => {}
                other => bail!("a message of type {other}"),
            }
            each(kind);
            rest = rest.get(length..).unwrap_or_default();
        }
        self.buffer = rest.to_vec();
        self.buffer.reserve(1 << 17);
        Ok(())
    }

    fn take_update(&mut self, length: usize, body: &[u8]) -> Result<()> {
        self.updates += 1;
        self.bytes += u64::try_from(length).unwrap_or_default();
        let (own, has, missing) = (self.own, &mut self.has, &mut self.missing);
        message::announced(body, |is_own, number| {
            let number = if is_own { number } else { own + number };
            let (word, bit) = ((number / 64) as usize, 1_u64 << (number % 64));
            if let Some(word) = has.get_mut(word).filter(|word| **word & bit == 0) {
                *word |= bit;
                *missing = missing.saturating_sub(1);
            }
        })
    }
}
