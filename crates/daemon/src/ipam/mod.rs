//! Addresses for Pods: what the CNI plugin asks is answered from a store, for calls that wait together at once.
//!
//! ```text
//!  fairway-cni ─► calls ─┐                     ┌─► store (disk, or the API server)
//!                        ├─► server ─► core ───┤
//!  spool (DELs) ─────────┘                     └── knowledge (pools, nodes, namespaces)
//! ```
//!
//! One task serves one batch of calls after the other, so that calls never contend with each other. Decides nothing: which
//! address a Pod gets is for `fairway_ipam`. Nothing is given that is not written.

mod announced;
mod calls;
mod disk;
mod files;
mod knowledge;
mod outgoing;
mod server;

use std::path::PathBuf;

use fairway_ground::printable;
use tracing::{error, info};

use crate::admin::{SocketError, SocketMode};
use crate::source::FileSourceError;
pub(crate) use announced::AnnouncedBlocks;
pub(crate) use calls::{CallSocket, Standby};
use disk::DiskStore;
use files::FileKnowledge;
pub(crate) use knowledge::Knowledge;
pub(crate) use server::Server;

/// The options of the role that gives Pods their addresses.
#[derive(Debug, Clone)]
pub struct IpamOptions {
    /// The name of this node.
    pub node: String,
    /// Where the CNI plugin connects.
    pub socket: PathBuf,
    /// Where calls wait that nobody could answer.
    pub spool: PathBuf,
    /// Where state is kept.
    pub state_dir: PathBuf,
}

/// Why the role cannot start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum IpamError {
    /// The socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The files with pools.
    #[error(transparent)]
    Source(#[from] FileSourceError),
}

/// The role in `fairway run`: pools from files, blocks on disk. Runs until it is dropped.
///
/// # Errors
/// It cannot start.
pub(crate) async fn run_from_files(
    options: IpamOptions,
    config: Vec<PathBuf>,
    announced: AnnouncedBlocks,
) -> Result<(), IpamError> {
    let socket = CallSocket::open(&options.socket, Standby::new(options.spool))?;
    let (knowledge, files) = FileKnowledge::start(&config, &options.node)?;
    let store = match DiskStore::open(&options.state_dir, &options.node) {
        Ok(store) => store,
        Err(error) => {
            // What is in use is unknown: an address could be given twice.
            let reason = error.to_string();
            error!(
                "{}; no Pod is given an address until that is put right and the daemon started again",
                printable(&reason)
            );
            socket.refuse_all(&reason).await;
            return Ok(());
        }
    };
    info!(socket = %options.socket.display(), blocks = store.block_count(), "giving Pods addresses");
    let server = Server::new(store, knowledge, options.node, socket.standby(), announced);
    let news = server.news();
    tokio::select! {
        () = server.run(socket) => {}
        () = files.follow(news) => {}
    }
    Ok(())
}

/// The mode of the plugin's socket: container runtimes run as root.
const SOCKET_MODE: SocketMode = SocketMode::Owner;
