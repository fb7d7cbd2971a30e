//! Does Fairway take what a page prints? Each block of YAML that begins with an object is checked as a user checks it, and so is the
//! spec of one that is marked `yaml of BGPPeer`. A part of something else is marked `yaml fragment`. Used by main.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use lab::process::bounded;
use lab::suite::Cell;

use crate::page::Page;

/// Fragments of pages are as few as possible.
const FRAGMENTS_MAX: usize = 2;

/// What the spec of a BGPPeer is put behind.
const PEER: &str = "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: printed}\nspec:\n  myASN: 65001\n  \
                    peerASN: 65010\n  peerAddress: 192.0.2.2\n";

pub(crate) fn are_taken(cell: &Cell) -> Result<()> {
    let (mut whole, mut fragments, mut offences) = (0, 0, Vec::new());
    for page in Page::all()? {
        for block in page.blocks.iter().filter(|it| it.kind.starts_with("yaml")) {
            let place = page.path.display();
            let mut text = block.text.clone();
            match block.kind.as_str() {
                "yaml" | "yaml fairway" => whole += 1,
                "yaml of BGPPeer" => {
                    let spec = text.strip_prefix("spec:\n").with_context(|| text.clone())?;
                    text = format!("{PEER}{spec}");
                }
                "yaml fragment" => {
                    fragments += 1;
                    continue;
                }
                other => bail!("{place}: a block of {other:?}"),
            }
            if let Err(error) = check(cell, &text) {
                offences.push(format!("{place}: {error:#}\n{text}"));
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
