//! HTTPS, one request for each connection: requests are rare, and no client has to find out which idle connections
//! still work.
//!
//! Anyone who reaches the port may connect, so the number of connections, the duration of each and the size of a
//! request are bounded.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::{Body, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tracing::debug;

use crate::host::{ClientLimits, Clients, Work};

/// How long a handshake may take, and then the head of the request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait if no connection can be accepted (out of descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The bounds of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HttpsBounds {
    /// The server, for the log.
    pub(crate) what: &'static str,
    pub(crate) clients: ClientLimits,
    /// How long a connection may last.
    pub(crate) connection_timeout: Duration,
    /// What is read of a connection before it is asked for; the head of a request must fit.
    pub(crate) read_buffer_bytes: usize,
    pub(crate) headers_max: usize,
}

/// The client of a request.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// Begins when its request is here.
    pub(crate) work: Work,
    /// Its certificate, if the server asks for one.
    pub(crate) certificate: Option<CertificateDer<'static>>,
}

/// Serves until it is dropped, each connection with the `config` of that moment; without one it is closed.
pub(crate) async fn serve<B, F>(
    listener: &TcpListener,
    bounds: HttpsBounds,
    config: impl Fn() -> Option<Arc<ServerConfig>>,
    answer: impl Fn(Request<Incoming>, Peer) -> F + Clone + Send + Sync + 'static,
) where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Failure>,
    F: Future<Output = Response<B>> + Send + 'static,
{
    let what = bounds.what;
    let mut clients = Clients::new(bounds.clients);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                debug!(%error, "cannot accept a connection to {what}");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        clients.make_room().await;
        let Some(tls) = config() else { continue };
        let answer = answer.clone();
        clients.serve(|work| async move {
            let exchange = exchange(stream, bounds, tls, work, answer);
            match timeout(bounds.connection_timeout, exchange).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!(%error, "a connection to {what} failed"),
                Err(_) => debug!("a connection to {what} timed out"),
            }
        });
    }
}

/// One request and its reply.
async fn exchange<B, F>(
    stream: TcpStream,
    bounds: HttpsBounds,
    tls: Arc<ServerConfig>,
    work: Work,
    answer: impl Fn(Request<Incoming>, Peer) -> F,
) -> Result<(), Failure>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Failure>,
    F: Future<Output = Response<B>> + Send + 'static,
{
    let stream = timeout(REQUEST_TIMEOUT, TlsAcceptor::from(tls).accept(stream)).await??;
    let certificates = stream.get_ref().1.peer_certificates();
    let certificate = certificates.and_then(<[_]>::first).map(|it| it.clone().into_owned());
    let peer = Peer { work, certificate };
    let service = service_fn(|request| {
        let answering = answer(request, peer.clone());
        async move { Ok::<_, Infallible>(answering.await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .keep_alive(false)
        .max_headers(bounds.headers_max)
        .max_buf_size(bounds.read_buffer_bytes)
        .serve_connection(TokioIo::new(stream), service)
        .await?;
    Ok(())
}
