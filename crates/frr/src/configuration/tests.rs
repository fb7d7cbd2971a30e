//! Texts as FRR shows them, as we render them, and as people write them.

use super::*;

fn shown(text: &str) -> Vec<String> {
    Configuration::parse(text).statements.iter().map(|it| format!("{it:?}")).collect()
}

/// What FRR 8.4 shows.
const RUNNING: &str = "\
frr version 8.4.4
hostname vm
! \"log file /x debugging\" enabled by \"--log\" startup option
!
bfd
 profile fairway-00000000-fast
  receive-interval 100
 exit
 !
exit
!
router bgp 65001
 no bgp ebgp-requires-policy
 neighbor FD77::0:2 remote-as 65002
 !
 address-family ipv6 unicast
  network fd00:0::/64 route-map fairway-00000000-set-77
  neighbor fd77::2 activate
 exit-address-family
exit
!
route-map fairway-00000000-set-77 permit 10
 set tag 77
exit
";

#[test]
fn running_configuration_is_read_with_its_contexts() {
    assert_eq!(
        shown(RUNNING),
        [
            "frr version 8.4.4",
            "hostname vm",
            "bfd",
            "bfd / profile fairway-00000000-fast",
            "bfd / profile fairway-00000000-fast / receive-interval 100",
            "router bgp 65001",
            "router bgp 65001 / no bgp ebgp-requires-policy",
            "router bgp 65001 / neighbor fd77::2 remote-as 65002",
            "router bgp 65001 / address-family ipv6 unicast",
            "router bgp 65001 / address-family ipv6 unicast / network fd00::/64 route-map fairway-00000000-set-77",
            "router bgp 65001 / address-family ipv6 unicast / neighbor fd77::2 activate",
            "route-map fairway-00000000-set-77 permit 10",
            "route-map fairway-00000000-set-77 permit 10 / set tag 77",
        ]
    );
}

#[test]
fn a_text_without_indents_is_read_the_same() {
    let flat: String = RUNNING.lines().map(|line| format!("{}\n", line.trim())).collect();
    assert_eq!(shown(&flat), shown(RUNNING));
    let unclosed: String = flat
        .lines()
        .filter(|line| !is_exit(line))
        .fold(String::new(), |text, line| text + line + "\n");
    assert_eq!(shown(&unclosed), shown(RUNNING));
}

#[test]
fn a_context_of_others_that_nobody_knows_swallows_nothing() {
    let text = "mystery foo\n deep\n  deeper\n exit\nexit\nrouter bgp 1\n mystery\n  inside\n exit\n bgp router-id 1.1.1.1\nexit\n";
    let last = shown(text);
    assert_eq!(last.last().unwrap(), "router bgp 1 / bgp router-id 1.1.1.1");
}

#[test]
fn the_comment_above_is_where_a_line_is_from() {
    let text = "! BGPPeer tor-a\nrouter bgp 1\n!\n neighbor 10.0.0.1 remote-as 2\n ! BGPPeer tor-b\n neighbor 10.0.0.2 remote-as 2\n";
    let configuration = Configuration::parse(text);
    let origins: Vec<_> = configuration.statements.iter().map(|it| it.origin.as_deref()).collect();
    assert_eq!(origins, [Some("BGPPeer tor-a"), Some("BGPPeer tor-a"), Some("BGPPeer tor-b")]);
}

#[test]
fn what_somebody_chose_freely_is_left_as_it_is_and_no_password_is_shown() {
    let text =
        "router bgp 1\n neighbor FE80::1 password FD00::0\n neighbor fe80::1 description  ::0  b\n";
    let configuration = Configuration::parse(text);
    let lines: Vec<_> = configuration.statements.iter().map(|it| &*it.line).collect();
    assert_eq!(lines[1], "neighbor fe80::1 password FD00::0");
    assert_eq!(lines[2], "neighbor fe80::1 description ::0 b");
    assert!(!format!("{configuration:?}").contains("FD00::0"));
}

#[test]
fn hostile_texts_are_read_to_their_end() {
    let deep = "router bgp 1\n address-family ipv4 unicast\n  vni 1\n".repeat(1000);
    assert!(Configuration::parse(&deep).statements.iter().all(|it| it.context.len() <= DEPTH_MAX));
    let exits = "exit\nend\nexit-vrf\n".repeat(1000) + "\0\nhostname \u{fffd}\n";
    assert_eq!(shown(&exits), ["hostname \u{fffd}"]);
    for seed in 0..500_u32 {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        let words = ["router", "bgp", "1", "\n", " ", "!", "exit", "bfd", "\n ", "profile", "é"];
        let text: String =
            (0..200).flat_map(|_| [words[next() as usize % words.len()], " "]).collect();
        let statements = Configuration::parse(&text).statements;
        assert!(statements.iter().all(|it| it.context.len() <= DEPTH_MAX && !it.line.is_empty()));
    }
}

#[test]
fn lines_of_ipv4_in_a_router_are_read_as_frr_shows_them() {
    let written = "router bgp 65001\n network 192.0.2.0/24\n neighbor 192.0.2.2 prefix-list a in\n \
                   neighbor 192.0.2.2 timers 3 9\n no neighbor 192.0.2.2 activate\n address-family ipv6\n  \
                   network 2001:db8::/32\n";
    let shown = "router bgp 65001\n neighbor 192.0.2.2 timers 3 9\n address-family ipv4 unicast\n  \
                 network 192.0.2.0/24\n  neighbor 192.0.2.2 prefix-list a in\n  no neighbor 192.0.2.2 activate\n";
    let written = Configuration::parse(written).statements;
    let shown = Configuration::parse(shown).statements;
    let lacks = |it: &&Statement| !written.contains(it) && !it.line.starts_with("address-family");
    assert_eq!(shown.iter().find(lacks), None);
    assert!(written.iter().any(|it| it.context.len() == 2 && it.line.contains("2001:db8")));
}
