//! Changes in sequence, on a model of FRR: it ends up with the wanted configuration, and sessions that the
//! change does not concern are undisturbed.

use super::*;
use crate::model::{Model, lines, without_origins};

/// Two routers and three routes.
const BEFORE: &str = "\
route-map fairway-00000000-kernel deny 10
exit
route-map fairway-00000000-set-77 permit 10
 set tag 77
exit
! BGPPeer a
route-map fairway-00000000-in-10.0.0.1 deny 65535
exit
route-map fairway-00000000-out-10.0.0.1 permit 5
 match tag 77
 set community 65000:1
exit
route-map fairway-00000000-out-10.0.0.1 deny 65535
exit
! BGPPeer b
route-map fairway-00000000-in-10.0.0.2 deny 65535
exit
! BFD
bfd
 ! BFDProfile fast
 profile fairway-00000000-fast
  transmit-interval 100
  passive-mode
 exit
exit
! router 65000
router bgp 65000
 bgp router-id 10.0.0.9
 no bgp ebgp-requires-policy
 no bgp network import-check
 ! BGPPeer a
 neighbor 10.0.0.1 remote-as 65001
 neighbor 10.0.0.1 bfd
 neighbor 10.0.0.1 bfd profile fairway-00000000-fast
 neighbor 10.0.0.1 password secret
 neighbor 10.0.0.1 timers 30 90
 neighbor 10.0.0.1 timers connect 5
 ! BGPPeer b
 neighbor 10.0.0.2 remote-as 65002
 address-family ipv4 unicast
  network 192.0.2.1/32 route-map fairway-00000000-set-77
  network 192.0.2.2/32 route-map fairway-00000000-set-77
  ! BGPPeer a
  neighbor 10.0.0.1 activate
  neighbor 10.0.0.1 route-map fairway-00000000-in-10.0.0.1 in
  neighbor 10.0.0.1 route-map fairway-00000000-out-10.0.0.1 out
  ! BGPPeer b
  neighbor 10.0.0.2 activate
  neighbor 10.0.0.2 route-map fairway-00000000-in-10.0.0.2 in
  table-map fairway-00000000-kernel
 exit-address-family
exit
";

struct Story {
    frr: Model,
    told: BTreeSet<Place>,
    /// Lines that were sent.
    asked: BTreeSet<Place>,
    batch: Batch,
}

impl Story {
    fn beginning_with(text: &str) -> Self {
        let frr = Model::with(text);
        // What the record says.
        let routers = frr.running.statements.iter().filter(|it| is_router(&it.line));
        let told = routers.map(|it| (it.context.clone(), it.line.clone())).collect();
        Self { frr, told, asked: BTreeSet::new(), batch: Batch::default() }
    }

    fn apply(&mut self, wanted: &str, keep: bool) {
        let wanted = Configuration::parse(wanted);
        let wanted: Vec<&Statement> = wanted.statements.iter().collect();
        self.batch = self.difference(&wanted, keep);
        self.frr.take(&self.batch);
        let added = self.batch.additions.iter().filter(|it| it.purpose == Purpose::Add);
        self.asked.extend(added.map(Step::place));
        self.told.extend(self.asked.iter().cloned());
        let again = self.difference(&wanted, keep);
        assert!(again.is_empty(), "the change is incomplete: {again:?}");
    }

    fn difference(&self, wanted: &[&Statement], keep: bool) -> Batch {
        let (running, told, hidden) = (&self.frr.running, &self.told, &NOTHING_HIDDEN);
        let mark = "fairway-00000000-";
        let (replaced, keep_all_but) = (&BTreeMap::new(), keep.then_some(&self.asked));
        difference(&Sides { running, wanted, mark, told, replaced, hidden, keep_all_but })
    }

    fn said(&self) -> Vec<&str> {
        self.batch.additions.iter().chain(&self.batch.removals).map(|it| &*it.line).collect()
    }
}

static NOTHING_HIDDEN: BTreeMap<Place, Option<Arc<str>>> = BTreeMap::new();

