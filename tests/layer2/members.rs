//! Three machines share an address: one answers, and another one does when that ends, in any way.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::segment::{mac, neighbour, talk_to, who_has};
use lab::fairway::Fairway;
use lab::make_directory;
use lab::namespace::Namespace;
use lab::process::output_of;
use lab::suite::Cell;
use lab::wait::{PATIENCE, now, wait_until};

const ADDRESS: &str = "192.0.2.100";
/// The number of the client: the last part of its addresses. Those of the machines are 1 to 3.
const CLIENT: usize = 9;
pub(crate) const NAMES: [&str; 3] = ["node-a", "node-b", "node-c"];
const KEY: &str = "a key of members of the lab\n";
/// What docs/from-keepalived.md has on each host.
const RESOURCES: &str = include_str!("../../examples/segment/address.yaml");

/// A machine with its daemon.
pub(crate) struct Machine {
    pub(crate) fairway: Fairway,
    pub(crate) place: Namespace,
    directory: PathBuf,
}

/// The machines, a client, and the switch between them.
pub(crate) struct Three {
    pub(crate) machines: Vec<Machine>,
    pub(crate) client: Namespace,
    pub(crate) switch: Namespace,
}

/// Three machines and a client, each with `eth0` on one switch; nothing runs on them.
pub(crate) struct Wire {
    pub(crate) machines: Vec<Namespace>,
    pub(crate) client: Namespace,
    /// Its ports are called as the machines.
    pub(crate) switch: Namespace,
}

impl Wire {
    pub(crate) fn build(cell: usize) -> Result<Self> {
        let switch = Namespace::create(cell, "switch")?;
        switch.ip(&["link", "add", "lan", "type", "bridge", "mcast_snooping", "0"])?;
        switch.ip(&["link", "set", "lan", "up"])?;
        let plug = |place: &Namespace, port: &str, number: usize| -> Result<()> {
            place.connect("eth0", &switch, port)?;
            switch.ip(&["link", "set", port, "master", "lan"])?;
            place.add_address("eth0", &format!("192.0.2.{number}/24"))?;
            place.add_address("eth0", &format!("2001:db8::{number}/64"))
        };
        let client = Namespace::create(cell, "client")?;
        plug(&client, "client", CLIENT)?;
        let mut machines = Vec::new();
        for (number, name) in NAMES.into_iter().enumerate() {
            let place = Namespace::create(cell, name)?;
            plug(&place, name, number + 1)?;
            machines.push(place);
        }
        Ok(Self { machines, client, switch })
    }
}

impl Three {
    /// All have joined, and one of them answers.
    fn joined(cell: &Cell) -> Result<Self> {
        let three = Self::build(cell.number, &cell.directory, RESOURCES, "debug")?;
        three.owner()?;
        Ok(three)
    }

    /// All run with these resources.
    pub(crate) fn build(
        cell: usize,
        directory: &Path,
        resources: &str,
        log_level: &'static str,
    ) -> Result<Self> {
        let mut three = Self::prepare(cell, directory, resources, log_level)?;
        (0..NAMES.len()).try_for_each(|number| three.start(number))?;
        Ok(three)
    }

    /// None runs yet.
    pub(crate) fn prepare(
        cell: usize,
        directory: &Path,
        resources: &str,
        log_level: &'static str,
    ) -> Result<Self> {
        let Wire { machines: places, client, switch } = Wire::build(cell)?;
        let mut machines = Vec::new();
        for (number, (name, place)) in NAMES.into_iter().zip(places).enumerate() {
            let directory = directory.join(name);
            make_directory(&directory)?;
            std::fs::write(directory.join("key"), KEY)?;
            let mut fairway = Fairway::prepare_in(&directory)?;
            fairway.log_level = log_level;
            fairway.apply("resources.yaml", resources)?;
            fairway.extra_arguments = arguments(number, &directory);
            machines.push(Machine { fairway, place, directory });
        }
        Ok(Self { machines, client, switch })
    }

    /// Gives each machine and the client an `eth1` on a second switch; the ports of the machines are called `NAME-1`.
    pub(crate) fn add_second_wire(&self) -> Result<()> {
        self.switch.ip(&["link", "add", "lan2", "type", "bridge", "mcast_snooping", "0"])?;
        self.switch.ip(&["link", "set", "lan2", "up"])?;
        let plug = |place: &Namespace, port: &str| -> Result<()> {
            place.connect("eth1", &self.switch, port)?;
            self.switch.ip(&["link", "set", port, "master", "lan2"]).map(drop)
        };
        for (machine, name) in self.machines.iter().zip(NAMES) {
            plug(&machine.place, &format!("{name}-1"))?;
        }
        plug(&self.client, "client-1")
    }

