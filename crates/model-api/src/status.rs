//! The Status objects of failed requests, in the words of the real server.

use crate::request::{Resource, Response};
use serde_json::{Value, json};

/// An error: kind `Status`, with code, reason and message.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// One word for programs; empty where the server has none.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// The object that it is about; null without.
    pub details: Value,
}

impl Status {
    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self { code, reason, message, details: Value::Null }
    }

    fn about(mut self, resource: &Resource, name: &str) -> Self {
        let mut details = json!({"name": name, "kind": resource.plural});
        if let (false, Some(details)) = (resource.group.is_empty(), details.as_object_mut()) {
            details.insert("group".to_owned(), json!(resource.group));
        }
        self.details = details;
        self
    }

    /// 404 for one object.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", resource.qualified());
        Self::new(404, "NotFound", message).about(resource, name)
    }

    /// 404 for a resource that is not served, as while a CRD is missing.
    pub fn unknown_resource() -> Self {
        let mut status = Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource".to_owned(),
        );
        status.details = json!({});
        status
    }

    /// 409: the name is taken.
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    /// 409: a precondition does not hold.
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// 409: the resource version differs.
    pub fn stale(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// 409: fields have other owners. Each conflict is an owner, as it is printed, and a path.
    pub(crate) fn apply_conflict(conflicts: &[(String, String)]) -> Self {
        let causes: Vec<Value> = conflicts
            .iter()
            .map(|(owner, path)| {
                let message = format!("conflict with {owner}");
                json!({"reason": "FieldManagerConflict", "message": message, "field": path})
            })
            .collect();
        let message = match conflicts {
            [(owner, path)] => {
                format!("Apply failed with 1 conflict: conflict with {owner}: {path}")
            }
            _ => {
                let mut owners: Vec<&String> = conflicts.iter().map(|(owner, _)| owner).collect();
                owners.sort_unstable();
                owners.dedup();
                let mut lines = Vec::new();
                for owner in owners {
                    lines.push(format!("conflicts with {owner}:"));
                    let paths = conflicts.iter().filter(|(it, _)| it == owner);
                    lines.extend(paths.map(|(_, path)| format!("- {path}")));
                }
                format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
            }
        };
        let mut status = Self::new(409, "Conflict", message);
        status.details = json!({"causes": causes});
        status
    }

    /// 422: a field is invalid. `kind` is the kind, or the resource if the storage reports it.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, field: &str, why: &str) -> Self {
        let full = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let message = format!("{full} \"{name}\" is invalid: {field}: {why}");
        let mut status = Self::new(422, "Invalid", message);
        let reason = if why.starts_with("Required") {
            "FieldValueRequired"
        } else if why.starts_with("Forbidden") {
            "FieldValueForbidden"
        } else {
            "FieldValueInvalid"
        };
        let mut details = serde_json::Map::new();
        if !name.is_empty() {
            details.insert("name".to_owned(), json!(name));
        }
        if !group.is_empty() {
            details.insert("group".to_owned(), json!(group));
        }
        details.insert("kind".to_owned(), json!(kind));
        let causes = json!([{"reason": reason, "message": why, "field": field}]);
        details.insert("causes".to_owned(), causes);
        status.details = Value::Object(details);
        status
    }

    /// 422: options of a list that exclude each other.
    pub(crate) fn invalid_list_options(why: &str) -> Self {
        let why = format!("Forbidden: {why}");
        Self::invalid("meta.k8s.io", "ListOptions", "", "resourceVersionMatch", &why)
    }

    /// 400: the request is invalid.
    pub fn bad_request(message: &str) -> Self {
        Self::new(400, "BadRequest", message.to_owned())
    }

    /// 405: not for this resource.
    pub fn not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message.to_owned())
    }

    /// 410: the history does not reach back that far.
    pub fn too_old(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    /// 410: the rest of a list is not available any more.
    pub fn continue_expired() -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. \
                       You must start a new list without the continue parameter.";
        Self::new(410, "Expired", message.to_owned())
    }

    /// 504: the replica has not seen that version (yet).
    pub fn too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut status = Self::new(504, "Timeout", message);
        let cause =
            json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        status.details = json!({"causes": [cause], "retryAfterSeconds": 1});
        status
    }

    /// The same, for a list of exactly that version, without a wait.
    pub(crate) fn too_large_exact(asked: u64, current: u64) -> Self {
        let mut status = Self::too_large(asked, current);
        if let Some(details) = status.details.as_object_mut() {
            details.shift_remove("retryAfterSeconds");
        }
        status
    }

    /// 500, for a creation that names a version.
    pub(crate) fn version_on_create() -> Self {
        let message = "resourceVersion should not be set on objects to be created";
        Self::new(500, "", message.to_owned())
    }

    /// 500. For the caller: the server has an internal error, as with its storage.
    pub fn internal(why: &str) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {why}"))
    }

    /// 503. For the caller: the server is there, and cannot serve.
    pub fn unavailable() -> Self {
        let message = "the server is currently unable to handle the request";
        Self::new(503, "ServiceUnavailable", message.to_owned())
    }

    /// 429. For the caller: too many requests.
    pub fn too_many_requests(retry_after_seconds: u64) -> Self {
        let message =
            "the server has received too many requests and has asked us to try again later";
        let mut status = Self::new(429, "TooManyRequests", message.to_owned());
        status.details = json!({"retryAfterSeconds": retry_after_seconds});
        status
    }

    /// 403. For the caller: RBAC denies it.
    pub fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", resource.qualified());
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    /// The object, as it is sent.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message,
        });
        if let Some(body) = body.as_object_mut() {
            if !self.reason.is_empty() {
                body.insert("reason".to_owned(), json!(self.reason));
            }
            if !self.details.is_null() {
                body.insert("details".to_owned(), self.details.clone());
            }
            body.insert("code".to_owned(), json!(self.code));
        }
        body
    }
}

impl From<Status> for Response {
    fn from(status: Status) -> Self {
        Self { code: status.code, body: status.body() }
    }
}
