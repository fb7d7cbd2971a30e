//! What if a pipe is in the place of a state file? Fairway starts without what the file had, and says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::Cell;
use crate::scene::{QUICK, Scene};
use lab::process::{bounded, output_of};
use lab::wait::now;

/// From the start of the program to all routes.
const START_LIMIT: Duration = Duration::from_secs(10);

pub(crate) fn a_pipe_in_the_state_directory_does_not_hang_the_start(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    scene.fairway.stop()?;
    let replaced = replace_by_pipes(&scene.state_directory())?;
    ensure!(!replaced.is_empty(), "Fairway has left no state");
    let logged = scene.log()?.len();

    let start = now();
    scene.start()?;
    scene.router_has_all(START_LIMIT.saturating_sub(start.elapsed()))?;
    // Nothing is in the lock but the lock, which a pipe has, too.
    for file in replaced.iter().filter(|it| !it.ends_with("lock")) {
        let name = file.file_name().context("a name")?.to_string_lossy().into_owned();
        scene.wait(&format!("the log has an error that names {name}"), QUICK, |scene| {
            let log = scene.log()?;
            let is_named = log.get(logged..).unwrap_or_default().lines().any(|line| {
                (line.contains("ERROR") || line.contains("WARN")) && line.contains(&name)
            });
            ensure!(is_named, "it has none");
            Ok(())
        })?;
    }
    Ok(())
}

/// Puts a pipe in the place of each file; which those are.
fn replace_by_pipes(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut replaced = Vec::new();
    for entry in fs::read_dir(directory).context("listing the state directory")? {
        let file = entry.context("an entry of the state directory")?.path();
        if !file.is_file() {
            continue;
        }
        fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
        output_of(bounded("mkfifo").arg(&file))?;
        replaced.push(file);
    }
    Ok(replaced)
}
