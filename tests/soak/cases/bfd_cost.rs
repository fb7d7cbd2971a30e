//! What does a packet cost? A thousand sessions, each program in turn on the same core, the same BIRD at
//! the other end on the other one. The kernel counts both: the time on the core of the thread or process that
//! does BFD (our thread, the whole of BIRD and of bfdd, which do nothing else here) and the packets of the
//! interface.
//! One core is not enough for a thousand of bfdd's: it is measured with as many as come up.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::bench::Bench;
use crate::bfd::Timers;
use crate::bfd::cable::Cable;
use crate::bfd::pinned::expect_two_cores;
use crate::bfd::watcher::{OtherEnd, Program, Watcher};
use lab::usage::time_on_core;
use lab::wait::{is_interrupted, now};

const SESSIONS: u16 = 1_000;
/// How many bfdd is tried with, in turn.
const SESSIONS_OF_BFDD: [u16; 3] = [SESSIONS, 500, 250];
const TIMERS: Timers = Timers::every(50, 3);
const PERIOD: Duration = Duration::from_secs(20);
/// Between the last session that came up and the first measurement.
const SETTLING: Duration = Duration::from_secs(3);

struct Cost {
    program: Program,
    /// Of a core, for one packet sent or received.
    per_packet: Duration,
}

pub(super) fn run(bench: &Bench) -> Result<()> {
    expect_two_cores()?;
    let ours = measure(bench, 0, Program::Fairway { realtime: false }, SESSIONS)?;
    let mut others = vec![measure(bench, 1, Program::Bird, SESSIONS)?];
    for (number, sessions) in (2..).zip(SESSIONS_OF_BFDD) {
        match measure(bench, number, Program::Bfdd, sessions) {
            Ok(cost) => {
                others.push(cost);
                break;
            }
            Err(error) => bench.say(format!("bfdd with {sessions} sessions: {error:#}")),
        }
        ensure!(!is_interrupted(), "interrupted");
    }
    for other in &others {
        let ratio = ours.per_packet.as_secs_f64() / other.per_packet.as_secs_f64();
        bench.say(format!("a packet of ours costs {ratio:.2} of one of {}", other.program.name()));
    }
    ensure!(others.len() == 2, "bfdd was not measured");
    let ahead = others.iter().all(|other| ours.per_packet < other.per_packet);
    ensure!(ahead, "expected a packet of ours to be the cheapest");
    Ok(())
}

fn measure(bench: &Bench, number: usize, program: Program, sessions: u16) -> Result<Cost> {
    let name = program.name();
    let directory = bench.directory.join(number.to_string());
    let cable = Cable::lay(210 + number, &directory, sessions)?;
    let other_end = OtherEnd::start(&cable, TIMERS)?;
    let mut watcher = Watcher::start(program, &cable, TIMERS)?;
    // A program that is too busy for a thousand is too busy to answer, too.
    other_end.all_up(sessions)?;
    bench.pause(SETTLING)?;
    let (process, thread) = (watcher.process_id()?, watcher.thread());
    let look = || -> Result<_> {
        Ok((now(), cable.packets()?, time_on_core(process, thread)?, time_on_core(process, None)?))
    };
    let changes = other_end.changes()?;
    let before = look()?;
    bench.pause(PERIOD)?;
    let after = look()?;
    watcher.check_running()?;
    let downs = other_end.changes()?.downs - changes.downs;
    let period = after.0.duration_since(before.0);
    let packets = after.1 - before.1;
    let (of_bfd, of_process) = (after.2 - before.2, after.3 - before.3);
    let share = |time: Duration| time.as_secs_f64() / period.as_secs_f64() * 100.0;
    let per_second = packets as f64 / period.as_secs_f64();
    let expected = f64::from(sessions) * 2.0 / TIMERS.interval.as_secs_f64();
    let per_packet = of_bfd / u32::try_from(packets).context("too many packets")?;
    bench.say(format!(
        "{name}: {sessions} sessions at {TIMERS}, {per_second:.0} packets/s: {:.1} % of a core \
         ({:.1} % with all of its threads), {:.2} us for a packet, {:.0} us for a session and second, \
         {downs} went down",
        share(of_bfd),
        share(of_process),
        per_packet.as_secs_f64() * 1e6,
        of_bfd.as_secs_f64() / period.as_secs_f64() / f64::from(sessions) * 1e6,
    ));
    // Jitter makes up to a third more of them.
    let is_whole = per_second > expected * 0.9 && per_second < expected * 1.5;
    ensure!(is_whole, "expected about {expected:.0} packets/s at {name}, not {per_second:.0}");
    Ok(Cost { program, per_packet })
}
