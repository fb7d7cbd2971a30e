//! Configurations that FRR runs first, and Fairway afterwards.

use std::fs;

use anyhow::{Context, Result, ensure};

use lab::fairway::Fairway;
use lab::frr_speaker::Speaker;
use lab::process::bounded;
use lab::routers::Release;
use lab::suite::{Case, Cell, Suite};

use super::scene::Scene;

/// A configuration, and how many routes each of the four routers is told.
struct Sample {
    name: &'static str,
    counts: [usize; 4],
}

/// Counted by hand from the lines.
const SAMPLES: &[Sample] = &[
    Sample { name: "edge", counts: [4, 4, 7, 7] },
    Sample { name: "reflector", counts: [8, 0, 5, 5] },
    Sample { name: "policies", counts: [3, 1, 5, 0] },
    Sample { name: "leaf", counts: [2, 2, 0, 0] },
    Sample { name: "multihomed", counts: [2, 2, 8, 0] },
    Sample { name: "tagged", counts: [3, 4, 7, 7] },
];

pub(crate) fn add_to(suite: &mut Suite) {
    for release in [Release::Bookworm, Release::Trixie] {
        for sample in SAMPLES {
            let version = if release == Release::Bookworm { "frr8" } else { "frr10" };
            let name =
                format!("{version} {}: its neighbors are told the same by Fairway", sample.name);
            suite.add(Case::new(name, move |cell| same(cell, release, sample)));
        }
    }
}

fn same(cell: &Cell, release: Release, sample: &Sample) -> Result<()> {
    let path = lab::checkout().join("tests/import/frr").join(format!("{}.conf", sample.name));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut scene = Scene::build(cell)?;
    let mut frr = Speaker::prepare(release, &cell.directory)?;
    frr.start(&scene.node)?;
    frr.load(&text)?;
    scene.start_routers()?;
    let told = scene.wait_for(sample.counts)?;
    let running = frr.running_configuration()?;
    frr.stop()?;

    // FRR shows the same configuration in its own order, with what it adds.
    for text in [text, running] {
        let path = cell.directory.join("frr.conf");
        fs::write(&path, &text)?;
        let mut import = bounded(lab::fairway::program());
        let output = import.args(["import", "--from", "frr"]).arg(&path).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{said}\n{text}");
        let mut fairway = Fairway::prepare_in(&cell.directory.join(if fairway_is_second(cell) {
            "again"
        } else {
            "first"
        }))?;
        fairway.apply("imported", &String::from_utf8(output.stdout)?)?;
        fairway.start(&scene.node)?;
        scene.start_routers()?;
        scene.wait_for_same(&told)?;
        fairway.stop()?;
    }
    Ok(())
}

fn fairway_is_second(cell: &Cell) -> bool {
    cell.directory.join("first").exists()
}
