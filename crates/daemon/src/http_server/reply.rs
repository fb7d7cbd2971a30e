//! Replies of a server.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;

const PLAIN: &str = "text/plain; charset=utf-8";

/// Text for people.
pub(crate) fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    text_of(status, text.to_owned())
}

/// The same, without a copy.
pub(crate) fn text_of(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    response(status, PLAIN, text)
}

/// JSON that is written already.
pub(crate) fn json(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    response(status, "application/json", text)
}

/// Text of this type.
pub(crate) fn response(
    status: StatusCode,
    kind: &'static str,
    text: String,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
