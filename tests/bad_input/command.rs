//! `fairway check` as users call it: from standard input, and for FRR.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use super::{SOUND_PEER, manifest, peer};

fn check(arguments: &[&str], input: &str) -> Output {
    check_into(Stdio::piped(), arguments, input)
}

fn check_into(stdout: Stdio, arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
    command.arg("check").args(arguments).arg("-");
    command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The child may end before it reads anything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn what_kubectl_shows_is_checked_from_standard_input() {
    let output = check(&[], include_str!("dump.json"));
    let (said, counted) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.lines().all(|line| line.contains(": warning: ")), "{said}");
    assert!(counted.contains("4 of other kinds skipped, 0 faults"), "{counted}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let faulty = manifest("v1", "Service", "spec: {type: Loadbalancer, ports: [{port: 80}]}");
    for format in [[].as_slice(), &["--json"]] {
        let (reader, stdout) = std::io::pipe().unwrap();
        drop(reader);
        let output = check_into(stdout.into(), format, &faulty);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
}

#[test]
fn what_frr_cannot_do_is_a_fault_only_where_frr_is_to_do_it() {
    let keys = "tcpAO:\n  keys:\n  - {sendID: 1, recvID: 1, algorithm: hmac-sha-1-96, secret: \
                {name: new, key: a}}\naddPath: {send: 2}";
    let secret = manifest("v1", "Secret", "stringData: {a: one}");
    let text = format!("{}---\n{secret}", peer(&format!("{SOUND_PEER}{keys}")));
    assert_eq!(check(&["--bgp", "native"], &text).status.code(), Some(0));
    let output = check(&["--bgp", "frr", "--frr-version", "8.4"], &text);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("stdin:9: BGPPeer/new: spec.tcpAO: is not supported with FRR"), "{said}");
    assert!(said.contains("BGPPeer/new: spec.addPath.send: needs FRR 9.1 or newer"), "{said}");
    // What no version supports stays a fault.
    let newer = check(&["--bgp", "frr", "--frr-version", "10.4.1"], &text);
    let said = String::from_utf8(newer.stdout).unwrap();
    assert!(said.contains("spec.tcpAO") && !said.contains("needs FRR 9.1"), "{said}");
    assert_eq!(check(&["--bgp", "frr", "--frr-version", "ten"], &text).status.code(), Some(2));
}

#[test]
fn what_frr_does_itself_is_not_asked_of_us_as_well() {
    for (option, who) in [(&["--bgp-listen", "none"][..], "bgpd"), (&["--bfd-realtime"], "bfdd")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
        command.args(["run", "--config", "/nonexistent", "--bgp", "frr"]).args(option);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(option.first().unwrap()) && said.contains(who), "{said}");
    }
}
