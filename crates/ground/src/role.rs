//! The roles of two external neighbours (RFC 9234).

use std::fmt;
use std::str::FromStr;

use super::ParseError;

/// Our role in an external session (RFC 9234 §4.1), with FRR's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// We provide transit to the neighbour.
    Provider,
    /// We are a route server, the neighbour its client.
    RouteServer,
    /// The neighbour is a route server, we its client.
    RouteServerClient,
    /// The neighbour provides transit to us.
    Customer,
    /// Peering without transit.
    Peer,
}

impl Role {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 5] =
        [Self::Provider, Self::RouteServer, Self::RouteServerClient, Self::Customer, Self::Peer];

    /// The value in the capability.
    pub fn code(self) -> u8 {
        match self {
            Self::Provider => 0,
            Self::RouteServer => 1,
            Self::RouteServerClient => 2,
            Self::Customer => 3,
            Self::Peer => 4,
        }
    }

    /// The role with this value.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.code() == code)
    }

    /// The role that the neighbour must have (RFC 9234 §4.2, table 2).
    pub fn counterpart(self) -> Self {
        match self {
            Self::Provider => Self::Customer,
            Self::Customer => Self::Provider,
            Self::RouteServer => Self::RouteServerClient,
            Self::RouteServerClient => Self::RouteServer,
            Self::Peer => Self::Peer,
        }
    }

    /// The word that operators write.
    pub fn name(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::RouteServer => "rs-server",
            Self::RouteServerClient => "rs-client",
            Self::Customer => "customer",
            Self::Peer => "peer",
        }
    }
}

impl FromStr for Role {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| ParseError {
            text: text.to_owned(),
            expected: "one of provider, customer, peer, rs-server, rs-client",
        })
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_come_in_pairs_and_have_one_word_each() {
        for role in Role::ALL {
            assert_eq!(role.counterpart().counterpart(), role);
            assert_eq!(role.name().parse(), Ok(role));
            assert_eq!(Role::from_code(role.code()), Some(role));
        }
        assert_eq!(Role::from_code(5), None);
        assert!("Provider".parse::<Role>().is_err());
    }
}
