//! What the tables and the single entries have in common: paths, rows, communities.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fairway_ground::{
    AddressFamily, Community, ExtendedCommunity, LargeCommunity, OriginValidation, PeerKind, Prefix,
};
use fairway_seam::{DecisionStep, DesiredRoute, LearnedRoute, Origin};
use serde_json::Value;

use super::Snapshot;
use super::object::Object;

/// The weight that FRR gives to routes that it originates.
const WEIGHT_ORIGINATED: u32 = 32_768;
/// Why the only path to a prefix is the best, in FRR's words.
const ONLY_PATH: &str = "First path received";

/// A prefix and its paths, the best first. Originated ones have one path per set of attributes that is sent
/// to some peers. All are in use, so the others count as multipath.
pub(super) struct Entry<'a> {
    pub(super) prefix: Prefix,
    pub(super) paths: Vec<EntryPath<'a>>,
}

/// One path of an [`Entry`].
#[derive(Clone, Copy)]
pub(super) enum EntryPath<'a> {
    Originated(&'a DesiredRoute),
    Learned(&'a LearnedRoute),
}

/// All paths, by prefix, and those of one from the best on.
pub(super) struct RouteTable<'a>(Vec<(Prefix, EntryPath<'a>)>);

impl<'a> RouteTable<'a> {
    /// By prefix.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'a>> {
        let same = |one: &(Prefix, EntryPath<'_>), next: &(Prefix, EntryPath<'_>)| one.0 == next.0;
        self.0.chunk_by(same).filter_map(|paths| {
            let prefix = paths.first()?.0;
            Some(Entry { prefix, paths: paths.iter().map(|(_, path)| *path).collect() })
        })
    }

    pub(super) fn path_count(&self) -> usize {
        self.0.len()
    }
}

impl Entry<'_> {
    /// Why the first path is the best: the last step of the decision process that removed another one.
    pub(super) fn selection_reason(&self) -> String {
        let lost_at = self.paths.iter().filter_map(|path| match path {
            EntryPath::Originated(_) => None,
            EntryPath::Learned(learned) => learned.lost_at,
        });
        lost_at.max().map_or_else(|| ONLY_PATH.to_owned(), |step| step.to_string())
    }
}

impl EntryPath<'_> {
    pub(super) fn is_multipath(self, position: usize) -> bool {
        position > 0 && matches!(self, Self::Originated(_))
    }

    /// Its next hop can be reached, as far as is known.
    pub(super) fn is_accessible(self) -> bool {
        !matches!(self, Self::Learned(it) if it.lost_at == Some(DecisionStep::NextHop))
    }

    /// Whether the path at this place of its entry is the best one.
    pub(super) fn is_best(self, position: usize) -> bool {
        position == 0 && self.is_accessible()
    }

    pub(super) fn is_internal(self) -> bool {
        matches!(self, Self::Learned(it) if it.path.source.kind == PeerKind::Internal)
    }

    /// It is of a client of this route reflector.
    pub(super) fn is_from_client(self) -> bool {
        matches!(self, Self::Learned(it) if it.path.source.is_client)
    }

    /// What RPKI says about its origin.
    pub(super) fn origin_validation(self) -> Option<OriginValidation> {
        match self {
            Self::Originated(_) => None,
            Self::Learned(learned) => learned.origin_validation,
        }
    }

    /// Its neighbour is restarting and has not sent it again.
    pub(super) fn is_stale(self) -> bool {
        matches!(self, Self::Learned(it) if it.stale)
    }

    /// The next hop as text. FRR shows the interface as the next hop of a route from an unnumbered neighbour.
    pub(super) fn next_hop(self) -> String {
        match self {
            Self::Originated(route) => unspecified(route.prefix.family()).to_string(),
            Self::Learned(LearnedRoute { path, .. }) => match path.source.key.interface() {
                Some(interface) => interface.to_string(),
                None => path.attributes.next_hop.to_string(),
            },
        }
    }

    pub(super) fn metric(self) -> Option<u32> {
        match self {
            Self::Originated(route) => Some(route.attributes.med.unwrap_or(0)),
            Self::Learned(learned) => learned.path.attributes.med,
        }
    }

    pub(super) fn local_pref(self) -> Option<u32> {
        match self {
            Self::Originated(route) => route.attributes.local_pref,
            Self::Learned(learned) => learned.path.attributes.local_pref,
        }
    }

    pub(super) fn weight(self) -> u32 {
        match self {
            Self::Originated(_) => WEIGHT_ORIGINATED,
            Self::Learned(_) => 0,
        }
    }

    pub(super) fn only_to_customer(self) -> Option<u32> {
        match self {
            Self::Originated(_) => None,
            Self::Learned(learned) => learned.path.attributes.only_to_customer,
        }
    }

    pub(super) fn as_path(self) -> String {
        match self {
            Self::Originated(_) => String::new(),
            Self::Learned(learned) => learned.path.attributes.as_path.to_string(),
        }
    }

    pub(super) fn origin(self) -> Origin {
        match self {
            Self::Originated(_) => Origin::Igp,
            Self::Learned(learned) => learned.path.attributes.origin,
        }
    }

    pub(super) fn communities(&self) -> &[Community] {
        match self {
            Self::Originated(route) => &route.attributes.communities,
            Self::Learned(learned) => &learned.path.attributes.communities,
        }
    }

    /// For our own routes, those that depend on the neighbour are left out.
    pub(super) fn extended_communities(&self) -> &[ExtendedCommunity] {
        match self {
            Self::Originated(_) => &[],
            Self::Learned(learned) => &learned.path.attributes.extended_communities,
        }
    }

    pub(super) fn large_communities(&self) -> &[LargeCommunity] {
        match self {
            Self::Originated(route) => &route.attributes.large_communities,
            Self::Learned(learned) => &learned.path.attributes.large_communities,
        }
    }
}

