//! What the tables and the single entries have in common: paths, rows, communities.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fairway_sessions::backend::DesiredRoute;
use fairway_sessions::types::{AddressFamily, Community, LargeCommunity, Prefix};
use serde_json::Value;

use super::Snapshot;
use super::object::Object;

/// The weight that FRR gives to what it originates itself.
pub(super) const WEIGHT: u32 = 32_768;
/// The only way a path is chosen here.
pub(super) const SELECTION_REASON: &str = "First path received";

/// A prefix and its paths: one for each set of attributes that some peers are told. All are in
/// use, so the first is shown as the best and the others as its multipath.
pub(super) struct Entry<'a> {
    pub(super) prefix: Prefix,
    pub(super) paths: Vec<&'a DesiredRoute>,
}

/// The table of `family`, by prefix.
pub(super) fn entries<'a>(snapshot: &Snapshot<'a>, family: AddressFamily) -> Vec<Entry<'a>> {
    let routes = snapshot.bgp.routes.iter().filter(|route| route.prefix.family() == family);
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for route in routes {
        match entries.last_mut().filter(|entry| entry.prefix == route.prefix) {
            Some(entry) => entry.paths.push(route),
            None => entries.push(Entry { prefix: route.prefix, paths: vec![route] }),
        }
    }
    entries
}

/// The next hop that FRR shows for what it originates.
pub(super) fn unspecified(family: AddressFamily) -> IpAddr {
    match family {
        AddressFamily::Ipv4Unicast => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        AddressFamily::Ipv6Unicast => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// One row of a table.
pub(super) struct Row<'a> {
    /// Two characters, as in `*>`.
    pub(super) status: &'a str,
    /// Empty in the second and later rows of a prefix.
    pub(super) network: String,
    pub(super) next_hop: IpAddr,
    pub(super) metric: Option<u32>,
    pub(super) local_pref: Option<u32>,
    pub(super) path: String,
    pub(super) origin_code: char,
}

impl Row<'_> {
    /// The row in FRR's columns; what does not fit in one continues on the next line.
    pub(super) fn line(&self) -> String {
        let number = |value: Option<u32>| value.map(|it| it.to_string()).unwrap_or_default();
        let separator = if self.path.is_empty() { "" } else { " " };
        format!(
            "{:2} {}{}{:>10}{:>7}{WEIGHT:>7} {}{separator}{}\n",
            self.status,
            cell(&self.network, 17, 20),
            cell(&self.next_hop.to_string(), 16, 36),
            number(self.metric),
            number(self.local_pref),
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

/// `{string, list}`, or nothing.
pub(super) fn large_communities(communities: &[LargeCommunity]) -> Option<Object> {
    list_object(communities, LargeCommunity::to_string)
}

fn list_object<T: Display>(values: &[T], word: impl Fn(&T) -> String) -> Option<Object> {
    let list: Vec<Value> = values.iter().map(|value| word(value).into()).collect();
    let object = Object::new().field("string", joined(values)).field("list", list);
    (!values.is_empty()).then_some(object)
}

/// Values with a blank between.
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
                next_hop: next_hop.parse().unwrap(),
                metric: None,
                local_pref: Some(200),
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
