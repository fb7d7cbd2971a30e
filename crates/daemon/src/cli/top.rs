//! `fairway top`: the terminal, its keys, and looks at the daemon.
//!
//! A thread asks the daemon and hands over one overview at a time, so that keys work while the daemon does not answer,
//! and a terminal that is stopped keeps one overview waiting, not a queue of them.

use std::io::{IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use fairway_ground::{Instant, Utc};
use fairway_show::language::{self, Question, Vocabulary};
use fairway_show::overview::{EventRow, Overview};
use fairway_top::{Key, Reaction, Screen, draw};
use ratatui::DefaultTerminal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::ask::SocketArguments;
use super::output;
use crate::admin::client::ClientError;
use crate::admin::{Request, client};
use crate::host::Clock;

/// From one look at the daemon to the next, at least.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// And so many times as long as an answer took: looking costs no more than a twentieth of the time of a core, whatever the size
/// of the node.
const LOOK_SHARE: u32 = 20;
/// After a look that failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long a key waits for a new overview.
const KEY_INTERVAL: Duration = Duration::from_millis(30);
/// Services and addresses that are listed, those that lack something first.
const ROWS_MAX: usize = 1_000;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway top                     the live view; ? shows its keys, q leaves it
  fairway top --watch             a line for each event, until Ctrl-C
  fairway top --watch | grep tor-1

Without a terminal on stdout it behaves as with --watch. A node with 500 neighbors costs it a few percent of a core.
Exit code 0: left. 1: no daemon answers at the socket.")]
pub(super) struct TopArguments {
    /// Print a line for each event instead of drawing a screen
    #[arg(long)]
    watch: bool,

    #[command(flatten)]
    socket: SocketArguments,
}

pub(super) fn run(arguments: &TopArguments) -> Result<ExitCode> {
    let path = arguments.socket.path()?;
    // The first answer decides about the exit code, and comes before the screen is taken.
    let first = client::ask_overview(&path, ROWS_MAX)?;
    let looks = follow(path.clone())?;
    let mut screen = Screen::default();
    let clock = Clock::start();
    let start = begin(&first);
    screen.follow(clock.now().monotonic, first);
    if arguments.watch || !stdout().is_terminal() {
        if print_event(&start)? {
            watch(&mut screen, clock, &looks)?;
        }
    } else {
        let ended = ending().context("cannot handle signals")?;
        // What was already changed of the terminal is put back in each case.
        let outcome = ratatui::try_init()
            .context("cannot draw on this terminal")
            .and_then(|terminal| show(&mut screen, clock, &looks, &path, terminal, &ended));
        ratatui::restore();
        outcome?;
    }
    Ok(ExitCode::SUCCESS)
}

type Look = Result<Overview, ClientError>;

/// Asks the daemon from a thread of its own, which ends with this process.
fn follow(path: PathBuf) -> Result<Receiver<Look>> {
    let (send, looks) = sync_channel(1);
    let asking = thread::Builder::new().name("look".to_owned());
    asking.spawn(move || ask(&path, &send)).context("cannot start a thread")?;
    Ok(looks)
}

fn ask(path: &Path, looks: &SyncSender<Look>) {
    let clock = Clock::start();
    loop {
        let began = clock.now().monotonic;
        let look = client::ask_overview(path, ROWS_MAX);
        let took = clock.now().monotonic.since(began);
        let pause = match look {
            Ok(_) => LOOK_INTERVAL.max(took.saturating_mul(LOOK_SHARE)),
            Err(_) => RETRY_INTERVAL,
        };
        if looks.send(look).is_err() {
            return;
        }
        thread::park_timeout(pause);
    }
}

/// The state when watching begins, as the first line of those that follow.
fn begin(overview: &Overview) -> EventRow {
    let (up, all) = (overview.established(), overview.sessions.len());
    let services = overview.service_counts;
    let of_services = match (services.total, services.lacking) {
        (0, _) => "no services".to_owned(),
        (total, 0) => format!("services: {total}"),
        (total, lacking) => format!("services: {total}, of which {lacking} lack something"),
    };
    EventRow {
        at_epoch_seconds: overview.now_epoch_seconds,
        about: format!("node {}", overview.node),
        what: format!("{up} of {all} sessions Established; {of_services}"),
        is_warning: up < all || services.lacking > 0,
    }
}

/// Prints a line for each event.
fn watch(screen: &mut Screen, clock: Clock, looks: &Receiver<Look>) -> Result<()> {
    let mut has_failed = false;
    loop {
        match looks.recv() {
            Ok(Ok(overview)) => {
                if std::mem::take(&mut has_failed) {
                    output::say("the daemon answers again");
                }
                for event in screen.follow(clock.now().monotonic, overview) {
                    if !print_event(&event)? {
                        return Ok(());
                    }
                }
            }
            Ok(Err(error)) => {
                if !std::mem::replace(&mut has_failed, true) {
                    output::say(&format!("{error}; trying again"));
                }
            }
            Err(_) => bail!("the thread that asks the daemon has ended"),
        }
    }
}

/// Returns whether anybody reads.
fn print_event(event: &EventRow) -> Result<bool> {
    let EventRow { at_epoch_seconds, about, what, .. } = event;
    let line = format!("{} {about} {what}", Utc(*at_epoch_seconds).rfc3339());
    let mut stdout = stdout().lock();
    match writeln!(stdout, "{}", fairway_ground::printable(&line)).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        outcome => outcome.map(|()| true).context("stdout"),
    }
}

