//! HTTP for probes: short answers that are there at once, one for each connection.
//!
//! Any client that reaches the port may connect, so their number, the duration of each and the size of a request are
//! bounded. Knows no path and no content.

use std::convert::Infallible;
use std::time::Duration;

use fairway_ground::Bound;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::host::{ClientLimits, Clients};

/// A balancer probes each node from a few machines.
const LIMITS: ClientLimits =
    ClientLimits { clients_max: 64, silence: Duration::from_secs(1), bound: Bound::MetricsClient };
/// How long the head of a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may last.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest request: a line and a few headers. The minimum that hyper accepts.
const REQUEST_LENGTH_BYTES_MAX: usize = 8192;
/// How long to wait if no connection can be accepted (out of descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until it is dropped.
pub(crate) async fn serve_probes<A>(listener: &TcpListener, answer: A)
where
    A: Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Clone + Send + 'static,
{
    let mut clients = Clients::new(LIMITS);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                debug!(%error, "cannot accept a connection of a probe");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        clients.make_room().await;
        let answer = answer.clone();
        clients.serve(|_| async move {
            let service = service_fn(move |request| {
                let response = answer(&request);
                async move { Ok::<_, Infallible>(response) }
            });
            let serving = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(REQUEST_TIMEOUT)
                .max_buf_size(REQUEST_LENGTH_BYTES_MAX)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            match timeout(CONNECTION_TIMEOUT, serving).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!(%error, "a connection of a probe failed"),
                Err(_) => debug!("a connection of a probe timed out"),
            }
        });
    }
}
