//! The HTTP server of metrics and probes; with `--metrics-secure-listen` a second port has HTTPS, and
//! `/metrics` is there alone.
//!
//! Any client that reaches the port may connect, so everything is bounded: the number of connections, the
//! duration of each, the size of a request; and one page is written at a time. When all connections are in
//! use the oldest is closed, since a liveness probe without an answer kills the daemon.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ALLOW, AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info};

use fairway_ground::Bound;

use super::page::Page;
use super::secure::{Access, Certificate, Secured, Verdict};
use super::{ClientCounters, Collect, process};
use crate::http_server::{HttpListen, plain, response};

/// Prometheus, a kubelet and some people need a few.
const CONNECTIONS_MAX: usize = 64;
/// How long a connection may last: one request, and a page of ten thousand Services to a distant client.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a request may take to arrive.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest request: a line and a few headers. The minimum that hyper accepts.
const REQUEST_LENGTH_BYTES_MAX: usize = 8192;
/// How long the daemon may take to answer before it counts as hanging.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait if no connection can be accepted (out of descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The format of `/metrics`.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves until it is dropped.
#[derive(Debug)]
pub struct Server(AbortHandle);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Server {
    /// Starts serving. A port that is in use or forbidden is logged once, and retried: another daemon may
    /// release it.
    ///
    /// Must be called inside a tokio runtime.
    pub fn start(
        listen: HttpListen,
        secured: Option<Secured>,
        counters: Arc<ClientCounters>,
        daemon: impl Collect,
    ) -> Self {
        let option = daemon.listen_option();
        let answering = Arc::new(Answering { counters, daemon, writing: Mutex::new(()) });
        let front = Front::Plain { has_metrics: secured.is_none(), option };
        let plain = run(listen, front, Arc::clone(&answering));
        let both = async move {
            match secured {
                None => plain.await,
                Some(Secured { listen, certificate, access }) => {
                    let secure = run(listen, Front::Secure { certificate, access }, answering);
                    tokio::join!(plain, secure);
                }
            }
        };
        Self(tokio::spawn(both).abort_handle())
    }
}

/// How a port is served.
enum Front {
    /// HTTP: probes, and metrics unless they have a port with TLS.
    Plain { has_metrics: bool, option: &'static str },
    /// HTTPS, for clients that may read.
    Secure { certificate: Certificate, access: Arc<dyn Access> },
}

impl Front {
    /// The option that names the port.
    fn option(&self) -> &'static str {
        match self {
            Self::Plain { option, .. } => option,
            Self::Secure { .. } => "--metrics-secure-listen",
        }
    }
}

async fn run(listen: HttpListen, front: Front, answering: Arc<Answering<impl Collect>>) {
    let (option, front) = (front.option(), Arc::new(front));
    let listener = listen.bind_patiently("metrics and no probes", option).await;
    if let Some(listener) = listener {
        info!(%listen, option, "serving metrics and probes");
        serve(&listener, &front, &answering).await;
    }
}

async fn serve(
    listener: &TcpListener,
    front: &Arc<Front>,
    answering: &Arc<Answering<impl Collect>>,
) {
    // Dropping it ends the connections.
    let mut connections = JoinSet::new();
    let mut by_age: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                debug!(%error, "cannot accept a connection for metrics");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        by_age.retain(|it| !it.is_finished());
        if by_age.len() >= CONNECTIONS_MAX
            && let Some(oldest) = by_age.pop_front()
        {
            oldest.abort();
            Bound::MetricsClient.count();
        }
        let connection = connection(stream, Arc::clone(front), Arc::clone(answering));
        by_age.push_back(connections.spawn(connection));
    }
}

