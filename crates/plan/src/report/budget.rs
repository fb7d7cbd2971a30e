//! Does an edit disrupt more than its author permits? Counts what [`Edit`] has found.
//!
//! Called by `fairway plan --fail-on` and by the webhook of a controller, which plans one node after the other.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::str::FromStr;

use super::edit::{Edit, ServiceEdit};
use super::sessions::Fate;

/// What an edit may do to traffic that flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Disruption {
    /// A route that a node no longer announces to a peer, or an address that no node answers for on layer 2 any more.
    Withdrawal,
    /// A session that is reset.
    Reset,
    /// A Service that loses an address, with or without getting another one, or an address on layer 2 that another node
    /// answers for.
    Move,
}

/// How much an edit may disrupt, as in `withdraw,reset,5`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisruptionBudget {
    /// Only these count.
    counted: BTreeSet<Disruption>,
    /// So many of them, in total, are permitted.
    permitted: usize,
}

const ALLOWED: &str = "one or more of withdraw, reset and move, separated by commas; behind them, if not 0, how many \
                       are permitted in total, such as withdraw,reset,5";

impl FromStr for DisruptionBudget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (mut counted, mut permitted) = (BTreeSet::new(), None);
        for word in text.split(',').map(str::trim) {
            if permitted.is_some() {
                return Err(format!("{word:?} follows the number; allowed: {ALLOWED}"));
            }
            match word {
                "withdraw" => _ = counted.insert(Disruption::Withdrawal),
                "reset" => _ = counted.insert(Disruption::Reset),
                "move" => _ = counted.insert(Disruption::Move),
                number if number.starts_with(|first: char| first.is_ascii_digit()) => {
                    let fault = |_| format!("{number:?} is no number; allowed: {ALLOWED}");
                    permitted = Some(number.parse().map_err(fault)?);
                }
                _ => return Err(format!("{word:?} is unknown; allowed: {ALLOWED}")),
            }
        }
        if counted.is_empty() {
            return Err(format!("nothing is counted; allowed: {ALLOWED}"));
        }
        Ok(Self { counted, permitted: permitted.unwrap_or(0) })
    }
}

impl DisruptionBudget {
    /// What an edit disrupts, if that is more than is permitted.
    pub fn excess(&self, disruptions: &Disruptions) -> Option<String> {
        self.excess_of(|kind| disruptions.count(kind))
    }

    /// The same when some nodes have not been added: what counts whatever these do.
    pub fn certain_excess(&self, disruptions: &Disruptions) -> Option<String> {
        self.excess_of(|kind| disruptions.certain(kind))
    }

    fn excess_of(&self, count: impl Fn(Disruption) -> usize) -> Option<String> {
        let counts = self.counted.iter().map(|kind| (*kind, count(*kind)));
        let counts: Vec<(Disruption, usize)> = counts.filter(|(_, count)| *count > 0).collect();
        let total = counts.iter().fold(0, |sum: usize, (_, count)| sum.saturating_add(*count));
        if total <= self.permitted {
            return None;
        }
        let part = |(kind, count): &(Disruption, usize)| {
            let one = match kind {
                Disruption::Withdrawal => "withdrawal",
                Disruption::Reset => "session reset",
                Disruption::Move => "moved address",
            };
            let many = match (kind, count) {
                (_, 1) => "",
                (Disruption::Withdrawal | Disruption::Reset, _) => "s",
                (Disruption::Move, _) => "es",
            };
            format!("{count} {one}{many}")
        };
        let parts: Vec<String> = counts.iter().map(part).collect();
        Some(format!("{}; permitted: {}", parts.join(", "), self.permitted))
    }
}

/// What one edit disrupts, on any number of nodes.
#[derive(Debug, Clone, Default)]
pub struct Disruptions {
    /// Routes that a node no longer announces to a peer.
    withdrawn: usize,
    reset: usize,
    /// Addresses that Services lose or exchange for others.
    lost: usize,
    /// Addresses on layer 2 that some node stops answering for, once for each.
    unanswered: Vec<IpAddr>,
    /// Addresses on layer 2 that some node answered for, and those that some node answers for now, as far as they are
    /// concerned.
    answered_before: BTreeSet<IpAddr>,
    answered: BTreeSet<IpAddr>,
}

impl Disruptions {
    /// Adds what `edit` disrupts: another part of the same edit, such as that of another node.
    pub fn add(&mut self, edit: &Edit<'_>) {
        let withdrawn = edit.routes.iter().filter(|it| it.after.is_none()).count();
        self.withdrawn = self.withdrawn.saturating_add(withdrawn);
        let reset = edit.sessions.iter().filter(|it| it.fate == Fate::Reset).count();
        self.reset = self.reset.saturating_add(reset);
        let lost = edit.services.iter().map(ServiceEdit::lost_count);
        self.lost = lost.fold(self.lost, usize::saturating_add);
        for it in &edit.layer2 {
            self.answered_before.extend(it.before.map(|it| it.address));
            self.answered.extend(it.after.map(|it| it.address));
            if it.after.is_none() {
                self.unanswered.extend(it.before.map(|it| it.address));
            }
        }
    }

    fn count(&self, kind: Disruption) -> usize {
        let on_layer2 = match kind {
            Disruption::Withdrawal => self.answered_before.difference(&self.answered).count(),
            Disruption::Reset => 0,
            Disruption::Move => {
                self.unanswered.iter().filter(|it| self.answered.contains(it)).count()
            }
        };
        self.certain(kind).saturating_add(on_layer2)
    }

