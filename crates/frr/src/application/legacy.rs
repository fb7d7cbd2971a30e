//! Which lines are of a Fairway from before names had an owner?
//!
//! Its names begin with `FW-`, as those of others may. A line is ours if that version would render exactly it: an
//! object with all its lines, a neighbour with all of its, a router if nothing in it is anybody else's. Called by
//! [`super::Application`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::configuration::{Configuration, Statement};
use crate::daemon::Daemon;
use crate::difference::{Place, is_router, neighbor};
use crate::owner::LEGACY_MARK;

/// What belongs together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Whole {
    /// A route map, prefix list or BFD profile.
    Object(String),
    Neighbor(Arc<str>, String),
    /// A line of a router that stands for itself.
    Line(Place),
}

fn place(it: &Statement) -> Place {
    (it.context.clone(), it.line.clone())
}

/// The object that a line is a part of, if its name has the old mark.
fn whole(it: &Statement) -> Option<Whole> {
    if let Some((router, name)) = neighbor(&it.context, &it.line) {
        return Some(Whole::Neighbor(router, name));
    }
    let has_mark = |line: &str| line.split(' ').any(|word| word.starts_with(LEGACY_MARK));
    if it.context.first().is_some_and(|router| is_router(router)) {
        return has_mark(&it.line).then(|| Whole::Line(place(it)));
    }
    let lines = it.context.iter().chain([&it.line]);
    let opener = lines.into_iter().find(|line| has_mark(line))?;
    let kind = opener.split(' ').next().unwrap_or_default();
    let name = opener.split(' ').find(|word| word.starts_with(LEGACY_MARK))?;
    Some(Whole::Object(format!("{kind} {name}")))
}

fn wholes(configuration: &Configuration) -> BTreeMap<Whole, BTreeSet<Place>> {
    let mut wholes: BTreeMap<Whole, BTreeSet<Place>> = BTreeMap::new();
    for it in &configuration.statements {
        if let Some(whole) = whole(it) {
            wholes.entry(whole).or_default().insert(place(it));
        }
    }
    wholes
}

/// Whether a configuration has names of that version, or of others who use them.
pub(super) fn is_in(configuration: &Configuration) -> bool {
    configuration.statements.iter().filter_map(whole).any(|it| matches!(it, Whole::Object(_)))
}

/// The lines of a daemon that are ours, given what that version would render.
///
/// An FRR that has loaded its saved configuration has route maps in all daemons, which take the lines that they know.
pub(super) fn lines(
    daemon: Daemon,
    running: &Configuration,
    rendered: &Configuration,
) -> BTreeSet<Place> {
    let would_be = wholes(rendered);
    let there = wholes(running).into_iter();
    let exact = there.filter(|(whole, places)| {
        would_be.get(whole).is_some_and(|would_be| match daemon {
            Daemon::Bgpd | Daemon::Bfdd => places == would_be,
            Daemon::Mgmtd | Daemon::Zebra | Daemon::Staticd => places.is_subset(would_be),
        })
    });
    let mut ours: BTreeSet<Place> = exact.flat_map(|(_, places)| places).collect();
    // Of neighbours, only those that have a map of that version.
    let has_map = |(context, line): &Place| {
        neighbor(context, line).filter(|_| line.contains(&format!(" route-map {LEGACY_MARK}")))
    };
    let neighbors: BTreeSet<_> = ours.iter().filter_map(has_map).collect();
    ours.retain(|(context, line)| neighbor(context, line).is_none_or(|it| neighbors.contains(&it)));
    for router in rendered.statements.iter().filter(|it| is_router(&it.line)) {
        let in_it = |it: &&Statement| it.context.first() == Some(&router.line);
        let would_be: BTreeSet<Place> =
            rendered.statements.iter().filter(in_it).map(place).collect();
        let there: BTreeSet<Place> = running.statements.iter().filter(in_it).map(place).collect();
        let is_ours = |it: &Place| would_be.contains(it) || is_as_rendered(it, &there);
        if !there.is_empty() && there.iter().all(is_ours) {
            ours.extend(there);
            ours.insert(place(router));
        }
    }
    ours
}

