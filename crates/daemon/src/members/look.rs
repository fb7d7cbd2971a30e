//! What is looked up again and again: the key file, and the addresses of members that are named. In a task of its
//! own: a disk or a name server that hangs must not delay a heartbeat.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use fairway_members::Keys;
use tokio::net::lookup_host;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tracing::warn;

use super::MemberTarget;

/// Between looks.
const INTERVAL: Duration = Duration::from_secs(5);
/// A name server that takes longer is asked again the next time.
const LOOKUP_LIMIT: Duration = Duration::from_secs(10);

/// What was found.
pub(super) enum Found {
    /// The keys in the file.
    Keys(Keys),
    /// The addresses of the members that are named.
    Addresses(BTreeSet<SocketAddr>),
}

/// The task. Ends when this is dropped.
pub(super) struct Look {
    found: mpsc::Receiver<Found>,
    task: AbortHandle,
}

impl Drop for Look {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Look {
    pub(super) fn start(key_file: PathBuf, named: Vec<MemberTarget>) -> Self {
        let (tell, found) = mpsc::channel(1);
        let task = tokio::spawn(run(key_file, named, tell)).abort_handle();
        Self { found, task }
    }

    /// The next result. Cancel-safe.
    pub(super) async fn found(&mut self) -> Found {
        match self.found.recv().await {
            Some(found) => found,
            // It ends with the process.
            None => std::future::pending().await,
        }
    }
}

async fn run(key_file: PathBuf, named: Vec<MemberTarget>, tell: mpsc::Sender<Found>) {
    let mut interval = tokio::time::interval(INTERVAL);
    let mut said = String::new();
    let mut known = BTreeMap::new();
    loop {
        interval.tick().await;
        if !named.is_empty() {
            look_up(&named, &mut known).await;
            let addresses = known.values().flatten().copied().collect();
            if tell.send(Found::Addresses(addresses)).await.is_err() {
                return;
            }
        }
        let text = tokio::fs::read_to_string(&key_file).await;
        let keys = text.map_err(|error| error.to_string());
        match keys.and_then(|text| Keys::parse(&text).map_err(|error| error.to_string())) {
            Ok(keys) => {
                said.clear();
                if tell.send(Found::Keys(keys)).await.is_err() {
                    return;
                }
            }
            Err(error) if error != said => {
                let file = key_file.display();
                warn!(%file, error, "the key file cannot be used; the keys read before stay in use");
                said = error;
            }
            Err(_) => {}
        }
    }
}

/// Looks all of them up; one that is not found now keeps the addresses that it had.
async fn look_up<'a>(named: &'a [MemberTarget], known: &mut BTreeMap<&'a str, Vec<SocketAddr>>) {
    for MemberTarget { host, port } in named {
        let found = tokio::time::timeout(LOOKUP_LIMIT, lookup_host((host.as_str(), *port))).await;
        match found {
            // A host with several addresses is reached at each; it is one member.
            Ok(Ok(found)) => {
                known.insert(host, found.collect());
            }
            Ok(Err(error)) => warn!(member = host, %error, "cannot find the address of a member"),
            Err(_) => warn!(member = host, "the name server does not answer"),
        }
    }
}
