//! Calls are served in batches, one after the other: each has what waits when the one before is done.
//!
//! A container that is deleted while its addresses cannot be released waits in the spool, where the plugin leaves it as well
//! when there is no daemon. What waits there goes before a call about the same container.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fairway_cni::spool;
use fairway_ground::printable;
use fairway_ipam::cni::{
    Answer, Attachment, CniError, Code, Command, Invocation, PodNotes, Request, answer_together,
    keep_stock,
};
use fairway_ipam::{Addressing, Facts, Moment, PodName};
use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::{info, warn};

use super::announced::{AnnouncedBlocks, NodeStore};
use super::calls::{Call, CallSocket, Standby};
use super::knowledge::Knowledge;
use super::outgoing::OutgoingNat;
use crate::host::epoch_milliseconds;

/// The most calls of a batch: more would keep the first one waiting.
const BATCH_CALLS_MAX: usize = 512;
/// While calls come faster than they are served, a batch waits so long for the next ones: Pods that share the write of a
/// block cost the API server less, and all of them are served sooner.
const GATHER_TIME: Duration = Duration::from_millis(10);
/// How often calls that wait in the spool are tried.
const SPOOL_INTERVAL: Duration = Duration::from_secs(2);

/// When a deletion is tried again that failed by itself.
const LATER: Duration = Duration::from_secs(60);
/// How often blocks of others are read again whose addresses Pods of this node have.
const REFRESH_INTERVAL: Duration = Duration::from_secs(60);

/// See the module.
pub(crate) struct Server<S, K> {
    store: S,
    knowledge: K,
    node: String,
    standby: Standby,
    announced: AnnouncedBlocks,
    outgoing: OutgoingNat,
    /// Something else than a call has changed what is announced.
    is_news: Arc<Notify>,
    /// Deletions of the spool that failed by themselves, and when they are tried again.
    later: BTreeMap<PathBuf, Instant>,
    /// What was logged of the spool last.
    spool_trouble: Option<String>,
}

/// What a call is about: no two calls of a batch are about the same.
type Subject = (String, Attachment);

/// A call that was read.
struct Arrived {
    bytes: Vec<u8>,
    request: Result<Request, CniError>,
    answer: Option<oneshot::Sender<Answer>>,
    at: Instant,
}

impl Arrived {
    fn new(bytes: Vec<u8>, answer: Option<oneshot::Sender<Answer>>) -> Self {
        let invocation = Invocation::parse(&bytes);
        let request = match &invocation {
            Ok(invocation) => Request::parse(invocation),
            Err(error) => Err(CniError::try_again(error)),
        };
        Self { bytes, request, answer, at: Instant::now() }
    }

    fn command(&self) -> Option<Command> {
        self.request.as_ref().ok().map(|it| it.command)
    }

    fn subject(&self) -> Option<Subject> {
        let Request { attachment, configuration, .. } = self.request.as_ref().ok()?;
        let is_of_container = !attachment.container.is_empty();
        is_of_container.then(|| (configuration.network.clone(), attachment.clone()))
    }

    /// The node that it asks for an address on, if that is not this one.
    fn other_node(&self, node: &str) -> Option<&str> {
        let Request { command, configuration, .. } = self.request.as_ref().ok()?;
        let named = configuration.node.as_deref().filter(|it| *it != node);
        named.filter(|_| matches!(command, Command::Add | Command::Status))
    }

    /// The plugin has given up.
    fn is_abandoned(&self) -> bool {
        self.answer.as_ref().is_some_and(oneshot::Sender::is_closed)
    }
}

impl<S: NodeStore, K: Knowledge> Server<S, K> {
    pub(crate) fn new(
        store: S,
        knowledge: K,
        node: String,
        standby: Standby,
        announced: AnnouncedBlocks,
    ) -> Self {
        let (outgoing, is_news, later, spool_trouble) = Default::default();
        Self { store, knowledge, node, standby, announced, outgoing, is_news, later, spool_trouble }
    }

    /// Where it is told that pools or affinities have changed.
    pub(crate) fn news(&self) -> Arc<Notify> {
        Arc::clone(&self.is_news)
    }