/// One request and its answer.
async fn connection(stream: TcpStream, front: Arc<Front>, answering: Arc<Answering<impl Collect>>) {
    let serving = async {
        match &*front {
            Front::Plain { .. } => exchange(stream, &front, &answering).await,
            Front::Secure { certificate, .. } => {
                let handshake = TlsAcceptor::from(certificate.config()).accept(stream);
                match timeout(REQUEST_TIMEOUT, handshake).await {
                    Ok(Ok(stream)) => exchange(stream, &front, &answering).await,
                    Ok(Err(error)) => debug!(%error, "a TLS handshake for metrics failed"),
                    Err(_) => debug!("a TLS handshake for metrics timed out"),
                }
            }
        }
    };
    if timeout(CONNECTION_TIMEOUT, serving).await.is_err() {
        debug!("a connection for metrics timed out");
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    front: &Arc<Front>,
    answering: &Arc<Answering<impl Collect>>,
) {
    let service = service_fn(move |request| {
        let (front, answering) = (Arc::clone(front), Arc::clone(answering));
        async move { Ok::<_, Infallible>(answering.answer(&request, &front).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .max_buf_size(REQUEST_LENGTH_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = serving.await {
        debug!(%error, "a connection for metrics failed");
    }
}

/// What the answers are made from.
struct Answering<T> {
    counters: Arc<ClientCounters>,
    daemon: T,
    /// Held while a page is written.
    writing: Mutex<()>,
}

impl<T: Collect> Answering<T> {
    async fn answer(&self, request: &Request<Incoming>, front: &Front) -> Response<Full<Bytes>> {
        if let Front::Secure { access, .. } = front
            && let Some(refusal) = refusal(request, &**access).await
        {
            return refusal;
        }
        if request.method() != Method::GET {
            let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET is supported\n");
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            return refusal;
        }
        match request.uri().path() {
            "/metrics" if matches!(front, Front::Plain { has_metrics: false, .. }) => plain(
                StatusCode::NOT_FOUND,
                "metrics are served with TLS only, on the port of --metrics-secure-listen\n",
            ),
            "/metrics" => self.metrics().await,
            "/healthz" => self.health().await,
            "/readyz" => self.readiness(),
            path => match self.daemon.text_at(path) {
                Some(text) => plain(StatusCode::OK, text),
                None => {
                    let text = "not found: use /metrics, /healthz or /readyz\n";
                    plain(StatusCode::NOT_FOUND, text)
                }
            },
        }
    }

    async fn metrics(&self) -> Response<Full<Bytes>> {
        let write = async {
            let _writing = self.writing.lock().await;
            let mut page = Page::default();
            self.daemon.collect(&mut page).await.then_some(page)
        };
        let Ok(Some(mut page)) = timeout(ANSWER_TIMEOUT, write).await else { return hangs() };
        self.counters.write(&mut page);
        process::write(&mut page);
        response(StatusCode::OK, TEXT, page.into_text())
    }

    fn readiness(&self) -> Response<Full<Bytes>> {
        let why = match self.counters.is_loaded() {
            true => self.daemon.unready(),
            false => Some("not all objects have been read yet".to_owned()),
        };
        match why {
            None => plain(StatusCode::OK, "ok\n"),
            Some(why) => {
                response(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("not ready: {why}\n"))
            }
        }
    }

    async fn health(&self) -> Response<Full<Bytes>> {
        match timeout(ANSWER_TIMEOUT, self.daemon.is_alive()).await {
            Ok(true) => plain(StatusCode::OK, "ok\n"),
            Ok(false) | Err(_) => hangs(),
        }
    }
}

/// The answer to a client that may not read.
async fn refusal(
    request: &Request<Incoming>,
    access: &dyn Access,
) -> Option<Response<Full<Bytes>>> {
    let header = request.headers().get(AUTHORIZATION).and_then(|it| it.to_str().ok());
    let token = header.and_then(|it| it.split_once(' ')).filter(|(scheme, token)| {
        scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty()
    });
    let verdict = match token {
        Some((_, token)) => access.verdict(token.trim()).await,
        None => Verdict::Unauthenticated,
    };
    match verdict {
        Verdict::Allowed => None,
        Verdict::Unauthenticated => {
            let text = "unauthorized: a valid bearer token is required\n";
            let mut refusal = plain(StatusCode::UNAUTHORIZED, text);
            refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            Some(refusal)
        }
        Verdict::Forbidden => Some(plain(
            StatusCode::FORBIDDEN,
            "forbidden: the role of this client does not allow to get the path /metrics\n",
        )),
        Verdict::Unknown => Some(plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "the Kubernetes API does not answer, so it is unknown who may read\n",
        )),
    }
}

fn hangs() -> Response<Full<Bytes>> {
    plain(StatusCode::SERVICE_UNAVAILABLE, "the daemon does not answer\n")
}

#[cfg(test)]
mod tests;
