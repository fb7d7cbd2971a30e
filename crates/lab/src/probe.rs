//! Does traffic get through, all the time? A prober in one namespace sends a datagram every 10 ms to
//! addresses of another, by whatever route its kernel has, and counts those that are not answered
//! within a second. Prober and answerer are this test's own binary, run again inside a namespace.
//! Knows nothing of routing. Used by the tests of restarts and of drains.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use tokio::net::UdpSocket;
use tokio::time::{MissedTickBehavior, interval};

use super::namespace::Place;
use super::process::Process;
use super::wait::{PATIENCE, now, wait_until};

/// The echo service, RFC 862.
const PORT: u16 = 7;
/// To each target.
const EVERY: Duration = Duration::from_millis(10);
const DEADLINE: Duration = Duration::from_secs(1);
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// Source ports, used in turn, so that a route with several next hops is tried in full: of two next
/// hops, one gets none of so many flows in one of 2^31 runs.
const FLOWS: usize = 32;
/// Losses that are reported one by one.
const TOLD_MAX: usize = 3;

/// First words of the command line of this binary in its other roles.
const ANSWER: &str = "@answer-probes";
const SEND: &str = "@send-probes";

/// Plays the other role when the command line asks for one: `main` must call this first.
pub fn other_role() -> Option<ExitCode> {
    let mut words = std::env::args().skip(1);
    let role = words.next()?;
    let words: Vec<String> = words.collect();
    let outcome = match role.as_str() {
        ANSWER => answer(&words),
        SEND => send(&words),
        _ => return None,
    };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{role}: {error:#}");
            ExitCode::FAILURE
        }
    })
}

/// Answers at addresses of its namespace, for as long as this value lives.
pub struct Answerer {
    _process: Process,
}

impl Answerer {
    /// The addresses must be there already. `name` comes with each answer.
    pub fn start(place: &impl Place, name: &str, addresses: &[IpAddr], log: &Path) -> Result<Self> {
        let mut words = vec![ANSWER.to_owned(), name.to_owned()];
        words.extend(addresses.iter().map(IpAddr::to_string));
        Ok(Self { _process: Process::spawn(place, &this_binary()?, &words, log)? })
    }
}

/// Sends for as long as this value lives.
pub struct Prober {
    process: Process,
    report: PathBuf,
}

/// What became of the probes to one target.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    pub target: String,
    pub sent: u64,
    /// Of those, from the first on: answered or lost.
    settled: u64,
    pub lost: u64,
    pub lost_in_a_row_max: u64,
    /// Between two probes: how long an outage could have gone unseen.
    pub pause_max_milliseconds: u64,
    /// How many each answerer has answered, by its name.
    pub answered_by: BTreeMap<String, u64>,
    /// When and why, for the first ones.
    pub losses: Vec<String>,
}

impl Prober {
    /// `report` is a file of its own. Returns once every target has answered.
    pub fn start(
        place: &impl Place,
        targets: &[IpAddr],
        report: &Path,
        log: &Path,
    ) -> Result<Self> {
        let mut words = vec![SEND.to_owned(), report.to_string_lossy().into_owned()];
        words.extend(targets.iter().map(IpAddr::to_string));
        let process = Process::spawn(place, &this_binary()?, &words, log)?;
        let mut prober = Self { process, report: report.to_owned() };
        wait_until("every probed address answers", PATIENCE, || {
            let tallies = prober.read()?;
            let silent = tallies.iter().find(|tally| tally.answered_by.is_empty());
            ensure!(silent.is_none(), "there is no answer from {silent:?}");
            Ok(())
        })?;
        Ok(prober)
    }

    /// The tally of each target, with all that was sent until now settled.
    pub fn tallies(&mut self) -> Result<Vec<Tally>> {
        let sent: Vec<u64> = self.read()?.iter().map(|tally| tally.sent).collect();
        wait_until("all probes are answered or lost", PATIENCE, || {
            let tallies = self.read()?;
            let open = tallies.iter().zip(&sent).find(|(tally, sent)| tally.settled < **sent);
            ensure!(open.is_none(), "{open:?} is not settled");
            Ok(tallies)
        })
    }

