//! Do FRR's own tools work on us? vtysh of Debian 12 and 13 runs the commands that operators and
//! MetalLB's tools use, against Fairway among real routers, and the JSON is compared with FRR's, key
//! by key; an exporter's queries are sent in its way. `cargo test --test vtysh`, as root.
//!
//! docs/vtysh.md has the differences, each with its reason: `FAIRWAY_WRITE=1` writes them again.

mod asking;
mod commands;
mod compare;
mod exporter;
mod frr;
mod keyboard;
mod lines;
mod metallb;
mod reasons;
mod shape;
mod stage;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use asking::{Vtysh, raw, scrape, scrape_json};
use clap::Parser;
use commands::{COMMANDS, Command, FROM_ROUTER_TWO, Known, REFUSALS, TEXTS};
use lab::suite::{self, Case, Suite};
use lab::wait::{PATIENCE, wait_until};
use lines::Lines;
use shape::Shape;
use stage::{End, Stage};

const PAGE: &str = "docs/vtysh.md";
const BEGIN: &str = "<!-- differences: written by tests/vtysh -->\n";
const END: &str = "<!-- end of differences -->\n";

/// The ends of sessions, as FRR named them when they were played to it.
const RECEIVED: End = End { due_to: "BGP Notification received", code: 13, error: Some("0602") };
const CLEARED: End = End { due_to: "User reset", code: 12, error: None };
const NOT_HEARD: End = End { due_to: "BGP Notification send", code: 14, error: Some("0400") };
const SHUT_DOWN: End = End { due_to: "Admin. shutdown", code: 11, error: None };
const WRONG_AS: End = End { due_to: "BGP Notification send", code: 14, error: Some("0202") };
const RESTARTING: End = End { due_to: "NSF peer closed the session", code: 22, error: None };
const TOO_MANY: End = End { due_to: "BGP Notification send", code: 14, error: Some("0601") };

/// The answers.
#[derive(Default)]
struct Answers {
    shapes: BTreeMap<&'static str, Shape>,
    lines: Lines,
}

/// FRR's vtysh and an exporter's queries, against FRR's own answers.
///
/// FAIRWAY_WRITE=1 writes the differences to docs/vtysh.md.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    suite: suite::Options,
    /// Fail without vtysh of FRR 10 (scripts/setup.sh trixie)
    #[arg(long)]
    all: bool,
    /// Print frr-shapes.txt, from folders with answers of FRR 8.4 and 10.3
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    describe: Option<Vec<PathBuf>>,
    /// Print frr-lines.txt, from a folder with answers of FRR 8.4
    #[arg(long, value_name = "OLD")]
    describe_lines: Option<PathBuf>,
}

fn main() -> ExitCode {
    suite::main("vtysh", run)
}

fn run(options: Options) -> Result<bool> {
    if let Some([old, new]) = options.describe.as_deref() {
        print!("{}", frr::describe(old, new)?);
        return Ok(true);
    }
    if let Some(old) = &options.describe_lines {
        print!("{}", lines::describe(old)?);
        return Ok(true);
    }
    let needs_all = options.all;
    let mut suite = Suite::new("vtysh", options.suite).as_root();
    // One story: the page is about all that was answered.
    suite.add(Case::new("commands, states and the page are as FRR has them", move |cell| {
        let vtyshs = Vtysh::installed()?;
        ensure!(!vtyshs.is_empty(), "vtysh is missing; install the Debian package frr");
        let has_new = vtyshs.iter().any(Vtysh::is_new);
        ensure!(has_new || !needs_all, "no vtysh of FRR 10; run scripts/setup.sh trixie");
        play(&cell.directory, &vtyshs)
    }));
    let Some(chosen) = suite.choose()? else { return Ok(true) };
    lab::fairway::existing_program()?;
    Ok(chosen.run()?.all_passed())
}

fn play(directory: &Path, vtyshs: &[Vtysh]) -> Result<()> {
    let mut stage = Stage::set(directory)?;
    let mut answers = Answers::default();
    steady(&stage, vtyshs, &mut answers)?;
    println!("vtysh: the commands are answered to {}", named(vtyshs));
    both(&stage, vtyshs)?;
    println!("vtysh: fairway show answers the same, to words cut short as well");
    keyboard(&stage, directory, vtyshs)?;
    println!("vtysh: Tab and ? know each command, in vtysh and in bash");
    exporter::check(&stage)?;
    println!("vtysh: an exporter finds what it decodes");
    states(&mut stage, &mut answers)?;
    println!("vtysh: the same through a session's life");
    page(&(compare::document(&answers.shapes)? + &lines::document(&answers.lines)?))?;
    println!("vtysh: {PAGE} has every difference from FRR, with its reason");
    let sockets = ["bgpd.vty", "bfdd.vty", "zebra.vty"].map(|name| stage.socket(name));
    ensure!(sockets.iter().all(|socket| socket.exists()), "sockets are gone before the end");
    stage.fairway.stop()?;
    ensure!(!sockets.iter().any(|socket| socket.exists()), "sockets stay behind");
    Ok(())
}

