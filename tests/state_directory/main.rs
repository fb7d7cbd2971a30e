//! What a daemon makes of its state directory when it starts again: the real binary beside a router
//! that is a script. A restart is said as such and costs no route; whatever the disk does, the daemon
//! starts, announces what the files say, and says what was lost. No root, loopback only.

// What fails here fails the test.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod daemon;
mod router;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::geteuid;

use daemon::{Daemon, Place, wait_for_text};
use router::{End, Router, Session};

const PATIENCE: Duration = Duration::from_secs(20);

const WEB: [u8; 4] = [203, 0, 113, 1];
const DNS: [u8; 4] = [203, 0, 113, 2];

/// Bits of the graceful restart capability.
const R: u8 = 0x80;
const N: u8 = 0x40;
const F: u8 = 0x80;

/// What is said where the file is of no use.
const CONSEQUENCE: &str = "may drop the routes of this node until it announces them again";

/// A session in which everything was announced, in the right order.
fn complete_session(router: &Router) -> Session {
    let mut session = router.session();
    assert!(!session.wait_for_route(WEB), "End-of-RIB is the last word");
    assert!(!session.wait_for_route(DNS), "End-of-RIB is the last word");
    session.wait_for_end_of_rib();
    session
}

/// A first run, whose state is on disk.
fn ran_once(router: &Router) -> Place {
    let place = Place::new(router);
    let daemon = place.run();
    let session = complete_session(router);
    wait_for_text(&place.announced(), "203.0.113.2/32");
    daemon.end(Signal::SIGTERM);
    assert_eq!(session.end(), End::Quiet);
    place
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn flags(session: &Session) -> (u8, u8) {
    (session.restart_flags, session.family_flags)
}

#[test]
fn however_a_run_ends_the_next_one_says_that_it_is_a_restart() {
    let router = Router::listen();
    let place = Place::new(&router);
    let daemon = place.run();
    let mut session = complete_session(&router);
    assert_eq!(flags(&session), (N, 0), "the first run there is");
    let (mut daemon, mut ended) = (daemon, Signal::SIGTERM);
    wait_for_text(&place.announced(), "203.0.113.2/32");
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGKILL] {
        assert!(!daemon.complains(), "after {ended}: {}", daemon.log());
        daemon.end(signal);
        assert_eq!(session.end(), End::Quiet, "{signal}");
        daemon = place.run();
        session = complete_session(&router);
        assert_eq!(flags(&session), (N | R, F), "after {signal}");
        ended = signal;
    }
    // The machine was started since: what it forwarded then is gone.
    daemon.end(Signal::SIGKILL);
    let text = fs::read_to_string(place.announced()).unwrap();
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert!(text.contains(boot_id.trim()));
    fs::write(place.announced(), text.replace(boot_id.trim(), "another")).unwrap();
    let _daemon = place.run();
    assert_eq!(flags(&complete_session(&router)), (N | R, 0));
    wait_for_text(&place.announced(), boot_id.trim());
}

/// Starts with `text` in place of what the last run left, and with all routes; returns what is said
/// of it.
fn start_with(text: &str, cause: &str) {
    let router = Router::listen();
    let place = ran_once(&router);
    fs::write(place.announced(), text).unwrap();
    let daemon = place.run();
    let session = complete_session(&router);
    assert_eq!(flags(&session), (N, 0), "nothing is claimed that is not known");
    daemon.wait_for_line(&["ERROR", "announced.json", cause, ".unreadable-1", CONSEQUENCE]);
    let aside = place.path("state/announced.json.unreadable-1");
    assert_eq!(fs::read_to_string(aside).unwrap(), text, "nothing of it is lost");
    wait_for_text(&place.announced(), "203.0.113.2/32");
    daemon.end(Signal::SIGTERM);
    let _daemon = place.run();
    assert_eq!(flags(&complete_session(&router)), (N | R, F), "the file is whole again");
}

#[test]
fn a_file_that_was_cut_short_is_set_aside_and_said() {
    start_with("{\n  \"version\": 1,\n  \"bootId\": \"", "damaged");
}

#[test]
fn a_file_of_the_future_is_set_aside_and_said() {
    let text = "{\"version\": 2, \"routes\": \"in a way of tomorrow\"}";
    start_with(text, "format version 2 is not supported; this Fairway reads version 1");
}

#[test]
fn a_file_that_is_gone_is_missed() {
    let router = Router::listen();
    let place = ran_once(&router);
    fs::remove_file(place.announced()).unwrap();
    let daemon = place.run();
    assert_eq!(flags(&complete_session(&router)), (N, 0));
    daemon.wait_for_line(&["ERROR", "announced.json is missing", CONSEQUENCE]);
}

