//! All floods at once, on every port: strangers, silent connections, a neighbour that flaps as fast as it can and one
//! that announces and withdraws, slow web clients, clients of the admin socket, files that are log bombs. Three
//! neighbours that behave, a thousand Services, and twenty changes a second must not notice.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::bench::Bench;
use crate::message::{self, NOTIFICATION};
use crate::scripted::{dial, establish, reset};
use crate::stage::{PEER_AS, Stage};
use lab::fairway::log_in;
use lab::latencies::Latencies;
use lab::wait::{now, wait_until};

const HEALTHY: u8 = 3;
const SERVICES: u32 = 1000;
const CHANGE_GAP: Duration = Duration::from_millis(50);

const QUIET: Duration = Duration::from_secs(60);
const FLOODED: Duration = Duration::from_secs(600);

/// With what everything may take.
const PEAK_MEBIBYTES: f64 = 128.0;
const LOG_BYTES_MAX: usize = 1_000_000;
/// A healthy neighbour that goes is logged within this time.
const CUT_LOGGED_MAX: Duration = Duration::from_secs(1);
/// Of the quiet run's 99th percentile.
const SLOWER_MAX: f64 = 2.0;

const FLAPPING: Ipv4Addr = Ipv4Addr::new(127, 1, 3, 1);
const CHURNING: Ipv4Addr = Ipv4Addr::new(127, 1, 3, 2);

pub(super) fn run(bench: &Bench) -> Result<()> {
    let mut stage = Stage::prepare(bench, "loopback", HEALTHY)?;
    let web = SocketAddr::from((Ipv4Addr::LOCALHOST, crate::stage::free_port()?));
    stage.fairway.extra_arguments.extend(["--metrics-listen".to_owned(), web.to_string()]);
    for (name, address) in [("flapping", FLAPPING), ("churning", CHURNING)] {
        let policy = "  passive: true\n  toReceive: {allowed: {mode: all}}\n";
        stage.apply_peer(name, address, policy)?;
    }
    for _ in 0..SERVICES {
        stage.add_service()?;
    }
    stage.start()?;
    stage.all_services_arrived()?;

    let quiet = changes(bench, &mut stage, QUIET)?;
    let before = stage.usage()?;
    let flood = Flood::start(bench, &stage, web);
    let flooded = changes(bench, &mut stage, FLOODED)?;
    let after = stage.usage()?;
    let report = stage.healthy_report(bench)?;

    let cut = stage.healthy.pop().context("a healthy neighbour")?;
    let needle = format!("session down peer={}", cut.address);
    let at = now();
    drop(cut);
    let log = log_in(&stage.directory);
    wait_until("the log has the neighbour that was cut", CUT_LOGGED_MAX, || {
        ensure!(fs::read_to_string(&log)?.contains(&needle), "it has not");
        Ok(())
    })?;
    let logged_after = at.elapsed();
    drop(flood);

    // Twenty changes a second have lines of their own.
    let text = fs::read_to_string(&log).context("the log")?;
    let others = text.lines().filter(|line| !line.contains("service=default/service-"));
    let log_bytes: usize = others.map(|line| line.len() + 1).sum();
    bench.say(format!("beside all floods {report}"));
    bench.say(format!("{after}, {:.1} % of a core", after.cores_since(&before) * 100.0));
    bench.say(format!(
        "{log_bytes} bytes of log beside the changes; a neighbour that was cut is in it after {logged_after:?}"
    ));
    for (what, latencies) in [("quiet", &quiet), ("flooded", &flooded)] {
        bench.say(format!(
            "{what}: {} changes, p50 {:.2} ms, p99 {:.2} ms",
            latencies.count(),
            latencies.percentile(50),
            latencies.percentile(99)
        ));
    }
    after.expect_peak_below(PEAK_MEBIBYTES)?;
    ensure!(log_bytes < LOG_BYTES_MAX, "the log has {log_bytes} bytes");
    let (most, took) = (quiet.percentile(99) * SLOWER_MAX, flooded.percentile(99));
    ensure!(took <= most, "expected a p99 of at most {most:.2} ms, it is {took:.2} ms");
    stage.fairway.stop()
}

/// How long each change took to the last of the healthy neighbours.
fn changes(bench: &Bench, stage: &mut Stage, period: Duration) -> Result<Latencies> {
    let (start, mut latencies) = (now(), Latencies::default());
    while start.elapsed() < period {
        latencies.push(stage.move_service()?);
        bench.pause(CHANGE_GAP)?;
    }
    Ok(latencies)
}

