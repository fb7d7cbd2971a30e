//! The connection to the API server, and the requests through it.
//!
//! Returns JSON, or the reason for a failure. Knows no core: its callers decide when to ask and what an
//! answer means.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::WatchEvent;
use kube::{Client, Config};
use serde::de::DeserializeSeed;
use serde_json::Value;
use tokio::time::timeout;

use super::page::Page;
use crate::metrics::{ApiVerb, ClientCounters};

/// An API server that does not accept a connection in that time is unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit of the cores for a list.
pub(super) const LIST_TIMEOUT: Duration = Duration::from_secs(60);
/// A watch starts within that time, even if the server has much to read.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The form of an object without all that is not metadata.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The file with the namespace of a pod.
const POD_NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// The default namespace of MetalLB's objects.
const DEFAULT_NAMESPACE: &str = "metallb-system";

/// How the API server is found.
#[derive(Debug, Clone, Default)]
pub struct ConnectionOptions {
    /// `--kubeconfig`; otherwise that of the pod, or the usual files.
    pub kubeconfig: Option<PathBuf>,
    /// `--namespace`: the namespace of our kinds; otherwise the pod's own, or `metallb-system`.
    pub namespace: Option<String>,
}

/// Why there is no connection, permanently with these options.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The file of `--kubeconfig` cannot be used.
    #[error("--kubeconfig {}: {error}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: kube::config::KubeconfigError,
    },
    /// No file was given, and none found.
    #[error(
        "no Kubernetes API found: this process runs outside a pod, and neither KUBECONFIG nor \
         ~/.kube/config leads to a cluster; set --kubeconfig ({0})"
    )]
    Nowhere(#[source] Box<kube::config::InferConfigError>),
    /// The certificates or credentials are invalid.
    #[error("cannot create a client for the Kubernetes API: {0}")]
    Client(#[source] Box<kube::Error>),
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// The HTTP status, if the server answered.
    pub(super) code: Option<u16>,
    /// The reason as text.
    pub(super) message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{code}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl From<kube::Error> for Problem {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self { code: Some(status.code), message: status.message },
            // The messages of the layers below, which include the system's error.
            other => {
                let mut message = other.to_string();
                let mut source = std::error::Error::source(&other);
                while let Some(cause) = source {
                    let words = cause.to_string();
                    if !message.contains(&words) {
                        message = format!("{message}: {words}");
                    }
                    source = cause.source();
                }
                Self { code: None, message }
            }
        }
    }
}

impl Problem {
    /// The answer has an unexpected form.
    pub(super) fn no_list() -> Self {
        Self { code: None, message: "the answer is not a list".to_owned() }
    }

    /// The request cannot be built.
    pub(super) fn of_request(error: impl fmt::Display) -> Self {
        Self { code: None, message: format!("cannot build the request: {error}") }
    }

    pub(super) fn timed_out(after: Duration) -> Self {
        Self { code: None, message: format!("no answer in {} s", after.as_secs()) }
    }
}

/// An event of a watch.
pub(super) enum Event {
    /// ADDED or MODIFIED.
    Applied(Value),
    /// DELETED.
    Deleted(Value),
    /// BOOKMARK, with its version.
    Bookmark(String),
}

/// The connection. Cheap to clone.
#[derive(Clone)]
pub(super) struct Api {
    client: Client,
    /// The namespace of our own objects.
    pub(super) namespace: String,
    /// The server's address, for messages.
    pub(super) server: String,
    /// The counters of requests.
    pub(super) counters: Arc<ClientCounters>,
}

impl Api {
    /// Finds the API server, without connecting to it.
    pub(super) async fn connect(options: &ConnectionOptions) -> Result<Self, ConnectError> {
        let config = match &options.kubeconfig {
            Some(path) => config_in(path, &KubeConfigOptions::default()).await?,
            // The pod's service account first: a kubeconfig file inside a pod is no reason to use it.
            None => match Config::incluster() {
                Ok(config) => config,
                Err(_) => {
                    Config::infer().await.map_err(|it| ConnectError::Nowhere(Box::new(it)))?
                }
            },
        };
        let server = config.cluster_url.to_string();
        let client = client_for(config)?;
        let namespace = options.namespace.clone().or_else(pod_namespace);
        let namespace = namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
        Ok(Self { client, namespace, server, counters: Arc::default() })
    }

    /// Reads one object or list.
    pub(super) async fn get(&self, path: &str, limit: Duration) -> Result<Value, Problem> {
        let request = request(Method::GET, path, None, Vec::new())?;
        self.ask(ApiVerb::Get, request, limit).await
    }

    /// Reads the metadata of one object.
    pub(super) async fn get_metadata(&self, path: &str, limit: Duration) -> Result<Value, Problem> {
        let mut request = request(Method::GET, path, None, Vec::new())?;
        let accepted = HeaderValue::from_static(METADATA_ONLY);
        request.headers_mut().insert(ACCEPT, accepted);
        self.ask(ApiVerb::Get, request, limit).await
    }

