//! The HTTPS server of the webhook.

use std::sync::Arc;
use std::time::Duration;

use fairway_cluster::{Judged, Judgement};
use fairway_ground::Bound;
use http::header::ALLOW;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::info;

use super::Question;
use super::body::{Bodies, BodyError, parse};
use crate::host::ClientLimits;
use crate::http_server::{self, HttpListen, HttpsBounds, Peer, plain};
use crate::kubernetes::serving::Identity;

/// The path in the webhook configuration.
const PATH: &str = "/validate";
/// An API server sends one request for each object that is written, and waits half as long as a connection may last.
const BOUNDS: HttpsBounds = HttpsBounds {
    what: "the webhook",
    clients: ClientLimits {
        clients_max: 64,
        silence: Duration::from_millis(500),
        bound: Bound::WebhookClient,
    },
    connection_timeout: Duration::from_secs(10),
    // With more, a body that waits for its turn fills a buffer of 400 KB, in each of the connections.
    read_buffer_bytes: 16 << 10,
    headers_max: 100,
};
/// Reviews that are parsed and judged at the same time.
const REVIEWS_MAX: usize = 2;
/// Before an object is refused for what it is beside others, it is judged a second time: our watch may be a moment
/// behind the last write.
const SECOND_LOOK: Duration = Duration::from_millis(500);

/// Never ends. Without a certificate it does not listen.
pub(super) async fn run(
    listen: HttpListen,
    mut identity: watch::Receiver<Option<Identity>>,
    ask: mpsc::Sender<Question>,
) {
    if identity.wait_for(Option::is_some).await.is_err() {
        return;
    }
    if let Some(listener) = listen.bind_patiently("webhook", "--webhook-listen").await {
        info!(%listen, "serving the webhook");
        serve(&listener, &identity, &ask).await;
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
    let config = || identity.borrow().as_ref().map(|it| Arc::clone(&it.tls));
    let answer = move |request, peer| {
        let desk = Arc::clone(&desk);
        async move { answer(request, &desk, &peer).await }
    };
    http_server::serve(listener, BOUNDS, config, answer).await;
}

/// Where requests are answered.
struct Desk {
    ask: mpsc::Sender<Question>,
    bodies: Bodies,
    reviews: Semaphore,
}

async fn answer(request: Request<Incoming>, desk: &Desk, peer: &Peer) -> Response<Full<Bytes>> {
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
    peer.work.begins();
    match judged(&body.bytes, desk).await {
        Ok(Some(review)) => http_server::json(StatusCode::OK, review.to_string()),
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
    // The values of a body take more memory than its bytes, and a forecast takes a core: those of few at a time.
    let Ok(_permit) = desk.reviews.acquire().await else { return Ok(None) };
    let review = parse(body)?;
    let (tell, answer) = oneshot::channel();
    if desk.ask.send(Question { review, answer: tell }).await.is_err() {
        return Ok(None);
    }
    Ok(match answer.await {
        Ok(Judged::Now(judgement)) => Some(judgement),
        Ok(Judged::Later(rest)) => spawn_blocking(|| rest.judgement()).await.ok(),
        Err(_) => None,
    })
}

#[cfg(test)]
mod tests;
