//! How long does a change take to a router, alone and beside 200 viewers? From `rename()` of the file of a Service to its route in
//! the router's kernel. The two runs take turns, so that the machine is the same to both. `cargo test --test looking_glass -- --bench`.

use std::process::{Child, Stdio};

use anyhow::{Context, Result, ensure};
use lab::latencies::Latencies;
use lab::monitor::Monitor;
use lab::namespace::Place;
use lab::wait::{PATIENCE, wait_until};

use crate::client::{ADDRESS, get};
use crate::scene::{Backend, Scene, service};

const VIEWERS: usize = 200;
const ROUNDS: usize = 20;
const CHANGES_PER_ROUND: u8 = 40;
/// Beside viewers the slowest percent of changes may take so many times as long.
const RATIO_MAX: f64 = 1.2;

pub(crate) fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let scene = Scene::build(0, folder.path(), Backend::Native, 1)?;
    let mut monitor = Monitor::start(&scene.router)?;
    wait_until("the session", PATIENCE, || {
        let page = get(&scene.node, "/")?.body;
        ensure!(page.contains("1 of 1 up"), "no session yet");
        Ok(())
    })?;
    let (mut quiet, mut watched) = (Latencies::default(), Latencies::default());
    for _ in 0..ROUNDS {
        measure(&scene, &mut monitor, &mut quiet)?;
        let viewers = Viewers::start(&scene)?;
        let measured = measure(&scene, &mut monitor, &mut watched);
        drop(viewers);
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

/// Programs that read all events. They would run elsewhere: here they run when nothing else does.
struct Viewers(Vec<Child>);

impl Viewers {
    fn start(scene: &Scene) -> Result<Self> {
        let mut viewers = Self(Vec::new());
        for _ in 0..VIEWERS {
            let mut command = scene.node.command("chrt".as_ref());
            command.args(["--idle", "0", "curl", "-sN", "-o", "/dev/null"]);
            let command = command.arg(format!("http://{ADDRESS}/events")).stdout(Stdio::null());
            viewers.0.push(command.spawn().context("starting curl")?);
        }
        wait_until("all viewers", PATIENCE, || {
            let filter = ["-Htn", "state", "established", "dport", "= :7480"];
            let count = scene.node.run("ss", &filter)?.lines().count();
            ensure!(count >= VIEWERS, "{count} are connected");
            Ok(())
        })?;
        Ok(viewers)
    }
}

impl Drop for Viewers {
    fn drop(&mut self) {
        for viewer in &mut self.0 {
            let _ = viewer.kill();
            let _ = viewer.wait();
        }
    }
}
