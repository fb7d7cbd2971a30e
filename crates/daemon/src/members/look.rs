//! What is looked up again and again: the key file, and the addresses of members that are named. In a task of its
//! own: a disk or a name server that hangs must not delay a heartbeat.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairway_members::Keys;
use tokio::net::lookup_host;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
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
    let mut known: BTreeMap<MemberTarget, Vec<SocketAddr>> = BTreeMap::new();
    // An address needs no name server.
    for target in &named {
        if let Ok(address) = target.host.parse::<IpAddr>() {
            known.insert(target.clone(), vec![SocketAddr::new(address, target.port)]);
        }
    }
    let names: Vec<MemberTarget> = named.into_iter().filter(|it| !known.contains_key(it)).collect();
    if tell.send(addresses(&known)).await.is_err() {
        return;
    }
    tokio::join!(read_keys(&key_file, &tell), look_up_again(names, known, &tell));
}

fn addresses(known: &BTreeMap<MemberTarget, Vec<SocketAddr>>) -> Found {
    Found::Addresses(known.values().flatten().copied().collect())
}

async fn read_keys(key_file: &Path, tell: &mpsc::Sender<Found>) {
    let mut interval = tokio::time::interval(INTERVAL);
    let mut said = String::new();
    loop {
        interval.tick().await;
        let text = tokio::fs::read_to_string(key_file).await;
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

/// Looks all names up at once, and tells of each as soon as it is found; one that is not found now keeps the
/// addresses that it had.
async fn look_up_again(
    names: Vec<MemberTarget>,
    mut known: BTreeMap<MemberTarget, Vec<SocketAddr>>,
    tell: &mpsc::Sender<Found>,
) {
    if names.is_empty() {
        return;
    }
    let mut interval = tokio::time::interval(INTERVAL);
    let mut said: BTreeMap<MemberTarget, String> = BTreeMap::new();
    loop {
        interval.tick().await;
        let mut lookups = JoinSet::new();
        for target in names.iter().cloned() {
            lookups.spawn(async move {
                let found = look_up(&target).await;
                (target, found)
            });
        }
        while let Some(outcome) = lookups.join_next().await {
            match outcome {
                Ok((target, Ok(found))) => {
                    said.remove(&target);
                    if known.insert(target, found.clone()).as_ref() != Some(&found)
                        && tell.send(addresses(&known)).await.is_err()
                    {
                        return;
                    }
                }
                Ok((target, Err(error))) => {
                    if said.get(&target) != Some(&error) {
                        let member = &target.host;
                        warn!(member, error, "cannot find the address of a member; trying again");
                        said.insert(target, error);
                    }
                }
                // A lookup that panicked is made again the next time.
                Err(_) => {}
            }
        }
    }
}

/// A host with several addresses is reached at each; it is one member.
async fn look_up(target: &MemberTarget) -> Result<Vec<SocketAddr>, String> {
    let found = lookup_host((target.host.as_str(), target.port));
    match tokio::time::timeout(LOOKUP_LIMIT, found).await {
        Ok(Ok(found)) => Ok(found.collect::<BTreeSet<_>>().into_iter().collect()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the name server does not answer".to_owned()),
    }
}