#[test]
fn a_state_directory_that_cannot_be_written_is_read_and_said() {
    let router = Router::listen();
    let place = ran_once(&router);
    // So that there is something to write.
    fs::write(place.path("more/dns.yaml"), "# nothing any more\n").unwrap();
    set_mode(&place.path("state"), 0o500);
    let daemon = place.run_without_privileges();
    let mut session = router.session();
    assert!(!session.wait_for_route(WEB));
    session.wait_for_end_of_rib();
    assert_eq!(flags(&session), (N | R, F), "what can be read is used");
    daemon.wait_for_line(&[
        "ERROR",
        "cannot write",
        "state/",
        "Permission denied",
        "a restart may lose the latest changes",
    ]);
    set_mode(&place.path("state"), 0o700);
    daemon.wait_for_line(&["state is saved again"]);
    assert!(!fs::read_to_string(place.announced()).unwrap().contains("203.0.113.2/32"));
}

/// A small file system of its own, which is full; `None` where the system lets nobody have one.
fn full_disk(place: &Place) -> Option<Vec<String>> {
    let mut unshare = vec!["unshare".to_owned(), "--mount".to_owned()];
    if !geteuid().is_root() {
        unshare.push("--map-root-user".to_owned());
    }
    let probe = Command::new(&unshare[0]).args(&unshare[1..]).arg("true").output();
    if !probe.is_ok_and(|it| it.status.success()) {
        return None;
    }
    let state = place.path("state").display().to_string();
    let fill = format!(
        "mount -t tmpfs -o size=256k,mode=700 tmpfs {state} && \
         {{ cat /dev/zero > {state}/ballast 2>/dev/null || true; }} && exec \"$@\""
    );
    unshare.extend(["sh", "-c", &fill, "sh"].map(str::to_owned));
    Some(unshare)
}

#[test]
fn a_full_disk_delays_no_route_and_is_said() {
    let router = Router::listen();
    let place = Place::new(&router);
    let full = full_disk(&place);
    // Where there can be no such disk, no file may be longer than nothing.
    let limited = ["sh", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"];
    let before: Vec<&str> = match &full {
        Some(full) => full.iter().map(String::as_str).collect(),
        None => limited.to_vec(),
    };
    let daemon = place.run_under(&before);
    let session = complete_session(&router);
    assert_eq!(flags(&session), (N, 0));
    let cause = if full.is_some() { "No space left on device" } else { "File too large" };
    let consequence = "trying again, until then a restart may lose the latest changes";
    daemon.wait_for_line(&["ERROR", "cannot write", "state/", cause, consequence]);
    if full.is_some() {
        free_disk(&daemon, &place);
    }
}

/// There is room again: what could not be written is.
fn free_disk(daemon: &Daemon, place: &Place) {
    let state = format!("/proc/{}/root{}", daemon.process(), place.path("state").display());
    fs::remove_file(format!("{state}/ballast")).unwrap();
    daemon.wait_for_line(&["state is saved again"]);
    wait_for_text(Path::new(&format!("{state}/announced.json")), "203.0.113.2/32");
}

/// A folder that cannot be read when the daemon starts: what it held stays announced, and nobody is
/// told that this is all.
fn start_without_a_folder(forget: &str) {
    let router = Router::listen();
    let place = ran_once(&router);
    if !forget.is_empty() {
        fs::remove_file(place.path(forget)).unwrap();
    }
    set_mode(&place.path("more"), 0);
    let daemon = place.run_without_privileges();
    let mut session = router.session();
    assert!(!session.wait_for_route(WEB));
    assert!(!session.wait_for_route(DNS), "{forget} is not needed for it");
    daemon.wait_for_line(&["ERROR", "more", "its last content stays in force"]);
    assert!(session.misses_end_of_rib(Duration::from_millis(500)), "{forget}");
    // A run that ends meanwhile leaves the whole picture behind.
    daemon.end(Signal::SIGTERM);
    assert_eq!(session.end(), End::Quiet);
    assert!(fs::read_to_string(place.announced()).unwrap().contains("203.0.113.2/32"));
    let _daemon = place.run_without_privileges();
    let mut session = router.session();
    assert_eq!(flags(&session), (N | R, F));
    session.wait_for_route(DNS);
    set_mode(&place.path("more"), 0o700);
    session.wait_for_end_of_rib();
}

#[test]
fn a_folder_that_cannot_be_read_at_the_start_withdraws_nothing() {
    start_without_a_folder("");
}

/// Nothing is known of its objects then but what was announced for them.
#[test]
fn what_was_announced_stays_even_if_the_objects_are_forgotten() {
    start_without_a_folder("state/resources.json");
}