    /// Without layer 2, where another node may answer.
    fn certain(&self, kind: Disruption) -> usize {
        match kind {
            Disruption::Withdrawal => self.withdrawn,
            Disruption::Reset => self.reset,
            Disruption::Move => self.lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use fairway_allocator::Outcome;
    use fairway_model::ObjectName;
    use fairway_seam::RouteAttributes;

    use super::super::edit::{Layer2Edit, RouteEdit};
    use super::super::sessions::SessionEdit;
    use super::*;
    use crate::Layer2Announcement;

    #[test]
    fn a_budget_is_words_and_then_a_number() {
        let budget = |text: &str| text.parse::<DisruptionBudget>();
        let both = BTreeSet::from([Disruption::Withdrawal, Disruption::Move]);
        assert_eq!(
            budget("withdraw,move"),
            Ok(DisruptionBudget { counted: both.clone(), permitted: 0 })
        );
        assert_eq!(
            budget("move, withdraw,12"),
            Ok(DisruptionBudget { counted: both, permitted: 12 })
        );
        for (text, error) in [
            ("", "\"\" is unknown"),
            ("5", "nothing is counted"),
            ("withdraw,,5", "\"\" is unknown"),
            ("withdraw,5x", "\"5x\" is no number"),
            ("withdraw,5,reset", "\"reset\" follows the number"),
            ("withdrawal", "\"withdrawal\" is unknown"),
            ("reset,-1", "\"-1\" is unknown"),
            ("reset,99999999999999999999", "\"99999999999999999999\" is no number"),
        ] {
            let said = budget(text).unwrap_err();
            assert!(said.starts_with(error), "{text}: {said}");
            assert!(said.ends_with("such as withdraw,reset,5"), "{said}");
        }
    }

    fn route(node: &'static str, is_withdrawn: bool) -> RouteEdit<'static> {
        static ATTRIBUTES: LazyLock<RouteAttributes> = LazyLock::new(RouteAttributes::default);
        RouteEdit {
            node,
            peer: "tor".to_owned(),
            prefix: "192.0.2.1/32".parse().unwrap(),
            before: Some(&ATTRIBUTES),
            after: (!is_withdrawn).then_some(&*ATTRIBUTES),
            services: BTreeSet::new(),
        }
    }

    fn session(fate: Fate) -> SessionEdit<'static> {
        SessionEdit {
            node: "a",
            peer: "tor".to_owned(),
            remote: "192.0.2.250".to_owned(),
            fate,
            fields: Vec::new(),
            loses_routes: false,
            effect: "",
        }
    }

    /// The excess with these words, or nothing.
    fn excess(budget: &str, edits: &[Edit<'_>]) -> String {
        let mut disruptions = Disruptions::default();
        edits.iter().for_each(|edit| disruptions.add(edit));
        let budget: DisruptionBudget = budget.parse().unwrap();
        budget.excess(&disruptions).unwrap_or_default()
    }

    #[test]
    fn what_counts_is_counted_on_all_nodes_together() {
        let of = |node, is_withdrawn: &[bool], fates: &[Fate]| Edit {
            routes: is_withdrawn.iter().map(|it| route(node, *it)).collect(),
            sessions: fates.iter().map(|it| session(*it)).collect(),
            ..Edit::default()
        };
        let edits = [
            of("a", &[true, true, false], &[Fate::Reset, Fate::Removed]),
            of("b", &[true], &[Fate::Reset, Fate::Kept, Fate::Added]),
        ];
        for (budget, expected) in [
            ("withdraw", "3 withdrawals; permitted: 0"),
            ("withdraw,2", "3 withdrawals; permitted: 2"),
            ("withdraw,3", ""),
            ("reset", "2 session resets; permitted: 0"),
            ("reset,2", ""),
            ("move", ""),
            ("withdraw,reset,move,4", "3 withdrawals, 2 session resets; permitted: 4"),
            ("withdraw,reset,move,5", ""),
        ] {
            assert_eq!(excess(budget, &edits), expected, "{budget}");
        }
    }

    #[test]
    fn an_address_that_another_node_answers_for_has_moved() {
        let name = ObjectName::new("default", "web");
        let answers = |address: &str| Layer2Announcement {
            address: address.parse().unwrap(),
            interfaces: None,
            bind: false,
            services: BTreeSet::new(),
        };
        let (one, two) = (answers("192.0.2.1"), answers("192.0.2.2"));
        let gone = |it| Layer2Edit { node: "a", before: Some(it), after: None };
        let new = |it| Layer2Edit { node: "b", before: None, after: Some(it) };
        let edits = [
            Edit { layer2: vec![gone(&one), gone(&two)], ..Edit::default() },
            Edit { layer2: vec![new(&one)], ..Edit::default() },
        ];
        assert_eq!(excess("withdraw,move", &edits), "1 withdrawal, 1 moved address; permitted: 0");
        let outcome = |addresses: &[&str]| Outcome {
            addresses: addresses.iter().map(|it| it.parse().unwrap()).collect(),
            pool: None,
            reason: None,
        };
        let (before, after) = (outcome(&["192.0.2.1", "2001:db8::1"]), outcome(&["192.0.2.9"]));
        let service = |before, after| ServiceEdit { name: &name, before, after };
        let services = vec![service(Some(&before), Some(&after)), service(Some(&before), None)];
        let edits = [Edit { services, ..Edit::default() }, Edit::default()];
        assert_eq!(excess("move", &edits), "2 moved addresses; permitted: 0");
    }
}