fn named(vtyshs: &[Vtysh]) -> String {
    vtyshs.iter().map(|it| it.version.as_str()).collect::<Vec<_>>().join(" and ")
}

/// Every command in the steady state, by every vtysh that has it.
fn steady(stage: &Stage, vtyshs: &[Vtysh], answers: &mut Answers) -> Result<()> {
    for vtysh in vtyshs {
        for command in COMMANDS {
            let is_known = command.known != Known::OnlyNew || vtysh.is_new();
            if is_known {
                let answer = vtysh.ask_json(&stage.sockets, &command.json())?;
                answers.shapes.entry(command.words).or_default().add(&answer);
            } else {
                add(stage, command, answers)?;
            }
        }
        for (words, parts) in TEXTS {
            let answer = vtysh.ask(&stage.sockets, words)?;
            for part in *parts {
                ensure!(answer.contains(part), "{words}: expected {part} in:\n{answer}");
            }
        }
        for words in lines::COMMANDS {
            lines::add(&mut answers.lines, words, &vtysh.ask(&stage.sockets, words)?);
        }
        for (words, expected) in REFUSALS {
            let answer = vtysh.ask(&stage.sockets, words)?;
            ensure!(answer.trim_end() == *expected, "{words}: expected {expected}, not {answer}");
        }
        metallb::check(vtysh, &stage.sockets)
            .with_context(|| format!("what MetalLB asks vtysh {}", vtysh.version))?;
        let daemons = vtysh.ask(&stage.sockets, "show daemons")?;
        ensure!(daemons.trim() == "zebra bgpd bfdd", "show daemons: {daemons}");
        let version = vtysh.ask(&stage.sockets, "show version")?;
        ensure!(version.starts_with("FRRouting "), "show version: {version}");
    }
    for (words, status) in [("show bgp summary", 0), ("show bgp nonsense", 2), ("show b s", 3)] {
        let (_, found) = raw(&stage.socket("bgpd.vty"), words)?;
        ensure!(found == status, "{words}: status {found}, expected {status}");
    }
    Ok(())
}

