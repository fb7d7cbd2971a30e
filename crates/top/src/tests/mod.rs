//! What a user sees in a terminal of 80 columns and 24 lines, and what keys do to it.

mod keys;
mod picture;

use std::time::Duration;

use fairway_ground::Instant;
use fairway_show::overview::{
    EventRow, FamilyCount, Overview, PoolRow, PrefixRow, SegmentRow, ServiceCounts, ServiceRow,
    SessionRow,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

use super::{Key, Reaction, Screen, draw};

const NOW_EPOCH_SECONDS: u64 = 1_795_192_683;

fn session(neighbor: &str, name: &str, is_established: bool) -> SessionRow {
    let count = |ipv4| FamilyCount { ipv4: if is_established { ipv4 } else { 0 }, ipv6: 0 };
    SessionRow {
        neighbor: neighbor.to_owned(),
        name: name.to_owned(),
        remote_as: 64512,
        state: if is_established { "Established" } else { "Active" }.to_owned(),
        is_established,
        since_seconds: Some(93_784),
        accepted: count(1),
        refused: FamilyCount::default(),
        advertised: count(12),
        messages_received: 1_000,
        messages_sent: 1_000,
        updates_received: 1,
        updates_sent: 12,
        connections_established: 1,
        bfd: is_established.then(|| "Up".to_owned()),
        is_restarting: false,
        reason: if is_established { "" } else { "connection refused" }.to_owned(),
    }
}

fn service(name: &str, address: &str, reason: &str) -> ServiceRow {
    let told =
        if reason.is_empty() { vec!["tor-1".to_owned(), "tor-2".to_owned()] } else { vec![] };
    ServiceRow {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        addresses: Some(address.to_owned()).filter(|it| !it.is_empty()).into_iter().collect(),
        pool: Some("public".to_owned()),
        announced_to: told,
        reason: reason.to_owned(),
    }
}

fn event(ago_seconds: u64, about: &str, what: &str, is_warning: bool) -> EventRow {
    let at_epoch_seconds = NOW_EPOCH_SECONDS - ago_seconds;
    EventRow { at_epoch_seconds, about: about.to_owned(), what: what.to_owned(), is_warning }
}

/// A node with two racks' routers, of which one is down.
fn overview() -> Overview {
    Overview {
        now_epoch_seconds: NOW_EPOCH_SECONDS,
        started_epoch_seconds: NOW_EPOCH_SECONDS - 93_790,
        version: "0.1.0 (0123abcd)".to_owned(),
        node: "node-a".to_owned(),
        router_id: "10.0.0.1".to_owned(),
        local_as: vec![65001],
        drain: None,
        outage: None,
        faults: 0,
        prefixes: FamilyCount { ipv4: 14, ipv6: 3 },
        sessions: vec![
            session("192.0.2.1", "tor-1", true),
            session("192.0.2.2", "tor-2", true),
            session("192.0.2.3", "tor-3", false),
            session("2001:db8:1::1", "", true),
        ],
        service_counts: ServiceCounts { total: 3, pending: 1, lacking: 1 },
        services: vec![
            service("queue", "", "the pool public has no free address"),
            service("api", "198.51.100.11", ""),
            service("web", "198.51.100.10", ""),
        ],
        pools: vec![
            PoolRow {
                name: "public".to_owned(),
                addresses: vec!["198.51.100.10-198.51.100.11".to_owned()],
                used: FamilyCount { ipv4: 2, ipv6: 0 },
                total: FamilyCount { ipv4: 2, ipv6: 0 },
                services: 2,
                auto_assign: true,
            },
            PoolRow {
                name: "lab".to_owned(),
                addresses: vec!["203.0.113.0/24".to_owned(), "2001:db8:aaaa::/64".to_owned()],
                used: FamilyCount { ipv4: 30, ipv6: 1 },
                total: FamilyCount { ipv4: 256, ipv6: u64::MAX },
                services: 31,
                auto_assign: false,
            },
        ],
        segment: vec![SegmentRow {
            address: "192.0.2.200".to_owned(),
            owner: Some("node-b".to_owned()),
            is_mine: false,
            interfaces: Vec::new(),
            services: vec!["shop/web".to_owned()],
            requests: 0,
            conflicts: 0,
            reason: String::new(),
        }],
        prefixes_of_node: vec![PrefixRow {
            prefix: "10.244.3.0/26".to_owned(),
            announced_to: vec!["tor-1".to_owned()],
        }],
        events: vec![
            event(5, "neighbor tor-3 (192.0.2.3)", "session down: hold timer expired", true),
            event(3_600, "service shop/api", "198.51.100.11 announced", false),
        ],
    }
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn screen() -> Screen {
    let mut screen = Screen::default();
    screen.resize(24);
    screen.follow(at(0), overview());
    screen
}

fn drawn(screen: &Screen, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(screen, frame)).unwrap();
    terminal.backend().buffer().clone()
}

/// The lines of a terminal of 80 by 24.
fn lines(screen: &Screen) -> Vec<String> {
    text(&drawn(screen, 80, 24))
}

fn text(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let rows = buffer.content.chunks(width);
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned())
        .collect()
}

