//! FRR's daemons: which of them is a line of configuration for?
//!
//! Knows no socket. Called by [`crate::application`], and by `io::daemons` for names.

use std::sync::Arc;

use crate::configuration::Statement;

/// One of FRR's daemons, in the order in which additions are sent; removals are sent in reverse: a profile
/// exists before and after the neighbour that uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Daemon {
    /// Configures other daemons, since FRR 10.
    Mgmtd,
    /// Interfaces, and the kernel's routes.
    Zebra,
    /// Static routes.
    Staticd,
    /// BFD.
    Bfdd,
    /// BGP.
    Bgpd,
}

impl Daemon {
    /// The daemons that Fairway configures.
    pub const ALL: [Self; 5] = [Self::Mgmtd, Self::Zebra, Self::Staticd, Self::Bfdd, Self::Bgpd];

    /// Its name, as used for processes and sockets.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mgmtd => "mgmtd",
            Self::Zebra => "zebra",
            Self::Staticd => "staticd",
            Self::Bfdd => "bfdd",
            Self::Bgpd => "bgpd",
        }
    }

    /// Whether a statement is for this daemon.
    pub fn takes(self, statement: &Statement) -> Takes {
        self.takes_line(&statement.context, &statement.line)
    }

    /// The same, by context and line.
    pub fn takes_line(self, context: &[Arc<str>], line: &str) -> Takes {
        match only_for(context.first().map_or(line, |it| it)) {
            Some(only) if only == self => Takes::Must,
            Some(_) => Takes::Not,
            None => Takes::May,
        }
    }
}

/// Whether a statement is for a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// For this daemon and no other.
    Must,
    /// Sent to every daemon that may know it; one of them must.
    May,
    /// Not for this daemon.
    Not,
}

/// The only daemon that a top-level line is for; `None` if every daemon is tried.
fn only_for(line: &str) -> Option<Daemon> {
    let mut words = line.split(' ').skip_while(|word| *word == "no");
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match (first, second) {
        ("router", "bgp") | ("bgp", _) => Some(Daemon::Bgpd),
        ("bfd", "") => Some(Daemon::Bfdd),
        // Route maps with other names are for zebra, too.
        ("route-map", name) if name.starts_with(crate::owner::MARK) => Some(Daemon::Bgpd),
        ("ip" | "ipv6", "prefix-list") if is_marked(line) => Some(Daemon::Bgpd),
        _ => None,
    }
}

fn is_marked(line: &str) -> bool {
    line.split(' ').any(|word| word.starts_with(crate::owner::MARK))
}
