//! HTTPS for `/metrics`: the certificate, and which clients may read.
//!
//! Knows no API server: who may read is for an [`Access`]. Called by the server for each connection.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rcgen::{CertificateParams, KeyPair};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tracing::{info, warn};

use super::HttpListen;
use crate::host::host_name;

/// The files of a certificate, as in a mounted Secret of type `kubernetes.io/tls`.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
/// Far more than a chain of certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;

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

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("--metrics-cert-dir: {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A file has another form.
    #[error("--metrics-cert-dir: {}: is not PEM: {error}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: pem::Error,
    },
    /// The pair does not fit, or has an unsupported algorithm.
    #[error("--metrics-cert-dir: the certificate cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
    /// None could be made.
    #[error("cannot make a certificate: {0}")]
    Made(#[from] rcgen::Error),
}

/// Which files they are, and when they were written: a Secret that changes is mounted as other files.
type Stamp = [(u64, SystemTime); 2];

/// The certificate of a server: of files, which are read again when they change, or made at the start.
#[derive(Debug)]
pub struct Certificate {
    folder: Option<PathBuf>,
    current: Mutex<(Option<Stamp>, Arc<ServerConfig>)>,
}

impl Certificate {
    /// That of the files `tls.crt` and `tls.key` in `folder`; without one, a self-signed certificate.
    pub fn new(folder: Option<PathBuf>) -> Result<Self, CertificateError> {
        let current = match &folder {
            Some(folder) => (stamp(folder).ok(), Arc::new(read(folder)?)),
            None => (None, Arc::new(self_signed()?)),
        };
        Ok(Self { folder, current: Mutex::new(current) })
    }

    /// The certificate in force. If new files cannot be used, the earlier certificate stays.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(folder) = &self.folder else { return Arc::clone(&current.1) };
        // Files that cannot be read now are read again with the next connection.
        let Ok(stamp) = stamp(folder) else { return Arc::clone(&current.1) };
        if current.0 != Some(stamp) {
            match read(folder) {
                Ok(config) => {
                    current.1 = Arc::new(config);
                    info!(folder = %folder.display(), "the certificate for metrics was read again");
                }
                Err(error) => warn!(%error, "the earlier certificate for metrics stays in use"),
            }
            current.0 = Some(stamp);
        }
        Arc::clone(&current.1)
    }
}

fn stamp(folder: &Path) -> std::io::Result<Stamp> {
    let of = |name| {
        let metadata = fs::metadata(folder.join(name))?;
        Ok::<_, std::io::Error>((metadata.ino(), metadata.modified()?))
    };
    Ok([of(CERTIFICATE)?, of(KEY)?])
}

fn read(folder: &Path) -> Result<ServerConfig, CertificateError> {
    let text = |name: &str| {
        let path = folder.join(name);
        text_of(&path).map_err(|error| CertificateError::File { path, error })
    };
    let wrong = |name: &str| {
        let path = folder.join(name);
        move |error| CertificateError::Pem { path, error }
    };
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(text(CERTIFICATE)?.as_bytes()).collect();
    let chain = chain.map_err(wrong(CERTIFICATE))?;
    let key = PrivateKeyDer::from_pem_slice(text(KEY)?.as_bytes()).map_err(wrong(KEY))?;
    Ok(tls_config(chain, key)?)
}

/// A regular file of a reasonable size; a FIFO would never end.
fn text_of(path: &Path) -> std::io::Result<String> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return Err(std::io::Error::other("is not a file of at most 1 MiB"));
    }
    fs::read_to_string(path)
}

/// For clients that do not verify it: Prometheus with `insecure_skip_verify`, as beside MetalLB.
fn self_signed() -> Result<ServerConfig, CertificateError> {
    let params = CertificateParams::new(vec![host_name().unwrap_or_else(|| "fairway".to_owned())])?;
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    let key = PrivateKeyDer::try_from(key.serialize_der())
        .map_err(|error| rustls::Error::General(error.to_owned()))?;
    Ok(tls_config(vec![certificate.der().clone()], key)?)
}

/// A server with this certificate, for any client.
pub(crate) fn tls_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
}
