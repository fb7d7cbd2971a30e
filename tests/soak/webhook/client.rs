//! How does a client ask the webhook? With one request on a TLS connection of its own, as the API server does, whose
//! certificate it verifies against the CA of the webhook configuration. Used by the flood and by the reviews.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A client that trusts one CA.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) address: SocketAddr,
    tls: TlsConnector,
}

/// An answer.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: String,
}

impl Client {
    pub(super) fn new(address: SocketAddr, authority: &str) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(authority.as_bytes());
        roots.add(authority.context("the CA of the webhook")?).context("trusting the CA")?;
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .context("versions of TLS")?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { address, tls: TlsConnector::from(Arc::new(config)) })
    }

    /// A connection that has sent the head of a review with a body of this length.
    pub(super) async fn begin(&self, body_bytes: usize) -> Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        let name = ServerName::from(self.address.ip());
        let mut stream = self.tls.connect(name, stream).await.context("the handshake")?;
        let head = format!(
            "POST /validate?timeout=5s HTTP/1.1\r\nHost: it\r\n\
             Content-Type: application/json\r\nContent-Length: {body_bytes}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.context("the head of a request")?;
        stream.flush().await.context("the head of a request")?;
        Ok(stream)
    }

    /// Sends a review; the answer.
    pub(super) async fn ask(&self, body: &[u8]) -> Result<Reply> {
        let mut stream = self.begin(body.len()).await?;
        // It may answer before it has read everything.
        if stream.write_all(body).await.is_ok() {
            let _ = stream.flush().await;
        }
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        let Some((head, body)) = answer.split_once("\r\n\r\n") else {
            return Err(match read {
                Ok(_) => anyhow::anyhow!("the connection ended without an answer"),
                Err(error) => anyhow::Error::new(error).context("reading the answer"),
            });
        };
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
        let status = status.with_context(|| format!("no status in {head}"))?;
        Ok(Reply { status, body: body.to_owned() })
    }
}
