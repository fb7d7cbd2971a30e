//! `show bgp ipv4|ipv6 unicast`: what this node originates, and what it accepted.
//!
//! `version` of a path is that of the table: the time of the last change of an entry is not kept.

use fairway_ground::{
    AddressFamily, AsPathPattern, Community, LargeCommunity, OriginValidation, PeerKey, Prefix,
};
use ipnet::IpNet;
use serde_json::Value;

use super::document::{Document, Table, Text, Wanted};
use super::instance::Instance;
use super::object::Object;
use super::path_next_hops::Detail;
use super::route::{Entry, EntryPath, RouteTable, Row, table};
use super::{ShowError, Snapshot, TableFilter};

/// Which paths of a table.
#[derive(Debug, Clone)]
pub(super) enum Selection {
    /// All of them.
    Everything,
    /// Those from one neighbour.
    From(PeerKey),
    /// Those that carry a community, and with `true` no other.
    Carrying(Community, bool),
    /// The same for a large community.
    CarryingLarge(LargeCommunity, bool),
    /// Those of this prefix and of prefixes inside it.
    Inside(Prefix),
    /// Those with such an AS path.
    AsPath(AsPathPattern),
}

impl Selection {
    /// The selection that `filter` describes, in the table of `family`.
    pub(super) fn of(filter: &TableFilter, family: AddressFamily) -> Result<Self, ShowError> {
        Ok(match filter {
            TableFilter::Community { text, is_large: false, is_exact } => {
                let malformed = |_| ShowError::MalformedCommunity(text.clone());
                Self::Carrying(text.parse().map_err(malformed)?, *is_exact)
            }
            TableFilter::Community { text, is_large: true, is_exact } => {
                let malformed = |_| ShowError::MalformedLargeCommunity;
                Self::CarryingLarge(text.parse().map_err(malformed)?, *is_exact)
            }
            TableFilter::LongerPrefixes(text) => {
                let net = text.parse::<IpNet>().ok();
                let prefix = net.and_then(|net| Prefix::new(net.addr(), net.prefix_len()).ok());
                let malformed = || ShowError::MalformedPrefix { text: text.clone(), family };
                Self::Inside(prefix.filter(|it| it.family() == family).ok_or_else(malformed)?)
            }
            TableFilter::AsPath(text) => {
                let malformed =
                    |cause| ShowError::MalformedExpression { text: text.clone(), cause };
                Self::AsPath(AsPathPattern::new(text).map_err(malformed)?)
            }
        })
    }

    fn holds(&self, prefix: Prefix, path: &EntryPath<'_>) -> bool {
        match self {
            Self::Everything => true,
            Self::Inside(around) => {
                around.length() <= prefix.length() && around.contains(prefix.address())
            }
            Self::AsPath(pattern) => pattern.is_in(&path.as_path()),
            Self::From(key) => {
                matches!(path, EntryPath::Learned(it) if it.path.source.key == *key)
            }
            Self::Carrying(wanted, is_exact) => carries(path.communities(), wanted, *is_exact),
            Self::CarryingLarge(wanted, is_exact) => {
                carries(path.large_communities(), wanted, *is_exact)
            }
        }
    }
}

fn carries<T: PartialEq>(carried: &[T], wanted: &T, is_exact: bool) -> bool {
    carried.contains(wanted) && (!is_exact || carried.len() == 1)
}

/// The selected paths of an entry, each with its position among all paths.
fn selected<'a>(entry: &Entry<'a>, selection: &Selection) -> Vec<(usize, EntryPath<'a>)> {
    let paths = entry.paths.iter().copied().enumerate();
    paths.filter(|(_, path)| selection.holds(entry.prefix, path)).collect()
}

/// The table in FRR's columns; empty if a selection matches nothing.
pub(super) fn text<'a>(
    snapshot: &Snapshot<'a>,
    family: AddressFamily,
    selection: Selection,
) -> Text<'a> {
    let (table, head) =
        (table(snapshot, family), Instance::of(snapshot, Some(family)).table_head());
    Text::lines(move |out| {
        let mut displayed = 0_usize;
        for entry in table.entries() {
            let paths = selected(&entry, &selection);
            if paths.is_empty() {
                continue;
            }
            if displayed == 0 {
                out.write_str(&head)?;
            }
            displayed = displayed.saturating_add(1);
            for (row, (position, path)) in paths.into_iter().enumerate() {
                out.write_str(&line(&entry, row == 0, position, path))?;
            }
        }
        match (displayed, &selection) {
            (0, Selection::Everything) => out.write_str("No BGP prefixes displayed, 0 exist\n"),
            (0, _) => Ok(()),
            _ => {
                // Two blanks, as in FRR 8.4.
                let paths = table.path_count();
                writeln!(out, "\nDisplayed  {displayed} routes and {paths} total paths")
            }
        }
    })
}

