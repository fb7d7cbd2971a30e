//! What floods a webhook? Bodies of the largest size that it accepts, connections that never say anything, and bodies of
//! a byte a second. Used by the case of all floods.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::client::Client;
use super::reviews::pool;

/// The most that the webhook reads.
const BODY_BYTES: usize = 3 << 20;
/// Clients with large bodies, and how often each of them sends one: ten a second in all.
const LARGE: u32 = 4;
const LARGE_GAP: Duration = Duration::from_millis(400);
const SILENT: usize = 100;
const SLOW: usize = 20;
/// Before a client that was disconnected comes back.
const PAUSE: Duration = Duration::from_millis(100);
/// The webhook disconnects everybody much earlier.
const GIVE_UP: Duration = Duration::from_secs(30);

/// Floods until it is dropped.
pub(crate) struct Flood {
    answers: Answers,
    // Its tasks end with it. They have a thread of their own: what they compute must not hold up the clients that
    // measure.
    _runtime: Runtime,
}

/// How many large bodies had which answer; 0 stands for a connection that ended without one.
#[derive(Clone, Default)]
struct Answers(Arc<Mutex<BTreeMap<u16, u64>>>);

impl Flood {
    pub(super) fn start(client: &Client) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("a runtime for the flood of the webhook")?;
        let answers = Answers::default();
        let bodies: Arc<[Vec<u8>]> = bodies()?.into();
        for number in 0..LARGE {
            runtime.spawn(large(client.clone(), Arc::clone(&bodies), number, answers.clone()));
        }
        for _ in 0..SILENT {
            runtime.spawn(silent(client.clone()));
        }
        for _ in 0..SLOW {
            runtime.spawn(slow(client.clone()));
        }
        Ok(Self { answers, _runtime: runtime })
    }

    /// What became of the large bodies; an error when most of them came to nothing, so that it was no flood.
    pub(crate) fn report(&self, period: Duration) -> Result<String> {
        let answers = self.answers.0.lock().unwrap_or_else(PoisonError::into_inner);
        let judged =
            answers.get(&200).copied().unwrap_or(0) + answers.get(&400).copied().unwrap_or(0);
        ensure!(judged >= period.as_secs() * 5, "too few bodies were read: {answers:?}");
        let words = answers.iter().map(|(status, count)| match status {
            0 => format!("{count} cut"),
            status => format!("{count} with {status}"),
        });
        let words: Vec<String> = words.collect();
        Ok(format!("bodies of 3 MiB: {}", words.join(", ")))
    }
}

/// Three, as large as can be: one with far more values than the webhook accepts, a pool with as many ranges as fit, and a
/// pool with a long annotation.
fn bodies() -> Result<Vec<Vec<u8>>> {
    let values = format!("[{}0]", "0,".repeat(BODY_BYTES / 2 - 2));
    // In their longest form, so that the limit of values is not the first that they reach.
    let range = |number: usize| {
        let address =
            format!("2001:0db8:0000:0000:0000:0000:{:04x}:{:04x}", number >> 16, number & 0xffff);
        format!("{address}-{address}")
    };
    let room = BODY_BYTES - 1000;
    let ranges: Vec<String> = (0..room / (range(0).len() + 3)).map(range).collect();
    let ranges = pool("ranges", &json!(ranges), &json!({}));
    let long = json!({ "example.com/long": "x".repeat(room) });
    let long = pool("long", &json!(["192.0.2.0/24"]), &long);
    let all = [values, ranges.to_string(), long.to_string()].map(String::into_bytes);
    let sizes = all.each_ref().map(Vec::len);
    ensure!(sizes.iter().all(|it| *it <= BODY_BYTES), "bodies of {sizes:?} bytes");
    Ok(all.into())
}

/// One body after the other. Each of these clients begins at another moment, with another body.
async fn large(client: Client, bodies: Arc<[Vec<u8>]>, number: u32, answers: Answers) {
    sleep(LARGE_GAP / LARGE * number).await;
    let mut due = interval(LARGE_GAP);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for body in bodies.iter().cycle().skip(usize::try_from(number).unwrap_or(0)) {
        due.tick().await;
        let reply = timeout(GIVE_UP, client.ask(body)).await;
        let status = reply.ok().and_then(Result::ok).map_or(0, |reply| reply.status);
        let mut answers = answers.0.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry(status).or_default() += 1;
    }
}

/// Connects without a word of TLS, and again when it is disconnected.
async fn silent(client: Client) {
    loop {
        if let Ok(mut stream) = TcpStream::connect(client.address).await {
            let _ = stream.read(&mut [0]).await;
        }
        sleep(PAUSE).await;
    }
}

/// A byte a second of a body.
async fn slow(client: Client) {
    loop {
        if let Ok(mut stream) = client.begin(BODY_BYTES).await {
            while stream.write_all(b"x").await.is_ok() && stream.flush().await.is_ok() {
                sleep(Duration::from_secs(1)).await;
            }
        }
        sleep(PAUSE).await;
    }
}
