//! A hundred neighbours that come, break off, fall silent and send garbage, beside five that behave: those
//! that behave must not notice.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use fastrand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::bench::Bench;
use crate::message;
use crate::scripted::{dial, establish, reset};
use crate::stage::{PEER_AS, Stage, expect_quick};
use lab::wait::now;

const FLAPPING: u8 = 100;
const HEALTHY: u8 = 5;
const PERIOD: Duration = Duration::from_secs(180);
const SHORT_PERIOD: Duration = Duration::from_secs(8);

/// Between two changes of the configuration.
const CHANGE_GAP: Duration = Duration::from_secs(1);

/// A fifth of a core for a hundred neighbours that each come back every few seconds.
const CORES_MAX: f64 = 0.2;
/// In a short run, which begins with all of them at once, and where the core may be a slow one.
const SHORT_CORES_MAX: f64 = 0.5;
const PEAK_MEBIBYTES: f64 = 40.0;
/// What may be left of them, at the end, beyond what was there in the middle of the run.
const GROWTH_MEBIBYTES: f64 = 4.0;

/// What a flapping neighbour does with a connection.
#[derive(Clone, Copy)]
enum Misdeed {
    ResetAtOnce,
    HalfAnOpen,
    SilenceWithoutOpen,
    Garbage,
    GarbageAfterOpen,
    NotificationAfterOpen,
    SessionThenReset,
    SessionThenClose,
    SessionThenNotification,
    SessionThenSilence,
    SessionThenGarbage,
    SessionThenHalfAnUpdate,
}

const MISDEEDS: [Misdeed; 12] = [
    Misdeed::ResetAtOnce,
    Misdeed::HalfAnOpen,
    Misdeed::SilenceWithoutOpen,
    Misdeed::Garbage,
    Misdeed::GarbageAfterOpen,
    Misdeed::NotificationAfterOpen,
    Misdeed::SessionThenReset,
    Misdeed::SessionThenClose,
    Misdeed::SessionThenNotification,
    Misdeed::SessionThenSilence,
    Misdeed::SessionThenGarbage,
    Misdeed::SessionThenHalfAnUpdate,
];

#[derive(Default)]
struct Counts {
    connections: AtomicU64,
    sessions: AtomicU64,
}

pub(super) fn run(bench: &Bench) -> Result<()> {
    let mut stage = Stage::prepare(bench, "loopback", HEALTHY)?;
    let counts = Arc::new(Counts::default());
    let mut listeners = Vec::new();
    for number in 1..=FLAPPING {
        let address = Ipv4Addr::new(127, 1, 2, number);
        stage.apply_peer(&format!("flapping-{number}"), address, "  holdTime: 3s\n")?;
        let listener = TcpListener::bind((address, stage.peer_port));
        listeners.push((address, bench.runtime().block_on(listener)?));
    }
    stage.start()?;
    let before = stage.usage()?;
    let mut tasks = tokio::task::JoinSet::new();
    for (address, listener) in listeners {
        let rng = Rng::with_seed(bench.seed.wrapping_add(u32::from(address).into()));
        let flapping = flap(address, listener, stage.listening, rng, Arc::clone(&counts));
        tasks.spawn_on(flapping, bench.runtime());
    }
    let period = if bench.short { SHORT_PERIOD } else { PERIOD };
    let start = now();
    let mut latencies = Vec::new();
    let mut middle = None;
    while start.elapsed() < period {
        latencies.push(stage.change_latency()?);
        if start.elapsed() > period / 2 {
            middle.get_or_insert(stage.usage()?);
        }
        bench.pause(CHANGE_GAP)?;
    }
    let after = stage.usage()?;
    let report = stage.healthy_report(bench)?;
    tasks.abort_all();
    let (connections, sessions) =
        (counts.connections.load(Ordering::Relaxed), counts.sessions.load(Ordering::Relaxed));
    bench.say(format!(
        "{FLAPPING} flapping peers made {connections} connections and {sessions} sessions in {:.0} s",
        period.as_secs_f64()
    ));
    bench.say(format!("beside them {report}"));
    bench.say(format!("at the start {before}"));
    let cores = after.cores_since(&before);
    bench.say(format!("at the end {after}, {:.1} % of a core", cores * 100.0));
    expect_quick(bench, "meanwhile", &mut latencies)?;
    ensure!(connections > u64::from(FLAPPING) && sessions > 10, "the peers did not flap");
    let cores_max = if bench.short { SHORT_CORES_MAX } else { CORES_MAX };
    ensure!(cores < cores_max, "expected less than {cores_max} cores, it took {cores:.2}");
    after.expect_peak_below(PEAK_MEBIBYTES)?;
    let growth = middle.map_or(0.0, |it| after.resident_mebibytes - it.resident_mebibytes);
    bench.say(format!("growth in the second half {growth:.1} MiB"));
    // In seconds the memory is still warming up.
    ensure!(
        bench.short || growth < GROWTH_MEBIBYTES,
        "it grew by {growth:.1} MiB in the second half"
    );
    stage.fairway.stop()
}