/// Everything at once, until it is dropped.
struct Flood(#[expect(dead_code, reason = "its tasks end with it")] JoinSet<()>);

impl Flood {
    fn start(bench: &Bench, stage: &Stage, web: SocketAddr) -> Self {
        let (bgp, socket) = (stage.listening, stage.directory.join("fairway.sock"));
        let mut tasks = JoinSet::new();
        let runtime = bench.runtime();
        tasks.spawn_on(strangers(bgp), runtime);
        tasks.spawn_on(silent(bgp), runtime);
        tasks.spawn_on(flapping(bgp), runtime);
        tasks.spawn_on(churning(bgp), runtime);
        tasks.spawn_on(slow_web_clients(web), runtime);
        tasks.spawn_on(admin_clients(socket), runtime);
        tasks.spawn_on(log_bombs(stage.directory.join("config")), runtime);
        Self(tasks)
    }
}

/// Addresses that are nobody's.
async fn strangers(bgp: SocketAddr) {
    for number in (1..=250).cycle() {
        drop(dial(Ipv4Addr::new(127, 1, 9, number), bgp).await);
        sleep(Duration::from_micros(500)).await;
    }
}

/// Connections from the addresses of neighbours, which never say anything.
async fn silent(bgp: SocketAddr) {
    let mut held = Vec::new();
    loop {
        held.extend(dial(CHURNING, bgp).await.ok());
        if held.len() > 100 {
            held.remove(0);
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// OPEN and gone, as fast as it can.
async fn flapping(bgp: SocketAddr) {
    loop {
        if let Ok(mut stream) = dial(FLAPPING, bgp).await {
            let _ = stream.write_all(&message::open(PEER_AS, 90, FLAPPING)).await;
            let _ = stream.write_all(&message::notification(6, 4)).await;
            reset(&stream);
        }
        sleep(Duration::from_micros(200)).await;
    }
}

/// Ten thousand prefixes, each time with another MED, for as long as there is a session.
async fn churning(bgp: SocketAddr) {
    loop {
        if let Ok(stream) = dial(CHURNING, bgp).await {
            churn(stream).await;
        }
        sleep(Duration::from_millis(100)).await;
    }
}

async fn churn(mut stream: TcpStream) {
    if establish(&mut stream, CHURNING, 90).await.is_err() {
        return;
    }
    let (mut reader, mut writer) = stream.into_split();
    let reading = async {
        while let Ok(message) = message::read_message(&mut reader).await {
            if message.kind == NOTIFICATION {
                break;
            }
        }
    };
    let writing = async {
        for med in 1.. {
            if writer.write_all(&message::flood(PEER_AS, CHURNING, 10_000, med)).await.is_err() {
                break;
            }
            if writer.write_all(&message::keepalive()).await.is_err() {
                break;
            }
            sleep(Duration::from_millis(500)).await;
        }
    };
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
}

/// Two hundred, each with a byte a second.
async fn slow_web_clients(web: SocketAddr) {
    let mut clients: Vec<TcpStream> = Vec::new();
    loop {
        if let Ok(mut client) = TcpStream::connect(web).await {
            let _ = client.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: ").await;
            clients.push(client);
        }
        if clients.len() > 200 {
            clients.remove(0);
        }
        for client in &clients {
            let _ = client.try_write(b"x");
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// Silent ones, and some that send what is no request.
async fn admin_clients(socket: PathBuf) {
    let mut clients = Vec::new();
    loop {
        if let Ok(client) = UnixStream::connect(&socket).await {
            let _ = client.try_write(&[b'x'; 4096]);
            clients.push(client);
        }
        if clients.len() > 200 {
            clients.clear();
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// Five times a second, a faulty object with an annotation of 250 KB in its message.
async fn log_bombs(folder: PathBuf) {
    for number in 0_u32.. {
        let text = format!(
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: bomb\n  annotations:\n    \
             metallb.io/loadBalancerIPs: \"{}{number}\"\nspec: {{type: LoadBalancer}}\n",
            "x".repeat(250_000)
        );
        let staged = folder.join(".bomb");
        if tokio::fs::write(&staged, text).await.is_ok() {
            let _ = tokio::fs::rename(&staged, folder.join("bomb.yaml")).await;
        }
        sleep(Duration::from_millis(200)).await;
    }
}
