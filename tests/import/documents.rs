//! The configurations of routers in our own documentation.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use lab::process::bounded;
use lab::suite::{Case, Cell, Suite};

pub(crate) fn add_to(suite: &mut Suite) {
    let name = "each configuration of FRR in docs/peers.md is translated whole";
    suite.add(Case::new(name, frr_blocks));
}

fn frr_blocks(cell: &Cell) -> Result<()> {
    let page =
        fs::read_to_string(lab::checkout().join("docs/peers.md")).context("docs/peers.md")?;
    let mut blocks = Vec::new();
    let mut rest = page.as_str();
    while let Some((_, after)) = rest.split_once("```frr\n") {
        let (block, after) = after.split_once("```").context("a block that does not end")?;
        blocks.push(block);
        rest = after;
    }
    ensure!(blocks.len() > 20, "{} blocks of FRR", blocks.len());
    for block in blocks {
        let path = cell.directory.join("frr.conf");
        fs::write(&path, block)?;
        let mut command: Command = bounded(lab::fairway::program());
        let output = command.args(["import", "--from", "frr"]).arg(&path).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{said}\n{block}");
    }
    Ok(())
}
