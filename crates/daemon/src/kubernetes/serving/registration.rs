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
    /// The APIService of this name.
    ApiService(String),
}

impl fmt::Display for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Webhook(name) => write!(f, "ValidatingWebhookConfiguration {name}"),
            Self::ApiService(name) => write!(f, "APIService {name}"),
        }
    }
}

impl Registration {
    /// Its path in the API.
    pub(super) fn path(&self) -> String {
        let (resource, name) = match self {
            Self::Webhook(name) => (VALIDATING_WEBHOOK_CONFIGURATION, name),
            Self::ApiService(name) => (API_SERVICE, name),
        };
        format!("{}/{name}", resource.in_namespace(""))
    }

    /// The JSON patch (RFC 6902) that gives it this CA everywhere; `None` if it has it.
    pub(super) fn patch(&self, found: &Value, ca_bundle: &str) -> Option<Value> {
        let places = match self {
            Self::Webhook(_) => {
                let webhooks = found.get("webhooks").and_then(Value::as_array)?;
                let place = |position| format!("/webhooks/{position}/clientConfig/caBundle");
                (0..webhooks.len()).map(place).collect()
            }
            Self::ApiService(_) => vec!["/spec/caBundle".to_owned()],
        };
        let has_other =
            |place: &String| found.pointer(place).and_then(Value::as_str) != Some(ca_bundle);
        let add = |place| json!({ "op": "add", "path": place, "value": ca_bundle });
        let mut steps: Vec<Value> = places.into_iter().filter(has_other).map(add).collect();
        if steps.is_empty() {
            return None;
        }
        // The places are valid for this version only.
        let version = found.pointer("/metadata/resourceVersion")?;
        let path = "/metadata/resourceVersion";
        steps.insert(0, json!({ "op": "test", "path": path, "value": version }));
        Some(steps.into())
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
        assert_eq!(webhook.patch(&configuration, "bmV3"), Some(expected));
        let mut trusting = configuration;
        trusting["webhooks"][1]["clientConfig"]["caBundle"] = json!("bmV3");
        assert_eq!(webhook.patch(&trusting, "bmV3"), None);
        assert_eq!(webhook.patch(&json!({}), "bmV3"), None);
    }

    #[test]
    fn an_api_service_has_one_place() {
        let found = json!({ "metadata": { "resourceVersion": "7" }, "spec": {} });
        let expected = json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": "7" },
            { "op": "add", "path": "/spec/caBundle", "value": "bmV3" },
        ]);
        let service = Registration::ApiService("it".to_owned());
        assert_eq!(service.patch(&found, "bmV3"), Some(expected));
    }
}