/// Changes one configuration into the other, and checks that the result is exactly the other.
fn change(before: &str, after: &str) -> Story {
    let mut story = Story::beginning_with(before);
    story.apply(after, false);
    assert_eq!(story.frr.lines(), lines(&without_origins(&Configuration::parse(after))));
    story
}

#[test]
fn nothing_is_said_when_all_is_as_wanted() {
    assert!(change(BEFORE, BEFORE).said().is_empty());
}

#[test]
fn all_is_said_to_a_frr_that_knows_nothing_and_its_profile_is_there_before_the_neighbour() {
    let story = change("", BEFORE);
    let said = story.said();
    let place = |line: &str| said.iter().position(|it| *it == line).unwrap();
    assert!(place("profile fairway-00000000-fast") < place("router bgp 65000"));
    assert!(place("set tag 77") < place("network 192.0.2.1/32 route-map fairway-00000000-set-77"));
    assert!(story.batch.refreshes.is_empty());
}

#[test]
fn a_changed_community_is_a_new_tag_and_no_route_is_away_meanwhile() {
    let after = BEFORE
        .replace("fairway-00000000-out-10.0.0.1 permit 5", "fairway-00000000-out-10.0.0.1 permit 6")
        .replace("65000:1", "65000:2")
        .replace("tag 77", "tag 78")
        .replace("fairway-00000000-set-77", "fairway-00000000-set-78");
    let story = change(BEFORE, &after);
    assert!(story.frr.reset.is_empty() && story.frr.withdrawn.is_empty());
    assert_eq!(
        story.said(),
        [
            "route-map fairway-00000000-set-78 permit 10",
            "set tag 78",
            "route-map fairway-00000000-out-10.0.0.1 permit 6",
            "match tag 78",
            "set community 65000:2",
            "network 192.0.2.1/32 route-map fairway-00000000-set-78",
            "network 192.0.2.2/32 route-map fairway-00000000-set-78",
            "no route-map fairway-00000000-out-10.0.0.1 permit 5",
            "no route-map fairway-00000000-set-77",
        ]
    );
    assert!(story.batch.refreshes.is_empty(), "{:?}", story.batch.refreshes);
}

#[test]
fn a_neighbour_that_goes_is_removed_with_one_line_and_the_other_notices_nothing() {
    let after: String =
        BEFORE.lines().filter(|it| !it.contains("10.0.0.2")).map(|it| format!("{it}\n")).collect();
    let story = change(BEFORE, &after);
    assert_eq!(story.said(), ["no neighbor 10.0.0.2", "no route-map fairway-00000000-in-10.0.0.2"]);
    assert_eq!(story.frr.reset, ["10.0.0.2"]);
}

#[test]
fn settings_change_without_the_neighbour_going_away() {
    let after = BEFORE
        .replace("timers 30 90", "timers 1 3")
        .replace("password secret", "password other")
        .replace(
            " neighbor 10.0.0.1 timers connect 5\n",
            " neighbor 10.0.0.1 ttl-security hops 1\n",
        )
        .replace(" neighbor 10.0.0.1 bfd profile fairway-00000000-fast\n", "")
        .replace("  passive-mode\n", "")
        .replace("transmit-interval 100", "receive-interval 100");
    let story = change(BEFORE, &after);
    assert!(story.frr.reset.is_empty());
    let mut said = story.said();
    said.sort_unstable();
    assert_eq!(
        said,
        [
            "neighbor 10.0.0.1 password other",
            "neighbor 10.0.0.1 timers 1 3",
            "neighbor 10.0.0.1 ttl-security hops 1",
            "no neighbor 10.0.0.1 bfd profile fairway-00000000-fast",
            "no neighbor 10.0.0.1 timers connect",
            "no passive-mode",
            "receive-interval 100",
            "transmit-interval 300",
        ]
    );
}

#[test]
fn another_as_is_another_router_and_its_neighbours_are_removed_before_it() {
    let after = BEFORE.replace("router bgp 65000", "router bgp 65009");
    let story = change(BEFORE, &after);
    let said = story.said();
    let place = |line: &str| said.iter().position(|it| *it == line).unwrap();
    assert!(place("no neighbor 10.0.0.1") < place("no router bgp 65000"));
    assert!(place("no router bgp 65000") < place("router bgp 65009"));
}

