//! A connection to one of FRR's daemons, over the socket that `vtysh` uses.
//!
//! A command is a line and a NUL. The answer is text, three NULs and a status byte. Answers are bounded in
//! time and in size, and no part of one answer is ever taken for part of the next: a connection that is out
//! of step is closed. Knows no command. Configuring and observing use separate connections.

use std::io;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long a daemon may take to accept and to answer: it does not answer while it reads a large message of a
/// neighbour or changes thousands of routes, which takes seconds at most.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of an answer, in bytes: a table of a million routes in JSON is larger, but is never
/// requested here.
pub const REPLY_BYTES_MAX: usize = 64 << 20;
/// Size of a read, in bytes.
const READ_BYTES: usize = 64 << 10;
/// Separates the text from the status byte.
const TRAILER: [u8; 3] = [0; 3];

/// A connection.
#[derive(Debug)]
pub struct Connection {
    path: PathBuf,
    stream: UnixStream,
    answer_timeout: Duration,
    /// A command was sent and its answer has not been read to the end.
    unanswered: bool,
}

/// The answer of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: Status,
    /// The text, unchanged. Bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// The status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It was executed.
    Success,
    /// The daemon has a warning. The command may or may not have been executed; the configuration shows
    /// which.
    Warning,
    /// The daemon does not know the command, or not in this context.
    Unknown,
    /// The command is ambiguous.
    Ambiguous,
    /// The command is incomplete.
    Incomplete,
    /// The command was understood but not executed.
    Failed,
    /// Another status, by FRR's number.
    Other(u8),
}

impl Status {
    fn from_byte(byte: u8) -> Self {
        match byte {
            // 10 is a success, too: the daemon is done, and vtysh has a part of its own.
            0 | 10 => Self::Success,
            1 => Self::Warning,
            2 => Self::Unknown,
            3 => Self::Ambiguous,
            4 => Self::Incomplete,
            13 => Self::Failed,
            other => Self::Other(other),
        }
    }
}

/// Why there was no answer. All of them end the connection.
#[derive(Debug, thiserror::Error)]
pub enum VtyError {
    /// Nothing listens.
    #[error("cannot connect to {}: {source}", .path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It closed the connection, or is not an FRR daemon.
    #[error("lost the connection to {}: {source}", .path.display())]
    Lost {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It hangs, or is overloaded.
    #[error("no answer from {} within {} s", .path.display(), .waited.as_secs_f32())]
    Silent {
        /// The socket.
        path: PathBuf,
        /// How long the answer was waited for.
        waited: Duration,
    },
    /// The answer is implausibly long.
    #[error("an answer from {} is longer than {REPLY_BYTES_MAX} bytes", .0.display())]
    TooLong(PathBuf),
    /// The command would not end where its line ends.
    #[error("invalid command {0:?}; expected one line without NUL")]
    NotALine(String),
    /// An earlier command was abandoned before its answer arrived.
    #[error("an earlier command to {} was not answered; reconnect", .0.display())]
    Unanswered(PathBuf),
}

impl Connection {
    /// Connects to a daemon's socket, `DIR/bgpd.vty`. This does not prove that the daemon works: one that
    /// hangs accepts, too.
    pub async fn connect(path: impl Into<PathBuf>) -> Result<Self, VtyError> {
        Self::connect_with_timeout(path, ANSWER_TIMEOUT).await
    }

    /// The same, with another timeout for each answer.
    pub async fn connect_with_timeout(
        path: impl Into<PathBuf>,
        answer_timeout: Duration,
    ) -> Result<Self, VtyError> {
        let path = path.into();
        match timeout(answer_timeout, UnixStream::connect(&path)).await {
            Ok(Ok(stream)) => Ok(Self { path, stream, answer_timeout, unanswered: false }),
            Ok(Err(source)) => Err(VtyError::Connect { path, source }),
            Err(_) => Err(VtyError::Silent { path, waited: answer_timeout }),
        }
    }

    /// Another connection to the same daemon.
    pub async fn another(&self) -> Result<Self, VtyError> {
        Self::connect_with_timeout(self.path.clone(), self.answer_timeout).await
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sends `line`, and waits for the answer.
    ///
    /// If it is cancelled, the connection is unusable, and every later command fails.
    pub async fn command(&mut self, line: &str) -> Result<Reply, VtyError> {
        if line.contains(['\0', '\n', '\r']) {
            return Err(VtyError::NotALine(line.to_owned()));
        }
        if self.unanswered {
            return Err(VtyError::Unanswered(self.path.clone()));
        }
        self.unanswered = true;
        let reply = match timeout(self.answer_timeout, self.exchange(line)).await {
            Ok(reply) => reply?,
            Err(_) => {
                let (path, waited) = (self.path.clone(), self.answer_timeout);
                return Err(VtyError::Silent { path, waited });
            }
        };
        self.unanswered = false;
        Ok(reply)
    }

    /// Ready when the daemon has closed the connection, or sent unsolicited data. Only to be called while no
    /// command is pending.
    pub(super) fn poll_ended(&self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.stream.poll_read_ready(context).is_pending() {
                return Poll::Pending;
            }
            match self.stream.try_read(&mut [0]) {
                // A spurious readiness; poll again to register the waker.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => return Poll::Ready(()),
            }
        }
    }

    async fn exchange(&mut self, line: &str) -> Result<Reply, VtyError> {
        let said = [line.as_bytes(), &[0]].concat();
        self.stream.write_all(&said).await.map_err(|error| self.lost(error))?;
        let mut answer = Vec::new();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let length = self.stream.read(&mut buffer).await.map_err(|error| self.lost(error))?;
            if length == 0 {
                return Err(self.lost(io::ErrorKind::UnexpectedEof.into()));
            }
            answer.extend_from_slice(buffer.get(..length).unwrap_or_default());
            // One command is pending at a time, so nothing follows its trailer.
            if let [text @ .., a, b, c, status] = answer.as_slice()
                && [*a, *b, *c] == TRAILER
            {
                let text = String::from_utf8_lossy(text).into_owned();
                return Ok(Reply { status: Status::from_byte(*status), text });
            }
            if answer.len() > REPLY_BYTES_MAX {
                return Err(VtyError::TooLong(self.path.clone()));
            }
        }
    }

    fn lost(&self, source: io::Error) -> VtyError {
        VtyError::Lost { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests;
