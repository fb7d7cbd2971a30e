//! What is tried with the process: its end, its start, and what it needs for both? The router keeps routes while
//! Fairway restarts (RFC 4724), so none goes. Used by the field.

use std::fs::{self, OpenOptions};
use std::net::TcpStream;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::Trial;
use crate::scene::{QUICK, Scene};
use lab::process::{bounded, output_of};
use lab::wait::PATIENCE;

const WITHOUT_STATE: &str = "Fairway starts without what they had, and says so; without a record of what was \
                             announced the router may drop routes until it is told again";
const STATE: &str = "log at the start";
const SESSIONS: &str = "`fairway_bgp_connections_established_total`";

pub(super) const TRIALS: &[Trial] = &[
    Trial::new(
        "kill -9, ten times",
        "the router keeps its routes, the session is back",
        SESSIONS,
        |scene| {
            for _ in 0..10 {
                scene.fairway.kill()?;
                start_again(scene)?;
            }
            Ok(())
        },
    ),
    Trial::new(
        "kill -9 while the session comes up, ten times",
        "the session is back with all routes; the router drops those that it was not sent between two restarts (RFC 4724 §4.2)",
        SESSIONS,
        |scene| {
            for _ in 0..10 {
                scene.fairway.kill()?;
                scene.start()?;
            }
            is_back(scene)
        },
    )
    .may_withdraw(),
    Trial::new(
        "SIGTERM, and a start",
        "the router keeps its routes, the session is back",
        SESSIONS,
        |scene| {
            scene.fairway.stop()?;
            start_again(scene)
        },
    ),
    Trial::new(
        "SIGSTOP for as long as 20 files change, and SIGCONT",
        "the session stays, each change arrives",
        "`fairway_event_to_update_seconds`",
        |scene| {
            scene.signal(Signal::SIGSTOP)?;
            for number in 0..20 {
                scene.apply("service-3", &crate::scene::service_text(3 + number % 2 * 17))?;
            }
            scene.apply("service-3", &crate::scene::service_text(3))?;
            scene.signal(Signal::SIGCONT)
        },
    ),
    Trial::new(
        "a second Fairway with the same state and socket",
        "it ends with an error that names the first, which notices nothing",
        "its error",
        |scene| {
            let config = scene.in_folder("");
            let error = second(scene, &["run", "--config", &config.to_string_lossy()])?;
            ensure!(error.contains("another daemon answers"), "it says: {error}");
            Ok(())
        },
    ),
    Trial::new("the state files are cut in half", WITHOUT_STATE, STATE, |scene| {
        scene.fairway.stop()?;
        for_each_state_file(scene, |path| {
            let half = fs::metadata(path)?.len() / 2;
            OpenOptions::new().write(true).open(path)?.set_len(half).context("cutting it")
        })?;
        start_again(scene)
    })
    .may_withdraw(),
    Trial::new("the state files are filled with zeroes", WITHOUT_STATE, STATE, |scene| {
        scene.fairway.stop()?;
        for_each_state_file(scene, |path| fs::write(path, [0; 4096]).context("writing it"))?;
        start_again(scene)
    })
    .may_withdraw(),
    Trial::new("the state files are of 64 MiB", WITHOUT_STATE, STATE, |scene| {
        scene.fairway.stop()?;
        for_each_state_file(scene, |path| {
            OpenOptions::new().write(true).open(path)?.set_len(64 << 20).context("growing it")
        })?;
        start_again(scene)
    })
    .may_withdraw(),
    Trial::new(
        "the state files are deleted while Fairway runs",
        "nothing changes; the next start is without them",
        STATE,
        |scene| {
            for_each_state_file(scene, |path| fs::remove_file(path).context("removing it"))?;
            scene.fairway.kill()?;
            start_again(scene)
        },
    )
    .may_withdraw(),
    Trial::new(
        "the folder of the state is deleted while Fairway runs",
        "nothing changes; a start makes it again",
        STATE,
        |scene| {
            fs::remove_dir_all(scene.state_directory()).context("removing it")?;
            super::comes_and_goes(scene)?;
            scene.fairway.stop()?;
            start_again(scene)
        },
    )
    .may_withdraw(),
    Trial::new(
        "the socket's file is deleted while Fairway runs",
        "sessions and routes stay; a start makes it again",
        "`fairway show` fails",
        |scene| {
            fs::remove_file(scene.socket()).context("removing it")?;
            scene.http("healthz")?;
            scene.fairway.stop()?;
            start_again(scene)
        },
    ),
    Trial::new(
        "the limit of open files is reached",
        "the session stays, what could not be read is read later",
        "`show config`; log",
        open_files,
    ),
    Trial::new(
        "SIGTERM, then SIGTERM and SIGINT while it leaves",
        "it leaves in order, once",
        "exit code 0",
        |scene| {
            scene.signal(Signal::SIGTERM)?;
            for signal in [Signal::SIGTERM, Signal::SIGINT] {
                // It may have left already.
                let _ = scene.signal(signal);
            }
            scene.fairway.stop()?;
            start_again(scene)
        },
    ),
];

fn start_again(scene: &mut Scene) -> Result<()> {
    scene.start()?;
    is_back(scene)
}

fn is_back(scene: &mut Scene) -> Result<()> {
    scene.wait("the session is back", 2 * PATIENCE, |scene| scene.session())?;
    scene.router_has_all(2 * PATIENCE)
}

/// The error of another Fairway, which must end soon.
fn second(scene: &Scene, words: &[&str]) -> Result<String> {
    let mut command = bounded(lab::fairway::program());
    command.args(words).arg("--socket").arg(scene.socket());
    command.arg("--state-dir").arg(scene.state_directory());
    command.args(["--bgp-listen", "none", "--metrics-listen", "none"]);
    match output_of(&mut command) {
        Ok(text) => anyhow::bail!("it ended without an error: {text}"),
        Err(error) => Ok(format!("{error:#}")),
    }
}

fn for_each_state_file(scene: &Scene, act: impl Fn(&Path) -> Result<()>) -> Result<()> {
    let mut count = 0;
    for entry in fs::read_dir(scene.state_directory()).context("listing the state")? {
        let path = entry.context("an entry of the state")?.path();
        // Nothing is in the lock but the lock.
        if path.is_file() && !path.ends_with("lock") {
            act(&path).with_context(|| path.display().to_string())?;
            count += 1;
        }
    }
    ensure!(count > 0, "Fairway has left no state");
    Ok(())
}

fn open_files(scene: &mut Scene) -> Result<()> {
    let process = scene.fairway.process_id()?.to_string();
    let limit = |value: &str| {
        output_of(bounded("prlimit").args(["--pid", &process, &format!("--nofile={value}")]))
    };
    let now = fs::read_dir(Path::new("/proc").join(&process).join("fd")).context("files")?.count();
    limit(&format!("{}:1024", now + 4))?;
    let connect = || TcpStream::connect("127.0.0.1:7472").context("connecting");
    let clients: Vec<TcpStream> = scene.lab.node.enter(|| (0..50).map(|_| connect()).collect())?;
    scene.apply("service-3", &crate::scene::service_text(3))?;
    scene.expect_all_routes()?;
    drop(clients);
    limit("1024:1024")?;
    scene.wait("it answers again", QUICK, |scene| scene.http("healthz")).map(drop)
}
