//! How to ask a Service and how a Pod answers: over TCP, UDP and SCTP.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::errno::Errno;
use nix::sys::socket::sockopt::{Ipv6V6Only, SendTimeout};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, connect,
    listen, setsockopt, socket,
};
use nix::sys::time::TimeVal;

use lab::namespace::Namespace;

/// A packet that nobody answers is dropped.
const PATIENCE: Duration = Duration::from_secs(3);
const PORT: u16 = 8080;

/// What a client gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// From this Pod, which saw this source address.
    From(String, IpAddr),
    Refused,
    Nothing,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From(pod, source) => write!(f, "{pod} saw {source}"),
            Self::Refused => f.write_str("refused"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

/// By which protocol is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Tcp,
    Udp,
    Sctp,
}

impl Over {
    pub(super) const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Sctp];

    /// Asks once.
    pub(super) fn ask(self, from: &Namespace, to: &str) -> Result<Answer> {
        match self {
            Self::Tcp => tcp(from, to),
            Self::Udp => udp(from, to),
            Self::Sctp => sctp(from, to),
        }
    }
}

/// Answers each connection and each datagram with the number of the Pod and the source address that it sees.
pub(super) fn serve(pod: &Namespace, position: usize) -> Result<()> {
    let echo = pod.enter(|| Ok(TcpListener::bind("0.0.0.0:9090")?))?;
    std::thread::spawn(move || {
        for stream in echo.incoming().flatten() {
            std::thread::spawn(move || {
                let _ = stream.set_nodelay(true);
                let (mut from, mut to) = (&stream, &stream);
                let _ = std::io::copy(&mut from, &mut to);
            });
        }
    });
    for any in ["0.0.0.0", "::"] {
        let any = SocketAddr::new(any.parse()?, PORT);
        let (tcp, udp) = pod.enter(|| {
            if any.is_ipv6() {
                std::fs::write("/proc/sys/net/ipv6/bindv6only", "1").context("bindv6only")?;
            }
            Ok((TcpListener::bind(any)?, UdpSocket::bind(any)?))
        })?;
        serve_connections(tcp, position);
        std::thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok((_, from)) = udp.recv_from(&mut buffer) {
                let _ = udp.send_to(format!("pod{position} {}", from.ip()).as_bytes(), from);
            }
        });
    }
    Ok(())
}

/// The same over SCTP, which the kernel has as a module.
pub(super) fn serve_sctp(pod: &Namespace, position: usize) -> Result<()> {
    for any in ["0.0.0.0", "::"] {
        let any = SocketAddr::new(any.parse()?, PORT);
        let listener = pod.enter(|| {
            let socket = sctp_socket(any)?;
            if any.is_ipv6() {
                setsockopt(&socket, Ipv6V6Only, &true).context("IPv6 alone")?;
            }
            bind(socket.as_raw_fd(), &SockaddrStorage::from(any)).context("binding SCTP")?;
            listen(&socket, Backlog::new(16)?).context("listening with SCTP")?;
            Ok(TcpListener::from(socket))
        })?;
        serve_connections(listener, position);
    }
    Ok(())
}

fn serve_connections(listener: TcpListener, position: usize) {
    std::thread::spawn(move || {
        // `accept` of SCTP says who it is; `getpeername` says all addresses of theirs.
        while let Ok((mut stream, from)) = listener.accept() {
            let _ = stream.write_all(format!("pod{position} {}", from.ip()).as_bytes());
        }
    });
}

fn sctp_socket(to: SocketAddr) -> Result<OwnedFd> {
    let family = if to.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet };
    socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, SockProtocol::Sctp)
        .context("a socket of SCTP")
}

fn read(text: &str) -> Result<Answer> {
    let (pod, source) = text.split_once(' ').with_context(|| format!("an answer: {text:?}"))?;
    Ok(Answer::From(pod.to_owned(), source.parse()?))
}

pub(super) fn tcp(from: &Namespace, to: &str) -> Result<Answer> {
    from.enter(|| tcp_here(PATIENCE, to))
}

/// The same from the namespace of this thread.
pub(super) fn tcp_here(patience: Duration, to: &str) -> Result<Answer> {
    let to: SocketAddr = to.parse()?;
    let stream = match TcpStream::connect_timeout(&to, patience) {
        Ok(stream) => stream,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            return Ok(Answer::Refused);
        }
        Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(Answer::Nothing),
        Err(error) => return Err(error.into()),
    };
    hear(stream)
}

fn hear(mut stream: TcpStream) -> Result<Answer> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    read(&text)
}

pub(super) fn udp(from: &Namespace, to: &str) -> Result<Answer> {
    let to: SocketAddr = to.parse()?;
    let any = if to.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
    from.enter(|| {
        let socket = UdpSocket::bind(any)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.connect(to)?;
        socket.send(b"?")?;
        let mut buffer = [0; 64];
        match socket.recv(&mut buffer) {
            Ok(length) => read(std::str::from_utf8(buffer.get(..length).unwrap_or_default())?),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(Answer::Refused),
            Err(_) => Ok(Answer::Nothing),
        }
    })
}

fn sctp(from: &Namespace, to: &str) -> Result<Answer> {
    let to: SocketAddr = to.parse()?;
    from.enter(|| {
        let socket = sctp_socket(to)?;
        let patience = TimeVal::new(PATIENCE.as_secs().try_into()?, 0);
        setsockopt(&socket, SendTimeout, &patience).context("a timeout")?;
        match connect(socket.as_raw_fd(), &SockaddrStorage::from(to)) {
            Ok(()) => hear(TcpStream::from(socket)),
            Err(Errno::ECONNREFUSED) => Ok(Answer::Refused),
            Err(Errno::EAGAIN | Errno::EINPROGRESS | Errno::ETIMEDOUT) => Ok(Answer::Nothing),
            Err(error) => bail!("SCTP to {to}: {error}"),
        }
    })
}

/// Asks twice, so that each of two Pods is met, and compares the answers in whatever order.
pub(super) fn expect(
    what: &str,
    ask: impl Fn() -> Result<Answer>,
    expected: [&str; 2],
) -> Result<()> {
    let mut answers = [ask()?.to_string(), ask()?.to_string()];
    answers.sort();
    ensure!(answers == expected, "{what}: expected {expected:?}, it was {answers:?}");
    Ok(())
}
