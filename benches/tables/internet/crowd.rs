//! The neighbours of a router at an exchange: transits with a full table, peers with a part of it, and clients that
//! announce little and hear everything. One peer and one client watch how long a change takes, on a thread of their own.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::table::{Table, Voice};
use crate::message::{self, KEEPALIVE, NOTIFICATION, OPEN, UPDATE};
use crate::scenario::Scenario;
use crate::speaker;

pub(crate) const TRANSITS: usize = 3;
pub(crate) const PEERS: usize = 10;
/// The parts of the table that a peer and a client announce.
const PEER_SHARE: usize = 50;
const CLIENT_GROUPS: usize = 5;

/// Until all have everything.
const LIMIT: Duration = Duration::from_secs(1200);
/// Between two changes that are watched.
const CHANGE_PAUSE: Duration = Duration::from_millis(50);
/// How long changes are watched without and with churn.
const CALM: Duration = Duration::from_secs(20);
/// Between two UPDATEs of the churn. Collectors see some hundred thousand a day from a neighbour, in bursts.
const CHURN_PAUSE: Duration = Duration::from_millis(20);
/// A transit resets its session so often.
const RESET_INTERVAL: Duration = Duration::from_secs(60);
/// A speaker may refuse one that comes back at once.
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);
/// Below the third of the hold time of 240 s.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(60);
/// What is written at once.
const PART_BYTES: usize = 1 << 16;
/// A change that takes longer has been lost.
const CHANGE_LIMIT: Duration = Duration::from_secs(60);

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// From the first UPDATE to the last prefix at the last neighbour.
    pub(crate) converged: Duration,
    /// Of changes: calm, beside churn, and beside a transit that resets.
    pub(crate) phases: Vec<Phase>,
    pub(crate) bytes: usize,
}

/// How long changes took.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub(crate) name: &'static str,
    pub(crate) changes: usize,
    pub(crate) half: Duration,
    pub(crate) most: Duration,
    pub(crate) longest: Duration,
    /// Resident memory of the speaker at the beginning, at most, and at the end, in MiB.
    pub(crate) memory: [f64; 3],
}

/// All that neighbours share.
struct World {
    table: Table,
    scenario: Scenario,
    /// Neighbours that miss something.
    incomplete: AtomicUsize,
    complete: Notify,
    bytes: AtomicUsize,
}

/// Who does what.
fn groups_of(number: usize, table: &Table) -> Range<usize> {
    let (all, share) = (table.groups(), table.groups() / PEER_SHARE);
    if number < TRANSITS {
        return 0..all;
    }
    let peer = number - TRANSITS;
    if peer < PEERS {
        return peer * share..(peer + 1) * share;
    }
    let first = PEERS * share + (peer - PEERS) * CLIENT_GROUPS;
    first.min(all)..(first + CLIENT_GROUPS).min(all)
}

fn voice(scenario: &Scenario, number: usize) -> Voice {
    Voice {
        asn: speaker::asn(number),
        next_hop: scenario.neighbour_address(number),
        next_hop_ipv6: ipv6_address(number),
        is_transit: number < TRANSITS,
    }
}

/// Of a neighbour, on the network of all.
pub(crate) fn ipv6_address(number: usize) -> Ipv6Addr {
    let number = u16::try_from(number).unwrap_or_default();
    Ipv6Addr::new(0x2001, 0xdb8, 0x83, 0, 0, 0, 1, number)
}

/// Runs all neighbours. `memory` tells what the speaker has in memory now.
pub(crate) fn run(
    table: Table,
    scenario: Scenario,
    resets: u32,
    memory: &(dyn Fn() -> Result<f64> + Sync),
) -> Result<Seen> {
    let peers = scenario.peers();
    let world = Arc::new(World {
        table,
        scenario,
        incomplete: AtomicUsize::new(peers - TRANSITS),
        complete: Notify::new(),
        bytes: AtomicUsize::new(0),
    });
    // The crowd has a thread of its own, so that the pair that watches is not behind it.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(all(&world, resets, memory))
}

/// What the task of a neighbour is asked to do.
enum Order {
    Write(Vec<u8>),
    Reset(Vec<u8>),
}

