//! How is keepalived run in a namespace? In the foreground, with all its files in one folder. Used for its addresses alone, which
//! suites compare with ours.

use std::path::Path;

use anyhow::Result;

use super::namespace::Place;
use super::process::Process;

/// Starts it with `keepalived.conf` of `directory`, where its log, `pid` and `vrrp.pid` go.
pub fn start(place: &impl Place, directory: &Path) -> Result<Process> {
    let path = |name: &str| directory.join(name).display().to_string();
    let arguments = [
        "--dont-fork",
        "--log-console",
        "--no-syslog",
        "--vrrp",
        "--use-file",
        &path("keepalived.conf"),
        "--pid",
        &path("pid"),
        "--vrrp_pid",
        &path("vrrp.pid"),
    ];
    let arguments = arguments.map(str::to_owned);
    Process::spawn(place, Path::new("keepalived"), &arguments, &directory.join("log"))
}
