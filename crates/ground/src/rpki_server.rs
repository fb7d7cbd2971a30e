//! Where an RPKI cache is asked.

use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// A cache that speaks the RPKI-to-router protocol over TCP (RFC 8210).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RpkiServer {
    /// An IP address or a DNS name.
    pub host: Arc<str>,
    /// The TCP port.
    pub port: u16,
}

impl RpkiServer {
    /// The port that IANA assigned to rpki-rtr (RFC 8210 §13).
    pub const PORT_DEFAULT: u16 = 323;
    /// The most servers of one node.
    pub const COUNT_MAX: usize = 16;
}

impl fmt::Display for RpkiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        match host.parse::<Ipv6Addr>() {
            Ok(address) => write!(f, "[{address}]:{port}"),
            Err(_) => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_reads_as_an_address_with_a_port() {
        for (host, text) in [
            ("192.0.2.1", "192.0.2.1:323"),
            ("2001:db8::1", "[2001:db8::1]:323"),
            ("rpki.example", "rpki.example:323"),
        ] {
            assert_eq!(RpkiServer { host: host.into(), port: 323 }.to_string(), text);
        }
    }
}
