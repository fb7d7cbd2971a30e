//! One entry of a route map: what it matches and sets, and which of its lines have no equal.
//!
//! Knows no other entry; `route_map` puts them together.

use std::collections::BTreeMap;

use ipnet::IpNet;

use super::lists::{CommunityKind, Entry, Lists, joined, number};
use crate::policy::{Matches, PREPEND_MAX, Range, Settings};

/// One entry as it is written.
#[derive(Debug)]
pub(super) struct MapEntry {
    pub(super) permits: bool,
    pub(super) line: usize,
    pub(super) opening: String,
    /// With their numbers.
    pub(super) lines: Vec<(usize, String)>,
}

/// A line without an equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) why: String,
}

/// Where an entry is used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use {
    pub(super) ipv6: bool,
    pub(super) outbound: bool,
    /// The AS that `set as-path prepend` may repeat: ours outbound, the neighbor's inbound; unknown for any AS.
    pub(super) asn: Option<u32>,
}

/// An entry, read for one use.
pub(super) struct Reading<'a> {
    /// `None`: no route of this family can match.
    pub(super) matches: Option<Matches>,
    pub(super) settings: Settings,
    pub(super) continues: bool,
    pub(super) flaws: Vec<Flaw>,
    /// Lines that are translated, and what differs.
    pub(super) notes: Vec<Flaw>,
    /// The line that sets a next hop.
    pub(super) next_hop: Option<Flaw>,
    /// Of which kind the communities are that it matches.
    matched_kind: Option<CommunityKind>,
    /// What it sets of each kind, and whether others of the kind stay.
    set: BTreeMap<CommunityKind, (Vec<String>, bool)>,
    lists: &'a Lists,
    how: Use,
}

impl<'a> Reading<'a> {
    /// Reads the lines of `entry`.
    pub(super) fn of(entry: &MapEntry, lists: &'a Lists, how: Use) -> Self {
        let mut reading = Self {
            matches: Some(Matches::default()),
            settings: Settings::default(),
            continues: false,
            flaws: Vec::new(),
            notes: Vec::new(),
            next_hop: None,
            matched_kind: None,
            set: BTreeMap::new(),
            lists,
            how,
        };
        for (line, text) in &entry.lines {
            let words: Vec<&str> = text.split(' ').collect();
            if let Err(why) = reading.read(*line, &words) {
                let text = format!("{} / {text}", entry.opening);
                reading.flaws.push(Flaw { line: *line, text, why });
            } else if replaces_some(&words) {
                let text = format!("{} / {text}", entry.opening);
                let why = "replaces communities of all kinds; in FRR those of other kinds stay"
                    .to_owned();
                reading.notes.push(Flaw { line: *line, text, why });
            }
        }
        reading.settle_communities(entry);
        // A map that goes on after it has denied is a permit to FRR; nobody writes it.
        if reading.continues && !entry.permits {
            let why = "deny with on-match has no equal".to_owned();
            reading.flaws.push(Flaw { line: entry.line, text: entry.opening.clone(), why });
        }
        reading
    }

    fn read(&mut self, line: usize, words: &[&str]) -> Result<(), String> {
        match words {
            ["description", ..] => Ok(()),
            ["on-match", "next"] => {
                self.continues = true;
                Ok(())
            }
            ["match", rest @ ..] => self.read_match(rest),
            ["set", "ip", "next-hop", address]
                if address.parse::<IpNet>().is_ok()
                    || address.parse::<std::net::Ipv4Addr>().is_ok() =>
            {
                self.set_next_hop(line, words, address, false)
            }
            ["set", "ipv6", "next-hop", "global", address] => {
                self.set_next_hop(line, words, address, true)
            }
            // We use the global address in any case.
            ["set", "ipv6", "next-hop", "prefer-global"] => Ok(()),
            ["set", rest @ ..] => self.read_set(rest),
            ["continue"] => {
                self.continues = true;
                Ok(())
            }
            ["continue", ..] | ["on-match", "goto", ..] => {
                Err("a rule goes on with the next one only (action: continue)".to_owned())
            }
            ["call", ..] => Err("a rule calls no other list; write its rules in place".to_owned()),
            _ => Err("has no equal in rules of a BGPPeer".to_owned()),
        }
    }