    fn read(&mut self) -> Result<Vec<Tally>> {
        self.process.check_running()?;
        let text = fs::read_to_string(&self.report).context("the prober's report")?;
        serde_json::from_str(&text).context("the prober's report")
    }
}

fn this_binary() -> Result<PathBuf> {
    std::env::current_exe().context("the path of this binary")
}

fn addresses_of(words: &[String]) -> Result<Vec<IpAddr>> {
    let address = |word: &String| word.parse().with_context(|| format!("address {word}"));
    words.iter().map(address).collect()
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("a runtime")
}

fn answer(words: &[String]) -> Result<()> {
    let Some((name, addresses)) = words.split_first() else { bail!("expected NAME ADDRESS...") };
    let addresses = addresses_of(addresses)?;
    runtime()?.block_on(async {
        let mut answering = tokio::task::JoinSet::new();
        for address in addresses {
            let socket = UdpSocket::bind(SocketAddr::new(address, PORT))
                .await
                .with_context(|| format!("answering at {address}"))?;
            answering.spawn(answer_at(socket, name.clone()));
        }
        answering.join_next().await.context("expected an address")?.context("a task")
    })
}

async fn answer_at(socket: UdpSocket, name: String) {
    let mut number = [0; 8];
    loop {
        // What cannot be received or sent is lost, and the prober counts it.
        if let Ok((8, prober)) = socket.recv_from(&mut number).await {
            let _ = socket.send_to(&[&number, name.as_bytes()].concat(), prober).await;
        }
    }
}

/// A probe that is neither answered nor lost for certain.
struct Open {
    sent: Instant,
    at: SystemTime,
    answered: bool,
    /// Why it could not be sent.
    error: Option<std::io::ErrorKind>,
}

/// What the prober knows of one target.
#[derive(Default)]
struct Ledger {
    tally: Tally,
    /// By number, in the order of sending.
    open: VecDeque<Open>,
    last_sent: Option<Instant>,
    lost_in_a_row: u64,
}

impl Ledger {
    fn is_sent(&mut self, moment: Instant) {
        if let Some(last) = self.last_sent.replace(moment) {
            let pause = moment.duration_since(last).as_millis().try_into().unwrap_or(u64::MAX);
            self.tally.pause_max_milliseconds = self.tally.pause_max_milliseconds.max(pause);
        }
        self.tally.sent += 1;
        self.open.push_back(Open { sent: moment, at: wall_clock(), answered: false, error: None });
    }

    fn open(&mut self, number: u64) -> Option<&mut Open> {
        let place = number.checked_sub(self.tally.settled)?;
        self.open.get_mut(usize::try_from(place).ok()?)
    }

    fn is_answered(&mut self, number: u64, moment: Instant, name: &str) {
        let in_time =
            |open: &&mut Open| !open.answered && moment.duration_since(open.sent) < DEADLINE;
        if let Some(open) = self.open(number).filter(in_time) {
            open.answered = true;
            *self.tally.answered_by.entry(name.to_owned()).or_default() += 1;
        }
    }

    fn settle(&mut self, moment: Instant) {
        while let Some(open) = self.open.front() {
            if open.answered {
                self.lost_in_a_row = 0;
            } else if moment.duration_since(open.sent) >= DEADLINE {
                let why = open.error.map_or("no answer".to_owned(), |error| error.to_string());
                let told = format!("sent at {}: {why}", time_of_day(open.at));
                self.is_lost(told);
            } else {
                return;
            }
            self.open.pop_front();
            self.tally.settled += 1;
        }
    }

    fn is_lost(&mut self, told: String) {
        self.tally.lost += 1;
        self.lost_in_a_row += 1;
        self.tally.lost_in_a_row_max = self.tally.lost_in_a_row_max.max(self.lost_in_a_row);
        if self.tally.losses.len() < TOLD_MAX {
            self.tally.losses.push(told);
        }
    }
}

