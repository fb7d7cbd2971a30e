//! The loop of the thread: events of connections go to the machines of the caches, and what they say goes to the core.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::{Allowance, Allowances, Bound, Instant, RpkiServer, printable};
use fairway_rpki::{Action, Cache, Concerned, Event, Payloads, Report};
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use super::connection::{Connection, Happened, Name};
use super::{Servers, Verdicts, Views};
use crate::clock::Clock;

/// Events that may wait, each of one read.
const EVENTS_MAX: usize = 16;
/// Between two tables for the core, which judges routes again by each.
const TABLE_GAP: Duration = Duration::from_secs(2);
/// Lines of the log about one cache.
const LINES: Allowance = Allowance { burst: 10, interval: Duration::from_secs(60) };

struct Server {
    cache: Cache,
    connection: Option<Connection>,
}

/// See the module.
struct Validator {
    clock: Clock,
    servers: BTreeMap<RpkiServer, Server>,
    /// They are not asked any more. What they said counts until the others have answered, or it expires.
    leaving: Vec<Cache>,
    payloads: Payloads,
    /// What the core has not been told.
    concerned: Concerned,
    events: mpsc::Sender<(Name, Happened)>,
    /// How many connections there were.
    connections: u64,
    lines: Allowances<RpkiServer>,
}

/// Runs until the core is gone.
pub(super) async fn run(
    clock: Clock,
    mut wanted: watch::Receiver<Servers>,
    verdicts: mpsc::Sender<Verdicts>,
    views: watch::Sender<Views>,
) {
    let (events, mut happened) = mpsc::channel(EVENTS_MAX);
    let mut validator = Validator {
        clock,
        servers: BTreeMap::new(),
        leaving: Vec::new(),
        payloads: Payloads::default(),
        concerned: Concerned::default(),
        events,
        connections: 0,
        lines: Allowances::new(LINES, Bound::LogLine),
    };
    let mut table_at = tokio::time::Instant::now();
    loop {
        let deadline = validator.next_deadline();
        let wake = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(clock.at(deadline)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = wanted.changed() => {
                if changed.is_err() {
                    return;
                }
                let servers = Arc::clone(&wanted.borrow_and_update());
                validator.want(&servers);
            }
            Some((name, happened)) = happened.recv() => validator.happened(&name, happened),
            room = room_after(table_at, &verdicts), if !validator.concerned.is_empty() => {
                let Ok(room) = room else { return };
                table_at = tokio::time::Instant::now() + TABLE_GAP;
                let concerned = std::mem::take(&mut validator.concerned);
                room.send((Arc::new(validator.payloads.table()), concerned));
            }
            () = wake => validator.tick(),
        }
        views.send_replace(validator.view());
    }
}

/// Room for a table, when the next one is due.
async fn room_after(
    at: tokio::time::Instant,
    verdicts: &mpsc::Sender<Verdicts>,
) -> Result<mpsc::Permit<'_, Verdicts>, mpsc::error::SendError<()>> {
    tokio::time::sleep_until(at).await;
    verdicts.reserve().await
}

impl Validator {
    fn next_deadline(&self) -> Option<Instant> {
        let leaving = self.leaving.iter().filter_map(Cache::expires_at);
        self.servers.values().filter_map(|it| it.cache.next_deadline()).chain(leaving).min()
    }

    /// Asks these, and forgets what others say.
    fn want(&mut self, wanted: &Servers) {
        let now = self.clock.now();
        let gone: Vec<RpkiServer> =
            self.servers.keys().filter(|it| !wanted.contains(it)).cloned().collect();
        for server in gone {
            if let Some(it) = self.servers.remove(&server) {
                self.leaving.push(it.cache);
            }
            info!(%server, "RPKI cache removed");
        }
        for server in wanted.iter() {
            let is_known = self.servers.contains_key(server);
            if !is_known {
                let it = Server { cache: Cache::new(now), connection: None };
                self.servers.insert(server.clone(), it);
            }
        }
        self.tick();
    }

    fn tick(&mut self) {
        self.release();
        let now = self.clock.now();
        let due = |it: &Server| it.cache.next_deadline().is_some_and(|at| at <= now);
        let due: Vec<RpkiServer> =
            self.servers.iter().filter(|(_, it)| due(it)).map(|(key, _)| key.clone()).collect();
        for server in due {
            self.with(&server, |it| it.cache.handle(now, Event::Tick));
        }
    }

    /// Takes back what caches said that are not asked any more, unless one that is asked has not answered yet.
    fn release(&mut self) {
        let now = self.clock.now();
        let is_settled = self.servers.values().all(|it| it.cache.expires_at().is_some());
        let goes = |cache: &mut Cache| {
            is_settled || cache.expires_at().is_none_or(|expires_at| expires_at <= now)
        };
        for mut cache in self.leaving.extract_if(.., goes) {
            cache.forget();
            while let Some(action) = cache.poll_action() {
                if let Action::Changed(changes) = action {
                    self.concerned.add(self.payloads.apply(&changes));
                }
            }
        }
    }

    fn happened(&mut self, (server, number): &Name, happened: Happened) {
        let now = self.clock.now();
        self.with(server, |it| {
            if it.connection.as_ref().is_none_or(|it| it.number != *number) {
                return;
            }
            match happened {
                Happened::Connected => it.cache.handle(now, Event::Connected),
                Happened::Received(bytes) => it.cache.handle(now, Event::Received(&bytes)),
                Happened::Closed(why) => {
                    it.connection = None;
                    it.cache.handle(now, Event::Closed(&why));
                }
            }
        });
        self.release();
    }

    /// Runs `work` on one cache, and carries out what follows.
    fn with(&mut self, server: &RpkiServer, work: impl FnOnce(&mut Server)) {
        let Some(it) = self.servers.get_mut(server) else { return };
        work(it);
        while let Some(action) = it.cache.poll_action() {
            match action {
                Action::Connect => {
                    self.connections = self.connections.saturating_add(1);
                    let name = (server.clone(), self.connections);
                    it.connection = Some(Connection::open(name, self.events.clone()));
                }
                Action::Send(bytes) => {
                    if let Some(connection) = &it.connection {
                        connection.send(bytes);
                    }
                }
                Action::Close => it.connection = None,
                Action::Changed(changes) => self.concerned.add(self.payloads.apply(&changes)),
                Action::Report(report) => {
                    let now = self.clock.now();
                    if self.lines.take(now, server.clone()).is_some() {
                        log(server, &report, it.cache.expires_at().is_some());
                    }
                }
            }
        }
    }

    fn view(&self) -> Views {
        self.servers.iter().map(|(server, it)| (server.clone(), it.cache.view())).collect()
    }
}

fn log(server: &RpkiServer, report: &Report, has_data: bool) {
    match report {
        Report::Synchronized(payloads) => info!(%server, payloads, "RPKI cache synchronized"),
        Report::Failed(why) => {
            let why = printable(why);
            let data = if has_data {
                "what it said counts until it expires"
            } else {
                "it has said nothing"
            };
            warn!(%server, %why, "RPKI cache fails: {data}; trying again");
        }
        Report::Expired => {
            warn!(%server, "RPKI cache expired: what it said does not count any more; trying again");
        }
    }
}
