//! A client connects by HTTPS; the test takes the part of the loop.

use std::net::SocketAddr;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::super::body::BYTES_MAX;
use super::*;
use crate::kubernetes::serving::{Profile, issue, stored};

/// The certificate is valid now, and both sides use the clock of this machine.
fn now() -> u64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()
}

fn profile() -> Profile {
    let hosts = vec!["127.0.0.1".to_owned()];
    Profile { name: "Fairway webhook", hosts, is_client: false }
}

struct Lab {
    address: SocketAddr,
    authority: String,
    questions: mpsc::Receiver<Question>,
    // Dropping it ends the server.
    _server: JoinSet<()>,
}

impl Lab {
    async fn start() -> Self {
        let data = issue(&profile(), None, now()).unwrap();
        let identity = Identity::of(&stored(&data)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (ask, questions) = mpsc::channel(1);
        let mut server = JoinSet::new();
        server.spawn(async move {
            let (_tell, identity) = watch::channel(Some(identity));
            serve(&listener, &identity, &ask).await;
        });
        let authority = data["ca.crt"].as_str().unwrap().to_owned();
        Self { address, authority, questions, _server: server }
    }

    /// Sends a request as a client that trusts this CA.
    async fn ask_trusting(&self, pem: &str, head: &str, body: &str) -> std::io::Result<String> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::from(self.address.ip());
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let length = body.len();
        let request = format!("{head} HTTP/1.1\r\nHost: it\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        // The server may stop reading early.
        let _ = stream.write_all(body.as_bytes()).await;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(String::from_utf8(answer).unwrap())
    }

    async fn ask(&self, head: &str, body: &str) -> String {
        self.ask_trusting(&self.authority, head, body).await.unwrap()
    }
}

fn verdict(is_allowed: bool) -> Value {
    json!({ "response": { "uid": "u", "allowed": is_allowed } })
}

fn judgement(is_allowed: bool, may_change: bool) -> Judged {
    Judged::Now(Judgement { review: verdict(is_allowed), may_change })
}

#[tokio::test]
async fn a_review_is_judged_by_the_loop() {
    let mut lab = Lab::start().await;
    let mut questions = std::mem::replace(&mut lab.questions, mpsc::channel(1).1);
    let asking = lab.ask("POST /validate?timeout=5s", "{\"request\": 7}");
    let answering = async {
        let question = questions.recv().await.unwrap();
        question.answer(|review| {
            assert_eq!(*review, json!({ "request": 7 }));
            judgement(true, false)
        });
    };
    let (answer, ()) = tokio::join!(asking, answering);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with(&verdict(true).to_string()), "{answer}");
    assert!(answer.contains("application/json"), "{answer}");
}

/// The user has just freed an address, and the watch is a moment behind.
#[tokio::test]
async fn a_refusal_that_may_change_counts_only_when_it_is_repeated() {
    let mut lab = Lab::start().await;
    let mut questions = std::mem::replace(&mut lab.questions, mpsc::channel(1).1);
    for second in [true, false] {
        let answering = async {
            for is_allowed in [false, second] {
                let judgement = judgement(is_allowed, !is_allowed);
                questions.recv().await.unwrap().answer(|_| judgement);
            }
        };
        let (answer, ()) = tokio::join!(lab.ask("POST /validate", "{}"), answering);
        assert!(answer.ends_with(&verdict(second).to_string()), "{answer}");
    }
}

#[tokio::test]
async fn a_fault_of_the_object_itself_is_refused_at_once() {
    let mut lab = Lab::start().await;
    let mut questions = std::mem::replace(&mut lab.questions, mpsc::channel(1).1);
    let answering = async {
        let judgement = judgement(false, false);
        questions.recv().await.unwrap().answer(|_| judgement);
    };
    let (answer, ()) = tokio::join!(lab.ask("POST /validate", "{}"), answering);
    assert!(answer.ends_with(&verdict(false).to_string()), "{answer}");
    assert!(questions.try_recv().is_err(), "it is not judged a second time");
}

