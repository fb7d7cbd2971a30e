//! Each view as heads and rows of text, in the order in which they are drawn.

use std::time::Duration;

use fairway_ground::printable;
use fairway_show::clock;
use fairway_show::overview::{
    EventLog, EventRow, Overview, PoolRow, PrefixRow, SegmentRow, ServiceRow, SessionRow,
};

use crate::rates::{Rate, Rates};
use crate::view::View;

/// How a row is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// All is well.
    Calm,
    /// On its way, or without use.
    Faint,
    /// Somebody should look at it.
    Warning,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) cells: Vec<String>,
    pub(crate) weight: Weight,
    /// The words for `fairway explain`, if it knows the object.
    pub(crate) explain: Option<[String; 2]>,
}

/// A column: its head and its width; the last one of a view takes what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) head: &'static str,
    pub(crate) width: u16,
    pub(crate) is_number: bool,
}

const fn words(head: &'static str, width: u16) -> Column {
    Column { head, width, is_number: false }
}

const fn number(head: &'static str, width: u16) -> Column {
    Column { head, width, is_number: true }
}

/// Of 80 columns at least.
pub(crate) fn columns(view: View) -> &'static [Column] {
    match view {
        View::Neighbors => {
            const {
                &[
                    words("NEIGHBOR", 18),
                    number("AS", 10),
                    number("UP/DOWN", 8),
                    number("STATE/RCVD", 11),
                    number("SENT", 6),
                    number("MSG/S", 6),
                    words("BFD / REASON", 0),
                ]
            }
        }
        View::Services => {
            const {
                &[
                    words("SERVICE", 22),
                    words("ADDRESSES", 16),
                    words("ANNOUNCED TO", 14),
                    words("REASON", 0),
                ]
            }
        }
        View::Pools => {
            const {
                &[
                    words("POOL", 18),
                    number("IPV4", 12),
                    number("IPV6", 12),
                    number("SERVICES", 8),
                    words("USED", 12),
                    words("ADDRESSES", 0),
                ]
            }
        }
        View::Segment => {
            const {
                &[
                    words("ADDRESS", 22),
                    words("OWNER", 14),
                    words("INTERFACES", 10),
                    number("REQUESTS", 8),
                    number("CONFLICTS", 9),
                    words("SERVICES / REASON", 0),
                ]
            }
        }
        View::Prefixes => const { &[words("PREFIX", 40), words("ANNOUNCED TO", 0)] },
        View::Events => const { &[words("TIME", 8), words("ABOUT", 30), words("EVENT", 0)] },
    }
}

/// All rows of a view that contain `filter`, which is in small letters; those that somebody should look at first.
pub(crate) fn rows(
    view: View,
    overview: &Overview,
    rates: &Rates,
    log: &EventLog,
    filter: &str,
) -> Vec<Row> {
    let mut rows: Vec<Row> = match view {
        View::Neighbors => {
            let session = |it: &SessionRow| session(it, rates.of(&it.neighbor));
            overview.sessions.iter().map(session).collect()
        }
        View::Services => overview.services.iter().map(service).collect(),
        View::Pools => overview.pools.iter().map(pool).collect(),
        View::Segment => overview.segment.iter().map(segment).collect(),
        View::Prefixes => overview.prefixes_of_node.iter().map(prefix).collect(),
        View::Events => log.events().map(event).collect(),
    };
    rows.retain(|row| {
        filter.is_empty() || row.cells.iter().any(|it| it.to_lowercase().contains(filter))
    });
    if view != View::Events {
        // Stable: otherwise they stay in their order.
        rows.sort_by_key(|row| row.weight != Weight::Warning);
    }
    rows
}

fn session(row: &SessionRow, rate: Rate) -> Row {
    let last = match (&row.bfd, row.is_restarting) {
        (_, true) => format!("restarts, its routes are kept; {}", row.reason),
        (Some(bfd), false) if row.is_established => format!("BFD {bfd}"),
        _ => row.reason.clone(),
    };
    let since = row.since_seconds.map(|it| clock(Duration::from_secs(it)));
    let cells = vec![
        shown(row.called()),
        row.remote_as.to_string(),
        since.unwrap_or_else(|| "never".to_owned()),
        if row.is_established { short(row.accepted.total()) } else { row.state.clone() },
        short(row.advertised.total()),
        per_second(rate.received + rate.sent),
        shown(&last),
    ];
    let weight = if row.is_established { Weight::Calm } else { Weight::Warning };
    Row { cells, weight, explain: Some(["peer".to_owned(), row.neighbor.clone()]) }
}

