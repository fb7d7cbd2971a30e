//! The API server in front of us: by which certificate it proves itself, and how it names the user.
//!
//! The ConfigMap extension-apiserver-authentication in kube-system says both. A client with another certificate is
//! refused. What is read is kept while the API server does not answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tracing::{info, warn};
use x509_parser::parse_x509_certificate;

use crate::kubernetes::api::Api;
use crate::kubernetes::serving::roots_of;

const PATH: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How often it is read, and how often while it cannot be.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// What the ConfigMap says.
#[derive(Debug, Clone)]
pub(super) struct FrontProxy {
    /// The CAs of its certificate.
    pub(super) authorities: RootCertStore,
    /// The common names that it may have; all of that CA, if there are none.
    names: Vec<String>,
    user_headers: Vec<String>,
    uid_headers: Vec<String>,
    group_headers: Vec<String>,
    extra_prefixes: Vec<String>,
}

/// A user, as the API server knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) uid: Option<String>,
    pub(super) groups: Vec<String>,
    pub(super) extra: BTreeMap<String, Vec<String>>,
}

/// Never ends. Publishes what the ConfigMap says.
pub(super) async fn follow(api: Api, tell: watch::Sender<Option<Arc<FrontProxy>>>) {
    let (mut trouble, mut known) = (None, None);
    loop {
        let read = api.get(PATH, REQUEST_TIMEOUT).await.map_err(|problem| problem.to_string());
        let read = read.and_then(|it| {
            let data = it.get("data").cloned().unwrap_or_default();
            FrontProxy::of(&data).map(|proxy| (data, proxy))
        });
        let problem = match read {
            Ok((data, proxy)) => {
                if known.as_ref() != Some(&data) {
                    info!(names = ?proxy.names, "the node API trusts the API server's front proxy");
                    tell.send_replace(Some(Arc::new(proxy)));
                    known = Some(data);
                }
                None
            }
            Err(problem) => Some(problem),
        };
        if let Some(problem) = &problem
            && trouble.as_ref() != Some(problem)
        {
            warn!("node API: ConfigMap kube-system/extension-apiserver-authentication: {problem}");
        }
        let pause = if problem.is_none() { LOOK_INTERVAL } else { RETRY_INTERVAL };
        trouble = problem;
        sleep(pause).await;
    }
}

impl FrontProxy {
    /// What the data of the ConfigMap means.
    fn of(data: &Value) -> Result<Self, String> {
        let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
        let list = |key: &str| -> Result<Vec<String>, String> {
            match text(key) {
                "" => Ok(Vec::new()),
                text => serde_json::from_str(text)
                    .map_err(|error| format!("{key} is not a list of texts: {error}")),
            }
        };
        let authorities = roots_of(text("requestheader-client-ca-file"))
            .map_err(|error| format!("requestheader-client-ca-file is not PEM: {error}"))?;
        if authorities.is_empty() {
            return Err("it has no requestheader-client-ca-file: the API server runs without \
                        aggregation (--requestheader-client-ca-file)"
                .to_owned());
        }
        let user_headers = list("requestheader-username-headers")?;
        if user_headers.is_empty() {
            return Err("it has no requestheader-username-headers".to_owned());
        }
        Ok(Self {
            authorities,
            names: list("requestheader-allowed-names")?,
            user_headers,
            uid_headers: list("requestheader-uid-headers")?,
            group_headers: list("requestheader-group-headers")?,
            extra_prefixes: list("requestheader-extra-headers-prefix")?,
        })
    }

    /// Whether a certificate, which one of the CAs has signed, is the front proxy's.
    pub(super) fn is_named_by(&self, certificate: &CertificateDer<'_>) -> bool {
        if self.names.is_empty() {
            return true;
        }
        let Ok((_, certificate)) = parse_x509_certificate(certificate) else { return false };
        let mut names = certificate.subject().iter_common_name();
        // As Go has it: the last one counts.
        let name = names.by_ref().last().and_then(|it| it.as_str().ok());
        name.is_some_and(|name| self.names.iter().any(|it| it == name))
    }

