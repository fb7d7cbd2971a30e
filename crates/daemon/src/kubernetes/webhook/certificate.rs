//! The certificate of the webhook: how it is issued, how a Secret stores it, and until when it is valid.
//!
//! A CA signs one certificate; its key is not stored. The API server is given this CA and the previous one,
//! so that controllers may change one after the other. Knows no connection.

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
use tokio_rustls::rustls::{self, ServerConfig};

use crate::metrics::tls_config;

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
pub(super) enum CertificateError {
    #[error("it has no {0}")]
    Missing(&'static str),
    #[error("its {0} is not base64 text")]
    Encoding(&'static str),
    #[error("its {0} is not PEM: {1}")]
    Pem(&'static str, pem::Error),
    #[error("its certificate cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// The certificate that the webhook presents to the API server.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) tls: Arc<ServerConfig>,
    /// The CAs that sign it: PEM in base64, as in a `caBundle`.
    pub(super) ca_bundle: String,
    /// The first of them, in PEM.
    authority: String,
    hosts: String,
    not_after: String,
}

impl Identity {
    /// Parses what [`issue`] returned, as the API server stores it.
    pub(super) fn of(secret: &Value) -> Result<Self, CertificateError> {
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
        let tls = tls_config(vec![certificate], key)?;
        Ok(Self {
            tls: Arc::new(tls),
            ca_bundle: encoded(AUTHORITIES)?.to_owned(),
            authority: first_certificate(&decoded(AUTHORITIES)?).to_owned(),
            hosts: decoded(HOSTS)?,
            not_after: decoded(NOT_AFTER)?,
        })
    }

    /// Whether it has to be replaced: it is for other hosts, or ends within a month. `now` is Unix time.
    pub(super) fn is_to_be_replaced(&self, hosts: &[String], now: u64) -> bool {
        // RFC 3339 texts in UTC sort by time.
        self.hosts != joined(hosts) || self.not_after <= time_after(now, RENEWED_BEFORE)
    }
}

/// Issues a certificate for `hosts`, names or addresses. Returns the `stringData` of the Secret, which
/// includes the CA of `former`, so that clients that trust it need not change at once. `now` is Unix time.
pub(super) fn issue(
    hosts: &[String],
    former: Option<&Identity>,
    now: u64,
) -> Result<Value, rcgen::Error> {
    let seconds = |seconds: u64| date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    let mut params = CertificateParams::default();
    params.not_before = seconds(now.saturating_sub(CLOCK_SKEW.as_secs()));
    params.not_after = seconds(now.saturating_add(LIFETIME.as_secs()));
    let named = |mut params: CertificateParams, name: String| {
        params.distinguished_name.push(DnType::CommonName, name);
        params
    };
    let mut authority = named(params.clone(), format!("Fairway webhook CA {}", Utc(now).rfc3339()));
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let mut leaf = named(params, "Fairway webhook".to_owned());
    leaf.subject_alt_names = CertificateParams::new(hosts)?.subject_alt_names;
    leaf.use_authority_key_identifier_extension = true;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let leaf = leaf.signed_by(&key, &Issuer::new(authority, authority_key))?;
    let former = former.map_or("", |it| it.authority.as_str());
    let mut data = Map::new();
    for (name, text) in [
        (AUTHORITIES, format!("{authority_pem}{former}")),
        (CERTIFICATE, leaf.pem()),
        (KEY, key.serialize_pem()),
        (HOSTS, joined(hosts)),
        (NOT_AFTER, time_after(now, LIFETIME)),
    ] {
        data.insert(name.to_owned(), json!(text));
    }
    Ok(data.into())
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
pub(super) mod tests;
