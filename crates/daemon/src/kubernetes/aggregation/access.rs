//! Whether a user may: a SubjectAccessReview, as each server behind the API server asks it.
//!
//! The API server has decided already; this holds as well where a role was changed meanwhile, or another server in front
//! of us does not decide. Nothing is remembered: people ask, not machines.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::call::{Asked, Refusal};
use super::front_proxy::User;
use super::{GROUP, VERSION};
use crate::kubernetes::api::{Api, Problem};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const REVIEW_TIMEOUT: Duration = Duration::from_secs(2);

/// Refuses what `user` may not.
pub(super) async fn check(api: &Api, user: &User, asked: &Asked) -> Result<(), Refusal> {
    let Asked { resource, verb, .. } = asked;
    let name = asked.node();
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra,
            "resourceAttributes": {
                "group": GROUP, "version": VERSION, "resource": resource, "verb": verb,
                "name": name,
            },
        },
    });
    let answer = api.send(Method::POST, REVIEWS, "application/json", &review, REVIEW_TIMEOUT).await;
    let answer = answer.map_err(|problem: Problem| {
        Refusal::unavailable(format!("cannot find out what {:?} may do: {problem}", user.name))
    })?;
    if answer.pointer("/status/allowed") == Some(&Value::Bool(true)) {
        return Ok(());
    }
    Err(Refusal::forbidden(format!(
        "User {:?} cannot {verb} resource {resource:?} in API group {GROUP:?} at the cluster scope",
        user.name
    )))
}
