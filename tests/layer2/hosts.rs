//! Hosts without Kubernetes: the owner has the address on its interface and takes the packets; a health check and the
//! advertised interface say who may own it.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::members::{NAMES, Three};
use crate::segment::{Segment, mac, who_has};
use crate::server::{PORT, fetch, serve};
use lab::namespace::Namespace;
use lab::process::Process;
use lab::suite::Cell;
use lab::wait::{PATIENCE, holds_for, wait_until};

const IPV4: &str = "192.0.2.100";
const IPV6: &str = "2001:db8::100";

/// The lifetimes in seconds with which `machine` has `address` on an interface: `None` without an end.
fn lifetimes(machine: &Namespace, interface: &str, address: &str) -> Result<Vec<Option<u64>>> {
    let text = machine.ip(&["-json", "address", "show", "dev", interface])?;
    let all: Value = serde_json::from_str(&text)?;
    let all = all[0]["addr_info"].as_array().context("addresses")?;
    let of = |it: &Value| it["valid_life_time"].as_u64().filter(|it| *it < u64::from(u32::MAX));
    Ok(all.iter().filter(|it| it["local"] == address).map(of).collect())
}

fn wait_until_bound(machine: &Namespace, address: &str) -> Result<()> {
    wait_until(&format!("{address} is on eth0"), PATIENCE, || {
        let found = lifetimes(machine, "eth0", address)?;
        ensure!(found.len() == 1 && found[0].is_some(), "{found:?}");
        Ok(())
    })
}

fn wait_until_unbound(machine: &Namespace, address: &str) -> Result<()> {
    wait_until(&format!("{address} is not on eth0"), PATIENCE, || {
        let found = lifetimes(machine, "eth0", address)?;
        ensure!(found.is_empty(), "{found:?}");
        Ok(())
    })
}

/// The host takes the packets itself, for as long as its daemon runs, and no longer.
pub(crate) fn a_bound_address_takes_packets(cell: &Cell) -> Result<()> {
    let mut segment = Segment::new(cell)?;
    let _server = serve(&segment.node, "node", &cell.directory.join("server.log"))?;
    segment.start(&crate::cases::resources("bind: true"))?;
    for address in [IPV4, IPV6] {
        wait_until_bound(&segment.node, address)?;
        let said = fetch(&segment.client, address)?;
        ensure!(said == "node", "{address}: {said:?}");
        let shown = segment.shown(address)?;
        ensure!(shown["bound"] == true, "{shown}");
        let answers = who_has(&segment.client, "eth0", address)?;
        ensure!(answers == [mac(&segment.node, "eth0")?], "{address}: {answers:?}");
    }
    // It stays beyond the lifetime that the kernel was told.
    holds_for("the addresses stay", std::time::Duration::from_secs(5), || {
        for address in [IPV4, IPV6] {
            let found = lifetimes(&segment.node, "eth0", address)?;
            ensure!(found.len() == 1, "{address}: {found:?}");
        }
        Ok(())
    })?;
    segment.fairway.apply("resources.yaml", &crate::cases::resources("bind: false"))?;
    wait_until_unbound(&segment.node, IPV4)?;
    segment.fairway.apply("resources.yaml", &crate::cases::resources("bind: true"))?;
    wait_until_bound(&segment.node, IPV4)?;
    segment.fairway.stop()?;
    for address in [IPV4, IPV6] {
        let found = lifetimes(&segment.node, "eth0", address)?;
        ensure!(found.is_empty(), "{address} after SIGTERM: {found:?}");
    }
    // A daemon that is killed removes nothing; the kernel does.
    segment.start(&crate::cases::resources("bind: true"))?;
    wait_until_bound(&segment.node, IPV4)?;
    segment.fairway.kill()?;
    for address in [IPV4, IPV6] {
        wait_until_unbound(&segment.node, address)?;
    }
    Ok(())
}

/// An address that the operator has put on an interface stays there, whatever the daemon does.
pub(crate) fn an_address_of_the_operator_is_not_touched(cell: &Cell) -> Result<()> {
    let mut segment = Segment::new(cell)?;
    segment.node.add_address("eth0", &format!("{IPV4}/24"))?;
    segment.start(&crate::cases::resources("bind: true"))?;
    segment.wait_for(IPV4)?;
    wait_until_bound(&segment.node, IPV6)?;
    wait_until("the address of the operator is named", PATIENCE, || {
        let shown = segment.shown(IPV4)?;
        let reason = shown["reason"].as_str().unwrap_or_default();
        ensure!(shown["bound"] == false && reason.contains("stays as it is"), "{shown}");
        Ok(())
    })?;
    let stays = |when: &str| -> Result<()> {
        let found = lifetimes(&segment.node, "eth0", IPV4)?;
        ensure!(found == [None], "{when}: {found:?}");
        Ok(())
    };
    stays("while it is owned")?;
    segment.fairway.stop()?;
    let found = lifetimes(&segment.node, "eth0", IPV4)?;
    ensure!(found == [None], "after the end: {found:?}");
    Ok(())
}

/// Without the right to change addresses the daemon answers, and says what is missing.
pub(crate) fn a_missing_right_to_bind_is_named(cell: &Cell) -> Result<()> {
    let mut segment = Segment::new(cell)?;
    segment.start_without("net_admin", &crate::cases::resources("bind: true"))?;
    segment.wait_for(IPV4)?;
    wait_until("the missing right is named", PATIENCE, || {
        let text = segment.fairway.show_text(&["l2"])?;
        ensure!(text.contains("NET_ADMIN"), "{text}");
        Ok(())
    })
}