/// Configuration of an operator, beside ours.
const FOREIGN: &str = "\
hostname node
ip prefix-list MINE seq 5 permit 10.0.0.0/8
route-map MINE permit 10
 match ip address prefix-list MINE
exit
router bgp 65000
 neighbor 172.16.0.1 remote-as 64999
 neighbor 172.16.0.1 description fairway-00000000-not-ours
 address-family ipv4 unicast
  network 172.16.5.0/24
  neighbor 172.16.0.1 route-map MINE out
 exit-address-family
exit
router bgp 4 vrf red
 neighbor 172.16.0.1 remote-as 5
exit
";

#[test]
fn lines_of_others_are_left_alone_even_when_everything_of_ours_goes() {
    let mut story = Story::beginning_with(FOREIGN);
    story.apply(BEFORE, false);
    let foreign = lines(&without_origins(&Configuration::parse(FOREIGN)));
    assert!(foreign.iter().all(|it| story.frr.lines().contains(it)), "{:?}", story.frr.lines());
    story.apply("", false);
    let left: Vec<String> =
        story.frr.lines().into_iter().filter(|it| !foreign.contains(it)).collect();
    assert_eq!(left, ["bfd"], "only empty contexts may be left");
}

#[test]
fn an_empty_wish_leaves_nothing_of_an_earlier_run_either() {
    let mut story = Story::beginning_with(BEFORE);
    story.apply("", false);
    assert_eq!(story.frr.lines(), ["bfd"]);
}

#[test]
fn what_an_earlier_run_left_stays_until_all_sources_have_spoken() {
    let partial: String = BEFORE
        .lines()
        .filter(|it| !it.contains("192.0.2.2") && !it.contains("10.0.0.2"))
        .map(|it| format!("{it}\n"))
        .collect();
    let mut story = Story::beginning_with(BEFORE);
    story.apply(&partial.replace("65000:1", "65000:9"), true);
    assert_eq!(story.said(), ["set community 65000:9"]);
    // Lines that were sent in this run may be removed.
    let more = partial.replace(
        "  table-map",
        "  network 198.51.100.1/32 route-map fairway-00000000-set-77\n  table-map",
    );
    story.apply(&more, true);
    story.apply(&partial, true);
    assert_eq!(story.frr.withdrawn, ["198.51.100.1/32"]);
    story.apply(&partial, false);
    assert_eq!(story.frr.reset, ["10.0.0.2"]);
    assert_eq!(story.frr.lines(), lines(&without_origins(&Configuration::parse(&partial))));
}

#[test]
fn a_place_that_another_class_had_is_not_taken_from_it_before_all_sources_have_spoken() {
    let wanted = "\
route-map fairway-00000000-set-78 permit 10
 set tag 78
exit
route-map fairway-00000000-out-10.0.0.1 permit 5
 match tag 78
exit
router bgp 65000
 address-family ipv4 unicast
  network 192.0.2.3/32 route-map fairway-00000000-set-78
  network 192.0.2.2/32 route-map fairway-00000000-set-77
";
    let mut story = Story::beginning_with(BEFORE);
    story.apply(wanted, true);
    assert_eq!(story.said(), ["route-map fairway-00000000-set-78 permit 10", "set tag 78"]);
}

#[test]
fn hands_that_changed_what_is_ours_are_undone() {
    let edited = BEFORE
        .replace("timers 30 90", "timers 1 3\n neighbor 10.0.0.1 shutdown")
        .replace(" network 192.0.2.1/32 route-map fairway-00000000-set-77\n", "")
        .replace("set community 65000:1", "set community 65000:666\n set metric 5");
    let story = change(&edited, BEFORE);
    let mut said = story.said();
    said.sort_unstable();
    assert_eq!(
        said,
        [
            "neighbor 10.0.0.1 timers 30 90",
            "network 192.0.2.1/32 route-map fairway-00000000-set-77",
            "no neighbor 10.0.0.1 shutdown",
            "no set metric 5",
            "set community 65000:1",
        ]
    );
    assert_eq!(story.batch.refreshes, ["clear bgp ipv4 unicast 10.0.0.1 soft out"]);
}

