//! The sockets that FRR's daemons have, so that vtysh and the exporters for FRR work on us.
//!
//! ```text
//!  bgpd.vty ┐            line                 Question                      Reply
//!  bfdd.vty ├─► socket ────────► commands ───────────────► reply ◄─ Snapshot ────► socket
//!  zebra.vty┘                    (grammar)                 (`show` renders)
//! ```
//!
//! Read-only: what is no `show` command, and what FRR has and we do not, gets FRR's own refusal.
//! Everything but `socket` is pure. The words are FRR's, the code behind them is that of `fairway
//! show`.

mod commands;
mod grammar;
mod reply;
mod search;
mod socket;
mod vrf;

#[cfg(test)]
mod tests;

pub use socket::Sockets;

/// A daemon of FRR that we stand in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Daemon {
    Bgpd,
    Bfdd,
    Zebra,
}

impl Daemon {
    const ALL: [Self; 3] = [Self::Bgpd, Self::Bfdd, Self::Zebra];

    /// The socket's name in its folder.
    fn file_name(self) -> &'static str {
        match self {
            Self::Bgpd => "bgpd.vty",
            Self::Bfdd => "bfdd.vty",
            Self::Zebra => "zebra.vty",
        }
    }

    /// What it calls itself when it refuses a command.
    fn tag(self) -> &'static str {
        match self {
            Self::Bgpd => "BGP",
            Self::Bfdd => "BFD",
            Self::Zebra => "ZEBRA",
        }
    }
}
