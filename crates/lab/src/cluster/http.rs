//! How does a test query an API server? One request on a connection of its own, in plain HTTP: over a
//! Unix socket, it can be reached from any network namespace.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(30);

pub const JSON: &str = "application/json";
pub const MERGE_PATCH: &str = "application/merge-patch+json";
pub const APPLY: &str = "application/apply-patch+yaml";

/// The status code.
pub struct Reply {
    pub status: u16,
    /// The values of `Warning` headers.
    pub warnings: Vec<String>,
    pub text: String,
}

impl Reply {
    /// The body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.text).with_context(|| format!("not JSON: {}", self.text))
    }
}

/// Sends a request. A PATCH is a merge patch.
pub fn ask(socket: &Path, method: &str, path: &str, body: Option<&Value>) -> Result<Reply> {
    ask_as(socket, method, path, if method == "PATCH" { MERGE_PATCH } else { JSON }, body)
}

/// The same, with a content type.
pub fn ask_as(
    socket: &Path,
    method: &str,
    path: &str,
    kind: &str,
    body: Option<&Value>,
) -> Result<Reply> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(LIMIT))?;
    exchange(stream, method, path, kind, body)
}

/// The same over TCP, from the network namespace of this thread.
pub fn ask_at(
    server: SocketAddr,
    method: &str,
    path: &str,
    kind: &str,
    body: Option<&Value>,
) -> Result<Reply> {
    let stream = TcpStream::connect_timeout(&server, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    exchange(stream, method, path, kind, body)
}

fn exchange(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    kind: &str,
    body: Option<&Value>,
) -> Result<Reply> {
    let body = body.map(Value::to_string).unwrap_or_default();
    // Of HTTP 1.0 the answer comes in one piece, and its end is that of the connection.
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: {kind}\r\n\
         Accept: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8(answer)?;
    let (head, text) =
        answer.split_once("\r\n\r\n").context("an answer without an end of its head")?;
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("no status")?;
    let header = |line: &str| line.strip_prefix("Warning: ").map(str::to_owned);
    Ok(Reply {
        status: status.parse()?,
        warnings: lines.filter_map(header).collect(),
        text: text.to_owned(),
    })
}
