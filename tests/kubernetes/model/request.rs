//! What does an HTTP request mean to the model? Paths, queries and bodies of the Kubernetes API as the
//! values that `fairway_model_api` takes. Knows no sockets. Used by the server.

use fairway_model_api::{Query, Request, Resource, Verb, VersionMatch};
use http::Method;
use http::request::Parts;
use serde_json::Value;

/// The request, or `None` where no API server has anything at such a path.
pub(super) fn parse(head: &Parts, body: &[u8]) -> Option<Request> {
    let mut parts = head.uri.path().split('/').filter(|part| !part.is_empty());
    let group = match parts.next()? {
        "api" => "",
        "apis" => parts.next()?,
        _ => return None,
    };
    let version = parts.next()?;
    let mut rest: Vec<String> = parts.map(decoded).collect();
    let mut namespace = String::new();
    // Namespaces are objects, too: their names come last, or before their status.
    if rest.len() > 2 && rest.first()? == "namespaces" && rest.get(2)? != "status" {
        namespace = rest.drain(..2).nth(1)?;
    }
    let mut rest = rest.into_iter();
    let plural = rest.next()?;
    let name = rest.next().unwrap_or_default();
    let status = match rest.next().as_deref() {
        None => false,
        Some("status") => true,
        Some(_) => return None,
    };
    let (query, is_watch) = query(head.uri.query().unwrap_or_default());
    let content = head.headers.get(http::header::CONTENT_TYPE);
    let content = content.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let verb = match head.method {
        Method::GET if is_watch => Verb::Watch,
        Method::GET if name.is_empty() => Verb::List,
        Method::GET => Verb::Get,
        Method::POST if name.is_empty() => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH if content.starts_with("application/apply-patch") => Verb::Apply,
        Method::PATCH if content.starts_with("application/merge-patch") => Verb::MergePatch,
        Method::DELETE if !name.is_empty() => Verb::Delete,
        _ => return None,
    };
    let user = head.headers.get(http::header::AUTHORIZATION);
    let user = user.and_then(|it| it.to_str().ok()?.strip_prefix("Bearer ")).unwrap_or("test");
    Some(Request {
        verb,
        resource: Resource::new(group, version, &plural),
        namespace,
        name,
        status,
        query,
        body: serde_json::from_slice(body).unwrap_or(Value::Null),
        user: user.to_owned(),
    })
}

/// The query, and whether it makes a list a watch.
fn query(text: &str) -> (Query, bool) {
    let mut query = Query::default();
    let mut is_watch = false;
    for pair in text.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value);
        let is_true = value == "true" || value == "1";
        match key {
            "watch" => is_watch = is_true,
            "resourceVersion" => query.resource_version = Some(value),
            "resourceVersionMatch" => {
                query.resource_version_match = match value.as_str() {
                    "Exact" => Some(VersionMatch::Exact),
                    _ => Some(VersionMatch::NotOlderThan),
                };
            }
            "limit" => query.limit = value.parse().unwrap_or_default(),
            "continue" => query.continue_token = Some(value),
            "labelSelector" => query.label_selector = Some(value),
            "fieldSelector" => query.field_selector = Some(value),
            "timeoutSeconds" => query.timeout_seconds = value.parse().ok(),
            "allowWatchBookmarks" => query.allow_watch_bookmarks = is_true,
            "sendInitialEvents" => query.send_initial_events = is_true,
            "fieldManager" => query.field_manager = Some(value),
            "force" => query.force = is_true,
            _ => {}
        }
    }
    (query, is_watch)
}

/// `a%2Cb+c` as `a,b c`.
fn decoded(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => match (digit(bytes.next()), digit(bytes.next())) {
                (Some(high), Some(low)) => u8::try_from(high * 16 + low).unwrap_or(b'?'),
                _ => b'?',
            },
            other => other,
        });
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
