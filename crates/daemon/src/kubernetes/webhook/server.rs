//! The HTTPS server of the webhook.
//!
//! Any client that reaches the port may connect, so everything is bounded: the number of connections, the
//! duration of each, the size of a request. One request per connection: reviews are rare, and the API server
//! need not check which idle connections still work.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use fairway_cluster::Judgement;
use fairway_ground::Bound;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tracing::{debug, info, warn};

use super::Question;
use super::body::{Bodies, BodyError, parse};
use crate::host::{ClientLimits, Clients, Work};
use crate::kubernetes::serving::Identity;
use crate::metrics::HttpListen;

/// The path in the webhook configuration.
const PATH: &str = "/validate";
/// An API server sends one request for each object that is written. A client that has been silent for half
/// a second makes room.
const LIMITS: ClientLimits = ClientLimits {
    clients_max: 64,
    silence: Duration::from_millis(500),
    bound: Bound::WebhookClient,
};
/// The API server waits half as long.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Reviews that are parsed and judged at the same time.
const REVIEWS_MAX: usize = 2;
/// What is read of a connection before it is asked for; the head of a request must fit.
const READ_BUFFER_BYTES: usize = 16 << 10;
/// Before an object is refused for what it is beside others, it is judged a second time: our watch may be a moment
/// behind the last write.
const SECOND_LOOK: Duration = Duration::from_millis(500);
/// How often a port that is in use is retried, and how long to wait if no connection can be accepted (out of
/// descriptors).
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Never ends. Without a certificate it does not listen.
pub(super) async fn run(
    listen: HttpListen,
    mut identity: watch::Receiver<Option<Identity>>,
    ask: mpsc::Sender<Question>,
) {
    if identity.wait_for(Option::is_some).await.is_err() {
        return;
    }
    let mut has_failed = false;
    loop {
        match listen.bind().await {
            Ok(None) => return,
            Ok(Some(listener)) => {
                info!(%listen, "serving the webhook");
                return serve(&listener, &identity, &ask).await;
            }
            Err(error) if !has_failed => {
                has_failed = true;
                warn!(
                    %error, %listen,
                    "no webhook: cannot listen (--webhook-listen); trying again"
                );
            }
            Err(_) => {}
        }
        sleep(RETRY_INTERVAL).await;
    }
}

async fn serve(
    listener: &TcpListener,
    identity: &watch::Receiver<Option<Identity>>,
    ask: &mpsc::Sender<Question>,
) {
    let desk = Arc::new(Desk {
        ask: ask.clone(),
        bodies: Bodies::default(),
        reviews: Semaphore::new(REVIEWS_MAX),
    });
    let mut clients = Clients::new(LIMITS);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                debug!(%error, "cannot accept a connection to the webhook");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        clients.make_room().await;
        let Some(tls) = identity.borrow().as_ref().map(|it| Arc::clone(&it.tls)) else { continue };
        let desk = Arc::clone(&desk);
        clients.serve(|work| async move {
            match timeout(CONNECTION_TIMEOUT, connection(stream, tls, desk, work)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!(%error, "a connection to the webhook failed"),
                Err(_) => debug!("a connection to the webhook timed out"),
            }
        });
    }
}

/// Where requests are answered.
struct Desk {
    ask: mpsc::Sender<Question>,
    bodies: Bodies,
    reviews: Semaphore,
}

/// One request and its answer.
async fn connection(
    stream: TcpStream,
    tls: Arc<ServerConfig>,
    desk: Arc<Desk>,
    work: Work,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let stream = TlsAcceptor::from(tls).accept(stream).await?;
    let service = service_fn(move |request| {
        let (desk, work) = (Arc::clone(&desk), work.clone());
        async move { Ok::<_, Infallible>(answer(request, &desk, &work).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        // Else a body that waits for its turn fills a buffer of 400 KB, in each of the connections.
        .max_buf_size(READ_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await?;
    Ok(())
}

async fn answer(request: Request<Incoming>, desk: &Desk, work: &Work) -> Response<Full<Bytes>> {
    if request.uri().path() != PATH {
        return plain(StatusCode::NOT_FOUND, "only /validate exists\n");
    }
    if request.method() != Method::POST {
        let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "only POST\n");
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return refusal;
    }
    let body = match desk.bodies.read(request.into_body()).await {
        Ok(body) => body,
        Err(error) => return plain(StatusCode::PAYLOAD_TOO_LARGE, &format!("{error}\n")),
    };
    work.begins();
    match judged(&body.bytes, desk).await {
        Ok(Some(review)) => {
            let kind = HeaderValue::from_static("application/json");
            response(StatusCode::OK, kind, review.to_string())
        }
        Ok(None) => plain(StatusCode::SERVICE_UNAVAILABLE, "the controller is shutting down\n"),
        Err(error) => plain(StatusCode::BAD_REQUEST, &format!("{error}\n")),
    }
}

/// The verdict of the loop; `None` when it has ended.
async fn judged(body: &[u8], desk: &Desk) -> Result<Option<Value>, BodyError> {
    let Some(first) = judged_once(body, desk).await? else { return Ok(None) };
    if !first.may_change {
        return Ok(Some(first.review));
    }
    sleep(SECOND_LOOK).await;
    Ok(judged_once(body, desk).await?.map(|it| it.review))
}

async fn judged_once(body: &[u8], desk: &Desk) -> Result<Option<Judgement>, BodyError> {
    // The values of a body take more memory than its bytes: those of few at a time.
    let Ok(_permit) = desk.reviews.acquire().await else { return Ok(None) };
    let review = parse(body)?;
    let (tell, answer) = oneshot::channel();
    if desk.ask.send(Question { review, answer: tell }).await.is_err() {
        return Ok(None);
    }
    Ok(answer.await.ok())
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    response(status, HeaderValue::from_static("text/plain; charset=utf-8"), text.to_owned())
}

fn response(status: StatusCode, kind: HeaderValue, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests;
