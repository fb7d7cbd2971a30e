//! How long does it take to move a table through the speaker, and what does it cost? Fairway, BIRD, FRR and GoBGP take turns
//! in the middle, in the same run; the neighbours around them are the same. The time is from the start to the last
//! prefix at the last neighbour, and a run counts only when each neighbour has every prefix.
//!
//! [`USAGE`] has the options; see [`internet`] and [`killed`], too.

#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

mod crowd;
mod internet;
mod killed;
mod message;
mod picture;
mod scenario;
mod speaker;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crowd::Seen;
use lab::namespace::Namespace;
use picture::Shape;
use scenario::{MORE_PEERS, MORE_ROUTES, SCENARIOS, SPEAKER, Scenario};
use speaker::{Speaker, SpeakerKind};

/// Without `--runs`; GoBGP has one. The median counts.
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
    /// From the kernel, after all neighbours have left.
    removed_seconds: Option<f64>,
}

const USAGE: &str = "Usage: cargo bench --bench tables -- [OPTIONS]    (as root)

How long a table takes through Fairway, BIRD, FRR and GoBGP, side by side.

  --scenario WORD    only scenarios with this word in their name
  --speaker NAME     only fairway, bird, frr or gobgp
  --runs N           runs of each, of which the median counts [3]
  --links            each neighbor has a link of its own
  --growth           10^3 to 10^6 routes, and 1 to 500 neighbors, in place of the scenarios
  --json FILE        writes the figures
  --svg FOLDER       draws them
  --killed           Fairway is killed while it installs a million routes
  --internet         a table of the Internet's shape in place of the scenarios:
    --clients N      neighbors that hear everything [200]
    --divisor N      one Nth of the table [1]
    --resets N       resets of a transit, one each minute [30]
    --route-server   the clients are those of a route server, with a filter each

Example: cargo bench --bench tables -- --scenario transit --speaker fairway --runs 1";

/// An option that nobody knows would be a measurement of an hour of something else.
fn check_arguments(arguments: &[String]) -> Result<()> {
    let known = USAGE.split_whitespace().filter(|it| it.starts_with("--") && it.len() > 2);
    let unknown = arguments.iter().find(|it| {
        let is_known = *it == "--bench" || known.clone().any(|known| known == it.as_str());
        it.starts_with('-') && !is_known
    });
    ensure!(unknown.is_none(), "unknown option {}\n{USAGE}", unknown.map_or("", |it| it));
    Ok(())
}

fn main() -> Result<ExitCode> {
    if let Some(code) = lab::probe::other_role() {
        return Ok(code);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|it| it == "--help" || it == "-h") {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    check_arguments(&arguments)?;
    measure_all()?;
    Ok(ExitCode::SUCCESS)
}

fn measure_all() -> Result<()> {
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
    let kinds: Vec<SpeakerKind> = SpeakerKind::ALL.into_iter().filter(chosen).collect();
    if arguments.iter().any(|it| it == "--internet") {
        let number = |name: &str, default: usize| {
            value(name).map_or(Ok(default), |it| it.parse()).context(name.to_owned())
        };
        let size = internet::Size {
            clients: number("--clients", 200)?,
            divisor: number("--divisor", 1)?.max(1),
            resets: u32::try_from(number("--resets", 30)?)?,
            serves: arguments.iter().any(|it| it == "--route-server"),
        };
        let takes_part = |kind: &SpeakerKind| match kind {
            SpeakerKind::Fairway | SpeakerKind::Bird => true,
            SpeakerKind::Frr => !size.serves,
            SpeakerKind::Gobgp => false,
        };
        let kinds: Vec<_> = kinds.into_iter().filter(takes_part).collect();
        internet::run(&kinds, &folder, size)?;
        return std::fs::remove_dir_all(&folder).context("removing the folder of the benchmark");
    }
    if arguments.iter().any(|it| it == "--killed") {
        let scenario = SCENARIOS.iter().find(|it| it.installs).context("a scenario")?;
        killed::run(&folder, scenario)?;
        return std::fs::remove_dir_all(&folder).context("removing the folder of the benchmark");
    }
    let links = arguments.iter().any(|it| it == "--links");
    let mut bench = Bench { folder: &folder, runs, kinds, links, cell: 0 };
    let mut charts = Vec::new();
    let mut rows = Vec::new();
    if arguments.iter().any(|it| it == "--growth") {
        for (name, title, scenarios) in GROWTH {
            let found = bench.compare(scenarios.iter())?;
            charts.push((*name, chart(title, Shape::Growth, scenarios, &found)));
            rows.extend(found);
        }
    } else {
        rows = bench.compare(SCENARIOS.iter().filter(|it| it.name.contains(&word)))?;
        charts.push(("tables", chart("Time, s", Shape::Beside, SCENARIOS, &rows)));
    }
    if let Some(file) = value("--json") {
        let rows: Vec<_> = rows.iter().map(Row::json).collect();
        std::fs::write(&file, serde_json::to_string_pretty(&rows)?).context(file)?;
    }
    if let Some(place) = value("--svg") {
        for (name, text) in charts {
            let file = Path::new(&place).join(format!("{name}.svg"));
            std::fs::write(&file, text).with_context(|| file.display().to_string())?;
        }
    }
    std::fs::remove_dir_all(&folder).context("removing the folder of the benchmark")
}

/// What grows: the name of the picture, its title, and the scenarios.
const GROWTH: &[(&str, &str, &[Scenario])] = &[
    ("growth-routes", "More routes, from one neighbor to another: time, s", MORE_ROUTES),
    ("growth-peers", "1,000 routes to more neighbors: time, s", MORE_PEERS),
];

/// How each scenario is measured.
struct Bench<'a> {
    folder: &'a Path,
    runs: usize,
    kinds: Vec<SpeakerKind>,
    links: bool,
    /// Runs so far.
    cell: usize,
}

