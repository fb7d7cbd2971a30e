//! How often has a bound held something back? As /metrics of a daemon counts it. Used by the case of all floods.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use lab::wait::{PATIENCE, wait_until};

/// How long one answer may take.
const LIMIT: Duration = Duration::from_secs(5);

/// Where the daemon serves its metrics, and how often it had reached the bound.
pub(crate) struct Reached {
    daemon: SocketAddr,
    bound: &'static str,
    times: u64,
}

impl Reached {
    /// Reads the counter now.
    pub(crate) fn until_now(daemon: SocketAddr, bound: &'static str) -> Result<Self> {
        let expected = format!("the counter of {bound}");
        let times = wait_until(&expected, PATIENCE, || times_reached(daemon, bound))?;
        Ok(Self { daemon, bound, times })
    }

    /// Says how often it has reached the bound since then; an error when it has not.
    pub(crate) fn report(&self) -> Result<String> {
        let now = Self::until_now(self.daemon, self.bound)?;
        let times = now.times.saturating_sub(self.times);
        ensure!(times > 0, "the bound {} held nothing back", self.bound);
        Ok(format!("the bound {} held something back {times} times", self.bound))
    }
}

fn times_reached(daemon: SocketAddr, bound: &str) -> Result<u64> {
    let mut stream = TcpStream::connect_timeout(&daemon, LIMIT).context("the metrics port")?;
    stream.set_read_timeout(Some(LIMIT)).context("a limit for reading")?;
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n")
        .context("asking for metrics")?;
    let mut page = String::new();
    stream.read_to_string(&mut page).context("reading metrics")?;
    let label = format!("fairway_bound_reached_total{{bound=\"{bound}\"}} ");
    let count = page.lines().find_map(|line| line.strip_prefix(&label));
    let count = count.with_context(|| format!("no bound {bound} in the metrics"))?;
    count.parse().with_context(|| format!("the bound {bound} was reached {count} times"))
}
