//! One conversation with one of FRR's daemons, over the socket on which `vtysh` speaks to it.
//!
//! A command is a line and a NUL. The answer is text, three NULs and a byte that says how it went. What
//! a daemon says is bounded in time and in size, and nothing of one answer is ever taken for part of
//! the next: a conversation that lost its thread is over. Knows no command. Who configures and who
//! observes each have conversations of their own.

use std::io;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long a daemon may take to accept and to answer: it answers nobody while it reads a large
/// message of a neighbour or changes thousands of routes, and that is seconds at most.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer may be, in bytes: a table of a million routes in JSON is larger, and nobody here
/// asks for one.
pub const REPLY_BYTES_MAX: usize = 64 << 20;
/// How much is read at once, in bytes.
const READ_BYTES: usize = 64 << 10;
/// What stands between the text and the byte that says how it went.
const TRAILER: [u8; 3] = [0; 3];

/// A conversation.
#[derive(Debug)]
pub struct Connection {
    path: PathBuf,
    stream: UnixStream,
    answer_timeout: Duration,
    /// A command was sent and its answer has not been read to the end.
    unanswered: bool,
}

/// What a daemon answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// How it went.
    pub status: Status,
    /// What it said, as it said it. Bytes that are no UTF-8 are replaced.
    pub text: String,
}

/// How a command went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It was done.
    Success,
    /// The daemon has a remark. It may have been done or not; what is configured tells.
    Warning,
    /// The daemon does not know it, or not here.
    Unknown,
    /// It could mean several things.
    Ambiguous,
    /// Something is missing at its end.
    Incomplete,
    /// It was understood and not done.
    Failed,
    /// Something else, by FRR's number.
    Other(u8),
}

impl Status {
    fn from_byte(byte: u8) -> Self {
        match byte {
            // 10 is success, too: the daemon did its part, and vtysh should do its own.
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

/// Why there was no answer. All of them end the conversation.
#[derive(Debug, thiserror::Error)]
pub enum VtyError {
    /// Nobody listens.
    #[error("cannot connect to {}: {source}", .path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It went away, or never was what it seems.
    #[error("lost the connection to {}: {source}", .path.display())]
    Lost {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It hangs, or has more to do than it can.
    #[error("no answer from {} within {} s", .path.display(), .waited.as_secs_f32())]
    Silent {
        /// The socket.
        path: PathBuf,
        /// For how long it was waited.
        waited: Duration,
    },
    /// It said more than anybody would.
    #[error("an answer from {} is longer than {REPLY_BYTES_MAX} bytes", .0.display())]
    TooLong(PathBuf),
    /// It cannot be told where this line ends.
    #[error("a command is one line without NUL, and not {0:?}")]
    NotALine(String),
    /// An earlier command was given up before its answer was there.
    #[error("an earlier command to {} was not answered; connect anew", .0.display())]
    Unanswered(PathBuf),
}

impl Connection {
    /// Begins a conversation at a daemon's socket, `DIR/bgpd.vty`. The daemon has not said a word then:
    /// one that hangs accepts, too.
    pub async fn connect(path: impl Into<PathBuf>) -> Result<Self, VtyError> {
        Self::connect_with_timeout(path, ANSWER_TIMEOUT).await
    }

    /// The same, with an own bound for the time that each answer may take.
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

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says `line`, and waits for the answer.
    ///
    /// Given up before its end, it leaves the conversation unusable, and every later command says so.
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

    /// Ready when the daemon has ended the conversation, or said what nobody asked for. Only to be asked
    /// while no command is under way.
    pub(super) fn poll_ended(&self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.stream.poll_read_ready(context).is_pending() {
                return Poll::Pending;
            }
            match self.stream.try_read(&mut [0]) {
                // It was not ready after all, and has to be asked again to say when it is.
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
            // One command is under way at a time, so nothing follows its trailer.
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
