//! What if another process has a lease on a resource file? The kernel lets nobody open it until the holder
//! gives it up. Fairway names that file, reads all others meanwhile, and reads it when it can.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::Cell;
use crate::scene::{QUICK, SERVICES, Scene, prefix, service_text};
use lab::Family;
use lab::namespace::Network;
use lab::process::Process;
use lab::wait::{PATIENCE, wait_until};

/// Takes a write lease (F_SETLEASE, 1024) and does not let go of it when the kernel asks (SIGIO). It opens the file for
/// reading, so that no event tells when it is over.
const HOLDER: &str = "\
import fcntl, os, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(file, 1024, fcntl.F_WRLCK)
print('held', flush=True)
time.sleep(60)
";

/// The Service in the file with the lease.
const LEASED: usize = SERVICES;

pub(crate) fn a_lease_on_one_file_holds_up_no_other(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    let before = scene.session()?;
    // The lease is on the file, whatever its name: nobody can read it when it comes to its place.
    let staged = scene.in_folder(".leased");
    fs::write(&staged, service_text(LEASED)).context("writing the file")?;
    let mut holder = hold(cell, &staged)?;
    fs::rename(&staged, scene.fairway.resource("leased")).context("moving it in place")?;

    scene.fault_is_shown(&["leased.yaml", "another process has a lease on it"], QUICK)?;
    scene.add_quickly(LEASED + 1)?;
    scene.add_quickly(LEASED + 2)?;
    let routes = scene.router.prefixes(Family::Ipv4)?;
    ensure!(!routes.contains(&prefix(LEASED)), "the file was read in spite of its lease");
    scene.http("healthz")?;
    holder.check_running()?;

    holder.kill();
    scene.router_gets(LEASED, QUICK)?;
    scene.all_is_in_force()?;
    scene.expect_same_session(before)
}

/// A process that holds a lease on the file. It ends when this is dropped.
fn hold(cell: &Cell, file: &Path) -> Result<Process> {
    let file = file.to_string_lossy().into_owned();
    let words = ["-c".to_owned(), HOLDER.to_owned(), file];
    let log = cell.directory.join("holder.log");
    let mut holder = Process::spawn(&Network::Own, Path::new("python3"), &words, &log)?;
    wait_until("the other process has its lease", PATIENCE, || {
        holder.check_running()?;
        let text = fs::read_to_string(&log).context("the log of the holder")?;
        ensure!(text.contains("held"), "it says: {text}");
        Ok(())
    })?;
    Ok(holder)
}
