//! Unexpected connections: from addresses that are no peers, and from a peer that never sends a message.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::bench::Bench;
use crate::message;
use crate::scripted::dial;
use crate::stage::{Stage, expect_quick};
use lab::wait::{now, wait_until};

/// In one round; rounds follow each other for a while, so that hold timers can run out.
const STRANGERS: u32 = 10_000;
const PERIOD: Duration = Duration::from_secs(10);
const SHORT_PERIOD: Duration = Duration::from_secs(1);
const LATENCIES_MAX: usize = 100;
/// Under way at the same time.
const AT_ONCE: usize = 100;
/// "At once", on a machine that is busy with other work.
const RESET_LIMIT: Duration = Duration::from_secs(2);

const HEALTHY: u8 = 5;
const PEAK_MEBIBYTES: f64 = 24.0;
/// Descriptors beyond those that were open before: accepted sockets that wait for the core, whose
/// queue has room for 256, and the peer's two slots.
const DESCRIPTORS_MAX: usize = 256 + 2;

/// What the accepting side does with a connection that sends nothing.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
const HALF_OPEN: usize = 1_000;

/// Ten thousand connections, and again, from addresses that are no peers: each is reset, none costs a
/// descriptor, and no other peer is affected.
pub(super) fn unknown(bench: &Bench) -> Result<()> {
    let mut stage = Stage::prepare(bench, "loopback", HEALTHY)?;
    stage.start()?;
    let before = stage.usage()?;
    let period = if bench.short { SHORT_PERIOD } else { PERIOD };
    let (start, mut most) = (now(), before.descriptors);
    let (mut waits, mut latencies) = (Vec::new(), Vec::new());
    while start.elapsed() < period || waits.len() < STRANGERS as usize {
        let round = knock(bench, stage.listening);
        while !round.is_finished() {
            most = most.max(stage.usage()?.descriptors);
            if latencies.len() < LATENCIES_MAX {
                latencies.push(stage.change_latency()?);
            }
            bench.pause(Duration::from_millis(20))?;
        }
        for wait in bench.runtime().block_on(round)? {
            waits.push(wait?);
        }
    }
    let took = start.elapsed();
    waits.sort_unstable();
    let count = waits.len() as f64;
    let after = stage.usage()?;
    let report = stage.healthy_report(bench)?;
    let worst = waits.last().context("no connection was made")?;
    let used = after.processor_time.saturating_sub(before.processor_time);
    bench.say(format!(
        "{count:.0} strangers, each reset: {:.0} us per connection ({:.0} us of fairway's processor \
         time), {:.1} ms from SYN to RST at the worst with {AT_ONCE} at once",
        took.as_secs_f64() * 1e6 / count,
        used.as_secs_f64() * 1e6 / count,
        worst.as_secs_f64() * 1e3,
    ));
    bench.say(format!("before {before}; after {after}; at most {most} descriptors"));
    bench.say(format!("beside them {report}"));
    expect_quick(bench, "meanwhile", &mut latencies)?;
    let surplus = most - before.descriptors;
    ensure!(surplus <= AT_ONCE, "{surplus} descriptors were open for strangers");
    ensure!(after.descriptors <= before.descriptors + 2, "descriptors stayed open: {after}");
    after.expect_peak_below(PEAK_MEBIBYTES)?;
    stage.fairway.stop()
}

/// A round of connections, each from another address.
fn knock(bench: &Bench, fairway: SocketAddr) -> JoinHandle<Vec<Result<Duration>>> {
    let gate = Arc::new(Semaphore::new(AT_ONCE));
    let mut strangers = JoinSet::new();
    for number in 0..STRANGERS {
        let [_, _, high, low] = number.to_be_bytes();
        let address = Ipv4Addr::new(127, 9, high, low);
        let gate = Arc::clone(&gate);
        let knock = async move {
            let _turn = gate.acquire().await?;
            time_to_reset(address, fairway).await
        };
        strangers.spawn_on(knock, bench.runtime());
    }
    bench.runtime().spawn(strangers.join_all())
}

/// Connects and waits for the RST.
async fn time_to_reset(address: Ipv4Addr, fairway: SocketAddr) -> Result<Duration> {
    let start = now();
    let stream = match dial(address, fairway).await {
        Ok(stream) => stream,
        // The RST may come before connect() has returned.
        Err(error) if is_reset(&error) => return Ok(start.elapsed()),
        Err(error) => return Err(error),
    };
    expect_reset(stream, start).await.with_context(|| format!("from {address}"))
}

async fn expect_reset(mut stream: TcpStream, start: Instant) -> Result<Duration> {
    match timeout(RESET_LIMIT, stream.read(&mut [0; 64])).await {
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionReset => {
            Ok(start.elapsed())
        }
        Ok(other) => bail!("expected a RST, got {other:?}"),
        Err(_) => bail!("expected a RST within {RESET_LIMIT:?}"),
    }
}

fn is_reset(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<std::io::Error>();
    cause.is_some_and(|it| it.kind() == std::io::ErrorKind::ConnectionReset)
}

/// A peer that opens a thousand connections and sends nothing on any: it holds one slot, not a
/// thousand, and loses that one when the OPEN is overdue.
pub(super) fn half_open(bench: &Bench) -> Result<()> {
    let mut stage = Stage::prepare(bench, "loopback", HEALTHY)?;
    let address = Ipv4Addr::new(127, 1, 3, 1);
    stage.apply_peer("silent", address, "")?;
    stage.start()?;
    let before = stage.usage()?;
    let mut streams = Vec::new();
    let mut most = before.descriptors;
    let mut last = now();
    for number in 0..HALF_OPEN {
        last = now();
        streams.push(bench.runtime().block_on(dial(address, stage.listening))?);
        if number % 10 == 0 {
            most = most.max(stage.usage()?.descriptors);
        }
    }
    wait_until("the surplus connections are gone", Duration::from_secs(5), || {
        let now_open = stage.usage()?.descriptors;
        most = most.max(now_open);
        ensure!(now_open <= before.descriptors + 2, "{now_open} descriptors are open");
        Ok(())
    })?;
    let mut kept = streams.pop().context("no connection was made")?;
    let heard = bench.runtime().block_on(async {
        let mut heard = Vec::new();
        let limit = OPEN_TIMEOUT + Duration::from_secs(3);
        loop {
            match timeout(limit, message::read_message(&mut kept)).await {
                Ok(Ok(message)) => heard.push((message.kind, message.body, last.elapsed())),
                Ok(Err(_)) => break Ok(heard),
                Err(_) => bail!("it was still open after {:?}", last.elapsed()),
            }
        }
    })?;
    let (kind, body, at) = heard.last().context("it ended without a message")?;
    bench.say(format!(
        "{HALF_OPEN} silent connections of one peer: at most {} descriptors for them at a time; the \
         last was ended by message {kind} {body:?} after {:.1} s",
        most - before.descriptors,
        at.as_secs_f64()
    ));
    ensure!((*kind, body.as_slice()) == (message::NOTIFICATION, [4, 0].as_slice()), "{heard:?}");
    ensure!(*at > OPEN_TIMEOUT - Duration::from_secs(1), "it ended after {at:?}");
    ensure!(
        most - before.descriptors <= DESCRIPTORS_MAX,
        "{most} descriptors, {} before",
        before.descriptors
    );
    let after = stage.usage()?;
    bench.say(format!("before {before}; after {after}"));
    after.expect_peak_below(PEAK_MEBIBYTES)?;
    let report = stage.healthy_report(bench)?;
    bench.say(format!("beside it {report}"));
    drop(streams);
    stage.fairway.stop()
}
