//! A certificate of ours: how it is issued, how a Secret stores it, and until when it is valid.
//!
//! A CA signs one certificate; its key is not stored. Those that verify it are given this CA and the previous one,
//! so that its holders may change one after the other. Knows no connection.

use std::sync::Arc;
use std::time::Duration;

use fairway_ground::Utc;
use k8s_openapi::ByteString;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use serde_json::{Map, Value, json};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

use crate::tls;

const DAY: Duration = Duration::from_secs(86_400);
/// How long a certificate is valid, and how long before its end it is replaced.
const LIFETIME: Duration = DAY.saturating_mul(365);
const RENEWED_BEFORE: Duration = DAY.saturating_mul(30);
/// How far the clock of an API server may be behind ours.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// The keys of the Secret. The first three are those of cert-manager.
const AUTHORITIES: &str = "ca.crt";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
/// Its host names, and its end (RFC 3339, UTC).
const HOSTS: &str = "hosts";
const NOT_AFTER: &str = "not-after";

/// Why a Secret holds no usable certificate.
#[derive(Debug, thiserror::Error)]
pub(in crate::kubernetes) enum CertificateError {
    #[error("it has no {0}")]
    Missing(&'static str),
    #[error("its {0} is not base64 text")]
    Encoding(&'static str),
    #[error("its {0} is not PEM: {1}")]
    Pem(&'static str, pem::Error),
    #[error("its certificate cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// What a certificate is for.
#[derive(Debug, Clone)]
pub(in crate::kubernetes) struct Profile {
    /// The common name, as in "Fairway webhook".
    pub(in crate::kubernetes) name: &'static str,
    /// The names and addresses of the server.
    pub(in crate::kubernetes) hosts: Vec<String>,
    /// Its holder also connects to others with it.
    pub(in crate::kubernetes) is_client: bool,
}

/// A certificate with its key and its CA.
#[derive(Debug, Clone)]
pub(in crate::kubernetes) struct Identity {
    /// A server with this certificate, for any client.
    pub(in crate::kubernetes) tls: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
    key: Arc<PrivateKeyDer<'static>>,
    /// The CAs that sign it: PEM in base64, as in a `caBundle`.
    pub(in crate::kubernetes) ca_bundle: String,
    /// The same in PEM.
    pub(super) authorities: String,
    /// The first of them, in PEM.
    authority: String,
    hosts: String,
    not_after: String,
}

impl Identity {
    /// Parses what [`issue`] returned, as the API server stores it.
    pub(in crate::kubernetes) fn of(secret: &Value) -> Result<Self, CertificateError> {
        let data = secret.get("data");
        let encoded = |key| {
            let text = data.and_then(|it| it.get(key)?.as_str());
            text.filter(|it| !it.is_empty()).ok_or(CertificateError::Missing(key))
        };
        let decoded = |key| {
            let bytes: ByteString = serde_json::from_value(encoded(key)?.into())
                .map_err(|_| CertificateError::Encoding(key))?;
            String::from_utf8(bytes.0).map_err(|_| CertificateError::Encoding(key))
        };
        let certificate = CertificateDer::from_pem_slice(decoded(CERTIFICATE)?.as_bytes())
            .map_err(|error| CertificateError::Pem(CERTIFICATE, error))?;
        let key = PrivateKeyDer::from_pem_slice(decoded(KEY)?.as_bytes())
            .map_err(|error| CertificateError::Pem(KEY, error))?;
        let tls = tls::server((vec![certificate.clone()], key.clone_key()))?;
        let authorities = decoded(AUTHORITIES)?;
        Ok(Self {
            tls: Arc::new(tls),
            certificate,
            key: Arc::new(key),
            ca_bundle: encoded(AUTHORITIES)?.to_owned(),
            authority: first_certificate(&authorities).to_owned(),
            authorities,
            hosts: decoded(HOSTS)?,
            not_after: decoded(NOT_AFTER)?,
        })
    }

    /// The certificate with its key.
    pub(in crate::kubernetes) fn pair(&self) -> tls::Pair {
        (vec![self.certificate.clone()], self.key.clone_key())
    }

    /// The CAs that sign it.
    pub(in crate::kubernetes) fn roots(&self) -> Result<RootCertStore, CertificateError> {
        roots_of(&self.authorities).map_err(|error| CertificateError::Pem(AUTHORITIES, error))
    }

    /// Whether it has to be replaced: it is for other hosts, or ends within a month. `now` is Unix time.
    pub(in crate::kubernetes) fn is_to_be_replaced(&self, hosts: &[String], now: u64) -> bool {
        // RFC 3339 texts in UTC sort by time.
        self.hosts != joined(hosts) || self.not_after <= time_after(now, RENEWED_BEFORE)
    }
}

/// The certificates of a PEM text, as those of CAs; one that is none is left out.
pub(in crate::kubernetes) fn roots_of(text: &str) -> Result<RootCertStore, pem::Error> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        // As Go's AppendCertsFromPEM, with which Kubernetes reads the same text.
        let _ = roots.add(certificate?);
    }
    Ok(roots)
}

/// Issues a certificate. Returns the `stringData` of the Secret, which includes the CA of `former`, so that
/// clients that trust it need not change at once. `now` is Unix time.
pub(in crate::kubernetes) fn issue(
    profile: &Profile,
    former: Option<&Identity>,
    now: u64,
) -> Result<Map<String, Value>, rcgen::Error> {
    let seconds = |seconds: u64| date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    let mut params = CertificateParams::default();
    params.not_before = seconds(now.saturating_sub(CLOCK_SKEW.as_secs()));
    params.not_after = seconds(now.saturating_add(LIFETIME.as_secs()));
    let named = |mut params: CertificateParams, name: String| {
        params.distinguished_name.push(DnType::CommonName, name);
        params
    };
    let authority_name = format!("{} CA {}", profile.name, Utc(now).rfc3339());
    let mut authority = named(params.clone(), authority_name);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let mut leaf = named(params, profile.name.to_owned());
    leaf.subject_alt_names = CertificateParams::new(&*profile.hosts)?.subject_alt_names;
    leaf.use_authority_key_identifier_extension = true;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    if profile.is_client {
        leaf.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
    }
    let key = KeyPair::generate()?;
    let leaf = leaf.signed_by(&key, &Issuer::new(authority, authority_key))?;
    let former = former.map_or("", |it| it.authority.as_str());
    let mut data = Map::new();
    for (name, text) in [
        (AUTHORITIES, format!("{authority_pem}{former}")),
        (CERTIFICATE, leaf.pem()),
        (KEY, key.serialize_pem()),
        (HOSTS, joined(&profile.hosts)),
        (NOT_AFTER, time_after(now, LIFETIME)),
    ] {
        data.insert(name.to_owned(), json!(text));
    }
    Ok(data)
}

fn joined(hosts: &[String]) -> String {
    hosts.join(",")
}

fn time_after(now: u64, time: Duration) -> String {
    Utc(now.saturating_add(time.as_secs())).rfc3339()
}

/// The first of several certificates in PEM.
fn first_certificate(pem: &str) -> &str {
    pem.split_inclusive("-----END CERTIFICATE-----\n").next().unwrap_or_default()
}

#[cfg(test)]
pub(in crate::kubernetes) mod tests;
