//! All floods at once, on every port of a speaker and of a controller: strangers, silent connections, a neighbour that
//! flaps as fast as it can and one that announces and withdraws, slow web clients, clients of the admin socket, files that
//! are log bombs, and large, slow and silent requests to the webhook. Three BIRDs, three neighbours that measure, a
//! thousand Services with twenty changes a second, and true reviews must not notice.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::bench::Bench;
use crate::birds::Birds;
use crate::floods::{self, Flood};
use crate::metrics::Reached;
use crate::stage::{Stage, free_port};
use crate::webhook::Webhook;
use lab::fairway::log_in;
use lab::latencies::Latencies;
use lab::usage::Usage;
use lab::wait::{now, wait_until};

const HEALTHY: u8 = 3;
const SERVICES: u32 = 1000;
const CHANGE_GAP: Duration = Duration::from_millis(50);

const QUIET: Duration = Duration::from_secs(60);
const FLOODED: Duration = Duration::from_secs(600);

/// With what everything may take, in each daemon.
const PEAK_MEBIBYTES: f64 = 128.0;
const LOG_BYTES_MAX: usize = 1_000_000;
/// A healthy neighbour that goes is logged within this time.
const CUT_LOGGED_MAX: Duration = Duration::from_secs(1);
/// Of the quiet run's 99th percentile.
const SLOWER_MAX: f64 = 2.0;

pub(super) fn run(bench: &Bench) -> Result<()> {
    let mut scene = Scene::set(bench)?;
    let quiet = scene.changes(bench, QUIET)?;

    let counters = [
        Reached::until_now(scene.web, "log-line")?,
        Reached::until_now(scene.webhook.metrics, "webhook-client")?,
    ];
    let before = scene.usage()?;
    let flood = Flood::start(bench, &scene.stage, scene.web);
    let (bodies, reviews) = (scene.webhook.flood()?, scene.webhook.review(bench));
    let flooded = scene.changes(bench, FLOODED)?;
    let after = scene.usage()?;
    bench.say(format!("beside all floods {}", scene.stage.healthy_report(bench)?));
    bench.say(scene.birds.report(&scene.stage)?);
    let logged_after = scene.cut_a_neighbour()?;
    bench.say(format!("a neighbor that is cut is in the log after {logged_after:?}"));
    bench.say(bodies.report(FLOODED)?);
    bench.say(reviews.report(FLOODED)?);
    drop((flood, bodies, reviews));

    for counter in &counters {
        bench.say(counter.report()?);
    }
    for (what, latencies) in [("quiet", &quiet), ("flooded", &flooded)] {
        bench.say(format!("{what}: {}", spread(latencies)));
    }
    let logs = [scene.log_bytes()?, scene.webhook.log()?.len()];
    let daemons = ["speaker", "controller"].into_iter().zip(before).zip(after).zip(logs);
    for (((daemon, before), after), log_bytes) in daemons.clone() {
        let cores = after.cores_since(&before) * 100.0;
        bench.say(format!("{daemon}: {after}, {cores:.1} % of a core, {log_bytes} bytes of log"));
    }

    for (((daemon, _), after), log_bytes) in daemons {
        after.expect_peak_below(PEAK_MEBIBYTES).context(daemon)?;
        ensure!(log_bytes < LOG_BYTES_MAX, "the log of the {daemon} has {log_bytes} bytes");
    }
    let (most, took) = (quiet.percentile(99) * SLOWER_MAX, flooded.percentile(99));
    ensure!(took <= most, "expected a p99 of at most {most:.2} ms, it is {took:.2} ms");
    scene.webhook.stop()?;
    scene.stage.fairway.stop()
}

/// What runs: a speaker with its neighbours, and a controller beside an API server.
struct Scene {
    stage: Stage,
    birds: Birds,
    webhook: Webhook,
    /// Where the speaker serves its metrics.
    web: SocketAddr,
}

impl Scene {
    /// Everything is up, and all neighbours have all routes.
    fn set(bench: &Bench) -> Result<Self> {
        let webhook = Webhook::start(bench)?;
        let mut stage = Stage::prepare(bench, "loopback", HEALTHY)?;
        let web = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        stage.fairway.extra_arguments.extend(["--metrics-listen".to_owned(), web.to_string()]);
        floods::add_peers(&stage)?;
        let mut birds = Birds::start(&stage)?;
        for _ in 0..SERVICES {
            stage.add_service()?;
        }
        stage.start()?;
        stage.all_services_arrived()?;
        birds.come_up(&stage)?;
        Ok(Self { stage, birds, webhook, web })
    }

    /// How long each change took to the last of the neighbours that measure.
    fn changes(&mut self, bench: &Bench, period: Duration) -> Result<Latencies> {
        let (start, mut latencies) = (now(), Latencies::default());
        while start.elapsed() < period {
            latencies.push(self.stage.move_service()?);
            bench.pause(CHANGE_GAP)?;
        }
        Ok(latencies)
    }

    /// Of speaker and controller, both of which must run.
    fn usage(&mut self) -> Result<[Usage; 2]> {
        self.stage.fairway.check_running()?;
        Ok([self.stage.usage()?, self.webhook.usage()?])
    }

    /// Ends the session of a neighbour that measures; how long it takes until that is logged.
    fn cut_a_neighbour(&mut self) -> Result<Duration> {
        let cut = self.stage.healthy.pop().context("a healthy neighbor")?;
        let needle = format!("session down peer={}", cut.address);
        let at = now();
        drop(cut);
        let log = log_in(&self.stage.directory);
        wait_until("the log has the neighbor that was cut", CUT_LOGGED_MAX, || {
            ensure!(fs::read_to_string(&log)?.contains(&needle), "it has not");
            Ok(())
        })?;
        Ok(at.elapsed())
    }

    /// The log of the speaker, but for the changes: twenty a second have lines of their own.
    fn log_bytes(&self) -> Result<usize> {
        let text = fs::read_to_string(log_in(&self.stage.directory)).context("the log")?;
        let others = text.lines().filter(|line| !line.contains("service=default/service-"));
        Ok(others.map(|line| line.len() + 1).sum())
    }
}

/// How long changes took.
fn spread(latencies: &Latencies) -> String {
    format!(
        "{} changes, p50 {:.2} ms, p99 {:.2} ms, at most {:.2} ms",
        latencies.count(),
        latencies.percentile(50),
        latencies.percentile(99),
        latencies.percentile(100)
    )
}
