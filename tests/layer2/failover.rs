//! How long is an address not answered for when its owner goes? A client asks every ten milliseconds while the
//! owner is killed, ended, drained, stopped and cut off, again and again; keepalived beside it. Run by
//! `make bench-layer2`: `cargo test --test layer2 -- --bench [WORD...]`, words choose rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::asker::{Asker, Seen};
use crate::flood;
use crate::keepalived::{self, Keepalived};
use crate::members::{NAMES, Three};
use crate::segment::mac;
use lab::namespace::Namespace;
use lab::process::output_of;
use lab::wait::{holds_for, now, wait_until};

/// Of each kind, without FAIRWAY_RUNS.
const RUNS: usize = 100;
/// As many runs of ours are one of keepalived's, which takes its seconds each time.
const RUNS_PER_RIVAL: usize = 5;
/// Between two questions for an address.
const INTERVAL: Duration = Duration::from_millis(10);
/// A pause of the owner that the client must see.
const DELIBERATE: Duration = Duration::from_millis(30);
/// All must be well again after this.
const LIMIT: Duration = Duration::from_secs(60);
/// How long nothing happens before each fault, and is watched after it.
const CALM: Duration = Duration::from_millis(300);
/// The last part of the client's addresses.
const CLIENT: (&str, &str) = ("192.0.2.9", "2001:db8::9");

/// What happens to the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Kill,
    Terminate,
    Drain,
    Stop,
    Cut,
}

impl Fault {
    const ALL: [Self; 5] = [Self::Terminate, Self::Drain, Self::Kill, Self::Stop, Self::Cut];

    fn word(self) -> &'static str {
        match self {
            Self::Kill => "kill -9",
            Self::Terminate => "SIGTERM",
            Self::Drain => "drain",
            Self::Stop => "SIGSTOP",
            Self::Cut => "cut cable",
        }
    }

    /// What ends it.
    fn end_word(self) -> &'static str {
        match self {
            Self::Kill | Self::Terminate => "its start",
            Self::Drain => "the end of the drain",
            Self::Stop => "SIGCONT",
            Self::Cut => "the heal",
        }
    }
}

/// Three machines that share addresses.
pub(crate) trait Software {
    fn client(&self) -> &Namespace;
    /// The hardware address of a machine.
    fn mac(&self, node: usize) -> Result<String>;
    fn fail(&mut self, node: usize, fault: Fault) -> Result<()>;
    fn mend(&mut self, node: usize, fault: Fault) -> Result<()>;
    /// Fails unless all take part, just now.
    fn check_whole(&mut self) -> Result<()>;
    /// Whether nobody answers for an address on a machine where the program was killed.
    fn is_silent_when_killed(&self) -> bool;
}

impl Software for Three {
    fn client(&self) -> &Namespace {
        &self.client
    }

    fn mac(&self, node: usize) -> Result<String> {
        mac(&self.machines[node].place, "eth0")
    }

    fn fail(&mut self, node: usize, fault: Fault) -> Result<()> {
        match fault {
            Fault::Kill => self.machines[node].fairway.kill(),
            Fault::Terminate => self.machines[node].fairway.stop(),
            Fault::Drain => {
                output_of(&mut self.machines[node].fairway.drain(&["--wait", "0s"])).map(drop)
            }
            Fault::Stop => self.signal(node, "-STOP"),
            Fault::Cut => self.switch.ip(&["link", "set", NAMES[node], "down"]).map(drop),
        }
    }

    fn mend(&mut self, node: usize, fault: Fault) -> Result<()> {
        match fault {
            Fault::Kill | Fault::Terminate => self.start(node),
            Fault::Drain => {
                output_of(&mut self.machines[node].fairway.drain(&["--undo"])).map(drop)
            }
            Fault::Stop => self.signal(node, "-CONT"),
            Fault::Cut => self.switch.ip(&["link", "set", NAMES[node], "up"]).map(drop),
        }
    }

    fn check_whole(&mut self) -> Result<()> {
        self.check_members(&[0, 1, 2])
    }

    fn is_silent_when_killed(&self) -> bool {
        true
    }
}

