//! The model of an API server behind HTTP: this test's own binary, run again in the namespace where
//! the API server lives. On TCP it serves the daemons, with the faults that were set; on a Unix socket it
//! serves the test, and takes orders below `/-/`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use fairway_model_api::{
    ApiServer, Request, Resource, ResourceDefinition, Settings, Status, Timestamp, Verb, WatchId,
    WatchStep,
};
use futures_util::stream::{self, Stream};
use http::request::Parts;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Either, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;

use super::faults::{Counts, Faults};
use super::request::parse;

/// How often a watch checks whether its time is over.
const WATCH_LOOK: Duration = Duration::from_secs(1);
/// Between two attempts to listen again.
const LISTEN_AGAIN: Duration = Duration::from_millis(20);

struct State {
    server: ApiServer,
    faults: Faults,
    counts: Counts,
    touches: u64,
}

struct Skin {
    state: Mutex<State>,
    /// Something changed: watches check for events.
    news: watch::Sender<u64>,
    /// Whether no connection is accepted.
    away: watch::Sender<bool>,
}

/// The clients of a listener.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Door {
    Daemons,
    Test,
}

type Chunk = Result<Frame<Bytes>, Infallible>;
type Chunks = Pin<Box<dyn Stream<Item = Chunk> + Send>>;
type Answer = Response<Either<Full<Bytes>, StreamBody<Chunks>>>;

/// Serves until it is killed.
pub(super) fn serve(socket: &Path, address: SocketAddr) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut server = ApiServer::new(Settings::default());
        more_kinds().into_iter().for_each(|it| server.define(it));
        let (faults, counts) = (Faults::default(), Counts::default());
        let state = Mutex::new(State { server, faults, counts, touches: 0 });
        let (news, away) = (watch::Sender::new(0), watch::Sender::new(false));
        let skin = Arc::new(Skin { state, news, away });
        let listener = UnixListener::bind(socket).context("the test's socket")?;
        tokio::spawn(listen(Arc::clone(&skin), address));
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(converse(Arc::clone(&skin), Door::Test, stream));
        }
    })
}

/// Objects that the daemons need and the model does not have by itself.
fn more_kinds() -> Vec<ResourceDefinition> {
    let of = |group, version, plural, kind| {
        ResourceDefinition::custom(Resource::new(group, version, plural), kind, true)
    };
    vec![
        of("metallb.io", "v1beta1", "configurationstates", "ConfigurationState"),
        of("frrk8s.metallb.io", "v1beta1", "bgpsessionstates", "BGPSessionState"),
        of("apps", "v1", "daemonsets", "DaemonSet"),
        of("apps", "v1", "deployments", "Deployment"),
        of("events.k8s.io", "v1", "events", "Event"),
    ]
}

/// Listens for daemons, except while it is away.
async fn listen(skin: Arc<Skin>, address: SocketAddr) {
    let mut away = skin.away.subscribe();
    loop {
        if away.wait_for(|away| !*away).await.is_err() {
            return;
        }
        let Ok(listener) = TcpListener::bind(address).await else {
            tokio::time::sleep(LISTEN_AGAIN).await;
            continue;
        };
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    if let Ok((stream, _)) = accepted {
                        let _ = stream.set_nodelay(true);
                        tokio::spawn(converse(Arc::clone(&skin), Door::Daemons, stream));
                    }
                }
                _ = away.wait_for(|away| *away) => break,
            }
        }
    }
}

/// One connection, to its end.
async fn converse<S>(skin: Arc<Skin>, door: Door, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut away = skin.away.subscribe();
    let service = service_fn(|request: http::Request<Incoming>| {
        let skin = Arc::clone(&skin);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(|it| it.to_bytes()).unwrap_or_default();
            answer(&skin, door, &head, &body).await
        }
    });
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        _ = connection => {}
        _ = away.wait_for(|away| *away && door == Door::Daemons) => {}
    }
}