/// Whether that version rendered such lines: of a prefix or a neighbour that it had and that is gone since.
fn is_as_rendered((context, line): &Place, of_router: &BTreeSet<Place>) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    if let ["network", _, "route-map", map] = words.as_slice() {
        let tag = map.strip_prefix("FW-set-");
        return tag.is_some_and(|it| it.parse::<u32>().is_ok());
    }
    let Some((_, name)) = neighbor(context, line) else { return false };
    let in_map = format!("neighbor {name} route-map {LEGACY_MARK}in-{name} in");
    of_router.iter().any(|(_, it)| **it == *in_map)
}

/// Names of objects with the old mark that are not ours: they stay.
pub(super) fn others(running: &Configuration, ours: &BTreeSet<Place>) -> BTreeSet<String> {
    let there = running.statements.iter().filter(|it| !ours.contains(&place(it)));
    there
        .filter_map(whole)
        .filter_map(|it| match it {
            Whole::Object(name) => Some(name),
            Whole::Neighbor(..) | Whole::Line(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "\
route-map FW-kernel deny 10
route-map FW-set-77 permit 10
 set tag 77
route-map FW-in-10.0.0.1 deny 65535
route-map FW-out-10.0.0.1 permit 5
 match tag 77
router bgp 65000
 bgp router-id 10.0.0.9
 no bgp ebgp-requires-policy
 neighbor 10.0.0.1 remote-as 65001
 address-family ipv4 unicast
  network 192.0.2.1/32 route-map FW-set-77
  neighbor 10.0.0.1 activate
  neighbor 10.0.0.1 route-map FW-in-10.0.0.1 in
  table-map FW-kernel
";

    fn shown(running: &str) -> (Vec<String>, BTreeSet<String>) {
        let running = Configuration::parse(running);
        let ours = lines(Daemon::Bgpd, &running, &Configuration::parse(OURS));
        let kept = running.statements.iter().filter(|it| !ours.contains(&place(it)));
        (kept.map(|it| format!("{it:?}")).collect(), others(&running, &ours))
    }

    #[test]
    fn what_that_version_rendered_is_ours() {
        assert_eq!(shown(OURS), (Vec::new(), BTreeSet::new()));
        // A prefix that went since.
        let more =
            OURS.replace("  table-map", "  network 192.0.2.9/32 route-map FW-set-78\n  table-map");
        assert_eq!(shown(&more).0, Vec::<String>::new());
    }

    #[test]
    fn names_that_look_like_ours_stay() {
        let theirs = "route-map FW-edge-in permit 10\n match ip address prefix-list FW-firewall\n";
        let (kept, others) = shown(&format!("{OURS}{theirs}"));
        assert_eq!(kept.len(), 2, "{kept:?}");
        assert_eq!(others, BTreeSet::from(["route-map FW-edge-in".to_owned()]));
        // The same name with other lines.
        let edited = OURS.replace(" set tag 77\n", " set tag 78\n");
        let (kept, others) = shown(&edited);
        assert!(kept.iter().all(|it| it.contains("FW-set-77")), "{kept:?}");
        assert_eq!(others, BTreeSet::from(["route-map FW-set-77".to_owned()]));
    }

    #[test]
    fn a_router_with_lines_of_others_stays_with_its_settings() {
        let shared =
            OURS.replace(" address-family", " neighbor 10.0.0.7 remote-as 7\n address-family");
        let (kept, _) = shown(&shared);
        let theirs = [
            "router bgp 65000",
            "router bgp 65000 / bgp router-id 10.0.0.9",
            "router bgp 65000 / no bgp ebgp-requires-policy",
            "router bgp 65000 / neighbor 10.0.0.7 remote-as 7",
            "router bgp 65000 / address-family ipv4 unicast",
        ];
        assert_eq!(kept, theirs);
    }
}
