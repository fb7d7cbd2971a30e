//! The HTTPS server of the webhook.
//!
//! Any client that reaches the port may connect, so everything is bounded: the number of connections, the
//! duration of each, the size of a request. One request per connection: reviews are rare, and the API server
//! need not check which idle connections still work.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use fairway_cluster::Judgement;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tracing::{debug, info, warn};

use super::Question;
use super::certificate::Identity;
use crate::metrics::HttpListen;

/// The path in the webhook configuration.
const PATH: &str = "/validate";
/// An API server sends one request for each object that is written.
const CONNECTIONS_MAX: usize = 64;
/// The API server waits half as long.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// The API server accepts no larger object, and a review holds two of them; few reach a thousandth of it.
const BODY_BYTES_MAX: usize = 3 << 20;
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
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // Dropping it ends the connections.
    let mut connections = JoinSet::new();
    // The semaphore is never closed.
    while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                debug!(%error, "cannot accept a connection to the webhook");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let Some(tls) = identity.borrow().as_ref().map(|it| Arc::clone(&it.tls)) else { continue };
        let connection = connection(stream, tls, ask.clone());
        connections.spawn(async move {
            match timeout(CONNECTION_TIMEOUT, connection).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!(%error, "a connection to the webhook failed"),
                Err(_) => debug!("a connection to the webhook timed out"),
            }
            drop(permit);
        });
    }
}

/// One request and its answer.
async fn connection(
    stream: TcpStream,
    tls: Arc<ServerConfig>,
    ask: mpsc::Sender<Question>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let stream = TlsAcceptor::from(tls).accept(stream).await?;
    let service = service_fn(move |request| {
        let ask = ask.clone();
        async move { Ok::<_, Infallible>(answer(request, &ask).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await?;
    Ok(())
}

async fn answer(request: Request<Incoming>, ask: &mpsc::Sender<Question>) -> Response<Full<Bytes>> {
    if request.uri().path() != PATH {
        return plain(StatusCode::NOT_FOUND, "only /validate exists\n");
    }
    if request.method() != Method::POST {
        let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "only POST\n");
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return refusal;
    }
    let body = match Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return plain(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 3 MiB\n"),
    };
    let Ok(review) = serde_json::from_slice::<Value>(&body) else {
        return plain(StatusCode::BAD_REQUEST, "the body is not JSON\n");
    };
    match judged(review, ask).await {
        Some(review) => {
            let kind = HeaderValue::from_static("application/json");
            response(StatusCode::OK, kind, review.to_string())
        }
        None => plain(StatusCode::SERVICE_UNAVAILABLE, "the controller is shutting down\n"),
    }
}

/// The verdict of the loop; `None` when it has ended.
async fn judged(review: Value, ask: &mpsc::Sender<Question>) -> Option<Value> {
    let first = judged_once(review.clone(), ask).await?;
    if !first.may_change {
        return Some(first.review);
    }
    sleep(SECOND_LOOK).await;
    Some(judged_once(review, ask).await?.review)
}

async fn judged_once(review: Value, ask: &mpsc::Sender<Question>) -> Option<Judgement> {
    let (tell, answer) = oneshot::channel();
    ask.send(Question { review, answer: tell }).await.ok()?;
    answer.await.ok()
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
