//! Which path has which answer.

use std::borrow::Cow;
use std::time::Duration;

use fairway_looking_glass::birdwatcher::{self, BirdwatcherError, Question};
use fairway_looking_glass::{Found, Fragment, ICON, Query, SCRIPT, STYLE, page};
use fairway_seam::ViewScope;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use tokio::sync::watch;
use tokio::time::timeout;

use super::body::Reply;
use super::looks::{LookError, Looks, Turn};
use super::sight::Sight;
use crate::admin::Observer;

/// How long a page waits for the first look at the node, when the daemon has just started.
const FIRST_LOOK_TIMEOUT: Duration = Duration::from_secs(10);

const HTML: &str = "text/html; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// Nothing is loaded from elsewhere, no script and no style is in the page itself, and nobody frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Answers from what is seen, and what is asked.
#[derive(Clone)]
pub(super) struct Replies {
    pub(super) sights: watch::Receiver<Sight>,
    pub(super) looks: Looks,
    pub(super) observer: Observer,
}

impl Replies {
    /// The reply, if it ends; `/events` does not, and is the server's.
    pub(super) async fn reply<B>(&self, request: &Request<B>) -> Response<Reply> {
        if let Some(refusal) = refusal(request) {
            return refusal;
        }
        let uri = request.uri();
        match uri.path() {
            "/" => self.page(uri).await,
            "/style.css" => reply(StatusCode::OK, "text/css; charset=utf-8", STYLE),
            "/page.js" => reply(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT),
            "/icon.svg" => reply(StatusCode::OK, "image/svg+xml", ICON),
            path => match Question::of(&unescaped(path), value(uri, "peer").as_deref()) {
                Some(question) => self.json(&question).await,
                None => reply(
                    StatusCode::NOT_FOUND,
                    PLAIN,
                    "not found: the looking glass is at /, and birdwatcher's JSON at /status, /protocols/bgp, \
                     /routes/protocol/NAME, /routes/peer/ADDRESS, /routes/filtered/NAME and /route/net/PREFIX\n",
                ),
            },
        }
    }

    async fn page(&self, uri: &Uri) -> Response<Reply> {
        let query = value(uri, "q").and_then(|it| Query::new(&it));
        let found = match &query {
            Some(query) => Some((query, self.find(query).await)),
            None => None,
        };
        let sight = {
            let mut sights = self.sights.clone();
            // At the start of the daemon, until the first look.
            let first = sights.wait_for(|it| !it.parts.is_empty());
            if !matches!(timeout(FIRST_LOOK_TIMEOUT, first).await, Ok(Ok(_))) {
                return reply(
                    StatusCode::SERVICE_UNAVAILABLE,
                    PLAIN,
                    "the daemon does not answer\n",
                );
            }
            sights.borrow().clone()
        };
        let fragments: Vec<&Fragment> = sight.parts.iter().map(|it| &it.fragment).collect();
        let (failure, found) = match found {
            Some((query, Ok(found))) => (None, Some((query, Ok(found)))),
            Some((query, Err(error))) => (Some(error.to_string()), Some((query, Err(())))),
            None => (None, None),
        };
        let search = found.as_ref().map(|(query, outcome)| {
            let outcome = outcome.as_ref().map_err(|()| failure.as_deref().unwrap_or_default());
            (*query, outcome)
        });
        let seen = sight.seen();
        match page(&sight.node, &fragments, sight.at_epoch_seconds, &seen, search) {
            Ok(html) => reply(StatusCode::OK, HTML, html),
            Err(error) => reply(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, format!("{error}\n")),
        }
    }

    async fn find(&self, query: &Query) -> Result<Found, LookError> {
        let turn = self.looks.turn().await?;
        turn.look(&self.observer, Query::SCOPE, |it| Found::of(it, query)).await
    }

    async fn json(&self, question: &Question) -> Response<Reply> {
        let outcome = match self.looks.turn().await {
            Ok(turn) => self.answer(question, &turn).await.map(|it| (it, turn)),
            Err(error) => Err(error.into()),
        };
        match outcome {
            Ok((text, turn)) => {
                let mut response = reply(StatusCode::OK, JSON, "");
                *response.body_mut() = Reply::in_turn(text, turn);
                response
            }
            Err(failure) => {
                reply(failure.status(), JSON, birdwatcher::failure(&failure.to_string()))
            }
        }
    }

    async fn answer(&self, question: &Question, turn: &Turn) -> Result<String, Failure> {
        let sessions = ViewScope::SESSIONS;
        turn.look(&self.observer, sessions, |it| question.refuse_early(it)).await??;
        Ok(turn.look(&self.observer, question.scope(), |it| question.answer(it)).await??)
    }
}

/// Why there is no JSON.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Look(#[from] LookError),
    #[error(transparent)]
    Birdwatcher(#[from] BirdwatcherError),
}

impl Failure {
    fn status(&self) -> StatusCode {
        match self {
            Self::Look(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Birdwatcher(BirdwatcherError::NoSuchProtocol(_)) => StatusCode::NOT_FOUND,
            Self::Birdwatcher(BirdwatcherError::NoPrefix(_)) => StatusCode::BAD_REQUEST,
            Self::Birdwatcher(
                BirdwatcherError::TooMany(_)
                | BirdwatcherError::TooLong(_)
                | BirdwatcherError::Json(_),
            ) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// The answer to what is no request to read.
fn refusal<B>(request: &Request<B>) -> Option<Response<Reply>> {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let text = "the looking glass only reads: GET and HEAD are supported\n";
    let mut refusal = reply(StatusCode::METHOD_NOT_ALLOWED, PLAIN, text);
    refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    Some(refusal)
}

/// A reply with the headers of all.
pub(super) fn reply(
    status: StatusCode,
    kind: &'static str,
    text: impl Into<hyper::body::Bytes>,
) -> Response<Reply> {
    let mut response = Response::new(Reply::text(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The value of `name` in a query.
pub(super) fn value(uri: &Uri, name: &str) -> Option<String> {
    let pairs = form_urlencoded::parse(uri.query()?.as_bytes());
    pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// A path with its escapes resolved. A plus is a plus there, unlike in a query.
fn unescaped(path: &str) -> Cow<'_, str> {
    let kept = path.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    let pair = form_urlencoded::parse(kept.as_bytes()).next();
    pair.map_or(Cow::Borrowed(path), |(key, _)| Cow::Owned(key.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_queries_are_read_as_browsers_write_them() {
        assert_eq!(unescaped("/route/net/10.0.0.0%2F8"), "/route/net/10.0.0.0/8");
        assert_eq!(unescaped("/a+b&c=d%20e"), "/a+b&c=d e");
        let uri: Uri = "/?x=1&q=shop%2Fweb+b".parse().unwrap();
        assert_eq!(value(&uri, "q").as_deref(), Some("shop/web b"));
        assert_eq!(value(&uri, "peer"), None);
    }
}