/// Set by the signals that end a process.
fn ending() -> std::io::Result<Arc<AtomicBool>> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP, SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&ended))?;
    }
    Ok(ended)
}

/// Draws until a key or a signal ends it.
fn show(
    screen: &mut Screen,
    clock: Clock,
    looks: &Receiver<Look>,
    path: &Path,
    mut terminal: DefaultTerminal,
    ended: &AtomicBool,
) -> Result<()> {
    loop {
        screen.resize(terminal.size().context("cannot read the size of this terminal")?.height);
        terminal.draw(|frame| draw(screen, frame)).context("cannot draw on this terminal")?;
        // Until there is something new.
        loop {
            if ended.load(Ordering::Relaxed) {
                return Ok(());
            }
            match press(screen).context("cannot read keys")? {
                Some(Reaction::Quit) => return Ok(()),
                Some(Reaction::Explain([kind, name])) => explain(screen, path, kind, name),
                Some(Reaction::Draw) => {}
                None => match looks.recv_timeout(KEY_INTERVAL) {
                    Ok(look) => take(screen, clock.now().monotonic, look),
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => {
                        bail!("the thread that asks the daemon has ended")
                    }
                },
            }
            break;
        }
    }
}

fn take(screen: &mut Screen, now: Instant, look: Look) {
    match look {
        Ok(overview) => {
            screen.follow(now, overview);
        }
        Err(error) => screen.fail(error.to_string()),
    }
}

/// What a key that was pressed does; `None` without one.
fn press(screen: &mut Screen) -> std::io::Result<Option<Reaction>> {
    if !event::poll(Duration::ZERO)? {
        return Ok(None);
    }
    let Event::Key(key) = event::read()? else { return Ok(Some(Reaction::Draw)) };
    if key.kind == KeyEventKind::Release {
        return Ok(None);
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    Ok(Some(match key.code {
        KeyCode::Char('c' | 'd') if is_control => Reaction::Quit,
        code => meant(code).map_or(Reaction::Draw, |key| screen.press(key)),
    }))
}

fn meant(code: KeyCode) -> Option<Key> {
    Some(match code {
        KeyCode::Char(character) => Key::Character(character),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}

/// What `fairway explain` says of an object.
fn explain(screen: &mut Screen, path: &Path, kind: String, name: String) {
    let title = format!("fairway explain {kind} {name}");
    let words = ["explain", &kind, &name];
    let text = match language::understand(Vocabulary::CommandLine, &words) {
        Ok(Question::Show(query)) => client::ask(path, &Request::Show(query)),
        _ => Ok("it cannot be explained".to_owned()),
    };
    let text = text.unwrap_or_else(|error| error.to_string());
    screen.explain(title, &text);
}