    /// Serves calls until it is dropped.
    pub(crate) async fn run(mut self, mut socket: CallSocket) {
        let mut retries = interval(SPOOL_INTERVAL);
        let mut refreshes = interval(REFRESH_INTERVAL);
        retries.set_missed_tick_behavior(MissedTickBehavior::Delay);
        refreshes.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let news = self.news();
        let mut is_busy = false;
        // A store that does not answer is asked once a minute: calls wait meanwhile.
        let mut may_settle = true;
        loop {
            tokio::select! {
                mut calls = socket.take(BATCH_CALLS_MAX) => {
                    if is_busy {
                        sleep(GATHER_TIME).await;
                        socket.take_waiting(&mut calls, BATCH_CALLS_MAX);
                    }
                    is_busy = calls.len() > 1;
                    let calls = calls.into_iter().map(|it| {
                        let Call { bytes, answer } = it;
                        Arrived::new(bytes, Some(answer))
                    });
                    let mut arrived: VecDeque<Arrived> = calls.collect();
                    while !arrived.is_empty() {
                        let batch = next_batch(&mut arrived);
                        self.serve(batch).await;
                    }
                }
                _ = retries.tick() => {
                    self.serve_spool().await;
                    // What fails is tried again.
                    match self.store.own() {
                        None => _ = self.store.refresh().await,
                        Some(_) if may_settle => may_settle = self.store.settle().await.is_ok(),
                        Some(_) => {}
                    }
                }
                // What cannot be read again stays as it was.
                _ = refreshes.tick() => {
                    self.outgoing.doubt();
                    may_settle = true;
                    _ = self.store.refresh().await;
                }
                () = news.notified() => { _ = self.store.settle().await; }
            }
            if let Ok(facts) = self.knowledge.facts() {
                self.announced.follow(&self.store, &facts, &self.node).await;
                self.outgoing.follow(&facts).await;
            }
        }
    }

    /// Answers calls that are about different containers.
    async fn serve(&mut self, mut batch: Vec<Arrived>) {
        batch.retain(|it| it.command() != Some(Command::Add) || !it.is_abandoned());
        let is_about_containers = |it: &Arrived| it.command() == Some(Command::Add);
        let waiting = match batch.iter().any(is_about_containers) {
            true => self.serve_spool().await,
            false => BTreeSet::new(),
        };
        let facts = self.knowledge.facts();
        let mut served: Vec<Arrived> = Vec::with_capacity(batch.len());
        for arrived in batch {
            match self.answer_now(&arrived, &facts, &waiting) {
                Some(outcome) => self.reply(arrived, outcome),
                None => served.push(arrived),
            }
        }
        let Ok(facts) = facts else { return };
        let notes = self.notes(&served).await;
        let mut known = Vec::with_capacity(served.len());
        for arrived in served {
            let pod = arrived.request.as_ref().ok().and_then(|it| it.pod.as_ref());
            match pod.and_then(|it| notes.get(it)) {
                Some(Err(reason)) => self.reply(arrived, Err(CniError::try_again(reason))),
                _ => known.push(arrived),
            }
        }
        let notes = |pod: &PodName| match notes.get(pod) {
            Some(Ok(notes)) => notes.clone(),
            _ => PodNotes::default(),
        };
        let example = known.iter().find(|it| it.command() == Some(Command::Add));
        let example = example.and_then(|it| it.request.as_ref().ok()).cloned();
        let outcomes = self.outcomes(&facts, &mut known, notes).await;
        for (arrived, outcome) in known.into_iter().zip(outcomes) {
            let outcome = self.noted(&arrived, outcome);
            self.reply(arrived, outcome);
        }
        self.announced.follow(&self.store, &facts, &self.node).await;
        // Nobody waits for this.
        if let Some(request) = example {
            let addressing = self.addressing(&facts);
            _ = keep_stock(&addressing, &request, &self.node).await;
        }
    }

