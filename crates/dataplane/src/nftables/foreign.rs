//! Chains of another program: which of them can go, given what else jumps to them.
//!
//! Knows chains and jumps, and no expression beside them. What `iptables-nft` made is read and removed as well.

use std::collections::{BTreeMap, BTreeSet};

use netlink_packet_core::NLM_F_DUMP;

use super::{
    CHAIN_NAME, DATA_VERDICT, DEL_CHAIN, DEL_RULE, Family, GET_CHAIN, LIST_ELEMENT, RULE_CHAIN,
    TABLE_NAME, Transaction, VERDICT_CHAIN, head, text,
};
use crate::message::attributes;

/// The hook of a chain that the kernel calls itself.
const CHAIN_HOOK: u16 = 4;
const RULE_HANDLE: u16 = 3;
const RULE_EXPRESSIONS: u16 = 4;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const IMMEDIATE_DATA: u16 = 2;

/// A chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Its table.
    pub table: String,
    /// Its name.
    pub name: String,
    /// The kernel calls it, so it is not somebody's who would miss a jump.
    pub is_base: bool,
}

/// A rule, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule<Id> {
    /// Its chain.
    pub chain: String,
    /// How it is named when it is removed.
    pub id: Id,
    /// The chain that it jumps to.
    pub target: Option<String>,
}

/// What can go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal<Id> {
    /// Rules of chains that stay, which jump to those that go.
    pub rules: Vec<Rule<Id>>,
    /// Chains, with their rules.
    pub chains: BTreeSet<String>,
}

/// What of the chains that `is_theirs` can go: a chain of somebody else that jumps to one keeps it, and what that one jumps
/// to. `chains` has all of one table, and whether the kernel calls them.
pub fn removal<Id: Clone>(
    chains: &BTreeMap<String, bool>,
    rules: &[Rule<Id>],
    is_theirs: impl Fn(&str) -> bool,
) -> Removal<Id> {
    let is_theirs = |name: &str| is_theirs(name) && chains.contains_key(name);
    let mut kept: BTreeSet<&str> = BTreeSet::new();
    loop {
        let keeps = rules.iter().filter_map(|rule| {
            let target = rule.target.as_deref()?;
            let is_base = chains.get(&rule.chain).copied().unwrap_or(false);
            let stays = match is_theirs(&rule.chain) {
                true => kept.contains(&*rule.chain),
                false => !is_base,
            };
            (is_theirs(target) && !kept.contains(target) && stays).then_some(target)
        });
        let new: BTreeSet<&str> = keeps.collect();
        if new.is_empty() {
            break;
        }
        kept.extend(new);
    }
    let goes = |name: &str| is_theirs(name) && !kept.contains(name);
    let jumps = |it: &&Rule<Id>| !is_theirs(&it.chain) && it.target.as_deref().is_some_and(goes);
    Removal {
        rules: rules.iter().filter(jumps).cloned().collect(),
        chains: chains.keys().filter(|it| goes(it)).cloned().collect(),
    }
}

/// Asks for all chains of a family.
pub(crate) fn list_chains(family: Family, sequence: u32) -> Vec<u8> {
    head(GET_CHAIN, NLM_F_DUMP, family, sequence).finish()
}

fn string(value: &[u8]) -> Option<String> {
    let text = value.split(|it| *it == 0).next()?;
    String::from_utf8(text.to_vec()).ok()
}

/// A chain of a list.
pub(crate) fn listed_chain(payload: &[u8]) -> Option<Chain> {
    let all = payload.get(4..)?;
    let find = |kind: u16| attributes(all).find(|(it, _)| *it == kind).map(|(_, value)| value);
    Some(Chain {
        table: string(find(TABLE_NAME)?)?,
        name: string(find(CHAIN_NAME)?)?,
        is_base: find(CHAIN_HOOK).is_some(),
    })
}

/// A rule of a list of this table.
pub(crate) fn listed_rule(payload: &[u8], table: &str) -> Option<Rule<[u8; 8]>> {
    let all = payload.get(4..)?;
    let find = |kind: u16| attributes(all).find(|(it, _)| *it == kind).map(|(_, value)| value);
    if find(TABLE_NAME)? != text(table) {
        return None;
    }
    Some(Rule {
        chain: string(find(RULE_CHAIN)?)?,
        id: find(RULE_HANDLE)?.try_into().ok()?,
        target: find(RULE_EXPRESSIONS).and_then(jump),
    })
}

/// The chain that the last expression jumps to.
fn jump(expressions: &[u8]) -> Option<String> {
    let within = |of: &[u8], kind: u16| -> Option<Vec<u8>> {
        attributes(of).find(|(it, _)| *it == kind).map(|(_, value)| value.to_vec())
    };
    let elements = attributes(expressions).filter(|(kind, _)| *kind == LIST_ELEMENT);
    let jumps = elements.filter_map(|(_, expression)| {
        if within(expression, EXPRESSION_NAME)? != text("immediate") {
            return None;
        }
        let data = within(expression, EXPRESSION_DATA)?;
        let verdict = within(&within(&data, IMMEDIATE_DATA)?, DATA_VERDICT)?;
        string(&within(&verdict, VERDICT_CHAIN)?)
    });
    jumps.last()
}

/// The transaction that carries a removal from a table out.
pub fn remove_chains(family: Family, table: &str, removal: &Removal<[u8; 8]>) -> Transaction {
    let mut transaction = Transaction::default();
    for Rule { chain, id, .. } in &removal.rules {
        let (table, chain, id) = (text(table), text(chain), *id);
        transaction.add(DEL_RULE, 0, family, move |it| {
            it.attribute(TABLE_NAME, &table)
                .attribute(RULE_CHAIN, &chain)
                .attribute(RULE_HANDLE, &id);
        });
    }
    // Their rules first, which refer to each other.
    for chain in &removal.chains {
        let (table, chain) = (text(table), text(chain));
        transaction.add(DEL_RULE, 0, family, move |it| {
            it.attribute(TABLE_NAME, &table).attribute(RULE_CHAIN, &chain);
        });
    }
    for chain in &removal.chains {
        let (table, chain) = (text(table), text(chain));
        transaction.add(DEL_CHAIN, 0, family, move |it| {
            it.attribute(TABLE_NAME, &table).attribute(CHAIN_NAME, &chain);
        });
    }
    transaction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_that_others_need_stay_with_what_they_need() {
        let chains = [
            ("PREROUTING", true),
            ("THEIRS-A", false),
            ("THEIRS-B", false),
            ("THEIRS-MARK", false),
            ("OTHER", false),
        ];
        let chains = chains.into_iter().map(|(name, it)| (name.to_owned(), it)).collect();
        let rule = |chain: &str, id: u8, target: &str| Rule {
            chain: chain.to_owned(),
            id,
            target: (!target.is_empty()).then(|| target.to_owned()),
        };
        let rules = [
            rule("PREROUTING", 1, "THEIRS-A"),
            rule("PREROUTING", 2, "OTHER"),
            rule("THEIRS-A", 3, "THEIRS-B"),
            rule("THEIRS-A", 4, "THEIRS-MARK"),
            rule("OTHER", 5, "THEIRS-MARK"),
            rule("THEIRS-MARK", 6, ""),
        ];
        let is_theirs = |name: &str| name.starts_with("THEIRS-");
        let removal = removal(&chains, &rules, is_theirs);
        assert_eq!(removal.rules, [rule("PREROUTING", 1, "THEIRS-A")]);
        assert_eq!(removal.chains.into_iter().collect::<Vec<_>>(), ["THEIRS-A", "THEIRS-B"]);
    }
}
