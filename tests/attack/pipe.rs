//! What if a resource file turns into a pipe at the moment at which it is opened? No reader waits for somebody
//! who writes into it: all other files are read as before.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use nix::sys::signal::Signal;

use crate::Cell;
use crate::scene::{QUICK, SERVICES, Scene};
use lab::process::{bounded, output_of};
use lab::resources::community;
use lab::wait::now;

/// How long file and pipe take turns.
const PERIOD: Duration = Duration::from_secs(5);

pub(crate) fn a_pipe_in_place_of_a_file_stops_no_reader(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    let before = scene.session()?;
    let swapping = Swapping::start(&scene)?;
    let start = now();
    let mut next = SERVICES;
    while start.elapsed() < PERIOD {
        scene.add_quickly(next)?;
        next += 1;
    }
    let rounds = swapping.stop()?;
    ensure!(rounds > 100, "file and pipe took turns only {rounds} times");
    // The last to have the name: it is not read as a file without text, either.
    scene.fault_is_shown(&["x.yaml", "is a special file"], QUICK)?;

    let hangups = reread(&scene)?;
    scene.signal(Signal::SIGHUP)?;
    scene.wait("SIGHUP is answered", QUICK, |scene| {
        ensure!(reread(scene)? > hangups, "not yet");
        Ok(())
    })?;
    scene.add_quickly(next)?;
    scene.http("healthz")?;
    scene.expect_same_session(before)
}

/// How often all files were read again, by the log.
fn reread(scene: &Scene) -> Result<usize> {
    Ok(scene.log()?.matches("reading all files again").count())
}

/// Puts a regular file and a pipe in the place of `x.yaml` by turns, as fast as it can, until it is stopped.
struct Swapping {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<u64>>>,
}

/// The names that it uses in the folder.
struct Names {
    pipe: PathBuf,
    staged: PathBuf,
    resource: PathBuf,
}

impl Swapping {
    fn start(scene: &Scene) -> Result<Self> {
        let names = Names {
            pipe: scene.in_folder(".pipe"),
            staged: scene.in_folder(".x"),
            resource: scene.in_folder("x.yaml"),
        };
        output_of(bounded("mkfifo").arg(&names.pipe))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let thread = thread::spawn(move || names.swap(&until));
        Ok(Self { is_over, thread: Some(thread) })
    }

    /// How many rounds there were.
    fn stop(mut self) -> Result<u64> {
        self.end().context("it was stopped before")?
    }

    fn end(&mut self) -> Option<Result<u64>> {
        self.is_over.store(true, Ordering::SeqCst);
        let ended = self.thread.take()?.join();
        Some(ended.unwrap_or_else(|_| Err(anyhow!("the thread that swaps panicked"))))
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        // A story that failed has its own error.
        let _ = self.end();
    }
}

impl Names {
    fn swap(&self, is_over: &AtomicBool) -> Result<u64> {
        let text = community("spare", "65001:9");
        let mut rounds = 0;
        while !is_over.load(Ordering::SeqCst) {
            fs::write(&self.staged, &text).context("writing the file")?;
            fs::rename(&self.staged, &self.resource).context("moving the file in place")?;
            // Another name of the one pipe: no program is started in each round.
            fs::hard_link(&self.pipe, &self.staged).context("another name for the pipe")?;
            fs::rename(&self.staged, &self.resource).context("moving the pipe in place")?;
            rounds += 1;
        }
        Ok(rounds)
    }
}
