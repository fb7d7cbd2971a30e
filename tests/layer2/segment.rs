//! A segment: a switch in a namespace of its own, and machines on it, each with its interface `eth0`.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use lab::fairway::Fairway;
use lab::namespace::{Namespace, Place};
use lab::suite::Cell;
use lab::wait::{PATIENCE, wait_until};

/// The machine that Fairway runs on, a client and a machine of somebody else, on one switch.
pub(crate) struct Segment {
    pub(crate) fairway: Fairway,
    pub(crate) node: Namespace,
    pub(crate) client: Namespace,
    pub(crate) foreign: Namespace,
    /// Held for as long as the cables.
    switch: Namespace,
}

/// A namespace in which programs start without a capability.
struct Without<'a>(&'a str, &'a Namespace);

impl Place for Without<'_> {
    fn command(&self, program: &OsStr) -> Command {
        let Self(capability, place) = self;
        let mut command = place.command(OsStr::new("setpriv"));
        let sets = ["--bounding-set", "--inh-caps"];
        command.args(sets.map(|set| format!("{set}=-{capability}"))).arg(program);
        command
    }
}

impl Segment {
    /// Machines with addresses of 192.0.2.0/24 and 2001:db8::/64; nothing runs yet.
    pub(crate) fn new(cell: &Cell) -> Result<Self> {
        let create = |role| Namespace::create(cell.number, role);
        let segment = Self {
            fairway: Fairway::prepare_in(&cell.directory)?,
            node: create("node")?,
            client: create("client")?,
            foreign: create("foreign")?,
            switch: create("switch")?,
        };
        segment.add_switch("lan")?;
        for (number, machine) in
            [&segment.node, &segment.client, &segment.foreign].into_iter().enumerate()
        {
            segment.plug("lan", machine, "eth0", &format!("p{number}"))?;
            let number = number + 1;
            machine.add_address("eth0", &format!("192.0.2.{number}/24"))?;
            machine.add_address("eth0", &format!("2001:db8::{number}/64"))?;
        }
        Ok(segment)
    }

    /// Adds a switch.
    pub(crate) fn add_switch(&self, name: &str) -> Result<()> {
        self.switch.ip(&["link", "add", name, "type", "bridge", "mcast_snooping", "0"])?;
        self.switch.ip(&["link", "set", name, "up"]).map(drop)
    }

    /// Lays a cable from `machine` to a switch, which names its end `port`.
    pub(crate) fn plug(
        &self,
        switch: &str,
        machine: &Namespace,
        interface: &str,
        port: &str,
    ) -> Result<()> {
        machine.connect(interface, &self.switch, port)?;
        self.switch.ip(&["link", "set", port, "master", switch]).map(drop)
    }

    /// Pulls the cable of a port.
    pub(crate) fn unplug(&self, port: &str) -> Result<()> {
        self.switch.ip(&["link", "set", port, "down"]).map(drop)
    }

    /// Puts it back.
    pub(crate) fn plug_again(&self, port: &str) -> Result<()> {
        self.switch.ip(&["link", "set", port, "up"]).map(drop)
    }

    /// Starts the daemon with this text as its resources.
    pub(crate) fn start(&mut self, resources: &str) -> Result<()> {
        self.prepare(resources)?;
        self.fairway.start(&self.node)
    }

    /// The same, without this capability.
    pub(crate) fn start_without(&mut self, capability: &str, resources: &str) -> Result<()> {
        self.prepare(resources)?;
        self.fairway.start(&Without(capability, &self.node))
    }

    fn prepare(&mut self, resources: &str) -> Result<()> {
        self.fairway.apply("resources.yaml", resources)?;
        let arguments = ["--bgp-listen", "none", "--metrics-listen", "none"];
        self.fairway.extra_arguments = arguments.map(str::to_owned).to_vec();
        Ok(())
    }

    /// What `show l2` says of an address.
    pub(crate) fn shown(&self, address: &str) -> Result<Value> {
        let all = self.fairway.show(&["l2"])?;
        let items = all.pointer("/items").and_then(Value::as_array).context("no items")?;
        let item = items.iter().find(|it| it["address"] == address);
        item.cloned().with_context(|| format!("show l2 has no {address}: {all}"))
    }

    /// Waits until this machine answers for an address.
    pub(crate) fn wait_for(&self, address: &str) -> Result<()> {
        wait_until(&format!("{address} is answered for"), PATIENCE, || {
            let item = self.shown(address)?;
            ensure!(item["mine"] == true && item["interfaces"] != serde_json::json!([]), "{item}");
            Ok(())
        })
    }
}

/// The hardware address of an interface.
pub(crate) fn mac(machine: &Namespace, interface: &str) -> Result<String> {
    let text = machine.ip(&["-json", "link", "show", "dev", interface])?;
    let value: Value = serde_json::from_str(&text)?;
    Ok(value[0]["address"].as_str().context("no address")?.to_lowercase())
}

/// Every hardware address that answers a question of `machine` for `address`.
pub(crate) fn who_has(machine: &Namespace, interface: &str, address: &str) -> Result<Vec<String>> {
    let is_ipv4 = address.parse::<IpAddr>().context("an address")?.is_ipv4();
    // Both end with an error where nobody answers.
    let text = if is_ipv4 {
        let words = format!("arping -b -c 2 -w 1 -I {interface} {address} || true");
        machine.run("sh", &["-c", &words])?
    } else {
        let words = format!("ndisc6 -m -r 1 -w 400 {address} {interface} || true");
        machine.run("sh", &["-c", &words])?
    };
    let replies = text.lines().filter(|it| it.contains("reply from") || it.contains("link-layer"));
    let mut macs: Vec<String> = replies
        .filter_map(|line| line.split(['[', ']', ' ']).find(|it| it.matches(':').count() == 5))
        .map(str::to_lowercase)
        .collect();
    macs.sort();
    macs.dedup();
    Ok(macs)
}

/// The entry that the kernel of `machine` has for an address on eth0, once it has looked for it.
pub(crate) fn neighbour(machine: &Namespace, address: &str) -> Result<Option<String>> {
    let text = machine.ip(&["-json", "neighbor", "show", "to", address, "dev", "eth0"])?;
    let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    Ok(value[0]["lladdr"].as_str().map(str::to_lowercase))
}

/// Sends a datagram to an address, so that the kernel has to find its neighbour.
pub(crate) fn talk_to(machine: &Namespace, address: &str) -> Result<()> {
    machine.run("bash", &["-c", &format!("echo x >/dev/udp/{address}/9")]).map(drop)
}