async fn all(
    world: &Arc<World>,
    resets: u32,
    memory: &(dyn Fn() -> Result<f64> + Sync),
) -> Result<Seen> {
    let (watched_peer, watching_client) = (TRANSITS, TRANSITS + PEERS);
    let heard: Heard = Arc::default();
    let told = Arc::new(Notify::new());
    let (mut crowd, mut pair, mut orders) = (JoinSet::new(), FuturesUnordered::new(), Vec::new());
    for number in 0..world.scenario.peers() {
        let (order, take_order) = mpsc::channel(4);
        orders.push(order);
        let mut neighbour = Neighbour::connect(world, number).await?;
        if number == watching_client {
            neighbour.watches = Some((Arc::clone(&heard), Arc::clone(&told)));
        }
        let life = async move {
            neighbour.live(take_order).await.with_context(|| format!("neighbor {number}"))
        };
        if [watched_peer, watching_client].contains(&number) {
            pair.push(life);
        } else {
            crowd.spawn(life);
        }
    }
    let watch = Watch { world, orders, heard, told, memory };
    tokio::select! {
        seen = watch.see(resets) => seen,
        Some(ended) = pair.next() => { ended?; bail!("a neighbor ended") }
        Some(ended) = crowd.join_next() => { ended.context("a task")??; bail!("a neighbor ended") }
    }
}

/// A transit changes what it says of one group after the other, anywhere in the table.
async fn churn(world: Arc<World>, order: mpsc::Sender<Order>) {
    let voice = voice(&world.scenario, 0);
    let all = world.table.groups();
    for round in 1_u32.. {
        let number = (round as usize).wrapping_mul(7_919) % all;
        let bytes = world.table.announcements(number..number + 1, &voice, round % 64 + 1);
        if order.send(Order::Write(bytes)).await.is_err() {
            return;
        }
        sleep(CHURN_PAUSE).await;
    }
}

/// Which prefix is awaited, and when it came.
type Heard = Arc<Mutex<Option<(usize, Instant)>>>;

/// What happens at the exchange, and how long changes take meanwhile.
struct Watch<'a> {
    world: &'a Arc<World>,
    /// To each neighbour.
    orders: Vec<mpsc::Sender<Order>>,
    heard: Heard,
    told: Arc<Notify>,
    memory: &'a (dyn Fn() -> Result<f64> + Sync),
}