    pub(crate) fn start(&mut self, number: usize) -> Result<()> {
        let machine = &mut self.machines[number];
        let config = machine.directory.join("config").display().to_string();
        machine.fairway.start_as(&machine.place, &["run", "--config", &config])
    }

    /// Waits until all that run agree on the owner, which is the only one that answers; its number.
    pub(crate) fn owner(&self) -> Result<usize> {
        self.owner_among(&[0, 1, 2])
    }

    /// The same, for another owner than this one, which goes on running.
    pub(crate) fn next_owner(&self, former: usize) -> Result<usize> {
        wait_until("another one owns it", PATIENCE, || {
            let next = self.owner()?;
            ensure!(next != former, "{} still does", NAMES[former]);
            Ok(next)
        })
    }

    /// Fails unless each of these has so many members that are alive, just now.
    pub(crate) fn check_members(&self, running: &[usize]) -> Result<()> {
        for number in running {
            let members = self.machines[*number].fairway.show(&["members"])?;
            let alive = members["items"].as_array().context("items")?.iter();
            let alive = alive.filter(|it| it["state"] == "alive").count();
            ensure!(alive == running.len(), "{}: {members}", NAMES[*number]);
        }
        Ok(())
    }

    pub(crate) fn owner_among(&self, running: &[usize]) -> Result<usize> {
        self.owner_on("eth0", running)
    }

    /// The owner that alone answers on this interface of the client.
    pub(crate) fn owner_on(&self, interface: &str, running: &[usize]) -> Result<usize> {
        wait_until("all agree on the owner, and it alone answers", 2 * PATIENCE, || {
            self.check_members(running)?;
            let mut owners = BTreeSet::new();
            for number in running {
                let all = self.machines[*number].fairway.show(&["l2"])?;
                let item = &all["items"][0];
                ensure!(item["address"] == ADDRESS, "{}: {all}", NAMES[*number]);
                let is_mine = item["owner"] == NAMES[*number];
                ensure!(item["mine"] == json!(is_mine), "{}: {item}", NAMES[*number]);
                owners.insert(item["owner"].as_str().unwrap_or_default().to_owned());
            }
            ensure!(owners.len() == 1, "the owners are {owners:?}");
            let owner = NAMES.iter().position(|it| owners.contains(*it)).context("an owner")?;
            let answers = who_has(&self.client, interface, ADDRESS)?;
            let ours = mac(&self.machines[owner].place, interface)?;
            ensure!(answers == [ours], "{} owns it, and {answers:?} answer", NAMES[owner]);
            Ok(owner)
        })
    }

    /// The client has an entry for the address of this machine.
    fn client_knows(&self, owner: usize) -> Result<()> {
        let ours = mac(&self.machines[owner].place, "eth0")?;
        talk_to(&self.client, ADDRESS)?;
        wait_until("the client has found the owner", PATIENCE, || {
            let found = neighbour(&self.client, ADDRESS)?;
            ensure!(found.as_ref() == Some(&ours), "{found:?}");
            Ok(())
        })
    }

    /// Waits until the kernel of the client has another machine, and prints how long that took.
    fn client_moves_from(&self, owner: usize, what: &str) -> Result<()> {
        let begun = now();
        let ours = mac(&self.machines[owner].place, "eth0")?;
        wait_until("the client has another owner", PATIENCE, || {
            let found = neighbour(&self.client, ADDRESS)?;
            ensure!(found.is_some() && found.as_ref() != Some(&ours), "{found:?}");
            Ok(())
        })?;
        println!("  {what}: the client has another owner after {} ms", begun.elapsed().as_millis());
        Ok(())
    }

    /// The others than this one.
    pub(crate) fn others(&self, number: usize) -> Vec<usize> {
        (0..NAMES.len()).filter(|it| *it != number).collect()
    }

    pub(crate) fn signal(&self, number: usize, signal: &str) -> Result<()> {
        let process = self.machines[number].fairway.process_id()?.to_string();
        output_of(lab::process::bounded("kill").args([signal, &process])).map(drop)
    }
}

fn arguments(number: usize, directory: &Path) -> Vec<String> {
    let others: Vec<String> = (0..NAMES.len())
        .filter(|it| *it != number)
        .map(|it| format!("192.0.2.{}", it + 1))
        .collect();
    let key = directory.join("key").display().to_string();
    [
        "--node",
        NAMES[number],
        "--bgp-listen",
        "none",
        "--metrics-listen",
        "none",
        "--members",
        &others.join(","),
        "--member-key-file",
        &key,
    ]
    .map(str::to_owned)
    .to_vec()
}

