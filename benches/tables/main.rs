//! How long does it take to move a table through the speaker, and what does it cost? Fairway, BIRD and FRR take turns
//! in the middle, in the same run; the neighbours around them are the same. The time is from the start to the last
//! prefix at the last neighbour, and a run counts only when each neighbour has every prefix.
//!
//! `cargo bench --bench tables -- [--scenario WORD] [--speaker NAME] [--runs N] [--links] [--json FILE]`, as root.
//! With `--links` each neighbour has a link of its own, a /31, in place of one network for all. With `--internet` a table of
//! the Internet's shape in place of the scenarios: `[--clients N] [--divisor N] [--resets N]`, see [`internet`].

#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

mod crowd;
mod internet;
mod message;
mod scenario;
mod speaker;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crowd::Seen;
use lab::namespace::Namespace;
use scenario::{SCENARIOS, SPEAKER, Scenario};
use speaker::{Speaker, SpeakerKind};

/// Without `--runs`. The median counts.
const RUNS: usize = 3;
/// By then a speaker has given back what routes took that are gone.
const AFTER_LEAVING: Duration = Duration::from_secs(10);

/// One run.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    seen: Seen,
    processor_time: Duration,
    peak_mebibytes: f64,
    left_mebibytes: Option<f64>,
}

/// The medians of one speaker in one scenario.
struct Row {
    scenario: &'static str,
    kind: SpeakerKind,
    seconds: f64,
    processor_seconds: f64,
    peak_mebibytes: f64,
    /// Ten seconds after all neighbours have left.
    left_mebibytes: Option<f64>,
    updates: u64,
    bytes: u64,
    /// Of changes one by one, the median and the 99th percentile, in milliseconds.
    changes: Option<[f64; 2]>,
}

fn main() -> Result<()> {
    ensure!(nix::unistd::Uid::effective().is_root(), "this needs root: network namespaces");
    lab::check_tools()?;
    lab::namespace::remove_leftovers()?;
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|it| it == name)?;
        arguments.get(at + 1).cloned()
    };
    let runs = value("--runs").map_or(Ok(RUNS), |it| it.parse()).context("--runs")?;
    let word = value("--scenario").unwrap_or_default();
    let only = value("--speaker").map(|it| it.to_lowercase());
    let chosen =
        |kind: &SpeakerKind| only.as_ref().is_none_or(|it| kind.to_string().to_lowercase() == *it);
    let folder = std::env::temp_dir().join(format!("fairway-tables-{}", std::process::id()));
    if arguments.iter().any(|it| it == "--internet") {
        let number = |name: &str, default: usize| {
            value(name).map_or(Ok(default), |it| it.parse()).context(name.to_owned())
        };
        let size = internet::Size {
            clients: number("--clients", 200)?,
            divisor: number("--divisor", 1)?.max(1),
            resets: u32::try_from(number("--resets", 30)?)?,
        };
        let kinds: Vec<SpeakerKind> = SpeakerKind::ALL.into_iter().filter(&chosen).collect();
        internet::run(&kinds, &folder, size)?;
        return std::fs::remove_dir_all(&folder).context("removing the folder of the benchmark");
    }
    let (mut rows, mut cell) = (Vec::new(), 0);
    println!(
        "| scenario | speaker | time, s | CPU, s | peak, MiB | later, MiB | UPDATEs | MB sent | change, p50 and p99, ms |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let links = arguments.iter().any(|it| it == "--links");
    for scenario in SCENARIOS.iter().filter(|it| it.name.contains(&word)) {
        let scenario = &Scenario { links, ..*scenario };
        let kinds: Vec<SpeakerKind> = SpeakerKind::ALL.into_iter().filter(&chosen).collect();
        let mut outcomes: Vec<Vec<Outcome>> = kinds.iter().map(|_| Vec::new()).collect();
        for _ in 0..runs {
            for (kind, outcomes) in kinds.iter().zip(&mut outcomes) {
                let place = speaker::place(&folder, cell);
                lab::make_directory(&place)?;
                let outcome = measure(cell, &place, *kind, scenario)
                    .with_context(|| format!("{kind}, {}; see {}", scenario.name, place.display()));
                match outcome {
                    Ok(outcome) => outcomes.push(outcome),
                    // What a rival cannot do is a result, too.
                    Err(error) if *kind != SpeakerKind::Fairway => eprintln!("{error:#}"),
                    Err(error) => return Err(error),
                }
                cell += 1;
            }
        }
        for (kind, outcomes) in kinds.iter().zip(&outcomes) {
            if outcomes.is_empty() {
                println!(
                    "| {} | {kind} | it did not pass everything on | | | | | | |",
                    scenario.name
                );
                continue;
            }
            let row = Row::median(scenario.name, *kind, outcomes);
            row.print();
            rows.push(row);
        }
    }
    if let Some(file) = value("--json") {
        let rows: Vec<_> = rows.iter().map(Row::json).collect();
        std::fs::write(&file, serde_json::to_string_pretty(&rows)?).context(file)?;
    }
    std::fs::remove_dir_all(&folder).context("removing the folder of the benchmark")
}

