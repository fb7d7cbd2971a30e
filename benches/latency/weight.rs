//! The size of the daemon: the binary, and its memory with two sessions and ten services.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::announcer::peer;
use lab::bird::{self, Bird};
use lab::fairway::Fairway;
use lab::resources::{self, Advertisement};
use lab::wait::{PATIENCE, wait_until};
use lab::{Lab, Wiring};

const SERVICES: usize = 10;

/// Measures and prints both.
pub(crate) fn print(cell: usize, place: &Path) -> Result<()> {
    let lab = Lab::build(cell, place, Wiring::Direct)?;
    let _router = Bird::start(&lab.router.namespace, place, "router", &bird::receiving())?;
    let mut fairway = Fairway::prepare(&lab)?;
    fairway.log_level = "info";
    for (name, address) in [("router4", "10.77.0.2"), ("router6", "fd77::2")] {
        fairway.apply(name, &peer(name, address))?;
    }
    fairway.apply("pool", &resources::pool("pool", &["203.0.113.0/24"]))?;
    fairway.apply("all", &Advertisement { name: "all", ..Advertisement::default() }.yaml())?;
    for number in 0..SERVICES {
        let name = format!("service-{number}");
        fairway.apply(&name, &resources::service(&name, None))?;
    }
    fairway.start(&lab.node)?;
    for address in ["10.77.0.2", "fd77::2"] {
        wait_until("both sessions", PATIENCE, || {
            let neighbour = fairway.neighbour(address)?;
            neighbour.is_established().then_some(()).context("not up yet")
        })?;
    }
    let status = fs::read_to_string(format!("/proc/{}/status", fairway.process_id()?))?;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
        kilobytes.map(|kilobytes| kilobytes / 1024.0).context("no such line in /proc")
    };
    let binary = crate::binary();
    let size = fs::metadata(&binary)?.len();
    println!("\n| | |\n|---|---|");
    println!("| release binary, MiB | {:.1} |", size as f64 / 1024.0 / 1024.0);
    println!(
        "| resident memory, 2 sessions and {SERVICES} services, MiB | {:.1} |",
        field("VmRSS")?
    );
    println!("| its peak, MiB | {:.1} |", field("VmHWM")?);
    fairway.stop()
}
