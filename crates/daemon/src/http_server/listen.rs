//! Where a server listens.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::sleep;
use tracing::warn;

/// How often a port that is in use is tried again: another daemon may release it.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// A value of an option such as `--metrics-listen`: where HTTP is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpListen {
    /// `none`.
    Nowhere,
    /// `:PORT`: all addresses of both families.
    Everywhere(u16),
    /// `ADDRESS:PORT`.
    At(SocketAddr),
}

/// A value of such an option that is none of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected ADDRESS:PORT, as in 127.0.0.1:7472 or [::1]:7472, or :PORT, or none")]
pub struct HttpListenError;

impl FromStr for HttpListen {
    type Err = HttpListenError;

    fn from_str(text: &str) -> Result<Self, HttpListenError> {
        if text == "none" {
            return Ok(Self::Nowhere);
        }
        match text.strip_prefix(':') {
            Some(port) => port.parse().map(Self::Everywhere).map_err(|_| HttpListenError),
            None => text.parse().map(Self::At).map_err(|_| HttpListenError),
        }
    }
}

impl fmt::Display for HttpListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => f.write_str("none"),
            Self::Everywhere(port) => write!(f, ":{port}"),
            Self::At(address) => address.fmt(f),
        }
    }
}

impl HttpListen {
    /// On this address; the unspecified one stands for all addresses of both families, as in Go.
    pub(crate) fn of(address: SocketAddr) -> Self {
        match address.ip().is_unspecified() {
            true => Self::Everywhere(address.port()),
            false => Self::At(address),
        }
    }

    /// For clients of this machine alone.
    pub(crate) fn local(port: u16) -> Self {
        Self::At(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))
    }

    /// Listens on this address, as soon as that is possible; `None` for `none`. A port that is in use or forbidden is
    /// logged once, with what is missing meanwhile and the option that names the port.
    pub(crate) async fn bind_patiently(self, missing: &str, option: &str) -> Option<TcpListener> {
        let mut has_failed = false;
        loop {
            match self.bind().await {
                Ok(listener) => return listener,
                Err(error) if !has_failed => {
                    has_failed = true;
                    warn!(%error, listen = %self, "no {missing}: cannot listen ({option}); trying again");
                }
                Err(_) => {}
            }
            sleep(RETRY_INTERVAL).await;
        }
    }

    async fn bind(self) -> io::Result<Option<TcpListener>> {
        let at = |address: IpAddr, port| TcpListener::bind(SocketAddr::new(address, port));
        let listener = match self {
            Self::Nowhere => return Ok(None),
            Self::At(address) => TcpListener::bind(address).await?,
            // Accepts IPv4 as well; a machine without IPv6 refuses it.
            Self::Everywhere(port) => match at(Ipv6Addr::UNSPECIFIED.into(), port).await {
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                    at(Ipv4Addr::UNSPECIFIED.into(), port).await?
                }
                bound => bound?,
            },
        };
        Ok(Some(listener))
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[test]
    fn where_to_listen_is_written_as_elsewhere() {
        let at = |text: &str| text.parse::<HttpListen>();
        assert_eq!(at("none"), Ok(HttpListen::Nowhere));
        assert_eq!(at(":7472"), Ok(HttpListen::Everywhere(7472)));
        assert_eq!(at("[::1]:7472"), Ok(HttpListen::At("[::1]:7472".parse().unwrap())));
        for text in [":7472", "127.0.0.1:7472", "[::1]:7472", "none"] {
            assert_eq!(at(text).unwrap().to_string(), text);
        }
        for text in ["", "7472", "127.0.0.1", ":", ":x", "localhost:7472", ":70000"] {
            assert_eq!(at(text), Err(HttpListenError), "{text}");
        }
    }

    #[tokio::test]
    async fn a_port_without_an_address_is_one_for_both_families() {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let _listener = HttpListen::Everywhere(port).bind().await.unwrap().unwrap();
        for address in ["127.0.0.1", "::1"] {
            let here: IpAddr = address.parse().unwrap();
            TcpStream::connect((here, port)).await.unwrap();
        }
    }
}
