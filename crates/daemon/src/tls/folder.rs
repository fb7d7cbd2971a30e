//! Certificates in files, as in a mounted Secret of type `kubernetes.io/tls`: read again when they change.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use tracing::{info, warn};

use super::{Pair, server, server_for};

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
/// The CAs of the clients.
const CLIENT_AUTHORITIES: &str = "client-ca.crt";
/// Far more than a chain of certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{option}: {}: {error}", path.display())]
    File {
        /// The option that names the folder.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A file has another form.
    #[error("{option}: {}: is not PEM: {error}", path.display())]
    Pem {
        /// The option that names the folder.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: pem::Error,
    },
    /// The pair does not fit, or has an unsupported algorithm.
    #[error("{option}: the certificate cannot be used: {error}")]
    Unusable {
        /// The option that names the folder.
        option: &'static str,
        /// What is wrong.
        error: rustls::Error,
    },
    /// None could be made.
    #[error("cannot make a certificate: {0}")]
    Made(#[from] rcgen::Error),
}

/// Which files they are, and when they were written: a Secret that changes is mounted as other files.
type Stamp = Vec<(u64, SystemTime)>;

/// Where the files are, and what is in them.
#[derive(Debug, Clone)]
pub(crate) struct CertificateFolderOptions {
    /// The option that names the folder.
    pub(crate) option: &'static str,
    pub(crate) folder: PathBuf,
    /// There is also the CA of the clients, and others are refused.
    pub(crate) names_clients: bool,
}

/// A server with the certificate of a folder.
#[derive(Debug)]
pub(crate) struct CertificateFolder {
    options: CertificateFolderOptions,
    current: Mutex<(Option<Stamp>, Arc<ServerConfig>)>,
}

impl CertificateFolder {
    /// Reads it for the first time.
    pub(crate) fn open(options: CertificateFolderOptions) -> Result<Self, CertificateError> {
        let current = (options.stamp().ok(), Arc::new(options.read()?));
        Ok(Self { options, current: Mutex::new(current) })
    }

    /// The certificate in force. If new files cannot be used, the earlier certificate stays.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        // Files that cannot be read now are read again with the next connection.
        let Ok(stamp) = self.options.stamp() else { return Arc::clone(&current.1) };
        if current.0.as_ref() != Some(&stamp) {
            match self.options.read() {
                Ok(config) => {
                    current.1 = Arc::new(config);
                    let CertificateFolderOptions { option, folder, .. } = &self.options;
                    info!(folder = %folder.display(), option, "the certificate was read again");
                }
                Err(error) => warn!(%error, "the earlier certificate stays in use"),
            }
            current.0 = Some(stamp);
        }
        Arc::clone(&current.1)
    }
}

impl CertificateFolderOptions {
    fn stamp(&self) -> std::io::Result<Stamp> {
        let of = |name: &&str| {
            let metadata = fs::metadata(self.folder.join(name))?;
            Ok((metadata.ino(), metadata.modified()?))
        };
        let clients = self.names_clients.then_some(CLIENT_AUTHORITIES);
        [CERTIFICATE, KEY].iter().chain(clients.iter()).map(of).collect()
    }

    fn read(&self) -> Result<ServerConfig, CertificateError> {
        let chain = self.certificates(CERTIFICATE)?;
        let key = PrivateKeyDer::from_pem_slice(self.text(KEY)?.as_bytes())
            .map_err(|error| self.no_pem(KEY, error))?;
        let pair: Pair = (chain, key);
        let config = match self.names_clients {
            false => server(pair),
            true => server_for(pair, self.clients()?),
        };
        config.map_err(|error| CertificateError::Unusable { option: self.option, error })
    }

    fn clients(&self) -> Result<RootCertStore, CertificateError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.certificates(CLIENT_AUTHORITIES)?);
        Ok(roots)
    }

    fn certificates(&self, name: &str) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
        CertificateDer::pem_slice_iter(self.text(name)?.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| self.no_pem(name, error))
    }

    fn text(&self, name: &str) -> Result<String, CertificateError> {
        let path = self.folder.join(name);
        let option = self.option;
        text_of(&path).map_err(|error| CertificateError::File { option, path, error })
    }

    fn no_pem(&self, name: &str, error: pem::Error) -> CertificateError {
        CertificateError::Pem { option: self.option, path: self.folder.join(name), error }
    }
}

/// A regular file of a reasonable size; a FIFO would never end.
fn text_of(path: &Path) -> std::io::Result<String> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return Err(std::io::Error::other("is not a file of at most 1 MiB"));
    }
    fs::read_to_string(path)
}
