//! FRR's current state on request; notifications of changes; and clearing of sessions.
//!
//! Nothing but connections is kept between requests. A daemon that does not answer in time is a fault of the
//! view, and its part of the view is missing. Knows no configuration but the desired state of the request.
//! Owned by the backend.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairway_ground::{AddressFamily, PeerKey};
use fairway_seam::bfd::BfdSessionView;
use fairway_seam::capability::Capability;
use fairway_seam::{
    BackendError, BgpView, Clear, ClearError, Desired, PeerView, SessionState, ViewScope,
};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout_at};

use super::daemon::Daemon;
use super::vty::{Reply, Status, VtyError};
use super::watch::Watch;
use crate::owner::VIEW;
use crate::status::{self, AnswerError, Picture, Sessions, bfd};

/// The sockets.
const BGPD: &str = "bgpd.vty";
const BFDD: &str = "bfdd.vty";

/// Timeout for all queries about sessions, for each daemon.
const SESSIONS_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for all queries about routes: a table of ten thousand takes half a second.
const ROUTES_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of concurrent requests: one that hangs must not keep others from reporting that.
const CONVERSATIONS_MAX: usize = 8;

/// Observes FRR. Dropping it ends the watch.
#[derive(Debug)]
pub struct Observer {
    socket_dir: PathBuf,
    /// Connections that are not in use.
    idle: Mutex<Vec<Daemons>>,
    /// Limits concurrent requests.
    places: Semaphore,
    watch: Watch,
    changes: watch::Receiver<u64>,
}

/// The daemons, with one connection each.
#[derive(Debug)]
struct Daemons {
    bgpd: Daemon,
    bfdd: Daemon,
    /// bgpd has no `advertised-routes detail`: it came after 8.4.
    lacks_detail: bool,
}

/// Why a daemon gave no usable answer.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Vty(#[from] VtyError),
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
}

impl Observer {
    /// Observes the daemons with sockets in `socket_dir`, and watches bgpd, until it is dropped.
    /// The sessions of `desired` that begin and end are logged.
    pub fn start(socket_dir: &Path, desired: watch::Receiver<Option<Arc<Desired>>>) -> Self {
        let (watch, changes) = Watch::start(socket_dir.join(BGPD), desired);
        Self {
            socket_dir: socket_dir.to_owned(),
            idle: Mutex::default(),
            places: Semaphore::new(CONVERSATIONS_MAX),
            watch,
            changes,
        }
    }

    /// The state of `desired`, as far as FRR answers in time.
    pub async fn view(
        &self,
        desired: &Arc<Desired>,
        scope: ViewScope,
    ) -> Result<BgpView, BackendError> {
        let _place = self.places.acquire().await.map_err(|_| BackendError::Stopped)?;
        let mut daemons = self.daemons();
        let view = daemons.view(desired, scope).await;
        self.keep(daemons);
        Ok(view)
    }

    /// Resolves when the neighbours differ from those at `seen`, with the number to wait for next.
    pub async fn changed(&self, seen: u64) -> u64 {
        let mut changes = self.changes.clone();
        if let Ok(count) = changes.wait_for(|count| *count > seen).await {
            return *count;
        }
        // The watch lasts as long as this observer.
        std::future::pending().await
    }

    /// FRR was configured, or its configuration turned out to differ: those that wait should look, now and
    /// once FRR has acted on it.
    pub fn applied(&self) {
        self.watch.look_again();
    }

    /// Resets the session with `peer`, requests its routes, or sends ours again.
    pub async fn clear(
        &self,
        desired: &Arc<Desired>,
        peer: PeerKey,
        how: Clear,
    ) -> Result<(), ClearError> {
        let _place = self.places.acquire().await.map_err(|_| BackendError::Stopped)?;
        let mut daemons = self.daemons();
        let cleared = daemons.clear(desired, peer, how).await;
        self.keep(daemons);
        self.watch.look_again();
        cleared
    }

    fn daemons(&self) -> Daemons {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let daemon = |name| Daemon::new(self.socket_dir.join(name), ROUTES_TIMEOUT);
        idle.unwrap_or_else(|| Daemons {
            bgpd: daemon(BGPD),
            bfdd: daemon(BFDD),
            lacks_detail: false,
        })
    }

    /// Returns connections to the pool; `places` bounds its size.
    fn keep(&self, daemons: Daemons) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(daemons);
    }
}

impl Daemons {
    async fn view(&mut self, desired: &Arc<Desired>, scope: ViewScope) -> BgpView {
        let wants_bfd = desired.peers.iter().any(|peer| peer.bfd.is_some());
        let Self { bgpd, bfdd, .. } = self;
        let (sessions, bfd) = tokio::join!(sessions(bgpd), async {
            if wants_bfd { Some(bfd_sessions(bfdd).await) } else { None }
        });
        let is_away = sessions.is_err();
        // Without bgpd there is no session; of one that hangs nothing is known.
        let is_unknown = sessions
            .as_ref()
            .err()
            .is_some_and(|error| !matches!(error, AskError::Vty(VtyError::Connect { .. })));
        let mut faults = Vec::new();
        let sessions = sessions.unwrap_or_else(|error| {
            faults.push(format!("bgpd of FRR does not answer: {error}"));
            Sessions::default()
        });
        let mut picture = Picture::new(desired, scope, &sessions);
        if is_unknown {
            picture.unanswered();
        }
        if let Some(bfd) = bfd {
            if let Err(error) = &bfd {
                faults.push(format!("bfdd of FRR does not answer: {error}"));
            }
            picture.bfd(bfd.ok());
        }
        if !is_away && let Err(error) = self.routes(&mut picture).await {
            faults.push(format!("bgpd of FRR does not show all routes: {error}"));
        }
        faults.into_iter().for_each(|fault| picture.fault(fault));
        picture.finish()
    }

