//! One machine: pools from files, blocks on disk.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Scene, bridge, ptp};
use crate::daemon::{Daemon, pool, spool};
use crate::runtime::{Container, Runtime};
use lab::namespace::Namespace;
use lab::wait::{PATIENCE, holds_for, wait_until};

pub(super) fn daemon(scene: &Scene) -> Result<Daemon> {
    let pools = [pool("v4", "10.244.0.0/16", 26), pool("v6", "fd00:244::/64", 122)];
    let mut daemon = Daemon::on_disk(&scene.directory, "n1", &pools)?;
    daemon.start()?;
    Ok(daemon)
}

/// How many addresses the blocks on disk say are taken.
pub(super) fn taken(directory: &Path) -> Result<usize> {
    let mut taken = 0;
    for entry in std::fs::read_dir(directory.join("state/ipam-blocks"))? {
        let path = entry?.path();
        // A file that is being written has another ending.
        if path.extension().is_none_or(|it| it != "json") {
            continue;
        }
        let block: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let slots = block["spec"]["allocations"].as_array().context("allocations")?;
        taken += slots.iter().filter(|it| !it.is_null()).count();
    }
    Ok(taken)
}

pub(super) fn containers_of_two_families_reach_each_other(scene: &Scene) -> Result<()> {
    let count = if scene.is_short { 6 } else { 200 };
    let _daemon = daemon(scene)?;
    let host = Namespace::create(scene.cell, "host")?;
    host.enable_forwarding()?;
    let runtime = Runtime::new(&host, scene.plugins()?, &scene.directory, ptp()?)?;
    reach_each_other(scene, &runtime, count, 0)
}

pub(super) fn containers_on_a_bridge_reach_each_other_with_each_set_of_plugins(
    scene: &Scene,
) -> Result<()> {
    let _daemon = daemon(scene)?;
    for plugins in &scene.plugins {
        let host = Namespace::create(scene.cell, "host")?;
        host.enable_forwarding()?;
        let runtime = Runtime::new(&host, plugins, &scene.directory, bridge()?)?;
        // Each of two blocks has a gateway, which stays.
        reach_each_other(scene, &runtime, 5, 2)
            .with_context(|| format!("with the plugins of CNI {}", plugins.version))?;
    }
    Ok(())
}

/// Makes containers that ping each other, and takes them away. `stays` addresses are taken before and after.
fn reach_each_other(
    scene: &Scene,
    runtime: &Runtime<'_>,
    count: usize,
    stays: usize,
) -> Result<()> {
    let containers: Vec<Container> =
        (0..count).map(|it| runtime.add(scene.cell, &format!("c{it}"))).collect::<Result<_>>()?;
    let mut addresses: Vec<String> = containers.iter().flat_map(Container::addresses).collect();
    addresses.sort_unstable();
    addresses.dedup();
    ensure!(addresses.len() == 2 * count, "{} addresses of {count} containers", addresses.len());
    let on_disk = taken(&scene.directory)?;
    ensure!(on_disk == 2 * count + stays, "{on_disk} addresses are on disk");
    for (place, container) in containers.iter().enumerate() {
        let other = containers.get((place + 1) % count).context("another container")?;
        for address in other.addresses() {
            container.namespace.run("busybox", &["ping", "-c", "1", "-W", "5", &address])?;
        }
        let of_bridge = runtime.configuration["type"] == "bridge";
        let checked = runtime.check(container)?;
        ensure!(!of_bridge || checked.code == 0, "{checked:?}");
    }
    for container in &containers {
        runtime.delete(container)?;
        // A runtime may repeat it.
        runtime.delete(container)?;
    }
    let left = taken(&scene.directory)?;
    ensure!(left == stays, "{left} addresses stay behind");
    let links = runtime.host.ip(&["-br", "link"])?;
    ensure!(!links.contains("veth"), "interfaces stay behind: {links}");
    Ok(())
}

