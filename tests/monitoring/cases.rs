//! What stations hear.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::suite::{Case, Cell, Suite};
use lab::wait::{PATIENCE, wait_until};

use crate::scene::Scene;
use crate::station::{Heard, Station};

pub(crate) fn add_to(suite: &mut Suite) {
    suite.add(Case::new("a station has the sessions and routes of a node beside FRR", has_all));
    suite.add(Case::new(
        "a station that never reads costs bounded memory and no session",
        never_reads,
    ));
}

const ALL: &str = "[adjRIBInPrePolicy, adjRIBInPostPolicy, adjRIBOutPostPolicy, locRIB]";

/// What a connection has said after its beginning, when nothing happens: in any order.
const BEGINNING: &[&str] = &[
    "peer up 10.0.0.2 AS 65010 at 10.0.0.1 with both OPENs: true",
    "pre 198.51.100.0/24 by [65010]",
    "pre 198.51.101.0/24 by [65010]",
    "post 198.51.100.0/24 by [65010]",
    "post 198.51.101.0/24 by [65010]",
    "out 203.0.113.7/32 by [65001]",
    "loc-rib up 0.0.0.0 AS 65001 at 0.0.0.0 with both OPENs: true",
    "loc-rib 198.51.100.0/24 by [65010]",
    "loc-rib 198.51.101.0/24 by [65010]",
    "loc-rib 203.0.113.7/32 by []",
    "pre end",
    "post end",
    "out end",
    "loc-rib end",
];

/// The statistics of the session, and those of the node.
fn counts(heard: &Heard) -> Result<()> {
    let numbers = heard.lines.iter().rev().find(|it| it.starts_with("statistics 10.0.0.2"));
    let numbers = numbers.context("none yet")?;
    for expected in [
        "RoutesInAdjRibsIn Gauge(2)",
        "RoutesInPerAfiSafiAdjRibIn AfiSafiGauge(1, 1, 2)",
        "RoutesInPostPolicyAdjRibOut Gauge(1)",
    ] {
        ensure!(numbers.contains(expected), "{numbers}");
    }
    let node = heard.lines.iter().rev().find(|it| it.starts_with("statistics 0.0.0.0"));
    let node = node.context("none of the node yet")?;
    ensure!(node.contains("RoutesInLocRib Gauge(3)"), "{node}");
    Ok(())
}

fn has_all(cell: &Cell) -> Result<()> {
    let mut scene = Scene::build(cell)?;
    let station = Station::start(&scene.node)?;
    let told = format!(
        "{{address: 127.0.0.1, port: {}, monitor: {ALL}, statsIntervalSeconds: 5}}",
        station.port
    );
    scene.start(&told)?;
    scene.route(&["198.51.100.0/24".to_owned(), "198.51.101.0/24".to_owned()])?;
    scene.wait_for_session()?;
    said(&station, 1, BEGINNING)?;
    begins(&station)?;

    scene.vtysh(&[
        "configure terminal",
        "router bgp 65010",
        "address-family ipv4 unicast",
        "no network 198.51.101.0/24",
        "network 198.51.102.0/24",
    ])?;
    said(
        &station,
        1,
        &[
            "pre 198.51.101.0/24 withdrawn",
            "post 198.51.101.0/24 withdrawn",
            "loc-rib 198.51.101.0/24 withdrawn",
            "pre 198.51.102.0/24 by [65010]",
            "post 198.51.102.0/24 by [65010]",
            "loc-rib 198.51.102.0/24 by [65010]",
        ],
    )?;
    wait_until("statistics", 2 * PATIENCE, || counts(&station.heard().1))?;

    // A station that comes back has everything again.
    station.hang_up()?;
    let again: Vec<String> = BEGINNING.iter().map(|it| it.replace(".101.", ".102.")).collect();
    let again: Vec<&str> = again.iter().map(String::as_str).collect();
    said(&station, 2, &again)?;
    begins(&station)?;
    let (_, heard) = station.heard();
    ensure!(!heard.lines.iter().any(|it| it.contains("198.51.101.0")), "{heard:#?}");

    // A session that ends takes its NOTIFICATION with it.
    scene.vtysh(&["clear bgp *"])?;
    said(&station, 2, &["peer down 10.0.0.2 AS 65010 RemoteSystemClosedNotificationPduFollows"])?;
    wait_until("the session is up again", 2 * PATIENCE, || {
        let (_, heard) = station.heard();
        let ups = heard.lines.iter().filter(|it| it.starts_with("peer up")).count();
        ensure!(ups == 2, "{ups}");
        Ok(())
    })?;
    let shown = scene.fairway.show(&["bmp"])?;
    ensure!(shown.pointer("/items/0/state").is_some_and(|it| it == "connected"), "{shown:#}");

    scene.monitor("")?;
    wait_until("the last word", PATIENCE, || {
        let (_, heard) = station.heard();
        let last = heard.lines.last().map(String::as_str);
        ensure!(last == Some("termination AdministrativelyClosed"), "{last:?}");
        ensure!(heard.has_ended, "the connection is still there");
        Ok(())
    })
}

