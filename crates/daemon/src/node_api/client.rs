//! The side of a controller: one question to one speaker, within bounds.
//!
//! Knows no Kubernetes: which speakers there are, and who asks, is for its callers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::{NodeQuestion, PATH, REFUSED, SPEAKER};
use crate::admin::ANSWER_BYTES_MAX;
use crate::tls::{self, Pair};

/// A node that does not accept a connection in that time counts as unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a speaker may take until its answer begins, and between two parts of it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// What is read of an answer without a permit for a large one.
const SMALL_BYTES_MAX: usize = 128 << 10;
/// Large answers in memory at the same time, and how long another one waits for its turn.
const LARGE_MAX: usize = 2;
const LARGE_TIMEOUT: Duration = Duration::from_secs(20);

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
    #[error("the controller hands other large answers on: ask again later, or for less")]
    Busy,
    #[error("the answer of {0} is malformed")]
    Malformed(SocketAddr),
    /// The speaker says why.
    #[error("{0}")]
    Refused(String),
    #[error("no speaker runs on this node")]
    NoSpeaker,
    #[error("the speaker of this node does not serve the node API (--node-api-listen)")]
    NotServing,
}

/// An answer, and its place among the large ones.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) text: String,
    pub(crate) place: Option<OwnedSemaphorePermit>,
}

/// How speakers are asked: with our certificate, and they have to have one of theirs.
#[derive(Clone)]
pub(crate) struct Speakers {
    config: Arc<ClientConfig>,
    large: LargeAnswers,
}

/// What the large answers of all speakers to all clients may take.
#[derive(Debug, Clone)]
pub(crate) struct LargeAnswers(Arc<Semaphore>);

impl Default for LargeAnswers {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LARGE_MAX)))
    }
}

impl Speakers {
    pub(crate) fn new(
        speakers: RootCertStore,
        own: Pair,
        large: LargeAnswers,
    ) -> Result<Self, rustls::Error> {
        Ok(Self { config: Arc::new(tls::client_of(speakers, own)?), large })
    }

    /// The answer of the speaker at `address`.
    pub(crate) async fn ask(
        &self,
        address: SocketAddr,
        question: &NodeQuestion,
    ) -> Result<Answered, Unanswered> {
        let stream = timeout(CONNECT_TIMEOUT, self.connect(address))
            .await
            .map_err(|_| Unanswered::Unreachable(address))?
            .map_err(|error| Unanswered::Connect(address, error))?;
        let failed = |error| Unanswered::Exchange(address, error);
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
        // Ends with this function.
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let answering = timeout(ANSWER_TIMEOUT, sender.send_request(request(question)));
        let response = answering.await.map_err(|_| Unanswered::Silent(address))?;
        let response = response.map_err(failed)?;
        let status = response.status();
        let answered = self.read(response, address).await?;
        match status {
            StatusCode::OK => Ok(answered),
            REFUSED => Err(Unanswered::Refused(answered.text)),
            status => Err(Unanswered::Status(address, status)),
        }
    }

    async fn connect(&self, address: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from(SPEAKER).map_err(std::io::Error::other)?;
        TlsConnector::from(Arc::clone(&self.config)).connect(name, stream).await
    }

    /// All of an answer. A large one waits for its turn.
    async fn read(
        &self,
        response: Response<Incoming>,
        address: SocketAddr,
    ) -> Result<Answered, Unanswered> {
        let (mut body, mut bytes, mut place) = (response.into_body(), Vec::new(), None);
        loop {
            let frame = timeout(ANSWER_TIMEOUT, body.frame()).await;
            let Some(frame) = frame.map_err(|_| Unanswered::Silent(address))? else { break };
            let frame = frame.map_err(|error| Unanswered::Exchange(address, error))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len().saturating_add(data.len()) > ANSWER_BYTES_MAX {
                return Err(Unanswered::TooLarge(address));
            }
            bytes.extend_from_slice(&data);
            if place.is_none() && bytes.len() > SMALL_BYTES_MAX {
                let waiting = timeout(LARGE_TIMEOUT, Arc::clone(&self.large.0).acquire_owned());
                place = waiting.await.map_err(|_| Unanswered::Busy)?.ok();
            }
        }
        let text = String::from_utf8(bytes).map_err(|_| Unanswered::Malformed(address))?;
        Ok(Answered { text, place })
    }
}

fn request(question: &NodeQuestion) -> Request<Full<Bytes>> {
    // Words and numbers can be written as JSON.
    let body = serde_json::to_vec(question).unwrap_or_default();
    let mut request = Request::post(PATH).body(Full::new(Bytes::from(body))).unwrap_or_default();
    request.headers_mut().insert(HOST, HeaderValue::from_static(SPEAKER));
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    request
}