fn service(row: &ServiceRow) -> Row {
    let name = format!("{}/{}", row.namespace, row.name);
    let addresses = match row.addresses.as_slice() {
        [] => "<pending>".to_owned(),
        some => some.join(","),
    };
    let cells =
        vec![shown(&name), addresses, shown(&row.announced_to.join(",")), shown(&row.reason)];
    let weight = if row.reason.is_empty() { Weight::Calm } else { Weight::Warning };
    Row { cells, weight, explain: Some(["service".to_owned(), name]) }
}

/// A pool counts as nearly full from here on, in percent.
const NEARLY_FULL_PERCENT: u128 = 90;

fn pool(row: &PoolRow) -> Row {
    let share = |used: u64, total: u64| {
        u128::from(used).saturating_mul(100).checked_div(u128::from(total)).unwrap_or(0)
    };
    let full = share(row.used.ipv4, row.total.ipv4).max(share(row.used.ipv6, row.total.ipv6));
    let of = |used: u64, total: u64| match total {
        0 => "-".to_owned(),
        _ => format!("{}/{}", short(used), short(total)),
    };
    let cells = vec![
        shown(&row.name),
        of(row.used.ipv4, row.total.ipv4),
        of(row.used.ipv6, row.total.ipv6),
        row.services.to_string(),
        bar(full),
        row.addresses.join(","),
    ];
    let weight = if full >= NEARLY_FULL_PERCENT { Weight::Warning } else { Weight::Calm };
    Row { cells, weight, explain: Some(["pool".to_owned(), row.name.clone()]) }
}

fn segment(row: &SegmentRow) -> Row {
    let last = match row.reason.as_str() {
        "" => row.services.join(","),
        reason => reason.to_owned(),
    };
    let cells = vec![
        row.address.clone(),
        shown(row.owner.as_deref().unwrap_or("<none>")),
        shown(&row.interfaces.join(",")),
        short(row.requests),
        short(row.conflicts),
        shown(&last),
    ];
    let weight = match (row.reason.is_empty(), row.is_mine) {
        (false, _) => Weight::Warning,
        (true, true) => Weight::Calm,
        (true, false) => Weight::Faint,
    };
    Row { cells, weight, explain: Some(["address".to_owned(), row.address.clone()]) }
}

fn prefix(row: &PrefixRow) -> Row {
    let (told, weight) = match row.announced_to.as_slice() {
        [] => ("<none>".to_owned(), Weight::Warning),
        some => (some.join(","), Weight::Calm),
    };
    Row { cells: vec![row.prefix.clone(), shown(&told)], weight, explain: None }
}

pub(crate) fn event(row: &EventRow) -> Row {
    let second_of_day = row.at_epoch_seconds % 86_400;
    let (hour, minute) = (second_of_day / 3_600, second_of_day / 60 % 60);
    let time = format!("{hour:02}:{minute:02}:{:02}", second_of_day % 60);
    let cells = vec![time, shown(&row.about), shown(&row.what)];
    let weight = if row.is_warning { Weight::Warning } else { Weight::Calm };
    Row { cells, weight, explain: None }
}

fn shown(text: &str) -> String {
    printable(text).into_owned()
}

/// A number in six characters: `999999`, `1234k`, `56M`.
pub(crate) fn short(number: u64) -> String {
    match number {
        0..1_000_000 => number.to_string(),
        1_000_000..100_000_000 => format!("{}k", number / 1_000),
        100_000_000..100_000_000_000 => format!("{}M", number / 1_000_000),
        _ => format!("{:.0e}", number as f64),
    }
}

pub(crate) fn per_second(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        0.0..10.0 => format!("{rate:.1}"),
        _ => format!("{rate:.0}"),
    }
}

/// Ten characters of `full` percent.
fn bar(full: u128) -> String {
    let filled = usize::try_from(full.min(100).div_ceil(10)).unwrap_or(10);
    format!("{}{}", "█".repeat(filled), "░".repeat(10_usize.saturating_sub(filled)))
}
