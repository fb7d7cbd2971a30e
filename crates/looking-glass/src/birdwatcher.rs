//! JSON as birdwatcher has it, so that Alice-LG and its like can read a node of Fairway as they read BIRD.
//!
//! Paths and fields are those of birdwatcher's `docs/schema.md`, and where that differs from what Alice-LG parses, those of
//! Alice-LG: `protocols` is a map by name, `api` has `Version`, and LOCAL_PREF and MED are texts.
//!
//! Ours: a protocol is a neighbor. Its name is that of its BGPPeer if no other neighbor has it, else its address. A route has no
//! time of its own: `age` is when the session came up. `interface` is empty, `metric` is 100. Times are in UTC.

mod answer;
mod protocol;
mod route;

use fairway_ground::Prefix;
use fairway_seam::{AdvertisedScope, PeerView, ViewScope};
use fairway_show::Snapshot;

use answer::Envelope;
use protocol::{Protocols, Status};
use route::Routes;

/// One answer has no more: Alice-LG keeps all in memory, as do we while it is sent.
pub const ROUTES_MAX: usize = 100_000;
/// As many AS numbers, communities and other values are in one answer at most: some hundred megabytes while it is made. A
/// neighbor may send the same long path for each of its prefixes, which costs it little.
pub const PARTS_MAX: usize = 4_000_000;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// `/status`.
    Status,
    /// `/protocols` and `/protocols/bgp`.
    Protocols,
    /// `/routes/protocol/NAME`: what was accepted of a neighbor.
    Accepted(String),
    /// `/routes/peer/ADDRESS`, or `/routes/peer?peer=ADDRESS`: the same by address.
    OfAddress(String),
    /// `/routes/filtered/NAME`: what was refused.
    Filtered(String),
    /// `/routes/noexport/NAME`: the best paths that this neighbor was not sent.
    NotExported(String),
    /// `/routes/table/TABLE`: everything. There is one table, whatever it is called.
    Table,
    /// `/routes/table/TABLE/filtered`.
    TableFiltered,
    /// `/route/net/PREFIX`: the longest match.
    Net(String),
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BirdwatcherError {
    /// No neighbor has this name.
    #[error("there is no protocol {0:?}; /protocols/bgp has their names")]
    NoSuchProtocol(String),
    /// The text is not a prefix.
    #[error("{0:?} is neither an address nor a prefix")]
    NoPrefix(String),
    /// More than [`ROUTES_MAX`].
    #[error("{0} routes are more than one answer may have: {ROUTES_MAX}")]
    TooMany(usize),
    /// More than [`PARTS_MAX`] in this number of routes.
    #[error(
        "{0} routes have more than {PARTS_MAX} AS numbers and communities, which is more than one answer may have"
    )]
    TooLong(usize),
    /// A fault of this program.
    #[error("cannot write JSON: {0}")]
    Json(String),
}

