//! Two controllers: one leads, and when it ends the other does, and no address moves.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::announcing::serve;
use super::outages::addresses;
use crate::api::word;
use crate::objects::{SYSTEM, service};
use crate::stage::{SHOP, Stage};
use lab::wait::{PATIENCE, now, wait_until};

const LEASE: &str = "fairway-controller";
/// A lease of 15 s expires, is checked every 2 s, and everything is listed again; on a machine that is busy
/// with other tests.
const TAKEOVER: Duration = Duration::from_secs(30);
/// A Lease that was released is taken at the next check; a controller that has just started first sees for
/// 10 s which addresses are released.
const HANDOVER: Duration = Duration::from_secs(20);
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