fn measure(cell: usize, place: &Path, kind: SpeakerKind, scenario: &Scenario) -> Result<Outcome> {
    let middle = Namespace::create(cell, "speaker")?;
    let around = Namespace::create(cell, "neighbours")?;
    wire(&middle, &around, scenario)?;
    let speaker = Speaker::start(kind, place, &middle, scenario)?;
    let before = speaker.usage()?;
    let seen = around.enter(|| crowd::run(scenario))?;
    let after = speaker.usage()?;
    let processor_time = after.processor_time.saturating_sub(before.processor_time);
    let left_mebibytes = scenario.then_leave.then(|| {
        std::thread::sleep(AFTER_LEAVING);
        speaker.usage().map(|it| it.resident_mebibytes)
    });
    Ok(Outcome {
        seen,
        processor_time,
        peak_mebibytes: after.peak_mebibytes,
        left_mebibytes: left_mebibytes.transpose()?,
    })
}

fn median(outcomes: &[Outcome], value: impl Fn(&Outcome) -> f64) -> f64 {
    let mut values: Vec<f64> = outcomes.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Connects the speaker and its neighbours, by one network or by a link for each.
fn wire(middle: &Namespace, around: &Namespace, scenario: &Scenario) -> Result<()> {
    if !scenario.links {
        middle.connect("eth0", around, "eth0")?;
        middle.add_address("eth0", &format!("{SPEAKER}/15"))?;
    }
    for number in 0..scenario.peers() {
        let (link, length) =
            if scenario.links { (format!("link{number}"), 31) } else { ("eth0".to_owned(), 15) };
        if scenario.links {
            middle.connect(&link, around, &link)?;
            let address = scenario.speaker_address(number);
            middle.add_address(&link, &format!("{address}/{length}"))?;
        }
        let address = scenario.neighbour_address(number);
        around.add_address(&link, &format!("{address}/{length}"))?;
    }
    Ok(())
}

impl Row {
    fn median(scenario: &'static str, kind: SpeakerKind, outcomes: &[Outcome]) -> Self {
        let of = |value: fn(&Outcome) -> f64| median(outcomes, value);
        let last = outcomes.last().map(|it| it.seen).unwrap_or_default();
        Self {
            scenario,
            kind,
            seconds: of(|it| it.seen.time.as_secs_f64()),
            processor_seconds: of(|it| it.processor_time.as_secs_f64()),
            peak_mebibytes: of(|it| it.peak_mebibytes),
            left_mebibytes: outcomes
                .iter()
                .all(|it| it.left_mebibytes.is_some())
                .then(|| of(|it| it.left_mebibytes.unwrap_or(f64::NAN))),
            updates: last.updates,
            bytes: last.bytes,
            changes: last.changes.map(|_| {
                let milliseconds = |outcome: &Outcome, place: usize| {
                    let changes = outcome.seen.changes.unwrap_or_default();
                    changes.get(place).map_or(f64::NAN, |it| it.as_secs_f64() * 1e3)
                };
                [
                    median(outcomes, |it| milliseconds(it, 0)),
                    median(outcomes, |it| milliseconds(it, 1)),
                ]
            }),
        }
    }

    fn print(&self) {
        let megabytes = self.bytes / 100_000;
        let changes = self.changes.map(|[half, most]| format!("{half:.3}, {most:.3}"));
        println!(
            "| {} | {} | {:.3} | {:.2} | {:.0} | {} | {} | {}.{} | {} |",
            self.scenario,
            self.kind,
            self.seconds,
            self.processor_seconds,
            self.peak_mebibytes,
            self.left_mebibytes.map(|it| format!("{it:.0}")).unwrap_or_default(),
            self.updates,
            megabytes / 10,
            megabytes % 10,
            changes.unwrap_or_default()
        );
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "scenario": self.scenario,
            "speaker": self.kind.to_string(),
            "seconds": self.seconds,
            "processorSeconds": self.processor_seconds,
            "peakMebibytes": self.peak_mebibytes,
            "laterMebibytes": self.left_mebibytes,
            "updates": self.updates,
            "bytes": self.bytes,
            "changeMilliseconds": self.changes,
        })
    }
}
