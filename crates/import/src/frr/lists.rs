//! FRR's lists of prefixes, AS paths and communities, which neighbors and route maps name.
//!
//! Answers what a list contains, in its order. Knows nothing of who uses it.

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::{AsPathPattern, Community, ExtendedCommunity, LargeCommunity};
use ipnet::IpNet;

use crate::policy::Range;

/// One line of a list.
#[derive(Debug, Clone)]
pub(super) struct Entry<T> {
    pub(super) permits: bool,
    pub(super) value: T,
}

/// The lines of a list by their sequence numbers.
type List<T> = BTreeMap<u32, Entry<T>>;

/// The kinds of lists of communities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CommunityKind {
    Plain,
    Large,
    Extended,
}

impl CommunityKind {
    /// A community as it is written in a BGPPeer.
    pub(super) fn word(self, word: &str) -> Option<String> {
        match self {
            Self::Plain => word.parse::<Community>().ok().map(|it| it.to_string()),
            Self::Large => {
                let text = format!("large:{word}");
                word.parse::<LargeCommunity>().ok().map(|_| text)
            }
            Self::Extended => word.parse::<ExtendedCommunity>().ok().map(|_| word.to_owned()),
        }
    }
}

/// All lists, by their names.
#[derive(Debug, Default)]
pub(super) struct Lists {
    prefixes: BTreeMap<(bool, String), List<Range>>,
    as_paths: BTreeMap<String, List<String>>,
    communities: BTreeMap<(CommunityKind, String), List<Vec<String>>>,
    /// Names of lists of which a line could not be read.
    partial: BTreeSet<String>,
}

impl Lists {
    /// The prefixes of a list, first match first.
    pub(super) fn prefixes(&self, ipv6: bool, name: &str) -> Option<Vec<&Entry<Range>>> {
        self.prefixes.get(&(ipv6, name.to_owned())).map(decisive)
    }

    /// The regular expressions of a list.
    pub(super) fn as_paths(&self, name: &str) -> Option<Vec<&Entry<String>>> {
        self.as_paths.get(name).map(decisive)
    }

    /// The communities of a list; a route must have all of one entry.
    pub(super) fn communities(
        &self,
        kind: CommunityKind,
        name: &str,
    ) -> Option<Vec<&Entry<Vec<String>>>> {
        self.communities.get(&(kind, name.to_owned())).map(decisive)
    }

    /// An error if not all lines of the list could be read.
    pub(super) fn whole(&self, name: &str) -> Result<(), String> {
        match self.partial.contains(name) {
            true => Err(format!("a line of list {name} is not translated")),
            false => Ok(()),
        }
    }

    /// Reads a line that defines a part of a list; `None` if it is none.
    pub(super) fn read(&mut self, words: &[&str]) -> Option<Result<(), String>> {
        let outcome = self.read_line(words)?;
        if outcome.is_err() {
            // Whichever of the words is the name.
            self.partial.extend(words.iter().skip(2).map(|it| (*it).to_owned()));
        }
        Some(outcome)
    }

    fn read_line(&mut self, words: &[&str]) -> Option<Result<(), String>> {
        match words {
            ["no", "ip" | "ipv6", "prefix-list", ..]
            | ["no", "bgp", "as-path" | "community-list" | "large-community-list", ..]
            | ["no", "bgp", "extcommunity-list", ..] => Some(Err(TAKEN_BACK.to_owned())),
            ["ip" | "ipv6", "prefix-list", "sequence-number"] => Some(Ok(())),
            ["ip" | "ipv6", "prefix-list", _, "description", ..] => Some(Ok(())),
            ["ip", "prefix-list", name, rest @ ..] => Some(self.prefix(false, name, rest)),
            ["ipv6", "prefix-list", name, rest @ ..] => Some(self.prefix(true, name, rest)),
            ["bgp", "as-path", "access-list", name, rest @ ..] => Some(self.as_path(name, rest)),
            ["bgp", "community-list", rest @ ..] => {
                Some(self.community(CommunityKind::Plain, rest))
            }
            ["bgp", "large-community-list", rest @ ..] => {
                Some(self.community(CommunityKind::Large, rest))
            }
            ["bgp", "extcommunity-list", rest @ ..] => {
                Some(self.community(CommunityKind::Extended, rest))
            }
            _ => None,
        }
    }

