//! HTTPS for `/metrics`: the certificate, and which clients may read.
//!
//! Knows no API server: who may read is for an [`Access`]. Called by the server for each connection.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{self, ServerConfig};

use crate::host::host_name;
use crate::http_server::HttpListen;
use crate::tls::{self, CertificateError, CertificateFolder, CertificateFolderOptions};

/// May a client read `/metrics`?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Allowed,
    /// Its token is not valid.
    Unauthenticated,
    /// It is known, and may not.
    Forbidden,
    /// That cannot be found out now.
    Unknown,
}

/// The answer of [`Access::verdict`].
pub type Judged<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// Decides which clients may read `/metrics`.
pub trait Access: Send + Sync + 'static {
    /// Whether the client with this bearer token may. The server closes the connection if it takes longer
    /// than a request may last.
    fn verdict<'a>(&'a self, token: &'a str) -> Judged<'a>;
}

/// The options of `/metrics` with TLS.
#[derive(Debug, Clone)]
pub struct SecureOptions {
    /// Where; [`HttpListen::Nowhere`]: it is served without TLS.
    pub listen: HttpListen,
    /// The folder with the certificate; a self-signed one without.
    pub certificate_folder: Option<PathBuf>,
}

/// How `/metrics` is served with TLS.
pub struct Secured {
    /// Where.
    pub listen: HttpListen,
    /// With which certificate.
    pub certificate: Certificate,
    /// Which clients may read.
    pub access: Arc<dyn Access>,
}

impl SecureOptions {
    /// For these clients, if it is to be served with TLS.
    pub(crate) fn secured(
        self,
        access: Arc<dyn Access>,
    ) -> Result<Option<Secured>, CertificateError> {
        if self.listen == HttpListen::Nowhere {
            return Ok(None);
        }
        let certificate = Certificate::new(self.certificate_folder)?;
        Ok(Some(Secured { listen: self.listen, certificate, access }))
    }
}

/// The certificate of a server: of files, which are read again when they change, or made at the start.
#[derive(Debug)]
pub struct Certificate(CertificateSource);

#[derive(Debug)]
enum CertificateSource {
    Folder(CertificateFolder),
    Made(Arc<ServerConfig>),
}

impl Certificate {
    /// That of the files `tls.crt` and `tls.key` in `folder`; without one, a self-signed certificate.
    pub fn new(folder: Option<PathBuf>) -> Result<Self, CertificateError> {
        Ok(Self(match folder {
            Some(folder) => {
                let option = "--metrics-cert-dir";
                let options = CertificateFolderOptions { option, folder, names_clients: false };
                CertificateSource::Folder(CertificateFolder::open(options)?)
            }
            None => CertificateSource::Made(Arc::new(self_signed()?)),
        }))
    }

    /// The certificate in force.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        match &self.0 {
            CertificateSource::Folder(folder) => folder.config(),
            CertificateSource::Made(config) => Arc::clone(config),
        }
    }
}

/// For clients that do not verify it: Prometheus with `insecure_skip_verify`, as beside MetalLB.
fn self_signed() -> Result<ServerConfig, CertificateError> {
    let unusable = |error| CertificateError::Unusable { option: "--metrics-secure-listen", error };
    let params = CertificateParams::new(vec![host_name().unwrap_or_else(|| "fairway".to_owned())])?;
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    let key = PrivateKeyDer::try_from(key.serialize_der())
        .map_err(|error| unusable(rustls::Error::General(error.to_owned())))?;
    tls::server((vec![certificate.der().clone()], key)).map_err(unusable)
}
