//! A released address cools down, and waits for its former holder.

use super::*;

fn full(pool: &str) -> String {
    format!("no available IPs: no pool has a free IPv4 address (tried {pool})")
}

#[test]
fn a_released_address_is_the_last_choice_for_a_minute() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(service("old")).converge();
    world.remove("old").converge();
    world.told().add(service("1"));
    assert_eq!(world.got("1"), "192.0.2.1");
    world.wait(59).add(service("2"));
    assert_eq!(world.got("2"), "192.0.2.2");
    assert_eq!(world.allocator.next_deadline(), Some(Instant::ZERO + Duration::from_secs(60)));
    world.wait(1).add(service("3"));
    assert_eq!(world.got("3"), "192.0.2.0");
    assert_eq!(world.allocator.next_deadline(), None);
}

#[test]
fn of_released_addresses_the_one_that_has_waited_longest_goes_first() {
    let mut world = World::with([pool("a", &["192.0.2.0/31"])]);
    world.add(service("0")).add(service("1")).converge();
    world.remove("1").converge();
    world.wait(1).remove("0").converge();
    world.told().add(service("2")).add(service("3"));
    assert_eq!(world.got("2"), "192.0.2.1");
    assert_eq!(world.got("3"), "192.0.2.0");
}

#[test]
fn nobody_else_gets_an_address_before_its_withdrawal_is_written() {
    let mut world = World::with([pool("a", &["192.0.2.0/32"])]);
    world.add(service("old")).converge();
    world.remove("old").add(service("new"));
    assert_eq!(world.got("new"), full("a"));
    world.wait(3_600);
    assert_eq!(world.got("new"), full("a"), "time alone does not report a withdrawal");
    let waiting: Vec<_> = world.allocator.not_withdrawn().collect();
    assert_eq!(waiting, [(ip("192.0.2.0"), &name("old"), Instant::ZERO)]);
    assert!(world.allocator.withdrawn(world.allocator.last_release()));
    assert!(!world.allocator.withdrawn(world.allocator.last_release()));
    assert_eq!(world.got("new"), "192.0.2.0");
}

#[test]
fn what_was_believed_without_a_pool_is_given_back_like_any_other() {
    let believed =
        |name: &str| Service { status_addresses: vec![ip("192.0.2.0")], ..service(name) };
    let mut asks_for_another = World::default();
    asks_for_another.add(believed("old")).converge();
    asks_for_another
        .add(Service { requested_addresses: vec![ip("203.0.113.1")], ..believed("old") })
        .pool(pool("a", &["192.0.2.0/32"]))
        .converge();
    let mut gone = World::default();
    gone.add(believed("old")).converge();
    gone.remove("old").pool(pool("a", &["192.0.2.0/32"])).converge();
    for mut world in [asks_for_another, gone] {
        world.add(service("new"));
        assert_eq!(world.got("new"), full("a"));
        assert!(world.allocator.address_withdrawn(ip("192.0.2.0")));
        assert_eq!(world.got("new"), "192.0.2.0");
    }
}

#[test]
fn what_was_told_before_a_release_says_nothing_about_it() {
    let mut world = World::with([pool("a", &["192.0.2.0/32"])]);
    world.add(service("old")).converge();
    let before = world.allocator.last_release();
    world.remove("old").add(service("new")).converge();
    assert!(!world.allocator.withdrawn(before));
    assert_eq!(world.got("new"), full("a"));
    assert!(world.allocator.address_withdrawn(ip("192.0.2.0")));
    assert!(!world.allocator.address_withdrawn(ip("192.0.2.0")));
    assert_eq!(world.got("new"), "192.0.2.0");
}

#[test]
fn who_comes_back_gets_its_address_again_though_others_came_meanwhile() {
    let mut world = World::with([pool("a", &["192.0.2.0/29"])]);
    world.add(service("web")).add(service("x")).converge();
    world.remove("web").add(service("1")).converge();
    world.told().wait(50).add(service("2")).add(service("web")).add(service("0"));
    assert_eq!(world.got("web"), "192.0.2.0");
    assert_eq!(world.got("0"), "192.0.2.3");
    world.remove("web").converge();
    world.add(service("web"));
    assert_eq!(world.got("web"), "192.0.2.0", "it need not wait for its own withdrawal");
}

#[test]
fn who_comes_back_to_a_full_pool_finds_its_address_taken() {
    let mut world = World::with([pool("a", &["192.0.2.0/31"])]);
    world.add(service("web")).add(service("x")).converge();
    world.remove("web").converge();
    world.told().add(service("0")).converge();
    world.add(service("web"));
    assert_eq!(world.got("0"), "192.0.2.0");
    assert_eq!(world.got("web"), full("a"));
}

