//! The API server goes away, and daemons end meanwhile: no router loses a route.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::announcing::serve;
use crate::api::word;
use crate::install;
use crate::objects::{SYSTEM, service_at, slice};
use crate::stage::{CATCH_UP, NODES, ROUTERS, SHOP, Stage};
use lab::wait::{PATIENCE, holds_for, wait_until};

/// Announced by all nodes, and by one each, so that a router's kernel reports each withdrawal.
const EVERYWHERE: &str = "192.0.2.60";
const AT_ONE: [&str; 3] = ["192.0.2.61", "192.0.2.62", "192.0.2.63"];

/// How long the API server is away after everything else has happened.
const SHORT: Duration = Duration::from_secs(3);
const LONG: Duration = Duration::from_secs(300);

/// Every route of the case, and its nodes.
pub(super) fn announced() -> Vec<(&'static str, Vec<&'static str>)> {
    let at_one = AT_ONE.iter().zip(NODES).map(|(prefix, node)| (*prefix, vec![node]));
    [(EVERYWHERE, NODES.to_vec())].into_iter().chain(at_one).collect()
}

pub(super) fn prefixes() -> BTreeSet<String> {
    announced().iter().map(|(address, _)| format!("{address}/32")).collect()
}

pub(super) fn announce(stage: &mut Stage) -> Result<()> {
    serve(stage, "192.0.2.0/24")?;
    for (address, nodes) in announced() {
        let name = format!("at-{}", address.replace('.', "-"));
        let policy = if nodes.len() == 1 { "Local" } else { "Cluster" };
        let endpoints: Vec<_> = nodes.iter().map(|node| (*node, true)).collect();
        stage.api.apply_all(&[
            service_at(SHOP, &name, address, json!({ "externalTrafficPolicy": policy })),
            slice(SHOP, &name, &endpoints),
        ])?;
    }
    for (address, nodes) in announced() {
        stage.routes_become(address, &nodes)?;
    }
    Ok(())
}

/// For so long, every router has every path.
fn nothing_moves(stage: &mut Stage, period: Duration) -> Result<()> {
    holds_for("every router has every path", period, || {
        stage.check_running()?;
        let all = announced();
        all.iter().try_for_each(|(address, nodes)| stage.check_routes(&ROUTERS, address, nodes))
    })
}

/// The API server is away; the controller and a speaker are killed, and the speaker starts again without
/// an API server; then the API server is back. No router receives a withdrawal, no address changes, and
/// what happens next is followed.
pub(super) fn an_outage_withdraws_nothing(stage: &mut Stage) -> Result<()> {
    announce(stage)?;
    let before = stage.withdrawals(&prefixes())?.len();
    let statuses = addresses(stage)?;
    // What is in force has to be on disk: the speaker writes it at most once a second.
    nothing_moves(stage, Duration::from_millis(1500))?;

    stage.api_server_goes()?;
    stage.controllers[0].kill()?;
    stage.speakers[1].daemon.kill()?;
    nothing_moves(stage, Duration::from_millis(500))?;
    stage.start_speaker(1)?;
    session_is_back(stage, "node-b")?;
    stage.start_controller(0)?;
    nothing_moves(stage, if stage.is_long { LONG } else { SHORT })?;
    // One that ends as for an upgrade, too: it cannot query whether its node goes, so it stays.
    stage.speakers[2].daemon.stop()?;
    stage.start_speaker(2)?;
    session_is_back(stage, "node-c")?;
    nothing_moves(stage, Duration::from_millis(500))?;
    is_outdated(stage, true)?;

    stage.api_server_is_back()?;
    stage.api.apply(&slice(SHOP, "at-192-0-2-61", &[("node-a", true), ("node-b", true)]))?;
    stage.routes_become(AT_ONE[0], &["node-a", "node-b"])?;
    stage.api.apply(&service_at(SHOP, "new", "192.0.2.70", json!({})))?;
    stage.addresses_become("new", &["192.0.2.70"])?;
    is_outdated(stage, false)?;
    let gone = stage.withdrawals(&prefixes())?;
    ensure!(gone.len() == before, "routers received withdrawals: {:?}", &gone[before..]);
    let now = addresses(stage)?;
    ensure!(statuses.is_subset(&now), "addresses were {statuses:?}, and are {now:?}");
    // All speakers watch again: one that lists after the next case has deleted all would hold it.
    stage.api.delete("Service", SHOP, "at-192-0-2-61")?;
    stage.routes_become(AT_ONE[0], &[])
}

