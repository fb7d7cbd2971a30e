//! What if clients open the admin socket and never send anything? Others are answered all the same.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::Cell;
use crate::scene::{SERVICES, Scene};
use lab::wait::now;

/// Far more than Fairway serves at a time.
const SILENT: usize = 200;

const ANSWER_LIMIT: Duration = Duration::from_secs(3);

// This is the requirement: nobody waits for clients that are silent. It was written while sixteen of them kept
// everybody else waiting until their ten seconds were over.
pub(crate) fn idle_clients_of_the_socket_keep_nobody_waiting(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    let before = scene.session()?;
    let socket = scene.socket();
    let silent = (0..SILENT)
        .map(|_| UnixStream::connect(&socket).context("connecting to the admin socket"))
        .collect::<Result<Vec<UnixStream>>>()?;

    let asked = now();
    scene.fairway.show(&["bgp", "summary"])?;
    let waited = asked.elapsed();
    ensure!(waited <= ANSWER_LIMIT, "the answer took {:.1} s", waited.as_secs_f64());
    scene.add_quickly(SERVICES)?;
    scene.bound_was_reached("admin-client")?;
    drop(silent);
    scene.expect_same_session(before)
}
