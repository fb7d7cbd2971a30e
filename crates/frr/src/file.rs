//! What is left of a configuration file of FRR without the lines of an owner?
//!
//! `write memory` saves our lines with those of the operator, and the record of what they replaced. All other lines stay
//! as they are written, comments and indentation included. Knows no file system. Called by `io::forget`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::configuration::{Configuration, Layout, Statement};
use crate::daemon::Daemon;
use crate::difference::{Ours, Place};
use crate::owner::Owner;
use crate::record::Record;

/// The record in a text that has the configuration of bgpd.
pub(crate) fn record_in(text: &str, owner: Owner) -> Record {
    Record::read(&Configuration::parse(text), &owner.mark())
}

/// The text for some daemons without the lines of `owner`; what they replaced is there again.
pub(crate) fn without_owner(
    text: &str,
    owner: Owner,
    record: &Record,
    daemons: &[Daemon],
) -> String {
    let Layout { configuration, numbers, exits } = Layout::parse(text);
    let told: BTreeSet<Place> = daemons.iter().flat_map(|it| record.places(*it)).collect();
    let replaced: BTreeMap<Place, Arc<str>> =
        daemons.iter().flat_map(|it| record.replaced(*it)).collect();
    let mark = owner.mark();
    let ours = Ours::find(&configuration, &[], &mark, &told);
    // A router or a family of ours in which somebody else has a line stays.
    let mut kept: BTreeSet<Place> = BTreeSet::new();
    for it in configuration.statements.iter().filter(|it| !ours.has(it)) {
        for (depth, opener) in it.context.iter().enumerate() {
            let outer = it.context.get(..depth).unwrap_or_default();
            kept.insert((outer.into(), opener.clone()));
        }
    }
    let place = |it: &Statement| (it.context.clone(), it.line.clone());
    let mut edits: BTreeMap<usize, Option<&Arc<str>>> = BTreeMap::new();
    for (it, number) in configuration.statements.iter().zip(&numbers) {
        let goes = ours.has(it) && !kept.contains(&place(it));
        if let Some(number) = number.filter(|_| goes) {
            edits.insert(number, replaced.get(&place(it)));
        }
    }
    for (exit, opener) in exits {
        if edits.get(&opener).is_some_and(Option::is_none) {
            edits.insert(exit, None);
        }
    }
    let mut left = String::with_capacity(text.len());
    let mut is_behind_ours = false;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        // Their separator goes along.
        if is_behind_ours && line.trim() == "!" {
            continue;
        }
        is_behind_ours = edits.get(&number).is_some_and(Option::is_none);
        match edits.get(&number) {
            None => left.push_str(line),
            Some(None) => {}
            Some(Some(before)) => {
                let indent = line.len().saturating_sub(line.trim_start().len());
                left.push_str(line.get(..indent).unwrap_or_default());
                left.push_str(before);
                left.push('\n');
            }
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: &str = "0000002a";

    fn stripped(text: &str) -> String {
        let owner: Owner = OWNER.parse().expect("an owner");
        without_owner(text, owner, &record_in(text, owner), &Daemon::ALL)
    }

    /// An operator's file in which ours were saved.
    const BESIDE: &str = "\
! written by hand
frr version 8.4.4
!
route-map THEIRS permit 10
exit
!
route-map fairway-0000002a-in-10.77.0.2 deny 65535
exit
!
route-map fairway-0000002b-kernel deny 10
exit
!
router bgp 65001
 ! transit
 neighbor 10.77.0.66 remote-as 65066
 !
 address-family ipv4 unicast
  network 192.0.2.0/24
 exit-address-family
exit
!
router bgp 65001 view fairway
 neighbor 10.77.0.2 remote-as 65002
 !
 address-family ipv4 unicast
  network 198.18.0.1/32
  neighbor 10.77.0.2 route-map fairway-0000002a-in-10.77.0.2 in
 exit-address-family
exit
!
end
";

    #[test]
    fn lines_of_an_owner_go_and_all_others_stay_as_they_are_written() {
        let left = stripped(BESIDE);
        let expected: String = BESIDE
            .split_inclusive("exit\n!\n")
            .filter(|it| !it.contains("0000002a") && !it.contains("view fairway"))
            .collect();
        assert_eq!(left, expected);
        assert_eq!(stripped(&left), left);
    }

    #[test]
    fn a_recorded_line_is_what_it_was() {
        let text = "\
router bgp 65001
 bgp router-id 10.77.0.1
 neighbor 10.77.0.66 remote-as 65066
exit
ip nht resolve-via-default
route-map fairway-0000002a-record permit 1
 description bgpd: router bgp 65001 / bgp router-id 10.77.0.1 was bgp router-id 192.0.2.250
exit
route-map fairway-0000002a-record permit 2
 description zebra: ip nht resolve-via-default
exit
";
        let expected = "\
router bgp 65001
 bgp router-id 192.0.2.250
 neighbor 10.77.0.66 remote-as 65066
exit
";
        assert_eq!(stripped(text), expected);
    }

    #[test]
    fn a_router_of_ours_goes_unless_somebody_else_uses_it() {
        let ours = "\
route-map fairway-0000002a-in-10.77.0.2 deny 65535
exit
route-map fairway-0000002a-record permit 1
 description bgpd: router bgp 65001
exit
router bgp 65001
 no bgp ebgp-requires-policy
 neighbor 10.77.0.2 remote-as 65002
 address-family ipv4 unicast
  neighbor 10.77.0.2 route-map fairway-0000002a-in-10.77.0.2 in
 exit-address-family
exit
";
        assert_eq!(stripped(ours), "");
        let shared = ours.replace("  neighbor", "  neighbor 10.77.0.66 activate\n  neighbor");
        let shared = shared.replace(" no bgp", " neighbor 10.77.0.66 remote-as 65066\n no bgp");
        let left = stripped(&shared);
        assert!(left.contains("router bgp 65001\n neighbor 10.77.0.66 remote-as"), "{left}");
        assert!(
            left.contains("  neighbor 10.77.0.66 activate\n exit-address-family\nexit"),
            "{left}"
        );
        assert!(!left.contains("10.77.0.2 ") && !left.contains("fairway"), "{left}");
    }
}
