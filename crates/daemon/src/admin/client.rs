//! The client side of the admin socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use fairway_show::DrainReport;
use fairway_show::overview::Overview;

use super::drain::DrainRequest;
use super::table::PIECE_BYTES;
use super::{Answer, DumpRequest, Request};

/// How long an answer may take: rendering takes milliseconds, a full table a second.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What is kept of an answer at most, in bytes: a table of a million routes is shorter.
const KEPT_BYTES_MAX: usize = if cfg!(test) { 1 << 20 } else { 512 << 20 };

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No daemon listens there.
    #[error(
        "no daemon answers at {}: {cause}; start `fairway run`, or set its socket with --socket \
         or FAIRWAY_SOCKET", path.display()
    )]
    Connect {
        /// The socket.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
    /// A daemon listens there, and its socket belongs to another user.
    #[error(
        "the daemon at {} belongs to another user; use sudo or become that user; if \
         the daemon runs with --socket-mode 0660, a member of its group can connect as well", path.display()
    )]
    Denied {
        /// The socket.
        path: PathBuf,
    },
    /// The daemon accepts the connection and does not answer.
    #[error("the daemon at {} did not answer within {} s", path.display(), limit.as_secs())]
    Silent {
        /// The socket.
        path: PathBuf,
        /// How long it had.
        limit: Duration,
    },
    /// The connection broke.
    #[error("the daemon at {} did not answer: {cause}", path.display())]
    Exchange {
        /// The socket.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
    /// The answer is not what this version expects.
    #[error(
        "the daemon at {} sent an unexpected answer: {cause}; check that it has the same version as \
         this command", path.display()
    )]
    Answer {
        /// The socket.
        path: PathBuf,
        /// What is wrong with the answer.
        cause: serde_json::Error,
    },
    /// What the daemon sends cannot be written.
    #[error("cannot write the answer: {0}")]
    Write(io::Error),
    /// The daemon refuses the request.
    #[error("{0}")]
    Refused(String),
}

/// Sends `request` to the daemon at `path` and returns the text to print.
pub fn ask(path: &Path, request: &Request) -> Result<String, ClientError> {
    ask_within(ANSWER_TIMEOUT, path, request)
}

/// The same, with another limit for the answer.
pub fn ask_within(limit: Duration, path: &Path, asked: &Request) -> Result<String, ClientError> {
    let mut answers = request(limit, path, asked)?;
    let mut text = String::new();
    loop {
        let (part, is_last) = part_of(path, next_answer(limit, path, &mut answers)?)?;
        text.push_str(&part);
        if is_last {
            return Ok(text);
        }
        bounded(limit, path, text.len())?;
    }
}

/// Sends `request` to the daemon at `path`, and hands each part of the text to `write` as it arrives, until that returns
/// `false`. The daemon waits for no terminal: what is not written yet is kept.
pub fn ask_in_parts(
    path: &Path,
    asked: &Request,
    mut write: impl FnMut(&str) -> io::Result<bool>,
) -> Result<(), ClientError> {
    let mut answers = request(ANSWER_TIMEOUT, path, asked)?;
    let (tell, arrived) = sync_channel(KEPT_BYTES_MAX / PIECE_BYTES);
    thread::scope(|scope| {
        scope.spawn(move || {
            loop {
                let answer = next_answer(ANSWER_TIMEOUT, path, &mut answers);
                let part = answer.and_then(|it| part_of(path, it));
                let is_last = !matches!(part, Ok((_, false)));
                if tell.send(part).is_err() || is_last {
                    return;
                }
            }
        });
        for part in arrived {
            let (part, is_last) = part?;
            if !write(&part).map_err(ClientError::Write)? || is_last {
                break;
            }
        }
        Ok(())
    })
}

/// The text of an answer, and whether it is the last one.
fn part_of(path: &Path, answer: Answer) -> Result<(String, bool), ClientError> {
    match answer {
        Answer::Piece(output) if output.len() > PIECE_BYTES => {
            Err(something_else(path, "a piece of a text that is too long"))
        }
        Answer::Piece(output) => Ok((output, false)),
        Answer::Output(output) => Ok((output, true)),
        Answer::Error(why) => Err(ClientError::Refused(why)),
        Answer::Drain(_) => Err(something_else(path, "a report of a drain")),
        Answer::Encoded(_) => Err(something_else(path, "bytes")),
        Answer::Overview(_) => Err(something_else(path, "an overview")),
    }
}

/// Asks the daemon at `path` for the state of its node, with at most `rows_max` rows of each table that grows with the
/// cluster.
pub fn ask_overview(path: &Path, rows_max: usize) -> Result<Overview, ClientError> {
    match exchange(ANSWER_TIMEOUT, path, &Request::Overview { rows_max })? {
        Answer::Overview(overview) => Ok(*overview),
        Answer::Error(why) => Err(ClientError::Refused(why)),
        _ => Err(something_else(path, "something else than an overview")),
    }
}