    fn prefix(&mut self, ipv6: bool, name: &str, rest: &[&str]) -> Result<(), String> {
        let (sequence, permits, rest) = opening(rest)?;
        let (network, mut lengths) = match rest {
            ["any"] => {
                add(
                    &mut self.prefixes,
                    (ipv6, name.to_owned()),
                    sequence,
                    permits,
                    Range::everything(ipv6),
                );
                return Ok(());
            }
            [network, lengths @ ..] => (network, lengths),
            [] => return Err("a prefix is missing".to_owned()),
        };
        let network: IpNet = network.parse().map_err(|_| format!("{network:?} is not a prefix"))?;
        let network = network.trunc();
        if matches!(network, IpNet::V6(_)) != ipv6 {
            return Err("the prefix is of the other address family".to_owned());
        }
        let mut range = Range { network, ge: None, le: None };
        while let [bound, length, more @ ..] = lengths {
            let length: u8 = number(length)?;
            match *bound {
                "ge" => range.ge = Some(length),
                "le" => range.le = Some(length),
                other => return Err(format!("{other:?} is not a bound; expected ge or le")),
            }
            lengths = more;
        }
        add(&mut self.prefixes, (ipv6, name.to_owned()), sequence, permits, range);
        Ok(())
    }

    fn as_path(&mut self, name: &str, rest: &[&str]) -> Result<(), String> {
        let (sequence, permits, rest) = opening(rest)?;
        let expression = rest.join(" ");
        AsPathPattern::new(&expression)?;
        add(&mut self.as_paths, name.to_owned(), sequence, permits, expression);
        Ok(())
    }

    fn community(&mut self, kind: CommunityKind, words: &[&str]) -> Result<(), String> {
        let (name, rest) = match words {
            ["standard", name, rest @ ..] => (*name, rest),
            ["expanded", ..] => return Err(EXPANDED.to_owned()),
            // FRR knows lists by these numbers, too: from 100 on they are expanded.
            [name, ..] if name.parse().is_ok_and(|it: u32| (100..=500).contains(&it)) => {
                return Err(EXPANDED.to_owned());
            }
            [name, rest @ ..] => (*name, rest),
            [] => return Err("a name is missing".to_owned()),
        };
        let (sequence, permits, rest) = opening(rest)?;
        let rest = match (kind, rest) {
            (CommunityKind::Extended, rest) => joined(rest),
            (_, rest) => rest.iter().map(|it| (*it).to_owned()).collect(),
        };
        let value = |word: &String| {
            kind.word(word).ok_or_else(|| format!("{word:?} is no community that BGPPeer matches"))
        };
        let values: Result<Vec<String>, String> = rest.iter().map(value).collect();
        add(&mut self.communities, (kind, name.to_owned()), sequence, permits, values?);
        Ok(())
    }
}

const EXPANDED: &str = "a BGPPeer matches communities by their values, not by a regular expression";
/// Why a line that begins with `no` is not followed.
pub(super) const TAKEN_BACK: &str =
    "a line that takes another one back is not followed; import what show running-config prints";

/// The lines of a list in their order; what the last ones deny is denied without them.
fn decisive<T>(list: &List<T>) -> Vec<&Entry<T>> {
    let mut lines: Vec<&Entry<T>> = list.values().collect();
    while lines.last().is_some_and(|it| !it.permits) {
        lines.pop();
    }
    lines
}

/// `rt 65001:1` as `rt:65001:1`.
pub(super) fn joined(words: &[&str]) -> Vec<String> {
    words.chunks(2).map(|pair| pair.join(":")).collect()
}

/// The sequence number, and whether the line permits; and what follows.
fn opening<'a, 'b>(words: &'a [&'b str]) -> Result<(Option<u32>, bool, &'a [&'b str]), String> {
    let (sequence, words) = match words {
        ["seq", sequence, rest @ ..] => (Some(number(sequence)?), rest),
        words => (None, words),
    };
    match words {
        ["permit", rest @ ..] => Ok((sequence, true, rest)),
        ["deny", rest @ ..] => Ok((sequence, false, rest)),
        _ => Err("expected permit or deny".to_owned()),
    }
}

/// A number, or what is wrong with it.
pub(super) fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word:?} is not a number in range"))
}

/// Adds a line; one with the same number takes its place, one without a number goes to the end.
fn add<K: Ord, T>(
    lists: &mut BTreeMap<K, List<T>>,
    key: K,
    sequence: Option<u32>,
    permits: bool,
    value: T,
) {
    let list = lists.entry(key).or_default();
    let next = || list.keys().next_back().map_or(5, |last| last.saturating_add(5));
    list.insert(sequence.unwrap_or_else(next), Entry { permits, value });
}
