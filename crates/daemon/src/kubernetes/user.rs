//! The API server as a user has it: `kubectl fairway` connects with that user's kubeconfig.
//!
//! Knows the paths of the node API, and no meaning of an answer.

use std::path::PathBuf;
use std::time::Duration;

use fairway_node::drain::DrainOrder;
use form_urlencoded::Serializer;
use http::Method;
use kube::config::KubeConfigOptions;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::aggregation::{GROUP, VERSION};
use super::api::{ConnectError, Problem, client_for, config_in, request};

/// What the API server says of a path that it does not have.
const UNKNOWN_PATH: &str = "404 page not found";

/// How the user connects, as the options of kubectl say.
#[derive(Debug, Clone, Default)]
pub(crate) struct UserOptions {
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) context: Option<String>,
    /// The user to act as.
    pub(crate) acting_as: Option<String>,
    pub(crate) acting_groups: Vec<String>,
    /// How long an answer may take.
    pub(crate) request_timeout: Duration,
}

/// Why a user gets no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UserError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(
        "this cluster has no node API, which answers for all nodes: enable it with the chart value \
         nodeApi.enabled, or the component deploy/components/node-api"
    )]
    NoNodeApi,
    #[error(
        "{0} (the chart has ClusterRoles for this, such as fairway-node-viewer and fairway-node-operator)"
    )]
    Forbidden(String),
    #[error("{0}")]
    Problem(String),
}

impl From<Problem> for UserError {
    fn from(problem: Problem) -> Self {
        match problem.code {
            Some(403) => Self::Forbidden(problem.message),
            _ => Self::Problem(problem.to_string()),
        }
    }
}

/// What is asked of the nodes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeQuery<'a> {
    /// A resource of the node API.
    pub(crate) resource: &'a str,
    pub(crate) words: &'a [String],
    /// All nodes, if there are none.
    pub(crate) nodes: &'a [String],
    /// The answers are for people.
    pub(crate) is_text: bool,
}

/// The connection of a user.
pub(crate) struct User {
    client: Client,
    limit: Duration,
}

impl User {
    /// Finds the API server, without connecting to it.
    pub(crate) async fn connect(options: &UserOptions) -> Result<Self, UserError> {
        let chosen =
            KubeConfigOptions { context: options.context.clone(), ..KubeConfigOptions::default() };
        let mut config = match &options.kubeconfig {
            Some(path) => config_in(path, &chosen).await?,
            None => match Config::from_kubeconfig(&chosen).await {
                Ok(config) => config,
                // A context is one of a kubeconfig.
                Err(error) if chosen.context.is_some() => {
                    return Err(UserError::Problem(error.to_string()));
                }
                Err(_) => {
                    Config::infer().await.map_err(|it| ConnectError::Nowhere(Box::new(it)))?
                }
            },
        };
        if options.acting_as.is_some() {
            config.auth_info.impersonate.clone_from(&options.acting_as);
            config.auth_info.impersonate_groups = Some(options.acting_groups.clone());
        }
        // The reason for a refusal is what the user wants, and a drain is ordered once: nothing is tried again.
        let client = client_for(config)?;
        Ok(Self { client, limit: options.request_timeout })
    }

    /// The list of the answers.
    pub(crate) async fn ask(&self, query: NodeQuery<'_>) -> Result<Value, UserError> {
        let mut text = Serializer::new(String::new());
        text.extend_pairs(query.words.iter().map(|word| ("word", word)));
        text.extend_pairs(query.nodes.iter().map(|node| ("node", node)));
        if query.is_text {
            text.append_pair("output", "text");
        }
        let path = format!("{}?{}", query.resource, text.finish());
        self.send(Method::GET, &path, Vec::new()).await
    }

    /// What the node says of its drain after `order`; without one it only says it.
    pub(crate) async fn drain(
        &self,
        node: &str,
        order: Option<DrainOrder>,
    ) -> Result<Value, UserError> {
        let of_node: String = form_urlencoded::byte_serialize(node.as_bytes()).collect();
        let of_node = format!("drains/{of_node}");
        let answer = match order {
            None => self.send(Method::GET, &of_node, Vec::new()).await?,
            Some(DrainOrder::Undo) => self.send(Method::DELETE, &of_node, Vec::new()).await?,
            Some(DrainOrder::Begin { wait }) => {
                let drain = json!({
                    "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "Drain",
                    "metadata": { "name": node }, "spec": { "waitSeconds": wait.as_secs() },
                });
                self.send(Method::POST, "drains", drain.to_string().into_bytes()).await?
            }
        };
        let status = answer.get("status").cloned();
        status.ok_or_else(|| UserError::Problem("the answer has no status".to_owned()))
    }

    async fn send(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Value, UserError> {
        let path = format!("/apis/{GROUP}/{VERSION}/{path}");
        let kind = (!body.is_empty()).then_some("application/json");
        let request = request(method, &path, kind, body)?;
        let sent = timeout(self.limit, self.client.request::<Value>(request)).await;
        let answer = sent.map_err(|_| Problem::timed_out(self.limit))?;
        answer.map_err(|error| match Problem::from(error) {
            // Of the API server, which does not know the group; the node API names what is missing.
            Problem { code: Some(404), message } if message.contains(UNKNOWN_PATH) => {
                UserError::NoNodeApi
            }
            problem => problem.into(),
        })
    }
}
