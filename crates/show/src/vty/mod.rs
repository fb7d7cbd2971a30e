//! What FRR's daemons answer on their vty sockets, so that vtysh and the exporters for FRR work on us.
//!
//! ```text
//!  line ─► Request::parse ─► language ─► Question ─► Request::answer ◄─ Snapshot
//!                                                        │ renders as `fairway show`
//!                                                        ▼ Reply
//! ```
//!
//! Read-only: commands other than `show`, and those that FRR has and Fairway does not, get FRR's own
//! refusal. Pure; the daemon's `admin::vty` has the sockets.

mod reply;
mod search;

#[cfg(test)]
mod tests;

use fairway_seam::ViewScope;
use search::Search;

use crate::Snapshot;
use crate::language::{Misread, Question, Vocabulary, understand};

pub use reply::Reply;

/// A daemon of FRR that Fairway stands in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Daemon {
    /// BGP.
    Bgpd,
    /// BFD.
    Bfdd,
    /// The kernel's routes.
    Zebra,
}

impl Daemon {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Bgpd, Self::Bfdd, Self::Zebra];

    /// The socket's name in its folder.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Bgpd => "bgpd.vty",
            Self::Bfdd => "bfdd.vty",
            Self::Zebra => "zebra.vty",
        }
    }

    fn vocabulary(self) -> Vocabulary {
        match self {
            Self::Bgpd => Vocabulary::Bgpd,
            Self::Bfdd => Vocabulary::Bfdd,
            Self::Zebra => Vocabulary::Zebra,
        }
    }

    /// Its name in refusals.
    fn tag(self) -> &'static str {
        match self {
            Self::Bgpd => "BGP",
            Self::Bfdd => "BFD",
            Self::Zebra => "ZEBRA",
        }
    }
}

/// A command line that a daemon understands.
#[derive(Debug)]
pub struct Request {
    question: Question,
    /// What follows a `|`: which lines of the answer are printed.
    search: Option<Search>,
}

impl Request {
    /// Reads a line that `daemon` was sent; an error is the reply that refuses it.
    pub fn parse(daemon: Daemon, line: &str) -> Result<Self, Reply> {
        let (command, search) = match line.split_once('|') {
            None => (line, None),
            Some((command, search)) => match Search::new(search) {
                Ok(search) => (command, Some(search)),
                Err(error) => return Err(Reply::warning(format!("{error}\n"))),
            },
        };
        let question =
            question(daemon, command).map_err(|why| reply::refusal(daemon, line, why))?;
        Ok(Self { question, search })
    }

    /// Which lists of routes the snapshot must have.
    pub fn scope(&self) -> ViewScope {
        match &self.question {
            Question::Show(query) => query.scope(),
            _ => ViewScope::SESSIONS,
        }
    }

    /// The reply.
    pub fn answer(&self, snapshot: &Snapshot<'_>) -> Reply {
        self.searched(reply::answer(&self.question, snapshot))
    }

    /// The reply where there is no snapshot, for this reason.
    pub fn unavailable(&self, reason: &str) -> Reply {
        self.searched(Reply::warning(format!("% {reason}\n")))
    }

    /// Whether the connection ends with the reply.
    pub fn ends_connection(&self) -> bool {
        self.question == Question::Exit
    }

    fn searched(&self, mut reply: Reply) -> Reply {
        if let Some(search) = &self.search {
            reply.text = search.lines_of(&reply.text);
        }
        reply
    }
}

/// The question that `line` is for `daemon`.
fn question(daemon: Daemon, line: &str) -> Result<Question, Misread> {
    let mut words: Vec<&str> = line.split_ascii_whitespace().collect();
    if words.first().is_none_or(|first| first.starts_with(['!', '#'])) {
        return Ok(Question::Nothing);
    }
    // As within `configure terminal`, where only `do` is supported here.
    if words.first() == Some(&"do") {
        words.remove(0);
    }
    understand(daemon.vocabulary(), &words)
}
