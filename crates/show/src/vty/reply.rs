//! The replies: FRR's text, and the status after it.
//!
//! Pure: a question and a snapshot in, text and status out.

use fairway_ground::AddressFamily;
use serde_json::json;

use super::Daemon;
use crate::language::{Misread, Question, complete};
use crate::{Format, Query, ShowCommand, ShowError, Snapshot, VRF_DEFAULT, VrfSelection};

/// The status with which FRR's daemons end their answers.
mod status {
    pub(super) const SUCCESS: u8 = 0;
    pub(super) const WARNING: u8 = 1;
    pub(super) const NO_MATCH: u8 = 2;
    pub(super) const AMBIGUOUS: u8 = 3;
    pub(super) const INCOMPLETE: u8 = 4;
    pub(super) const CONFIGURATION_FAILED: u8 = 13;
}

/// An answer to one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The text to print.
    pub text: String,
    /// The status.
    pub status: u8,
}

impl Reply {
    /// An answer.
    pub fn success(text: impl Into<String>) -> Self {
        Self { text: text.into(), status: status::SUCCESS }
    }

    /// An error in FRR's words, with the status that goes with it.
    pub fn warning(text: impl Into<String>) -> Self {
        Self { text: text.into(), status: status::WARNING }
    }
}

/// The refusal of `line`.
pub(super) fn refusal(daemon: Daemon, line: &str, why: Misread) -> Reply {
    match why {
        Misread::NoMatch => Reply {
            text: format!("% [{}] Unknown command: {line}\n", daemon.tag()),
            status: status::NO_MATCH,
        },
        Misread::Ambiguous => {
            Reply { text: "% Ambiguous command.\n".to_owned(), status: status::AMBIGUOUS }
        }
        Misread::Incomplete => {
            Reply { text: "% Command incomplete.\n".to_owned(), status: status::INCOMPLETE }
        }
    }
}

/// The answer to `question`.
pub(super) fn answer(question: &Question, snapshot: &Snapshot<'_>) -> Reply {
    match question {
        Question::Show(query) => {
            let query = of_main(query);
            query.render(snapshot).map_or_else(|error| fault(&query, &error), Reply::success)
        }
        Question::Complete(completed) => {
            let values = complete(completed, snapshot).into_iter();
            Reply::success(values.map(|value| value + "\n").collect::<String>())
        }
        // The sockets are read-only, and their vocabularies have no such command.
        Question::Clear(_) | Question::Nothing | Question::Exit => Reply::success(""),
    }
}

/// Without the name of a VRF FRR shows the main one, except for BFD.
fn of_main(query: &Query) -> Query {
    let is_bfd = matches!(query.what, ShowCommand::BfdPeers { .. } | ShowCommand::BfdPeer { .. });
    match query.vrf {
        VrfSelection::Undivided if !is_bfd => {
            Query { vrf: VrfSelection::Named(VRF_DEFAULT.to_owned()), ..query.clone() }
        }
        _ => query.clone(),
    }
}

fn unknown_vrf(query: &Query, name: &str) -> String {
    let is_table = matches!(
        query.what,
        ShowCommand::BgpUnicast { .. }
            | ShowCommand::BgpUnicastDetail { .. }
            | ShowCommand::BgpFiltered { .. }
            | ShowCommand::BgpStatistics { .. }
            | ShowCommand::BgpPeerRoutes { .. }
    );
    match (query.format, is_table, &query.what) {
        (Format::Json, true, _) => format!("{:#}", json!({ "warning": "View/Vrf is unknown" })),
        (Format::Json, false, _) => "{}".to_owned(),
        (Format::Text, true, _) => format!("View/Vrf {name} is unknown"),
        (Format::Text, _, ShowCommand::BgpNextHops { .. }) => {
            "% No such BGP instance exist".to_owned()
        }
        (Format::Text, ..) => "% BGP instance not found".to_owned(),
    }
}

/// FRR's message, and its status.
fn fault(query: &Query, error: &ShowError) -> Reply {
    let text = match (&query.what, error) {
        (_, ShowError::UnknownVrf(name)) => unknown_vrf(query, name),
        (
            ShowCommand::BgpNeighbors { .. } | ShowCommand::BgpGracefulRestart { .. },
            ShowError::NoSuchNeighbor,
        ) => {
            return Reply::success(format!("{error}\n\n"));
        }
        (_, ShowError::NoSuchNeighbor) => error.to_string().trim_start_matches("% ").to_owned(),
        // Text that is not a prefix at all is refused earlier.
        (_, ShowError::MalformedPrefix { family: AddressFamily::Ipv4Unicast, .. }) => {
            "% Cannot specify IPv6 address or prefix with IPv4 AFI".to_owned()
        }
        (_, ShowError::MalformedPrefix { family: AddressFamily::Ipv6Unicast, .. }) => {
            "% Cannot specify IPv4 address or prefix with IPv6 AFI".to_owned()
        }
        (_, error) => error.to_string(),
    };
    let status = match error {
        ShowError::NoSuchPeerGroup => status::SUCCESS,
        ShowError::NoSuchBfdPeer(_) => status::CONFIGURATION_FAILED,
        _ => status::WARNING,
    };
    Reply { text: text + "\n", status }
}
