//! The HTTPS server of the node API. Only the API server's front proxy gets past the handshake.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::Bound;
use futures_util::stream;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::rustls::{self, ServerConfig};
use tracing::{debug, info};

use super::call::{Asked, Call, Refusal, What};
use super::fan_out::{Endpoint, FanOut};
use super::front_proxy::{FrontProxy, User};
use super::seats::Seats;
use super::{AggregationOptions, GROUP, VERSION, access, endpoints};
use crate::admin::drain::DrainRequest;
use crate::host::ClientLimits;
use crate::http_server::{self, HttpsBounds, Peer};
use crate::kubernetes::api::Api;
use crate::kubernetes::serving::Identity;
use crate::node_api::{LargeAnswers, NodeQuestion, Speakers, Unanswered};
use crate::tls;

/// The API servers, each with its users and its checks; the answers of all nodes, to a slow reader.
const BOUNDS: HttpsBounds = HttpsBounds {
    what: "the node API",
    clients: ClientLimits {
        clients_max: 64,
        silence: Duration::from_millis(500),
        bound: Bound::NodeApiClient,
    },
    connection_timeout: Duration::from_secs(60),
    // A user may be in hundreds of groups, each of which is a header.
    read_buffer_bytes: 64 << 10,
    headers_max: 1000,
};
/// How long a client may take for its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// A drain is a few lines.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Parts of an answer that wait for the reader.
const PARTS_MAX: usize = 1;
/// As `fairway drain` has it.
const DRAIN_SECONDS_DEFAULT: u64 = 30;
const DRAIN_SECONDS_MAX: u64 = 86_400;
/// A kubelet takes so long to hand the CA of a new certificate on to a speaker.
const HANDING_ON: Duration = Duration::from_secs(300);

/// What anybody else is told.
const STRANGER: &str =
    "only the API server's front proxy may ask here, for a user whose name and groups are UTF-8";

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
    let Some(listener) = listen.bind_patiently("node API", "--node-api-listen").await else {
        return;
    };
    info!(%listen, "serving the node API");
    let (tell_client, client) = watch::channel(None);
    let desk = Arc::new(Desk {
        api,
        speakers_service: format!("{}-speakers", options.name),
        client,
        parts,
        seats: Seats::default(),
        large: LargeAnswers::default(),
    });
    let config = || desk.config().inspect_err(|why| debug!("no node API: {why}")).ok();
    let answer = {
        let desk = Arc::clone(&desk);
        move |request, peer| {
            let desk = Arc::clone(&desk);
            async move {
                let reply = desk.reply(request, &peer).await;
                reply.unwrap_or_else(|refusal| refused(&refusal))
            }
        }
    };
    tokio::join!(
        hand_on(desk.parts.own.clone(), tell_client),
        http_server::serve(&listener, BOUNDS, config, answer),
    );
}

/// Publishes the certificate that speakers accept by now: the first one at once, since speakers that have no CA yet
/// cannot answer, and each new one when they have its CA.
async fn hand_on(
    mut own: watch::Receiver<Option<Identity>>,
    tell: watch::Sender<Option<Identity>>,
) {
    loop {
        tell.send_replace(own.borrow_and_update().clone());
        if own.changed().await.is_err() {
            // The keeper ends with this task.
            return std::future::pending().await;
        }
        sleep(HANDING_ON).await;
    }
}

/// Where requests are answered.
struct Desk {
    api: Api,
    /// The Service of the speakers.
    speakers_service: String,
    /// The certificate that speakers accept.
    client: watch::Receiver<Option<Identity>>,
    parts: Parts,
    seats: Seats,
    large: LargeAnswers,
}

impl Desk {
    /// Our certificate of now, for the front proxy of now.
    fn config(&self) -> Result<Arc<ServerConfig>, String> {
        let front_proxy =
            self.parts.front_proxy.borrow().clone().ok_or("no front proxy is known")?;
        let pair = self.parts.own.borrow().as_ref().map(Identity::pair).ok_or("no certificate")?;
        let config = tls::server_for(pair, front_proxy.authorities.clone());
        config.map(Arc::new).map_err(|error| error.to_string())
    }

    /// The user, if the front proxy names one.
    fn user(&self, request: &Request<Incoming>, peer: &Peer) -> Option<User> {
        let front_proxy = self.parts.front_proxy.borrow().clone()?;
        let certificate = peer.certificate.as_ref()?;
        front_proxy.is_named_by(certificate).then(|| front_proxy.user(request.headers()))?
    }

