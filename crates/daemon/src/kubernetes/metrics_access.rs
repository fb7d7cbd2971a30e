//! Who may read `/metrics`, as the API server says: a TokenReview tells who the client is, a
//! SubjectAccessReview whether it may `get` the path `/metrics`. So kube-rbac-proxy does it, and MetalLB.
//!
//! Remembers verdicts for a minute. A flood of invalid tokens costs the API server ten reviews per second at
//! most. Clients with a verdict are not delayed by it; a client whose minute is over waits for its turn among at
//! most as many reviews as the server has connections.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::api::{Api, Problem};
use crate::metrics::{Access, Judged, Verdict};

const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
/// How long the API server may take for a review.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a verdict holds: a permission that was revoked, or granted, counts after that.
const HOLDS: Duration = Duration::from_secs(60);
/// The time between two clients that are not known.
const PAUSE: Duration = Duration::from_millis(100);
/// Verdicts that are remembered: a few Prometheuses and people. Tokens are at most 8 KiB, as requests are.
const KNOWN_MAX: usize = 64;

/// Asks the API server.
pub(super) struct ReviewedAccess {
    api: Api,
    known: Mutex<BTreeMap<String, (Verdict, Instant)>>,
    /// Held during a review.
    reviewing: tokio::sync::Mutex<Option<Problem>>,
}

impl ReviewedAccess {
    pub(super) fn new(api: Api) -> Self {
        Self { api, known: Mutex::default(), reviewing: tokio::sync::Mutex::default() }
    }

    fn known(&self, token: &str) -> Option<Verdict> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(token).filter(|(_, until)| Instant::now() < *until).map(|(verdict, _)| *verdict)
    }

    fn remember(&self, token: &str, verdict: Verdict) {
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (_, until)| now < *until);
        // A flood of tokens does not displace those that may read.
        if known.len() >= KNOWN_MAX {
            known.retain(|_, (verdict, _)| *verdict == Verdict::Allowed);
        }
        if known.len() < KNOWN_MAX {
            known.insert(token.to_owned(), (verdict, now + HOLDS));
        }
    }

    async fn review(&self, token: &str) -> Result<Verdict, Problem> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": { "token": token },
        });
        let answer = self.send(TOKEN_REVIEWS, &review).await?;
        if answer.pointer("/status/authenticated") != Some(&Value::Bool(true)) {
            return Ok(Verdict::Unauthenticated);
        }
        let user = |field: &str| answer.pointer(&format!("/status/user/{field}")).cloned();
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": user("username"), "uid": user("uid"), "groups": user("groups"),
                "extra": user("extra"),
                "nonResourceAttributes": { "path": "/metrics", "verb": "get" },
            },
        });
        let answer = self.send(ACCESS_REVIEWS, &review).await?;
        let is_allowed = answer.pointer("/status/allowed") == Some(&Value::Bool(true));
        Ok(if is_allowed { Verdict::Allowed } else { Verdict::Forbidden })
    }

    async fn send(&self, path: &str, review: &Value) -> Result<Value, Problem> {
        self.api.send(Method::POST, path, "application/json", review, REVIEW_TIMEOUT).await
    }

    async fn judge(&self, token: &str) -> Verdict {
        if let Some(verdict) = self.known(token) {
            return verdict;
        }
        let mut troubled = self.reviewing.lock().await;
        if let Some(verdict) = self.known(token) {
            return verdict;
        }
        let verdict = match self.review(token).await {
            Ok(verdict) => {
                *troubled = None;
                self.remember(token, verdict);
                verdict
            }
            Err(problem) => {
                if troubled.as_ref() != Some(&problem) {
                    warn!(
                        "cannot find out who may read metrics: {problem}; clients get 503 until the API \
                         server answers TokenReviews and SubjectAccessReviews"
                    );
                }
                *troubled = Some(problem);
                Verdict::Unknown
            }
        };
        sleep(PAUSE).await;
        verdict
    }
}

impl Access for ReviewedAccess {
    fn verdict<'a>(&'a self, token: &'a str) -> Judged<'a> {
        Box::pin(self.judge(token))
    }
}
