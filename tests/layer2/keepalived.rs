//! The rival: keepalived on three machines, with one address of each family. Used by the benchmark of failover.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::failover::{Fault, Software};
use crate::members::{NAMES, Wire};
use crate::segment::mac;
use lab::make_directory;
use lab::namespace::Namespace;
use lab::process::{Process, output_of};
use lab::wait::PATIENCE;

/// Of the instances of the two families.
const ROUTER_IDS: [(&str, u8); 2] = [("192.0.2.100/24", 51), ("2001:db8::100/64", 52)];

/// keepalived on each machine.
pub(crate) struct Keepalived {
    wire: Wire,
    directory: PathBuf,
    /// Between its advertisements.
    advert_seconds: &'static str,
    processes: Vec<Option<Process>>,
}

/// Whether the program is there.
pub(crate) fn is_installed() -> bool {
    output_of(lab::process::bounded("keepalived").arg("--version")).is_ok()
}

impl Keepalived {
    pub(crate) fn build(cell: usize, at: &Path, advert_seconds: &'static str) -> Result<Self> {
        let wire = Wire::build(cell)?;
        let processes = NAMES.map(|_| None).into();
        let directory = at.to_owned();
        let mut all = Self { wire, directory, advert_seconds, processes };
        (0..NAMES.len()).try_for_each(|node| all.start(node))?;
        Ok(all)
    }

    fn start(&mut self, node: usize) -> Result<()> {
        let directory = self.directory.join(NAMES[node]);
        make_directory(&directory)?;
        let priority = 150 - 50 * u8::try_from(node)?;
        let advert_seconds = self.advert_seconds;
        let instance = |(address, id): (&str, u8)| {
            format!(
                "vrrp_instance I{id} {{ state BACKUP\n interface eth0\n virtual_router_id {id}\n \
                 priority {priority}\n advert_int {advert_seconds}\n \
                 virtual_ipaddress {{ {address} }} }}\n"
            )
        };
        let text = ROUTER_IDS.map(instance).concat();
        let head = format!("global_defs {{ router_id {}\n vrrp_version 3 }}\n", NAMES[node]);
        let file = directory.join("keepalived.conf");
        std::fs::write(&file, head + &text).context("the configuration of keepalived")?;
        let process = lab::keepalived::start(&self.wire.machines[node], &directory)?;
        self.processes[node] = Some(process);
        Ok(())
    }

    /// A killed one may have left its child, beside which no other one starts.
    fn end_what_is_left(&self, node: usize) {
        let directory = self.directory.join(NAMES[node]);
        if let Ok(text) = std::fs::read_to_string(directory.join("vrrp.pid")) {
            // It may have ended by itself.
            let _ = output_of(lab::process::bounded("kill").args(["-9", text.trim()]));
        }
        for name in ["pid", "vrrp.pid"] {
            let _ = std::fs::remove_file(directory.join(name));
        }
    }

    fn process(&mut self, node: usize) -> Result<&mut Process> {
        self.processes[node].as_mut().context("keepalived was not started")
    }
}

impl Software for Keepalived {
    fn client(&self) -> &Namespace {
        &self.wire.client
    }

    fn mac(&self, node: usize) -> Result<String> {
        mac(&self.wire.machines[node], "eth0")
    }

    fn fail(&mut self, node: usize, fault: Fault) -> Result<()> {
        match fault {
            Fault::Kill => self.process(node)?.kill(),
            Fault::Terminate => drop(self.process(node)?.stop(PATIENCE)?),
            Fault::Stop => self.process(node)?.freeze()?,
            Fault::Cut => drop(self.wire.switch.ip(&["link", "set", NAMES[node], "down"])?),
            Fault::Drain => anyhow::bail!("keepalived has no drain"),
        }
        Ok(())
    }

    fn mend(&mut self, node: usize, fault: Fault) -> Result<()> {
        match fault {
            Fault::Kill | Fault::Terminate => {
                self.end_what_is_left(node);
                // What a killed one has left on the interface; it would not find that by itself.
                for (address, _) in ROUTER_IDS {
                    let words = ["address", "del", address, "dev", "eth0"];
                    drop(self.wire.machines[node].ip(&words));
                }
                self.start(node)
            }
            Fault::Stop => self.process(node)?.thaw(),
            Fault::Cut => self.wire.switch.ip(&["link", "set", NAMES[node], "up"]).map(drop),
            Fault::Drain => Ok(()),
        }
    }

    fn check_whole(&mut self) -> Result<()> {
        for node in 0..NAMES.len() {
            self.process(node)?.check_running()?;
        }
        let addresses = self.wire.machines[0].ip(&["address", "show", "dev", "eth0"])?;
        let has_all = ROUTER_IDS.iter().all(|(address, _)| addresses.contains(address));
        ensure!(has_all, "{} has not both addresses", NAMES[0]);
        Ok(())
    }

    /// The address stays on the interface, and the kernel goes on.
    fn is_silent_when_killed(&self) -> bool {
        false
    }
}