fn servers(three: &Three, directory: &Path) -> Result<Vec<Process>> {
    let machines = three.machines.iter().zip(NAMES);
    machines
        .map(|(it, name)| serve(&it.place, name, &directory.join(format!("{name}.log"))))
        .collect()
}

fn wait_until_served_by(three: &Three, number: usize) -> Result<()> {
    wait_until(&format!("{} serves the address", NAMES[number]), PATIENCE, || {
        let said = fetch(&three.client, IPV4)?;
        ensure!(said == NAMES[number], "{said:?}");
        Ok(())
    })
}

/// The address is on the interface of its owner alone: after a planned end at once, after a crash within seconds.
pub(crate) fn a_bound_address_moves_with_its_owner(cell: &Cell) -> Result<()> {
    let mut three = Three::build(
        cell.number,
        &cell.directory,
        &crate::cases::resources("bind: true"),
        "debug",
    )?;
    let _servers = servers(&three, &cell.directory)?;
    let owner = three.owner()?;
    wait_until_bound(&three.machines[owner].place, IPV4)?;
    wait_until_served_by(&three, owner)?;
    for number in three.others(owner) {
        let found = lifetimes(&three.machines[number].place, "eth0", IPV4)?;
        ensure!(found.is_empty(), "{} has it, too: {found:?}", NAMES[number]);
    }
    three.machines[owner].fairway.stop()?;
    let found = lifetimes(&three.machines[owner].place, "eth0", IPV4)?;
    ensure!(found.is_empty(), "after SIGTERM: {found:?}");
    let next = three.owner_among(&three.others(owner))?;
    wait_until_served_by(&three, next)?;
    three.start(owner)?;
    ensure!(three.owner()? == owner);
    wait_until_served_by(&three, owner)?;
    three.machines[owner].fairway.kill()?;
    wait_until_unbound(&three.machines[owner].place, IPV4)?;
    let next = three.owner_among(&three.others(owner))?;
    wait_until_served_by(&three, next)
}

/// The server of the owner ends: another host owns the address, until it is back. Where no server runs, nobody does.
pub(crate) fn a_failing_health_check_moves_the_address(cell: &Cell) -> Result<()> {
    let check =
        format!("fairway.dev/health-check: 'http://127.0.0.1:{PORT}/ interval=100ms failures=2'");
    let resources = crate::cases::resources("bind: true")
        .replace("annotations: {", &format!("annotations: {{{check}, "));
    let three = Three::build(cell.number, &cell.directory, &resources, "debug")?;
    let log = |name: &str| cell.directory.join(format!("{name}.log"));
    let is_owned_by_nobody = |why: &str| {
        wait_until("nobody owns the address", PATIENCE, || {
            for machine in &three.machines {
                let item = &machine.fairway.show(&["l2"])?["items"][0];
                ensure!(item["owner"].is_null(), "{item}");
                let reason = item["reason"].as_str().unwrap_or_default();
                ensure!(reason.contains(why), "{item}");
            }
            Ok(())
        })
    };
    is_owned_by_nobody("cannot connect to 127.0.0.1:8080")?;
    let mut servers = servers(&three, &cell.directory)?;
    // The first machine whose check succeeds owns the address until the others' checks do.
    wait_until("each machine serves the Service", PATIENCE, || {
        for (machine, name) in three.machines.iter().zip(NAMES) {
            let explained = machine.fairway.explain("service", "web")?;
            ensure!(!explained.contains("health check"), "{name}: {explained}");
        }
        Ok(())
    })?;
    let owner = three.owner()?;
    wait_until_served_by(&three, owner)?;
    servers[owner].kill();
    let next = three.next_owner(owner)?;
    wait_until_served_by(&three, next)?;
    let explained = three.machines[owner].fairway.explain("service", "web")?;
    ensure!(explained.contains("the health check of the Service fails"), "{explained}");
    servers[owner] = serve(&three.machines[owner].place, NAMES[owner], &log(NAMES[owner]))?;
    wait_until("the first one owns it again", PATIENCE, || {
        let again = three.owner()?;
        ensure!(again == owner, "{} owns it", NAMES[again]);
        Ok(())
    })?;
    wait_until_served_by(&three, owner)?;
    servers.iter_mut().for_each(Process::kill);
    is_owned_by_nobody("the health check of the Service fails")
}

/// The advertised interface of the owner has no carrier, while its heartbeats go on over another one.
pub(crate) fn an_owner_needs_the_advertised_interface(cell: &Cell) -> Result<()> {
    let mut three = Three::prepare(
        cell.number,
        &cell.directory,
        &crate::cases::resources("interfaces: [eth1]"),
        "debug",
    )?;
    three.add_second_wire()?;
    (0..NAMES.len()).try_for_each(|number| three.start(number))?;
    let owner = three.owner_on("eth1", &[0, 1, 2])?;
    three.switch.ip(&["link", "set", &format!("{}-1", NAMES[owner]), "down"])?;
    let next = wait_until("another one owns it", PATIENCE, || {
        let next = three.owner_on("eth1", &[0, 1, 2])?;
        ensure!(next != owner);
        Ok(next)
    })?;
    println!("  {} in place of {}", NAMES[next], NAMES[owner]);
    let text = three.machines[owner].fairway.show_text(&["l2"])?;
    ensure!(text.contains(NAMES[next]), "{text}");
    three.switch.ip(&["link", "set", &format!("{}-1", NAMES[owner]), "up"])?;
    wait_until("the first one owns it again", PATIENCE, || {
        let again = three.owner_on("eth1", &[0, 1, 2])?;
        ensure!(again == owner, "{} owns it", NAMES[again]);
        Ok(())
    })
}
