//! Records in the binary which commit it was built from.
//!
//! A build outside a checkout (a container, a tarball) can set `FAIRWAY_COMMIT`.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=FAIRWAY_COMMIT");
    // The log of HEAD grows with every commit and every switch of branches.
    if std::path::Path::new(".git/logs/HEAD").exists() {
        println!("cargo:rerun-if-changed=.git/logs/HEAD");
    }
    let given = std::env::var("FAIRWAY_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(commit_of_checkout).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=FAIRWAY_COMMIT={commit}");
}

fn commit_of_checkout() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}