fn begins(station: &Station) -> Result<()> {
    let (_, heard) = station.heard();
    let first = heard.lines.first().context("nothing")?;
    ensure!(first.starts_with("initiation Fairway "), "{first}");
    Ok(())
}

/// Waits until the connection of this number has said all of these.
fn said(station: &Station, number: usize, expected: &[&str]) -> Result<()> {
    wait_until("the station has heard it", 3 * PATIENCE, || {
        let (count, heard) = station.heard();
        ensure!(count == number, "connection {count} and not {number}");
        let missing: Vec<_> =
            expected.iter().filter(|it| !heard.lines.iter().any(|line| line == **it)).collect();
        ensure!(missing.is_empty(), "missing {missing:#?} in {:#?}", heard.lines);
        Ok(())
    })
}

const ROUTES: u32 = 100_000;
/// Routes, 16 MiB for the thread, 16 MiB for a station, and what the libraries keep.
const GROWTH_KIBIBYTES_MAX: u64 = 200 * 1024;

fn never_reads(cell: &Cell) -> Result<()> {
    let mut scene = Scene::build(cell)?;
    let deaf = Station::deaf(&scene.node)?;
    let reads = Station::start(&scene.node)?;
    let deaf_told = format!("{{address: 127.0.0.1, port: {}, monitor: {ALL}}}", deaf.port);
    let reads_told = format!("{{address: 127.0.0.1, port: {}, monitor: [locRIB]}}", reads.port);
    scene.start(&format!("{deaf_told}, {reads_told}"))?;
    wait_until("the stations are connected", PATIENCE, || {
        ensure!(deaf.heard().0 > 0 && reads.heard().0 > 0, "they are not");
        Ok(())
    })?;
    let before = scene.resident_kibibytes()?;
    let prefix = |it: u32| format!("{}/32", std::net::Ipv4Addr::from(0x6440_0000 + it));
    let prefixes: Vec<String> = (0..ROUTES).map(prefix).collect();
    scene.route(&prefixes)?;
    wait_until("the other station has all routes", 12 * PATIENCE, || {
        let (_, heard) = reads.heard();
        let routes = heard.lines.iter().filter(|it| it.starts_with("loc-rib 100."));
        let known: BTreeSet<&String> = routes.collect();
        ensure!(known.len() == ROUTES as usize, "{} routes", known.len());
        Ok(())
    })?;
    let mut most = 0;
    wait_until("the one that reads nothing is given up", Duration::from_secs(90), || {
        most = most.max(scene.resident_kibibytes()?);
        let shown = scene.fairway.show(&["bmp"])?;
        let items = shown["items"].as_array().context("no items")?;
        let of_deaf = items.iter().find(|it| it["port"] == deaf.port).context("not shown")?;
        let queued = of_deaf["queuedBytes"].as_u64().context("no bytes")?;
        ensure!(queued <= 16 << 20, "{queued} bytes wait");
        let problem = of_deaf["problem"].as_str().context("no problem yet")?;
        ensure!(
            problem.starts_with("it has taken nothing") || problem.starts_with("it is too slow")
        );
        Ok(())
    })?;
    let growth = most.saturating_sub(before);
    println!("memory grew by {growth} KiB with {ROUTES} routes");
    ensure!(growth < GROWTH_KIBIBYTES_MAX, "memory grew by {growth} KiB");
    let neighbour = scene.fairway.show(&["bgp", "neighbors", "10.0.0.2"])?;
    let of = |name: &str| neighbour["10.0.0.2"][name].clone();
    ensure!(of("connectionsEstablished") == 1 && of("bgpState") == "Established", "{neighbour:#}");
    Ok(())
}
