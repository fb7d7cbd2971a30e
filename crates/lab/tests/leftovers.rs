//! What do suites do with namespaces that a killed run has left? Needs root.

#![allow(clippy::unwrap_used)] // What fails here fails the test.

use std::path::Path;
use std::process::Command;

use fairway_lab::namespace::remove_leftovers;

/// A process that has ended: what bears its number is nobody's.
fn ended() -> u32 {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

#[test]
fn suites_that_start_at_once_remove_the_same_leftovers() {
    let maker = ended();
    let names: Vec<_> = (0..8).map(|cell| format!("interop-{maker}-{cell}-left")).collect();
    for name in &names {
        let added = Command::new("ip").args(["netns", "add", name]).status().unwrap();
        assert!(added.success(), "{name} could not be added");
    }
    std::thread::scope(|scope| {
        let suites: Vec<_> = (0..4).map(|_| scope.spawn(remove_leftovers)).collect();
        for suite in suites {
            suite.join().unwrap().unwrap();
        }
    });
    for name in &names {
        assert!(!Path::new("/var/run/netns").join(name).exists(), "{name} stays behind");
    }
}
