//! A neighbour that stops reading while there is much to send: its bytes wait in one bounded place,
//! and no other neighbour waits. That the send hold timer ends it is shown on virtual time, by
//! `a_neighbour_that_reads_nothing_runs_into_the_send_hold_timer`: it takes eight minutes.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::interval;

use crate::bench::Bench;
use crate::message;
use crate::scripted::establish;
use crate::stage::{Stage, expect_quick};
use lab::wait::{PATIENCE, now, wait_until};

const HEALTHY: u8 = 3;
const PREFIXES: u32 = 50_000;
/// How long it is watched once no more fits into its socket.
const PERIOD: Duration = Duration::from_secs(60);
/// Rounds until then: the kernel keeps some 4 MB, a round is 200 kB.
const FILLING_ROUNDS_MAX: usize = 60;
/// Between two changes of every route.
const CHANGE_GAP: Duration = Duration::from_secs(1);
/// What may come on top while it is watched. Twenty rounds that pile up as routes would be 40 MB and
/// more; as bytes they would be counted as UPDATEs, of which there may be none.
const GROWTH_MEBIBYTES: f64 = 24.0;
/// Text, tree, plan and tables of 50,000 prefixes for four peers.
const PEAK_MEBIBYTES: f64 = 248.0;
const RECEIVE_BUFFER_BYTES: u32 = 4096;

pub(super) fn run(bench: &Bench) -> Result<()> {
    let mut stage = Stage::prepare(bench, "loopback", HEALTHY)?;
    let address = Ipv4Addr::new(127, 1, 5, 1);
    stage.apply_peer("stalled", address, "  holdTime: 9s\n  connectTime: 600s\n")?;
    stage.start()?;
    let stream = bench.runtime().block_on(stalled_session(address, &stage))?;
    let reading_nothing = bench.runtime().spawn(keep_alive(stream));
    let before = stage.usage()?;
    let mut rounds = 0;
    let mut sent = 0;
    loop {
        rounds += 1;
        change_everything(&stage, rounds)?;
        let sent_before = std::mem::replace(&mut sent, updates_sent(&stage, address)?);
        if sent == sent_before {
            break;
        }
        ensure!(rounds < FILLING_ROUNDS_MAX, "after {rounds} rounds its socket still takes more");
    }
    let full = stage.usage()?;
    let (start, filling_rounds) = (now(), rounds);
    let mut latencies = Vec::new();
    while start.elapsed() < PERIOD {
        rounds += 1;
        change_everything(&stage, rounds)?;
        latencies.push(stage.change_latency()?);
        bench.pause(CHANGE_GAP)?;
    }
    let after = stage.usage()?;
    let report = stage.healthy_report(bench)?;
    bench.say(format!(
        "its socket was full after {filling_rounds} times {PREFIXES} routes and {sent} UPDATEs; \
         {} times more in {} s, and it is still Established",
        rounds - filling_rounds,
        PERIOD.as_secs()
    ));
    bench.say(format!("beside it {report}"));
    bench.say(format!("before {before}; when it was full {full}; at the end {after}"));
    expect_quick(bench, "meanwhile", &mut latencies)?;
    let sent_since = updates_sent(&stage, address)? - sent;
    ensure!(sent_since == 0, "{sent_since} UPDATEs more went to a socket that was full");
    let growth = after.resident_mebibytes - full.resident_mebibytes;
    ensure!(growth < GROWTH_MEBIBYTES, "memory grew by {growth:.1} MiB while one did not read");
    after.expect_peak_below(PEAK_MEBIBYTES)?;
    ensure!(!reading_nothing.is_finished(), "the session that reads nothing has ended");
    stage.fairway.stop()
}

/// Gives every route other attributes, and waits until the healthy peers have received it.
fn change_everything(stage: &Stage, round: usize) -> Result<()> {
    stage.fairway.apply("many", &many(round))?;
    wait_until("healthy peers have received all routes", PATIENCE, || {
        let least = stage.healthy.iter().map(|peer| peer.heard_prefixes()).min();
        let least = least.context("no healthy peers")?;
        ensure!(least >= round * PREFIXES as usize, "one has received {least}");
        Ok(())
    })
}

/// UPDATEs that went to the socket of an Established peer.
fn updates_sent(stage: &Stage, address: Ipv4Addr) -> Result<u64> {
    let neighbour = stage.neighbour(address)?;
    let state = neighbour.get("bgpState").and_then(Value::as_str);
    ensure!(state == Some("Established"), "it is {state:?}: {neighbour}");
    let updates = neighbour.pointer("/messageStats/updatesSent").and_then(Value::as_u64);
    updates.context("no updatesSent")
}

/// A session with a small receive window.
async fn stalled_session(address: Ipv4Addr, stage: &Stage) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    socket.bind((address, 0).into())?;
    let mut stream = socket.connect(stage.listening).await?;
    establish(&mut stream, address, 9).await?;
    Ok(stream)
}

/// Sends KEEPALIVEs, and reads nothing.
async fn keep_alive(mut stream: TcpStream) {
    let mut due = interval(Duration::from_secs(3));
    loop {
        due.tick().await;
        if stream.write_all(&message::keepalive()).await.is_err() {
            return;
        }
    }
}

/// Many prefixes in one advertisement; each round gives them another community.
fn many(round: usize) -> String {
    let mut text = "apiVersion: metallb.io/v1beta1\nkind: BGPAdvertisement\nmetadata:\n  \
                    name: many\nspec:\n"
        .to_owned();
    text += &format!("  communities: [\"65001:{round}\"]\n  ipAddressPools: [none]\n  prefixes:\n");
    for number in 0..PREFIXES {
        let [_, high, middle, low] = (number + (1 << 16)).to_be_bytes();
        text += &format!("  - {high}.{middle}.{low}.0/24\n");
    }
    text
}
