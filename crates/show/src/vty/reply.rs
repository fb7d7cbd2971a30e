//! The replies: FRR's text, and the status after it.
//!
//! Pure: a question and a snapshot in, text and status out.

use std::borrow::Cow;

use fairway_ground::AddressFamily;
use fairway_seam::BgpView;
use serde_json::{Map, Value, json};

use super::commands::{Question, Vrf};
use super::grammar::Misread;
use super::{Daemon, vrf};
use crate::{Format, ShowCommand, ShowError, Snapshot, VRF_DEFAULT};

/// The status with which FRR's daemons end their answers.
mod status {
    pub(super) const SUCCESS: u8 = 0;
    pub(super) const WARNING: u8 = 1;
    pub(super) const NO_MATCH: u8 = 2;
    pub(super) const AMBIGUOUS: u8 = 3;
    pub(super) const INCOMPLETE: u8 = 4;
    pub(super) const CONFIGURATION_FAILED: u8 = 13;
}

/// The release of FRR that provides the text where releases differ.
const DIALECT: &str = "8.4";

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
        Question::Show { what, format, vrf } => shown(what, *format, vrf, snapshot),
        Question::KernelRoutes { is_summary, is_keyed, format } => {
            Reply::success(kernel_routes(*is_summary, *is_keyed, *format))
        }
        Question::Version => Reply::success(version(snapshot)),
        Question::RunningConfig => Reply::success(running_config(&snapshot.node.name)),
        Question::Nothing | Question::Exit => Reply::success(""),
    }
}

fn shown(what: &ShowCommand, format: Format, vrf: &Vrf, snapshot: &Snapshot<'_>) -> Reply {
    if matches!(what, ShowCommand::BfdPeers { .. } | ShowCommand::BfdPeer { .. }) {
        let bgp = match vrf {
            Vrf::Named(name) => Cow::Owned(vrf::watched(snapshot.bgp, name)),
            // Without a name FRR shows those of all VRFs.
            Vrf::Default | Vrf::All => Cow::Borrowed(snapshot.bgp),
        };
        return of_one(what, format, &Snapshot { bgp: &bgp, ..*snapshot });
    }
    let instances = vrf::instances(snapshot.bgp);
    let name = match vrf {
        Vrf::Default => VRF_DEFAULT,
        Vrf::Named(name) => name,
        Vrf::All if is_of_one_vrf(what) => {
            return Reply::warning(
                "Specified 'all' vrf's but this command currently only works per view/vrf\n",
            );
        }
        Vrf::All => return of_all(what, format, &instances, snapshot),
    };
    match instances.iter().find(|(it, _)| it == name) {
        Some((vrf_name, bgp)) => of_one(what, format, &Snapshot { vrf_name, bgp, ..*snapshot }),
        None => unknown_vrf(what, format, name),
    }
}

fn of_one(what: &ShowCommand, format: Format, snapshot: &Snapshot<'_>) -> Reply {
    let answer = match format {
        Format::Json => crate::json(what, snapshot).map(|value| printed(&value)),
        Format::Text => crate::text(what, snapshot),
    };
    answer.map_or_else(|error| fault(what, &error), Reply::success)
}