impl Question {
    /// Of a path with its escapes resolved, and the value of `peer` of its query. `None` of a path that birdwatcher has not, or that
    /// has no meaning here.
    pub fn of(path: &str, peer: Option<&str>) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        if let Some(net) = path.strip_prefix("route/net/") {
            let net = net.split_once("/table/").map_or(net, |(net, _)| net);
            return Some(Self::Net(net.to_owned()));
        }
        let segments: Vec<&str> = path.split('/').collect();
        Some(match segments.as_slice() {
            ["status"] => Self::Status,
            ["protocols"] | ["protocols", "bgp"] => Self::Protocols,
            ["routes", "protocol", name] => Self::Accepted((*name).to_owned()),
            ["routes", "peer"] => Self::OfAddress(peer?.to_owned()),
            ["routes", "peer", address] => Self::OfAddress((*address).to_owned()),
            ["routes", "filtered", name] => Self::Filtered((*name).to_owned()),
            ["routes", "noexport", name] => Self::NotExported((*name).to_owned()),
            ["routes", "table", _] => Self::Table,
            ["routes", "table", _, "filtered"] => Self::TableFiltered,
            _ => return None,
        })
    }

    /// What the answer reads.
    pub fn scope(&self) -> ViewScope {
        let sessions = ViewScope::SESSIONS;
        match self {
            Self::Status => sessions,
            Self::Filtered(_) | Self::TableFiltered => ViewScope { refused: true, ..sessions },
            Self::NotExported(_) => {
                ViewScope { learned: true, advertised: AdvertisedScope::All, ..sessions }
            }
            Self::Protocols
            | Self::Accepted(_)
            | Self::OfAddress(_)
            | Self::Table
            | Self::Net(_) => ViewScope { learned: true, ..sessions },
        }
    }

    /// From a look without routes: whether there are too many of them to look at those.
    pub fn refuse_early(&self, snapshot: &Snapshot<'_>) -> Result<(), BirdwatcherError> {
        let of = |peer: &PeerView| {
            let count = &peer.prefixes_accepted;
            usize::try_from(count.ipv4.saturating_add(count.ipv6)).unwrap_or(usize::MAX)
        };
        let routes = match self {
            Self::Accepted(name) => of(protocol::named(snapshot, name)?),
            Self::OfAddress(address) => of(protocol::at(snapshot, address)?),
            Self::Table => snapshot.bgp.peers.iter().map(of).fold(0, usize::saturating_add),
            _ => 0,
        };
        if routes > ROUTES_MAX { Err(BirdwatcherError::TooMany(routes)) } else { Ok(()) }
    }

    /// The answer, from a snapshot with [`Self::scope`].
    pub fn answer(&self, snapshot: &Snapshot<'_>) -> Result<String, BirdwatcherError> {
        let announcers = route::announcers(snapshot);
        let envelope = |routes| Envelope { snapshot, content: routes }.json();
        match self {
            Self::Status => Envelope { snapshot, content: Status::of(snapshot) }.json(),
            Self::Protocols => Envelope { snapshot, content: Protocols::of(snapshot) }.json(),
            Self::Accepted(name) => {
                let key = protocol::named(snapshot, name)?.config.key;
                envelope(Routes::learned(snapshot, &announcers, |it| it.path.source.key == key)?)
            }
            Self::OfAddress(address) => {
                let key = protocol::at(snapshot, address)?.config.key;
                envelope(Routes::learned(snapshot, &announcers, |it| it.path.source.key == key)?)
            }
            Self::Filtered(name) => {
                envelope(Routes::refused(&[protocol::named(snapshot, name)?], &announcers)?)
            }
            Self::TableFiltered => {
                let peers: Vec<&PeerView> = snapshot.bgp.peers.iter().collect();
                envelope(Routes::refused(&peers, &announcers)?)
            }
            Self::NotExported(name) => {
                let peer = protocol::named(snapshot, name)?;
                let sent = peer.advertised.iter().map(|it| it.prefix);
                let sent: std::collections::BTreeSet<Prefix> = sent.collect();
                envelope(Routes::learned(snapshot, &announcers, |it| {
                    let is_own = it.path.source.key == peer.config.key;
                    it.lost_at.is_none() && !is_own && !sent.contains(&it.prefix)
                })?)
            }
            Self::Table => envelope(Routes::learned(snapshot, &announcers, |_| true)?),
            Self::Net(net) => {
                let wanted = prefix(net)?;
                let around =
                    |it: Prefix| it.length() <= wanted.length() && it.contains(wanted.address());
                let all = snapshot.bgp.learned.iter().map(|it| it.prefix);
                let longest = all.filter(|it| around(*it)).max_by_key(|it| it.length());
                envelope(Routes::learned(snapshot, &announcers, |it| Some(it.prefix) == longest)?)
            }
        }
    }
}

fn prefix(text: &str) -> Result<Prefix, BirdwatcherError> {
    let host = || text.parse().ok().map(Prefix::host);
    let prefix = || {
        let (address, length) = text.split_once('/')?;
        Prefix::new(address.parse().ok()?, length.parse().ok()?).ok()
    };
    host().or_else(prefix).ok_or_else(|| BirdwatcherError::NoPrefix(text.to_owned()))
}

/// An error, as birdwatcher tells it.
pub fn failure(error: &str) -> String {
    serde_json::json!({ "error": error }).to_string()
}
