//! The configurations of routers in our own documentation.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use lab::process::bounded;
use lab::suite::{Case, Cell, Suite};

pub(crate) fn add_to(suite: &mut Suite) {
    let name = "each configuration of FRR in docs/peers.md is translated whole";
    suite.add(Case::new(name, frr_blocks));
    let name =
        "each configuration of BIRD in docs/peers.md is translated whole, but for keys of TCP-AO";
    suite.add(Case::new(name, bird_blocks));
}

fn frr_blocks(cell: &Cell) -> Result<()> {
    for block in blocks("frr")? {
        let (is_whole, said) = imported(cell, "frr", &block)?;
        ensure!(is_whole, "{said}\n{block}");
    }
    Ok(())
}

/// The first one is what the others are added to.
fn bird_blocks(cell: &Cell) -> Result<()> {
    let blocks = blocks("bird")?;
    let (base, others) = blocks.split_first().context("no block")?;
    for block in others {
        let (is_whole, said) = imported(cell, "bird", &format!("{base}{block}"))?;
        let has_keys = block.contains("authentication ao");
        ensure!(is_whole != has_keys, "{said}\n{block}");
        let named = said.lines().filter(|it| it.starts_with("not translated: ")).count();
        ensure!(named == if has_keys { 2 } else { 0 }, "{said}\n{block}");
    }
    Ok(())
}

/// The blocks of the page that are marked with this word.
fn blocks(mark: &str) -> Result<Vec<String>> {
    let page =
        fs::read_to_string(lab::checkout().join("docs/peers.md")).context("docs/peers.md")?;
    let mut blocks = Vec::new();
    let mut rest = page.as_str();
    let opening = format!("```{mark}\n");
    while let Some((_, after)) = rest.split_once(&opening) {
        let (block, after) = after.split_once("```").context("a block that does not end")?;
        blocks.push(block.to_owned());
        rest = after;
    }
    ensure!(blocks.len() > 20, "{} blocks of {mark}", blocks.len());
    Ok(blocks)
}

/// Whether all of a text is translated, and what is said.
fn imported(cell: &Cell, program: &str, text: &str) -> Result<(bool, String)> {
    let path = cell.directory.join(format!("{program}.conf"));
    fs::write(&path, text)?;
    let mut command: Command = bounded(lab::fairway::program());
    let output = command.args(["import", "--from", program]).arg(&path).output()?;
    Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}