impl Watch<'_> {
    async fn see(&self, resets: u32) -> Result<Seen> {
        let world = self.world;
        let encoded = |number| {
            let groups = groups_of(number, &world.table);
            world.table.announcements(groups, &voice(&world.scenario, number), 0)
        };
        let tables: Vec<Vec<u8>> = (0..self.orders.len()).map(encoded).collect();
        let last_transit = self.orders.get(TRANSITS - 1).context("a transit")?;
        let again = tables.get(TRANSITS - 1).cloned().context("a transit")?;
        let start = Instant::now();
        for (order, bytes) in self.orders.iter().zip(tables) {
            order.send(Order::Write(bytes)).await.context("a neighbor has ended")?;
        }
        if timeout(LIMIT, world.complete.notified()).await.is_err() {
            bail!("{} neighbors miss something", world.incomplete.load(Ordering::Relaxed));
        }
        let mut seen = Seen {
            converged: start.elapsed(),
            bytes: world.bytes.load(Ordering::Relaxed),
            phases: Vec::new(),
        };
        eprintln!("all have everything after {:.1} s", seen.converged.as_secs_f64());
        self.settle().await;
        let mut round = 1;
        seen.phases.push(self.phase("calm", CALM, &mut round).await?);
        let transit = self.orders.first().context("a transit")?.clone();
        let churn = tokio::spawn(churn(Arc::clone(world), transit));
        seen.phases.push(self.phase("churn", CALM, &mut round).await?);
        if resets > 0 {
            let transit = last_transit.clone();
            let resetting = tokio::spawn(async move {
                for _ in 0..resets {
                    if transit.send(Order::Reset(again.clone())).await.is_err() {
                        break;
                    }
                    sleep(RESET_INTERVAL).await;
                }
            });
            seen.phases.push(self.phase("resets", RESET_INTERVAL * resets, &mut round).await?);
            resetting.abort();
        }
        churn.abort();
        Ok(seen)
    }

    /// Better paths are on their way when each prefix is there: until nothing comes for a second.
    async fn settle(&self) {
        let mut before = 0;
        loop {
            let bytes = self.world.bytes.load(Ordering::Relaxed);
            if std::mem::replace(&mut before, bytes) == bytes {
                return;
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    async fn phase(&self, name: &'static str, time: Duration, round: &mut u32) -> Result<Phase> {
        let table = &self.world.table;
        let voice = voice(&self.world.scenario, TRANSITS);
        let groups = groups_of(TRANSITS, table);
        let peer = self.orders.get(TRANSITS).context("a peer")?;
        let start = Instant::now();
        let mut times = Vec::new();
        let first = (self.memory)()?;
        let (mut most, mut last) = (first, first);
        while start.elapsed() < time {
            *round += 1;
            let number = groups.start + (*round as usize).wrapping_mul(31) % groups.len();
            let bytes = table.announcements(number..number + 1, &voice, *round);
            let wanted = table.count_of(0..number);
            if let Ok(mut heard) = self.heard.lock() {
                *heard = Some((wanted, Instant::now()));
            }
            let sent = Instant::now();
            peer.send(Order::Write(bytes)).await.context("the peer has ended")?;
            timeout(CHANGE_LIMIT, self.told.notified()).await.context("a change was lost")?;
            let at = self.heard.lock().ok().and_then(|it| it.map(|(_, at)| at)).unwrap_or(sent);
            times.push(at.saturating_duration_since(sent));
            last = (self.memory)()?;
            most = most.max(last);
            sleep(CHANGE_PAUSE).await;
        }
        times.sort_unstable();
        eprintln!("{name}: {} changes, longest {:?}", times.len(), times.last());
        let of =
            |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default();
        Ok(Phase {
            name,
            changes: times.len(),
            half: of(50),
            most: of(99),
            longest: times.last().copied().unwrap_or_default(),
            memory: [first, most, last],
        })
    }
}

struct Neighbour {
    world: Arc<World>,
    number: usize,
    stream: TcpStream,
    /// A bit for each prefix; empty for who is not waited for, or has everything.
    has: Vec<u64>,
    missing: usize,
    buffer: Vec<u8>,
    /// Which prefix is awaited, and when it came.
    watches: Option<(Heard, Arc<Notify>)>,
}

async fn connected(world: &World, number: usize) -> Result<TcpStream> {
    let address: Ipv4Addr = world.scenario.neighbour_address(number);
    let mut stream = loop {
        let socket = TcpSocket::new_v4()?;
        socket.bind((address, 0).into())?;
        let speaker = world.scenario.speaker_address(number);
        match socket.connect(SocketAddr::from((speaker, 179))).await {
            Ok(stream) => break stream,
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    };
    stream.set_nodelay(true)?;
    stream.write_all(&message::open_with_ipv6(speaker::asn(number), address)).await?;
    Ok(stream)
}

impl Neighbour {
    /// Until the session is Established.
    async fn connect(world: &Arc<World>, number: usize) -> Result<Self> {
        let stream = connected(world, number).await?;
        let is_counted = number >= TRANSITS;
        let mut neighbour = Self {
            world: Arc::clone(world),
            number,
            stream,
            has: vec![0; if is_counted { world.table.len() / 64 + 1 } else { 0 }],
            missing: world.table.len() - world.table.count_of(groups_of(number, &world.table)),
            buffer: Vec::with_capacity(1 << 17),
            watches: None,
        };
        neighbour.become_established().await?;
        Ok(neighbour)
    }

    /// Ends the session, and is back as soon as the speaker lets it.
    async fn reset(&mut self) {
        let _ = self.stream.shutdown().await;
        loop {
            self.buffer.clear();
            if let Ok(stream) = connected(&self.world, self.number).await {
                self.stream = stream;
                if self.become_established().await.is_ok() {
                    return;
                }
            }
            sleep(RECONNECT_PAUSE).await;
        }
    }

    async fn become_established(&mut self) -> Result<()> {
        let (mut is_open, mut is_up) = (false, false);
        while !is_up {
            let was_open = is_open;
            self.stream.readable().await?;
            let (open, up) = self.read().await?;
            (is_open, is_up) = (is_open | open, up);
            if is_open && !was_open {
                self.stream.write_all(&message::message(KEEPALIVE, &[])).await?;
            }
        }
        Ok(())
    }

    /// Reads until the end, and does what it is asked to.
    async fn live(mut self, mut orders: mpsc::Receiver<Order>) -> Result<()> {
        let mut keepalive = interval(KEEPALIVE_INTERVAL);
        keepalive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // What is not written yet: reading goes on meanwhile.
        let (mut unwritten, mut at): (Vec<u8>, usize) = (Vec::new(), 0);
        loop {
            if at == unwritten.len() {
                (unwritten, at) = (Vec::new(), 0);
            }
            let end = unwritten.len().min(at + PART_BYTES);
            let part = unwritten.get(at..end).unwrap_or_default();
            let is_idle = part.is_empty();
            tokio::select! {
                order = orders.recv(), if is_idle => match order {
                    Some(Order::Write(bytes)) => unwritten = bytes,
                    Some(Order::Reset(bytes)) => {
                        self.reset().await;
                        unwritten = bytes;
                    }
                    None => return Ok(()),
                },
                _ = keepalive.tick(), if is_idle => unwritten = message::message(KEEPALIVE, &[]),
                ready = self.stream.writable(), if !is_idle => {
                    ready?;
                    match self.stream.try_write(part) {
                        Ok(count) => at += count,
                        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                ready = self.stream.readable() => {
                    ready?;
                    self.read().await?;
                }
            }
        }
    }

    /// What there is; whether OPEN and KEEPALIVE were in it.
    async fn read(&mut self) -> Result<(bool, bool)> {
        match self.stream.try_read_buf(&mut self.buffer) {
            Ok(0) => bail!("the speaker closed the connection"),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                return Ok((false, false));
            }
            Err(error) => return Err(error.into()),
        }
        let buffer = std::mem::take(&mut self.buffer);
        let (mut rest, mut is_open, mut is_up) = (buffer.as_slice(), false, false);
        while let Some((length, kind)) = message::first(rest) {
            let body = rest.get(19..length).context("a message that is too short")?;
            match kind {
                UPDATE => self.take_update(length, body)?,
                OPEN => is_open = true,
                KEEPALIVE => is_up = true,
                NOTIFICATION => bail!("NOTIFICATION {body:?}"),
                other => bail!("a message of type {other}"),
            }
            rest = rest.get(length..).unwrap_or_default();
        }
        self.buffer = rest.to_vec();
        self.buffer.reserve(1 << 17);
        Ok((is_open, is_up))
    }

    fn take_update(&mut self, length: usize, body: &[u8]) -> Result<()> {
        self.world.bytes.fetch_add(length, Ordering::Relaxed);
        if self.missing == 0 && self.watches.is_none() || self.has.is_empty() {
            return Ok(());
        }
        let (table, has, missing) = (&self.world.table, &mut self.has, &mut self.missing);
        let awaited =
            self.watches.as_ref().and_then(|(heard, _)| heard.lock().ok()?.map(|(it, _)| it));
        let (before, mut is_there) = (*missing, false);
        message::all_announced(body, |prefix| {
            let index = match prefix {
                message::Announced::Ipv4(address, length) => table.index_of_ipv4(address, length),
                message::Announced::Ipv6(address, length) => table.index_of_ipv6(address, length),
            };
            let index = index.context("a prefix that nobody announced")?;
            is_there |= awaited == Some(index);
            let (word, bit) = (index / 64, 1_u64 << (index % 64));
            if let Some(word) = has.get_mut(word).filter(|word| **word & bit == 0) {
                *word |= bit;
                *missing = missing.saturating_sub(1);
            }
            Ok(())
        })?;
        if is_there && let Some((heard, told)) = &self.watches {
            if let Ok(mut heard) = heard.lock() {
                *heard = Some((usize::MAX, Instant::now()));
            }
            told.notify_one();
        }
        if before > 0 && *missing == 0 {
            ensure!(self.world.incomplete.load(Ordering::Relaxed) > 0, "counted twice");
            if self.world.incomplete.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.world.complete.notify_one();
            }
        }
        Ok(())
    }
}