impl Bench<'_> {
    /// All speakers in turn in each scenario; prints the medians.
    fn compare<'a>(&mut self, scenarios: impl Iterator<Item = &'a Scenario>) -> Result<Vec<Row>> {
        println!(
            "| scenario | speaker | time, s | CPU, s | peak, MiB | later, MiB | UPDATEs | MB sent | change, p50 and p99, ms | removed, s |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|");
        let mut rows = Vec::new();
        for scenario in scenarios {
            let scenario = &Scenario { links: self.links, ..*scenario };
            let kinds = self.kinds.iter().copied().filter(|kind| kind.takes_part(scenario));
            let kinds: Vec<SpeakerKind> = kinds.collect();
            let mut outcomes: Vec<Vec<Outcome>> = kinds.iter().map(|_| Vec::new()).collect();
            for run in 0..self.runs {
                for (kind, outcomes) in kinds.iter().zip(&mut outcomes) {
                    // It takes minutes for what takes the others seconds.
                    if run == 0 || *kind != SpeakerKind::Gobgp {
                        outcomes.extend(self.once(*kind, scenario)?);
                    }
                }
            }
            for (kind, outcomes) in kinds.iter().zip(&outcomes) {
                let Some(row) = Row::median(scenario.name, *kind, outcomes) else {
                    let name = scenario.name;
                    println!("| {name} | {kind} | it did not pass everything on | | | | | | | |");
                    continue;
                };
                row.print();
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// One run. What a rival cannot do is a result, too.
    fn once(&mut self, kind: SpeakerKind, scenario: &Scenario) -> Result<Option<Outcome>> {
        let place = speaker::place(self.folder, self.cell);
        lab::make_directory(&place)?;
        let outcome = measure(self.cell, &place, kind, scenario)
            .with_context(|| format!("{kind}, {}; see {}", scenario.name, place.display()));
        self.cell += 1;
        match outcome {
            Err(error) if kind != SpeakerKind::Fairway => {
                eprintln!("{error:#}");
                Ok(None)
            }
            outcome => outcome.map(Some),
        }
    }
}

/// The times of these scenarios as a picture.
fn chart(title: &str, shape: Shape, scenarios: &[Scenario], rows: &[Row]) -> String {
    let names: Vec<&str> = scenarios.iter().map(|it| it.name).collect();
    let names: Vec<&str> =
        names.into_iter().filter(|name| rows.iter().any(|row| row.scenario == *name)).collect();
    let series = SpeakerKind::ALL.map(|kind| {
        let of = |name: &&str| {
            let row = rows.iter().find(|row| row.kind == kind && row.scenario == *name);
            row.map(|row| row.seconds)
        };
        (kind.to_string(), names.iter().map(of).collect())
    });
    picture::draw(title, shape, &names, &series)
}

fn measure(cell: usize, place: &Path, kind: SpeakerKind, scenario: &Scenario) -> Result<Outcome> {
    let middle = Namespace::create(cell, "speaker")?;
    let around = Namespace::create(cell, "neighbors")?;
    wire(&middle, &around, scenario)?;
    let speaker = Speaker::start(kind, place, &middle, scenario)?;
    let before = speaker.usage()?;
    let seen = around.enter(|| crowd::run(scenario, || installed(&middle)))?;
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

/// How many IPv4 routes the kernel of a namespace has.
fn installed(place: &Namespace) -> Result<usize> {
    let text = place.run("cat", &["/proc/net/fib_triestat"])?;
    let count = text.lines().find_map(|line| line.trim().strip_prefix("Prefixes:"));
    count.and_then(|it| it.trim().parse().ok()).context("no number of prefixes")
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
    /// `None` without an outcome.
    fn median(scenario: &'static str, kind: SpeakerKind, outcomes: &[Outcome]) -> Option<Self> {
        let of = |value: fn(&Outcome) -> f64| median(outcomes, value);
        let last = outcomes.last()?.seen;
        Some(Self {
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
            removed_seconds: last.removed.map(|_| {
                median(outcomes, |it| it.seen.removed.map_or(f64::NAN, |it| it.as_secs_f64()))
            }),
        })
    }

    fn print(&self) {
        let megabytes = self.bytes / 100_000;
        let changes = self.changes.map(|[half, most]| format!("{half:.3}, {most:.3}"));
        println!(
            "| {} | {} | {:.3} | {:.2} | {:.0} | {} | {} | {}.{} | {} | {} |",
            self.scenario,
            self.kind,
            self.seconds,
            self.processor_seconds,
            self.peak_mebibytes,
            self.left_mebibytes.map(|it| format!("{it:.0}")).unwrap_or_default(),
            self.updates,
            megabytes / 10,
            megabytes % 10,
            changes.unwrap_or_default(),
            self.removed_seconds.map(|it| format!("{it:.1}")).unwrap_or_default()
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
            "removedSeconds": self.removed_seconds,
        })
    }
}
