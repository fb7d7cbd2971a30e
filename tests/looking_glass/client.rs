//! Clients of the looking glass: requests that end, and viewers that follow events.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab::namespace::Namespace;
use lab::wait::now;
use serde_json::Value;

/// Where the daemon listens, in the namespace of the node.
pub(crate) const ADDRESS: &str = "127.0.0.1:7480";
const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn connect(node: &Namespace) -> Result<TcpStream> {
    node.enter(|| {
        let address: SocketAddr = ADDRESS.parse()?;
        let stream = TcpStream::connect_timeout(&address, TIMEOUT).context("connecting")?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(stream)
    })
}

/// A whole reply.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.body).with_context(|| self.body.clone())
    }
}

/// What comes back for these bytes, until the daemon closes.
pub(crate) fn exchange(node: &Namespace, request: &str) -> Result<Reply> {
    let mut stream = connect(node)?;
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        // It may close before it has read all.
        Err(error) if error.kind() != ErrorKind::ConnectionReset => return Err(error.into()),
        _ => {}
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) =
        text.split_once("\r\n\r\n").with_context(|| format!("no reply: {text:?}"))?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok(Reply { status, head: head.to_ascii_lowercase(), body: body.to_owned() })
}

pub(crate) fn get(node: &Namespace, path: &str) -> Result<Reply> {
    exchange(node, &format!("GET {path} HTTP/1.1\r\nHost: node\r\n\r\n"))
}

/// Reads `/events`.
pub(crate) struct Viewer {
    stream: TcpStream,
    text: String,
}

impl Viewer {
    /// One that has everything up to `seen`, as the page says it.
    pub(crate) fn after(node: &Namespace, seen: &str) -> Result<Self> {
        let mut stream = connect(node)?;
        write!(stream, "GET /events?seen={seen} HTTP/1.1\r\nHost: node\r\n\r\n")?;
        let mut viewer = Self { stream, text: String::new() };
        viewer.wait_for(|it| it.contains("\r\n\r\n"))?;
        Ok(viewer)
    }

    /// Reads until the text has what is wanted. Returns when.
    pub(crate) fn wait_for(&mut self, has: impl Fn(&str) -> bool) -> Result<Instant> {
        let end = now() + TIMEOUT;
        let mut bytes = [0; 65_536];
        while !has(&self.text) {
            if now() > end {
                bail!("not seen in time; the last events are {:?}", self.parts());
            }
            let count = self.stream.read(&mut bytes).context("reading events")?;
            if count == 0 {
                bail!("the daemon has closed; the last events are {:?}", self.parts());
            }
            self.text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        Ok(now())
    }

    pub(crate) fn forget(&mut self) {
        self.text.clear();
    }

    /// The names of the events so far.
    pub(crate) fn parts(&self) -> Vec<&str> {
        self.text.lines().filter_map(|it| it.strip_prefix("event: ")).collect()
    }
}

/// What a page says that it has.
pub(crate) fn seen(page: &str) -> Result<&str> {
    let (_, rest) = page.split_once("data-seen=\"").context("no data-seen")?;
    rest.split('"').next().context("no end")
}