/// An answer; an error closes the connection without one.
async fn answer(skin: &Arc<Skin>, door: Door, head: &Parts, body: &[u8]) -> Result<Answer> {
    let path = head.uri.path();
    match (door, path) {
        (Door::Test, _) if path.starts_with("/-/") => return Ok(order(skin, path, body)),
        (_, "/version") => {
            let version = json!({ "major": "1", "minor": "36", "gitVersion": "v1.36.0" });
            return Ok(whole(StatusCode::OK, &version));
        }
        _ => {}
    }
    skin.delay(door).await;
    let Some(request) = parse(head, body) else {
        return Ok(refusal(&Status::unknown_resource()));
    };
    if door == Door::Daemons
        && let Some(status) = skin.state().before(&request)
    {
        return Ok(refusal(&status));
    }
    if request.verb == Verb::Watch {
        let begun = skin.state().server.watch(now(), 0, &request);
        return Ok(match begun {
            Ok(id) => watching(Arc::clone(skin), id, door),
            Err(status) => refusal(&status),
        });
    }
    let response = skin.state().server.handle(now(), 0, &request);
    skin.news.send_modify(|number| *number += 1);
    if door == Door::Daemons && skin.state().loses(&request) {
        bail!("the answer is lost");
    }
    let code = StatusCode::from_u16(response.code).context("a code")?;
    Ok(whole(code, &response.body))
}

impl Skin {
    /// As long as an answer takes now.
    async fn delay(&self, door: Door) {
        let milliseconds = self.state().faults.delay_milliseconds;
        if door == Door::Daemons && milliseconds > 0 {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The faults before a daemon's request is processed.
    fn before(&mut self, request: &Request) -> Option<Status> {
        self.counts.note(request);
        if self.faults.unavailable {
            return Some(Status::unavailable());
        }
        if take_one(&mut self.faults.too_many) {
            return Some(Status::too_many_requests(1));
        }
        let is_status = request.status && request.resource.plural == "services";
        if is_status && take_one(&mut self.faults.conflicts) {
            self.touches += 1;
            let labels =
                json!({ "metadata": { "labels": { "touched": self.touches.to_string() } } });
            let Request { resource, namespace, name, .. } = request;
            let touch = Request::merge_patch(resource, namespace, name, labels);
            self.server.handle(now(), 0, &touch);
        }
        None
    }

    fn loses(&mut self, request: &Request) -> bool {
        let is_read = matches!(request.verb, Verb::Get | Verb::List | Verb::Watch);
        !is_read && take_one(&mut self.faults.lost_answers)
    }
}

fn take_one(left: &mut u64) -> bool {
    let is_due = *left > 0;
    *left = left.saturating_sub(1);
    is_due
}

/// What the test orders.
fn order(skin: &Skin, path: &str, body: &[u8]) -> Answer {
    let mut state = skin.state();
    match path {
        "/-/faults" if !body.is_empty() => match serde_json::from_slice::<Faults>(body) {
            Ok(faults) => {
                skin.away.send_replace(faults.away);
                state.faults = faults;
            }
            Err(error) => return whole(StatusCode::BAD_REQUEST, &json!(error.to_string())),
        },
        "/-/faults" | "/-/counts" => {}
        "/-/cut" => {
            let all: Vec<WatchId> = state.server.watches().collect();
            all.into_iter().for_each(|id| state.server.cut(id));
        }
        "/-/compact" => {
            let latest = state.server.revision();
            state.server.compact(latest);
        }
        "/-/restart" => state.server.restart_replica(0),
        _ => return whole(StatusCode::NOT_FOUND, &json!(path)),
    }
    skin.news.send_modify(|number| *number += 1);
    let told = json!({ "faults": state.faults, "counts": state.counts });
    whole(StatusCode::OK, &told)
}

/// The events of a watch, each as soon as it is there.
fn watching(skin: Arc<Skin>, id: WatchId, door: Door) -> Answer {
    let news = skin.news.subscribe();
    let events = stream::unfold((skin, news), move |(skin, mut news)| async move {
        loop {
            news.mark_unchanged();
            let step = skin.state().server.poll_watch(now(), id);
            match step {
                WatchStep::Event(event) => {
                    skin.delay(door).await;
                    let line = format!("{}\n", event.body());
                    return Some((Ok(Frame::data(Bytes::from(line))), (skin, news)));
                }
                WatchStep::Ended => return None,
                WatchStep::Idle => {
                    let _ = tokio::time::timeout(WATCH_LOOK, news.changed()).await;
                }
            }
        }
    });
    let events: Chunks = Box::pin(events);
    with_type(Response::new(Either::Right(StreamBody::new(events))))
}

fn refusal(status: &Status) -> Answer {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    whole(code, &status.body())
}

fn whole(code: StatusCode, body: &Value) -> Answer {
    let mut answer = Response::new(Either::Left(Full::new(Bytes::from(body.to_string()))));
    *answer.status_mut() = code;
    with_type(answer)
}

fn with_type(mut answer: Answer) -> Answer {
    let json = http::HeaderValue::from_static("application/json");
    answer.headers_mut().insert(http::header::CONTENT_TYPE, json);
    answer
}

#[allow(clippy::disallowed_methods, reason = "this server lives in real time")]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
