//! A TCP connection to a host that a resource names: an RPKI cache, a BMP station. Each address of a name is tried.
//!
//! Refuses to know what is said over it. Used by the connections of `rpki` and `bmp`.

use std::io;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};

/// For a name, and for each of its addresses.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// A connection to the first address of `host` that accepts one. The error is that of the last address that was tried, and
/// names it.
pub(crate) async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let addresses = within(lookup_host((host, port)), "the name").await?;
    let mut failure = io::Error::other("the name has no address");
    for address in addresses.take(ADDRESSES_MAX) {
        match within(TcpStream::connect(address), &address.to_string()).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The result of `work`, or an error about `what`.
async fn within<T>(work: impl Future<Output = io::Result<T>>, what: &str) -> io::Result<T> {
    match tokio::time::timeout(CONNECT_TIMEOUT, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(io::Error::other(format!("{what}: {error}"))),
        Err(_) => {
            let seconds = CONNECT_TIMEOUT.as_secs();
            Err(io::Error::other(format!("{what}: no answer within {seconds} s")))
        }
    }
}
