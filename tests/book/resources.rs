//! Does Fairway take what a page prints? Each block of YAML that begins with an object is checked as a user checks it. A part of an
//! object is marked `yaml fragment`, values of the chart `yaml values`. Used by main.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use lab::process::bounded;
use lab::suite::Cell;

use crate::page::Page;

/// Fragments of pages are as few as possible.
const FRAGMENTS_MAX: usize = 6;

pub(crate) fn are_taken(cell: &Cell) -> Result<()> {
    let (mut whole, mut fragments, mut offences) = (0, 0, Vec::new());
    for page in Page::all()? {
        for block in page.blocks.iter().filter(|it| it.kind.starts_with("yaml")) {
            let place = page.path.display();
            match block.kind.as_str() {
                "yaml" | "yaml fairway" => whole += 1,
                "yaml fragment" | "yaml values" => {
                    fragments += 1;
                    continue;
                }
                other => bail!("{place}: a block of {other:?}"),
            }
            if let Err(error) = check(cell, &block.text) {
                offences.push(format!("{place}: {error:#}\n{}", block.text));
            }
        }
    }
    ensure!(whole > 50, "only {whole} blocks of YAML are found");
    ensure!(fragments <= FRAGMENTS_MAX, "{fragments} fragments");
    ensure!(offences.is_empty(), "{}", offences.join("\n"));
    Ok(())
}

fn check(cell: &Cell, text: &str) -> Result<()> {
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    ensure!(first.is_some_and(|line| line.starts_with("apiVersion:")), "no object begins here");
    let path = cell.directory.join("printed.yaml");
    fs::write(&path, text).context("printed.yaml")?;
    let output = bounded(lab::fairway::program()).arg("check").arg(&path).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout).trim_end());
    Ok(())
}
