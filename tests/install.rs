//! `make install` and `make uninstall`, into a folder of ours. No root.

#![allow(clippy::panic, clippy::unwrap_used)] // What fails here fails the test.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairway");

fn install(root: &Path, prefix: &str, arguments: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/install.sh");
    let mut command = Command::new(script);
    command.args(arguments).env("DESTDIR", root).env("PREFIX", prefix).env("FAIRWAY_BIN", PROGRAM);
    expect_success(&command.output().unwrap());
}

fn expect_success(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn files_below(place: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|it| if it.is_dir() { files_below(&it) } else { [it].into() }).collect()
}

#[test]
fn install_brings_what_a_service_needs_and_keeps_what_is_configured() {
    let root = TempDir::new().unwrap();
    let at = |path: &str| root.path().join(path);
    install(root.path(), "/usr/local", &[]);
    for file in [
        "usr/local/bin/fairway",
        "usr/local/share/man/man1/fairway.1",
        "usr/local/share/man/man1/fairway-show.1",
        "usr/local/share/bash-completion/completions/fairway",
        "usr/local/share/zsh/site-functions/_fairway",
        "usr/local/share/fish/vendor_completions.d/fairway.fish",
        "usr/local/lib/sysusers.d/fairway.conf",
    ] {
        assert!(at(file).metadata().unwrap().len() > 0, "{file}");
    }
    let unit = fs::read_to_string(at("usr/local/lib/systemd/system/fairway.service")).unwrap();
    assert!(
        unit.contains("\nExecStart=/usr/local/bin/fairway run --config /etc/fairway\n"),
        "{unit}"
    );
    let config = at("etc/fairway/fairway.yaml");
    assert_eq!(config.metadata().unwrap().permissions().mode() & 0o777, 0o640);

    fs::write(&config, "# ours\n").unwrap();
    install(root.path(), "/usr/local", &[]);
    assert_eq!(fs::read_to_string(&config).unwrap(), "# ours\n");
    install(root.path(), "/usr/local", &["--uninstall"]);
    assert_eq!(files_below(root.path()), [config].into());
}

#[test]
fn the_example_is_legal_and_becomes_a_configuration_when_it_is_uncommented() {
    let text = include_str!("../packaging/fairway.yaml");
    let place = TempDir::new().unwrap();
    let check = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).unwrap();
        let output = Command::new(PROGRAM).arg("check").arg(path).output().unwrap();
        expect_success(&output);
        // The sum is for people, and so on stderr.
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(check("as-it-is.yaml", text).contains("0 objects, 0 faults"));
    // What is to be uncommented follows the introduction, which ends with an empty comment.
    let (_, example) = text.rsplit_once("\n#\n").unwrap();
    let lines = example.lines().map(|line| line.strip_prefix("# ").unwrap());
    let uncommented = lines.collect::<Vec<_>>().join("\n");
    assert!(check("uncommented.yaml", &uncommented).contains("4 objects, 0 faults"));
}

#[test]
fn completions_are_scripts_that_their_shells_take() {
    for shell in ["bash", "zsh", "fish"] {
        let script = Command::new(PROGRAM).args(["completions", shell]).output().unwrap();
        expect_success(&script);
        assert!(String::from_utf8_lossy(&script.stdout).contains("completions"), "{shell}");
        let place = TempDir::new().unwrap();
        let file = place.path().join("script");
        fs::write(&file, &script.stdout).unwrap();
        // Only bash is on every machine.
        match Command::new(shell).arg("-n").arg(&file).output() {
            Ok(output) => expect_success(&output),
            Err(error) => assert!(shell != "bash", "{error}"),
        }
    }
}
