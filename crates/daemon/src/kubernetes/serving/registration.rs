//! Where the API server learns of a server of ours, and by which CA it verifies it.
//!
//! Pure. Called by the keeper of the certificate.

use std::fmt;

use serde_json::{Value, json};

use crate::kubernetes::resource::{API_SERVICE, VALIDATING_WEBHOOK_CONFIGURATION};

/// An object that names a server of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kubernetes) enum Registration {
    /// The ValidatingWebhookConfiguration of this name.
    Webhook(String),
    /// The APIService of this name, which is answered by a Service of our namespace.
    ApiService {
        /// Its own.
        name: String,
        /// That of the Service.
        service: String,
    },
}

impl fmt::Display for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Webhook(name) => write!(f, "ValidatingWebhookConfiguration {name}"),
            Self::ApiService { name, .. } => write!(f, "APIService {name}"),
        }
    }
}

impl Registration {
    /// Its path in the API.
    pub(super) fn path(&self) -> String {
        let (resource, name) = match self {
            Self::Webhook(name) => (VALIDATING_WEBHOOK_CONFIGURATION, name),
            Self::ApiService { name, .. } => (API_SERVICE, name),
        };
        format!("{}/{name}", resource.in_namespace(""))
    }

    /// The JSON patch (RFC 6902) that gives it this CA everywhere; `None` if it has it. Says why, if it is another's.
    pub(super) fn patch(
        &self,
        found: &Value,
        namespace: &str,
        ca_bundle: &str,
    ) -> Result<Option<Value>, String> {
        let places = match self {
            Self::Webhook(_) => {
                let webhooks = found.get("webhooks").and_then(Value::as_array);
                let place = |position| format!("/webhooks/{position}/clientConfig/caBundle");
                (0..webhooks.map_or(0, Vec::len)).map(place).collect()
            }
            Self::ApiService { service, .. } => {
                let of = |field| found.pointer(field).and_then(Value::as_str).unwrap_or_default();
                let owner = [of("/spec/service/namespace"), of("/spec/service/name")];
                if owner != [namespace, service] {
                    let [namespace, service] = owner;
                    return Err(format!(
                        "{self} belongs to Service {namespace}/{service}, perhaps of another Fairway: its caBundle \
                         stays as it is, and the node API gets no request"
                    ));
                }
                vec!["/spec/caBundle".to_owned()]
            }
        };
        let has_other =
            |place: &String| found.pointer(place).and_then(Value::as_str) != Some(ca_bundle);
        let add = |place| json!({ "op": "add", "path": place, "value": ca_bundle });
        let mut steps: Vec<Value> = places.into_iter().filter(has_other).map(add).collect();
        // The places are valid for this version only.
        let version = found.pointer("/metadata/resourceVersion");
        let Some(version) = version.filter(|_| !steps.is_empty()) else { return Ok(None) };
        let path = "/metadata/resourceVersion";
        steps.insert(0, json!({ "op": "test", "path": path, "value": version }));
        Ok(Some(steps.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_patched_where_it_trusts_another() {
        let configuration = json!({
            "metadata": { "name": "it", "resourceVersion": "7" },
            "webhooks": [
                { "name": "a", "clientConfig": { "caBundle": "bmV3" } },
                { "name": "b", "clientConfig": { "service": {} } },
            ],
        });
        let expected = json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": "7" },
            { "op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": "bmV3" },
        ]);
        let webhook = Registration::Webhook("it".to_owned());
        assert_eq!(webhook.patch(&configuration, "ours", "bmV3"), Ok(Some(expected)));
        let mut trusting = configuration;
        trusting["webhooks"][1]["clientConfig"]["caBundle"] = json!("bmV3");
        assert_eq!(webhook.patch(&trusting, "ours", "bmV3"), Ok(None));
        assert_eq!(webhook.patch(&json!({}), "ours", "bmV3"), Ok(None));
    }

    #[test]
    fn an_api_service_has_one_place_and_one_owner() {
        let of = |namespace: &str| {
            let service = json!({ "namespace": namespace, "name": "it" });
            json!({ "metadata": { "resourceVersion": "7" }, "spec": { "service": service } })
        };
        let expected = json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": "7" },
            { "op": "add", "path": "/spec/caBundle", "value": "bmV3" },
        ]);
        let registration =
            Registration::ApiService { name: "v1.x".to_owned(), service: "it".to_owned() };
        assert_eq!(registration.patch(&of("ours"), "ours", "bmV3"), Ok(Some(expected)));
        let why = registration.patch(&of("another"), "ours", "bmV3").unwrap_err();
        assert!(why.contains("belongs to Service another/it"), "{why}");
    }
}
