//! The health of the proxy, and of each Service that balancers ask for: kube-proxy's ports, paths and JSON.
//!
//! The proxy is healthy unless a change waits for longer than [`OVERDUE`], or its loop stands still for as long; a node that is about to go is not eligible for
//! new connections. Answers come from shared facts, so a loop that hangs is noticed. Knows no packet.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairway_ground::{Instant, Utc};
use fairway_model::ObjectName;
use http::header::{HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use serde_json::json;
use tokio::task::AbortHandle;
use tracing::info;

use crate::host::{Clock, epoch_seconds};
use crate::http_server::{HttpListen, json as json_reply, plain, serve_probes};

/// How long a change may wait: twice kube-proxy's `syncPeriod`.
pub(super) const OVERDUE: Duration = Duration::from_secs(60);

/// What the loop tells.
#[derive(Debug, Clone, Default)]
struct Facts {
    /// Since when the oldest change waits.
    queued_at: Option<Instant>,
    /// When the loop began its last turn, if it has begun.
    turned_at: Option<Instant>,
    /// When the kernel was last as wanted, in Unix time.
    updated_epoch_seconds: u64,
    /// The node may get new connections.
    is_eligible: bool,
    checks: BTreeMap<u16, (ObjectName, usize)>,
}

impl Facts {
    fn is_healthy(&self, now: Instant) -> bool {
        let is_recent = |it: Instant| now.since(it) <= OVERDUE;
        self.queued_at.is_none_or(is_recent) && self.turned_at.is_none_or(is_recent)
    }
}

/// How often each code was answered.
#[derive(Debug, Default)]
pub(super) struct Codes {
    ok: AtomicU64,
    unavailable: AtomicU64,
}

impl Codes {
    /// How often it was 200, and how often 503.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.ok.load(Ordering::Relaxed), self.unavailable.load(Ordering::Relaxed))
    }

    fn count(&self, status: StatusCode) {
        let counter = if status == StatusCode::OK { &self.ok } else { &self.unavailable };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    facts: Mutex<Facts>,
    healthz: Codes,
    livez: Codes,
}

/// The servers, which end with it.
#[derive(Debug)]
pub(super) struct Health {
    shared: Arc<Shared>,
    server: Option<AbortHandle>,
    service_servers: BTreeMap<u16, AbortHandle>,
}

impl Drop for Health {
    fn drop(&mut self) {
        self.service_servers.values().chain(&self.server).for_each(AbortHandle::abort);
    }
}

impl Health {
    /// No port is open yet.
    pub(super) fn new(clock: Clock) -> Self {
        let facts = Mutex::new(Facts { is_eligible: true, ..Facts::default() });
        let (healthz, livez) = Default::default();
        let shared = Arc::new(Shared { clock, facts, healthz, livez });
        Self { shared, server: None, service_servers: BTreeMap::new() }
    }

    /// Serves the health of the proxy here.
    pub(super) fn serve(&mut self, listen: HttpListen) {
        let shared = Arc::clone(&self.shared);
        let serving = async move {
            let option = "--healthz-bind-address";
            if let Some(listener) = listen.bind_patiently("health of the proxy", option).await {
                info!(%listen, option, "serving /healthz and /livez");
                serve_probes(&listener, move |request| shared.answer(request)).await;
            }
        };
        self.server = Some(tokio::spawn(serving).abort_handle());
    }

    /// The loop begins a turn, which it does every few seconds.
    pub(super) fn turns(&self) {
        self.shared.facts().turned_at = Some(self.shared.clock.now().monotonic);
    }

    /// A change has arrived.
    pub(super) fn queued(&self) {
        let mut facts = self.shared.facts();
        facts.queued_at = facts.queued_at.or(Some(self.shared.clock.now().monotonic));
    }

    /// All that can be done is done.
    pub(super) fn updated(&self) {
        let mut facts = self.shared.facts();
        facts.queued_at = None;
        facts.updated_epoch_seconds = epoch_seconds();
    }

    /// Whether the node may get new connections.
    pub(super) fn set_eligible(&self, is_eligible: bool) {
        self.shared.facts().is_eligible = is_eligible;
    }

    /// Answers for these Services, each on its port.
    pub(super) fn follow(&mut self, checks: &BTreeMap<u16, (ObjectName, usize)>) {
        if self.shared.facts().checks == *checks {
            return;
        }
        self.shared.facts().checks.clone_from(checks);
        self.service_servers.retain(|port, server| {
            let stays = checks.contains_key(port);
            if !stays {
                server.abort();
            }
            stays
        });
        for port in checks.keys() {
            let shared = &self.shared;
            self.service_servers.entry(*port).or_insert_with(|| {
                tokio::spawn(serve_service(Arc::clone(shared), *port)).abort_handle()
            });
        }
    }

    pub(super) fn healthz(&self) -> &Codes {
        &self.shared.healthz
    }

    pub(super) fn livez(&self) -> &Codes {
        &self.shared.livez
    }
}

async fn serve_service(shared: Arc<Shared>, port: u16) {
    let listen = HttpListen::Everywhere(port);
    let missing = "health of a Service";
    if let Some(listener) = listen.bind_patiently(missing, "healthCheckNodePort").await {
        serve_probes(&listener, move |_| shared.answer_for_service(port)).await;
    }
}

impl Shared {
    /// A panic elsewhere leaves it as it is.
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_healthy(&self, facts: &Facts) -> bool {
        facts.is_healthy(self.clock.now().monotonic)
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        match request.uri().path() {
            "/healthz" => self.state(true, &self.healthz),
            "/livez" => self.state(false, &self.livez),
            _ => plain(StatusCode::NOT_FOUND, "not found: use /healthz or /livez\n"),
        }
    }

    /// `Ours:` both families are one loop, so they are healthy together.
    fn state(&self, counts_node: bool, codes: &Codes) -> Response<Full<Bytes>> {
        let (is_healthy, is_eligible, updated_epoch_seconds) = {
            let facts = self.facts();
            (self.is_healthy(&facts), facts.is_eligible, facts.updated_epoch_seconds)
        };
        let now = Utc(epoch_seconds()).rfc3339();
        // While it is healthy, it is up to date, whenever the last change was.
        let updated = if is_healthy { now.clone() } else { Utc(updated_epoch_seconds).rfc3339() };
        let family = json!({ "lastUpdated": updated, "healthy": is_healthy });
        let mut body = json!({
            "lastUpdated": updated,
            "currentTime": now,
            "healthy": is_healthy,
            "status": { "IPv4": family, "IPv6": family },
        });
        if let Some(fields) = body.as_object_mut().filter(|_| counts_node) {
            fields.insert("nodeEligible".to_owned(), is_eligible.into());
        }
        let is_ok = is_healthy && (is_eligible || !counts_node);
        let status = if is_ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        codes.count(status);
        no_sniff(json_reply(status, format!("{body}\n")))
    }

    fn answer_for_service(&self, port: u16) -> Response<Full<Bytes>> {
        let (check, is_healthy) = {
            let facts = self.facts();
            (facts.checks.get(&port).cloned(), self.is_healthy(&facts))
        };
        let Some((service, count)) = check else {
            return plain(StatusCode::NOT_FOUND, "no Service has this healthCheckNodePort\n");
        };
        let body = json!({
            "service": { "namespace": service.namespace, "name": service.name },
            "localEndpoints": count,
            "serviceProxyHealthy": is_healthy,
        });
        let status = match count > 0 && is_healthy {
            true => StatusCode::OK,
            false => StatusCode::SERVICE_UNAVAILABLE,
        };
        let mut response = no_sniff(json_reply(status, format!("{body}\n")));
        response.headers_mut().insert("x-load-balancing-endpoint-weight", count.into());
        response
    }
}

/// The header that kube-proxy sends with every answer.
fn no_sniff(mut response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::Value;

    use super::*;

    async fn read(response: Response<Full<Bytes>>) -> (u16, Value) {
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn a_node_that_goes_is_not_eligible_but_alive() {
        let health = Health::new(Clock::start());
        health.updated();
        health.set_eligible(false);
        let (status, body) = read(health.shared.state(true, health.healthz())).await;
        assert_eq!(
            (status, &body["nodeEligible"], &body["healthy"]),
            (503, &json!(false), &json!(true))
        );
        let (status, body) = read(health.shared.state(false, health.livez())).await;
        assert_eq!((status, body.get("nodeEligible")), (200, None));
        assert_eq!(body["status"]["IPv6"]["healthy"], json!(true));
        assert_eq!(health.healthz().unavailable.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_change_that_waits_too_long_is_unhealthy() {
        let health = Health::new(Clock::start());
        health.queued();
        assert_eq!(read(health.shared.state(true, health.healthz())).await.0, 200);
        let queued_at = health.shared.facts().queued_at.unwrap();
        health.queued();
        let facts = health.shared.facts().clone();
        assert_eq!(facts.queued_at, Some(queued_at), "the oldest change counts");
        assert!(facts.is_healthy(queued_at + OVERDUE));
        assert!(!facts.is_healthy(queued_at + OVERDUE + Duration::from_millis(1)));
        health.updated();
        assert_eq!(health.shared.facts().queued_at, None);
        health.turns();
        let facts = health.shared.facts().clone();
        let turned_at = facts.turned_at.unwrap();
        assert!(!facts.is_healthy(turned_at + OVERDUE + Duration::from_millis(1)), "it hangs");
    }

    #[tokio::test]
    async fn a_service_without_endpoints_here_is_not_for_this_node() {
        let mut health = Health::new(Clock::start());
        let service = ObjectName::new("shop", "web");
        let checks = |count| BTreeMap::from([(0, (service.clone(), count))]);
        health.follow(&checks(2));
        let response = health.shared.answer_for_service(0);
        assert_eq!(response.headers()["x-load-balancing-endpoint-weight"], "2");
        let expected = json!({
            "service": {"namespace": "shop", "name": "web"}, "localEndpoints": 2,
            "serviceProxyHealthy": true,
        });
        assert_eq!(read(response).await, (200, expected));
        health.follow(&checks(0));
        assert_eq!(read(health.shared.answer_for_service(0)).await.0, 503);
        assert_eq!(health.shared.answer_for_service(1).status(), StatusCode::NOT_FOUND);
    }
}
