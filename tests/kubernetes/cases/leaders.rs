//! Two controllers: one leads, and when it ends the other does, and no address moves.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::announcing::serve;
use super::outages::addresses;
use crate::api::word;
use crate::objects::{SYSTEM, service, service_at};
use crate::stage::{SHOP, Stage};
use lab::wait::{PATIENCE, now, wait_until};

const LEASE: &str = "fairway-controller";
/// A lease of 15 s expires, is checked every 2 s, and everything is listed again; on a machine that is busy
/// with other tests.
const TAKEOVER: Duration = Duration::from_secs(30);
/// A Lease that was released is taken at the next check; on a machine that is busy with other tests.
const HANDOVER: Duration = Duration::from_secs(20);
/// The only controller is back: less than a lease, and less than the 10 s for which a leader without a record
/// of its predecessor assigns nothing.
const RESTART: Duration = Duration::from_secs(8);
const AT_FIRST: usize = 20;

/// The controller that holds the Lease.
fn leader(stage: &Stage) -> Result<usize> {
    let lease = stage.api.get("Lease", SYSTEM, LEASE)?;
    let holder = word(&lease, "/spec/holderIdentity");
    let place = stage.controllers.iter().position(|it| holder.contains(&it.pod.name));
    place.with_context(|| format!("the Lease is held by {holder:?}"))
}

fn create(stage: &Stage, numbers: std::ops::Range<usize>) -> Result<()> {
    let services = numbers.map(|number| service(SHOP, &format!("s-{number:03}"), json!({})));
    services.into_iter().try_for_each(|it| stage.api.create(&it).map(drop))
}

/// Waits until each of so many Services has an address that no other has.
fn all_served(stage: &mut Stage, count: usize, limit: Duration) -> Result<()> {
    wait_until(&format!("{count} Services have addresses"), limit, || {
        stage.check_running()?;
        let all = addresses(stage)?;
        let given: Vec<&String> = all.iter().flat_map(|(_, addresses)| addresses).collect();
        let distinct: BTreeSet<&&String> = given.iter().collect();
        ensure!(distinct.len() == given.len(), "an address was given twice: {all:?}");
        ensure!(given.len() == count, "{} have one", given.len());
        Ok(())
    })
}

/// The leader is killed while Services come: the other leads when the Lease has expired, all get
/// addresses, no address is given twice, and those that were given stay. One that gets SIGTERM hands over
/// at once.
pub(super) fn another_controller_takes_over(stage: &mut Stage) -> Result<()> {
    serve(stage, "198.51.100.0/24")?;
    stage.start_controller(1)?;
    create(stage, 0..AT_FIRST)?;
    all_served(stage, AT_FIRST, PATIENCE)?;
    let first = leader(stage)?;
    let before = addresses(stage)?;

    create(stage, AT_FIRST..AT_FIRST + 5)?;
    stage.controllers[first].kill()?;
    let killed = now();
    create(stage, AT_FIRST + 5..AT_FIRST + 10)?;
    all_served(stage, AT_FIRST + 10, TAKEOVER)?;
    let second = leader(stage)?;
    ensure!(second != first, "the Lease is still that of the killed controller");
    println!(
        "  the other leads {:.1} s after the leader was killed",
        killed.elapsed().as_secs_f32()
    );
    let after = addresses(stage)?;
    ensure!(before.is_subset(&after), "addresses were {before:?}, and are {after:?}");

    stage.start_controller(first)?;
    stage.controllers[second].stop()?;
    let ended = now();
    create(stage, AT_FIRST + 10..AT_FIRST + 15)?;
    all_served(stage, AT_FIRST + 15, HANDOVER)?;
    println!("  handed over within {:.1} s", ended.elapsed().as_secs_f32());
    ensure!(leader(stage)? == first, "the Lease is not the new one's");
    if first != 0 {
        stage.start_controller(0)?;
        stage.controllers[first].stop()?;
        wait_until("the first controller leads", HANDOVER, || {
            ensure!(leader(stage)? == 0, "it does not");
            Ok(())
        })?;
    }
    Ok(())
}

/// The only controller ends in order, and is killed and started again in its Pod: each time a Service that was
/// created meanwhile has an address at once, and one that asks for the address of a Service that was deleted
/// meanwhile gets it only when routers have forgotten that.
pub(super) fn a_restarted_controller_assigns_at_once(stage: &mut Stage) -> Result<()> {
    serve(stage, "198.51.100.0/24")?;
    create(stage, 0..AT_FIRST)?;
    all_served(stage, AT_FIRST, PATIENCE)?;
    let place = leader(stage)?;
    for (round, how) in ["ended in order", "killed"].into_iter().enumerate() {
        let controller = stage.controllers.get_mut(place).context("a controller")?;
        if round == 0 {
            controller.stop()?
        } else {
            controller.kill()?
        }
        let gone = format!("s-{round:03}");
        let freed = address_of(stage, &gone)?;
        stage.api.delete("Service", SHOP, &gone)?;
        stage.api.create(&service_at(SHOP, &format!("heir-{round}"), &freed, json!({})))?;
        create(stage, AT_FIRST + round..AT_FIRST + round + 1)?;
        stage.start_controller(place)?;
        let started = now();
        let new = format!("s-{:03}", AT_FIRST + round);
        wait_until("a new Service has an address", RESTART, || {
            stage.check_running()?;
            address_of(stage, &new).map(drop)
        })?;
        println!(
            "  {how}: a new Service has an address {:.1} s after the start",
            started.elapsed().as_secs_f32()
        );
        ensure!(
            address_of(stage, &format!("heir-{round}")).is_err(),
            "the address of a Service that was just deleted is assigned at once"
        );
        wait_until("its address is assigned again", TAKEOVER, || {
            ensure!(address_of(stage, &format!("heir-{round}"))? == freed, "another one");
            Ok(())
        })?;
    }
    Ok(())
}

fn address_of(stage: &Stage, name: &str) -> Result<String> {
    let service = stage.api.get("Service", SHOP, name)?;
    let address = word(&service, "/status/loadBalancer/ingress/0/ip").to_owned();
    ensure!(!address.is_empty(), "{name} has no address");
    Ok(address)
}