#[test]
fn of_an_address_that_others_still_share_only_the_place_is_kept() {
    let mut world = World::with([pool("a", &["192.0.2.0/29"])]);
    world.add(service("first")).add(sharing("a", 80)).add(sharing("b", 443));
    assert_eq!(world.got("a"), "192.0.2.0");
    world.remove("a").converge();
    assert_eq!(world.allocator.not_withdrawn().count(), 0, "it is still announced");
    world.add(sharing("c", 80));
    assert_eq!(world.got("c"), "192.0.2.0", "the port is free at once");
    world.remove("c").remove("first").converge();
    world.told().wait(60);
    world.add(sharing("d", 443));
    assert_eq!(world.got("d"), "192.0.2.1", "of two with one key the lower free one");
    world.add(sharing("c", 8080));
    assert_eq!(world.got("c"), "192.0.2.0");
}

#[test]
fn a_restart_forgets_neither_who_had_an_address_nor_that_it_may_still_be_in_use() {
    let mut world = World::with([pool("a", &["192.0.2.0/31"])]);
    world.add(service("web")).add(service("x")).converge();
    world.remove("web").converge();
    world.told().restart().add(service("new"));
    assert_eq!(
        world.got("new"),
        full("a"),
        "the last run may have sent fewer withdrawals than it meant to"
    );
    world.add(service("web"));
    assert_eq!(world.got("web"), "192.0.2.0");
    world.remove("web").converge();
    world.restart().told();
    assert_eq!(world.got("new"), "192.0.2.0");
    assert_eq!(world.allocator.memory().released, [], "another Service has it now");
}

#[test]
fn whoever_needs_both_families_does_not_warm_up_the_one_it_gave_back() {
    let mut world = World::with([pool("a", &["192.0.2.0/32", "2001:db8::/128"])]);
    world.add(wanting("x", FamilyPolicy::RequireDual(V4))).converge();
    world.pool(pool("a", &["192.0.2.0/32"]));
    assert_eq!(world.got("x"), "no available IPs: pool a holds no IPv6 addresses");
    world.told().converge();
    assert_eq!(world.allocator.not_withdrawn().count(), 0);
    world.pool(pool("a", &["192.0.2.0/32", "2001:db8::/128"]));
    assert_eq!(world.got("x"), "192.0.2.0 | 2001:db8::");
}

#[test]
fn of_more_releases_than_are_remembered_the_oldest_that_neighbours_know_are_forgotten() {
    let mut world = World::with([pool("a", &["10.0.0.0/15"])]);
    for number in 0..=released::RELEASES_MAX {
        world.add(service(&format!("{number:05}")));
    }
    world.converge();
    for number in 0..=released::RELEASES_MAX {
        world.remove(&format!("{number:05}"));
    }
    world.converge();
    assert_eq!(world.allocator.not_withdrawn().count(), released::RELEASES_MAX + 1);
    world.add(service("new"));
    assert_eq!(world.got("new"), "10.0.3.233", "no withdrawal was sent to neighbors");
    world.told().remove("new").converge();
    world.add(service("newer"));
    assert_eq!(world.got("newer"), "10.0.0.0");
}

#[test]
fn who_begins_to_decide_takes_up_what_is_there_and_gives_nothing_before_it_knows_the_past() {
    let mut world = World::with([pool("a", &["192.0.2.0/31"])]);
    let had = Service { status_addresses: vec![ip("192.0.2.0")], ..service("had") };
    world.add(had).add(service("new"));
    world.allocator.set_giving(false);
    assert_eq!(world.got("had"), "192.0.2.0");
    assert_eq!(
        world.got("new"),
        "no address is assigned yet: the controller is still restoring the existing assignments"
    );
    world.allocator.note_released(world.now, ip("192.0.2.1"), &name("gone"));
    world.allocator.set_giving(true);
    assert_eq!(world.got("new"), full("a"));
    world.told();
    assert_eq!(world.got("new"), "192.0.2.1");
}

#[test]
fn those_who_shared_an_address_before_a_restart_may_all_have_it_again_however_late_it_is() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    let shared = ip("192.0.2.0");
    let had = |service: Service| Service { status_addresses: vec![shared], ..service };
    world.add(had(sharing("s0", 80)));
    let moved = Service { requested_addresses: vec![ip("192.0.2.2")], ..had(sharing("s5", 443)) };
    world.add(moved).add(service("a-new")).wait(71);
    let released = vec![(shared, name("s0")), (shared, name("s5"))];
    world.allocator = Allocator::restore(None, Memory { released, ..Memory::default() });
    assert_eq!(world.got("s0"), "192.0.2.0");
    assert_eq!(world.got("s5"), "192.0.2.2");
    assert_eq!(world.got("a-new"), "192.0.2.1");
}

#[test]
fn who_left_a_shared_address_before_neighbours_were_told_last_is_a_stranger() {
    let mut world = World::with([pool("a", &["192.0.2.0/32"])]);
    world.add(sharing("a", 80)).add(sharing("b", 443)).converge();
    world.remove("a").converge();
    world.told().remove("b").converge();
    world.add(sharing("a", 80));
    assert_eq!(world.got("a"), full("a"));
    world.told();
    assert_eq!(world.got("a"), "192.0.2.0");
}
