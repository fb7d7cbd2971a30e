//! HTTP/1.1, within bounds: anybody who reaches the port may connect.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::Bound;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::body::Reply;
use super::looks::Looks;
use super::reply::{Replies, reply, value};
use super::sight::{Sight, mark};
use super::writing::Writing;
use crate::admin::Observer;
use crate::host::{ClientLimits, Clients, Work};

/// A team looks at it, and a few machines ask for JSON.
const LIMITS: ClientLimits = ClientLimits {
    clients_max: 256,
    silence: Duration::from_secs(1),
    bound: Bound::LookingGlassClient,
};
/// So many of them may follow events: there is room for others that ask once.
const VIEWERS_MAX: usize = 224;
/// How long the head of a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take that ends.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest head of a request: browsers send many headers.
const REQUEST_LENGTH_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 64;
/// So often a viewer hears something, so that no proxy takes the connection for idle.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// How long to wait if no connection can be accepted (out of descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until it is dropped.
pub(super) async fn serve(
    listener: &TcpListener,
    sights: watch::Receiver<Sight>,
    observer: Observer,
) -> Infallible {
    let replies = Replies { sights, looks: Looks::new(), observer };
    let server = Server { replies, viewers: Arc::new(Semaphore::new(VIEWERS_MAX)) };
    let mut clients = Clients::new(LIMITS);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                debug!(%error, "cannot accept a connection to the looking glass");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        clients.make_room().await;
        let server = server.clone();
        clients.serve(|work| async move {
            if let Err(error) = server.exchange(stream, work).await {
                debug!(%error, "a connection to the looking glass failed");
            }
        });
    }
}

#[derive(Clone)]
struct Server {
    replies: Replies,
    viewers: Arc<Semaphore>,
}

impl Server {
    /// One request and its reply, which has no end for a viewer.
    async fn exchange(self, stream: TcpStream, work: Work) -> Result<(), hyper::Error> {
        let (follows, mut following) = mpsc::channel::<()>(1);
        let service = service_fn(move |request| {
            let (server, work, follows) = (self.clone(), work.clone(), follows.clone());
            async move {
                work.begins();
                Ok::<_, Infallible>(server.answer(&request, &follows).await)
            }
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(REQUEST_TIMEOUT)
            .max_buf_size(REQUEST_LENGTH_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .keep_alive(false)
            .serve_connection(TokioIo::new(Writing::new(stream)), service);
        tokio::pin!(serving);
        let ends = async {
            sleep(ANSWER_TIMEOUT).await;
            // A viewer stays.
            if following.try_recv().is_ok() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            served = &mut serving => served,
            () = ends => {
                debug!("an answer of the looking glass took too long");
                Ok(())
            }
        }
    }

    async fn answer(
        &self,
        request: &Request<Incoming>,
        follows: &mpsc::Sender<()>,
    ) -> Response<Reply> {
        let is_viewer = request.uri().path() == "/events" && request.method() == Method::GET;
        if !is_viewer {
            return self.replies.reply(request).await;
        }
        let Ok(place) = Arc::clone(&self.viewers).try_acquire_owned() else {
            let text = "too many look at this node; try again later\n";
            let mut full =
                reply(StatusCode::SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", text);
            full.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
            return full;
        };
        let _ = follows.try_send(());
        let last = request.headers().get("last-event-id").and_then(|it| it.to_str().ok());
        let seen = last.map(str::to_owned).or_else(|| value(request.uri(), "seen"));
        // One event waits beside those that the connection has taken.
        let (send, events) = mpsc::channel(1);
        tokio::spawn(follow(self.replies.sights.clone(), seen.unwrap_or_default(), send, place));
        let mut response = reply(StatusCode::OK, "text/event-stream", "");
        // nginx hands events on as they come.
        response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
        *response.body_mut() = Reply::Events(events);
        response
    }
}

/// Sends what changes after `seen`, until the viewer is gone. One that is slow skips what was replaced meanwhile.
async fn follow(
    mut sights: watch::Receiver<Sight>,
    seen: String,
    send: mpsc::Sender<Bytes>,
    _place: OwnedSemaphorePermit,
) {
    let mut number = sights.borrow().number_of(&seen);
    if send.send(Bytes::from_static(b": the looking glass\n\n")).await.is_err() {
        return;
    }
    loop {
        let due: Vec<Bytes> = {
            let sight = sights.borrow_and_update();
            let mut due: Vec<Bytes> = sight.after(number).map(|it| it.event.clone()).collect();
            if !due.is_empty() {
                due.push(mark(&sight.seen()));
            }
            number = sight.number;
            due
        };
        for event in due {
            if send.send(event).await.is_err() {
                return;
            }
        }
        let changed = tokio::select! {
            changed = timeout(HEARTBEAT_INTERVAL, sights.changed()) => changed,
            () = send.closed() => return,
        };
        match changed {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => {
                if send.send(Bytes::from_static(b": still here\n\n")).await.is_err() {
                    return;
                }
            }
        }
    }
}
