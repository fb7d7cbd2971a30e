//! Another program writes the same objects at the same time, as Calico's nodes do.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use super::cluster;
use super::{Scene, ptp};
use crate::daemon::Daemon;
use crate::runtime::{Runtime, addresses};
use crate::writer::Writer;
use lab::cluster::Cluster;
use lab::fairway::program;
use lab::namespace::Namespace;
use lab::process::{bounded, output_of};
use lab::wait::{PATIENCE, wait_until};

const NODES: [&str; 6] = ["n1", "w0", "w1", "w2", "w3", "w4"];
const POOL: &str = "10.244.0.0/24";
const BLOCK_LENGTH: u8 = 28;
/// The most addresses that a task has at a time.
const HELD_MAX: usize = 2;

/// Who has which address, as those say who were given them.
#[derive(Default)]
struct Register(Mutex<BTreeMap<Ipv4Addr, String>>);

impl Register {
    fn given(&self, address: Ipv4Addr, owner: &str) -> Result<()> {
        let mut register = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match register.insert(address, owner.to_owned()) {
            None => Ok(()),
            Some(before) => Err(anyhow!("{address} was given to {owner}, and {before} has it")),
        }
    }

    /// It may be anybody's from now on.
    fn returned(&self, owner: &str) {
        let mut register = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        register.retain(|_, it| it != owner);
    }
}

/// One task: takes addresses and gives them back, each time another one's name.
fn work(
    register: &Register,
    name: &str,
    count: usize,
    assign: impl Fn(&str) -> Result<Option<Ipv4Addr>>,
    release: impl Fn(&str) -> Result<()>,
) -> Result<()> {
    let mut held: Vec<String> = Vec::new();
    for number in 0..count {
        let owner = format!("{name}-{number}");
        if let Some(address) = assign(&owner).with_context(|| owner.clone())? {
            register.given(address, &owner)?;
            held.push(owner);
        }
        if held.len() > HELD_MAX {
            let owner = held.remove(0);
            register.returned(&owner);
            release(&owner).with_context(|| owner.clone())?;
        }
    }
    for owner in held {
        register.returned(&owner);
        release(&owner).with_context(|| owner.clone())?;
    }
    Ok(())
}

pub(super) fn another_writer_and_the_daemon_give_no_address_twice(scene: &Scene) -> Result<()> {
    let (tasks, of_task, callers, of_caller) =
        if scene.is_short { (8, 15, 2, 15) } else { (50, 160, 4, 500) };
    let cluster = cluster::cluster(scene, &NODES)?;
    let mut daemon = Daemon::in_cluster(&scene.directory, "n1", &cluster)?;
    daemon.start()?;
    let host = Namespace::create(scene.cell, "host")?;
    let mut runtime = Runtime::new(&host, scene.plugins()?, &scene.directory, ptp()?)?;
    runtime.configuration["ipam"]["assign_ipv6"] = "false".into();
    let runtime = &runtime;
    wait_until("the daemon knows the pools", PATIENCE, || {
        runtime.ask("ADD", "first", &runtime.configuration)?.done()
    })?;
    let register = Register::default();
    let outcomes: Vec<Result<()>> = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for task in 0..tasks {
            let (register, cluster) = (&register, &cluster);
            running.push(scope.spawn(move || {
                let node = format!("w{}", task % 5);
                let writer =
                    Writer { cluster, node, pool: POOL.parse()?, block_length: BLOCK_LENGTH };
                let name = format!("task{task}");
                work(register, &name, of_task, |it| writer.assign(it), |it| writer.release(it))
            }));
        }
        for caller in 0..callers {
            let register = &register;
            running.push(scope.spawn(move || {
                let name = format!("caller{caller}");
                work(register, &name, of_caller, |it| add(runtime, it), |it| delete(runtime, it))
            }));
        }
        let ended = |it: std::thread::ScopedJoinHandle<'_, Result<()>>| {
            it.join().unwrap_or_else(|_| Err(anyhow!("a task panicked")))
        };
        running.into_iter().map(ended).collect()
    });
    outcomes.into_iter().collect::<Result<()>>()?;
    check(scene, &cluster)?;
    ensure!(cluster::taken(&cluster)? == 1, "{} are taken", cluster::taken(&cluster)?);
    let handles = cluster::list(&cluster, "ipamhandles")?;
    ensure!(handles.len() == 1, "handles stay behind: {handles:?}");
    // Each releases what the other has written.
    let writer = Writer {
        cluster: &cluster,
        node: "w0".to_owned(),
        pool: POOL.parse()?,
        block_length: BLOCK_LENGTH,
    };
    writer.release("pods.first")?;
    ensure!(cluster::taken(&cluster)? == 0, "the other writer has not released it");
    runtime.ask("DEL", "first", &runtime.configuration)?.done()?;
    // As containers of Calico's releases: without a note of the interface.
    writer.assign("pods.of-calico")?.context("an address")?;
    runtime.ask("DEL", "of-calico", &runtime.configuration)?.done()?;
    ensure!(cluster::taken(&cluster)? == 0, "the daemon has not released it");
    check(scene, &cluster)
}

fn add(runtime: &Runtime<'_>, id: &str) -> Result<Option<Ipv4Addr>> {
    let ended = runtime.ask("ADD", id, &runtime.configuration)?;
    // Others have all addresses, or have forestalled it too often: a runtime deletes the container then.
    if ended.error() == Some(11) {
        delete(runtime, id)?;
        return Ok(None);
    }
    let result = ended.done()?;
    Ok(Some(addresses(&result).pop().context("an address")?.parse()?))
}

fn delete(runtime: &Runtime<'_>, id: &str) -> Result<()> {
    runtime.ask("DEL", id, &runtime.configuration)?.done().map(drop)
}

/// `fairway ipam check` finds nothing wrong with what both have written.
fn check(scene: &Scene, cluster: &Cluster) -> Result<()> {
    let kinds = ["ippools", "ipamblocks", "blockaffinities", "ipamhandles"];
    let mut items: Vec<Value> = Vec::new();
    for kind in kinds {
        items.extend(cluster::list(cluster, kind)?);
    }
    let file = scene.directory.join("objects.json");
    std::fs::write(&file, serde_json::json!({"items": items}).to_string())?;
    let file = file.display().to_string();
    output_of(bounded(program()).args(["ipam", "check", &file])).map(drop)
}
