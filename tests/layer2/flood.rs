//! What does a flood of questions cost, and is anything of it left unanswered? A hundred thousand questions a
//! second, half of them for addresses of nobody between ours. Part of the benchmark of failover.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::failover::{of_block, resources};
use crate::frames::Frames;
use lab::fairway::Fairway;
use lab::namespace::{Namespace, Place};
use lab::usage::Usage;
use lab::wait::{now, wait_until};

/// First word of the command line of this binary in its other role.
const ROLE: &str = "@flood";
/// Every second one of twice as many addresses is ours.
const OWNED: u16 = 10_000;
const EACH_SECOND: u32 = 100_000;
const TIME: Duration = Duration::from_secs(10);
/// Questions that go at once, as from a switch.
const BURST: u32 = 20;
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Default, Serialize, Deserialize)]
struct Outcome {
    asked: u64,
    /// Of those, for addresses of ours.
    asked_of_ours: u64,
    answered: u64,
    seconds: f64,
    p50_milliseconds: f64,
    p99_milliseconds: f64,
    max_milliseconds: f64,
}

pub(crate) fn measure(cell: usize, at: &Path) -> Result<()> {
    let node = Namespace::create(cell, "node")?;
    let client = Namespace::create(cell, "client")?;
    node.connect("eth0", &client, "eth0")?;
    node.add_address("eth0", "198.18.255.1/16")?;
    client.add_address("eth0", "198.18.255.2/16")?;
    let mut fairway = Fairway::prepare_in(at)?;
    fairway.log_level = "info";
    fairway.extra_arguments =
        ["--bgp-listen", "none", "--metrics-listen", "none"].map(str::to_owned).to_vec();
    let addresses = (0..OWNED).map(|number| vec![of_block(2 * number)]);
    fairway.apply("resources.yaml", &resources(addresses))?;
    fairway.start(&node)?;
    wait_until("all addresses are answered for and announced", LIMIT, || {
        let all = fairway.show(&["l2"])?;
        let items = all["items"].as_array().context("items")?;
        let ready = items.iter().filter(|it| it["interfaces"] == serde_json::json!(["eth0"]));
        ensure!(ready.count() == usize::from(OWNED), "{} of them", items.len());
        Ok(())
    })?;
    let quiet = now();
    wait_until("the last announcement is over", LIMIT, || {
        ensure!(quiet.elapsed() > Duration::from_secs(30), "not yet");
        Ok(())
    })?;
    let before = Usage::of(fairway.process_id()?)?;
    let binary = std::env::current_exe().context("the path of this binary")?;
    let output = client
        .command(OsStr::new(&binary))
        .arg(ROLE)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("the flood")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let outcome: Outcome = serde_json::from_str(&text).with_context(|| format!("{text:?}"))?;
    let after = Usage::of(fairway.process_id()?)?;
    let used = after.processor_time.saturating_sub(before.processor_time).as_secs_f64();
    let Outcome { asked, asked_of_ours, answered, seconds, .. } = outcome;
    println!(
        "\n{asked} questions in {seconds:.1} s, {asked_of_ours} for one of {OWNED} addresses and the others for \
         neighbors of these that nobody has: {answered} answers; p50 {:.2} ms, p99 {:.2} ms, max {:.1} ms; {used:.2} s \
         of CPU, {:.0} % of a core.",
        outcome.p50_milliseconds,
        outcome.p99_milliseconds,
        outcome.max_milliseconds,
        used / seconds * 100.0,
    );
    Ok(())
}

/// Plays the other role when the command line asks for it.
pub(crate) fn other_role() -> Option<ExitCode> {
    if std::env::args().nth(1)? != ROLE {
        return None;
    }
    Some(match flood().and_then(|it| Ok(serde_json::to_string(&it)?)) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{ROLE}: {error:#}");
            ExitCode::FAILURE
        }
    })
}

fn flood() -> Result<Outcome> {
    let socket = Frames::open()?;
    let mac = socket.mac;
    let mut frame = [&[0xFF; 6][..], &mac, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &mac].concat();
    frame.extend([198, 18, 255, 2, 0, 0, 0, 0, 0, 0, 198, 18, 0, 0]);
    let mut waiting: Vec<Option<Instant>> = vec![None; usize::from(OWNED) * 2];
    let mut latencies: Vec<f64> = Vec::new();
    let mut outcome = Outcome::default();
    let mut buffer = [0; 128];
    let begun = now();
    let mut place = 0_usize;
    let mut due = Duration::ZERO;
    // Until the last answers are there.
    while begun.elapsed() < TIME + Duration::from_millis(200) {
        while let Some(answer) = socket.receive(&mut buffer)? {
            let Some([198, 18, high, low]) = answer.get(28..32) else { continue };
            let number = usize::from(u16::from_be_bytes([*high, *low]));
            let is_reply = answer.get(20..22) == Some(&[0, 2]);
            if let Some(sent) = waiting.get_mut(number).filter(|_| is_reply).and_then(Option::take)
            {
                outcome.answered += 1;
                latencies.push(sent.elapsed().as_secs_f64() * 1000.0);
            }
        }
        let elapsed = begun.elapsed();
        if elapsed < due || elapsed >= TIME {
            continue;
        }
        for _ in 0..BURST {
            // Neighbours one after the other, so that half of them is ours.
            place = (place + 7_919) % waiting.len();
            let [high, low] = u16::try_from(place)?.to_be_bytes();
            if let Some(target) = frame.get_mut(40..42) {
                target.copy_from_slice(&[high, low]);
            }
            if place.is_multiple_of(2) {
                waiting[place] = Some(now());
                outcome.asked_of_ours += 1;
            }
            socket.send(&frame)?;
            outcome.asked += 1;
        }
        due += Duration::from_secs(1) * BURST / EACH_SECOND;
    }
    outcome.seconds = TIME.as_secs_f64();
    latencies.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        latencies.get((latencies.len() * percent / 100).min(latencies.len().saturating_sub(1)))
    };
    outcome.p50_milliseconds = at(50).copied().unwrap_or(f64::NAN);
    outcome.p99_milliseconds = at(99).copied().unwrap_or(f64::NAN);
    outcome.max_milliseconds = at(100).copied().unwrap_or(f64::NAN);
    Ok(outcome)
}
