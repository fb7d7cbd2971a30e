//! Which command does a line mean? FRR's rules for reading a line: words may be abbreviated if one meaning is
//! left, a complete word has precedence over an abbreviation, and a keyword over a value.
//!
//! Pure, and knows no command: the patterns come from `commands`. Words in lower case stand for themselves,
//! words in upper case for values; `[...]` is optional, of `<...|...>` one is chosen.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A command's words, ready to be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Word(&'static str),
    Value(ValueName),
    Maybe(Vec<Part>),
    OneOf(Vec<Vec<Part>>),
}

/// A value, by its name in patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ValueName {
    /// An IPv4 or IPv6 address.
    Address,
    /// The same with a length.
    Prefix,
    /// Digits.
    Number,
    /// A community, as in `65010:100`.
    Community,
    /// A peer group of FRR.
    Group,
    /// A network interface.
    Interface,
    /// A node.
    Node,
    /// A neighbour: its address, or the name of its BGPPeer.
    Peer,
    /// An IPAddressPool.
    Pool,
    /// A Service, with or without its namespace.
    Service,
    /// Any word.
    Text,
    /// A VRF, or `all`.
    Vrf,
}

impl ValueName {
    const ALL: [Self; 12] = [
        Self::Address,
        Self::Prefix,
        Self::Number,
        Self::Community,
        Self::Group,
        Self::Interface,
        Self::Node,
        Self::Peer,
        Self::Pool,
        Self::Service,
        Self::Text,
        Self::Vrf,
    ];

    /// The name in patterns.
    pub fn name(self) -> &'static str {
        match self {
            Self::Address => "ADDRESS",
            Self::Prefix => "PREFIX",
            Self::Number => "NUMBER",
            Self::Community => "COMMUNITY",
            Self::Group => "GROUP",
            Self::Interface => "INTERFACE",
            Self::Node => "NODE",
            Self::Peer => "PEER",
            Self::Pool => "POOL",
            Self::Service => "SERVICE",
            Self::Text => "TEXT",
            Self::Vrf => "VRF",
        }
    }

    /// What may stand for it.
    pub fn help(self) -> &'static str {
        match self {
            Self::Address => "An IPv4 or IPv6 address",
            Self::Prefix => "A prefix, such as 198.51.100.0/24",
            Self::Number => "A number",
            Self::Community => "A community, such as 65010:100, or a large one, such as 65010:1:2",
            Self::Group => "A peer group",
            Self::Interface => "A network interface",
            Self::Peer => "A neighbor: its address, or the name of its BGPPeer",
            Self::Node => "The name of this node",
            Self::Pool => "The name of an IPAddressPool",
            Self::Service => "A Service: its name, or NAMESPACE/NAME",
            Self::Text => "Any text",
            Self::Vrf => "The name of a VRF, default, or all",
        }
    }

    fn fits(self, word: &str) -> bool {
        match self {
            Self::Address => word.parse::<IpAddr>().is_ok(),
            Self::Prefix => word.parse::<IpNet>().is_ok(),
            Self::Number => word.bytes().all(|byte| byte.is_ascii_digit()),
            _ => true,
        }
    }
}

/// What may come next in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Next {
    /// This word.
    Word(&'static str),
    /// Such a value.
    Value(ValueName),
    /// Nothing: the line is a command.
    End,
}

/// What one word of a line was matched to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken<'a> {
    Word { whole: &'static str, given: &'a str },
    Value(&'a str),
}

/// A line that matches one command: its words in full, and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words<'a>(Vec<Taken<'a>>);

impl<'a> Words<'a> {
    /// Whether the line has `word`, abbreviated or in full.
    pub(super) fn has(&self, word: &str) -> bool {
        self.position(word).is_some()
    }

    /// The value behind `word`.
    pub(super) fn after(&self, word: &str) -> Option<&'a str> {
        let next = self.position(word)?.checked_add(1)?;
        self.0.get(next).and_then(|taken| match taken {
            Taken::Value(value) => Some(*value),
            Taken::Word { .. } => None,
        })
    }

    /// All values.
    pub(super) fn values(&self) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter_map(|taken| match taken {
            Taken::Value(value) => Some(*value),
            Taken::Word { .. } => None,
        })
    }

    /// The last value.
    pub(super) fn last_value(&self) -> Option<&'a str> {
        self.values().last()
    }

    fn position(&self, word: &str) -> Option<usize> {
        self.0.iter().position(|taken| matches!(taken, Taken::Word { whole, .. } if *whole == word))
    }
}