    /// The answer to a call that nothing has to be asked for.
    fn answer_now(
        &self,
        arrived: &Arrived,
        facts: &Result<Arc<Facts>, String>,
        waiting: &BTreeSet<Subject>,
    ) -> Option<Result<Option<Value>, CniError>> {
        let command = match &arrived.request {
            Ok(request) => request.command,
            Err(error) => return Some(Err(error.clone())),
        };
        let is_deletion = command == Command::Delete;
        match facts {
            Err(_) if is_deletion => return Some(self.standby.note(&arrived.bytes)),
            Err(reason) if command == Command::Status => {
                return Some(Err(CniError::not_available(reason)));
            }
            Err(reason) => return Some(Err(CniError::try_again(reason))),
            Ok(_) => {}
        }
        if let Some(other) = arrived.other_node(&self.node) {
            let details = format!(
                "nodename is {other:?}, and this daemon gives addresses on node {:?}",
                self.node
            );
            return Some(Err(CniError::configuration(details)));
        }
        let is_waiting = arrived.subject().is_some_and(|it| waiting.contains(&it));
        (is_waiting && command == Command::Add).then(|| {
            let reason = "the addresses that the container had are not released yet";
            Err(CniError::try_again(reason))
        })
    }

    fn reply(&self, arrived: Arrived, outcome: Result<Option<Value>, CniError>) {
        let code = outcome.as_ref().err().map_or(0, |it| it.code.number());
        let command = arrived.command().map_or("", Command::word);
        self.announced.counters().answered(command, code, arrived.at.elapsed());
        let invocation = Invocation::parse(&arrived.bytes).unwrap_or_default();
        if let Some(answer) = arrived.answer {
            // The plugin may have gone: its runtime deletes the container then.
            let _ = answer.send(Answer::of(&invocation, outcome));
        }
    }

    /// What is known of the Pods that are to get addresses.
    async fn notes(&self, batch: &[Arrived]) -> BTreeMap<PodName, Result<PodNotes, String>> {
        let requests = batch.iter().filter_map(|it| it.request.as_ref().ok());
        let added = requests.filter(|it| it.command == Command::Add);
        let pods: BTreeMap<PodName, Option<String>> =
            added.filter_map(|it| Some((it.pod.clone()?, it.pod_uid.clone()))).collect();
        let noting = pods.iter().map(|(pod, uid)| self.knowledge.notes(pod, uid.as_deref()));
        let noted = join_all(noting).await;
        pods.into_keys().zip(noted).collect()
    }

    async fn outcomes(
        &self,
        facts: &Facts,
        batch: &mut [Arrived],
        notes: impl Fn(&PodName) -> PodNotes,
    ) -> Vec<Result<Option<Value>, CniError>> {
        let unread = || Err(CniError::try_again("the call was answered before"));
        let requests: Vec<Result<Request, CniError>> =
            batch.iter_mut().map(|it| std::mem::replace(&mut it.request, unread())).collect();
        let outcomes = answer_together(&self.addressing(facts), &requests, &self.node, notes).await;
        for (arrived, request) in batch.iter_mut().zip(requests) {
            arrived.request = request;
        }
        outcomes
    }

    fn addressing<'a>(&'a self, facts: &'a Facts) -> Addressing<'a, S> {
        let now = Moment::from_nanoseconds(epoch_milliseconds().saturating_mul(1_000_000));
        Addressing { store: &self.store, facts, now }
    }

    /// A deletion that was not served waits, and its runtime need not.
    fn noted(
        &mut self,
        arrived: &Arrived,
        outcome: Result<Option<Value>, CniError>,
    ) -> Result<Option<Value>, CniError> {
        let Err(CniError { code: code @ (Code::TryAgain | Code::Unavailable), .. }) = &outcome
        else {
            return outcome;
        };
        if *code == Code::Unavailable {
            self.standby.set_away(true);
        }
        match arrived.command() {
            Some(Command::Delete) => self.standby.note(&arrived.bytes),
            _ => outcome,
        }
    }

