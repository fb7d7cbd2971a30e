//! The API server fails in the ways that API servers fail: the daemons follow all the same, and no router
//! loses a route because of it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::announcing::serve;
use super::outages::{announce, announced, prefixes};
use crate::model::Faults;
use crate::objects::{service, slice};
use crate::stage::{NODES, ROUTERS, SHOP, Stage};
use lab::wait::{PATIENCE, holds_for, wait_until};

/// One of the routes moves from node to node, and the routers see it.
fn follows(stage: &mut Stage) -> Result<()> {
    for node in ["node-b", "node-c", "node-a"] {
        stage.api.apply(&slice(SHOP, "at-192-0-2-61", &[(node, true)]))?;
        stage.routes_become("192.0.2.61", &[node])?;
    }
    Ok(())
}

/// The routes that no case withdraws: any withdrawal of those is a fault.
fn quiet() -> BTreeSet<String> {
    prefixes().into_iter().filter(|it| it != "192.0.2.61/32").collect()
}

fn without_withdrawals(
    stage: &mut Stage,
    act: impl FnOnce(&mut Stage) -> Result<()>,
) -> Result<()> {
    let before = stage.withdrawals(&quiet())?.len();
    act(stage)?;
    let gone = stage.withdrawals(&quiet())?;
    ensure!(gone.len() == before, "routers received withdrawals: {:?}", &gone[before..]);
    let all = announced();
    all.iter().try_for_each(|(address, nodes)| stage.check_routes(&ROUTERS, address, nodes))
}

/// All watches end, again and again, while endpoints move: every change arrives.
pub(super) fn watches_that_are_cut_go_on(stage: &mut Stage) -> Result<()> {
    announce(stage)?;
    without_withdrawals(stage, |stage| {
        let before = stage.model()?.counts()?;
        for _ in 0..3 {
            stage.model()?.cut()?;
            follows(stage)?;
        }
        let after = stage.model()?.counts()?;
        let lists = |counts: &crate::model::Counts| counts.of("LIST", "services");
        ensure!(after.of("WATCH", "services") > before.of("WATCH", "services"), "no new watch");
        ensure!(lists(&after) == lists(&before), "a cut watch is no reason to list again");
        Ok(())
    })
}

/// What a watch asks for is not remembered any more, 410: everything is listed again, and what happened
/// meanwhile is seen, a deletion too.
pub(super) fn a_watch_that_is_gone_lists_again(stage: &mut Stage) -> Result<()> {
    announce(stage)?;
    without_withdrawals(stage, |stage| {
        let before = stage.model()?.counts()?.of("LIST", "endpointslices");
        let unavailable = Faults { unavailable: true, ..Faults::default() };
        stage.model()?.set_faults(&unavailable)?;
        stage.model()?.cut()?;
        stage.api.apply(&slice(SHOP, "at-192-0-2-61", &[("node-c", true)]))?;
        stage.model()?.compact()?;
        stage.model()?.set_faults(&Faults::default())?;
        stage.routes_become("192.0.2.61", &["node-c"])?;
        let after = stage.model()?.counts()?.of("LIST", "endpointslices");
        ensure!(after > before, "nothing was listed again");
        stage.model()?.set_faults(&unavailable)?;
        stage.model()?.cut()?;
        stage.api.delete("EndpointSlice", SHOP, "at-192-0-2-61-1")?;
        stage.model()?.compact()?;
        stage.model()?.set_faults(&Faults::default())?;
        stage.routes_become("192.0.2.61", &[])?;
        follows(stage)
    })
}

/// Another client writes each Service just before the controller does, answers are lost, and there is
/// too much at once: every Service gets one address, and no two the same.
pub(super) fn writes_that_fail_are_repeated(stage: &mut Stage) -> Result<()> {
    serve(stage, "192.0.2.0/24")?;
    let faults = Faults { conflicts: 15, lost_answers: 10, too_many: 10, ..Faults::default() };
    stage.model()?.set_faults(&faults)?;
    for number in 0..30 {
        stage.api.create(&service(SHOP, &format!("s-{number:03}"), json!({})))?;
    }
    wait_until("all Services have addresses", 2 * PATIENCE, || {
        stage.check_running()?;
        let services = stage.api.list("Service", SHOP)?;
        let given: Vec<String> = services.iter().flat_map(crate::api::addresses_of).collect();
        let distinct: BTreeSet<&String> = given.iter().collect();
        ensure!(distinct.len() == given.len(), "an address was given twice: {given:?}");
        ensure!(given.len() == services.len(), "{} of {} have one", given.len(), services.len());
        Ok(())
    })?;
    let left = stage.model()?.faults()?;
    ensure!(left == Faults::default(), "not all of it went wrong: {left:?}");
    Ok(())
}

/// Each answer takes two seconds: changes arrive, only later.
pub(super) fn a_slow_api_server_is_followed(stage: &mut Stage) -> Result<()> {
    announce(stage)?;
    without_withdrawals(stage, |stage| {
        let slow = Faults { delay_milliseconds: 2000, ..Faults::default() };
        stage.model()?.set_faults(&slow)?;
        stage.model()?.cut()?;
        follows(stage)
    })
}

/// 503 to everything, for a while: nothing moves, and then everything goes on.
pub(super) fn an_api_server_without_storage_changes_nothing(stage: &mut Stage) -> Result<()> {
    announce(stage)?;
    without_withdrawals(stage, |stage| {
        let unavailable = Faults { unavailable: true, ..Faults::default() };
        stage.model()?.set_faults(&unavailable)?;
        stage.model()?.cut()?;
        stage.api.apply(&slice(SHOP, "at-192-0-2-61", &[("node-b", true)]))?;
        holds_for("no router receives a withdrawal", Duration::from_secs(2), || {
            stage.check_routes(&ROUTERS, "192.0.2.61", &["node-a"])
        })?;
        stage.model()?.set_faults(&Faults::default())?;
        stage.routes_become("192.0.2.61", &["node-b"])?;
        follows(stage)
    })?;
    stage.check_routes(&ROUTERS, "192.0.2.60", &NODES)
}
