//! The folders under `examples`: they have no faults and no warnings, and run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use fairway_resources::Catalog;
use tempfile::TempDir;

/// A daemon without a reason to wait starts long before.
const PATIENCE: Duration = Duration::from_secs(20);

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut entries: Vec<PathBuf> = entries.collect();
    entries.sort();
    entries
}

/// The folders with our resources. Each edit in `plan` and `proxy` is two folders.
fn folders() -> Vec<PathBuf> {
    fn below(folder: PathBuf) -> Vec<PathBuf> {
        let folders: Vec<_> = entries(&folder).into_iter().filter(|it| it.is_dir()).collect();
        if folders.is_empty() {
            vec![folder]
        } else {
            folders.into_iter().flat_map(below).collect()
        }
    }
    let mut folders = below(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"));
    folders.retain(|folder| !folder.ends_with("containerlab/router"));
    folders
}

/// Of kind's example one file is ours. The address of its router is only known where it runs.
fn files_of(folder: &Path) -> Vec<(PathBuf, String)> {
    let is_ours = |it: &PathBuf| {
        // Configurations of CNI are read by container runtimes, and are in no list of ours.
        it.extension().is_none_or(|it| it != "conflist")
            && (!folder.ends_with("kind") || it.ends_with("network.yaml"))
    };
    let read = |it: PathBuf| {
        let text = fs::read_to_string(&it)
            .unwrap()
            .replace("peerAddress: ROUTER", "peerAddress: 192.0.2.1");
        (it, text)
    };
    entries(folder).into_iter().filter(is_ours).map(read).collect()
}

#[test]
fn every_example_passes_the_check() {
    let examples = folders();
    let names: Vec<_> = examples.iter().filter_map(|it| it.file_name()?.to_str()).collect();
    // Of `plan`, and of `proxy`.
    let (edits, of_proxy) = (["after", "before"].repeat(3), ["after", "before"]);
    assert_eq!(
        names,
        [
            &["api-server", "compose", "resources", "kind", "metallb", "peers"],
            &edits[..],
            &["pods"],
            &of_proxy,
            &["quickstart", "segment", "transit"]
        ]
        .concat()
    );
    for folder in examples {
        let mut catalog = Catalog::new();
        for (file, text) in files_of(&folder) {
            catalog.file_read(file.to_str().unwrap(), &text);
        }
        let resolution = catalog.resolve();
        let mut findings = resolution.findings;
        // Features that this version does not support yet are reported for every use.
        findings.retain(|finding| finding.is_fault() || !finding.message.contains("this version"));
        assert_eq!(findings, [], "{}", folder.display());
        assert!(resolution.objects.len() >= 3, "{}", folder.display());
    }
}

/// A child that does not outlive its test.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // It has ended already if the test failed for that.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a real daemon lives in real time")]
fn every_example_runs() {
    for folder in folders() {
        let place = TempDir::new().unwrap();
        let log = place.path().join("log");
        let child = Command::new(env!("CARGO_BIN_EXE_fairway"))
            .args(["run", "--node", "node-a"])
            // The interfaces of this machine are not the test's.
            .env("FAIRWAY_LAYER2_EXCLUDE", ".")
            .args(["--bgp-listen", "127.0.0.1:0", "--config"])
            .arg(&folder)
            .arg("--state-dir")
            .arg(place.path().join("state"))
            .arg("--socket")
            .arg(place.path().join("socket"))
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut daemon = Daemon(child);
        let start = Instant::now();
        loop {
            let said = fs::read_to_string(&log).unwrap();
            if said.contains("fairway is running") {
                break;
            }
            let folder = folder.display();
            assert_eq!(daemon.0.try_wait().unwrap(), None, "{folder}: it ended: {said}");
            assert!(start.elapsed() < PATIENCE, "{folder}: it does not start: {said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