/// The answers of all VRFs, each by its name.
fn of_all(
    what: &ShowCommand,
    format: Format,
    instances: &[(String, Cow<'_, BgpView>)],
    snapshot: &Snapshot<'_>,
) -> Reply {
    let (mut keyed, mut texts) = (Map::new(), String::new());
    for (name, bgp) in instances {
        let snapshot = Snapshot { vrf_name: name, bgp, ..*snapshot };
        let answer = match format {
            Format::Json => crate::json(what, &snapshot).map(|value| {
                keyed.insert(name.clone(), with_head(what, value, &snapshot));
            }),
            Format::Text => crate::text(what, &snapshot).map(|text| {
                if !matches!(what, ShowCommand::BgpSummary { .. }) {
                    texts.push_str(&format!("\nInstance {name}:\n"));
                }
                texts.push_str(&text);
            }),
        };
        if let Err(error) = answer {
            return fault(what, &error);
        }
    }
    match format {
        Format::Json => Reply::success(printed(&Value::Object(keyed))),
        Format::Text => Reply::success(texts),
    }
}

/// FRR looks up a prefix in one VRF at a time.
fn is_of_one_vrf(what: &ShowCommand) -> bool {
    matches!(what, ShowCommand::BgpUnicast { prefix: Some(_), .. })
}

/// Neighbours are keyed beside the name of their VRF.
fn with_head(what: &ShowCommand, value: Value, snapshot: &Snapshot<'_>) -> Value {
    match (what, value) {
        (ShowCommand::BgpNeighbors { .. }, Value::Object(peers)) => {
            let id = (snapshot.vrf_name == VRF_DEFAULT).then(|| ("vrfId".to_owned(), json!(0)));
            let name = ("vrfName".to_owned(), json!(snapshot.vrf_name));
            Value::Object(id.into_iter().chain([name]).chain(peers).collect())
        }
        (_, value) => value,
    }
}

fn unknown_vrf(what: &ShowCommand, format: Format, name: &str) -> Reply {
    let is_table = matches!(
        what,
        ShowCommand::BgpUnicast { .. }
            | ShowCommand::BgpUnicastDetail { .. }
            | ShowCommand::BgpCommunity { .. }
            | ShowCommand::BgpPeerRoutes { .. }
    );
    Reply::warning(match (format, is_table, what) {
        (Format::Json, true, _) => printed(&json!({ "warning": "View/Vrf is unknown" })),
        (Format::Json, false, _) => "{}\n".to_owned(),
        (Format::Text, true, _) => format!("View/Vrf {name} is unknown\n"),
        (Format::Text, _, ShowCommand::BgpNextHops { .. }) => {
            "% No such BGP instance exist\n".to_owned()
        }
        (Format::Text, ..) => "% BGP instance not found\n".to_owned(),
    })
}

/// FRR's message, and its status.
fn fault(what: &ShowCommand, error: &ShowError) -> Reply {
    let text = match (what, error) {
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

/// FRR's answer if it has no route at all: Fairway reads no kernel table. Answers for all VRFs are keyed by
/// VRF since FRR 10, and exporters expect it.
fn kernel_routes(is_summary: bool, is_keyed: bool, format: Format) -> String {
    let summary = json!({ "routes": [], "routesTotal": 0, "routesTotalFib": 0 });
    match (is_summary, format) {
        (false, Format::Text) => String::new(),
        (false, Format::Json) => "{}\n".to_owned(),
        (true, Format::Json) if is_keyed => printed(&json!({ VRF_DEFAULT: summary })),
        (true, Format::Json) => printed(&summary),
        (true, Format::Text) => format!(
            "{:<20} {:<20} {}  (vrf default)\n------\n{:<20} {:<20} {:<20} \n\n",
            "Route Source", "Routes", "FIB", "Totals", 0, 0
        ),
    }
}

/// Fairway's name and version follow the dialect in the same word, since programs read only that word.
fn version(snapshot: &Snapshot<'_>) -> String {
    format!(
        "FRRouting {DIALECT}-fairway-{version} ({node}) on Linux.\n\
         This is Fairway {version} ({commit}). It answers in the format of FRRouting {DIALECT}.\n",
        version = env!("CARGO_PKG_VERSION"),
        node = snapshot.node.name,
        commit = snapshot.commit,
    )
}

/// The name of the node is the only setting in FRR's format. vtysh drops the comments.
fn running_config(node: &str) -> String {
    format!(
        "!\n! Fairway {}: configured by resources, see `fairway show config`\n!\n\
         hostname {node}\n!\n",
        env!("CARGO_PKG_VERSION"),
    )
}

fn printed(value: &Value) -> String {
    format!("{value:#}\n")
}
