//! TLS of our servers: configurations, and certificates in folders.
//!
//! Knows no protocol above it. Used by `metrics`, `node_api` and `kubernetes`.

mod folder;

use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};

pub(crate) use folder::{CertificateError, CertificateFolder, CertificateFolderOptions};

/// A certificate, the intermediate ones behind it, and its key.
pub(crate) type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// A server with this certificate, for any client.
pub(crate) fn server((chain, key): Pair) -> Result<ServerConfig, rustls::Error> {
    ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
}

/// A server with this certificate, only for clients with one that `clients` have signed.
pub(crate) fn server_for(
    (chain, key): Pair,
    clients: RootCertStore,
) -> Result<ServerConfig, rustls::Error> {
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(clients), provider());
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier.build().map_err(unusable)?)
        .with_single_cert(chain, key)?;
    // No session is resumed: the CA of its certificate may have been replaced.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    Ok(config)
}

/// A client with this certificate, of servers with one that `servers` have signed.
pub(crate) fn client_of(
    servers: RootCertStore,
    (chain, key): Pair,
) -> Result<ClientConfig, rustls::Error> {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(servers), provider());
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_webpki_verifier(verifier.build().map_err(unusable)?)
        .with_client_auth_cert(chain, key)
}

fn unusable(error: VerifierBuilderError) -> rustls::Error {
    rustls::Error::General(error.to_string())
}
