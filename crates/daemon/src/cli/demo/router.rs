//! What a daemon's log reports about routes and sessions.

use anyhow::{Context, Result};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::ChildStderr;

/// Something worth showing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// The session is up.
    SessionUp,
    /// The session is down.
    SessionDown(String),
    /// A route was announced.
    Announced(String),
    /// A route was withdrawn.
    Withdrawn(String),
}

/// Reads the JSON log of a daemon.
pub(super) struct Log {
    lines: Lines<BufReader<ChildStderr>>,
    /// The last lines, for the error when the daemon exits.
    tail: Vec<String>,
}

/// Lines that are kept to explain an exit.
const TAIL_LINES: usize = 10;

impl Log {
    pub(super) fn of(stderr: ChildStderr) -> Self {
        Self { lines: BufReader::new(stderr).lines(), tail: Vec::new() }
    }

    /// The next event in the log. Cancel-safe, as reading lines is.
    pub(super) async fn next(&mut self) -> Result<Heard> {
        loop {
            let line = self.lines.next_line().await?;
            let line =
                line.with_context(|| format!("a daemon ended:\n{}", self.tail.join("\n")))?;
            let heard = heard(&line);
            if self.tail.len() >= TAIL_LINES {
                self.tail.remove(0);
            }
            self.tail.push(line);
            if let Some(heard) = heard {
                return Ok(heard);
            }
        }
    }
}

fn heard(line: &str) -> Option<Heard> {
    let event: Value = serde_json::from_str(line).ok()?;
    let text = |field: &str| event.get(field).and_then(Value::as_str).map(str::to_owned);
    match text("message")?.as_str() {
        "session up" => Some(Heard::SessionUp),
        "session down" => Some(Heard::SessionDown(text("reason")?)),
        "route learned" => Some(Heard::Announced(text("prefix")?)),
        "route gone" => Some(Heard::Withdrawn(text("prefix")?)),
        _ => None,
    }
}
