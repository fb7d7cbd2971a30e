//! A neighbour that announces a million prefixes: when nothing is accepted, when a limit is set, and
//! when everything is.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::bench::Bench;
use crate::message::{self, NOTIFICATION};
use crate::scripted::{dial, establish};
use crate::stage::{PEER_AS, Stage, expect_quick};
use lab::usage::Usage;
use lab::wait::{now, wait_until};

const PREFIXES: usize = 1_000_000;
const HEALTHY: u8 = 3;
/// How long it goes on where nothing stops it.
const PERIOD: Duration = Duration::from_secs(15);

/// Where nothing is kept, a flood must leave no trace.
const PEAK_REFUSING_MEBIBYTES: f64 = 40.0;
/// A million routes from one neighbour.
const PEAK_ACCEPTING_MEBIBYTES: f64 = 376.0;

const LIMIT: u32 = 10_000;

pub(super) fn run(bench: &Bench) -> Result<()> {
    nothing_is_accepted(bench).context("with the default policy")?;
    the_limit_ends_the_session(bench).context("with maxPrefixes")?;
    everything_is_accepted(bench).context("with mode all")
}

/// A stage with a flooding neighbour that is configured with `policy`, everything up.
fn set_the_stage(bench: &Bench, name: &str, policy: &str) -> Result<(Stage, TcpStream, Ipv4Addr)> {
    let mut stage = Stage::prepare(bench, &name.replace(' ', "-"), HEALTHY)?;
    let address = Ipv4Addr::new(127, 1, 4, 1);
    let spec = format!("  connectTime: 60s\n{policy}");
    stage.apply_peer("flooding", address, &spec)?;
    stage.start()?;
    let mut stream = bench.runtime().block_on(dial(address, stage.listening))?;
    bench.runtime().block_on(establish(&mut stream, address, 90))?;
    Ok((stage, stream, address))
}

/// Announces the million again and again, each time with another MED, until stopped or cut off; returns how
/// many prefixes were sent. The stream is handed back: the session is to stay while the last of it is read.
fn flood(
    bench: &Bench,
    mut stream: TcpStream,
    address: Ipv4Addr,
) -> JoinHandle<(usize, TcpStream)> {
    bench.runtime().spawn(async move {
        let (start, mut sent, mut med) = (now(), 0, 0);
        while start.elapsed() < PERIOD {
            med += 1;
            for part in message::flood(PEER_AS, address, PREFIXES, med).chunks(16 * 1024) {
                if stream.write_all(part).await.is_err() {
                    return (sent, stream);
                }
            }
            sent += PREFIXES;
        }
        (sent, stream)
    })
}

/// Changes while the flood goes on, and what became of the others.
fn watch<T>(
    bench: &Bench,
    stage: &mut Stage,
    what: &str,
    flooding: &JoinHandle<T>,
) -> Result<Usage> {
    let mut latencies = Vec::new();
    while !flooding.is_finished() {
        latencies.push(stage.change_latency()?);
        bench.pause(Duration::from_millis(200))?;
    }
    expect_quick(bench, what, &mut latencies)?;
    let report = stage.healthy_report(bench)?;
    bench.say(format!("{what}: {report}"));
    stage.usage()
}

fn nothing_is_accepted(bench: &Bench) -> Result<()> {
    let what = "refusing all";
    let (mut stage, stream, address) = set_the_stage(bench, what, "")?;
    let before = stage.usage()?;
    let flooding = flood(bench, stream, address);
    let after = watch(bench, &mut stage, what, &flooding)?;
    let (sent, _stream) = bench.runtime().block_on(flooding)?;
    bench.say(format!(
        "{what}: {sent} prefixes in {} s; before {before}; after {after}; {:.0} % of a core",
        PERIOD.as_secs(),
        after.cores_since(&before) * 100.0
    ));
    ensure!(sent >= PREFIXES, "only {sent} prefixes were taken");
    after.expect_peak_below(PEAK_REFUSING_MEBIBYTES)?;
    let neighbour = stage.neighbour(address)?;
    let state = neighbour.get("bgpState").and_then(Value::as_str);
    ensure!(state == Some("Established"), "the flooding session is {state:?}");
    stage.fairway.stop()
}

fn the_limit_ends_the_session(bench: &Bench) -> Result<()> {
    let policy =
        format!("  toReceive: {{allowed: {{mode: all}}, maxPrefixes: {{limit: {LIMIT}}}}}\n");
    let what = "with a limit";
    let (mut stage, mut stream, address) = set_the_stage(bench, what, &policy)?;
    let before = stage.usage()?;
    let cut_off = bench.runtime().spawn(async move {
        let bytes = message::flood(PEER_AS, address, PREFIXES, 0);
        let (mut reader, mut writer) = stream.split();
        let writing = async {
            // It is cut off in the middle: an error is what we hope for.
            let _ = writer.write_all(&bytes).await;
            std::future::pending::<()>().await;
        };
        let reading = async {
            loop {
                let message = message::read_message(&mut reader).await?;
                if message.kind == NOTIFICATION {
                    return Ok(message.body);
                }
            }
        };
        tokio::select! {
            () = writing => bail!("it cannot end"),
            last_words = timeout(PERIOD, reading) => last_words.context("no NOTIFICATION")?,
        }
    });
    let after = watch(bench, &mut stage, what, &cut_off)?;
    let last_words = bench.runtime().block_on(cut_off)??;
    bench.say(format!(
        "{what} of {LIMIT}: NOTIFICATION {last_words:?}; before {before}; after {after}"
    ));
    let mut expected = vec![6, 1, 0, 1, 1];
    expected.extend(LIMIT.to_be_bytes());
    ensure!(last_words == expected, "expected Cease 6/1 with AFI, SAFI and limit: {last_words:?}");
    after.expect_peak_below(PEAK_REFUSING_MEBIBYTES)?;
    stage.fairway.stop()
}

fn everything_is_accepted(bench: &Bench) -> Result<()> {
    let policy = "  toReceive: {allowed: {mode: all}}\n";
    let what = "accepting all";
    let (mut stage, stream, address) = set_the_stage(bench, what, policy)?;
    let before = stage.usage()?;
    let flooding = flood(bench, stream, address);
    let after = watch(bench, &mut stage, what, &flooding)?;
    let (sent, _stream) = bench.runtime().block_on(flooding)?;
    bench.say(format!(
        "{what}: {sent} prefixes in {} s; before {before}; after {after}; {:.0} % of a core",
        PERIOD.as_secs(),
        after.cores_since(&before) * 100.0
    ));
    wait_until("a million prefixes are accepted", PERIOD, || {
        let summary = stage.fairway.show(&["bgp", "summary"])?;
        let received = summary.pointer(&format!("/ipv4Unicast/peers/{address}/pfxRcd"));
        let received = received.and_then(Value::as_u64).context("no pfxRcd")?;
        ensure!(received == PREFIXES as u64, "pfxRcd is {received}");
        Ok(())
    })?;
    after.expect_peak_below(PEAK_ACCEPTING_MEBIBYTES)?;
    stage.fairway.stop()
}
