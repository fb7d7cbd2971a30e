//! How the other members are reached, and with which key.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use fairway_members::{KeyError, Keys};

/// The port of members, which is MetalLB's.
pub(super) const PORT: u16 = 7946;

/// Where members are, and what they share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberOptions {
    /// Where heartbeats are received.
    pub listen: SocketAddr,
    /// The other members, where they are named; in a cluster they are its nodes.
    pub targets: Vec<MemberTarget>,
    /// The file with the key.
    pub key_file: PathBuf,
}

/// Why the key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read.
    #[error("cannot read the key file {file}: {error}", file = .0.display(), error = .1)]
    Unreadable(PathBuf, std::io::Error),
    /// It is not a key.
    #[error("the key file {file} {error}", file = .0.display(), error = .1)]
    Unusable(PathBuf, KeyError),
}

impl MemberOptions {
    /// The keys in the file.
    pub(super) fn keys(&self) -> Result<Keys, KeyFileError> {
        let file = || self.key_file.clone();
        let text = std::fs::read_to_string(&self.key_file);
        let text = text.map_err(|error| KeyFileError::Unreadable(file(), error))?;
        Keys::parse(&text).map_err(|error| KeyFileError::Unusable(file(), error))
    }
}

/// A member, by name or address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberTarget {
    /// A host name, or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// A value of `--members` that is neither.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected HOST or HOST:PORT, as in host-b, 192.0.2.2:7946 or [2001:db8::2]:7946")]
pub struct MemberTargetError;

impl FromStr for MemberTarget {
    type Err = MemberTargetError;

    fn from_str(text: &str) -> Result<Self, MemberTargetError> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self { host: address.ip().to_string(), port: address.port() });
        }
        let inner = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(text);
        if inner.parse::<std::net::IpAddr>().is_ok() {
            return Ok(Self { host: inner.to_owned(), port: PORT });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| MemberTargetError)?),
            None => (text, PORT),
        };
        let is_name = |it: char| it.is_ascii_alphanumeric() || "-._".contains(it);
        let is_valid = !host.is_empty() && host.chars().all(is_name) && port != 0;
        is_valid.then(|| Self { host: host.to_owned(), port }).ok_or(MemberTargetError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_hosts_with_and_without_a_port() {
        let target = |text: &str| text.parse::<MemberTarget>().map(|it| (it.host, it.port));
        let expected = |host: &str, port| Ok((host.to_owned(), port));
        assert_eq!(target("host-b"), expected("host-b", 7946));
        assert_eq!(target("host-b.example.org:7000"), expected("host-b.example.org", 7000));
        assert_eq!(target("192.0.2.2"), expected("192.0.2.2", 7946));
        assert_eq!(target("192.0.2.2:7000"), expected("192.0.2.2", 7000));
        assert_eq!(target("2001:db8::2"), expected("2001:db8::2", 7946));
        assert_eq!(target("[2001:db8::2]"), expected("2001:db8::2", 7946));
        assert_eq!(target("[2001:db8::2]:7000"), expected("2001:db8::2", 7000));
        for wrong in ["", ":7946", "host:port", "host:0", "host b", "host:70000"] {
            assert_eq!(target(wrong), Err(MemberTargetError), "{wrong:?}");
        }
    }
}
