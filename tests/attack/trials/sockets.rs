//! What is tried with the sockets that Fairway listens on? Used by the field.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Trial;
use crate::scene::{QUICK, Scene};
use lab::outsider::{self, NOTIFICATION, connected_from};
use lab::resources::BfdProfile;
use lab::usage::Usage;
use lab::wait::now;

/// The healthy neighbor, and the node as it knows it.
const NEIGHBOR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const NODE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

const HTTP: &str = "127.0.0.1:7472";

/// More than any of the sockets serves at a time.
const MANY: usize = 200;

/// What one of the floods may cost.
const MEMORY_MAX_MEBIBYTES: f64 = 128.0;

/// How long an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);

const ADMIN: &str = "the answer";
const PAGES: &str = "the answer";
const MADE_ROOM: &str = "`fairway_bound_reached_total{bound=\"metrics-client\"}`";
const NEIGHBOR_LOG: &str = "`fairway_bound_reached_total{bound=\"accept\"}`; log";

pub(super) const TRIALS: &[Trial] = &[
    Trial::new(
        "1 MiB without a line end to the admin socket",
        "an error is the answer, others are answered",
        ADMIN,
        |scene| admin(scene, &[b'x'; 1 << 20]),
    ),
    Trial::new("a web request to the admin socket", "an error is the answer", ADMIN, |scene| {
        admin(scene, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    }),
    Trial::new("NUL bytes to the admin socket", "an error is the answer", ADMIN, |scene| {
        admin(scene, &[0; 4096])
    }),
    Trial::new(
        "200 clients of the admin socket that leave at once",
        "others are answered",
        ADMIN,
        |scene| {
            let socket = scene.socket();
            (0..MANY)
                .try_for_each(|_| UnixStream::connect(&socket).map(drop).context("connecting"))?;
            is_answered(scene)
        },
    ),
    Trial::new(
        "200 HTTP clients that never end their headers",
        "others are answered",
        MADE_ROOM,
        |scene| {
            let slow = web_clients(scene, b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ")?;
            is_answered(scene)?;
            scene.bound_was_reached("metrics-client")?;
            drop(slow);
            Ok(())
        },
    ),
    Trial::new(
        "200 HTTP clients that never send anything",
        "others are answered",
        MADE_ROOM,
        |scene| {
            let silent = web_clients(scene, b"")?;
            is_answered(scene)?;
            scene.bound_was_reached("metrics-client")?;
            drop(silent);
            Ok(())
        },
    ),
    Trial::new(
        "200 HTTP clients that never read their answers",
        "others are answered",
        MADE_ROOM,
        |scene| {
            let deaf = web_clients(scene, &b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(50))?;
            is_answered(scene)?;
            scene.bound_was_reached("metrics-client")?;
            drop(deaf);
            Ok(())
        },
    ),
    Trial::new("an HTTP header of 8 MiB", "the connection is closed", PAGES, |scene| {
        let header = [b"GET /metrics HTTP/1.1\r\nX: ", &[b'x'; 8 << 20][..]].concat();
        web_request(scene, &header).map(drop)
    }),
    Trial::new("TLS to the HTTP port", "status 400, or the connection is closed", PAGES, |scene| {
        let answer = web_request(scene, &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3, 13, 10, 13, 10])?;
        ensure!(!answer.contains("200 OK"), "it answers {answer}");
        Ok(())
    }),
    Trial::new("paths that leave the tree, on the HTTP port", "status 404", PAGES, |scene| {
        let request = b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let answer = web_request(scene, request)?;
        ensure!(answer.starts_with("HTTP/1.1 404"), "it answers {answer}");
        Ok(())
    }),
    Trial::new(
        "1,000 HTTP requests on one connection before an answer is read",
        "each is answered, or the connection is closed; others are answered",
        PAGES,
        |scene| {
            web_request(scene, &b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1_000)).map(drop)
        },
    ),
    Trial::new(
        "a web request to the BGP port, from the neighbor's address",
        "the connection is closed, the session stays",
        NEIGHBOR_LOG,
        |scene| {
            let mut stream = from_neighbor(scene)?;
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").context("sending")?;
            ends(&mut stream)
        },
    ),
    Trial::new(
        "50 silent connections from the neighbor's address",
        "the session stays",
        NEIGHBOR_LOG,
        |scene| {
            let silent = (0..50).map(|_| from_neighbor(scene)).collect::<Result<Vec<_>>>()?;
            is_answered(scene)?;
            drop(silent);
            Ok(())
        },
    ),
    Trial::new(
        "500 connections from the neighbor's address that are reset at once",
        "the session stays",
        NEIGHBOR_LOG,
        connections_in_a_row,
    ),
    Trial::new(
        "an OPEN from the neighbor's address, beside its session",
        "that connection is closed (RFC 4271 §6.8), the session stays",
        NEIGHBOR_LOG,
        |scene| {
            let mut stream = from_neighbor(scene)?;
            let [high, low] = 65_002_u16.to_be_bytes();
            // The node may have closed it already.
            let _ = outsider::send(&mut stream, 1, &[4, high, low, 0, 90, 10, 77, 0, 2, 0]);
            ends(&mut stream)
        },
    ),
    Trial::new(
        "1,000 connections from an address that is no neighbor's",
        "they are closed",
        "log, with an allowance",
        strangers,
    ),
    Trial::new(
        "10,000 datagrams without sense to the BFD port",
        "they are dropped",
        "`fairway_bfd_dropped_packets_total`",
        datagrams,
    ),
];