fn send(words: &[String]) -> Result<()> {
    let Some((report, targets)) = words.split_first() else { bail!("expected REPORT ADDRESS...") };
    let targets = addresses_of(targets)?;
    runtime()?.block_on(probe(Path::new(report), &targets))
}

async fn probe(report: &Path, targets: &[IpAddr]) -> Result<()> {
    let ledger = |target: &IpAddr| Ledger {
        tally: Tally { target: target.to_string(), ..Tally::default() },
        ..Ledger::default()
    };
    let ledgers: Arc<Mutex<Vec<Ledger>>> =
        Arc::new(Mutex::new(targets.iter().map(ledger).collect()));
    let mut flows = Vec::new();
    for (place, target) in targets.iter().enumerate() {
        let any: IpAddr = match target {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let mut sockets = Vec::new();
        for _ in 0..FLOWS {
            let socket = Arc::new(UdpSocket::bind((any, 0)).await.context("a socket to probe")?);
            tokio::spawn(receive(Arc::clone(&socket), Arc::clone(&ledgers), place));
            sockets.push(socket);
        }
        flows.push((SocketAddr::new(*target, PORT), sockets));
    }
    let mut ticks = interval(EVERY);
    // A pause of the machine is reported, not made up for.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut last_report = now();
    for flow in (0..FLOWS).cycle() {
        ticks.tick().await;
        for (place, (target, sockets)) in flows.iter().enumerate() {
            let number = with(&ledgers, place, |ledger| {
                ledger.is_sent(now());
                ledger.tally.sent - 1
            })?;
            let socket = sockets.get(flow).context("a flow")?;
            if let Err(error) = socket.send_to(&number.to_be_bytes(), *target).await {
                with(&ledgers, place, |ledger| {
                    if let Some(open) = ledger.open(number) {
                        open.error = Some(error.kind());
                    }
                })?;
            }
        }
        if last_report.elapsed() >= REPORT_EVERY {
            last_report = now();
            write(report, &ledgers)?;
        }
    }
    Ok(())
}

async fn receive(socket: Arc<UdpSocket>, ledgers: Arc<Mutex<Vec<Ledger>>>, place: usize) {
    let mut answer = [0; 64];
    loop {
        let Ok((length, _)) = socket.recv_from(&mut answer).await else { continue };
        let parts = answer.get(..length).and_then(|bytes| bytes.split_first_chunk::<8>());
        if let Some((number, name)) = parts {
            let name = String::from_utf8_lossy(name);
            let number = u64::from_be_bytes(*number);
            let _ = with(&ledgers, place, |ledger| ledger.is_answered(number, now(), &name));
        }
    }
}

fn with<T>(
    ledgers: &Mutex<Vec<Ledger>>,
    place: usize,
    act: impl FnOnce(&mut Ledger) -> T,
) -> Result<T> {
    let mut ledgers = ledgers.lock().unwrap_or_else(PoisonError::into_inner);
    ledgers.get_mut(place).map(act).context("a ledger")
}

/// Readers see the report before or this one.
fn write(report: &Path, ledgers: &Mutex<Vec<Ledger>>) -> Result<()> {
    let mut ledgers = ledgers.lock().unwrap_or_else(PoisonError::into_inner);
    let moment = now();
    ledgers.iter_mut().for_each(|ledger| ledger.settle(moment));
    let tallies: Vec<&Tally> = ledgers.iter().map(|ledger| &ledger.tally).collect();
    let staged = report.with_extension("new");
    fs::write(&staged, serde_json::to_vec(&tallies)?).context("writing the report")?;
    fs::rename(&staged, report).context("writing the report")
}

#[allow(clippy::disallowed_methods, reason = "so that a loss is found in the logs")]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}

fn time_of_day(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs() % 86_400;
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{hours:02}:{minutes:02}:{rest:02}.{:03} UTC", since.subsec_millis())
}
