//! What if the volume with the configuration is lost, so that an empty folder is in its place? Nothing is
//! withdrawn, not even over a restart, until an operator says that it is meant. Files that are deleted
//! one by one are meant.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::Cell;
use crate::scene::{QUICK, Scene, expect_none_gone};
use lab::wait::{PATIENCE, holds_for};
use lab::withdrawals::Withdrawals;

/// How long the router is watched while there are no files.
const WITHOUT_FILES: Duration = Duration::from_secs(3);

const HELD: &[&str] = &["has no files any more"];

pub(crate) fn a_lost_volume_withdraws_nothing(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    let (before, mut withdrawals) = (scene.session()?, scene.watch("lost")?);
    scene.volume.lose()?;
    ensure!(is_empty(&scene)?, "the folder below the volume has files");
    nothing_goes(&scene, &mut withdrawals)?;
    scene.fault_is_shown(HELD, PATIENCE)?;
    scene.is_stale(true)?;
    scene.expect_same_session(before)?;

    restarts_without_files(&mut scene).context("a restart without files")?;
    comes_back(&mut scene).context("the volume comes back")?;
    goes_when_it_is_meant(&mut scene).context("fairway reload --empty")
}

fn nothing_goes(scene: &Scene, withdrawals: &mut Withdrawals) -> Result<()> {
    holds_for("no route goes", WITHOUT_FILES, || {
        expect_none_gone(withdrawals)?;
        scene.expect_all_routes()
    })
}

/// The session of the previous run ends with it; what it announced comes again.
fn restarts_without_files(scene: &mut Scene) -> Result<()> {
    scene.fairway.stop()?;
    scene.start()?;
    scene.router_has_all(2 * PATIENCE)?;
    scene.session()?;
    scene.fault_is_shown(HELD, PATIENCE)?;
    let mut withdrawals = scene.watch("restarted")?;
    nothing_goes(scene, &mut withdrawals)
}

fn comes_back(scene: &mut Scene) -> Result<()> {
    let before = scene.session()?;
    scene.mount_volume()?;
    scene.all_is_in_force()?;
    let text = scene.fairway.show_text(&["config"])?;
    ensure!(!text.contains("has no files any more"), "a finding is left:\n{text}");
    scene.expect_all_routes()?;
    scene.expect_same_session(before)
}

fn goes_when_it_is_meant(scene: &mut Scene) -> Result<()> {
    scene.volume.lose()?;
    scene.fault_is_shown(HELD, PATIENCE)?;
    scene.expect_all_routes()?;
    scene.reload(&["--empty"])?;
    scene.router_has_none(PATIENCE)
}

pub(crate) fn the_last_file_that_is_deleted_withdraws(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    let folder = scene.in_folder("");
    for entry in fs::read_dir(&folder).context("listing the volume")? {
        let file = entry.context("an entry of the volume")?.path();
        fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
    }
    ensure!(is_empty(&scene)?, "files are left");
    scene.router_has_none(QUICK)
}

fn is_empty(scene: &Scene) -> Result<bool> {
    let mut entries = fs::read_dir(scene.in_folder("")).context("listing the folder")?;
    Ok(entries.next().is_none())
}