/// Sends `request` to the daemon at `path` and returns the progress of the drain.
pub fn ask_drain(path: &Path, request: DrainRequest) -> Result<DrainReport, ClientError> {
    match exchange(ANSWER_TIMEOUT, path, &Request::Drain(request))? {
        Answer::Drain(report) => Ok(report),
        Answer::Error(why) => Err(ClientError::Refused(why)),
        _ => Err(something_else(path, "something else than a report of a drain")),
    }
}

/// Sends `request` to the daemon at `path` and returns the bytes of the dump.
pub fn ask_dump(path: &Path, request: DumpRequest) -> Result<Vec<u8>, ClientError> {
    match exchange(ANSWER_TIMEOUT, path, &Request::Dump(request))? {
        Answer::Encoded(text) => {
            let bytes = data_encoding::BASE64.decode(text.as_bytes());
            bytes.map_err(|_| something_else(path, "bytes that are not base64"))
        }
        Answer::Error(why) => Err(ClientError::Refused(why)),
        _ => Err(something_else(path, "something else than bytes")),
    }
}

/// Asks the daemon at `path` for all routes, and hands each piece to `write`. What else the daemon has to say.
pub fn ask_rib(
    path: &Path,
    format: String,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<String, ClientError> {
    let mut answers = request(ANSWER_TIMEOUT, path, &Request::DumpRib { format })?;
    loop {
        match next_answer(ANSWER_TIMEOUT, path, &mut answers)? {
            Answer::Encoded(text) => {
                let bytes = data_encoding::BASE64.decode(text.as_bytes());
                let bytes = bytes.map_err(|_| something_else(path, "bytes that are not base64"))?;
                write(&bytes).map_err(ClientError::Write)?;
            }
            Answer::Output(notes) => return Ok(notes),
            Answer::Error(why) => return Err(ClientError::Refused(why)),
            Answer::Drain(_) | Answer::Overview(_) | Answer::Piece(_) => {
                return Err(something_else(path, "something else than routes"));
            }
        }
    }
}

fn something_else(path: &Path, what: &str) -> ClientError {
    ClientError::Answer { path: path.to_owned(), cause: serde::de::Error::custom(what) }
}

fn exchange_error(limit: Duration, path: &Path, cause: io::Error) -> ClientError {
    match cause.kind() {
        io::ErrorKind::WouldBlock => ClientError::Silent { path: path.to_owned(), limit },
        _ => ClientError::Exchange { path: path.to_owned(), cause },
    }
}

fn exchange(limit: Duration, path: &Path, asked: &Request) -> Result<Answer, ClientError> {
    next_answer(limit, path, &mut request(limit, path, asked)?)
}

/// Sends `request`; the answers are to be read.
fn request(
    limit: Duration,
    path: &Path,
    request: &Request,
) -> Result<BufReader<UnixStream>, ClientError> {
    let exchange = |cause: io::Error| exchange_error(limit, path, cause);
    let stream = UnixStream::connect(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::PermissionDenied => ClientError::Denied { path: path.to_owned() },
        _ => ClientError::Connect { path: path.to_owned(), cause },
    })?;
    stream.set_read_timeout(Some(limit)).map_err(exchange)?;
    let mut line = serde_json::to_string(request)
        .map_err(|cause| ClientError::Answer { path: path.to_owned(), cause })?;
    line.push('\n');
    (&stream).write_all(line.as_bytes()).map_err(exchange)?;
    Ok(BufReader::new(stream))
}

fn next_answer(
    limit: Duration,
    path: &Path,
    answers: &mut BufReader<UnixStream>,
) -> Result<Answer, ClientError> {
    let exchange = |cause: io::Error| exchange_error(limit, path, cause);
    let mut reply = String::new();
    let length_max = u64::try_from(KEPT_BYTES_MAX).unwrap_or(u64::MAX);
    answers.take(length_max).read_line(&mut reply).map_err(exchange)?;
    bounded(limit, path, reply.len())?;
    if !reply.is_empty() && !reply.ends_with('\n') {
        let cause = "it closed the connection in the middle of the answer; it waits 30 s for a client that does not read";
        return Err(exchange_error(limit, path, io::Error::other(cause)));
    }
    serde_json::from_str(&reply)
        .map_err(|cause| ClientError::Answer { path: path.to_owned(), cause })
}

fn bounded(limit: Duration, path: &Path, length: usize) -> Result<(), ClientError> {
    if length < KEPT_BYTES_MAX {
        return Ok(());
    }
    let cause = format!("an answer without an end, longer than {KEPT_BYTES_MAX} bytes");
    Err(exchange_error(limit, path, io::Error::other(cause)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Whatever listens at the path: the client has the memory of a terminal, not of a server.
    #[test]
    fn an_answer_that_never_ends_is_not_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let answering = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let chunk = [b'x'; 1 << 16];
            // Until the client leaves.
            (0..16 * KEPT_BYTES_MAX / chunk.len()).all(|_| stream.write_all(&chunk).is_ok())
        });
        let error = ask(&path, &Request::Reload { accepts_empty: false }).unwrap_err();
        assert!(error.to_string().contains("an answer without an end"), "{error}");
        assert!(!answering.join().unwrap(), "it has read all of it");
    }
}
