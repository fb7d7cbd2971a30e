//! The service proxy beside the rest of `fairway run`: on a thread and a runtime of its own, since it waits for the kernel,
//! and sessions must not.

use std::thread;

use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};

use crate::proxy::{self, Assigned, ProxyError, ProxyOptions, ServiceSource};

/// Runs it until a signal ends it.
pub(super) async fn run(
    mut options: ProxyOptions,
    assigned: watch::Receiver<Option<Assigned>>,
) -> Result<(), ProxyError> {
    if let ServiceSource::Files(_, addresses) = &mut options.services {
        *addresses = Some(assigned);
    }
    let (tell, ended) = oneshot::channel();
    thread::Builder::new()
        .name("proxy".to_owned())
        .spawn(move || {
            // A second thread serves health and metrics.
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
            let result = match runtime {
                Ok(runtime) => runtime.block_on(proxy::run(options)),
                Err(error) => Err(ProxyError::Start(error)),
            };
            // The rest may have ended before.
            let _ = tell.send(result);
        })
        .map_err(ProxyError::Start)?;
    // A panic there is in the log already.
    ended.await.unwrap_or(Ok(()))
}
