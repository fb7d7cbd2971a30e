//! Objects of Cilium, Calico and frr-k8s, and addresses of keepalived: what they come to is valid, and `fairway plan` says of it
//! what their own documentation says. `samples` has the rows.

use std::fs;

use anyhow::{Context, Result, ensure};

use lab::process::bounded;
use lab::suite::{Case, Cell, Suite};

use super::samples::{FOLDERS, SAMPLES, Sample};

/// Where the samples are.
pub(crate) const CRATE: &str = "crates/import/src/tests";

pub(crate) fn add_to(suite: &mut Suite) {
    for folder in FOLDERS {
        let name = format!("check accepts what each sample of {folder} comes to");
        suite.add(Case::new(name, move |cell| all_valid(cell, folder)));
    }
    suite.add(Case::new("each sample of each folder has rows", |_| all_have_rows()));
    for sample in SAMPLES {
        let name = format!("plan of {} says what its documentation says", sample.path);
        suite.add(Case::new(name, move |cell| planned(cell, sample)));
    }
}

/// What `fairway import` made of a sample.
pub(crate) struct Imported {
    /// The file with the resources.
    pub(crate) file: String,
    /// What it said about lines without an equal.
    pub(crate) said: String,
}

pub(crate) fn imported(cell: &Cell, path: &str) -> Result<Imported> {
    let source = lab::checkout().join(CRATE).join(path);
    let output = bounded(lab::fairway::program()).arg("import").arg(&source).output()?;
    let result = cell.directory.join("imported.yaml");
    fs::write(&result, output.stdout)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(Imported { file: result.to_string_lossy().into_owned(), said })
}

/// The samples of the crate: `FOLDER/NAME`.
fn samples_of(folder: &str) -> Result<Vec<String>> {
    let path = lab::checkout().join(CRATE).join(folder);
    let mut samples = Vec::new();
    for entry in fs::read_dir(&path).with_context(|| path.display().to_string())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".out") {
            samples.push(format!("{folder}/{name}"));
        }
    }
    ensure!(samples.len() >= 6, "{} samples of {folder}", samples.len());
    Ok(samples)
}

fn all_valid(cell: &Cell, folder: &str) -> Result<()> {
    for sample in samples_of(folder)? {
        let file = imported(cell, &sample)?.file;
        let has_objects = fs::read_to_string(&file)?.contains("kind:");
        let output = bounded(lab::fairway::program()).args(["check", &file]).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() || !has_objects, "{sample}: {said}");
    }
    Ok(())
}

fn all_have_rows() -> Result<()> {
    for folder in FOLDERS {
        for path in samples_of(folder)? {
            ensure!(SAMPLES.iter().any(|it| it.path == path), "{path} has no rows");
        }
    }
    Ok(())
}

fn planned(cell: &Cell, sample: &Sample) -> Result<()> {
    let imported = imported(cell, sample.path)?;
    for line in sample.named {
        let place = format!(":{line}: ");
        let mut said = imported.said.lines().filter(|it| it.starts_with("not translated: "));
        ensure!(
            said.any(|it| it.contains(&place)),
            "line {line} is not named in {}",
            imported.said
        );
    }
    let text = plan(cell, &imported.file, sample.cluster)?;
    let rows = rows(&text);
    let mut expected = sample.rows.to_vec();
    expected.sort_unstable();
    ensure!(rows == expected, "{rows:#?}\nin place of {expected:#?}\n{text}");
    Ok(())
}

/// What `fairway plan` says about a file, in a cluster or for one host.
pub(crate) fn plan(cell: &Cell, file: &str, cluster: &str) -> Result<String> {
    let mut plan = bounded(lab::fairway::program());
    plan.args(["plan", "--config", file]);
    if cluster.is_empty() {
        plan.args(["--node", "node-a"]);
    } else {
        let path = cell.directory.join("cluster.yaml");
        fs::write(&path, cluster)?;
        plan.arg("--config").arg(path);
    }
    let output = plan.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The rows of the tables about routes, behind the name of each of their nodes, and of that about layer 2; in the order of their
/// words.
pub(crate) fn rows(text: &str) -> Vec<String> {
    let mut rows = Vec::new();
    let mut titles = Vec::new();
    for line in text.lines() {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        // Nodes that announce the same have one table.
        if let Some(nodes) = line.strip_prefix("Routes from ") {
            titles = nodes.split(", ").map(|it| format!("{it}: ")).collect();
        } else if line == "Answered on layer 2" {
            titles = vec![String::new()];
        } else if line.is_empty() {
            titles.clear();
        } else if !words.starts_with("PEER ") && !words.starts_with("ADDRESS ") {
            rows.extend(titles.iter().map(|title| format!("{title}{words}")));
        }
    }
    rows.sort();
    rows
}