pub(super) fn a_deletion_without_a_daemon_waits_for_the_next(scene: &Scene) -> Result<()> {
    let mut daemon = daemon(scene)?;
    let host = Namespace::create(scene.cell, "host")?;
    let runtime = Runtime::new(&host, scene.plugins()?, &scene.directory, ptp()?)?;
    let container = runtime.add(scene.cell, "c1")?;
    let stays = runtime.add(scene.cell, "c2")?;
    daemon.fairway.kill()?;
    runtime.delete(&container)?;
    ensure!(std::fs::read_dir(spool(&scene.directory))?.count() == 1, "nothing waits");
    let refused = runtime.ask("ADD", "c3", &runtime.configuration)?;
    ensure!(refused.error() == Some(11), "{refused:?}");
    let status = runtime.ask("STATUS", "", &runtime.configuration)?;
    ensure!(runtime.plugins.version != "1.1.0" || status.error() == Some(50), "{status:?}");
    ensure!(taken(&scene.directory)? == 4, "{} are taken", taken(&scene.directory)?);
    daemon.start()?;
    wait_until("the addresses are released", PATIENCE, || {
        ensure!(taken(&scene.directory)? == 2, "{} are taken", taken(&scene.directory)?);
        ensure!(std::fs::read_dir(spool(&scene.directory))?.count() == 0, "it still waits");
        Ok(())
    })?;
    // A container that lives has kept its addresses over the restart.
    let again = runtime.ask("ADD", "c2", &runtime.configuration)?.done()?;
    ensure!(crate::runtime::addresses(&again) == stays.addresses(), "{again}");
    runtime.delete(&stays)
}

pub(super) fn a_block_that_cannot_be_read_stops_addresses_and_nothing_else(
    scene: &Scene,
) -> Result<()> {
    let mut daemon = daemon(scene)?;
    let host = Namespace::create(scene.cell, "host")?;
    let runtime = Runtime::new(&host, scene.plugins()?, &scene.directory, ptp()?)?;
    let container = runtime.add(scene.cell, "c1")?;
    daemon.fairway.stop()?;
    let folder = scene.directory.join("state/ipam-blocks");
    let file = std::fs::read_dir(&folder)?.next().context("a block")??.path();
    let text = std::fs::read_to_string(&file)?;
    std::fs::write(&file, text.get(..text.len() / 2).context("half of it")?)?;
    daemon.start()?;
    let refused = runtime.ask("ADD", "c2", &runtime.configuration)?;
    let details = refused.stdout["details"].as_str().unwrap_or_default();
    let name = file.file_name().context("a name")?.to_string_lossy().into_owned();
    ensure!(refused.error() == Some(11) && details.contains(&name), "{refused:?}");
    daemon.fairway.check_running()?;
    // Its runtime need not wait until somebody has repaired the file.
    runtime.delete(&container)?;
    daemon.fairway.stop()?;
    std::fs::write(&file, text)?;
    daemon.start()?;
    wait_until("the addresses are released", PATIENCE, || {
        ensure!(taken(&scene.directory)? == 0, "{} stay behind", taken(&scene.directory)?);
        Ok(())
    })
}

pub(super) fn a_plugin_that_was_ended_is_given_no_address(scene: &Scene) -> Result<()> {
    let daemon = daemon(scene)?;
    let host = Namespace::create(scene.cell, "host")?;
    let runtime = Runtime::new(&host, scene.plugins()?, &scene.directory, ptp()?)?;
    runtime.ask("ADD", "c1", &runtime.configuration)?.done()?;
    let process = Pid::from_raw(daemon.fairway.process_id()?.try_into()?);
    kill(process, Signal::SIGSTOP)?;
    let mut ended = runtime.begin("ADD", "c2")?;
    // The call is in the socket: the plugin waits for its answer.
    holds_for("the plugin waits", Duration::from_millis(300), || {
        ensure!(ended.try_wait()?.is_none(), "it has ended");
        Ok(())
    })?;
    ended.kill()?;
    ended.wait()?;
    kill(process, Signal::SIGCONT)?;
    runtime.ask("ADD", "c3", &runtime.configuration)?.done()?;
    let text = std::fs::read_dir(scene.directory.join("state/ipam-blocks"))?
        .map(|it| Ok(std::fs::read_to_string(it?.path())?))
        .collect::<Result<Vec<String>>>()?
        .concat();
    ensure!(text.contains("pods.c3") && !text.contains("pods.c2"), "{text}");
    Ok(())
}
