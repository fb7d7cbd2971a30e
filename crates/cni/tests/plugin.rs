//! The plugin as a runtime starts it, without a daemon.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "of a JSON value it gives null, where there is nothing; what fails here fails the test"
)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const CONFIGURATION: &str = r#"{"cniVersion": "1.1.0", "name": "net"}"#;

fn start(folder: &Path, command: &str, stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fairway-cni"))
        .env_clear()
        .env("CNI_COMMAND", command)
        .env("CNI_CONTAINERID", "c1")
        .env("CNI_NETNS", "/proc/1/ns/net")
        .env("CNI_IFNAME", "eth0")
        .env("FAIRWAY_CNI_SOCKET", folder.join("cni.sock"))
        .env("FAIRWAY_CNI_SPOOL", folder.join("spool"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn printed(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

#[test]
fn what_is_spoken_is_told_without_a_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let output = start(folder.path(), "VERSION", CONFIGURATION);
    assert!(output.status.success());
    assert_eq!(printed(&output)["supportedVersions"][3], "1.1.0");
}

#[test]
fn without_a_daemon_each_command_has_the_answer_that_its_runtime_understands() {
    let folder = tempfile::tempdir().unwrap();
    let codes = [("ADD", 11), ("CHECK", 11), ("STATUS", 50), ("GC", 11)];
    let stdin = r#"{"cniVersion": "1.1.0", "name": "net", "prevResult": {"ips": []}, "cni.dev/valid-attachments": []}"#;
    for (command, code) in codes {
        let output = start(folder.path(), command, stdin);
        let error = printed(&output);
        assert_eq!(
            (output.status.code(), &error["code"]),
            (Some(1), &code.into()),
            "{command}: {error}"
        );
        assert_eq!(error["cniVersion"], "1.1.0");
        assert!(error["details"].as_str().unwrap().contains("cni.sock"), "{error}");
    }
    let output = start(folder.path(), "DEL", CONFIGURATION);
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(std::fs::read_dir(folder.path().join("spool")).unwrap().count(), 1);
}

#[test]
fn a_deletion_that_cannot_be_noted_is_to_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("spool"), "a file").unwrap();
    let output = start(folder.path(), "DEL", CONFIGURATION);
    assert_eq!((output.status.code(), &printed(&output)["code"]), (Some(1), &11.into()));
}

#[test]
fn what_is_wrong_with_a_call_is_told_without_a_daemon() {
    let folder = tempfile::tempdir().unwrap();
    for (command, stdin, code) in [("PLAY", CONFIGURATION, 4), ("ADD", "{", 6), ("DEL", "{}", 7)] {
        let output = start(folder.path(), command, stdin);
        assert_eq!(printed(&output)["code"], code, "{command}");
    }
    assert!(!folder.path().join("spool").exists());
}

#[test]
fn people_are_told_what_it_is() {
    let help = Command::new(env!("CARGO_BIN_EXE_fairway-cni")).arg("--help").output().unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(text.contains("FAIRWAY_CNI_SOCKET") && text.contains("Example:"), "{text}");
    let wrong = Command::new(env!("CARGO_BIN_EXE_fairway-cni")).arg("--hepl").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}
