//! A neighbour that does everything right, and notices when fairway does not: it sends KEEPALIVE exactly
//! when it is due, and records each end of a session, each silence and each route.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::message::{self, KEEPALIVE, NOTIFICATION, OPEN, Prefix, UPDATE};
use crate::stage::PEER_AS;
use lab::wait::now;

/// What healthy peers have, in turn.
pub(crate) const HOLD_TIMES_SECONDS: [u16; 3] = [3, 6, 9];

/// One such neighbour.
pub(crate) struct Healthy {
    pub(crate) address: Ipv4Addr,
    hold_time: Duration,
    record: Arc<Mutex<Record>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Record {
    sessions: usize,
    /// Why sessions ended.
    ends: Vec<String>,
    last_heard: Option<Instant>,
    longest_silence: Duration,
    /// When each host route came.
    arrivals: BTreeMap<Prefix, Instant>,
    /// Prefixes in all UPDATEs.
    heard_prefixes: usize,
}

impl Healthy {
    /// Waits on `address` for fairway to dial.
    pub(crate) fn start(
        runtime: &Handle,
        address: Ipv4Addr,
        port: u16,
        hold_time_seconds: u16,
    ) -> Result<Self> {
        let record = Arc::new(Mutex::new(Record::default()));
        let listener = runtime
            .block_on(TcpListener::bind((address, port)))
            .with_context(|| format!("listening on {address}:{port}"))?;
        let task = runtime.spawn(serve(listener, address, hold_time_seconds, Arc::clone(&record)));
        let hold_time = Duration::from_secs(hold_time_seconds.into());
        Ok(Self { address, hold_time, record, task })
    }

    /// Sessions that came up so far.
    pub(crate) fn sessions(&self) -> usize {
        self.record().sessions
    }

    /// When the host route `prefix` came.
    pub(crate) fn arrival(&self, prefix: Prefix) -> Option<Instant> {
        self.record().arrivals.get(&prefix).copied()
    }

    /// Prefixes in all UPDATEs so far.
    pub(crate) fn heard_prefixes(&self) -> usize {
        self.record().heard_prefixes
    }

    /// The longest time without any message.
    pub(crate) fn longest_silence(&self) -> Duration {
        let record = self.record();
        let current = record.last_heard.map_or(Duration::ZERO, |at| at.elapsed());
        record.longest_silence.max(current)
    }

    /// One session, up since the start, with no silence as long as the hold time; `late` is what the suite
    /// itself may have caused.
    pub(crate) fn expect_undisturbed(&self, late: Duration) -> Result<()> {
        let silence = self.longest_silence();
        let record = self.record();
        ensure!(
            record.sessions == 1 && record.ends.is_empty(),
            "the healthy peer {} had {} sessions; ends: {:?}",
            self.address,
            record.sessions,
            record.ends
        );
        ensure!(
            silence < self.hold_time + late,
            "fairway was silent towards {} for {silence:?}, the hold time is {:?} (we ourselves \
             were held up for {late:?})",
            self.address,
            self.hold_time
        );
        Ok(())
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Healthy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One session after the other.
async fn serve(
    listener: TcpListener,
    address: Ipv4Addr,
    hold_time_seconds: u16,
    record: Arc<Mutex<Record>>,
) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let end = session(stream, address, hold_time_seconds, &record).await;
        let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
        let why = end.err().map_or_else(String::new, |error| format!("{error:#}"));
        record.ends.push(why);
        record.last_heard = None;
    }
}

async fn session(
    mut stream: TcpStream,
    address: Ipv4Addr,
    hold_time_seconds: u16,
    record: &Mutex<Record>,
) -> Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(&message::open(PEER_AS, hold_time_seconds, address)).await?;
    let (mut reader, mut writer) = stream.split();
    let writing = async {
        let mut due = interval(Duration::from_secs(u64::from(hold_time_seconds)) / 3);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            due.tick().await;
            writer.write_all(&message::keepalive()).await?;
        }
    };
    let reading = async {
        let mut is_up = false;
        loop {
            let message = message::read_message(&mut reader).await?;
            let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
            let moment = now();
            if let Some(before) = record.last_heard.replace(moment) {
                record.longest_silence = record.longest_silence.max(moment - before);
            }
            match message.kind {
                OPEN => {}
                KEEPALIVE if !is_up => {
                    is_up = true;
                    record.sessions += 1;
                }
                UPDATE => {
                    let prefixes = message::announced(&message.body)?;
                    record.heard_prefixes += prefixes.len();
                    let hosts = prefixes.into_iter().filter(|(_, length)| *length == 32);
                    record.arrivals.extend(hosts.map(|prefix| (prefix, moment)));
                }
                NOTIFICATION => anyhow::bail!("NOTIFICATION {:?}", message.body),
                _ => {}
            }
        }
    };
    tokio::select! {
        outcome = writing => outcome,
        outcome = reading => outcome,
    }
}
