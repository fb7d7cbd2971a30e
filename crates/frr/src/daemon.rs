//! FRR's daemons: which of them a line of configuration is for.
//!
//! Knows no socket. Asked by [`crate::application`], and by `io::daemons` for names.

use std::sync::Arc;

use crate::configuration::Statement;

/// One of FRR's daemons, in the order in which they are told what is new; what goes is told the other
/// way round: a profile is there before and after the neighbour that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Daemon {
    /// Configuration of others, since FRR 10.
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
    /// Those that Fairway speaks to.
    pub const ALL: [Self; 5] = [Self::Mgmtd, Self::Zebra, Self::Staticd, Self::Bfdd, Self::Bgpd];

    /// Its name, as processes and sockets have it.
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

    /// The same, by where a line stands.
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
    /// It is, and for no other.
    Must,
    /// It is said to all who may know it, and one of them must.
    May,
    /// It is not.
    Not,
}

/// The only daemon that a line at the top concerns; `None` where it is tried which know it.
fn only_for(line: &str) -> Option<Daemon> {
    let mut words = line.split(' ').skip_while(|word| *word == "no");
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match (first, second) {
        ("router", "bgp") | ("bgp", _) => Some(Daemon::Bgpd),
        ("bfd", "") => Some(Daemon::Bfdd),
        // What others call these is for zebra, too.
        ("route-map", name) if name.starts_with(crate::difference::MARK) => Some(Daemon::Bgpd),
        ("ip" | "ipv6", "prefix-list") if is_marked(line) => Some(Daemon::Bgpd),
        ("ip" | "ipv6", "nht") => Some(Daemon::Zebra),
        _ => None,
    }
}

fn is_marked(line: &str) -> bool {
    line.split(' ').any(|word| word.starts_with(crate::difference::MARK))
}