    /// The user that the headers name. None of them, where one of the values is not UTF-8: a group that is left out could
    /// be one that may not.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<User> {
        let values = |names: &[String]| -> Option<Vec<String>> {
            let all = names.iter().flat_map(|name| headers.get_all(name.as_str()));
            let texts = all.map(|it| str::from_utf8(it.as_bytes()).ok().map(str::to_owned));
            texts.filter(|it| it.as_ref().is_none_or(|it| !it.is_empty())).collect()
        };
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for header in headers.keys() {
            let key = self.extra_prefixes.iter().find_map(|prefix| {
                // Names of headers are in lower case here.
                header.as_str().strip_prefix(&*prefix.to_ascii_lowercase())
            });
            if let Some(key) = key {
                let key = percent_decode_str(key).decode_utf8().ok()?.into_owned();
                extra.entry(key).or_default().extend(values(&[header.as_str().to_owned()])?);
            }
        }
        Some(User {
            name: values(&self.user_headers)?.into_iter().next()?,
            uid: values(&self.uid_headers)?.into_iter().next(),
            groups: values(&self.group_headers)?,
            extra,
        })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rcgen::{CertificateParams, DnType, KeyPair};
    use serde_json::json;

    use super::*;

    fn certificate(names: &[&str]) -> rcgen::Certificate {
        let mut params = CertificateParams::default();
        for name in names {
            params.distinguished_name.push(DnType::CommonName, *name);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap()
    }

    fn data(names: &str) -> Value {
        json!({
            "requestheader-client-ca-file": certificate(&["ca"]).pem(),
            "requestheader-allowed-names": names,
            "requestheader-username-headers": r#"["X-Remote-User"]"#,
            "requestheader-group-headers": r#"["X-Remote-Group"]"#,
            "requestheader-extra-headers-prefix": r#"["X-Remote-Extra-"]"#,
        })
    }

    #[test]
    fn another_certificate_of_the_same_authority_is_not_the_front_proxy() {
        let proxy = FrontProxy::of(&data(r#"["front-proxy-client"]"#)).unwrap();
        assert!(proxy.is_named_by(certificate(&["front-proxy-client"]).der()));
        assert!(!proxy.is_named_by(certificate(&["kubelet"]).der()));
        assert!(!proxy.is_named_by(certificate(&[]).der()));
        assert!(!proxy.is_named_by(&CertificateDer::from_slice(b"nothing")));
        let open = FrontProxy::of(&data("[]")).unwrap();
        assert!(open.is_named_by(certificate(&["anyone"]).der()));
    }

    #[test]
    fn the_user_is_whom_the_headers_name() {
        let proxy = FrontProxy::of(&data("")).unwrap();
        let mut headers = HeaderMap::new();
        assert_eq!(proxy.user(&headers), None);
        headers.insert("x-remote-user", HeaderValue::from_static("jane"));
        headers.append("x-remote-group", HeaderValue::from_static("ops"));
        headers.append("x-remote-group", HeaderValue::from_static("system:authenticated"));
        let name = "x-remote-extra-example.org%2fscope";
        headers.append(name, HeaderValue::from_static("a"));
        let user = proxy.user(&headers).unwrap();
        assert_eq!(user.name, "jane");
        assert_eq!(user.groups, ["ops", "system:authenticated"]);
        assert_eq!(user.extra["example.org/scope"], ["a"]);
        let utf8 = HeaderValue::from_bytes("jörg@example.org".as_bytes()).unwrap();
        headers.insert("x-remote-user", utf8);
        assert_eq!(proxy.user(&headers).unwrap().name, "jörg@example.org");
        headers.append("x-remote-group", HeaderValue::from_bytes(b"caf\xe9").unwrap());
        assert_eq!(proxy.user(&headers), None);
    }

    #[test]
    fn a_server_without_aggregation_is_said_to_be_one() {
        let why = FrontProxy::of(&json!({})).unwrap_err();
        assert!(why.contains("--requestheader-client-ca-file"), "{why}");
        let mut broken = data("");
        broken["requestheader-allowed-names"] = json!("front");
        let why = FrontProxy::of(&broken).unwrap_err();
        assert!(why.contains("requestheader-allowed-names"), "{why}");
    }
}