/// One neighbour: dials and waits to be dialled, in turns, and does something wrong each time.
async fn flap(
    address: Ipv4Addr,
    listener: TcpListener,
    fairway: SocketAddr,
    mut rng: Rng,
    counts: Arc<Counts>,
) {
    loop {
        let stream = if rng.u64(..).is_multiple_of(2) {
            dial(address, fairway).await.ok()
        } else {
            let accepted = timeout(milliseconds(&mut rng, 3000), listener.accept()).await;
            accepted.ok().and_then(Result::ok).map(|(stream, _)| stream)
        };
        if let Some(stream) = stream {
            counts.connections.fetch_add(1, Ordering::Relaxed);
            // How it ends is of no interest: it was meant to.
            let _ = misbehave(stream, address, &mut rng, &counts).await;
        }
        sleep(milliseconds(&mut rng, 500)).await;
    }
}

async fn misbehave(
    mut stream: TcpStream,
    address: Ipv4Addr,
    rng: &mut Rng,
    counts: &Counts,
) -> Result<()> {
    use Misdeed as M;
    let Some(misdeed) = MISDEEDS.get(pick(rng, MISDEEDS.len())).copied() else { return Ok(()) };
    let open = message::open(PEER_AS, 3, address);
    match misdeed {
        M::ResetAtOnce => reset(&stream),
        M::HalfAnOpen => {
            stream.write_all(half(&open)).await?;
            reset(&stream);
        }
        M::SilenceWithoutOpen => sleep(milliseconds(rng, 5000)).await,
        M::Garbage => stream.write_all(&garbage(rng)).await?,
        M::GarbageAfterOpen => {
            stream.write_all(&open).await?;
            stream.write_all(&garbage(rng)).await?;
        }
        M::NotificationAfterOpen => {
            stream.write_all(&open).await?;
            stream.write_all(&message::notification(6, 2)).await?;
        }
        _ => {
            establish(&mut stream, address, 3).await?;
            counts.sessions.fetch_add(1, Ordering::Relaxed);
            sleep(milliseconds(rng, 2000)).await;
            after_session(misdeed, &mut stream, rng).await?;
        }
    }
    Ok(())
}

async fn after_session(misdeed: Misdeed, stream: &mut TcpStream, rng: &mut Rng) -> Result<()> {
    use Misdeed as M;
    match misdeed {
        M::SessionThenReset => reset(stream),
        M::SessionThenNotification => stream.write_all(&message::notification(6, 4)).await?,
        M::SessionThenSilence => {
            // Until the hold timer has ended it.
            let _ = timeout(Duration::from_secs(6), stream.read_to_end(&mut Vec::new())).await;
        }
        M::SessionThenGarbage => stream.write_all(&garbage(rng)).await?,
        M::SessionThenHalfAnUpdate => {
            let update = message::flood(PEER_AS, Ipv4Addr::LOCALHOST, 100, 0);
            stream.write_all(half(&update)).await?;
            sleep(milliseconds(rng, 1000)).await;
        }
        _ => {}
    }
    Ok(())
}

fn half(message: &[u8]) -> &[u8] {
    message.split_at(message.len() / 2).0
}

fn garbage(rng: &mut Rng) -> Vec<u8> {
    let length = 1 + pick(rng, 5000);
    let mut bytes: Vec<u8> = (0..length).map(|_| rng.u64(..).to_be_bytes()[0]).collect();
    // Half of it begins like a message.
    if rng.u64(..).is_multiple_of(2) {
        bytes.iter_mut().take(16).for_each(|byte| *byte = 0xff);
    }
    bytes
}

fn pick(rng: &mut Rng, count: usize) -> usize {
    usize::try_from(rng.u64(..) % (count as u64)).unwrap_or(0)
}

fn milliseconds(rng: &mut Rng, most: u64) -> Duration {
    Duration::from_millis(1 + rng.u64(..) % most)
}