    /// Sends `body`; the server stops at the same time limit.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &'static str,
        body: &Value,
        limit: Duration,
    ) -> Result<Value, Problem> {
        let separator = if path.contains('?') { '&' } else { '?' };
        // Whole seconds, at least 1: the server takes 0 for its own limit.
        let path = format!("{path}{separator}timeout={}s", limit.as_secs().max(1));
        let body = body.to_string().into_bytes();
        let request = request(method, &path, Some(content_type), body)?;
        self.ask(ApiVerb::Write, request, limit).await
    }

    /// The answer to any request; an error after `limit`.
    pub(super) async fn ask(
        &self,
        verb: ApiVerb,
        request: Request<Vec<u8>>,
        limit: Duration,
    ) -> Result<Value, Problem> {
        let answer = match timeout(limit, self.client.request::<Value>(request)).await {
            Ok(answer) => answer.map_err(Problem::from),
            Err(_) => Err(Problem::timed_out(limit)),
        };
        self.count(verb, &answer);
        answer
    }

    /// A page of a list, whose objects are read by `item`; an error after `limit`.
    pub(super) async fn list<Item>(
        &self,
        request: Request<Vec<u8>>,
        item: impl for<'de> DeserializeSeed<'de, Value = Item> + Copy,
        limit: Duration,
    ) -> Result<Page<Item>, Problem> {
        let answer = match timeout(limit, self.client.request_text(request)).await {
            Ok(answer) => answer.map_err(Problem::from),
            Err(_) => Err(Problem::timed_out(limit)),
        };
        self.count(ApiVerb::List, &answer);
        Page::of(&answer?, item).ok_or_else(Problem::no_list)
    }

    fn count<T>(&self, verb: ApiVerb, answer: &Result<T, Problem>) {
        let status = answer.as_ref().map_or_else(|problem| problem.code, |_| Some(200));
        self.counters.request(verb, status);
    }

    /// Starts a watch.
    pub(super) async fn watch(&self, request: Request<Vec<u8>>) -> Result<Watch, Problem> {
        let begun = timeout(ANSWER_TIMEOUT, self.client.request_events::<Value>(request)).await;
        let begun = match begun {
            Ok(events) => events.map_err(Problem::from),
            Err(_) => Err(Problem::timed_out(ANSWER_TIMEOUT)),
        };
        self.count(ApiVerb::Watch, &begun);
        Ok(Watch(begun?.boxed()))
    }
}

/// A watch in progress.
pub(super) struct Watch(BoxStream<'static, kube::Result<WatchEvent<Value>>>);

impl Watch {
    /// The next event; `None` at the end of the watch.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, Problem> {
        match self.0.try_next().await {
            Ok(None) => Ok(None),
            Ok(Some(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                Ok(Some(Event::Applied(object)))
            }
            Ok(Some(WatchEvent::Deleted(object))) => Ok(Some(Event::Deleted(object))),
            Ok(Some(WatchEvent::Bookmark(it))) => {
                Ok(Some(Event::Bookmark(it.metadata.resource_version)))
            }
            Ok(Some(WatchEvent::Error(status))) => {
                Err(Problem { code: Some(status.code), message: status.message })
            }
            // A broken connection counts as the end of the watch.
            Err(kube::Error::ReadEvents(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// What a kubeconfig says.
pub(super) async fn config_in(
    path: &Path,
    chosen: &KubeConfigOptions,
) -> Result<Config, ConnectError> {
    let of_file = |error| ConnectError::Kubeconfig { path: path.to_owned(), error };
    let kubeconfig = Kubeconfig::read_from(path).map_err(of_file)?;
    Config::from_custom_kubeconfig(kubeconfig, chosen).await.map_err(of_file)
}

/// A client that waits for a connection for a limited time, and leaves it to its callers when to try again.
pub(super) fn client_for(mut config: Config) -> Result<Client, ConnectError> {
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.default_retry = false;
    // Without TLS the hundreds of certificates of the machine need not be read.
    if config.cluster_url.scheme_str() == Some("http") {
        config.root_cert.get_or_insert_default();
    }
    Client::try_from(config).map_err(|error| ConnectError::Client(Box::new(error)))
}

/// A request for JSON.
pub(super) fn request(
    method: Method,
    path: &str,
    content_type: Option<&'static str>,
    body: Vec<u8>,
) -> Result<Request<Vec<u8>>, Problem> {
    let mut builder = Request::builder().method(method).uri(path);
    builder = builder.header(ACCEPT, "application/json");
    if let Some(content_type) = content_type {
        builder = builder.header(CONTENT_TYPE, content_type);
    }
    builder.body(body).map_err(Problem::of_request)
}

fn pod_namespace() -> Option<String> {
    let text = std::fs::read_to_string(Path::new(POD_NAMESPACE_FILE)).ok()?;
    Some(text.trim().to_owned()).filter(|namespace| !namespace.is_empty())
}
