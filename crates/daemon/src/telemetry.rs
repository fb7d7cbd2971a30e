//! Where log events go: to stderr, as text for people or as JSON lines for programs.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// The operator must act.
    Error,
    /// A neighbour or a user did something wrong.
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
    let filter = Targets::new().with_default(level).with_targets(LIBRARIES.map(|it| (it, limit)));
    let layer = fmt::layer().with_writer(writer).with_target(false);
    let registry = tracing_subscriber::registry();
    match format {
        LogFormat::Text => {
            let layer = layer.with_ansi(std::io::stderr().is_terminal());
            registry.with(layer.with_filter(filter)).init();
        }
        LogFormat::Json => {
            registry.with(layer.json().flatten_event(true).with_filter(filter)).init();
        }
    }
    guard
}
