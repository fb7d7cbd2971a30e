//! The HTTPS server of the webhook.

use std::sync::Arc;
use std::time::{Duration, Instant};

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
/// Within a second of it the answer is sent: the API server waits 5 s.
const FORECAST_TIMEOUT: Duration = Duration::from_secs(4);

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
        Ok(review) => http_server::json(StatusCode::OK, review.to_string()),
        Err(error) => plain(error.status(), &format!("{error}\n")),
    }
}

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
enum NotJudged {
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error("the controller is shutting down")]
    Leaving,
    /// The API server follows the `failurePolicy`.
    #[error("what the write disrupts was not found out within 4 s")]
    Late,
}

impl NotJudged {
    fn status(&self) -> StatusCode {
        match self {
            Self::Body(_) => StatusCode::BAD_REQUEST,
            Self::Leaving => StatusCode::SERVICE_UNAVAILABLE,
            Self::Late => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}

/// The verdict of the loop.
async fn judged(body: &[u8], desk: &Desk) -> Result<Value, NotJudged> {
    #[allow(clippy::disallowed_methods, reason = "an edge: the API server waits from here")]
    let since = Instant::now();
    let first = judged_once(body, desk, since).await?;
    if !first.may_change {
        return Ok(first.review);
    }
    sleep(SECOND_LOOK).await;
    Ok(judged_once(body, desk, since).await?.review)
}

async fn judged_once(body: &[u8], desk: &Desk, since: Instant) -> Result<Judgement, NotJudged> {
    // The values of a body take more memory than its bytes, and a forecast takes a core: those of few at a time.
    let Ok(_permit) = desk.reviews.acquire().await else { return Err(NotJudged::Leaving) };
    let review = parse(body)?;
    let (tell, answer) = oneshot::channel();
    if desk.ask.send(Question { review, answer: tell }).await.is_err() {
        return Err(NotJudged::Leaving);
    }
    match answer.await {
        Ok(Judged::Now(judgement)) => Ok(judgement),
        Ok(Judged::Later(rest)) => {
            let is_late = move || since.elapsed() >= FORECAST_TIMEOUT;
            let judgement = spawn_blocking(move || rest.judgement(is_late)).await;
            judgement.map_err(|_| NotJudged::Leaving)?.map_err(|_| NotJudged::Late)
        }
        Err(_) => Err(NotJudged::Leaving),
    }
}

#[cfg(test)]
mod tests;
