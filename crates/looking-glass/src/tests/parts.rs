//! The parts of the page: complete without a script, unchanged while nothing happens, and never markup of others.

use fairway_show::overview::Overview;

use super::view::{NOW_EPOCH_SECONDS, overview, session};
use crate::{Fragment, Part, Picture, Query, page};

fn whole(overview: &Overview) -> String {
    let fragments = Picture::default().follow(overview).unwrap();
    let fragments: Vec<&Fragment> = fragments.iter().collect();
    page(&overview.node, &fragments, overview.now_epoch_seconds, "1-1", None).unwrap()
}

#[test]
fn a_page_without_a_script_has_every_fact_as_text() {
    let page = whole(&overview());
    for fact in [
        "node-a",
        "65001",
        "10.0.0.1",
        "0.1.0 (0123abcd)",
        "tor-1",
        "192.0.2.2",
        "64512",
        "Established",
        "connection refused",
        "17",
        "198.51.100.10",
        "tor-2 has no session",
        "public",
        "198.51.100.0/24",
        "1 of 256",
        "203.0.113.9",
        "node-b",
        "shop/local",
        "eth0",
        "10.244.3.0/24",
        "session Established",
        "session down: connection refused",
        "2026-11-20T16:33:03Z",
        "As of",
    ] {
        assert!(page.contains(fact), "{fact}");
    }
    assert!(!page.contains("style=") && !page.contains("<script>"), "the policy forbids both");
}

#[test]
fn text_of_others_never_becomes_markup() {
    let hostile = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&\u{202e}\n\r\0";
    let mut overview = overview();
    let text = || hostile.to_owned();
    (overview.node, overview.version, overview.router_id) = (text(), text(), text());
    (overview.drain, overview.outage, overview.faults) = (Some(text()), Some(text()), 2);
    let row = &mut overview.sessions[1];
    (row.name, row.neighbor, row.state, row.reason) = (text(), text(), text(), text());
    row.bfd = Some(text());
    let row = &mut overview.services[0];
    (row.namespace, row.name, row.reason, row.pool) = (text(), text(), text(), Some(text()));
    (row.addresses, row.announced_to) = (vec![text()], vec![text()]);
    let row = &mut overview.pools[0];
    (row.name, row.addresses) = (text(), vec![text()]);
    let row = &mut overview.segment[0];
    (row.address, row.owner, row.reason) = (text(), Some(text()), text());
    (row.interfaces, row.services) = (vec![text()], vec![text()]);
    let row = &mut overview.prefixes_of_node[0];
    (row.prefix, row.announced_to) = (text(), vec![text()]);
    for event in &mut overview.events {
        (event.about, event.what) = (text(), text());
    }
    let query = Query::new(hostile).unwrap();
    let fragments = Picture::default().follow(&overview).unwrap();
    let fragments: Vec<&Fragment> = fragments.iter().collect();
    let found = Some((&query, Err(hostile)));
    let page = page(&overview.node, &fragments, NOW_EPOCH_SECONDS, hostile, found).unwrap();
    assert!(page.matches("&lt;script&gt;").count() > 20, "the text is there");
    for markup in ["<script>", "<img", "=x onerror=alert(1)>", "\u{202e}", "\r", "\0"] {
        assert!(!page.contains(markup), "{markup:?}");
    }
    // No quote of others ends an attribute: every tag is one of ours, with attributes of ours.
    for tag in page.split('<').skip(1).filter_map(|it| it.split('>').next()) {
        assert!(!tag.contains("alert(1)") || tag.contains("&#39;") || tag.contains("%3C"), "{tag}");
    }
}

#[test]
fn parts_stay_as_they_are_while_nothing_happens_and_time_goes_by() {
    let mut picture = Picture::default();
    let mut overview = overview();
    overview.now_epoch_seconds = 1_795_192_681;
    let first = picture.follow(&overview).unwrap();
    for _ in 0..15 {
        overview.now_epoch_seconds += 1;
        for session in &mut overview.sessions {
            session.since_seconds = session.since_seconds.map(|it| it + 1);
            session.messages_received += 1;
        }
        overview.segment[0].requests += 1;
        assert_eq!(picture.follow(&overview).unwrap(), first);
    }
}

#[test]
fn a_session_that_goes_down_changes_its_table_the_head_and_the_events_alone() {
    let mut picture = Picture::default();
    let mut overview = overview();
    let first = picture.follow(&overview).unwrap();
    overview.sessions[0] = session("192.0.2.1", "tor-1", false);
    overview.sessions[0].since_seconds = Some(0);
    overview.events[0].what = "session down: hold timer expired".to_owned();
    overview.events[0].at_epoch_seconds = NOW_EPOCH_SECONDS;
    let second = picture.follow(&overview).unwrap();
    let changed: Vec<Part> = first
        .iter()
        .zip(&second)
        .filter(|(one, other)| one != other)
        .map(|(it, _)| it.part)
        .collect();
    assert_eq!(changed, [Part::Head, Part::Neighbors, Part::Events]);
}

#[test]
fn a_page_of_the_largest_node_has_a_bound() {
    let mut overview = overview();
    overview.sessions =
        (0..5_000).map(|it| session(&format!("host-{it}"), "", it % 2 == 0)).collect();
    let row = overview.services[0].clone();
    overview.services = vec![row; Picture::ROWS_MAX];
    let event = overview.events[0].clone();
    overview.events = (0..5_000)
        .map(|it| fairway_show::overview::EventRow {
            about: format!("neighbor {it}"),
            ..event.clone()
        })
        .collect();
    let page = whole(&overview);
    assert!(page.contains("And 4000 more"), "those that are left out are counted");
    assert!(page.len() < 3 << 20, "{} bytes", page.len());
}
