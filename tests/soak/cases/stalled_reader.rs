//! A neighbour that stops reading while there is much to send: its bytes wait in one bounded place,
//! and nobody else waits. That the send hold timer ends it is shown on virtual time, by
//! `a_neighbour_that_reads_nothing_runs_into_the_send_hold_timer`: it takes eight minutes.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::interval;

use crate::bench::Bench;
use crate::lab::wait::{PATIENCE, now, wait_until};
use crate::message;
use crate::scripted::establish;
use crate::stage::{Stage, expect_quick};

const HEALTHY: u8 = 3;
const PREFIXES: u32 = 50_000;
const PERIOD: Duration = Duration::from_secs(60);
/// Between two changes of every route: each is 250 kB for the neighbour that does not read.
const CHANGE_GAP: Duration = Duration::from_secs(2);
/// What may come on top in the second half: ten rounds that pile up would be twice that and more.
const GROWTH_MEBIBYTES: f64 = 10.0;
/// Text, tree, plan and tables of 50,000 prefixes for four peers.
const PEAK_MEBIBYTES: f64 = 256.0;
const RECEIVE_BUFFER_BYTES: u32 = 4096;

pub(super) fn run(bench: &Bench) -> Result<()> {
    let mut stage = Stage::prepare(bench, "loopback", HEALTHY)?;
    let address = Ipv4Addr::new(127, 1, 5, 1);
    stage.apply_peer("stalled", address, "  holdTime: 9s\n  connectTime: 600s\n")?;
    stage.start()?;
    let stream = bench.runtime().block_on(stalled_session(address, &stage))?;
    let reading_nothing = bench.runtime().spawn(keep_alive(stream));
    let before = stage.usage()?;
    let (start, mut rounds, mut settled) = (now(), 0_usize, None);
    let mut latencies = Vec::new();
    while start.elapsed() < PERIOD {
        rounds += 1;
        stage.fairway.apply("many", &many(rounds))?;
        wait_until("healthy peers have heard all routes", PATIENCE, || {
            let least = stage.healthy.iter().map(|peer| peer.heard_prefixes()).min();
            let least = least.context("no healthy peers")?;
            ensure!(least >= rounds * PREFIXES as usize, "one has heard {least}");
            Ok(())
        })?;
        let next = now() + CHANGE_GAP;
        while now() < next {
            latencies.push(stage.change_latency()?);
            bench.pause(Duration::from_millis(500))?;
        }
        if start.elapsed() > PERIOD / 2 {
            settled.get_or_insert(stage.usage()?);
        }
    }
    let after = stage.usage()?;
    let report = stage.healthy_report()?;
    bench.say(format!("{rounds} times {PREFIXES} routes; beside it {report}"));
    let settled = settled.context("too few rounds")?;
    bench.say(format!("before {before}; half way {settled}; at the end {after}"));
    expect_quick(bench, "meanwhile", &mut latencies)?;
    let growth = after.resident_mebibytes - settled.resident_mebibytes;
    ensure!(growth < GROWTH_MEBIBYTES, "memory grew by {growth:.1} MiB while one did not read");
    after.expect_peak_below(PEAK_MEBIBYTES)?;
    expect_stalled(bench, &stage, address, rounds)?;
    ensure!(!reading_nothing.is_finished(), "the session that reads nothing has ended");
    stage.fairway.stop()
}

/// It is still Established, and was given a part of what the others were.
fn expect_stalled(bench: &Bench, stage: &Stage, address: Ipv4Addr, rounds: usize) -> Result<()> {
    let neighbour = stage.neighbour(address)?;
    let updates =
        |neighbour: &Value| neighbour.pointer("/messageStats/updatesSent").and_then(Value::as_u64);
    let state = neighbour.get("bgpState").and_then(Value::as_str);
    ensure!(state == Some("Established"), "it is {state:?}: {neighbour}");
    let stalled = updates(&neighbour).context("no updatesSent")?;
    let other = stage.healthy.first().context("no healthy peer")?.address;
    let read = updates(&stage.neighbour(other)?).context("no updatesSent")?;
    bench.say(format!(
        "in {rounds} rounds {stalled} UPDATEs went to the socket of the stalled peer, {read} to \
         another's; it is still {}",
        state.unwrap_or_default()
    ));
    ensure!(stalled < read / 2, "it does not look stalled: the queues of the kernel took all");
    Ok(())
}

/// A session whose receive window is small.
async fn stalled_session(address: Ipv4Addr, stage: &Stage) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    socket.bind((address, 0).into())?;
    let mut stream = socket.connect(stage.listening).await?;
    establish(&mut stream, address, 9).await?;
    Ok(stream)
}

/// Says KEEPALIVE, and hears nothing.
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