    /// Serves what waits in the spool, if it can be served now. Returns what still waits.
    async fn serve_spool(&mut self) -> BTreeSet<Subject> {
        let mut waiting = BTreeSet::new();
        let mut calls = self.spooled(&mut waiting);
        let facts = self.knowledge.facts();
        let Ok(facts) = facts else {
            waiting.extend(calls.iter().filter_map(|(_, it)| it.subject()));
            return waiting;
        };
        let mut is_away = false;
        // One first: while the store is away, each waits for its time limit.
        let mut size = 1;
        while !calls.is_empty() {
            let count = calls.len().min(std::mem::replace(&mut size, BATCH_CALLS_MAX));
            let (paths, mut batch): (Vec<PathBuf>, Vec<Arrived>) = calls.drain(..count).unzip();
            if is_away {
                waiting.extend(batch.iter().filter_map(Arrived::subject));
                continue;
            }
            let outcomes = self.outcomes(&facts, &mut batch, |_| PodNotes::default()).await;
            for ((path, arrived), outcome) in paths.into_iter().zip(&batch).zip(outcomes) {
                match outcome.map_err(|it| (it.code, it)) {
                    Ok(_) => self.remove(&path),
                    Err((Code::Unavailable, _)) => {
                        is_away = true;
                        waiting.extend(arrived.subject());
                    }
                    // What one object keeps from being served keeps no other call from it.
                    Err((Code::TryAgain, _)) => {
                        self.later.insert(path, Instant::now() + LATER);
                        waiting.extend(arrived.subject());
                    }
                    Err((_, error)) => self.set_aside(&path, &error.to_string()),
                }
            }
        }
        self.standby.set_away(is_away);
        self.announced.counters().waiting(waiting.len());
        let reason = "the addresses of deleted containers cannot be released yet";
        self.log_spool((!waiting.is_empty()).then(|| format!("{reason}: {}", waiting.len())));
        waiting
    }

    /// The deletions of the spool that are to be tried now; `waiting` gets the others.
    fn spooled(&mut self, waiting: &mut BTreeSet<Subject>) -> VecDeque<(PathBuf, Arrived)> {
        let paths = match spool::list(self.standby.spool()) {
            Ok(paths) => paths,
            Err(error) => {
                let folder = self.standby.spool().display().to_string();
                self.log_spool(Some(format!("cannot read {folder}: {error}")));
                return VecDeque::new();
            }
        };
        self.later.retain(|path, _| paths.binary_search(path).is_ok());
        let mut calls = VecDeque::new();
        for path in paths {
            let arrived = match spool::read(&path) {
                Ok(bytes) => Arrived::new(bytes, None),
                Err(error) => {
                    self.set_aside(&path, &error.to_string());
                    continue;
                }
            };
            if arrived.request.is_ok() && arrived.command() != Some(Command::Delete) {
                self.set_aside(&path, "it is no DEL");
            } else if self.later.get(&path).is_some_and(|it| *it > Instant::now()) {
                waiting.extend(arrived.subject());
            } else {
                calls.push_back((path, arrived));
            }
        }
        calls
    }

    fn remove(&mut self, path: &Path) {
        if let Err(error) = spool::remove(path) {
            self.log_spool(Some(format!("cannot remove {}: {error}", path.display())));
        }
    }

    fn set_aside(&self, path: &Path, reason: &str) {
        let (shown, reason) = (path.display().to_string(), printable(reason));
        match spool::set_aside(path) {
            Ok(aside) => warn!("{}: {reason}; moved to {}", printable(&shown), aside.display()),
            Err(error) => warn!("{}: {reason}; cannot move it aside: {error}", printable(&shown)),
        }
    }

    /// Says what is wrong with the spool, once for as long as it lasts.
    fn log_spool(&mut self, trouble: Option<String>) {
        match (&self.spool_trouble, &trouble) {
            (None, Some(now)) => warn!("{}", printable(now)),
            (Some(_), None) => info!("the addresses of all deleted containers are released"),
            _ => {}
        }
        self.spool_trouble = trouble;
    }
}

/// The calls from the first on of which no two are about the same container. GC, which is about all, is served alone.
fn next_batch(arrived: &mut VecDeque<Arrived>) -> Vec<Arrived> {
    let mut subjects = BTreeSet::new();
    let mut batch: Vec<Arrived> = Vec::new();
    while let Some(next) = arrived.front() {
        let is_alone = next.command() == Some(Command::CollectGarbage);
        let is_new = next.subject().is_none_or(|it| subjects.insert(it));
        if !batch.is_empty() && (is_alone || !is_new) {
            break;
        }
        batch.extend(arrived.pop_front());
        if is_alone {
            break;
        }
    }
    batch
}
