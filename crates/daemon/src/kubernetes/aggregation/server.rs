//! The HTTPS server of the node API. Only the API server's front proxy gets past the handshake.
//!
//! Everything is bounded: the number of connections, the duration of each, the size of a request. One request per
//! connection.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::Bound;
use futures_util::stream;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tracing::{debug, info, warn};

use super::call::{Asked, Call, Refusal, What};
use super::fan_out::FanOut;
use super::front_proxy::{FrontProxy, User};
use super::{AggregationOptions, GROUP, VERSION, access, endpoints};
use crate::admin::Answer;
use crate::admin::drain::DrainRequest;
use crate::host::{ClientLimits, Clients, Work};
use crate::kubernetes::api::Api;
use crate::kubernetes::serving::Identity;
use crate::node_api::{Budget, NodeQuestion, Speakers, Unanswered};
use crate::tls;

/// The API servers, each with its users and its checks. A client that has been silent for half a second makes room.
const LIMITS: ClientLimits = ClientLimits {
    clients_max: 64,
    silence: Duration::from_millis(500),
    bound: Bound::NodeApiClient,
};
/// How long a connection may last: the answers of all nodes, to a slow reader.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a client may take until its request is here.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// A drain is a few lines.
const BODY_BYTES_MAX: usize = 64 << 10;
/// What is read of a connection before it is asked for; the head of a request must fit, with the groups of its user.
const READ_BUFFER_BYTES: usize = 64 << 10;
/// One for each group of the user; the buffer above bounds them as well.
const HEADERS_MAX: usize = 1000;
/// Answers that wait for the reader.
const PARTS_MAX: usize = 1;
/// As `fairway drain` has it.
const DRAIN_SECONDS_DEFAULT: u64 = 30;
const DRAIN_SECONDS_MAX: u64 = 86_400;
/// How often a port that is in use is tried again, and how long to wait if no connection can be accepted.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What the server needs, as it becomes known.
pub(super) struct Parts {
    pub(super) own: watch::Receiver<Option<Identity>>,
    pub(super) speakers: watch::Receiver<Option<Identity>>,
    pub(super) front_proxy: watch::Receiver<Option<Arc<FrontProxy>>>,
}

/// Never ends. Without a certificate, and without knowing the front proxy, it does not listen.
pub(super) async fn run(api: Api, options: AggregationOptions, mut parts: Parts) {
    let is_known = async {
        parts.own.wait_for(Option::is_some).await.is_ok()
            && parts.front_proxy.wait_for(Option::is_some).await.is_ok()
    };
    if !is_known.await {
        return;
    }
    let listen = options.listen;
    let desk = Arc::new(Desk {
        api,
        speakers_service: format!("{}-speakers", options.name),
        parts,
        budget: Arc::default(),
    });
    let mut has_failed = false;
    loop {
        match listen.bind().await {
            Ok(None) => return,
            Ok(Some(listener)) => {
                info!(%listen, "serving the node API");
                return serve(&listener, &desk).await;
            }
            Err(error) if !has_failed => {
                has_failed = true;
                warn!(
                    %error, %listen,
                    "no node API: cannot listen (--node-api-listen); trying again"
                );
            }
            Err(_) => {}
        }
        sleep(RETRY_INTERVAL).await;
    }
}

async fn serve(listener: &TcpListener, desk: &Arc<Desk>) {
    let mut clients = Clients::new(LIMITS);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                debug!(%error, "cannot accept a connection to the node API");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        clients.make_room().await;
        let desk = Arc::clone(desk);
        clients.serve(|work| async move {
            match timeout(CONNECTION_TIMEOUT, connection(stream, desk, work)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!(%error, "a connection to the node API failed"),
                Err(_) => debug!("a connection to the node API timed out"),
            }
        });
    }
}

