//! One call of a runtime: it goes to the daemon, and its answer comes back. Without a daemon, a container that is deleted is
//! noted for later, and everything else is to be tried again.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use fairway_ipam::cni::{Answer, CniError, Command, Invocation, Request};
use serde_json::Value;

use crate::spool;

/// How long the daemon may take. Runtimes wait for some minutes; one that has given up repeats its call.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long it may take to accept a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// What a process of the plugin ends with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The exit code.
    pub exit: u8,
    /// What it prints.
    pub stdout: Vec<u8>,
}

impl From<Answer> for Ending {
    fn from(Answer { exit, stdout }: Answer) -> Self {
        let stdout = stdout.map(|it| it.to_string().into_bytes());
        Self { exit, stdout: stdout.unwrap_or_default() }
    }
}

/// Answers a call.
pub fn answer(invocation: &Invocation<'_>, socket: &Path, spool: &Path) -> Ending {
    let command = match Request::parse(invocation) {
        // The daemon would say the same.
        Err(error) => return Answer::of(invocation, Err(error)).into(),
        // What is spoken is a matter of the plugin, and is asked for before there is a daemon.
        Ok(Request { command: Command::Version, .. }) => {
            return Answer::of(invocation, Ok(None)).into();
        }
        Ok(request) => request.command,
    };
    let call = invocation.to_bytes();
    match ask(socket, &call) {
        Ok(ending) => ending,
        Err(error) => {
            Answer::of(invocation, without_daemon(command, &error, socket, &call, spool)).into()
        }
    }
}

fn without_daemon(
    command: Command,
    error: &io::Error,
    socket: &Path,
    call: &[u8],
    spool: &Path,
) -> Result<Option<Value>, CniError> {
    let reason = format!("the Fairway daemon does not answer at {}: {error}", socket.display());
    match command {
        Command::Delete => match spool::put(spool, call) {
            Ok(()) => Ok(None),
            Err(error) => {
                let folder = spool.display();
                Err(CniError::try_again(format!(
                    "{reason}; cannot note the call in {folder}: {error}"
                )))
            }
        },
        Command::Status => Err(CniError::not_available(reason)),
        _ => Err(CniError::try_again(reason)),
    }
}

fn no_answer(after: Duration) -> io::Error {
    io::Error::other(format!("no answer in {} s", after.as_secs()))
}

/// A daemon that has been stopped accepts nobody, and a connection waits then without end.
fn connect(socket: &Path) -> io::Result<UnixStream> {
    let (tell, connected) = mpsc::channel();
    let socket = socket.to_owned();
    // The process ends with its answer, whatever this thread waits for.
    thread::Builder::new().spawn(move || tell.send(UnixStream::connect(socket)))?;
    connected.recv_timeout(CONNECT_PATIENCE).unwrap_or_else(|_| Err(no_answer(CONNECT_PATIENCE)))
}

/// Sends a call and reads its answer.
fn ask(socket: &Path, call: &[u8]) -> io::Result<Ending> {
    let mut stream = connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(call)?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => no_answer(PATIENCE),
        _ => error,
    })?;
    let (exit, stdout) = Answer::parse(&answer).map_err(io::Error::other)?;
    Ok(Ending { exit, stdout: stdout.to_vec() })
}