#[tokio::test]
async fn what_is_no_review_is_refused_without_the_loop() {
    let lab = Lab::start().await;
    for (head, body, code) in [
        ("GET /validate", String::new(), 405),
        ("POST /", "{}".to_owned(), 404),
        ("POST /validate", "{".to_owned(), 400),
        ("POST /validate", "[".repeat(1000), 400),
        ("POST /validate", "\u{0}".to_owned(), 400),
        ("POST /validate", " ".repeat(BYTES_MAX + 1), 413),
    ] {
        let answer = lab.ask(head, &body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{head}: {answer}");
    }
}

#[tokio::test]
async fn a_controller_that_leaves_says_so() {
    let mut lab = Lab::start().await;
    lab.questions.close();
    let answer = lab.ask("POST /validate", "{}").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
}

#[tokio::test]
async fn who_trusts_another_does_not_ask() {
    let lab = Lab::start().await;
    let another = issue(&profile(), None, now()).unwrap();
    let pem = another["ca.crt"].as_str().unwrap();
    assert!(lab.ask_trusting(pem, "POST /validate", "{}").await.is_err());
    // Other clients are still served.
    assert!(lab.ask("POST /", "").await.starts_with("HTTP/1.1 404 "));
}

#[tokio::test]
async fn silent_connections_keep_no_review_waiting() {
    let mut lab = Lab::start().await;
    let mut silent = Vec::new();
    for _ in 0..3 * BOUNDS.clients.clients_max {
        silent.push(TcpStream::connect(lab.address).await.unwrap());
    }
    let mut questions = std::mem::replace(&mut lab.questions, mpsc::channel(1).1);
    let answering = async {
        let judgement = judgement(true, false);
        questions.recv().await.unwrap().answer(|_| judgement);
    };
    let asking = timeout(BOUNDS.connection_timeout / 2, lab.ask("POST /validate", "{}"));
    let (answer, ()) = tokio::join!(asking, answering);
    assert!(answer.expect("an answer in time").starts_with("HTTP/1.1 200"));
    drop(silent);
}

/// It has waited longer than all of those, and its review is being judged.
#[tokio::test]
async fn silent_connections_make_room_and_not_one_that_is_answered() {
    let mut lab = Lab::start().await;
    let mut questions = std::mem::replace(&mut lab.questions, mpsc::channel(1).1);
    let answering = async {
        let question = questions.recv().await.unwrap();
        let mut silent = Vec::new();
        for _ in 0..BOUNDS.clients.clients_max {
            silent.push(TcpStream::connect(lab.address).await.unwrap());
        }
        // The first of them, which has been silent for long enough.
        let closed = timeout(BOUNDS.connection_timeout / 2, silent[0].read(&mut [0])).await;
        let judgement = judgement(true, false);
        question.answer(|_| judgement);
        closed.is_ok()
    };
    let asking = lab.ask_trusting(&lab.authority, "POST /validate", "{}");
    let (answer, has_made_room) = tokio::join!(asking, answering);
    assert!(answer.is_ok_and(|it| it.starts_with("HTTP/1.1 200")) && has_made_room);
}

/// Each value of a byte becomes one of 32 bytes or more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies_at_once_take_bounded_memory() {
    let lab = Lab::start().await;
    // The most that this process has ever had.
    let peak_kib = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let mut lines = status.lines().filter_map(|it| it.strip_prefix("VmHWM:"));
        lines.next().unwrap().trim().trim_end_matches(" kB").parse::<usize>().unwrap()
    };
    let before = peak_kib();
    let body = format!("[{}0]", "0,".repeat(BYTES_MAX / 2 - 2));
    let refused = std::cell::Cell::new(0);
    let all = (0..BOUNDS.clients.clients_max).map(|_| async {
        let answer = lab.ask_trusting(&lab.authority, "POST /validate", &body).await;
        // Others are too late, since few are read at a time.
        if answer.is_ok_and(|it| it.starts_with("HTTP/1.1 400 ")) {
            refused.set(refused.get() + 1);
        }
    });
    futures_of(all).await;
    assert!(refused.get() >= 10, "{} were read", refused.get());
    // With what the clients have in the same process.
    let grown = peak_kib().saturating_sub(before) >> 10;
    assert!(grown < 128, "{grown} MiB");
}

async fn futures_of(all: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        all.retain_mut(|it| it.as_mut().poll(context).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
