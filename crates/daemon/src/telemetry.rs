//! Where log events go: to stderr, as text for people or as JSON lines for programs.

use std::borrow::Cow;
use std::fmt::Debug;
use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use fairway_ground::{printable, printable_json};
use serde_json::Value;
use tracing::field::Field;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// The operator must act.
    Error,
    /// A neighbor or a user did something wrong.
    Warn,
    /// What changed.
    Info,
    /// The reason for a change.
    Debug,
    /// Everything.
    Trace,
}

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line of text for each event.
    Text,
    /// A JSON object for each event.
    Json,
}

/// Bounds the memory while stderr is not read; further lines are dropped so that the daemon never blocks.
const LINES_MAX: usize = 8192;

/// Longest line: an annotation may have 256 KiB.
const LINE_BYTES_MAX: usize = 4096;
/// Longest text in a line of JSON that would be longer.
const TEXT_BYTES_MAX: usize = 3000;
/// What begins a colour, which only the formatter writes: it escapes those of others.
const ESCAPE: char = '\u{1b}';

/// Libraries with a log of their own. Their failures reach us as errors, which are logged once in our words;
/// their own log lines appear at level `trace` only.
const LIBRARIES: [&str; 6] = ["kube_client", "hyper", "hyper_util", "rustls", "tower", "h2"];

/// Starts logging. Called once, before anything else. A separate thread writes the lines; dropping the guard
/// writes the remaining ones.
pub fn start(level: LogLevel, format: LogFormat) -> WorkerGuard {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let limit = if level == LevelFilter::TRACE { level } else { LevelFilter::OFF };
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(LINES_MAX)
        .lossy(true)
        .finish(std::io::stderr());
    let has_colours = format == LogFormat::Text && std::io::stderr().is_terminal();
    let writer = move || LineWriter { inner: writer.clone(), format, has_colours };
    let filter = Targets::new().with_default(level).with_targets(LIBRARIES.map(|it| (it, limit)));
    let layer = fmt::layer().with_writer(writer).with_target(false);
    let registry = tracing_subscriber::registry();
    match format {
        LogFormat::Text => {
            let fields = debug_fn(write_field).delimited(" ");
            let layer = layer.with_ansi(has_colours).fmt_fields(fields);
            registry.with(layer.with_filter(filter)).init();
        }
        LogFormat::Json => {
            registry.with(layer.json().flatten_event(true).with_filter(filter)).init();
        }
    }
    guard
}

/// Writes a field: in quotes only a text with spaces, or one that is empty, whatever type it has in the source.
fn write_field(to: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> std::fmt::Result {
    let text = format!("{value:?}");
    match field.name() {
        "message" => to.write_str(&text),
        name => write!(to, "{name}={}", quoted(&text)),
    }
}

/// A value as it is written. Lists and texts with quotes in them stay as they are.
fn quoted(text: &str) -> Cow<'_, str> {
    let inner = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let is_plain = |it: &str| {
        !it.is_empty() && !it.contains(|it: char| it.is_whitespace() || "\"\\=".contains(it))
    };
    match inner {
        Some(inner) if is_plain(inner) => Cow::Borrowed(inner),
        None if !is_plain(text) && !text.contains('"') => Cow::Owned(format!("\"{text}\"")),
        _ => Cow::Borrowed(text),
    }
}

/// Writes each event as one line of bounded length that does nothing to a terminal.
struct LineWriter {
    inner: NonBlocking,
    format: LogFormat,
    has_colours: bool,
}

impl Write for LineWriter {
    /// Takes a whole event, as the formatter writes it.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = match self.format {
            LogFormat::Text => text_line(&text, self.has_colours),
            LogFormat::Json => json_line(&text),
        };
        self.inner.write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn text_line(event: &str, has_colours: bool) -> String {
    let event = event.strip_suffix('\n').unwrap_or(event);
    let line = match has_colours {
        true => {
            let parts: Vec<_> = event.split(ESCAPE).map(printable).collect();
            parts.join(&ESCAPE.to_string())
        }
        false => printable(event).into_owned(),
    };
    // A colour ends with its line.
    let end = if has_colours && line.len() > LINE_BYTES_MAX { "\u{1b}[0m\n" } else { "\n" };
    cut(&line, LINE_BYTES_MAX) + end
}

/// Long texts are cut.
fn json_line(event: &str) -> String {
    let event = printable_json(event);
    if event.len() <= LINE_BYTES_MAX {
        return event.into_owned();
    }
    match serde_json::from_str(&event) {
        Ok(mut value) => {
            cut_texts(&mut value);
            printable_json(&format!("{value}\n")).into_owned()
        }
        Err(_) => cut(&event, LINE_BYTES_MAX) + "\n",
    }
}

fn cut_texts(value: &mut Value) {
    match value {
        Value::String(text) => *text = cut(text, TEXT_BYTES_MAX),
        Value::Array(values) => values.iter_mut().for_each(cut_texts),
        Value::Object(fields) => fields.values_mut().for_each(cut_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The beginning of a text, with the number of bytes that are left out.
fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = (0..=bytes_max).rev().find(|it| text.is_char_boundary(*it)).unwrap_or_default();
    let (kept, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    format!("{kept}... ({} bytes more)", rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_that_does_nothing_to_a_terminal() {
        let event = "\u{1b}[31mERROR\u{1b}[0m a\nb\u{202e}c\u{9b}2J\n";
        let coloured = "\u{1b}[31mERROR\u{1b}[0m a\\nb\\u{202e}c\\u{9b}2J\n";
        assert_eq!(text_line(event, true), coloured);
        assert!(!text_line(event, false).contains(ESCAPE));
        assert_eq!(json_line("{\"a\":\"\u{202e}\"}\n"), "{\"a\":\"\\u202e\"}\n");
    }

    #[test]
    fn a_value_is_in_quotes_only_if_it_has_spaces() {
        for (text, expected) in [
            ("\"node-b\"", "node-b"),
            ("10.0.0.1:179", "10.0.0.1:179"),
            ("\"moving racks\"", "\"moving racks\""),
            ("Peer De-configured (6/3)", "\"Peer De-configured (6/3)\""),
            ("\"\"", "\"\""),
            ("", "\"\""),
            ("[\"a\", \"b\"]", "[\"a\", \"b\"]"),
            ("\"a=b\"", "\"a=b\""),
            ("a=b", "\"a=b\""),
            ("\"say \\\"hi\\\"\"", "\"say \\\"hi\\\"\""),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn a_long_event_is_cut_and_says_so() {
        let long = "é".repeat(100_000);
        let line = text_line(&format!("{long}\n"), false);
        assert!(
            line.len() < LINE_BYTES_MAX + 40 && line.ends_with("bytes more)\n"),
            "{}",
            line.len()
        );
        let event = serde_json::json!({"level": "WARN", "why": long, "list": [long]}).to_string();
        let line = json_line(&(event + "\n"));
        let value: Value = serde_json::from_str(&line).expect("JSON");
        assert!(line.len() < 2 * LINE_BYTES_MAX && value["level"] == "WARN", "{line}");
        assert_eq!(json_line("{\"a\":1}\n"), "{\"a\":1}\n");
    }
}
