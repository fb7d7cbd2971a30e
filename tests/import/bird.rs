//! Configurations that BIRD runs first, and Fairway afterwards.

use std::fs;

use anyhow::{Context, Result, ensure};

use lab::bird::Bird;
use lab::fairway::Fairway;
use lab::process::bounded;
use lab::suite::{Case, Cell, Suite};

use super::scene::Scene;

/// A configuration, and how many routes each of the four routers is told.
struct Sample {
    name: &'static str,
    counts: [usize; 4],
}

/// Counted by hand from the lines.
const SAMPLES: &[Sample] = &[
    Sample { name: "host", counts: [1, 1, 0, 0] },
    Sample { name: "border", counts: [6, 6, 7, 7] },
    Sample { name: "reflector", counts: [6, 0, 4, 5] },
    Sample { name: "exchange", counts: [1, 3, 0, 0] },
    Sample { name: "customers", counts: [2, 3, 5, 0] },
    Sample { name: "attributes", counts: [8, 2, 3, 0] },
];

pub(crate) fn add_to(suite: &mut Suite) {
    for sample in SAMPLES {
        let name = format!("bird {}: its neighbors are told the same by Fairway", sample.name);
        suite.add(Case::new(name, move |cell| same(cell, sample)));
    }
}

fn same(cell: &Cell, sample: &Sample) -> Result<()> {
    let path = lab::checkout().join("tests/import/bird").join(format!("{}.conf", sample.name));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut scene = Scene::build(cell)?;
    let mut bird = Bird::start(&scene.node, &cell.directory, "source", &text)?;
    scene.start_routers()?;
    let told = scene.wait_for(sample.counts)?;
    // It takes its routes out of the kernel.
    bird.ask("down")?;
    drop(bird);

    let mut import = bounded(lab::fairway::program());
    let output = import.args(["import", "--from", "bird"]).arg(&path).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}\n{text}");
    let mut fairway = Fairway::prepare_in(&cell.directory.join("fairway"))?;
    fairway.apply("imported", &String::from_utf8(output.stdout)?)?;
    fairway.start(&scene.node)?;
    scene.start_routers()?;
    scene.wait_for_same(&told)?;
    fairway.stop()
}