fn line(entry: &Entry<'_>, is_first: bool, position: usize, path: EntryPath<'_>) -> String {
    let row = Row {
        status: &status(path, position),
        network: if is_first { entry.prefix.to_string() } else { String::new() },
        next_hop: path.next_hop(),
        metric: path.metric(),
        local_pref: path.local_pref(),
        weight: path.weight(),
        path: path.as_path(),
        origin_code: path.origin().code(),
    };
    row.line()
}

/// The first characters of a row.
fn status(path: EntryPath<'_>, position: usize) -> String {
    let is_best = path.is_best(position);
    let rank = match (is_best, path.is_multipath(position), path.is_internal()) {
        (true, _, false) => ">",
        (true, _, true) => ">i",
        (_, true, _) => "=",
        (_, false, false) => "",
        (_, false, true) => " i",
    };
    // Nothing where no cache is asked, as in FRR without its module.
    let origin = match path.origin_validation() {
        None => "",
        Some(OriginValidation::Valid) => "V",
        Some(OriginValidation::Invalid) => "I",
        Some(OriginValidation::NotFound) => "N",
    };
    let is_usable = match (path.is_stale(), path.is_accessible()) {
        (true, _) => 'S',
        (false, true) => '*',
        (false, false) => ' ',
    };
    let status = format!("{is_usable}{rank}");
    format!("{origin}{status:3}")
}

/// The head, and the paths by prefix. `totalRoutes` and `totalPaths` are FRR 10's.
pub(super) fn json<'a>(
    snapshot: &Snapshot<'a>,
    family: AddressFamily,
    selection: Selection,
) -> Document<'a> {
    let (instance, table) = (Instance::of(snapshot, Some(family)), table(snapshot, family));
    let host = snapshot.node.name.as_str();
    document(instance, table, move |instance, entry| {
        let paths = selected(entry, &selection);
        (!paths.is_empty()).then(|| rows(host, instance, entry, paths))
    })
}

/// The head, and by prefix what `paths` makes of the entries that it does not leave out.
pub(super) fn document<'a>(
    instance: Instance<'a>,
    table: RouteTable<'a>,
    paths: impl Fn(&Instance<'a>, &Entry<'a>) -> Option<Vec<Value>> + 'a,
) -> Document<'a> {
    let (head, path_count) = (instance.table_fields(), table.path_count());
    let entries = move |take: &mut dyn FnMut(String, Value) -> Wanted| {
        for entry in table.entries() {
            let Some(paths) = paths(&instance, &entry) else { continue };
            if take(entry.prefix.to_string(), paths.into()) == Wanted::Nothing {
                return;
            }
        }
    };
    Document::Table(Table {
        head,
        key: "routes",
        entries: Box::new(entries),
        count_key: Some("totalRoutes"),
        tail: Object::new().field("totalPaths", path_count),
    })
}

fn rows(
    host: &str,
    instance: &Instance,
    entry: &Entry<'_>,
    paths: Vec<(usize, EntryPath<'_>)>,
) -> Vec<Value> {
    let reason = entry.selection_reason();
    let one = |(position, path): (usize, EntryPath<'_>)| {
        let is_best = path.is_best(position);
        let (peer, host) = match path {
            EntryPath::Originated(_) => ("(unspec)".to_owned(), Some(host)),
            EntryPath::Learned(learned) => (learned.path.source.address.to_string(), None),
        };
        Object::new()
            .flag("stale", path.is_stale())
            .flag("valid", path.is_accessible())
            .flag("multipath", path.is_multipath(position))
            .flag("bestpath", is_best)
            .optional("selectionReason", is_best.then_some(reason.as_str()))
            .field("pathFrom", if path.is_internal() { "internal" } else { "external" })
            .field("prefix", entry.prefix.address().to_string())
            .field("prefixLen", entry.prefix.length())
            .field("network", entry.prefix.to_string())
            .field("version", instance.table_version)
            .optional("metric", path.metric())
            .optional("locPrf", path.local_pref())
            .field("weight", path.weight())
            .field("peerId", peer)
            .field("path", path.as_path())
            .field("origin", path.origin().name())
            .field("nexthops", path.next_hops(host, Detail::Row))
            .into()
    };
    paths.into_iter().map(one).collect()
}
