//! The side of a controller: one question to one speaker, within bounds.
//!
//! Knows no Kubernetes: which speakers there are, and who asks, is for its callers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::{NodeQuestion, PATH, SPEAKER};
use crate::admin::Answer;
use crate::tls::{self, Pair};

/// A node that does not accept a connection in that time counts as unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a speaker may take for its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer: a table of some fifty thousand routes.
const ANSWER_BYTES_MAX: usize = if cfg!(test) { 1 << 20 } else { 16 << 20 };
/// What is read of an answer without a permit for a large one.
const SMALL_BYTES_MAX: usize = 256 << 10;
/// Questions at the same time: hundreds of nodes are asked within a second, and unreachable ones keep no other waiting.
const QUESTIONS_MAX: usize = 64;
/// Large answers that are read at the same time. With the small ones, they take 48 MiB at most.
const LARGE_MAX: usize = 2;

/// Why a speaker gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unanswered {
    #[error("no connection to {0} within {limit} s: the node is down, or TCP port {port} is filtered", limit = CONNECT_TIMEOUT.as_secs(), port = .0.port())]
    Unreachable(SocketAddr),
    #[error("cannot connect to {0}: {1}")]
    Connect(SocketAddr, std::io::Error),
    #[error("no answer from {0} within {limit} s", limit = ANSWER_TIMEOUT.as_secs())]
    Silent(SocketAddr),
    #[error("the connection to {0} failed: {1}")]
    Exchange(SocketAddr, hyper::Error),
    #[error("{0} answers with HTTP status {1}")]
    Status(SocketAddr, StatusCode),
    #[error("the answer of {0} is larger than {mebibytes} MiB: ask for less", mebibytes = ANSWER_BYTES_MAX >> 20)]
    TooLarge(SocketAddr),
    #[error("the answer of {0} is malformed: {1}")]
    Malformed(SocketAddr, serde_json::Error),
    /// The speaker says why.
    #[error("{0}")]
    Refused(String),
    #[error("no speaker runs on this node")]
    NoSpeaker,
    #[error("the controller is shutting down")]
    Stopping,
}

/// An answer, and its place among the large ones.
#[derive(Debug)]
pub(crate) struct Answered<'a> {
    pub(crate) answer: Answer,
    _permit: Option<SemaphorePermit<'a>>,
}

/// What the answers of all speakers to all clients may take at the same time.
#[derive(Debug)]
pub(crate) struct Budget {
    questions: Semaphore,
    large: Semaphore,
}

impl Default for Budget {
    fn default() -> Self {
        Self { questions: Semaphore::new(QUESTIONS_MAX), large: Semaphore::new(LARGE_MAX) }
    }
}

/// How speakers are asked: with our certificate, and they have to have one of theirs.
#[derive(Clone)]
pub(crate) struct Speakers(Arc<ClientConfig>);

impl Speakers {
    pub(crate) fn new(speakers: RootCertStore, own: Pair) -> Result<Self, rustls::Error> {
        Ok(Self(Arc::new(tls::client_of(speakers, own)?)))
    }

    /// The answer of the speaker at `address`.
    pub(crate) async fn ask<'a>(
        &self,
        address: SocketAddr,
        question: &NodeQuestion,
        budget: &'a Budget,
    ) -> Result<Answered<'a>, Unanswered> {
        let _permit = budget.questions.acquire().await.map_err(|_| Unanswered::Stopping)?;
        let connecting = timeout(CONNECT_TIMEOUT, self.connect(address)).await;
        let stream = connecting
            .map_err(|_| Unanswered::Unreachable(address))?
            .map_err(|error| Unanswered::Connect(address, error))?;
        let answering = timeout(ANSWER_TIMEOUT, exchange(stream, address, question, budget));
        match answering.await.map_err(|_| Unanswered::Silent(address))?? {
            Answered { answer: Answer::Error(why), .. } => Err(Unanswered::Refused(why)),
            answered => Ok(answered),
        }
    }

    async fn connect(
        &self,
        address: SocketAddr,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from(SPEAKER).map_err(std::io::Error::other)?;
        TlsConnector::from(Arc::clone(&self.0)).connect(name, stream).await
    }
}

async fn exchange<'a>(
    stream: tokio_rustls::client::TlsStream<TcpStream>,
    address: SocketAddr,
    question: &NodeQuestion,
    budget: &'a Budget,
) -> Result<Answered<'a>, Unanswered> {
    let failed = |error| Unanswered::Exchange(address, error);
    let malformed = |error| Unanswered::Malformed(address, error);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    // Ends with this function.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let body = serde_json::to_vec(question).map_err(malformed)?;
    let mut request = Request::post(PATH).body(Full::new(Bytes::from(body))).unwrap_or_default();
    request.headers_mut().insert(HOST, HeaderValue::from_static(SPEAKER));
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let response = sender.send_request(request).await.map_err(failed)?;
    if response.status() != StatusCode::OK {
        return Err(Unanswered::Status(address, response.status()));
    }
    let (bytes, permit) = read(response.into_body(), address, budget).await?;
    let answer = serde_json::from_slice(&bytes).map_err(malformed)?;
    Ok(Answered { answer, _permit: permit })
}

/// All of an answer. A large one waits for its turn.
async fn read<'a>(
    mut body: Incoming,
    address: SocketAddr,
    budget: &'a Budget,
) -> Result<(Vec<u8>, Option<SemaphorePermit<'a>>), Unanswered> {
    let (mut bytes, mut permit) = (Vec::new(), None);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|it| Unanswered::Exchange(address, it))?.into_data() else {
            continue;
        };
        if bytes.len().saturating_add(data.len()) > ANSWER_BYTES_MAX {
            return Err(Unanswered::TooLarge(address));
        }
        bytes.extend_from_slice(&data);
        if permit.is_none() && bytes.len() > SMALL_BYTES_MAX {
            permit = Some(budget.large.acquire().await.map_err(|_| Unanswered::Stopping)?);
        }
    }
    Ok((bytes, permit))
}
