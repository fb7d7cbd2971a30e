//! How does a test ask an API server? One request on a connection of its own, in plain HTTP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(30);

/// What was answered.
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The values of `Warning` headers.
    pub(crate) warnings: Vec<String>,
    pub(crate) text: String,
}

impl Reply {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.text).with_context(|| format!("not JSON: {}", self.text))
    }
}

/// Asks. A PATCH is a merge patch.
pub(crate) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Reply> {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
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
