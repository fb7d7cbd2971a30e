//! Where log events go: to stderr, as text for people or as JSON lines for programs.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// A human must act.
    Error,
    /// A neighbour or a user did something wrong.
    Warn,
    /// What changed.
    Info,
    /// Why.
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

/// Lines that wait while nobody reads stderr; then lines are lost, and the daemon is not.
const LINES_MAX: usize = 8192;

/// Starts logging. Called once, before anything else happens. Lines are written by a thread of
/// their own; dropping the guard writes what is left.
pub fn start(level: LogLevel, format: LogFormat) -> WorkerGuard {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(LINES_MAX)
        .lossy(true)
        .finish(std::io::stderr());
    let builder = fmt().with_max_level(level).with_writer(writer).with_target(false);
    match format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    guard
}
