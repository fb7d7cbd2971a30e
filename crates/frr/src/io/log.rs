//! The live log of an FRR daemon.
//!
//! `terminal monitor` on the vtysh socket is answered with a descriptor beside the bytes: a packet socket
//! with one packet for each record, which closes with the daemon or the connection. FRR drops records that
//! would block, and counts them. The text of records is not read: it differs between releases, and only the
//! fact that there is a record matters. Used by `watch`.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::Interest;
use tokio::net::{UnixDatagram, UnixStream};
use tokio::time::timeout;

/// Maximum length of an answer to one of the two commands, in bytes: they consist of the trailer alone.
const ANSWER_BYTES_MAX: usize = 4096;
/// Three NULs and the status.
const TRAILER_LENGTH: usize = 4;
/// Bytes of a record that are looked at, at most.
const RECORD_BYTES: usize = 512;
/// Marks a record that only logs a command (`log commands`). Each of our queries would cause one.
const COMMAND_MARK: &[u8] = b"vty[";

/// An open log.
#[derive(Debug)]
pub(super) struct Log {
    records: UnixDatagram,
    /// Closing this connection closes the log.
    _conversation: UnixStream,
}

impl Log {
    /// Opens the log of the daemon at `socket`.
    pub(super) async fn open(socket: &Path, patience: Duration) -> io::Result<Self> {
        let opened = timeout(patience, async {
            let stream = UnixStream::connect(socket).await?;
            command(&stream, "enable").await?;
            let descriptor = command(&stream, "terminal monitor").await?;
            let descriptor = descriptor.ok_or(io::ErrorKind::Unsupported)?;
            // A SOCK_SEQPACKET socket, read like a datagram socket.
            let records = std::os::unix::net::UnixDatagram::from(descriptor);
            records.set_nonblocking(true)?;
            Ok(Self { records: UnixDatagram::from_std(records)?, _conversation: stream })
        });
        opened.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Waits for a record; false at the end of the log. Cancel-safe.
    pub(super) async fn record(&mut self) -> bool {
        let mut bytes = [0u8; RECORD_BYTES];
        loop {
            // The rest of a packet is dropped. An empty one is the end.
            let length = self.records.recv(&mut bytes).await.unwrap_or(0);
            if length == 0 {
                return false;
            }
            let record = bytes.get(..length).unwrap_or_default();
            let mut parts = record.windows(COMMAND_MARK.len());
            if !parts.any(|part| part == COMMAND_MARK) {
                return true;
            }
        }
    }
}

/// Sends `line`, and waits for the answer and its descriptor.
async fn command(stream: &UnixStream, line: &str) -> io::Result<Option<OwnedFd>> {
    let said = [line.as_bytes(), &[0]].concat();
    let mut unsaid = said.as_slice();
    while !unsaid.is_empty() {
        stream.writable().await?;
        match stream.try_write(unsaid) {
            Ok(length) => unsaid = unsaid.get(length..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    let (mut answer, mut descriptor) = (Vec::new(), None);
    while answer.len() < ANSWER_BYTES_MAX {
        let mut bytes = [0u8; 512];
        let (length, came) =
            stream.async_io(Interest::READABLE, || receive(stream, &mut bytes)).await?;
        descriptor = came.or(descriptor);
        answer.extend_from_slice(bytes.get(..length).unwrap_or_default());
        match answer.as_slice() {
            _ if length == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            [.., 0, 0, 0, 0] if answer.len() == TRAILER_LENGTH => return Ok(descriptor),
            [.., 0, 0, 0, _] => return Err(io::ErrorKind::Unsupported.into()),
            _ => {}
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Reads once, and keeps the last descriptor that arrives; all others are closed.
fn receive(stream: &UnixStream, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(bytes)];
    let message = recvmsg(stream.as_fd(), &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptor = None;
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = part {
            descriptor = descriptors.last();
        }
    }
    Ok((message.bytes, descriptor))
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Read};
    use std::os::unix::net::{UnixListener, UnixStream as StdStream};

    use rustix::net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
        SocketType, send, sendmsg, socketpair,
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    /// One command, up to its NUL.
    fn heard(stream: &mut StdStream) -> String {
        let (mut line, mut byte) = (String::new(), [0]);
        while stream.read_exact(&mut byte).is_ok() && byte != [0] {
            line.push(char::from(byte[0]));
        }
        line
    }

    fn say(stream: &StdStream, bytes: &[u8], descriptors: &[&OwnedFd]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors: Vec<_> = descriptors.iter().map(|it| it.as_fd()).collect();
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        }
        sendmsg(stream, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap();
    }

    /// A daemon that hands out its log as FRR does, and the other end of that.
    fn daemon(
        folder: &Path,
    ) -> (std::path::PathBuf, std::thread::JoinHandle<(StdStream, OwnedFd)>) {
        let socket = folder.join("bgpd.vty");
        let listener = UnixListener::bind(&socket).unwrap();
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert_eq!(heard(&mut stream), "enable");
            say(&stream, &[0; 4], &[]);
            assert_eq!(heard(&mut stream), "terminal monitor");
            let (ours, theirs) =
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                    .unwrap();
            say(&stream, &[0; 4], &[&theirs]);
            (stream, ours)
        });
        (socket, serving)
    }

    #[tokio::test]
    async fn each_record_is_heard_but_those_that_a_look_makes_itself() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, serving) = daemon(folder.path());
        let mut log = Log::open(&socket, PATIENCE).await.unwrap();
        let (_conversation, records) = serving.join().unwrap();
        let write = |text: &str| send(&records, text.as_bytes(), SendFlags::empty()).unwrap();
        write("[M59KS-A3ZXZ] vty[9]@> show bgp vrf all summary json");
        assert!(timeout(Duration::from_millis(50), log.record()).await.is_err());
        write(&format!("{} %ADJCHANGE: neighbor 10.1.1.2 in vrf default Down", " ".repeat(4_000)));
        assert_eq!(timeout(PATIENCE, log.record()).await, Ok(true));
        drop(records);
        assert_eq!(timeout(PATIENCE, log.record()).await, Ok(false));
    }

    #[tokio::test]
    async fn who_has_no_log_says_so_and_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("old.vty");
        let listener = UnixListener::bind(&socket).unwrap();
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            heard(&mut stream);
            say(&stream, &[0; 4], &[]);
            heard(&mut stream);
            say(&stream, b"% Unknown command\n\0\0\0\x02", &[]);
            heard(&mut stream);
        });
        let error = Log::open(&socket, PATIENCE).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        serving.join().unwrap();
    }
}