    fn read_match(&mut self, words: &[&str]) -> Result<(), String> {
        let ipv6 = self.how.ipv6;
        match words {
            ["ip", "address", "prefix-list", name] => self.match_prefixes(false, name),
            ["ipv6", "address", "prefix-list", name] => self.match_prefixes(true, name),
            ["as-path", name] => {
                self.lists.whole(name)?;
                let Some(list) = self.lists.as_paths(name) else { return self.match_nothing() };
                let all = permits_only(&list, "an AS path that must not match has no equal")?;
                let pattern = match all.as_slice() {
                    [one] => (*one).clone(),
                    several => {
                        let parts: Vec<String> =
                            several.iter().map(|it| format!("({it})")).collect();
                        parts.join("|")
                    }
                };
                self.narrow(|it| it.as_path = Some(pattern));
                Ok(())
            }
            ["community", name] => self.match_communities(CommunityKind::Plain, name),
            ["large-community", name] => self.match_communities(CommunityKind::Large, name),
            ["extcommunity", name] => self.match_communities(CommunityKind::Extended, name),
            ["ip", "next-hop", "prefix-list", name] if !ipv6 => {
                self.lists.whole(name)?;
                let Some(list) = self.lists.prefixes(false, name) else {
                    return self.match_nothing();
                };
                let all = permits_only(&list, "a next hop that must not match has no equal")?;
                let networks = all.iter().map(|it| it.host_network());
                let networks: Option<Vec<IpNet>> = networks.collect();
                let networks =
                    networks.ok_or("next hops are matched by networks: expected le 32")?;
                self.narrow(|it| it.next_hops = Some(networks));
                Ok(())
            }
            ["ip", "next-hop", "address", address] | ["ip", "next-hop", address] if !ipv6 => {
                let network: std::net::IpAddr = address
                    .parse()
                    .map_err(|_| "access lists are not translated; use a prefix list")?;
                self.narrow(|it| it.next_hops = Some(vec![network.into()]));
                Ok(())
            }
            ["ip", ..] if ipv6 => {
                self.matches = None;
                Ok(())
            }
            ["ipv6", ..] if !ipv6 => {
                self.matches = None;
                Ok(())
            }
            ["rpki", state @ ("valid" | "invalid" | "notfound")] => {
                let state = match *state {
                    "valid" => "valid",
                    "invalid" => "invalid",
                    _ => "notFound",
                };
                self.narrow(|it| it.origin_validation = Some(state));
                Ok(())
            }
            _ => Err("has no equal in match of a rule".to_owned()),
        }
    }

    fn match_prefixes(&mut self, ipv6: bool, name: &str) -> Result<(), String> {
        if ipv6 != self.how.ipv6 {
            self.matches = None;
            return Ok(());
        }
        self.lists.whole(name)?;
        let Some(list) = self.lists.prefixes(ipv6, name) else { return self.match_nothing() };
        let permits: Vec<Range> = list.iter().filter(|it| it.permits).map(|it| it.value).collect();
        // A deny that no permit overlaps changes nothing.
        let denies = list.iter().filter(|it| !it.permits);
        if pairs(permits.len(), list.len()) > PAIRS_MAX
            || denies.into_iter().any(|deny| permits.iter().any(|it| it.overlaps(deny.value)))
        {
            return Err(format!(
                "prefix-list {name} denies some of the prefixes that it permits; split it, and reject the others \
                 in a rule of their own"
            ));
        }
        if permits.is_empty() {
            self.matches = None;
        }
        self.narrow(|it| it.ranges = Some(permits));
        Ok(())
    }

    fn match_communities(&mut self, kind: CommunityKind, name: &str) -> Result<(), String> {
        self.lists.whole(name)?;
        let Some(list) = self.lists.communities(kind, name) else { return self.match_nothing() };
        let all = permits_only(&list, "a community that must be missing has no equal")?;
        if self.matched_kind.is_some_and(|it| it != kind) {
            return Err("a rule matches one of its communities; this entry needs one of each kind"
                .to_owned());
        }
        let single = all.iter().map(|entry| match entry.as_slice() {
            [one] => Ok(one.clone()),
            _ => Err(format!("an entry of community-list {name} needs all of its communities; a rule needs one of them")),
        });
        let single: Result<Vec<String>, String> = single.collect();
        let single = single?;
        // As in FRR, a later line of the same kind takes the place of the earlier one.
        self.matched_kind = Some(kind);
        self.narrow(|it| it.communities = Some(single));
        Ok(())
    }

    /// As FRR does where a list is not defined.
    #[expect(clippy::unnecessary_wraps, reason = "the end of what may fail")]
    fn match_nothing(&mut self) -> Result<(), String> {
        self.matches = None;
        Ok(())
    }

    fn narrow(&mut self, change: impl FnOnce(&mut Matches)) {
        if let Some(matches) = &mut self.matches {
            change(matches);
        }
    }

    fn set_next_hop(
        &mut self,
        line: usize,
        words: &[&str],
        address: &str,
        ipv6: bool,
    ) -> Result<(), String> {
        if !self.how.outbound {
            return Err("received routes keep their next hop".to_owned());
        }
        let address: std::net::IpAddr =
            address.parse().map_err(|_| format!("{address:?} is not an address"))?;
        let text = words.join(" ");
        self.next_hop = Some(Flaw { line, text, why: String::new() });
        let slot =
            if ipv6 { &mut self.settings.ipv6_next_hop } else { &mut self.settings.ipv4_next_hop };
        *slot = Some(address.to_string());
        Ok(())
    }

