//! The plugin is killed, and its runtime does what runtimes do then: it deletes the container, or repeats its call.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Child;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::store::{Store, is_one_of_each_family};
use super::{Scene, ptp};
use crate::daemon::{Daemon, socket};
use crate::runtime::Runtime;
use lab::namespace::Namespace;
use lab::wait::{PATIENCE, now, wait_until};

/// How far the plugin has come when it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It waits for its configuration.
    Started,
    /// Half of its call is sent.
    HalfSent,
    /// The daemon has its call, and has not read it.
    Sent,
    /// The daemon has done what it asked for, and it does not know.
    Served,
}

const STEPS: [Step; 4] = [Step::Started, Step::HalfSent, Step::Sent, Step::Served];

pub(super) fn a_plugin_that_is_killed_at_each_step_leaves_no_address(scene: &Scene) -> Result<()> {
    let (store, mut daemon) = Store::on_disk(scene)?;
    daemon.start()?;
    each_step(scene, &store, &daemon)
}

pub(super) fn a_plugin_that_is_killed_at_each_step_leaves_nothing_in_a_cluster(
    scene: &Scene,
) -> Result<()> {
    let (store, mut daemon) = Store::in_cluster(scene)?;
    daemon.start()?;
    each_step(scene, &store, &daemon)?;
    store.has_no_handles()
}

fn each_step(scene: &Scene, store: &Store, daemon: &Daemon) -> Result<()> {
    let host = Namespace::create(scene.cell, "host")?;
    let runtime = Runtime::new(&host, scene.plugins()?, &scene.directory, ptp()?)?;
    wait_until("the daemon knows the pools", PATIENCE, || {
        runtime.ask("ADD", "stays", &runtime.configuration)?.done()
    })?;
    let mut number = 0;
    for step in STEPS {
        for command in ["ADD", "DEL"] {
            for is_repeated in [false, true] {
                number += 1;
                let id = format!("c{number}");
                let case = || format!("{command} killed when {step:?}, repeated: {is_repeated}");
                killed(store, daemon, &runtime, (step, command, &id))
                    .and_then(|()| recover(store, &runtime, &id, is_repeated))
                    .with_context(case)?;
            }
        }
    }
    runtime.ask("DEL", "stays", &runtime.configuration)?.done()?;
    store.has_taken(0)
}

/// Another container keeps its two addresses all the time.
const STAYS: usize = 2;

/// Begins a call and kills the plugin at a step.
fn killed(
    store: &Store,
    daemon: &Daemon,
    runtime: &Runtime<'_>,
    (step, command, id): (Step, &str, &str),
) -> Result<()> {
    if command == "DEL" {
        runtime.ask("ADD", id, &runtime.configuration)?.done()?;
    }
    if step == Step::Started {
        return kill_started(runtime, command, id);
    }
    let Waiting { mut child, mut plugin, call } = between(daemon, runtime, command, id)?;
    let process = Pid::from_raw(daemon.fairway.process_id()?.try_into()?);
    if step == Step::Sent {
        kill(process, Signal::SIGSTOP)?;
    }
    let mut stream = UnixStream::connect(socket(&daemon.directory))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = if step == Step::HalfSent { call.len() / 2 } else { call.len() };
    stream.write_all(call.get(..length).context("a part of the call")?)?;
    stream.shutdown(Shutdown::Write)?;
    if step != Step::Sent {
        stream.read_to_end(&mut Vec::new())?;
    }
    end(&mut child)?;
    // As the kernel does it for one that is killed.
    drop(stream);
    if step == Step::Sent {
        kill(process, Signal::SIGCONT)?;
    }
    ensure!(plugin.read(&mut [0])? == 0, "the plugin is still there");
    match (step, command) {
        (Step::Served, "ADD") | (Step::HalfSent, "DEL") => store.has_taken(STAYS + 2),
        (Step::Served, _) | (Step::HalfSent, _) => store.has_taken(STAYS),
        (Step::Started | Step::Sent, _) => Ok(()),
    }
}

/// Kills a plugin that runs and has read nothing.
fn kill_started(runtime: &Runtime<'_>, command: &str, id: &str) -> Result<()> {
    let mut child = runtime.ours(command, id).spawn()?;
    let name = format!("/proc/{}/comm", child.id());
    wait_until("the plugin runs", PATIENCE, || {
        let name = std::fs::read_to_string(&name)?;
        ensure!(name.trim_end() == "fairway-cni", "{name} runs");
        Ok(())
    })?;
    end(&mut child)
}

/// A plugin that waits for the answer to its call.
struct Waiting {
    child: Child,
    plugin: UnixStream,
    call: Vec<u8>,
}

/// Starts a plugin that takes the test for the daemon.
fn between(daemon: &Daemon, runtime: &Runtime<'_>, command: &str, id: &str) -> Result<Waiting> {
    let path = daemon.directory.join(format!("{command}-{id}.sock"));
    let listener = UnixListener::bind(&path)?;
    listener.set_nonblocking(true)?;
    let child = runtime.begin_at(&path, command, id)?;
    let (mut plugin, _) = wait_until("the plugin connects", PATIENCE, || Ok(listener.accept()?))?;
    plugin.set_nonblocking(false)?;
    plugin.set_read_timeout(Some(PATIENCE))?;
    let mut call = Vec::new();
    plugin.read_to_end(&mut call)?;
    Ok(Waiting { child, plugin, call })
}