/// A library that gives a process another time.
const OTHER_TIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// The clock of a node is twenty years behind, so to it the certificate of the API server is not valid yet: the speaker
/// announces what it knew, and says what is wrong.
pub(super) fn a_wrong_clock_is_named(stage: &mut Stage) -> Result<()> {
    announce(stage)?;
    nothing_moves(stage, Duration::from_millis(1500))?;
    let speaker = stage.speakers.first_mut().context("a speaker")?;
    speaker.daemon.stop()?;
    let variables =
        [("LD_PRELOAD", OTHER_TIME), ("FAKETIME", "-20y"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")];
    let more = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    speaker.pod.variables.extend(more);
    stage.start_speaker(0)?;
    session_is_back(stage, "node-a")?;
    // The library stops the clock that durations are measured by: requests that have not failed yet may wait.
    first_line(stage, 0, "; the API server has not answered")?;
    first_line(stage, 0, "certificate not valid yet")?;
    let speaker = stage.speakers.first_mut().context("a speaker")?;
    speaker.daemon.stop()?;
    let is_kept = |name: &String| variables.iter().all(|(it, _)| it != name);
    speaker.pod.variables.retain(|(name, _)| is_kept(name));
    stage.start_speaker(0)?;
    session_is_back(stage, "node-a")?;
    is_outdated(stage, false)
}

/// Waits until the first line about a Service has a phrase.
fn first_line(stage: &Stage, speaker: usize, phrase: &str) -> Result<()> {
    wait_until(&format!("explain says {phrase:?}"), PATIENCE, || {
        let speaker = stage.speakers.get(speaker).context("a speaker")?;
        let explained = speaker.daemon.explain("service", &format!("{SHOP}/at-192-0-2-60"))?;
        let first = explained.lines().next().unwrap_or_default();
        ensure!(first.contains(phrase), "{}: {first}", speaker.node);
        Ok(())
    })
}

/// Waits until the first line about a Service says, or does not say, that the API server is away: of a speaker that was
/// there before, and of one that started meanwhile.
fn is_outdated(stage: &Stage, expected: bool) -> Result<()> {
    for speaker in stage.speakers.iter().take(2) {
        wait_until(&format!("explain knows of the outage: {expected}"), PATIENCE, || {
            let explained = speaker.daemon.explain("service", &format!("{SHOP}/at-192-0-2-60"))?;
            let first = explained.lines().next().unwrap_or_default();
            let is_said = first.contains("; the API server has not answered (")
                && first.contains(") for 00:00:");
            ensure!(is_said == expected, "{}: {first}", speaker.node);
            Ok(())
        })?;
    }
    Ok(())
}

/// The definitions of peers, pools and advertisements are deleted, which deletes the objects; the definitions and then
/// the objects are applied again, one by one. No router receives a withdrawal, no session ends, no address changes; the
/// log, a metric and an Event tell of it; and a last object that a user deletes goes at once.
pub(super) fn definitions_that_are_removed_withdraw_nothing(stage: &mut Stage) -> Result<()> {
    announce(stage)?;
    let before = stage.withdrawals(&prefixes())?.len();
    let statuses = addresses(stage)?;
    let sessions = sessions(stage)?;
    let mut objects = Vec::new();
    for (kind, definition) in DEFINED {
        for mut object in stage.api.list(kind, SYSTEM)? {
            let kept = ["name", "namespace"].map(|field| (field, object["metadata"][field].take()));
            object["metadata"] = kept.into_iter().collect();
            object["kind"] = json!(kind);
            objects.push(object);
        }
        stage.kubectl(&["delete", "customresourcedefinition", definition])?;
    }
    ensure!(objects.len() > DEFINED.len(), "there were {objects:?}");
    nothing_moves(stage, SHORT)?;
    is_held(stage, 1)?;
    let events = stage.api.list("Event", SYSTEM)?;
    let held: BTreeSet<&str> = events
        .iter()
        .filter(|event| word(event, "/reason") == "ObjectsHeld")
        .map(|event| word(event, "/involvedObject/kind"))
        .collect();
    ensure!(held == DEFINED.map(|(kind, _)| kind).into(), "there are Events about {held:?}");

    install::real(stage.cluster()?)?;
    for object in &objects {
        stage.api.apply(object)?;
        nothing_moves(stage, Duration::from_millis(100))?;
    }
    is_held(stage, 0)?;
    let gone = stage.withdrawals(&prefixes())?;
    ensure!(gone.len() == before, "routers received withdrawals: {:?}", &gone[before..]);
    ensure!(self::sessions(stage)? == sessions, "sessions have ended");
    ensure!(addresses(stage)? == statuses, "addresses were {statuses:?}");

    stage.api.delete("BGPAdvertisement", SYSTEM, "main")?;
    stage.routes_become(EVERYWHERE, &[])
}

const DEFINED: [(&str, &str); 3] = [
    ("BGPPeer", "bgppeers.metallb.io"),
    ("IPAddressPool", "ipaddresspools.metallb.io"),
    ("BGPAdvertisement", "bgpadvertisements.metallb.io"),
];

/// Waits until the metric of all speakers has this value.
fn is_held(stage: &mut Stage, value: u8) -> Result<()> {
    let expected = format!("fairway_kubernetes_list_held_bool {value}");
    lab::wait::wait_until(&expected.clone(), CATCH_UP, || {
        stage.check_running()?;
        for node in &stage.nodes {
            let page = node.run("curl", &["-s", "http://127.0.0.1:7472/metrics"])?;
            let mut lines = page.lines();
            let line = lines.find(|line| line.starts_with("fairway_kubernetes_list_held_bool"));
            ensure!(line == Some(&*expected), "it is {line:?}");
        }
        Ok(())
    })
}

/// Which session of each router this is.
fn sessions(stage: &Stage) -> Result<Vec<String>> {
    stage.routers.iter().map(|it| Ok(it.router.session()?.incarnation)).collect()
}

/// Waits until a speaker that has restarted has sent everything to both routers.
pub(super) fn session_is_back(stage: &mut Stage, node: &str) -> Result<()> {
    let place = NODES.iter().position(|it| *it == node).unwrap_or_default();
    for peer in ["10.90.0.21", "10.90.0.22"] {
        lab::wait::wait_until(&format!("{node} has a session with {peer}"), PATIENCE, || {
            stage.check_running()?;
            let speaker = &stage.speakers[place];
            let neighbour = speaker.daemon.neighbour(peer)?;
            ensure!(neighbour.is_established(), "it is {}", neighbour.state);
            Ok(())
        })?;
    }
    Ok(())
}

/// Services and their statuses.
pub(super) fn addresses(stage: &Stage) -> Result<BTreeSet<(String, Vec<String>)>> {
    let services = stage.api.list("Service", SHOP)?;
    let of = |it: &serde_json::Value| {
        (crate::api::word(it, "/metadata/name").to_owned(), crate::api::addresses_of(it))
    };
    Ok(services.iter().map(of).collect())
}