/// The table of `family`.
pub(super) fn table<'a>(snapshot: &Snapshot<'a>, family: AddressFamily) -> RouteTable<'a> {
    table_of(snapshot, |prefix| prefix.family() == family)
}

/// The entries of these prefixes.
pub(super) fn table_of<'a>(
    snapshot: &Snapshot<'a>,
    is_wanted: impl Fn(Prefix) -> bool,
) -> RouteTable<'a> {
    let bgp = snapshot.bgp;
    let originated = bgp.routes.iter().map(|it| (it.prefix, EntryPath::Originated(it)));
    let learned = bgp.learned.iter().map(|it| (it.prefix, EntryPath::Learned(it)));
    let mut paths: Vec<_> = originated.chain(learned).filter(|(it, _)| is_wanted(*it)).collect();
    let rank = |path: &EntryPath<'_>| match path {
        EntryPath::Originated(_) => 0,
        EntryPath::Learned(learned) => 1 + u8::from(learned.lost_at.is_some()),
    };
    paths.sort_by_key(|(prefix, path)| (*prefix, rank(path)));
    RouteTable(paths)
}

/// The next hop that FRR shows for originated routes.
pub(super) fn unspecified(family: AddressFamily) -> IpAddr {
    match family {
        AddressFamily::Ipv4Unicast => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        AddressFamily::Ipv6Unicast => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// One row of a table.
pub(super) struct Row<'a> {
    /// Up to three characters, as in `*>i`.
    pub(super) status: &'a str,
    /// Empty in the second and later rows of a prefix.
    pub(super) network: String,
    pub(super) next_hop: String,
    pub(super) metric: Option<u32>,
    pub(super) local_pref: Option<u32>,
    pub(super) weight: u32,
    pub(super) path: String,
    pub(super) origin_code: char,
}

impl Row<'_> {
    /// The row in FRR's columns; a cell that is too wide is followed by a line break.
    pub(super) fn line(&self) -> String {
        let number = |value: Option<u32>| value.map(|it| it.to_string()).unwrap_or_default();
        let separator = if self.path.is_empty() { "" } else { " " };
        format!(
            "{:3}{}{}{:>10}{:>7}{:>7} {}{separator}{}\n",
            self.status,
            cell(&self.network, 17, 20),
            cell(&self.next_hop, 16, 36),
            number(self.metric),
            number(self.local_pref),
            self.weight,
            self.path,
            self.origin_code
        )
    }
}

/// `text` in `width` columns with a blank after it, or on a line of its own.
fn cell(text: &str, width: usize, indent: usize) -> String {
    if text.len() < width { format!("{text:width$}") } else { format!("{text}\n{:indent$}", "") }
}

/// `{string, list}`, or nothing. Well-known names are written as one word in the list, as in FRR.
pub(super) fn communities(communities: &[Community]) -> Option<Object> {
    let word = |community: &Community| {
        let text = community.to_string();
        if text.contains(':') { text } else { camel_case(&text) }
    };
    list_object(communities, word)
}

/// `{string}`, or nothing.
pub(super) fn extended_communities(communities: &[ExtendedCommunity]) -> Option<Object> {
    let object = Object::new().field("string", joined(communities));
    (!communities.is_empty()).then_some(object)
}

/// `{string, list}`, or nothing.
pub(super) fn large_communities(communities: &[LargeCommunity]) -> Option<Object> {
    list_object(communities, LargeCommunity::to_string)
}

fn list_object<T: Display>(values: &[T], word: impl Fn(&T) -> String) -> Option<Object> {
    let list: Vec<Value> = values.iter().map(|value| word(value).into()).collect();
    let object = Object::new().field("string", joined(values)).field("list", list);
    (!values.is_empty()).then_some(object)
}

/// Values separated by blanks.
pub(super) fn joined<T: Display>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

/// `no-export` as `noExport`.
fn camel_case(text: &str) -> String {
    let mut words = text.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (head, tail) = word.split_at_checked(1).unwrap_or((word, ""));
        name + &head.to_ascii_uppercase() + &tail.to_ascii_lowercase()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_communities_are_words_in_a_list() {
        assert_eq!(camel_case("no-export"), "noExport");
        assert_eq!(camel_case("graceful-shutdown"), "gracefulShutdown");
        assert_eq!(camel_case("local-AS"), "localAs");
        assert_eq!(camel_case("blackhole"), "blackhole");
    }

    #[test]
    fn a_long_network_or_next_hop_takes_a_line_of_its_own() {
        let row = |network: &str, next_hop: &str| {
            let row = Row {
                status: "*>",
                network: network.to_owned(),
                next_hop: next_hop.to_owned(),
                metric: None,
                local_pref: Some(200),
                weight: 32_768,
                path: "65001".to_owned(),
                origin_code: 'i',
            };
            row.line()
        };
        assert_eq!(
            row("203.0.113.10/32", "10.1.1.1"),
            "*> 203.0.113.10/32  10.1.1.1                      200  32768 65001 i\n"
        );
        assert_eq!(
            row("198.51.100.128/25", "fe80::f467:f7ff:fe50:5636"),
            concat!(
                "*> 198.51.100.128/25\n",
                "                    fe80::f467:f7ff:fe50:5636\n",
                "                                                  200  32768 65001 i\n"
            )
        );
    }
}