/// An address on the router's side that no BGPPeer has.
const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 77);

/// A neighbor that BFD watches, so that there is a port.
pub(super) fn prepare(scene: &mut Scene) -> Result<()> {
    scene.lab.router.namespace.add_address(lab::ROUTER_INTERFACE, &format!("{STRANGER}/24"))?;
    scene.apply("profile", &BfdProfile::every(300, 3).yaml())?;
    scene.apply(
        "watched",
        "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: watched}\n\
         spec: {myASN: 65001, peerASN: 65010, peerAddress: 10.77.0.66, bfdProfile: watch, \
         enableGracefulRestart: false}\n",
    )
}

/// Sends this to the admin socket, which answers with an error at once, and others are answered.
fn admin(scene: &mut Scene, bytes: &[u8]) -> Result<()> {
    let mut stream = UnixStream::connect(scene.socket()).context("connecting")?;
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    stream.set_write_timeout(Some(ANSWER_LIMIT))?;
    // It may be closed before all is sent.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    ensure!(!answer.contains("10.77.0.2"), "it answers {answer}");
    ensure!(answer.contains("malformed request"), "it does not answer: {answer}");
    is_answered(scene)
}

/// Others are answered soon, and the memory is as it was.
fn is_answered(scene: &mut Scene) -> Result<()> {
    let asked = now();
    scene.fairway.show(&["bgp", "summary"])?;
    scene.http("healthz")?;
    let waited = asked.elapsed();
    ensure!(waited < ANSWER_LIMIT, "the answers took {waited:?}");
    Usage::of(scene.fairway.process_id()?)?.expect_peak_below(MEMORY_MAX_MEBIBYTES)
}

/// Many clients of the metrics port, each with this sent.
fn web_clients(scene: &Scene, bytes: &[u8]) -> Result<Vec<TcpStream>> {
    let client = || {
        let mut stream = TcpStream::connect(HTTP).context("connecting")?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        // One that was evicted cannot send any more.
        let _ = stream.write_all(bytes);
        Ok(stream)
    };
    scene.lab.node.enter(|| (0..MANY).map(|_| client()).collect())
}

/// What comes until the connection is closed or silent.
fn web_request(scene: &mut Scene, bytes: &[u8]) -> Result<String> {
    let answer = scene.lab.node.enter(|| {
        let mut stream = TcpStream::connect(HTTP).context("connecting")?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Ok(String::from_utf8_lossy(&answer).into_owned())
    })?;
    is_answered(scene)?;
    Ok(answer)
}

/// Few of them are accepted, and the others cost nothing.
fn connections_in_a_row(scene: &mut Scene) -> Result<()> {
    const ACCEPTED: &str = "connection accepted";
    let (before, begin) = (scene.log()?.matches(ACCEPTED).count(), now());
    (0..500).try_for_each(|_| from_neighbor(scene).map(drop))?;
    scene.bound_was_reached("accept")?;
    // Fifty at once, and then ten in a second.
    let allowed = 50 + 10 * usize::try_from(begin.elapsed().as_secs() + 1)?;
    let accepted = scene.log()?.matches(ACCEPTED).count() - before;
    ensure!(accepted <= allowed, "{accepted} of them are accepted, and may be {allowed}");
    Ok(())
}

fn from_neighbor(scene: &Scene) -> Result<TcpStream> {
    scene.lab.router.namespace.enter(|| connected_from(NEIGHBOR, NODE))
}

/// The connection ends soon, with a NOTIFICATION if anything comes.
fn ends(stream: &mut TcpStream) -> Result<()> {
    let asked = now();
    loop {
        match outsider::receive(stream) {
            Ok((NOTIFICATION, _)) => return Ok(()),
            Ok(_) => {}
            // Closed, or reset.
            Err(_) => break,
        }
    }
    ensure!(asked.elapsed() < ANSWER_LIMIT, "it stays open");
    Ok(())
}

fn strangers(scene: &mut Scene) -> Result<()> {
    scene.lab.router.namespace.enter(|| {
        // One may be reset before it is used.
        (0..1_000).for_each(|_| drop(connected_from(STRANGER, NODE)));
        Ok(())
    })
}

fn datagrams(scene: &mut Scene) -> Result<()> {
    scene.lab.router.namespace.enter(|| {
        let socket = UdpSocket::bind(SocketAddr::from((STRANGER, 0))).context("a socket")?;
        for number in 0..10_000_u32 {
            let byte = number.to_be_bytes()[3];
            // A full queue drops it.
            let _ = socket.send_to(&[byte; 24], SocketAddr::from((NODE, 3784)));
        }
        Ok(())
    })?;
    scene.wait("the metrics count them", QUICK, |scene| {
        let page = scene.http("metrics")?;
        let counts = page.lines().filter(|line| {
            line.starts_with("fairway_bfd_dropped_packets_total") && !line.ends_with(" 0")
        });
        ensure!(counts.count() > 0, "not yet");
        Ok(())
    })
}
