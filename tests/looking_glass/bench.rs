//! How long does a change take to a router, alone and beside 200 viewers? From `rename()` of the file of a Service to its route in
//! the router's kernel. The two runs take turns, so that the machine is the same to both. `cargo test --test looking_glass -- --bench`.

use std::thread;

use anyhow::Result;
use lab::latencies::Latencies;
use lab::monitor::Monitor;
use lab::wait::{PATIENCE, wait_until};

use crate::client::{Viewer, get};
use crate::scene::{Backend, Scene, service};

const VIEWERS: usize = 200;
const ROUNDS: usize = 6;
const CHANGES_PER_ROUND: u8 = 40;
/// Beside viewers the slowest percent of changes may take so many times as long.
const RATIO_MAX: f64 = 1.2;

pub(crate) fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let scene = Scene::build(0, folder.path(), Backend::Native, 1)?;
    let mut monitor = Monitor::start(&scene.router)?;
    wait_until("the session", PATIENCE, || {
        let page = get(&scene.node, "/")?.body;
        anyhow::ensure!(page.contains("1 of 1 up"), "no session yet");
        Ok(())
    })?;
    let (mut quiet, mut watched) = (Latencies::default(), Latencies::default());
    for _ in 0..ROUNDS {
        measure(&scene, &mut monitor, &mut quiet)?;
        let viewers =
            (0..VIEWERS).map(|_| Viewer::after(&scene.node, "")).collect::<Result<Vec<_>>>()?;
        let ends: Vec<_> = viewers.iter().map(Viewer::end).collect::<Result<_>>()?;
        let reading: Vec<_> = viewers.into_iter().map(|it| thread::spawn(|| it.drain())).collect();
        let measured = measure(&scene, &mut monitor, &mut watched);
        for end in ends {
            let _ = end.shutdown(std::net::Shutdown::Both);
        }
        for thread in reading {
            let _ = thread.join();
        }
        measured?;
    }
    println!("| viewers | changes | p50 ms | p99 ms |\n|---|---|---|---|");
    for (viewers, latencies) in [(0, &quiet), (VIEWERS, &watched)] {
        let [median, slowest] = [50, 99].map(|it| latencies.percentile(it));
        println!("| {viewers} | {} | {median:.1} | {slowest:.1} |", latencies.count());
    }
    let ratio = watched.percentile(99) / quiet.percentile(99);
    let verdict = if ratio <= RATIO_MAX { "within" } else { "above" };
    println!(
        "\np99 beside {VIEWERS} viewers is {ratio:.2} times that without: {verdict} {RATIO_MAX}"
    );
    Ok(())
}

fn measure(scene: &Scene, monitor: &mut Monitor, latencies: &mut Latencies) -> Result<()> {
    for change in 0..CHANGES_PER_ROUND {
        let address = format!("198.51.100.{}", change + 20);
        monitor.forget();
        let begin = scene.fairway.apply_timed("changing", &service("changing", &address))?;
        let end = monitor.wait_for_line(&address, |it| !it.starts_with("Deleted"))?;
        latencies.push(end.saturating_duration_since(begin));
    }
    Ok(())
}