/// kill -9: another one answers, and the former owner does again when it is back.
pub(crate) fn a_crashed_owner_is_replaced(cell: &Cell) -> Result<()> {
    let mut three = Three::joined(cell)?;
    let owner = three.owner()?;
    three.client_knows(owner)?;
    three.machines[owner].fairway.kill()?;
    three.client_moves_from(owner, "kill -9")?;
    three.owner_among(&three.others(owner))?;
    three.start(owner)?;
    let again = three.owner()?;
    ensure!(again == owner, "{} owned it, and {} does", NAMES[owner], NAMES[again]);
    Ok(())
}

/// SIGTERM and a drain: the next owner announces before the former one is silent.
pub(crate) fn a_planned_end_hands_over(cell: &Cell) -> Result<()> {
    let mut three = Three::joined(cell)?;
    let owner = three.owner()?;
    three.client_knows(owner)?;
    output_of(&mut three.machines[owner].fairway.drain(&["--wait", "0s"]))?;
    three.client_moves_from(owner, "drain")?;
    output_of(&mut three.machines[owner].fairway.drain(&["--undo"]))?;
    ensure!(three.owner()? == owner, "another one owns it after the drain");
    three.client_knows(owner)?;
    three.machines[owner].fairway.stop()?;
    three.client_moves_from(owner, "SIGTERM")?;
    three.owner_among(&three.others(owner)).map(drop)
}

/// SIGSTOP: another one takes over; the one that goes on is silent until it has heard the others.
pub(crate) fn a_stopped_process_is_replaced(cell: &Cell) -> Result<()> {
    let three = Three::joined(cell)?;
    let owner = three.owner()?;
    three.client_knows(owner)?;
    three.signal(owner, "-STOP")?;
    three.client_moves_from(owner, "SIGSTOP")?;
    three.owner_among(&three.others(owner))?;
    three.signal(owner, "-CONT")?;
    let again = three.owner()?;
    ensure!(again == owner, "{} owned it, and {} does", NAMES[owner], NAMES[again]);
    Ok(())
}

/// A cable is pulled and put back: the others have another owner, and in the end there is one.
pub(crate) fn a_partition_heals_to_one_owner(cell: &Cell) -> Result<()> {
    let three = Three::joined(cell)?;
    let owner = three.owner()?;
    three.client_knows(owner)?;
    three.switch.ip(&["link", "set", NAMES[owner], "down"])?;
    three.client_moves_from(owner, "cut cable")?;
    three.owner_among(&three.others(owner))?;
    three.switch.ip(&["link", "set", NAMES[owner], "up"])?;
    let again = three.owner()?;
    ensure!(again == owner, "{} owned it, and {} does", NAMES[owner], NAMES[again]);
    let conflicts: Vec<Value> = three
        .machines
        .iter()
        .map(|it| it.fairway.show(&["l2"]).map(|it| it["items"][0]["conflicts"].clone()))
        .collect::<Result<_>>()?;
    println!("  claims of members that were taken for foreign: {conflicts:?}");
    Ok(())
}

/// A host that has the address as well is found by the machine that would own it next, which says so.
pub(crate) fn the_next_owner_asks_who_answers(cell: &Cell) -> Result<()> {
    let three = Three::build(cell.number, &cell.directory, &crate::cases::resources(""), "debug")?;
    let owner = three.owner()?;
    let answers = |item: usize, expected: &str| -> Result<()> {
        wait_until("one of the others knows who answers", 3 * PATIENCE, || {
            let mut checks = Vec::new();
            for number in three.others(owner) {
                let all = three.machines[number].fairway.show(&["l2"])?;
                checks.push(all["items"][item]["check"]["answer"].clone());
            }
            let (asked, not): (Vec<_>, Vec<_>) = checks.iter().partition(|it| it.is_string());
            ensure!(asked.len() == 1 && not.len() == 1, "both or none asks: {checks:?}");
            ensure!(asked[0] == expected, "{checks:?}");
            Ok(())
        })
    };
    answers(0, "owner")?;
    answers(1, "owner")?;
    three.client.add_address("eth0", &format!("{ADDRESS}/24"))?;
    answers(0, "several")?;
    answers(1, "owner")?;
    let ours = mac(&three.client, "eth0")?;
    let text = |number: usize| three.machines[number].fairway.show_text(&["l2"]);
    let texts = three.others(owner).into_iter().map(text).collect::<Result<Vec<_>>>()?;
    let is_named = |it: &String| it.contains(&format!("the owner and {ours} answer"));
    ensure!(texts.iter().filter(|it| is_named(it)).count() == 1, "{texts:?}");
    let first = |number: usize| {
        let explained = three.machines[number].fairway.explain("service", "web")?;
        Ok(explained.lines().next().unwrap_or_default().to_owned())
    };
    let first = three.others(owner).into_iter().map(first).collect::<Result<Vec<_>>>()?;
    ensure!(first.iter().filter(|it| is_named(it)).count() == 1, "{first:?}");
    Ok(())
}
