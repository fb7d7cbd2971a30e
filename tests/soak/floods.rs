//! What floods a speaker, on every port at once? Strangers, silent connections, a neighbour that flaps and one that
//! announces and withdraws, slow web clients, clients of the admin socket, files that are log bombs. Used by the case of
//! all floods.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::bench::Bench;
use crate::message::{self, NOTIFICATION};
use crate::scripted::{dial, establish, reset};
use crate::stage::{PEER_AS, Stage};

const FLAPPING: Ipv4Addr = Ipv4Addr::new(127, 1, 3, 1);
const CHURNING: Ipv4Addr = Ipv4Addr::new(127, 1, 3, 2);

/// Makes the neighbours that flap and churn peers of the stage, whose daemon does not run yet.
pub(crate) fn add_peers(stage: &Stage) -> Result<()> {
    let policy = "  passive: true\n  toReceive: {allowed: {mode: all}}\n";
    stage.apply_peer("flapping", FLAPPING, policy)?;
    stage.apply_peer("churning", CHURNING, policy)
}

/// Everything at once, until it is dropped.
pub(crate) struct Flood(#[expect(dead_code, reason = "its tasks end with it")] JoinSet<()>);

impl Flood {
    pub(crate) fn start(bench: &Bench, stage: &Stage, web: SocketAddr) -> Self {
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
