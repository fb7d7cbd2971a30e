//! The validating webhook of `fairway controller`: the API server calls it for each of our objects that is
//! written, so that the user sees at once what is wrong.
//!
//! ```text
//!  API server ──TLS──► server ──Question──► loop (ControllerCore::judge)
//!      ▲                  ▲
//!      └── caBundle ── keeper ◄──► Secret NAME-cert: one CA for all controllers
//! ```
//!
//! Off unless an address is given. Every controller answers; the leading one keeps the certificate. Judges
//! nothing itself.

mod body;
mod server;

use fairway_cluster::{DisruptionLimit, Judged};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::api::Api;
use super::serving::{Kept, Profile, Registration, hosts, keep};
use crate::http_server::HttpListen;

/// Requests in the queue for the loop; later ones wait.
const QUESTIONS_MAX: usize = 16;

/// The address and the name of the webhook.
#[derive(Debug, Clone)]
pub struct WebhookOptions {
    /// The address to listen on.
    pub listen: HttpListen,
    /// The name of its Service and of its ValidatingWebhookConfiguration.
    pub name: String,
    /// How much a write may disrupt.
    pub disruption_limit: Option<DisruptionLimit>,
}

/// An AdmissionReview that waits for its answer.
pub(super) struct Question {
    review: Value,
    answer: oneshot::Sender<Judged>,
}

impl Question {
    /// Answers with the verdict of `judge`.
    pub(super) fn answer(self, judge: impl FnOnce(&Value) -> Judged) {
        // The API server may have timed out.
        let _ = self.answer.send(judge(&self.review));
    }
}

/// Serves the webhook until it is dropped.
pub(super) struct Webhook {
    // Dropping it ends the tasks.
    _tasks: JoinSet<()>,
}

impl Webhook {
    /// Starts it if there is an address. Must be called inside a tokio runtime.
    pub(super) fn start(
        api: Api,
        options: &WebhookOptions,
        is_leading: watch::Receiver<bool>,
    ) -> (Self, mpsc::Receiver<Question>) {
        let (ask, questions) = mpsc::channel(QUESTIONS_MAX);
        let mut tasks = JoinSet::new();
        if options.listen != HttpListen::Nowhere {
            let (tell, identity) = watch::channel(None);
            let kept = Kept {
                what: "the webhook",
                secret: format!("{}-cert", options.name),
                profile: Profile {
                    name: "Fairway webhook",
                    hosts: hosts(&options.name, &api.namespace, options.listen),
                    is_client: false,
                },
                registration: Some(Registration::Webhook(options.name.clone())),
                clients: None,
            };
            tasks.spawn(keep(api, kept, is_leading, tell));
            tasks.spawn(server::run(options.listen, identity, ask));
        }
        (Self { _tasks: tasks }, questions)
    }
}
