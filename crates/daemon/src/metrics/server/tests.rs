//! What clients can do to the server, and its answers for a daemon that hangs. The daemon is a mock here,
//! since a real one cannot be made to hang; `tests/metrics.rs` has a real one.

mod secure;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use super::*;
use crate::metrics::Collected;

/// Far more than any step here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A daemon that answers, has ended, or hangs.
#[derive(Clone, Copy)]
enum Played {
    Answers,
    HasEnded,
    Hangs,
}

impl Played {
    fn answer<'a>(self) -> Collected<'a> {
        Box::pin(async move {
            match self {
                Self::Answers => true,
                Self::HasEnded => false,
                Self::Hangs => std::future::pending().await,
            }
        })
    }
}

impl Collect for Played {
    fn collect<'a>(&'a self, _: &'a mut Page) -> Collected<'a> {
        self.answer()
    }

    fn is_alive(&self) -> Collected<'_> {
        self.answer()
    }
}

/// A free port of loopback, and a server on it.
async fn server(daemon: Played) -> (Server, SocketAddr, Arc<ClientCounters>) {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let counters = Arc::new(ClientCounters::default());
    let server = Server::start(HttpListen::At(address), None, Arc::clone(&counters), daemon);
    timeout(PATIENCE, async { while TcpStream::connect(address).await.is_err() {} }).await.unwrap();
    (server, address, counters)
}

/// The answer to these bytes until the server closes the connection.
async fn answer_to(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may answer, and close, before it has read everything.
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it is not closed");
    String::from_utf8(answer).unwrap()
}

async fn get(address: SocketAddr, path: &str) -> String {
    answer_to(address, format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").as_bytes()).await
}

#[tokio::test]
async fn a_daemon_is_alive_at_once_and_ready_when_everything_was_read() {
    let (_server, address, counters) = server(Played::Answers).await;
    assert!(get(address, "/healthz").await.starts_with("HTTP/1.1 200 OK\r\n"));
    let unready = get(address, "/readyz").await;
    assert!(unready.starts_with("HTTP/1.1 503 "), "{unready}");
    assert!(
        unready.ends_with("\r\n\r\nnot ready: not all objects have been read yet\n"),
        "{unready}"
    );
    counters.loaded();
    assert!(get(address, "/readyz").await.starts_with("HTTP/1.1 200 OK\r\n"));
    let page = get(address, "/metrics?name[]=x").await;
    assert!(page.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{page}");
    assert!(page.contains("\nmetallb_k8s_client_config_loaded_bool 1\n"), "{page}");
}

#[tokio::test]
async fn a_daemon_that_ended_or_hangs_is_not_alive() {
    for daemon in [Played::HasEnded, Played::Hangs] {
        let (_server, address, _) = server(daemon).await;
        let start = Instant::now();
        let (health, page) = tokio::join!(get(address, "/healthz"), get(address, "/metrics"));
        for answer in [health, page] {
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
            assert!(answer.ends_with("\r\n\r\nthe daemon does not answer\n"), "{answer}");
        }
        assert!(start.elapsed() < 2 * ANSWER_TIMEOUT);
    }
}

#[tokio::test]
async fn nothing_but_a_get_of_what_there_is_is_answered() {
    let (_server, address, _) = server(Played::Answers).await;
    let refused = answer_to(address, b"POST /metrics HTTP/1.1\r\nContent-Length: 9\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 405 ") && refused.contains("\r\nallow: GET\r\n"));
    assert!(get(address, "/debug/pprof").await.starts_with("HTTP/1.1 404 "));
    let head = answer_to(address, b"HEAD /metrics HTTP/1.1\r\nHost: here\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 405 "), "{head}");
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(2 * REQUEST_LENGTH_BYTES_MAX));
    let answer = answer_to(address, long.as_bytes()).await;
    let is_refused = ["414", "431"].iter().any(|it| answer.starts_with(&format!("HTTP/1.1 {it} ")));
    assert!(answer.is_empty() || is_refused, "it is read: {answer}");
    let noise = answer_to(address, &[0xff; 100]).await;
    assert!(noise.is_empty() || noise.starts_with("HTTP/1.1 400 "), "{noise}");
}

#[tokio::test]
async fn who_does_not_finish_a_request_is_closed() {
    let (_server, address, _) = server(Played::Answers).await;
    let start = Instant::now();
    answer_to(address, b"GET /metrics HTTP/1.1\r\nHost: ").await;
    let took = start.elapsed();
    assert!(took < 2 * REQUEST_TIMEOUT, "{took:?}");
}

#[tokio::test]
async fn probes_get_through_whoever_holds_connections() {
    let (_server, address, _) = server(Played::Answers).await;
    let mut held = Vec::new();
    for _ in 0..4 * CONNECTIONS_MAX {
        held.push(TcpStream::connect(address).await.unwrap());
    }
    let start = Instant::now();
    let mut probe = TcpStream::connect(address).await.unwrap();
    // They take the places of older ones, not its place.
    for _ in 0..CONNECTIONS_MAX / 2 {
        held.push(TcpStream::connect(address).await.unwrap());
    }
    probe.write_all(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    probe.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(start.elapsed() < REQUEST_TIMEOUT, "it waited for one of them to time out");
}

#[tokio::test]
async fn a_port_that_is_taken_is_tried_again() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let listen = HttpListen::At(address);
    let _server = Server::start(listen, None, Arc::default(), Played::Answers);
    // It has to have failed once.
    let is_free = Arc::new(AtomicBool::new(false));
    let free = Arc::clone(&is_free);
    tokio::spawn(async move {
        sleep(Duration::from_millis(200)).await;
        drop(taken);
        free.store(true, Ordering::Relaxed);
    });
    let answered = async {
        loop {
            let was_free = is_free.load(Ordering::Relaxed);
            if was_free && TcpStream::connect(address).await.is_ok() {
                return get(address, "/healthz").await;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    let answer = timeout(PATIENCE, answered).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[tokio::test]
async fn dropping_the_server_closes_its_port() {
    let (server, address, _) = server(Played::Answers).await;
    drop(server);
    let closed = async { while TcpStream::connect(address).await.is_ok() {} };
    timeout(PATIENCE, closed).await.expect("it still answers");
}