/// Every command of the page in `fairway show` and in vtysh, in full and cut short.
fn both(stage: &Stage, vtyshs: &[Vtysh]) -> Result<()> {
    let newest = vtyshs.iter().find(|it| it.is_new()).or(vtyshs.first()).context("no vtysh")?;
    let known = COMMANDS.iter().filter(|it| it.known != Known::OnlyNew || newest.is_new());
    let json = known.map(|command| command.json());
    let text = TEXTS.iter().map(|(words, _)| (*words).to_owned());
    for words in json.chain(text.filter(|words| is_for_a_daemon(words))) {
        let short = keyboard::cut_short(&words);
        wait_until(&format!("one answer to {words}"), PATIENCE, || {
            let of_vtysh = newest.ask(&stage.sockets, &short)?;
            let line: Vec<&str> = words.split(' ').skip(1).collect();
            let of_fairway = stage.fairway.show_text(&line)?;
            let line: Vec<&str> = short.split(' ').skip(1).collect();
            let of_short = stage.fairway.show_text(&line)?;
            let later = newest.ask(&stage.sockets, &short)?;
            for answer in [of_fairway, of_short] {
                let [before, answer, after] = [&of_vtysh, &answer, &later].map(|it| it.trim());
                ensure!(is_between(before, answer, after), "{before}\nfairway:\n{answer}");
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// vtysh answers some lines itself, and `|` is the shell's where there is one.
fn is_for_a_daemon(words: &str) -> bool {
    !words.contains('|') && !["show running-config", "write terminal"].contains(&words)
}

/// Whether `answer` is that of vtysh before and after it, but for the figures of lines that change by themselves.
fn is_between(before: &str, answer: &str, after: &str) -> bool {
    let lines = [before, answer, after].map(|it| it.lines().collect::<Vec<_>>());
    let [before, answer, after] = &lines;
    let without_figures = |line: &str| line.replace(|sign: char| sign.is_ascii_digit(), "");
    before.len() == answer.len()
        && before.len() == after.len()
        && before.iter().zip(answer).zip(after).all(|((before, answer), after)| {
            let is_moving = before != after && without_figures(before) == without_figures(answer);
            answer == before || answer == after || is_moving
        })
}

/// The same on a terminal.
fn keyboard(stage: &Stage, directory: &Path, vtyshs: &[Vtysh]) -> Result<()> {
    let lines = |is_new: bool| {
        let known = COMMANDS.iter().filter(move |it| it.known != Known::OnlyNew || is_new);
        let words = known.map(|command| command.words);
        let texts = TEXTS.iter().map(|(words, _)| *words).filter(|words| is_for_a_daemon(words));
        words.chain(texts.filter(|words| words.starts_with("show ")))
    };
    for vtysh in vtyshs {
        keyboard::check_vtysh(&mut vtysh.on_terminal(&stage.sockets), lines(vtysh.is_new()))
            .with_context(|| format!("at the keyboard of vtysh {}", vtysh.version))?;
    }
    let (program, socket) = (lab::fairway::program(), stage.fairway.socket());
    keyboard::check_bash(&program, &socket, directory, lines(true))
        .context("at the keyboard of bash")
}

/// What a session goes through shows in some commands.
fn states(stage: &mut Stage, answers: &mut Answers) -> Result<()> {
    stage.router_two(&["disable", "node4", "\"planned work\""])?;
    stage.wait_for_end(&RECEIVED)?;
    look(stage, answers)?;
    stage.router_two(&["enable", "node4"])?;
    stage.wait_for_routes()?;
    look(stage, answers)?;
    // BIRD would refuse the next dial with a Cease of its own, sometimes.
    stage.silence_router_two()?;
    stage.fairway.clear(&[stage::ROUTER_TWO])?;
    stage.wait_for_end(&CLEARED)?;
    look(stage, answers)?;
    stage.hear_router_two()?;
    stage.silence_router_two()?;
    stage.wait_for_end(&NOT_HEARD)?;
    look(stage, answers)?;
    stage.hear_router_two()?;
    let limit = "maxPrefixes: {limit: 1000}}\n";
    stage.change_router_two(limit, &format!("{limit}  shutdown: {{message: moving racks}}\n"))?;
    stage.wait_for_router_two("Idle (Admin)")?;
    stage.wait_for_end(&SHUT_DOWN)?;
    look(stage, answers)?;
    stage.restore_router_two()?;
    stage.change_router_two("peerASN: 65020", "peerASN: 65021")?;
    stage.wait_for_end(&WRONG_AS)?;
    look(stage, answers)?;
    stage.restore_router_two()?;
    stage.change_router_two("limit: 1000", "limit: 2")?;
    stage.wait_for_router_two("Idle (PfxCt)")?;
    stage.wait_for_end(&TOO_MANY)?;
    look(stage, answers)?;
    stage.restore_router_two()?;
    stage.kill_router_two()?;
    stage.wait_for_end(&RESTARTING)?;
    look(stage, answers)?;
    let stale = COMMANDS.iter().find(|command| command.words == FROM_ROUTER_TWO);
    add(stage, stale.context(FROM_ROUTER_TWO)?, answers)?;
    let text = scrape(&stage.socket("bgpd.vty"), FROM_ROUTER_TWO)?;
    for part in [", (stale)\n", "Time until Graceful Restart stale route deleted: "] {
        ensure!(text.contains(part), "{FROM_ROUTER_TWO}: expected {part} in:\n{text}");
    }
    stage.start_router_two_again()?;
    stage.wait_for_end_of_restart()?;
    stage.wait_for_routes()?;
    look(stage, answers)
}

/// Commands that depend on a neighbour: their JSON, and their text where lines are compared.
fn look(stage: &Stage, answers: &mut Answers) -> Result<()> {
    for command in COMMANDS.iter().filter(|command| command.follows_states) {
        add(stage, command, answers)?;
        if lines::COMMANDS.contains(&command.words) {
            let answer = scrape(&stage.socket(command.socket()), command.words)?;
            lines::add(&mut answers.lines, command.words, &answer);
        }
    }
    Ok(())
}

fn add(stage: &Stage, command: &Command, answers: &mut Answers) -> Result<()> {
    let answer = scrape_json(&stage.socket(command.socket()), &command.json())?;
    answers.shapes.entry(command.words).or_default().add(&answer);
    Ok(())
}

/// Compares the page with what was found, or writes it.
fn page(differences: &str) -> Result<()> {
    let path = lab::checkout().join(PAGE);
    let present = fs::read_to_string(&path).with_context(|| PAGE.to_owned())?;
    let (before, rest) = present.split_once(BEGIN).context("where the differences begin")?;
    let (_, after) = rest.split_once(END).context("where the differences end")?;
    let page = format!("{before}{BEGIN}\n{differences}\n{END}{after}");
    if std::env::var_os("FAIRWAY_WRITE").is_some() {
        return fs::write(&path, page).with_context(|| PAGE.to_owned());
    }
    let differs = page.lines().zip(present.lines()).find(|(one, other)| one != other);
    ensure!(
        page == present,
        "{PAGE} is stale: run FAIRWAY_WRITE=1 cargo test --test vtysh; it should say {differs:?}"
    );
    Ok(())
}
