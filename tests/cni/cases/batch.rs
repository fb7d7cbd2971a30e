//! Many containers are added at once, and the daemon is killed before all of them have their addresses.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, anyhow, ensure};

use super::store::{Store, is_one_of_each_family};
use super::{Scene, ptp};
use crate::daemon::Daemon;
use crate::runtime::{Ended, Runtime, addresses};
use lab::namespace::Namespace;
use lab::wait::{PATIENCE, now, wait_until};

/// How many times, each time later.
const ROUNDS: usize = 4;

/// What each container was given.
type Given = BTreeMap<String, Vec<String>>;

pub(super) fn a_daemon_that_is_killed_in_a_batch_gives_no_address_twice(
    scene: &Scene,
) -> Result<()> {
    let (store, daemon) = Store::on_disk(scene)?;
    rounds(scene, &store, daemon)
}

pub(super) fn a_daemon_of_a_cluster_that_is_killed_in_a_batch_gives_no_address_twice(
    scene: &Scene,
) -> Result<()> {
    let (store, daemon) = Store::in_cluster(scene)?;
    rounds(scene, &store, daemon)?;
    store.has_no_handles()
}

fn rounds(scene: &Scene, store: &Store, mut daemon: Daemon) -> Result<()> {
    let count = if scene.is_short { 60 } else { 200 };
    let host = Namespace::create(scene.cell, "host")?;
    let runtime = Runtime::new(&host, scene.plugins()?, &scene.directory, ptp()?)?;
    daemon.start()?;
    wait_until("the daemon knows the pools", PATIENCE, || {
        runtime.ask("ADD", "first", &runtime.configuration)?.done()
    })?;
    runtime.ask("DEL", "first", &runtime.configuration)?.done()?;
    let mut unanswered = 0;
    for round in 0..ROUNDS {
        let ids: Vec<String> = (0..count).map(|it| format!("r{round}-c{it}")).collect();
        let limit = 2 * count * round / ROUNDS;
        unanswered += round_of(store, &mut daemon, &runtime, &ids, limit)
            .with_context(|| format!("killed when more than {limit} addresses were taken"))?;
    }
    ensure!(unanswered > 0, "the daemon had always answered all calls when it was killed");
    Ok(())
}

/// Adds all at once, kills the daemon when it has given more than `limit` addresses, and repeats the calls. Returns how many
/// of them it had not answered.
fn round_of(
    store: &Store,
    daemon: &mut Daemon,
    runtime: &Runtime<'_>,
    ids: &[String],
    limit: usize,
) -> Result<usize> {
    store.has_taken(0)?;
    let before: Given = std::thread::scope(|scope| {
        let calls = scope.spawn(|| add_all(runtime, ids, |it| Ok(it.clone())));
        let killed = wait_closely(store, limit).and_then(|()| daemon.fairway.kill());
        let answered = calls.join().map_err(|_| anyhow!("a call panicked"))??;
        killed.map(|()| given(&answered))
    })?;
    daemon.start()?;
    let ended = add_all(runtime, ids, |first| {
        // Its runtime repeats it while it is told to.
        match first.error() {
            Some(11) => Err(anyhow!("{first:?}")),
            _ => first.clone().done().map(|_| first.clone()),
        }
    })?;
    let after = given(&ended);
    ensure!(after.len() == ids.len(), "{} of {} have addresses", after.len(), ids.len());
    ensure!(ended.values().all(|it| is_one_of_each_family(&it.stdout)), "{after:?}");
    for (id, addresses) in &before {
        ensure!(after.get(id) == Some(addresses), "{id} had {addresses:?}: {:?}", after.get(id));
    }
    let unique: BTreeSet<&String> = after.values().flatten().collect();
    ensure!(unique.len() == 2 * ids.len(), "an address was given twice: {after:?}");
    store.has_taken(2 * ids.len())?;
    for id in ids {
        runtime.ask("DEL", id, &runtime.configuration)?.done()?;
    }
    store.has_taken(0)?;
    Ok(ids.len() - before.len())
}

/// Adds containers at the same time; each again until its answer is accepted.
fn add_all(
    runtime: &Runtime<'_>,
    ids: &[String],
    accept: impl Fn(&Ended) -> Result<Ended> + Sync,
) -> Result<BTreeMap<String, Ended>> {
    std::thread::scope(|scope| {
        let add = |id: &String| {
            let answer = || accept(&runtime.ask("ADD", id, &runtime.configuration)?);
            wait_until(&format!("{id} has an answer"), PATIENCE, answer).map(|it| (id.clone(), it))
        };
        let running: Vec<_> = ids.iter().map(|id| scope.spawn(move || add(id))).collect();
        let ended = running.into_iter().map(|it| it.join().map_err(|_| anyhow!("a call panicked")));
        ended.map(|it| it?).collect()
    })
}

fn given(ended: &BTreeMap<String, Ended>) -> Given {
    let successful = ended.iter().filter(|(_, it)| it.code == 0);
    successful.map(|(id, it)| (id.clone(), addresses(&it.stdout))).collect()
}

/// Looks without a pause, since the batch takes only some milliseconds.
fn wait_closely(store: &Store, limit: usize) -> Result<()> {
    let begun = now();
    loop {
        // A file may go between the list and its reading.
        let taken = store.taken();
        if taken.as_ref().is_ok_and(|it| *it > limit) {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "no more than {taken:?} addresses are taken");
    }
}