fn has(lines: &[String], wanted: &str) -> bool {
    lines.iter().any(|it| it.contains(wanted))
}

#[test]
fn the_first_screen_says_which_session_is_down_and_why() {
    let lines = lines(&screen());
    assert!(lines[0].starts_with("node-a  AS 65001  router ID 10.0.0.1"), "{lines:#?}");
    assert!(lines[1].starts_with("3/4 sessions  3 services (1 lacking)"), "{lines:#?}");
    // What somebody should look at comes first.
    assert!(lines[4].starts_with("tor-3"), "{lines:#?}");
    assert!(lines[4].contains("Active"), "{lines:#?}");
    assert!(has(&lines, "tor-3: connection refused"), "{lines:#?}");
    assert!(has(&lines, "neighbor tor-3 (192.0.2.3) session down: hold timer expired"));
    assert!(lines[23].starts_with("q quit"), "{lines:#?}");
}

#[test]
fn before_an_answer_there_is_a_word_and_after_a_failure_the_last_state_stays() {
    let mut screen = Screen::default();
    assert!(has(&lines(&screen), "asking the daemon"));
    screen.fail("no daemon answers at /run/fairway/fairway.sock".to_owned());
    assert!(has(&lines(&screen), "no daemon answers"));
    screen.follow(at(0), overview());
    screen.fail("it did not answer within 10 s".to_owned());
    let lines = lines(&screen);
    assert!(has(&lines, "no answer: it did not answer within 10 s") && has(&lines, "tor-3"));
}

#[test]
fn messages_per_second_follow_the_counters_over_two_seconds() {
    let mut screen = screen();
    for second in 1..=6 {
        let mut next = overview();
        for session in &mut next.sessions {
            session.messages_received += if second < 4 { 50 * second } else { 200 };
        }
        screen.follow(at(second), next);
    }
    // Fifty in a second until the fourth, and none in the last two.
    assert!(lines(&screen)[1].ends_with("msg/s 0 in, 0 out"), "{:?}", lines(&screen)[1]);
    let mut next = overview();
    for session in &mut next.sessions {
        session.messages_received += 400;
    }
    screen.follow(at(7), next);
    assert!(lines(&screen)[1].ends_with("msg/s 400 in, 0 out"), "{:?}", lines(&screen)[1]);
}

#[test]
fn text_of_others_does_nothing_to_a_terminal() {
    let mut hostile = overview();
    let evil = "\u{1b}[2Jevil\u{9b}31m\nnext";
    hostile.sessions[0].name = evil.to_owned();
    hostile.sessions[2].reason = evil.to_owned();
    hostile.services[0].name = evil.to_owned();
    hostile.services[0].reason = evil.to_owned();
    hostile.events[0].what = evil.to_owned();
    hostile.node = evil.to_owned();
    hostile.outage = Some(evil.to_owned());
    let mut screen = Screen::default();
    screen.follow(at(0), hostile);
    screen.explain(evil.to_owned(), evil);
    for key in ['?', '1', '2', '3', '4', '5', '6'] {
        let buffer = drawn(&screen, 80, 24);
        assert!(
            buffer.content.iter().all(|it| !it.symbol().chars().any(char::is_control)),
            "{:#?}",
            text(&buffer)
        );
        screen.press(Key::Escape);
        screen.press(Key::Character(key));
    }
}

/// Whatever a user makes of the window.
#[test]
fn every_view_draws_in_every_size() {
    for view in '1'..='6' {
        let mut screen = screen();
        screen.press(Key::Character(view));
        for (width, height) in [(1, 1), (10, 3), (40, 7), (80, 24), (300, 100)] {
            screen.resize(height);
            drawn(&screen, width, height);
        }
    }
    for size in [1, 5, 24] {
        let mut screen = screen();
        screen.press(Key::Character('?'));
        drawn(&screen, size, size);
    }
}