fn end(child: &mut Child) -> Result<()> {
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// The runtime repeats the call for a new container, or goes on to delete it.
fn recover(store: &Store, runtime: &Runtime<'_>, id: &str, is_repeated: bool) -> Result<()> {
    if is_repeated {
        let result = runtime.ask("ADD", id, &runtime.configuration)?.done()?;
        ensure!(is_one_of_each_family(&result), "{result}");
        store.has_taken(STAYS + 2)?;
    }
    runtime.ask("DEL", id, &runtime.configuration)?.done()?;
    store.has_taken(STAYS)
}

pub(super) fn a_plugin_that_is_killed_at_any_moment_leaves_no_address(scene: &Scene) -> Result<()> {
    let (store, mut daemon) = Store::on_disk(scene)?;
    daemon.start()?;
    let seed = seed()?;
    let outcome = any_moment(scene, &store, seed);
    outcome
        .and_then(|()| without_daemon(scene, &store, &mut daemon, seed))
        .with_context(|| seen(seed))
}

pub(super) fn a_plugin_that_is_killed_at_any_moment_leaves_nothing_in_a_cluster(
    scene: &Scene,
) -> Result<()> {
    let (store, mut daemon) = Store::in_cluster(scene)?;
    daemon.start()?;
    let seed = seed()?;
    any_moment(scene, &store, seed).with_context(|| seen(seed))?;
    store.has_no_handles()
}

fn seen(seed: u64) -> String {
    format!("FAIRWAY_SEED={seed}")
}

/// What decides the moments: `FAIRWAY_SEED`, else the process id.
fn seed() -> Result<u64> {
    match std::env::var("FAIRWAY_SEED") {
        Ok(text) => text.parse().with_context(|| format!("FAIRWAY_SEED={text}: not a number")),
        Err(_) => Ok(u64::from(std::process::id())),
    }
}

fn any_moment(scene: &Scene, store: &Store, seed: u64) -> Result<()> {
    let count = if scene.is_short { 60 } else { 400 };
    let host = Namespace::create(scene.cell, "host")?;
    let runtime = Runtime::new(&host, scene.plugins()?, &scene.directory, ptp()?)?;
    wait_until("the daemon knows the pools", PATIENCE, || {
        runtime.ask("ADD", "stays", &runtime.configuration)?.done()
    })?;
    let whole = length_of_a_call(&runtime)?;
    let mut random = Rng::with_seed(seed);
    for number in 0..count {
        let id = format!("c{number}");
        // A runtime may have several attempts.
        for _ in 0..random.usize(1..4) {
            let command = if random.bool() { "ADD" } else { "DEL" };
            kill_within(&runtime, command, &id, whole.mul_f64(random.f64()))?;
        }
        recover(store, &runtime, &id, random.bool()).with_context(|| format!("container {id}"))?;
    }
    runtime.ask("DEL", "stays", &runtime.configuration)?.done()?;
    store.has_taken(0)
}

/// Somewhat longer than a call takes.
fn length_of_a_call(runtime: &Runtime<'_>) -> Result<Duration> {
    let begun = now();
    for command in ["ADD", "DEL"] {
        runtime.ask(command, "measured", &runtime.configuration)?.done()?;
    }
    Ok(begun.elapsed())
}

/// Kills the plugin when it is so old, unless it has ended.
fn kill_within(runtime: &Runtime<'_>, command: &str, id: &str, age: Duration) -> Result<()> {
    let begun = now();
    let mut child = runtime.begin(command, id)?;
    while begun.elapsed() < age && child.try_wait()?.is_none() {
        std::thread::yield_now();
    }
    end(&mut child)
}

/// A plugin without a daemon is killed while it notes that a container is deleted.
fn without_daemon(scene: &Scene, store: &Store, daemon: &mut Daemon, seed: u64) -> Result<()> {
    let host = Namespace::create(scene.cell, "other")?;
    let runtime = Runtime::new(&host, scene.plugins()?, &scene.directory, ptp()?)?;
    let ids: Vec<String> = (0..20).map(|it| format!("d{it}")).collect();
    for id in &ids {
        runtime.ask("ADD", id, &runtime.configuration)?.done()?;
    }
    store.has_taken(2 * ids.len())?;
    let whole = length_of_a_call(&runtime)?;
    let mut random = Rng::with_seed(seed);
    daemon.fairway.kill()?;
    for id in &ids {
        kill_within(&runtime, "DEL", id, whole.mul_f64(random.f64()))?;
        runtime.ask("DEL", id, &runtime.configuration)?.done()?;
    }
    daemon.start()?;
    wait_until("the addresses are released", PATIENCE, || store.has_taken(0))
}
