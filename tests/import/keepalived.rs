//! Configurations that keepalived runs in a namespace: as master it has the addresses for which `fairway plan` has the host answer,
//! on the same interfaces, and beyond them those alone of which `fairway import` says that they are left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use lab::make_directory;
use lab::namespace::Namespace;
use lab::process::{Process, tail};
use lab::suite::{Case, Cell, Suite};
use lab::wait::{PATIENCE, wait_until};

use super::objects::{CRATE, imported, plan, rows};

/// A sample, and what keepalived needs around it.
struct Sample {
    name: &'static str,
    /// The interfaces of the host, with an address of its own.
    interfaces: &'static [(&'static str, Option<&'static str>)],
    /// What this machine cannot give it, or keepalived refuses.
    adapt: fn(&str) -> String,
    /// `ADDRESS INTERFACE` that keepalived alone has, and what the importer says about it.
    left_out: &'static [(&'static str, &'static str)],
}

const SAMPLES: &[Sample] = &[
    Sample {
        name: "simple",
        interfaces: &[("eth0", Some("192.168.122.1/24"))],
        adapt: str::to_owned,
        left_out: &[],
    },
    // Its scripts are not there; keepalived goes on without them.
    Sample {
        name: "unicast",
        interfaces: &[("ens192", Some("10.0.0.11/24")), ("ens224", None)],
        adapt: str::to_owned,
        left_out: &[],
    },
    // eth3 is tracked without a weight, and chk_page, too: without either the host is no master.
    Sample {
        name: "checks",
        interfaces: &[("eth0", Some("192.168.200.1/25")), ("eth1", None), ("eth3", None)],
        adapt: with_a_user_for_scripts,
        left_out: &[],
    },
    Sample {
        name: "lvs",
        interfaces: &[("eth0", Some("192.0.2.1/24"))],
        adapt: without_ipvs,
        left_out: &[],
    },
    Sample {
        name: "shared-file",
        interfaces: &[("eth0", Some("192.0.2.1/24"))],
        adapt: str::to_owned,
        left_out: &[],
    },
    Sample {
        name: "sync",
        interfaces: &[("eth0", Some("203.0.113.9/28")), ("eth1", Some("10.1.0.2/24"))],
        adapt: without_the_last_instance,
        left_out: &[
            ("fe80::10 eth0", "fe80::10/64: is a link-local address"),
            ("203.0.113.10 eth1", "203.0.113.10/28: is shared by another instance already"),
        ],
    },
];

/// keepalived removes all scripts where the user `keepalived_script` is not there, and `enable_script_security` is.
fn with_a_user_for_scripts(text: &str) -> String {
    format!("global_defs {{\n    script_user root\n}}\n{text}")
}

/// keepalived 2.2 ends with SIGSEGV where the kernel has no IPVS and this line is there.
fn without_ipvs(text: &str) -> String {
    let lines = text.lines().filter(|it| !it.contains("lvs_sync_daemon"));
    lines.map(|it| format!("{it}\n")).collect()
}

/// keepalived refuses a whole file where an instance has no `virtual_router_id`.
fn without_the_last_instance(text: &str) -> String {
    let (before, _) = text.split_once("vrrp_instance nowhere").unwrap_or((text, ""));
    before.to_owned()
}

pub(crate) fn add_to(suite: &mut Suite) {
    for sample in SAMPLES {
        let name = format!("keepalived {}: the master has the planned addresses", sample.name);
        suite.add(Case::new(name, move |cell| same(cell, sample)));
    }
}

fn same(cell: &Cell, sample: &Sample) -> Result<()> {
    let path = format!("keepalived/{}.conf", sample.name);
    let imported = imported(cell, &path)?;
    let mut expected = planned(&plan(cell, &imported.file, "")?)?;
    ensure!(!expected.is_empty(), "the plan has no address");
    for (address, reason) in sample.left_out {
        ensure!(imported.said.contains(reason), "{reason}: is not said in {}", imported.said);
        ensure!(expected.insert((*address).to_owned()), "{address} is planned");
    }

    let scene = Scene::build(cell, sample)?;
    let own = scene.addresses()?;
    let text = fs::read_to_string(lab::checkout().join(CRATE).join(&path)).context(path)?;
    let file = cell.directory.join("keepalived.conf");
    fs::write(&file, (sample.adapt)(&text))?;
    let mut keepalived = lab::keepalived::start(&scene.host, &cell.directory)?;
    wait_until("keepalived has the planned addresses", 3 * PATIENCE, || {
        keepalived.check_running()?;
        let has: BTreeSet<_> = scene.addresses()?.difference(&own).cloned().collect();
        let log = tail(&cell.directory.join("log"), 20);
        ensure!(has == expected, "{has:?} in place of {expected:?}\n{log}");
        Ok(())
    })?;
    keepalived.stop(PATIENCE).map(drop)
}

/// `ADDRESS INTERFACE` of each row about layer 2.
fn planned(text: &str) -> Result<BTreeSet<String>> {
    let row = |row: String| -> Result<String> {
        let mut words = row.split_whitespace();
        let (address, interface) = (words.next(), words.nth(1));
        let address = address.with_context(|| row.clone())?;
        Ok(format!("{address} {}", interface.with_context(|| row.clone())?))
    };
    rows(text).into_iter().map(row).collect()
}

/// The host and what it is connected to.
struct Scene {
    host: Namespace,
    /// Held until the end: without it the interfaces have no carrier.
    _others: Namespace,
    /// What checks connect to.
    _services: Vec<Process>,
}

impl Scene {
    fn build(cell: &Cell, sample: &Sample) -> Result<Self> {
        let host = Namespace::create(cell.number, "host")?;
        let others = Namespace::create(cell.number, "others")?;
        // The kernel's own link-local addresses would come at some time or other.
        host.run("sysctl", &["-q", "-w", "net.ipv6.conf.default.addr_gen_mode=1"])?;
        for (interface, address) in sample.interfaces {
            host.connect(interface, &others, interface)?;
            if let Some(address) = address {
                host.add_address(interface, address)?;
            }
        }
        let page = cell.directory.join("page");
        make_directory(&page)?;
        fs::write(page.join("healthz"), "well\n")?;
        // The page that `checks` asks for, and the uplink of `sync`.
        let mut services = vec![serve(&host, "127.0.0.1:8080", &page)?];
        if sample.name == "sync" {
            others.add_address("eth0", "203.0.113.1/28")?;
            services.push(serve(&others, "203.0.113.1:179", &page)?);
        }
        Ok(Self { host, _others: others, _services: services })
    }

    /// `ADDRESS INTERFACE` of all; those of keepalived's own interfaces (`use_vmac`) count for the one below.
    fn addresses(&self) -> Result<BTreeSet<String>> {
        let links: Value = serde_json::from_str(&self.host.ip(&["-json", "address", "show"])?)?;
        let mut addresses = BTreeSet::new();
        for link in links.as_array().context("no list of links")? {
            let interface = link["link"].as_str().or(link["ifname"].as_str()).context("no name")?;
            for address in link["addr_info"].as_array().into_iter().flatten() {
                let address = address["local"].as_str().context("no address")?;
                addresses.insert(format!("{address} {interface}"));
            }
        }
        Ok(addresses)
    }
}

fn serve(place: &Namespace, address: &str, page: &Path) -> Result<Process> {
    let folder = page.to_string_lossy();
    let words = ["httpd", "-f", "-p", address, "-h", &folder].map(str::to_owned);
    Process::spawn(place, Path::new("busybox"), &words, &page.join("log"))
}