/// One request and its answer.
async fn connection(
    stream: TcpStream,
    desk: Arc<Desk>,
    work: Work,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let front_proxy = desk.parts.front_proxy.borrow().clone().ok_or("no front proxy is known")?;
    let pair = desk.parts.own.borrow().as_ref().map(Identity::pair).ok_or("no certificate")?;
    let config = tls::server_for(pair, front_proxy.authorities.clone())?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let stream = timeout(REQUEST_TIMEOUT, acceptor.accept(stream)).await??;
    let certificates = stream.get_ref().1.peer_certificates();
    let is_front_proxy = certificates
        .and_then(<[_]>::first)
        .is_some_and(|certificate| front_proxy.is_named_by(certificate));
    let service = service_fn(move |request: Request<Incoming>| {
        let (desk, work) = (Arc::clone(&desk), work.clone());
        let user = is_front_proxy.then(|| front_proxy.user(request.headers())).flatten();
        async move {
            let reply = desk.reply(request, user, &work).await;
            Ok::<_, Infallible>(reply.unwrap_or_else(|refusal| refused(&refusal)))
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .keep_alive(false)
        .max_headers(HEADERS_MAX)
        .max_buf_size(READ_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await?;
    Ok(())
}

/// Where requests are answered.
struct Desk {
    api: Api,
    /// The Service of the speakers.
    speakers_service: String,
    parts: Parts,
    budget: Arc<Budget>,
}

impl Desk {
    async fn reply(
        &self,
        request: Request<Incoming>,
        user: Option<User>,
        work: &Work,
    ) -> Result<Response<Body>, Refusal> {
        let user = user.ok_or_else(|| Refusal {
            code: 401,
            reason: "Unauthorized",
            message: "only the API server's front proxy may ask here".to_owned(),
        })?;
        work.begins();
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let asked = match Call::of(request.method(), path, query)? {
            Call::Discovery(answer) => return Ok(json_response(StatusCode::OK, &answer)),
            Call::Asked(asked) => asked,
        };
        access::check(&self.api, &user, &asked).await?;
        self.answer(asked, request.into_body(), &user).await
    }

    async fn answer(
        &self,
        asked: Asked,
        body: Incoming,
        user: &User,
    ) -> Result<Response<Body>, Refusal> {
        let (node, request, code) = match asked.what {
            What::Read { words, nodes } => return self.read(words, nodes).await,
            What::LookAtDrain(node) => (node, DrainRequest::Look, StatusCode::OK),
            What::EndDrain(node) => (node, DrainRequest::Undo, StatusCode::OK),
            What::Drain => {
                let (node, request) = drain_of(body).await?;
                (node, request, StatusCode::CREATED)
            }
        };
        if request != DrainRequest::Look {
            info!(user = user.name, node, ?request, "a drain is ordered by the node API");
        }
        let answer = self.drain(&node, request).await?;
        Ok(json_response(code, &answer))
    }

    async fn read(
        &self,
        words: Vec<String>,
        nodes: Vec<String>,
    ) -> Result<Response<Body>, Refusal> {
        let speakers = self.endpoints().await?;
        let nodes: BTreeMap<String, Option<SocketAddr>> = match nodes.is_empty() {
            true => speakers.into_iter().map(|(node, at)| (node, Some(at))).collect(),
            false => nodes
                .into_iter()
                .map(|node| {
                    let at = speakers.get(&node).copied();
                    (node, at)
                })
                .collect(),
        };
        let fan_out = FanOut {
            speakers: self.speakers()?,
            budget: Arc::clone(&self.budget),
            question: NodeQuestion::Words(words),
            nodes,
        };
        let (to, mut parts) = mpsc::channel(PARTS_MAX);
        // Ends with the answer.
        let mut task = JoinSet::new();
        task.spawn(fan_out.write(to));
        let parts = stream::poll_fn(move |context| {
            let _ = &task;
            parts.poll_recv(context).map(|part| part.map(|it| Ok(Frame::data(it))))
        });
        Ok(response(StatusCode::OK, StreamBody::new(parts).boxed_unsync()))
    }

    async fn drain(&self, node: &str, request: DrainRequest) -> Result<Value, Refusal> {
        let speakers = self.endpoints().await?;
        let Some(address) = speakers.get(node) else {
            return Err(Refusal::not_found(format!("node {node:?}: {}", Unanswered::NoSpeaker)));
        };
        let question = NodeQuestion::Drain(request);
        let answered = self.speakers()?.ask(*address, &question, &self.budget).await;
        let answered =
            answered.map_err(|error| Refusal::unavailable(format!("node {node:?}: {error}")))?;
        let Answer::Drain(report) = &answered.answer else {
            return Err(Refusal::unavailable(format!("node {node:?}: an unexpected answer")));
        };
        Ok(json!({
            "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "Drain",
            "metadata": { "name": node }, "status": report,
        }))
    }

    async fn endpoints(&self) -> Result<BTreeMap<String, SocketAddr>, Refusal> {
        let service = &self.speakers_service;
        let speakers = endpoints::list(&self.api, service).await.map_err(|problem| {
            Refusal::unavailable(format!("EndpointSlices of Service {service}: {problem}"))
        })?;
        if speakers.is_empty() {
            let message = format!("Service {service} has no endpoints: no speaker is running");
            return Err(Refusal::unavailable(message));
        }
        Ok(speakers)
    }

    fn speakers(&self) -> Result<Speakers, Refusal> {
        let unusable = |error: String| Refusal::unavailable(format!("certificates: {error}"));
        let identity = |of: &watch::Receiver<Option<Identity>>| {
            of.borrow().clone().ok_or_else(|| unusable("not issued yet".to_owned()))
        };
        let roots =
            identity(&self.parts.speakers)?.roots().map_err(|it| unusable(it.to_string()))?;
        Speakers::new(roots, identity(&self.parts.own)?.pair())
            .map_err(|error: rustls::Error| unusable(error.to_string()))
    }
}

/// The node that a Drain names, and how long its routers have.
async fn drain_of(body: Incoming) -> Result<(String, DrainRequest), Refusal> {
    let body = timeout(REQUEST_TIMEOUT, Limited::new(body, BODY_BYTES_MAX).collect()).await;
    let Ok(Ok(body)) = body else {
        return Err(Refusal::bad_request("the body is larger than 64 KiB, or late"));
    };
    let drain: Value = serde_json::from_slice(&body.to_bytes())
        .map_err(|error| Refusal::bad_request(format!("the body is not JSON: {error}")))?;
    let node = drain.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if node.is_empty() {
        return Err(Refusal::bad_request("metadata.name is missing: the node to drain"));
    }
    let seconds = match drain.pointer("/spec/waitSeconds") {
        None | Some(Value::Null) => DRAIN_SECONDS_DEFAULT,
        Some(value) => value.as_u64().filter(|it| *it <= DRAIN_SECONDS_MAX).ok_or_else(|| {
            let message = format!("spec.waitSeconds is {value}; allowed: 0 to {DRAIN_SECONDS_MAX}");
            Refusal::bad_request(message)
        })?,
    };
    let wait_milliseconds = seconds.saturating_mul(1000);
    Ok((node.to_owned(), DrainRequest::Begin { wait_milliseconds }))
}

fn refused(refusal: &Refusal) -> Response<Body> {
    let code = StatusCode::from_u16(refusal.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json_response(code, &refusal.status())
}

fn json_response(code: StatusCode, value: &Value) -> Response<Body> {
    response(code, Full::new(Bytes::from(value.to_string())).boxed_unsync())
}

fn response(code: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
