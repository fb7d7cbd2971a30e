//! How does the scripted peer talk? Over a plain TCP stream, message by message, and only as far
//! as the script goes. Used by the trials, against fairway and against BIRD.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::socket::{setsockopt, sockopt};

use crate::bytes::{HEADER_LENGTH_BYTES, Open, keepalive, kind};
use crate::entry::{Manner, hex};
use lab::wait::{PATIENCE, now, wait_until};

/// Where every speaker of the corpus listens: each has an address of its own.
pub(crate) const PORT: u16 = 10179;
/// How long one read of the socket may take.
const LOOK: Duration = Duration::from_millis(50);

/// What was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A message: its type and its body.
    Message(u8, Vec<u8>),
    /// The other side has closed, or broken, the connection.
    End,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// With this NOTIFICATION: code, subcode, data.
    Notification(u8, u8, Vec<u8>),
    /// Without one.
    Silence,
}

/// One end of a BGP connection.
#[derive(Debug)]
pub(crate) struct Speaker {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// Opens the port of `address`; [`Speaker::accept`] accepts the connection.
pub(crate) fn listen(address: [u8; 4]) -> Result<TcpListener> {
    let address = SocketAddr::new(IpAddr::from(address), PORT);
    let listener = TcpListener::bind(address).with_context(|| format!("listening at {address}"))?;
    listener.set_nonblocking(true).context("a listener that does not block")?;
    Ok(listener)
}

impl Speaker {
    /// Waits for a connection, and listens no more.
    pub(crate) fn accept(listener: TcpListener) -> Result<Self> {
        let (stream, _) = wait_until("the speaker under test dials", PATIENCE, || {
            listener.accept().context("accepting")
        })?;
        Self::over(stream)
    }

    /// Over a stream that is connected.
    pub(crate) fn over(stream: TcpStream) -> Result<Self> {
        stream.set_nonblocking(false).context("a stream that blocks")?;
        stream.set_read_timeout(Some(LOOK)).context("a limit for reading")?;
        stream.set_write_timeout(Some(PATIENCE)).context("a limit for writing")?;
        stream.set_nodelay(true).context("no delay")?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).context("sending")
    }

    /// Sends as the entry specifies. A side that ends the session early does not take all of it.
    pub(crate) fn send_in(&mut self, manner: Manner, bytes: &[u8]) -> Result<()> {
        let sent = match manner {
            Manner::ByteByByte => {
                bytes.iter().try_for_each(|byte| self.stream.write_all(std::slice::from_ref(byte)))
            }
            Manner::Whole | Manner::ThenFin | Manner::ThenReset => self.stream.write_all(bytes),
        };
        let gone = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
        match sent {
            Err(error) if !gone.contains(&error.kind()) => return Err(error).context("sending"),
            _ => {}
        }
        match manner {
            Manner::ThenFin => self.stream.shutdown(Shutdown::Write).context("closing our side"),
            Manner::ThenReset => self.reset(),
            Manner::Whole | Manner::ByteByByte => Ok(()),
        }
    }

    /// A connection that is closed with a linger time of zero is reset.
    fn reset(&mut self) -> Result<()> {
        let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&self.stream, sockopt::Linger, &linger).context("no linger")?;
        let unused = TcpListener::bind("127.0.0.1:0").context("a spare listener")?;
        let other = unused.local_addr().and_then(TcpStream::connect).context("a spare stream")?;
        other.shutdown(Shutdown::Both).context("closing the spare stream")?;
        drop(std::mem::replace(&mut self.stream, other));
        Ok(())
    }

    /// The next message that was received; `None` when there is none yet.
    fn next(&mut self) -> Result<Option<Heard>> {
        if let Some(message) = self.take_message()? {
            return Ok(Some(message));
        }
        let mut chunk = [0; 65536];
        match self.stream.read(&mut chunk) {
            Ok(0) => Ok(Some(Heard::End)),
            Ok(count) => {
                self.buffer.extend_from_slice(&chunk[..count]);
                self.take_message()
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(None),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Ok(Some(Heard::End)),
                _ => Err(error).context("reading"),
            },
        }
    }

    fn take_message(&mut self) -> Result<Option<Heard>> {
        let Some(header) = self.buffer.get(..HEADER_LENGTH_BYTES) else { return Ok(None) };
        ensure!(header[..16] == [0xFF; 16], "a marker of ones; got {}", hex(header));
        let length = usize::from(u16::from_be_bytes([header[16], header[17]]));
        ensure!((HEADER_LENGTH_BYTES..=4096).contains(&length), "a message of {length} octets");
        let kind = header[18];
        if self.buffer.len() < length {
            return Ok(None);
        }
        let message: Vec<u8> = self.buffer.drain(..length).collect();
        Ok(Some(Heard::Message(kind, message[HEADER_LENGTH_BYTES..].to_vec())))
    }

    /// Reads until `wanted` is satisfied by what is received.
    pub(crate) fn listen_until<T>(
        &mut self,
        expected: &str,
        mut wanted: impl FnMut(&Heard) -> Result<Option<T>>,
    ) -> Result<T> {
        let deadline = now() + PATIENCE;
        while now() <= deadline {
            if let Some(heard) = self.next()? {
                if let Some(found) = wanted(&heard)? {
                    return Ok(found);
                }
                if heard == Heard::End {
                    bail!("expected {expected}; the connection ended");
                }
            }
        }
        bail!("expected within {PATIENCE:?}: {expected}")
    }

    /// Waits for a message of this type; a NOTIFICATION in its place is an error that names it.
    pub(crate) fn expect(&mut self, wanted: u8, name: &str) -> Result<Vec<u8>> {
        self.listen_until(name, |heard| match heard {
            Heard::Message(kind, body) if *kind == wanted => Ok(Some(body.clone())),
            Heard::Message(kind::NOTIFICATION, body) => {
                bail!("expected {name}; got NOTIFICATION {}", hex(body))
            }
            Heard::Message(..) | Heard::End => Ok(None),
        })
    }

    /// Waits for the end of the session.
    pub(crate) fn farewell(&mut self) -> Result<Farewell> {
        let mut said = Farewell::Silence;
        self.listen_until("the end of the session", |heard| {
            if let Heard::Message(kind::NOTIFICATION, body) = heard {
                ensure!(said == Farewell::Silence, "a second NOTIFICATION: {}", hex(body));
                let (codes, data) = body.split_at_checked(2).context("a NOTIFICATION of codes")?;
                said = Farewell::Notification(codes[0], codes[1], data.to_vec());
            }
            Ok((*heard == Heard::End).then(|| said.clone()))
        })
    }

    /// What was received meanwhile; nothing is waited for.
    pub(crate) fn heard_so_far(&mut self) -> Result<Vec<Heard>> {
        let mut all = Vec::new();
        while let Some(heard) = self.next()? {
            let end = heard == Heard::End;
            all.push(heard);
            if end {
                break;
            }
        }
        Ok(all)
    }

    /// Brings a session up with a good OPEN.
    pub(crate) fn establish(&mut self, open: &Open) -> Result<()> {
        self.expect(kind::OPEN, "an OPEN")?;
        self.send(&open.bytes())?;
        self.expect(kind::KEEPALIVE, "a KEEPALIVE")?;
        self.send(&keepalive())
    }
}
