//! The validating webhook of `fairway controller`: the API server asks it about each object of ours
//! that somebody writes, and the user sees at once what is wrong.
//!
//! ```text
//!  API server ──TLS──► server ──Question──► loop (ControllerCore::judge)
//!      ▲                  ▲
//!      └── caBundle ── keeper ◄──► Secret NAME-cert: one CA for all controllers
//! ```
//!
//! Off unless an address is given. Every controller answers; the one that leads keeps the
//! certificate. Judges nothing itself.

mod certificate;
mod keeper;
mod server;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::api::Api;
use crate::metrics::HttpListen;

/// Questions that wait for the loop; who comes later waits to ask.
const QUESTIONS_MAX: usize = 16;

/// Where and as whom it answers.
#[derive(Debug, Clone)]
pub struct WebhookOptions {
    /// Where the API server finds it.
    pub listen: HttpListen,
    /// What its Service is called, and its ValidatingWebhookConfiguration.
    pub name: String,
}

/// An AdmissionReview that waits for its answer.
pub(super) struct Question {
    review: Value,
    answer: oneshot::Sender<Value>,
}

impl Question {
    /// Answers with what `judge` makes of it.
    pub(super) fn answer(self, judge: impl FnOnce(&Value) -> Value) {
        // The API server may have given up.
        let _ = self.answer.send(judge(&self.review));
    }
}

/// Answers for as long as it lives.
pub(super) struct Webhook {
    leads: watch::Sender<bool>,
    // Dropping it ends them.
    _tasks: JoinSet<()>,
}

impl Webhook {
    /// Starts it, if there is an address. Must be called inside a tokio runtime.
    pub(super) fn start(api: Api, options: &WebhookOptions) -> (Self, mpsc::Receiver<Question>) {
        let (leads, is_leading) = watch::channel(false);
        let (ask, questions) = mpsc::channel(QUESTIONS_MAX);
        let mut tasks = JoinSet::new();
        if options.listen != HttpListen::Nowhere {
            let (tell, identity) = watch::channel(None);
            tasks.spawn(keeper::keep(api, options.clone(), is_leading, tell));
            tasks.spawn(server::run(options.listen, identity, ask));
        }
        (Self { leads, _tasks: tasks }, questions)
    }

    /// Whether this is the controller that keeps the certificate.
    pub(super) fn set_leading(&self, is_leading: bool) {
        self.leads.send_replace(is_leading);
    }
}