/// What a client saw of the addresses that moved, of the worst of them in each run, in milliseconds.
#[derive(Default)]
struct Times {
    gaps: Vec<f64>,
    taken: Vec<f64>,
    gaps_back: Vec<f64>,
    others_back: Vec<f64>,
}

fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

fn worst<'a>(seen: impl Iterator<Item = &'a Seen>, of: impl Fn(&Seen) -> f64) -> f64 {
    seen.map(of).fold(0.0, f64::max)
}

/// A pool, and a Service for each of these sets of addresses.
pub(crate) fn resources(services: impl IntoIterator<Item = Vec<IpAddr>>) -> String {
    let mut text = "apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: pool}
spec: {addresses: [192.0.2.100-192.0.2.250, 198.18.0.0/16, '2001:db8::100-2001:db8::fff']}
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: segment}
"
    .to_owned();
    for (number, addresses) in services.into_iter().enumerate() {
        let policy = if addresses.len() > 1 { "ipFamilyPolicy: RequireDualStack, " } else { "" };
        let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
        let addresses = addresses.join(",");
        let _ = write!(
            text,
            "---
apiVersion: v1
kind: Service
metadata: {{name: web-{number}, annotations: {{metallb.io/loadBalancerIPs: \"{addresses}\"}}}}
spec: {{type: LoadBalancer, {policy}ports: [{{port: 80}}]}}
"
        );
    }
    text
}

/// Of so many Services, each with an address of either family.
fn both_families(count: u8) -> impl Iterator<Item = Vec<IpAddr>> {
    (0..count).map(|number| {
        let ipv6 = Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 0x100 + u16::from(number));
        vec![Ipv4Addr::new(192, 0, 2, 100 + number).into(), ipv6.into()]
    })
}

/// An address of the large block.
pub(crate) fn of_block(number: u16) -> IpAddr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(198, 18, high, low).into()
}

/// The measurements: of each kind of fault, with one Service and with a hundred, and beside keepalived.
pub(crate) fn measure(words: &[String]) -> Result<bool> {
    let runs = std::env::var("FAIRWAY_RUNS").ok().and_then(|it| it.parse().ok()).unwrap_or(RUNS);
    let folder = std::env::temp_dir().join(format!("fairway-failover-{}", std::process::id()));
    lab::make_directory(&folder)?;
    let is_wanted = |row: &str| {
        // Words come in small letters.
        let row = row.to_lowercase();
        words.is_empty() || words.iter().any(|it| row.contains(it.as_str()))
    };
    let mut number = 0;
    let mut next = |name: &str| -> Result<(usize, std::path::PathBuf)> {
        number += 1;
        let at = folder.join(name);
        lab::make_directory(&at)?;
        Ok((number, at))
    };
    if is_wanted("asker") {
        let (cell, at) = next("asker")?;
        check_the_client(cell, &at)?;
    }
    println!(
        "From the fault on, of an address of each family; milliseconds. `gap`: the longest time between two\nanswers, of which the client expects one every {} ms. `moved`: until another machine answered or\nannounced. `back`: the same when the fault is over, and until only one answered.\n",
        INTERVAL.as_millis()
    );
    println!(
        "| software | Services | what | runs | gap p50 | gap max | moved p50 | moved max | back: gap max | one alone p50 | max |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for count in [1, 100_u8] {
        for fault in Fault::ALL {
            let name = format!("fairway {count} {}", fault.word());
            if is_wanted(&name) {
                let (cell, at) = next(&name.replace(' ', "-"))?;
                let text = resources(both_families(count));
                let mut three = Three::build(cell, &at, &text, "info")?;
                print(&name, fault, &series(&mut three, count, fault, runs)?);
            }
        }
    }
    for advert_seconds in ["1", "0.1"] {
        for fault in Fault::ALL.into_iter().filter(|it| *it != Fault::Drain) {
            let name = format!("keepalived, advert_int {advert_seconds} 1 {}", fault.word());
            if is_wanted(&name) {
                if !keepalived::is_installed() {
                    println!("keepalived is not installed; run: scripts/setup.sh rivals");
                    return Ok(false);
                }
                let (cell, at) = next(&name.replace([' ', ','], "-"))?;
                let mut rival = Keepalived::build(cell, &at, advert_seconds)?;
                let times = series(&mut rival, 1, fault, runs.div_ceil(RUNS_PER_RIVAL))?;
                print(&name, fault, &times);
            }
        }
    }
    if is_wanted("thousand") {
        let (cell, at) = next("thousand")?;
        thousand_move(cell, &at)?;
    }
    if is_wanted("flood") {
        let (cell, at) = next("flood")?;
        flood::measure(cell, &at)?;
    }
    std::fs::remove_dir_all(&folder).context("removing the folder of the benchmark")?;
    Ok(true)
}

fn print(name: &str, fault: Fault, times: &Times) {
    let Times { gaps, taken, gaps_back, others_back } = times;
    let (software, rest) = name.split_at(name.len() - fault.word().len());
    let (software, count) = software.trim().rsplit_once(' ').unwrap_or((software, ""));
    println!(
        "| {software} | {count} | {} | {} | {:.0} | {:.0} | {:.0} | {:.0} | {}: {:.0} | {:.0} | {:.0} |",
        rest,
        gaps.len(),
        percentile(gaps, 50),
        percentile(gaps, 100),
        percentile(taken, 50),
        percentile(taken, 100),
        fault.end_word(),
        percentile(gaps_back, 100),
        percentile(others_back, 50),
        percentile(others_back, 100),
    );
}

fn asking(software: &impl Software, interval: Duration, addresses: &[IpAddr]) -> Result<Asker> {
    let own = (CLIENT.0.parse()?, CLIENT.1.parse()?);
    Asker::start(software.client(), own, interval, addresses)
}

/// Waits until all take part, and each address is answered for by one machine without a pause.
fn settle(
    software: &mut impl Software,
    asker: &mut Asker,
    interval: Duration,
) -> Result<Vec<Seen>> {
    let gap_max = (interval * 3).as_secs_f64() * 1000.0 + 70.0;
    let calm = CALM.max(interval * 3);
    wait_until("all take part, and each address has one owner", LIMIT, || {
        software.check_whole()?;
        asker.begin()?;
        holds_for("nothing happens", calm, || Ok(()))?;
        let seen = asker.report()?;
        for it in &seen {
            let is_steady = it.mac.is_some()
                && it.taken_milliseconds.is_none()
                && it.others_until_milliseconds.is_none()
                && it.answered > 0
                && it.gap_milliseconds < gap_max;
            ensure!(is_steady, "{it:?}");
        }
        Ok(seen)
    })
}

fn series(software: &mut impl Software, count: u8, fault: Fault, runs: usize) -> Result<Times> {
    let addresses: Vec<IpAddr> = both_families(count).flatten().collect();
    let mut asker = asking(software, INTERVAL, &addresses)?;
    let nodes: BTreeMap<String, usize> =
        (0..NAMES.len()).map(|node| Ok((software.mac(node)?, node))).collect::<Result<_>>()?;
    let mut times = Times::default();
    for run in 0..runs {
        let seen = settle(software, &mut asker, INTERVAL)?;
        // In turn an owner of either family.
        let of = seen.get(run % seen.len()).and_then(|it| it.mac.clone()).context("an owner")?;
        let node = *nodes.get(&of).with_context(|| format!("{of} is no machine"))?;
        let owned: BTreeSet<IpAddr> =
            seen.iter().filter(|it| it.mac.as_ref() == Some(&of)).map(|it| it.address).collect();
        let is_moved = |it: &&Seen| owned.contains(&it.address);
        asker.begin()?;
        software.fail(node, fault)?;
        wait_until("another machine has all addresses", LIMIT, || {
            let seen = asker.report()?;
            let left = seen.iter().filter(is_moved).find(|it| it.taken_milliseconds.is_none());
            ensure!(left.is_none(), "{left:?}");
            Ok(())
        })?;
        holds_for("what follows is seen", CALM, || Ok(()))?;
        let seen = asker.report()?;
        let moved = || seen.iter().filter(is_moved);
        times.gaps.push(worst(moved(), |it| it.gap_milliseconds));
        times.taken.push(worst(moved(), |it| it.taken_milliseconds.unwrap_or(f64::NAN)));
        asker.begin()?;
        software.mend(node, fault)?;
        // Where two machines answer, the one that was heard last is no owner.
        if fault != Fault::Kill || software.is_silent_when_killed() {
            wait_until("its own machine has each address again", LIMIT, || {
                let seen = asker.report()?;
                let left = seen.iter().filter(is_moved).find(|it| it.mac.as_ref() != Some(&of));
                ensure!(left.is_none(), "{left:?}");
                Ok(())
            })?;
        }
        holds_for("what follows is seen", CALM, || Ok(()))?;
        let seen = asker.report()?;
        times.gaps_back.push(worst(seen.iter(), |it| it.gap_milliseconds));
        let others = |it: &Seen| it.others_until_milliseconds.unwrap_or(0.0);
        times.others_back.push(worst(seen.iter(), others));
    }
    Ok(times)
}

/// The client sees it when the owner does not run for a moment.
fn check_the_client(cell: usize, at: &Path) -> Result<()> {
    let mut three = Three::build(cell, at, &resources(both_families(1)), "info")?;
    let addresses: Vec<IpAddr> = both_families(1).flatten().collect();
    let mut asker = asking(&three, INTERVAL, &addresses)?;
    let seen = settle(&mut three, &mut asker, INTERVAL)?;
    let of = seen.first().and_then(|it| it.mac.clone()).context("an owner")?;
    let node = (0..NAMES.len()).find(|it| three.mac(*it).is_ok_and(|it| it == of));
    let node = node.context("the owner is no machine")?;
    asker.begin()?;
    three.fail(node, Fault::Stop)?;
    let begun = now();
    wait_until("a moment passes", LIMIT, || {
        ensure!(begun.elapsed() >= DELIBERATE, "not yet");
        Ok(())
    })?;
    three.mend(node, Fault::Stop)?;
    let length = begun.elapsed();
    holds_for("what follows is seen", CALM, || Ok(()))?;
    let seen = asker.report()?;
    let gap =
        worst(seen.iter().filter(|it| it.mac.as_ref() == Some(&of)), |it| it.gap_milliseconds);
    println!(
        "The owner did not run for {} ms: the client saw a gap of {gap:.0} ms.\n",
        length.as_millis()
    );
    ensure!(gap >= 30.0, "the client did not see it");
    Ok(())
}

/// A third of three thousand addresses moves at once.
fn thousand_move(cell: usize, at: &Path) -> Result<()> {
    let interval = Duration::from_millis(250);
    let addresses: Vec<IpAddr> = (0..3_000).map(of_block).collect();
    let text = resources(addresses.iter().map(|it| vec![*it]));
    let mut three = Three::build(cell, at, &text, "info")?;
    let mut asker = asking(&three, interval, &addresses)?;
    for fault in [Fault::Drain, Fault::Kill] {
        let seen = settle(&mut three, &mut asker, interval)?;
        let of = seen.first().and_then(|it| it.mac.clone()).context("an owner")?;
        let node = (0..NAMES.len()).find(|it| three.mac(*it).is_ok_and(|it| it == of));
        let node = node.context("the owner is no machine")?;
        asker.begin()?;
        three.fail(node, fault)?;
        wait_until("another machine has all addresses", LIMIT, || {
            let seen = asker.report()?;
            let moved = seen.iter().filter(|it| it.former.as_ref() == Some(&of));
            let left = moved.filter(|it| it.taken_milliseconds.is_none()).count();
            ensure!(left == 0, "{left} have the former owner");
            Ok(())
        })?;
        holds_for("what follows is seen", Duration::from_secs(1), || Ok(()))?;
        let seen = asker.report()?;
        let moved: Vec<&Seen> = seen.iter().filter(|it| it.former.as_ref() == Some(&of)).collect();
        let taken: Vec<f64> = moved.iter().filter_map(|it| it.taken_milliseconds).collect();
        println!(
            "\n{}: {} addresses moved, half of them within {:.0} ms and all within {:.0} ms; the longest time \
             between two answers was {:.0} ms, of a client that asks for each every {} ms.",
            fault.word(),
            moved.len(),
            percentile(&taken, 50),
            percentile(&taken, 100),
            worst(moved.iter().copied(), |it| it.gap_milliseconds),
            interval.as_millis(),
        );
        three.mend(node, fault)?;
    }
    Ok(())
}