    async fn reply(
        &self,
        request: Request<Incoming>,
        peer: &Peer,
    ) -> Result<Response<Body>, Refusal> {
        let user = self.user(&request, peer).ok_or_else(|| Refusal {
            code: 401,
            reason: "Unauthorized",
            message: STRANGER.to_owned(),
        })?;
        peer.work.begins();
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let asked = match Call::of(request.method(), path, query)? {
            Call::Discovery(answer) => return Ok(json_response(StatusCode::OK, &answer)),
            Call::Asked(asked) => asked,
        };
        access::check(&self.api, &user, &asked).await?;
        let is_end = *request.method() == Method::DELETE;
        let body =
            if is_end || asked.what == What::Drain { body_of(request).await? } else { Value::Null };
        if body.get("dryRun").and_then(Value::as_array).is_some_and(|it| !it.is_empty()) {
            return Err(Refusal::bad_request("dryRun is not supported: a drain is an order"));
        }
        self.answer(asked, &body, &user).await
    }

    async fn answer(
        &self,
        asked: Asked,
        body: &Value,
        user: &User,
    ) -> Result<Response<Body>, Refusal> {
        let (node, request, code) = match asked.what {
            What::Read { words, nodes, is_text } => {
                return self.read(words, nodes, is_text, user).await;
            }
            What::LookAtDrain(node) => (node, DrainRequest::Look, StatusCode::OK),
            What::EndDrain(node) => (node, DrainRequest::Undo, StatusCode::OK),
            What::Drain => {
                let (node, request) = drain_of(body)?;
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
        is_text: bool,
        user: &User,
    ) -> Result<Response<Body>, Refusal> {
        let Some(seat) = self.seats.take(&user.name) else {
            let message = "too many questions are being answered: ask again in a moment";
            return Err(Refusal::too_many(message));
        };
        let speakers = self.endpoints().await?;
        let nodes: BTreeMap<String, Endpoint> = match nodes.is_empty() {
            true => speakers.into_iter().map(|(node, at)| (node, endpoint(Some(at)))).collect(),
            false => nodes
                .into_iter()
                .map(|node| {
                    let at = speakers.get(&node).copied();
                    (node, endpoint(at))
                })
                .collect(),
        };
        let question = NodeQuestion::Words(words);
        let fan_out = FanOut { speakers: self.speakers()?, question, is_text, nodes, seat };
        let (to, mut parts) = mpsc::channel(PARTS_MAX);
        // Ends with the answer.
        let mut task = JoinSet::new();
        task.spawn(fan_out.write(to));
        let mut place = None;
        let parts = stream::poll_fn(move |context| {
            let _ = &task;
            // The part before is sent, since another one is asked for.
            drop(place.take());
            parts.poll_recv(context).map(|part| {
                let part = part?;
                place = part.place;
                Some(Ok(Frame::data(part.bytes)))
            })
        });
        Ok(response(StatusCode::OK, StreamBody::new(parts).boxed_unsync()))
    }

    async fn drain(&self, node: &str, request: DrainRequest) -> Result<Value, Refusal> {
        let speakers = self.endpoints().await?;
        let of_node = |error: Unanswered| {
            let message = format!("node {node:?}: {error}");
            match error {
                Unanswered::NoSpeaker => Refusal::not_found(message),
                Unanswered::Refused(_) => Refusal::conflict(message),
                _ => Refusal::unavailable(message),
            }
        };
        let address = endpoint(speakers.get(node).copied()).map_err(of_node)?;
        let question = NodeQuestion::Drain(request);
        let answered = self.speakers()?.ask(address, &question).await.map_err(of_node)?;
        let report: Value = serde_json::from_str(&answered.text)
            .map_err(|_| of_node(Unanswered::Malformed(address)))?;
        Ok(json!({
            "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "Drain",
            "metadata": { "name": node }, "status": report,
        }))
    }

    async fn endpoints(&self) -> Result<BTreeMap<String, Option<SocketAddr>>, Refusal> {
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
        Speakers::new(roots, identity(&self.client)?.pair(), self.large.clone())
            .map_err(|error: rustls::Error| unusable(error.to_string()))
    }
}

/// Where the speaker of a node is; `None`: it has none, and without an address it does not have the port.
fn endpoint(found: Option<Option<SocketAddr>>) -> Endpoint {
    found.ok_or(Unanswered::NoSpeaker)?.ok_or(Unanswered::NotServing)
}

/// The JSON of a body; null where there is none.
async fn body_of(request: Request<Incoming>) -> Result<Value, Refusal> {
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
    let Ok(Ok(body)) = timeout(REQUEST_TIMEOUT, body).await else {
        return Err(Refusal::bad_request("the body is larger than 64 KiB, or late"));
    };
    let bytes = body.to_bytes();
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::bad_request(format!("the body is not JSON: {error}")))
}

/// The node that a Drain names, and how long its routers have.
fn drain_of(drain: &Value) -> Result<(String, DrainRequest), Refusal> {
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
    http_server::json(code, value.to_string()).map(BodyExt::boxed_unsync)
}

fn response(code: StatusCode, body: Body) -> Response<Body> {
    http_server::json(code, String::new()).map(|_| body)
}