/// Why a line matches no command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misread {
    /// No command starts like this.
    NoMatch,
    /// It matches several.
    Ambiguous,
    /// More words must follow.
    Incomplete,
}

impl Pattern {
    /// Reads a pattern.
    pub(super) fn new(text: &'static str) -> Self {
        let spaced: Vec<&'static str> = tokens(text);
        let mut rest = spaced.as_slice();
        Self(sequence(&mut rest))
    }

    /// All ways in which `words` match the pattern or its start, each with what comes next.
    fn read<'a>(&self, words: &[&'a str]) -> Vec<(Vec<Taken<'a>>, Next)> {
        let mut reading = Reading::default();
        reading.walk(self.0.iter().rev().collect(), words, Vec::new());
        reading.0
    }
}

#[derive(Debug, Default)]
struct Reading<'a>(Vec<(Vec<Taken<'a>>, Next)>);

impl<'a> Reading<'a> {
    /// `ahead` is the rest of the pattern, its next part last.
    fn walk(&mut self, mut ahead: Vec<&Part>, words: &[&'a str], taken: Vec<Taken<'a>>) {
        match (ahead.pop(), words.split_first()) {
            (None, None) => self.0.push((taken, Next::End)),
            (None, Some(_)) => {}
            (Some(Part::Maybe(parts)), _) => {
                let mut with = ahead.clone();
                with.extend(parts.iter().rev());
                self.walk(with, words, taken.clone());
                self.walk(ahead, words, taken);
            }
            (Some(Part::OneOf(choices)), _) => {
                for choice in choices {
                    let mut with = ahead.clone();
                    with.extend(choice.iter().rev());
                    self.walk(with, words, taken.clone());
                }
            }
            (Some(Part::Word(word)), None) => self.0.push((taken, Next::Word(word))),
            (Some(Part::Value(name)), None) => self.0.push((taken, Next::Value(*name))),
            (Some(Part::Word(whole)), Some((given, rest))) if whole.starts_with(given) => {
                self.walk(ahead, rest, with(taken, Taken::Word { whole, given }));
            }
            (Some(Part::Value(value)), Some((given, rest))) if value.fits(given) => {
                self.walk(ahead, rest, with(taken, Taken::Value(given)));
            }
            (Some(Part::Word(_) | Part::Value(_)), Some(_)) => {}
        }
    }
}

fn with<'a>(mut taken: Vec<Taken<'a>>, one: Taken<'a>) -> Vec<Taken<'a>> {
    taken.push(one);
    taken
}

/// The pattern of `patterns` that `words` match, by its position, and how.
pub(super) fn find<'a, 'p>(
    patterns: impl IntoIterator<Item = &'p Pattern>,
    words: &[&'a str],
) -> Result<(usize, Words<'a>), Misread> {
    let mut best: Option<(usize, Vec<Taken<'a>>)> = None;
    let (mut is_ambiguous, mut is_beginning) = (false, false);
    for (position, pattern) in patterns.into_iter().enumerate() {
        for (taken, next) in pattern.read(words) {
            if next != Next::End {
                is_beginning = true;
                continue;
            }
            match best.as_ref().map(|(_, best)| preference(best, &taken)) {
                Some(Preference::First) => {}
                Some(Preference::Neither) => is_ambiguous = true,
                None | Some(Preference::Second) => {
                    best = Some((position, taken));
                    is_ambiguous = false;
                }
            }
        }
    }
    match best {
        Some(_) if is_ambiguous => Err(Misread::Ambiguous),
        Some((position, taken)) => Ok((position, Words(taken))),
        None if is_beginning => Err(Misread::Incomplete),
        None => Err(Misread::NoMatch),
    }
}

/// What may follow `words`, by the readings of them that have precedence.
pub(super) fn next<'p>(
    patterns: impl IntoIterator<Item = &'p Pattern>,
    words: &[&str],
) -> BTreeSet<Next> {
    let readings = patterns.into_iter().flat_map(|pattern| pattern.read(words));
    let readings: Vec<(Vec<Taken<'_>>, Next)> = readings.collect();
    let is_beaten = |taken: &[Taken<'_>]| {
        readings
            .iter()
            .any(|(other, _)| preference(other, taken) == Preference::First && other != taken)
    };
    readings.iter().filter(|(taken, _)| !is_beaten(taken)).map(|(_, next)| *next).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preference {
    First,
    Second,
    Neither,
}

/// Which of two matches of the same words has precedence. If two patterns match in the same way, the first
/// does.
fn preference(first: &[Taken<'_>], second: &[Taken<'_>]) -> Preference {
    for (one, other) in first.iter().zip(second) {
        let is_exact = |taken: &Taken<'_>| match taken {
            Taken::Word { whole, given } => whole == given,
            Taken::Value(_) => false,
        };
        match (one, other) {
            (Taken::Word { .. }, Taken::Value(_)) => return Preference::First,
            (Taken::Value(_), Taken::Word { .. }) => return Preference::Second,
            _ if is_exact(one) && !is_exact(other) => return Preference::First,
            _ if is_exact(other) && !is_exact(one) => return Preference::Second,
            _ => {}
        }
    }
    if first == second { Preference::First } else { Preference::Neither }
}

/// Words and signs, each as a token.
fn tokens(text: &'static str) -> Vec<&'static str> {
    let words = text.split(' ').filter(|word| !word.is_empty());
    words.flat_map(|word| word.split_inclusive(is_sign).flat_map(without_sign)).collect()
}

fn is_sign(character: char) -> bool {
    matches!(character, '[' | ']' | '<' | '>' | '|')
}

/// `word]` as `word` and `]`.
fn without_sign(piece: &'static str) -> impl Iterator<Item = &'static str> {
    let word = piece.trim_end_matches(is_sign);
    let (word, sign) = piece.split_at_checked(word.len()).unwrap_or((piece, ""));
    [word, sign].into_iter().filter(|it| !it.is_empty())
}

/// Parts up to the sign that ends them, which is consumed.
fn sequence(rest: &mut &[&'static str]) -> Vec<Part> {
    let mut parts = Vec::new();
    while let Some((token, behind)) = rest.split_first() {
        match *token {
            "]" | ">" | "|" => break,
            "[" => {
                *rest = behind;
                parts.push(Part::Maybe(sequence(rest)));
                *rest = rest.split_first().map_or(*rest, |(_, behind)| behind);
            }
            "<" => {
                *rest = behind;
                parts.push(Part::OneOf(choices(rest)));
                *rest = rest.split_first().map_or(*rest, |(_, behind)| behind);
            }
            word => {
                *rest = behind;
                let value = ValueName::ALL.into_iter().find(|value| value.name() == word);
                parts.push(value.map_or(Part::Word(word), Part::Value));
            }
        }
    }
    parts
}

/// The alternatives before a `>`.
fn choices(rest: &mut &[&'static str]) -> Vec<Vec<Part>> {
    let mut choices = vec![sequence(rest)];
    while let Some(("|", behind)) = rest.split_first().map(|(token, behind)| (*token, behind)) {
        *rest = behind;
        choices.push(sequence(rest));
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_in(patterns: &[&'static str], line: &str) -> Result<usize, Misread> {
        let patterns: Vec<_> = patterns.iter().map(|text| Pattern::new(text)).collect();
        let words: Vec<&str> = line.split_whitespace().collect();
        find(&patterns, &words).map(|(position, _)| position)
    }

    #[test]
    fn a_pattern_is_read_with_its_brackets() {
        let pattern = Pattern::new("show [ip] bgp <ADDRESS|a b|[c]> [json]");
        let word = Part::Word;
        let expected = vec![
            word("show"),
            Part::Maybe(vec![word("ip")]),
            word("bgp"),
            Part::OneOf(vec![
                vec![Part::Value(ValueName::Address)],
                vec![word("a"), word("b")],
                vec![Part::Maybe(vec![word("c")])],
            ]),
            Part::Maybe(vec![word("json")]),
        ];
        assert_eq!(pattern.0, expected);
    }

    #[test]
    fn words_may_be_cut_short_where_one_meaning_is_left() {
        let patterns = ["show bgp summary", "show bgp statistics", "show bfd peers"];
        assert_eq!(find_in(&patterns, "sh bgp sum"), Ok(0));
        assert_eq!(find_in(&patterns, "sh bgp st"), Ok(1));
        assert_eq!(find_in(&patterns, "s b p"), Ok(2));
        assert_eq!(find_in(&patterns, "show bgp s"), Err(Misread::Ambiguous));
        assert_eq!(find_in(&patterns, "show b s"), Err(Misread::Ambiguous));
    }

    #[test]
    fn a_word_in_full_beats_one_that_is_cut_and_a_word_beats_a_value() {
        let patterns = ["show view", "show views", "show PEER"];
        assert_eq!(find_in(&patterns, "show view"), Ok(0));
        assert_eq!(find_in(&patterns, "show views"), Ok(1));
        assert_eq!(find_in(&patterns, "show v"), Err(Misread::Ambiguous));
        assert_eq!(find_in(&patterns, "show other"), Ok(2));
        let optional = ["neighbors [PEER] [json]"];
        let pattern = Pattern::new(optional[0]);
        let (_, words) = find([&pattern], &["neighbors", "json"]).unwrap();
        assert!(words.has("json") && words.last_value().is_none());
    }

    #[test]
    fn a_beginning_is_incomplete_and_words_too_many_are_unknown() {
        let patterns = ["show bgp [vrf VRF] summary [json]"];
        assert_eq!(find_in(&patterns, "show bgp"), Err(Misread::Incomplete));
        assert_eq!(find_in(&patterns, "show bgp vrf"), Err(Misread::Incomplete));
        assert_eq!(find_in(&patterns, "show bgp vrf all summary json"), Ok(0));
        assert_eq!(find_in(&patterns, "show bgp summary json json"), Err(Misread::NoMatch));
        assert_eq!(find_in(&patterns, "SHOW BGP SUMMARY"), Err(Misread::NoMatch));
    }

    #[test]
    fn values_are_found_by_the_word_before_them() {
        let pattern = Pattern::new("show bgp [vrf VRF] neighbors [PEER] [json]");
        let line = ["sh", "bgp", "vrf", "red", "nei", "10.1.1.2", "j"];
        let (_, words) = find([&pattern], &line).unwrap();
        assert_eq!(words.after("vrf"), Some("red"));
        assert_eq!(words.after("neighbors"), Some("10.1.1.2"));
        assert_eq!(words.after("json"), None);
    }

    #[test]
    fn what_may_follow_is_told_for_the_reading_that_counts() {
        let patterns =
            ["show bgp [vrf VRF] summary", "show bgp neighbors [PEER] [json]", "show NUMBER"];
        let patterns: Vec<_> = patterns.iter().map(|text| Pattern::new(text)).collect();
        let next = |line: &str| -> Vec<Next> {
            let words: Vec<&str> = line.split_whitespace().collect();
            next(&patterns, &words).into_iter().collect()
        };
        let word = Next::Word;
        assert_eq!(next("sh b"), [word("neighbors"), word("summary"), word("vrf")]);
        assert_eq!(next("show bgp vrf"), [Next::Value(ValueName::Vrf)]);
        assert_eq!(
            next("show bgp neighbors"),
            [word("json"), Next::Value(ValueName::Peer), Next::End]
        );
        // As a word, not as the name of a neighbour.
        assert_eq!(next("show bgp neighbors json"), [Next::End]);
        assert_eq!(next("show nothing"), []);
    }

    #[test]
    fn an_address_is_no_prefix() {
        let patterns = ["show ADDRESS", "show PREFIX", "show NUMBER"];
        assert_eq!(find_in(&patterns, "show 10.1.1.2"), Ok(0));
        assert_eq!(find_in(&patterns, "show 2001:db8::/32"), Ok(1));
        assert_eq!(find_in(&patterns, "show 1.2.3.4/33"), Err(Misread::NoMatch));
        assert_eq!(find_in(&patterns, "show 512"), Ok(2));
    }
}
