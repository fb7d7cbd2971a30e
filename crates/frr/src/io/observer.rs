//! What FRR does and sees, asked at the moment somebody wants to know; when it changes; and sessions
//! that are cleared.
//!
//! Nothing is kept from one question to the next but conversations. A daemon that does not answer in
//! time is a fault of the view, and what it would have said is missing in it. Knows no configuration
//! but the desired state that it is asked about. The backend has one.

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
use crate::status::{self, AnswerError, Picture, Sessions, bfd};

/// The sockets.
const BGPD: &str = "bgpd.vty";
const BFDD: &str = "bfdd.vty";

/// How long one daemon may take for all that is asked about sessions.
const SESSIONS_TIMEOUT: Duration = Duration::from_secs(2);
/// And how long for all that is asked about routes: a table of ten thousand takes it half a second.
const ROUTES_TIMEOUT: Duration = Duration::from_secs(10);

/// How many may ask at a time: one that hangs must not keep others from hearing that it does.
const CONVERSATIONS_MAX: usize = 8;

/// Looks at FRR. Its watching ends with it.
#[derive(Debug)]
pub struct Observer {
    socket_dir: PathBuf,
    /// Conversations that nobody uses right now.
    idle: Mutex<Vec<Daemons>>,
    /// How many there may be at a time.
    places: Semaphore,
    watch: Watch,
    changes: watch::Receiver<u64>,
}

/// The daemons, in one pair of conversations.
#[derive(Debug)]
struct Daemons {
    bgpd: Daemon,
    bfdd: Daemon,
    /// bgpd has no `advertised-routes detail`: that came after 8.4.
    lacks_detail: bool,
}

/// Why a daemon said nothing that is of use.
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
    /// Looks at the daemons whose sockets are in `socket_dir`, and watches bgpd, until it is dropped.
    pub fn start(socket_dir: &Path) -> Self {
        let (watch, changes) = Watch::start(socket_dir.join(BGPD));
        Self {
            socket_dir: socket_dir.to_owned(),
            idle: Mutex::default(),
            places: Semaphore::new(CONVERSATIONS_MAX),
            watch,
            changes,
        }
    }

    /// What of `desired` is so, as far as FRR tells in time.
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

    /// Resolves when the neighbours are other than they were at `seen`, with the number to wait for
    /// next.
    pub async fn changed(&self, seen: u64) -> u64 {
        let mut changes = self.changes.clone();
        if let Ok(count) = changes.wait_for(|count| *count > seen).await {
            return *count;
        }
        // The watching goes on as long as this does.
        std::future::pending().await
    }

    /// Something was configured, or is no longer as it was said to be: whoever waits should look, now
    /// and once FRR has acted on it.
    pub fn applied(&self) {
        self.watch.look_again();
    }

    /// Resets the session with `peer`, or has its routes said again.
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

    /// There are as many as there were places at most.
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
        let mut faults = Vec::new();
        let sessions = sessions.unwrap_or_else(|error| {
            faults.push(format!("bgpd of FRR does not answer: {error}"));
            Sessions::default()
        });
        let mut picture = Picture::new(desired, scope, &sessions);
        if let Some(bfd) = bfd {
            if let Err(error) = &bfd {
                faults.push(format!("bfdd of FRR does not answer: {error}"));
            }
            picture.bfd(bfd.ok());
        }
        if !is_away && let Err(error) = self.routes(&mut picture).await {
            faults.push(format!("bgpd of FRR does not tell all routes: {error}"));
        }
        faults.into_iter().for_each(|fault| picture.fault(fault));
        picture.finish()
    }

    /// What can be told is told: a table that is too large hides no other.
    async fn routes(&mut self, picture: &mut Picture<'_>) -> Result<(), AskError> {
        let deadline = Instant::now() + ROUTES_TIMEOUT;
        let mut outcome = Ok(());
        for (vrf, family) in picture.tables() {
            let question = status::table_question(vrf, family);
            let reply = within(deadline, ROUTES_TIMEOUT, self.bgpd.ask(&question)).await?;
            outcome = outcome.and(picture.table(vrf, family, &reply.text));
        }
        for (key, family) in picture.told() {
            let asked = self.advertised(key, family);
            let reply = within(deadline, ROUTES_TIMEOUT, asked).await?;
            outcome = outcome.and(picture.advertised(key, family, &reply.text));
        }
        Ok(outcome?)
    }

    async fn advertised(&mut self, key: PeerKey, family: AddressFamily) -> Result<Reply, VtyError> {
        if !self.lacks_detail {
            let question = status::advertised_question(key, family, true);
            let reply = self.bgpd.ask(&question).await?;
            if reply.status != Status::Unknown {
                return Ok(reply);
            }
            self.lacks_detail = true;
        }
        self.bgpd.ask(&status::advertised_question(key, family, false)).await
    }

    async fn clear(
        &mut self,
        desired: &Arc<Desired>,
        key: PeerKey,
        how: Clear,
    ) -> Result<(), ClearError> {
        let view = self.view(desired, ViewScope::SESSIONS).await;
        let peer = view.peers.iter().find(|peer| peer.config.key == key);
        let commands = clear_commands(peer.ok_or(ClearError::NoSuchPeer)?, how)?;
        let deadline = Instant::now() + SESSIONS_TIMEOUT;
        for command in commands {
            match within(deadline, SESSIONS_TIMEOUT, self.bgpd.ask(&command)).await {
                // What it has to say is that there is nobody: it went meanwhile.
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

/// What `asked` comes to before the deadline, which is `patience` after its beginning.
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

/// What to tell bgpd. Without a family it would ask the neighbour twice.
fn clear_commands(peer: &PeerView, how: Clear) -> Result<Vec<String>, ClearError> {
    let PeerKey { remote, vrf } = peer.config.key;
    let vrf = vrf.map(|vrf| format!("vrf {vrf} ")).unwrap_or_default();
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
