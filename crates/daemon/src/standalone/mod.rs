//! `fairway run`: all roles in one process, resources from files.

mod beside;
mod files;
mod health;

use std::path::PathBuf;
use std::sync::Arc;

use fairway_ground::printable;
use files::Files;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::build_info;
use crate::ipam::{self, AnnouncedBlocks, IpamError, IpamOptions};
use crate::metrics::ClientCounters;
use crate::node::{self, Claimed, Kind, NodeError};
use crate::options::{HostOptions, Unsaid};
use crate::proxy::{ProxyError, ProxyOptions};
use crate::source::{FileSource, FileSourceError, nothing_to_read};

/// The options of `fairway run`.
#[derive(Debug, Clone)]
pub struct Options {
    /// The options of every daemon on a node.
    pub host: HostOptions,
    /// Files and folders with resources.
    pub config: Vec<PathBuf>,
    /// Of the service proxy of the same Services, if there is to be one.
    pub proxy: Option<ProxyOptions>,
    /// Of the addresses of Pods, if they are to be given here.
    pub ipam: Option<IpamOptions>,
}

/// Why the daemon cannot start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A path that cannot be read or watched.
    #[error(transparent)]
    Source(#[from] FileSourceError),
    /// The sockets, the state directory, the backend.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The service proxy.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The addresses of Pods.
    #[error(transparent)]
    Ipam(#[from] IpamError),
}

fn log_start(options: &HostOptions) {
    info!(
        node = options.node,
        version = build_info::RELEASE,
        commit = build_info::commit(),
        socket = %options.socket.display(),
        "fairway is running"
    );
}

/// Runs until a signal ends it.
pub async fn run(options: Options) -> Result<(), StartError> {
    let Options { host: options, config, proxy, ipam } = options;
    let claimed = Claimed::new(&options)?;
    let catalog = files::restored_catalog(&options.state_dir, options.backend.kind());
    let (source, changes) = FileSource::start(&config, catalog.files_in_force())?;
    for (folder, why) in nothing_to_read(&config) {
        warn!("{}: {}", printable(&folder), printable(&why));
    }
    let counters = Arc::<ClientCounters>::default();
    let (announced, pod_addresses) =
        ipam.as_ref().map(|it| AnnouncedBlocks::start(&it.state_dir)).unzip();
    let kind = Kind {
        unsaid: Unsaid::Listen,
        counters: Arc::clone(&counters),
        secured: None,
        assigns_addresses: true,
        node_api: None,
        pod_addresses,
    };
    let (tell, assigned) = watch::channel(None);
    let tell = proxy.is_some().then_some(tell);
    let proxying = async {
        if let Some(proxy) = proxy
            && let Err(error) = beside::run(proxy, assigned).await
        {
            return error;
        }
        // There is none, or a signal has ended it, which ends the rest as well.
        std::future::pending().await
    };
    let addressing = async {
        if let Some(ipam) = ipam
            && let Some(announced) = announced
            && let Err(error) = ipam::run_from_files(ipam, config.clone(), announced).await
        {
            return error;
        }
        std::future::pending().await
    };
    let start = |_: &mut _, backend: &Arc<_>, _| {
        let files = Files::new(
            &options,
            &config,
            catalog,
            (source, changes),
            Arc::clone(backend),
            counters,
            tell,
        );
        log_start(&options);
        files
    };
    tokio::select! {
        ended = node::run(&options, claimed, kind, start) => Ok(ended?),
        error = proxying => Err(error.into()),
        error = addressing => Err(error.into()),
    }
}