#[test]
fn an_entry_with_another_condition_never_applies_to_all_routes() {
    let entry = |condition: &str| {
        format!(
            "route-map fairway-00000000-in-10.0.0.1 permit 1\n match {condition}\nexit\n{BEFORE}"
        )
    };
    let story =
        change(&entry("ip address prefix-list fairway-00000000-a"), &entry("peer 10.0.0.9"));
    assert_eq!(
        story.said(),
        ["match peer 10.0.0.9", "no match ip address prefix-list fairway-00000000-a"]
    );
}

#[test]
fn a_changed_filter_counts_at_once_for_those_who_have_it() {
    let list = |prefix: &str| {
        format!(
            "ip prefix-list fairway-00000000-in-10.0.0.1 seq 5 permit {prefix}\n\
             route-map fairway-00000000-in-10.0.0.1 permit 1\n match ip address prefix-list fairway-00000000-in-10.0.0.1\n{BEFORE}"
        )
    };
    let story = change(&list("10.0.0.0/8"), &list("11.0.0.0/8"));
    assert_eq!(
        story.said(),
        ["ip prefix-list fairway-00000000-in-10.0.0.1 seq 5 permit 11.0.0.0/8"]
    );
    assert_eq!(story.batch.refreshes, ["clear bgp ipv4 unicast 10.0.0.1 soft in"]);
    let story = change(&list("10.0.0.0/8"), BEFORE);
    assert_eq!(story.batch.refreshes, ["clear bgp ipv4 unicast 10.0.0.1 soft in"]);
    assert_eq!(
        story.said(),
        [
            "no route-map fairway-00000000-in-10.0.0.1 permit 1",
            "no ip prefix-list fairway-00000000-in-10.0.0.1"
        ]
    );
}

#[test]
fn defaults_that_frr_does_not_show_are_there() {
    let said = "bfd\n profile fairway-00000000-fast\n  transmit-interval 300\n  no echo-mode\n";
    let mut story = Story::beginning_with("bfd\n profile fairway-00000000-fast\n");
    story.apply(said, false);
    assert!(story.said().is_empty());
}

#[test]
fn of_two_lines_that_set_the_same_the_later_counts() {
    let extras =
        format!("{BEFORE}! ConfigMap x/y\nrouter bgp 65000\n neighbor 10.0.0.1 timers 1 3\n");
    let mut story = Story::beginning_with(BEFORE);
    story.apply(&extras, false);
    assert_eq!(story.said(), ["neighbor 10.0.0.1 timers 1 3"]);
}

#[test]
fn a_new_neighbour_begins_when_all_is_said_and_bfd_comes_last() {
    let mut story = Story::beginning_with("");
    story.apply(BEFORE, false);
    let said: Vec<&str> = story.batch.additions.iter().map(|it| &*it.line).collect();
    let at =
        |line: &str| said.iter().position(|it| *it == line).unwrap_or_else(|| panic!("{line}"));
    assert_eq!(at("neighbor 10.0.0.1 shutdown"), at("neighbor 10.0.0.1 remote-as 65001") + 1);
    assert!(at("no neighbor 10.0.0.1 shutdown") > at("neighbor 10.0.0.1 activate"));
    assert!(at("no neighbor 10.0.0.1 shutdown") < at("neighbor 10.0.0.1 bfd"));

    story.apply(&BEFORE.replace("timers 30 90", "timers 1 3"), false);
    let said: Vec<&str> = story.batch.additions.iter().map(|it| &*it.line).collect();
    assert_eq!(said, ["neighbor 10.0.0.1 timers 1 3"], "an existing neighbor stays up");

    let mut story = Story::beginning_with("");
    let down = "remote-as 65001\n neighbor 10.0.0.1 shutdown";
    story.apply(&BEFORE.replace("remote-as 65001", down), false);
    let mut said = story.batch.additions.iter().map(|it| &*it.line);
    assert!(!said.any(|it| it == "no neighbor 10.0.0.1 shutdown"), "it must stay shut down");
}
