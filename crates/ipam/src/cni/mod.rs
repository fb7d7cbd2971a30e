//! The CNI contract of an `ipam` plugin: what a runtime asks, and what it is answered.
//!
//! Environment and configuration become a [`Request`], or an error with the code that the CNI specification has for it. Knows no
//! process and no socket: [`answer`] is given what a process received.

mod adding;
mod error;
mod request;
mod serve;
mod version;
mod wire;

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub use error::{CniError, Code};
pub use request::{Attachment, Command, Configuration, Gateways, Request};
pub(crate) use serve::ANNOTATIONS;
pub use version::CniVersion;
pub use wire::{CALL_BYTES_MAX, WireError};

use crate::addressing::Addressing;
use crate::census::PodName;
use crate::store::Store;

/// What a runtime starts a plugin with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Invocation<'a> {
    /// CNI_COMMAND.
    pub command: Option<String>,
    /// CNI_CONTAINERID.
    pub container_id: Option<String>,
    /// CNI_NETNS.
    pub netns: Option<String>,
    /// CNI_IFNAME.
    pub interface: Option<String>,
    /// CNI_ARGS.
    pub args: Option<String>,
    /// The configuration.
    pub stdin: &'a [u8],
}

/// The annotations that decide about addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodNotes {
    /// Of the Pod.
    pub of_pod: BTreeMap<String, String>,
    /// Of its namespace.
    pub of_namespace: BTreeMap<String, String>,
}

/// What a plugin ends with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its exit code.
    pub exit: u8,
    /// What it prints.
    pub stdout: Option<Value>,
}

/// Answers one call. `node` is this node, where the configuration names none.
pub async fn answer<S: Store>(
    addressing: &Addressing<'_, S>,
    invocation: &Invocation<'_>,
    node: &str,
    notes: impl Fn(&PodName) -> PodNotes,
) -> Answer {
    let request = Request::parse(invocation);
    let mut answers =
        answer_together(addressing, std::slice::from_ref(&request), node, notes).await;
    let answer = answers.pop().unwrap_or_else(|| Err(CniError::try_again("there is no answer")));
    Answer::of(invocation, answer)
}

/// What calls come to, each about another container. Those that need addresses are given them together.
pub async fn answer_together<S: Store>(
    addressing: &Addressing<'_, S>,
    requests: &[Result<Request, CniError>],
    node: &str,
    notes: impl Fn(&PodName) -> PodNotes,
) -> Vec<Result<Option<Value>, CniError>> {
    let good: Vec<&Request> = requests.iter().filter_map(|it| it.as_ref().ok()).collect();
    let mut served = serve::serve_together(addressing, &good, node, notes).await.into_iter();
    let outcome = |request: &Result<Request, CniError>| match request {
        Ok(_) => served.next().unwrap_or(Ok(None)),
        Err(error) => Err(error.clone()),
    };
    requests.iter().map(outcome).collect()
}

/// Claims blocks where Pods that ask as this one did have few addresses left.
///
/// # Errors
/// Why none could be claimed; they are asked for when they are needed, then.
pub async fn keep_stock<S: Store>(
    addressing: &Addressing<'_, S>,
    request: &Request,
    node: &str,
) -> Result<(), CniError> {
    serve::keep_stock(addressing, request, node).await
}

impl Answer {
    /// What the plugin ends with where a call came to this.
    pub fn of(invocation: &Invocation<'_>, outcome: Result<Option<Value>, CniError>) -> Self {
        let asked = version::of(invocation.stdin);
        match outcome {
            Ok(_) if invocation.command.as_deref() == Some("VERSION") => {
                Self { exit: 0, stdout: Some(versions(asked.as_deref())) }
            }
            Ok(stdout) => Self { exit: 0, stdout },
            Err(CniError { code, message, details }) => Self {
                exit: 1,
                stdout: Some(json!({
                    "cniVersion": asked.unwrap_or_else(|| CniVersion::LATEST.to_string()),
                    "code": code.number(),
                    "msg": message,
                    "details": details,
                })),
            },
        }
    }
}

/// What VERSION prints, in the version that is asked in.
fn versions(asked: Option<&str>) -> Value {
    let latest = CniVersion::LATEST.to_string();
    json!({
        "cniVersion": asked.unwrap_or(&latest),
        "supportedVersions": CniVersion::ALL.map(|it| it.to_string()),
    })
}