    /// Reports every table that can be read: one that is too large does not hide the others.
    async fn routes(&mut self, picture: &mut Picture<'_>) -> Result<(), AskError> {
        let deadline = Instant::now() + ROUTES_TIMEOUT;
        let mut outcome = Ok(());
        for (vrf, family) in picture.tables() {
            let question = picture.table_question(vrf, family);
            let reply = within(deadline, ROUTES_TIMEOUT, self.bgpd.ask(&question)).await?;
            outcome = outcome.and(picture.table(vrf, family, &reply.text));
        }
        for (key, family) in picture.told() {
            let question = |detail| picture.advertised_question(key, family, detail);
            let asked = self.advertised(question(true), question(false));
            let reply = within(deadline, ROUTES_TIMEOUT, asked).await?;
            outcome = outcome.and(picture.advertised(key, family, &reply.text));
        }
        Ok(outcome?)
    }

    async fn advertised(&mut self, detailed: String, plain: String) -> Result<Reply, VtyError> {
        if !self.lacks_detail {
            let reply = self.bgpd.ask(&detailed).await?;
            if reply.status != Status::Unknown {
                return Ok(reply);
            }
            self.lacks_detail = true;
        }
        self.bgpd.ask(&plain).await
    }

    async fn clear(
        &mut self,
        desired: &Arc<Desired>,
        key: PeerKey,
        how: Clear,
    ) -> Result<(), ClearError> {
        let view = self.view(desired, ViewScope::SESSIONS).await;
        let peer = view.peers.iter().find(|peer| peer.config.key == key);
        let peer = peer.ok_or(ClearError::NoSuchPeer)?;
        // Without an answer the neighbour is not established, which is said first.
        let sessions = sessions(&mut self.bgpd).await.unwrap_or_default();
        let commands = clear_commands(peer, sessions.instance(key.vrf.as_ref()), how)?;
        let deadline = Instant::now() + SESSIONS_TIMEOUT;
        for command in commands {
            match within(deadline, SESSIONS_TIMEOUT, self.bgpd.ask(&command)).await {
                // The answer is that there is no such neighbour: it went away meanwhile.
                Ok(reply) if reply.text.trim_start().starts_with('%') => {
                    return Err(ClearError::NoSuchPeer);
                }
                Ok(_) => {}
                Err(_) => return Err(BackendError::Stopped.into()),
            }
        }
        Ok(())
    }
}

async fn sessions(bgpd: &mut Daemon) -> Result<Sessions, AskError> {
    let deadline = Instant::now() + SESSIONS_TIMEOUT;
    let (summary, neighbors) = within(deadline, SESSIONS_TIMEOUT, async {
        let summary = bgpd.ask(status::SUMMARY).await?;
        Ok((summary, bgpd.ask(status::NEIGHBORS).await?))
    })
    .await?;
    Ok(Sessions::parse(&summary.text, &neighbors.text)?)
}

async fn bfd_sessions(bfdd: &mut Daemon) -> Result<Vec<BfdSessionView>, AskError> {
    let deadline = Instant::now() + SESSIONS_TIMEOUT;
    let (peers, counters) = within(deadline, SESSIONS_TIMEOUT, async {
        let peers = bfdd.ask(bfd::PEERS).await?;
        Ok((peers, bfdd.ask(bfd::COUNTERS).await?))
    })
    .await?;
    Ok(bfd::sessions(&peers.text, &counters.text)?)
}

/// The result of `asked` before the deadline, which is `patience` after its start.
async fn within<T>(
    deadline: Instant,
    patience: Duration,
    asked: impl Future<Output = Result<T, VtyError>>,
) -> Result<T, AskError> {
    match timeout_at(deadline, asked).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(AskError::Late(patience)),
    }
}

/// The commands for bgpd. Without a family it would send the neighbour two requests.
fn clear_commands(peer: &PeerView, instance: &str, how: Clear) -> Result<Vec<String>, ClearError> {
    let PeerKey { remote, vrf } = peer.config.key;
    let vrf = match vrf {
        Some(vrf) => format!("vrf {vrf} "),
        None if instance == VIEW => format!("view {VIEW} "),
        None => String::new(),
    };
    let how = match how {
        Clear::Hard => return Ok(vec![format!("clear bgp {vrf}{remote}")]),
        Clear::SoftIn => "soft in",
        Clear::SoftOut => "soft out",
        Clear::Soft => "soft",
    };
    let session = peer.session.as_ref().filter(|_| peer.state == SessionState::Established);
    let session = session.ok_or(ClearError::NotEstablished)?;
    let refreshes = session.capabilities_received.contains(&Capability::RouteRefresh);
    if !refreshes && how != "soft out" {
        return Err(ClearError::NoRouteRefresh);
    }
    let family = |family: AddressFamily| format!("{} unicast", status::show_word(family));
    let families = session.families.iter().map(family);
    Ok(families.map(|family| format!("clear bgp {vrf}{family} {remote} {how}")).collect())
}

#[cfg(test)]
mod tests;