    fn read_set(&mut self, words: &[&str]) -> Result<(), String> {
        let set = &mut self.settings;
        match words {
            ["local-preference", value] => set.local_pref = Some(plain_number(value)?),
            ["metric", value] => set.med = Some(plain_number(value)?),
            ["community", "none"] => {
                self.set.insert(CommunityKind::Plain, (Vec::new(), false));
            }
            ["community", rest @ ..] => self.set_communities(CommunityKind::Plain, rest)?,
            ["large-community", "none"] => {
                return Err("all large communities cannot be removed at once".to_owned());
            }
            ["large-community", rest @ ..] => self.set_communities(CommunityKind::Large, rest)?,
            ["extcommunity", kind @ ("rt" | "soo"), rest @ ..] => {
                let words: Vec<&str> = rest.iter().flat_map(|it| [*kind, *it]).collect();
                let words = joined(&words);
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                self.set_communities(CommunityKind::Extended, &words)?;
            }
            ["comm-list", name, "delete"] => {
                self.lists.whole(name)?;
                let list = self.lists.communities(CommunityKind::Plain, name).unwrap_or_default();
                let all = permits_only(&list, "a list with deny has no equal")?;
                self.settings.remove.extend(all.into_iter().flatten().cloned());
            }
            ["as-path", "prepend", "last-as", count] if !self.how.outbound => {
                set.prepend = Some(number(count)?);
                if set.prepend > Some(PREPEND_MAX) {
                    return Err(TOO_OFTEN.to_owned());
                }
            }
            ["as-path", "prepend", path @ ..] => {
                let own = self.how.asn.map(|it| it.to_string());
                if own.is_none() || path.iter().any(|it| Some(*it) != own.as_deref()) {
                    return Err("only our own AS can be prepended to what is sent, and the neighbor's to what is received".to_owned());
                }
                if path.len() > PREPEND_MAX {
                    return Err(TOO_OFTEN.to_owned());
                }
                set.prepend = Some(path.len());
            }
            ["origin", "igp"] if self.how.outbound => {}
            _ => return Err("has no equal in set of a rule".to_owned()),
        }
        Ok(())
    }

    fn set_communities(&mut self, kind: CommunityKind, words: &[&str]) -> Result<(), String> {
        let (words, adds) = match words {
            [rest @ .., "additive"] => (rest, true),
            // FRR replaces the extended ones, which we add.
            rest => (rest, kind == CommunityKind::Extended),
        };
        let value = |word: &&str| {
            kind.word(word).ok_or_else(|| format!("{word:?} is no community that a rule can set"))
        };
        let values: Result<Vec<String>, String> = words.iter().map(value).collect();
        // As in FRR, a later line of the same kind takes the place of the earlier one.
        self.set.insert(kind, (values?, adds));
        Ok(())
    }

    /// A rule adds communities, or replaces those of all kinds.
    fn settle_communities(&mut self, entry: &MapEntry) {
        let replaces = self.set.values().any(|(_, adds)| !adds);
        let values = std::mem::take(&mut self.set).into_values().flat_map(|(values, _)| values);
        if !replaces {
            self.settings.add.extend(values);
            return;
        }
        self.settings.replace = Some(values.collect());
        if !self.settings.remove.is_empty() {
            let why = "a rule replaces communities or removes some, not both".to_owned();
            self.flaws.push(Flaw { line: entry.line, text: entry.opening.clone(), why });
        }
    }
}

/// Whether communities of one kind are replaced in FRR.
fn replaces_some(words: &[&str]) -> bool {
    let sets = matches!(words, ["set", "community" | "large-community", ..]);
    sets && words.last() != Some(&"additive")
}

const TOO_OFTEN: &str = "a rule prepends an AS 16 times at most";
/// As many comparisons of two lines are made: a second of work.
pub(super) const PAIRS_MAX: usize = 20_000_000;

/// How many comparisons two lists of this length need.
pub(super) fn pairs(one: usize, other: usize) -> usize {
    one.saturating_mul(other)
}

/// The values of a list that permits only.
fn permits_only<'l, T>(list: &[&'l Entry<T>], otherwise: &str) -> Result<Vec<&'l T>, String> {
    if list.is_empty() {
        return Err("the list permits nothing".to_owned());
    }
    let value = |it: &&'l Entry<T>| it.permits.then_some(&it.value);
    let all: Option<Vec<&T>> = list.iter().map(value).collect();
    all.ok_or_else(|| otherwise.to_owned())
}

fn plain_number(word: &str) -> Result<u32, String> {
    if word.starts_with(['+', '-']) {
        return Err("a rule sets a value, and does not add to it".to_owned());
    }
    number(word)
}
