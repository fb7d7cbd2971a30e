//! A million learned routes are on their way into the kernel when the speaker is killed, and it starts again at once. How long
//! until the kernel has all of them, and is a packet lost that goes by one of those that were there?

use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::scenario::Scenario;
use crate::speaker::{self, Speaker, SpeakerKind};
use crate::{crowd, installed};
use lab::namespace::Namespace;
use lab::probe::{Answerer, Prober};
use lab::wait::wait_until;

/// In two of the first prefixes that are announced.
const PROBED: [&str; 2] = ["1.0.0.1", "1.0.200.1"];
const LIMIT: Duration = Duration::from_secs(300);

/// Fairway alone; prints one line.
pub(crate) fn run(folder: &Path, scenario: &Scenario) -> Result<()> {
    let place = speaker::place(folder, 0);
    lab::make_directory(&place)?;
    let middle = Namespace::create(0, "speaker")?;
    let around = Namespace::create(0, "neighbors")?;
    crate::wire(&middle, &around, scenario)?;
    for address in PROBED {
        around.add_address("eth0", &format!("{address}/32"))?;
    }
    let mut speaker = Speaker::start(SpeakerKind::Fairway, &place, &middle, scenario)?;
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let feeding = scope.spawn(|| around.enter(|| crowd::feed(scenario, &ends)));
        let outcome = interrupt(&place, &middle, &around, &mut speaker, scenario);
        ends.store(true, Ordering::Relaxed);
        feeding.join().ok().context("the neighbor panicked")??;
        outcome
    })
}

fn interrupt(
    place: &Path,
    middle: &Namespace,
    around: &Namespace,
    speaker: &mut Speaker,
    scenario: &Scenario,
) -> Result<()> {
    let routes = scenario.senders * scenario.routes_each;
    let have = |count: usize| {
        wait_until(&format!("the kernel has {count} routes"), LIMIT, || {
            let installed = installed(middle)?;
            ensure!(installed >= count, "it has {installed}");
            Ok(installed)
        })
    };
    let start = Instant::now();
    have(routes / 2)?;
    let targets: Vec<IpAddr> = PROBED.iter().map(|it| it.parse()).collect::<Result<_, _>>()?;
    let _answerer = Answerer::start(around, "far", &targets, &place.join("answerer.log"))?;
    let (report, log) = (place.join("probes.json"), place.join("prober.log"));
    let mut prober = Prober::start(middle, &targets, &report, &log)?;
    let fairway = speaker.fairway.as_mut().context("it is Fairway")?;
    fairway.kill()?;
    let (killed, left) = (Instant::now(), installed(middle)?);
    fairway.start(middle)?;
    have(routes)?;
    let complete = killed.elapsed();
    // What it would take back by mistake would go now.
    std::thread::sleep(Duration::from_secs(10));
    let stays = installed(middle)?;
    let tallies = prober.tallies()?;
    let sent: u64 = tallies.iter().map(|it| it.sent).sum();
    let lost: u64 = tallies.iter().map(|it| it.lost).sum();
    println!(
        "killed after {:.1} s with {left} of {routes} routes in the kernel; all of them {:.1} s after the kill, {stays} ten \
         seconds later; {sent} probes by routes that were there, {lost} lost",
        (killed - start).as_secs_f64(),
        complete.as_secs_f64()
    );
    ensure!(lost == 0 && stays >= routes, "{tallies:?}");
    Ok(())
}
