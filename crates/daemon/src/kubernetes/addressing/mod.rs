//! The addresses of Pods in a cluster: the API server as the store, and as the source of what decides about them.
//!
//! Affinities of all nodes are watched, which are small and change when a block changes hands; a block is read when it is
//! needed, and this node's own ones are remembered.

mod collecting;
mod following;
mod knowledge;
mod live;
mod store;

use std::sync::Arc;

use fairway_ipam::{Affinity, Object, RememberedStore, Store, Versioned};
use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tracing::{info, warn};

use super::api::Api;
use super::reading::Selection;
use super::resource::{BLOCK_AFFINITY, IP_POOL, IP_RESERVATION, IPAM_CONFIG, POD, Resource};
use crate::ipam::{AnnouncedBlocks, CallSocket, IpamError, IpamOptions, Server, Standby};
pub(super) use collecting::Collecting;
use fairway_model::Kind;
use following::{Followed, follow};
use knowledge::{ApiKnowledge, Objects};
pub(crate) use live::{LiveError, LiveObjects};
use store::{ApiStore, parse};

/// Changes in the queue; a watch with more waits, and the server with it.
const CHANGES_MAX: usize = 1024;

/// The role in `fairway speaker`. Runs until it is dropped.
///
/// # Errors
/// It cannot start.
pub(super) async fn run(
    options: IpamOptions,
    api: Api,
    announced: AnnouncedBlocks,
) -> Result<(), IpamError> {
    let standby = Standby::new(options.spool);
    let socket = CallSocket::open(&options.socket, standby.clone())?;
    let store = RememberedStore::new(ApiStore::new(api.clone()), &options.node);
    let store = Arc::new(store);
    let (objects, known) = Objects::new();
    let knowledge = ApiKnowledge::new(api.clone(), known);
    info!(socket = %options.socket.display(), "giving Pods addresses");
    let (tell, changes) = mpsc::channel(CHANGES_MAX);
    let of_node = |field: &str| Selection::of_fields(&format!("{field}={}", options.node));
    let all = Selection::default;
    let followed: [(Resource, Selection); 7] = [
        (IP_POOL, all()),
        (IPAM_CONFIG, Selection::of_fields("metadata.name=default")),
        (IP_RESERVATION, all()),
        (Resource::read(Kind::Namespace), all()),
        (Resource::read(Kind::Node), of_node("metadata.name")),
        (POD, of_node("spec.nodeName")),
        (BLOCK_AFFINITY, all()),
    ];
    let following = followed
        .map(|(resource, selection)| follow(api.clone(), resource, selection, tell.clone()));
    drop(tell);
    let server = Server::new(Arc::clone(&store), knowledge, options.node, standby, announced);
    let news = server.news();
    tokio::select! {
        () = server.run(socket) => {}
        _ = join_all(following) => {}
        () = take_in(&store, objects, changes, &news) => {}
    }
    Ok(())
}

/// Takes in what is followed.
async fn take_in(
    store: &RememberedStore<ApiStore>,
    mut objects: Objects,
    mut changes: mpsc::Receiver<(&'static str, Followed)>,
    news: &Notify,
) {
    let mut arrived = Vec::new();
    while changes.recv_many(&mut arrived, CHANGES_MAX).await > 0 {
        for (kind, followed) in arrived.drain(..) {
            if kind == BLOCK_AFFINITY.kind {
                take_affinities_in(store, followed).await;
            } else {
                objects.follow(kind, followed);
            }
        }
        objects.publish();
        news.notify_one();
    }
}

async fn take_affinities_in(store: &RememberedStore<ApiStore>, followed: Followed) {
    match followed {
        Followed::All(listed) => {
            store.affinities_are(listed.into_iter().filter_map(affinity));
            // Blocks of nobody are occupied as well, and nothing says so but a list.
            if store.occupied().is_none()
                && let Err(error) = store.refresh().await
            {
                warn!("cannot list blocks: {error}; they are listed for the next new block");
            }
        }
        Followed::Is(object) => {
            if let Some(affinity) = affinity(object.clone()) {
                store.affinity_is(affinity);
            } else {
                gone(store, object);
            }
        }
        Followed::Gone(object) => gone(store, object),
    }
}

/// An affinity is gone, or marked as deleted.
fn gone(store: &RememberedStore<ApiStore>, mut object: Value) {
    if let Some(deleted) = object.pointer_mut("/spec/deleted") {
        *deleted = "false".into();
    }
    if let Some(Versioned { value: Affinity { owner, prefix, .. }, version }) = affinity(object) {
        store.affinity_is_gone(&owner, prefix, &version);
    }
}

fn affinity(object: Value) -> Option<Versioned<Affinity>> {
    match parse(BLOCK_AFFINITY, object) {
        Ok(Some(Versioned { value: Object::Affinity(value), version })) => {
            Some(Versioned { value, version })
        }
        Ok(_) => None,
        Err(error) => {
            warn!("blockaffinities: {error}");
            None
        }
    }
}
