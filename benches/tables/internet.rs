//! A router at an exchange with a table of the Internet's shape: three transits, ten peers, and clients that hear
//! everything. How long until each has every prefix, what does it take, and how long do changes take meanwhile, if a
//! transit resets its session each minute? With `--route-server` each of them is a client of a route server, with a filter of
//! its own.

mod crowd;
mod table;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::scenario::{NONE, SPEAKER_IPV6, Scenario};
use crate::speaker::{self, Speaker, SpeakerKind};
use lab::namespace::Namespace;
use table::Table;

/// By then a speaker has given back what routes took that are gone.
const AFTER_LEAVING: Duration = Duration::from_secs(10);

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) clients: usize,
    /// One of so many prefixes of the Internet.
    pub(crate) divisor: usize,
    /// How often the transit resets.
    pub(crate) resets: u32,
    /// The speaker is a route server with a filter for each neighbour.
    pub(crate) serves: bool,
}

/// Measures each speaker once, and prints a table of each.
pub(crate) fn run(kinds: &[SpeakerKind], folder: &Path, size: Size) -> Result<()> {
    println!("{}; {} clients", Table::new(size.divisor).shape(), size.clients);
    for (cell, kind) in kinds.iter().enumerate() {
        let place = speaker::place(folder, cell);
        lab::make_directory(&place)?;
        match measure(cell, &place, *kind, size) {
            Ok(()) => {}
            Err(error) if *kind != SpeakerKind::Fairway => println!("{kind}: {error:#}"),
            Err(error) => return Err(error.context(format!("{kind}; see {}", place.display()))),
        }
    }
    Ok(())
}

fn measure(cell: usize, place: &Path, kind: SpeakerKind, size: Size) -> Result<()> {
    let table = Table::new(size.divisor);
    let prefixes = table.len();
    let scenario = Scenario {
        name: "internet",
        receivers: crowd::TRANSITS + crowd::PEERS + size.clients,
        has_ipv6: true,
        serves: size.serves,
        ..NONE
    };
    let middle = Namespace::create(cell, "speaker")?;
    let around = Namespace::create(cell, "neighbors")?;
    crate::wire(&middle, &around, &scenario)?;
    middle.add_address("eth0", &format!("{SPEAKER_IPV6}/64"))?;
    for number in 0..scenario.peers() {
        around.add_address("eth0", &format!("{}/64", crowd::ipv6_address(number)))?;
    }
    let speaker = Speaker::start(kind, place, &middle, &scenario)?;
    let before = speaker.usage()?;
    let memory = || speaker.usage().map(|it| it.resident_mebibytes);
    let seen = around.enter(|| crowd::run(table, scenario, size.resets, &memory))?;
    let after = speaker.usage()?;
    std::thread::sleep(AFTER_LEAVING);
    let processor_time = after.processor_time.saturating_sub(before.processor_time);
    let seconds = seen.converged.as_secs_f64();
    println!(
        "{kind}: {prefixes} prefixes at each neighbor after {seconds:.1} s, {} MB sent; in all {:.1} s of processor time, at \
         most {:.0} MiB; {:.0} MiB ten seconds after all have left",
        seen.bytes / 1_000_000,
        processor_time.as_secs_f64(),
        after.peak_mebibytes,
        memory()?
    );
    println!("| {kind} | changes | p50, ms | p99, ms | longest, ms | MiB before, at most, after |");
    println!("|---|---|---|---|---|---|");
    for phase in &seen.phases {
        let milliseconds = |it: Duration| it.as_secs_f64() * 1e3;
        let [first, most, last] = phase.memory;
        println!(
            "| {} | {} | {:.2} | {:.2} | {:.2} | {first:.0}, {most:.0}, {last:.0} |",
            phase.name,
            phase.changes,
            milliseconds(phase.half),
            milliseconds(phase.most),
            milliseconds(phase.longest)
        );
    }
    Ok(())
}
