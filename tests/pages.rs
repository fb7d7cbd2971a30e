//! Pages of the documentation that are tables of the source. A page that is stale fails; `make docs`
//! writes it anew.

#![allow(clippy::panic, clippy::unwrap_used)] // What fails here fails the test.

use std::fmt::Write as _;
use std::path::PathBuf;

use fairway_sessions::types::{ChangeEffect, PeerSetting};

const PEER_CHANGES: &str = "docs/peers-changes.md";

fn peer_changes() -> String {
    let mut page = "\
# What a change of a BGPPeer does to its session

This page is made from the source by `make docs`, and a test changes each of these settings while a
session is up and looks what happens. Of several changes at once the strongest counts; a session that
is down is tried again with the new settings at once.

| field of the BGPPeer | what its change does to a session that is up |
|---|---|
"
    .to_owned();
    for setting in PeerSetting::ALL.iter().filter(|setting| !setting.written.is_empty()) {
        let PeerSetting { written, effect, .. } = setting;
        let _ = writeln!(page, "| {written} | {} |", words(*effect));
    }
    page
}

fn words(effect: ChangeEffect) -> &'static str {
    match effect {
        ChangeEffect::OtherPeer => {
            "it is another peer: the old one is told Peer De-configured (6/3), the new one is dialled"
        }
        ChangeEffect::NewSession => {
            "a new session: the router is told Other Configuration Change (6/6)"
        }
        ChangeEffect::NewExternalSession => {
            "a new session (6/6) with a router in another AS, nothing with one in ours"
        }
        ChangeEffect::ExchangesKeys => {
            "stays up, if both sides change within the hold time; a key where there was none, none \
             where there was one, and another secret under an ID of `tcpAO` are a new session (6/6)"
        }
        ChangeEffect::Down => {
            "ends it with Administrative Shutdown (6/2) and the text; another text while it is down \
             changes nothing; without `shutdown` it is dialled at once"
        }
        ChangeEffect::AsksAgain => {
            "stays up: what is no longer wanted goes, and the router is asked for its routes \
             (ROUTE-REFRESH); one that cannot be asked gets a new session (6/6)"
        }
        ChangeEffect::SaysAgain => "stays up: routes that change by it are sent again or withdrawn",
        ChangeEffect::Nothing => "stays up: the router notices nothing",
    }
}

#[test]
fn the_page_on_changes_of_a_peer_is_the_table_of_the_source() {
    let page = peer_changes();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(PEER_CHANGES);
    if std::env::var_os("FAIRWAY_WRITE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(present == page, "{PEER_CHANGES} is stale: run make docs");
}
