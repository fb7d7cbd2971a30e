//! The HTTPS server of a speaker.
//!
//! Anyone who reaches the port may connect and is refused in the handshake without the right certificate; so the
//! number of connections, the duration of each, and the size of a request are bounded. One request per connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::Bound;
use fairway_show::language::{Question, Vocabulary, understand};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tracing::{debug, info, warn};

use super::{NodeApiOptions, NodeQuestion, PATH};
use crate::admin::{self, Answer, Observer, Order};
use crate::host::{ClientLimits, Clients, Work};
use crate::tls::{CertificateFolder, CertificateFolderOptions};

/// A few controllers, each with a few questions. A client that has been silent for half a second makes room.
const LIMITS: ClientLimits = ClientLimits {
    clients_max: 32,
    silence: Duration::from_millis(500),
    bound: Bound::NodeApiClient,
};
/// How long a client may take until its request is here.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may last: a large answer to a slow controller.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// A question is a few words.
const QUESTION_BYTES_MAX: usize = 4096;
/// Answers that are made at the same time: one may be a large table.
const ANSWERS_MAX: usize = 4;
/// How often a port that is in use is tried again, and a certificate that is not there yet.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until it is aborted. Without a certificate, which the leading controller issues, it does not listen.
pub(crate) async fn serve(
    options: NodeApiOptions,
    observer: Observer,
    orders: mpsc::Sender<Order>,
) {
    let desk = Arc::new(Desk { observer, orders, answers: Semaphore::new(ANSWERS_MAX) });
    let mut trouble = None;
    loop {
        let problem = match open(&options).await {
            Ok(None) => return,
            Ok(Some((certificate, listener))) => {
                info!(listen = %options.listen, "answering controllers");
                accept(&listener, &certificate, &desk).await;
                return;
            }
            Err(problem) => problem,
        };
        if trouble.as_ref() != Some(&problem) {
            warn!("kubectl fairway gets no answer from this node: {problem}; trying again");
        }
        trouble = Some(problem);
        sleep(RETRY_INTERVAL).await;
    }
}

async fn open(
    options: &NodeApiOptions,
) -> Result<Option<(CertificateFolder, TcpListener)>, String> {
    let folder = CertificateFolderOptions {
        option: "--node-api-cert-dir",
        folder: options.certificate_folder.clone(),
        names_clients: true,
    };
    let certificate = CertificateFolder::open(folder).map_err(|error| error.to_string())?;
    let cannot_listen =
        |error| format!("cannot listen on {} (--node-api-listen): {error}", options.listen);
    let listener = options.listen.bind().await.map_err(cannot_listen)?;
    Ok(listener.map(|listener| (certificate, listener)))
}

async fn accept(listener: &TcpListener, certificate: &CertificateFolder, desk: &Arc<Desk>) {
    let mut clients = Clients::new(LIMITS);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                debug!(%error, "cannot accept a controller");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        clients.make_room().await;
        let (tls, desk) = (certificate.config(), Arc::clone(desk));
        clients.serve(|work| async move {
            match timeout(CONNECTION_TIMEOUT, connection(stream, tls, desk, work)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!(%error, "the connection of a controller failed"),
                Err(_) => debug!("the connection of a controller timed out"),
            }
        });
    }
}

/// Where questions are answered.
struct Desk {
    observer: Observer,
    orders: mpsc::Sender<Order>,
    answers: Semaphore,
}

/// One request and its answer.
async fn connection(
    stream: TcpStream,
    tls: Arc<ServerConfig>,
    desk: Arc<Desk>,
    work: Work,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let stream = timeout(REQUEST_TIMEOUT, TlsAcceptor::from(tls).accept(stream)).await??;
    let service = service_fn(move |request| {
        let (desk, work) = (Arc::clone(&desk), work.clone());
        async move { Ok::<_, Infallible>(reply(request, &desk, &work).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await?;
    Ok(())
}

async fn reply(request: Request<Incoming>, desk: &Desk, work: &Work) -> Response<Full<Bytes>> {
    if request.uri().path() != PATH || request.method() != Method::POST {
        return plain(StatusCode::NOT_FOUND, "only POST /v1/ask exists\n");
    }
    let body = Limited::new(request.into_body(), QUESTION_BYTES_MAX);
    let Ok(Ok(body)) = timeout(REQUEST_TIMEOUT, body.collect()).await else {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, "the question is too large, or late\n");
    };
    work.begins();
    let Ok(_permit) = desk.answers.acquire().await else {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "the speaker is shutting down\n");
    };
    let answer = match serde_json::from_slice(&body.to_bytes()) {
        Ok(question) => answer(&question, desk).await,
        Err(error) => Answer::Error(format!("malformed question: {error}")),
    };
    match serde_json::to_string(&answer) {
        Ok(text) => response(StatusCode::OK, "application/json", text),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
    }
}

async fn answer(question: &NodeQuestion, desk: &Desk) -> Answer {
    let request = match question {
        NodeQuestion::Drain(request) => admin::Request::Drain(*request),
        NodeQuestion::Words(words) => {
            let line: Vec<&str> = words.iter().map(String::as_str).collect();
            match understand(Vocabulary::CommandLine, &line) {
                Ok(Question::Show(query)) => admin::Request::Show(query),
                // What changes something is asked for in another form.
                Ok(_) => return Answer::Error(format!("not answered here: {}", words.join(" "))),
                Err(_) => return Answer::Error(format!("unknown here: {}", words.join(" "))),
            }
        }
    };
    admin::answer(&request, &desk.observer, &desk.orders).await
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    response(status, "text/plain; charset=utf-8", text.to_owned())
}

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
