//! Keeps the certificate: reads the Secret, and, in the leading controller, issues it, renews it and
//! registers its CA at the API server.
//!
//! Only the leader writes, so all controllers present the certificate that the API server knows. Failures are
//! retried; meanwhile the last certificate stays in use.

use std::time::Duration;

use fairway_model::Kind;
use http::Method;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};

use super::WebhookOptions;
use super::certificate::{Identity, issue};
use crate::host::epoch_seconds;
use crate::kubernetes::api::{Api, Problem};
use crate::kubernetes::resource::{Resource, VALIDATING_WEBHOOK_CONFIGURATION};
use crate::metrics::HttpListen;

/// How often the state is checked, and how often while something is wrong.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Never ends. Publishes each certificate as it comes.
pub(super) async fn keep(
    api: Api,
    options: WebhookOptions,
    mut is_leading: watch::Receiver<bool>,
    tell: watch::Sender<Option<Identity>>,
) {
    let keeper = Keeper {
        secrets: Resource::read(Kind::Secret).in_namespace(&api.namespace),
        secret: format!("{}-cert", options.name),
        hosts: hosts(&options, &api.namespace),
        name: options.name,
        api,
    };
    let mut trouble = None;
    loop {
        let leads = *is_leading.borrow_and_update();
        let outcome = keeper.look(leads, &tell).await;
        let pause = if outcome.is_ok() { LOOK_INTERVAL } else { RETRY_INTERVAL };
        let problem = outcome.err();
        match &problem {
            Some(problem) if trouble.as_ref() != Some(problem) => warn!("webhook: {problem}"),
            None if trouble.is_some() => {
                info!("webhook: certificate and configuration are in order again")
            }
            _ => {}
        }
        trouble = problem;
        // Also woken by the end of the loop, which ends this task as well.
        let _ = timeout(pause, is_leading.changed()).await;
    }
}

/// The hosts of the certificate: the names of the Service, or an address in the configuration.
fn hosts(options: &WebhookOptions, namespace: &str) -> Vec<String> {
    let service = format!("{}.{namespace}.svc", options.name);
    let address = match options.listen {
        HttpListen::At(address) if !address.ip().is_unspecified() => Some(address.ip()),
        _ => None,
    };
    [service].into_iter().chain(address.map(|it| it.to_string())).collect()
}

struct Keeper {
    api: Api,
    /// The path of Secrets.
    secrets: String,
    /// The name of our Secret.
    secret: String,
    hosts: Vec<String>,
    name: String,
}

impl Keeper {
    /// Checks the state and corrects it. Returns what is wrong.
    async fn look(
        &self,
        leads: bool,
        tell: &watch::Sender<Option<Identity>>,
    ) -> Result<(), String> {
        let path = format!("{}/{}", self.secrets, self.secret);
        let found = match self.api.get(&path, REQUEST_TIMEOUT).await {
            Ok(secret) => Some(secret),
            Err(Problem { code: Some(404), .. }) => None,
            Err(problem) => return Err(self.about_secret(problem)),
        };
        let identity = found.as_ref().map(Identity::of);
        let identity = match identity {
            Some(Ok(it)) if !leads || !it.is_to_be_replaced(&self.hosts, epoch_seconds()) => it,
            former if leads => {
                let former = former.and_then(Result::ok);
                self.replace(found, former.as_ref()).await?
            }
            Some(Err(error)) => return Err(self.about_secret(error)),
            _ => return Err(self.about_secret("the leading controller has not created it yet")),
        };
        let ca_bundle = identity.ca_bundle.clone();
        tell.send_if_modified(|told| {
            let is_other = told.as_ref().is_none_or(|it| it.ca_bundle != ca_bundle);
            if is_other {
                *told = Some(identity);
            }
            is_other
        });
        if leads {
            self.vouch(&ca_bundle).await?;
        }
        Ok(())
    }

    fn about_secret(&self, problem: impl std::fmt::Display) -> String {
        format!("certificate in Secret {}: {problem}", self.secret)
    }

    /// Writes a new certificate, into the Secret if it exists.
    async fn replace(
        &self,
        found: Option<Value>,
        former: Option<&Identity>,
    ) -> Result<Identity, String> {
        let data = issue(&self.hosts, former, epoch_seconds())
            .map_err(|error| self.about_secret(error))?;
        let (method, path, secret) = match found {
            Some(Value::Object(secret)) => {
                (Method::PUT, format!("{}/{}", self.secrets, self.secret), secret)
            }
            _ => (Method::POST, self.secrets.clone(), self.new_secret()),
        };
        let mut secret = secret;
        secret.insert("stringData".to_owned(), data);
        let body = Value::Object(secret);
        let written =
            self.api.send(method, &path, "application/json", &body, REQUEST_TIMEOUT).await;
        let written = written.map_err(|problem| self.about_secret(problem))?;
        info!(secret = self.secret, hosts = ?self.hosts, "the webhook has a new certificate");
        Identity::of(&written).map_err(|error| self.about_secret(error))
    }

    fn new_secret(&self) -> Map<String, Value> {
        let metadata = json!({ "name": self.secret, "namespace": self.api.namespace });
        let fields = [
            ("apiVersion", json!("v1")),
            ("kind", json!("Secret")),
            ("metadata", metadata),
            ("type", json!("Opaque")),
        ];
        fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// Registers the CA at the API server.
    async fn vouch(&self, ca_bundle: &str) -> Result<(), String> {
        let about = |problem: Problem| {
            format!(
                "ValidatingWebhookConfiguration {}: {problem}; the webhook is not called",
                self.name
            )
        };
        let collection = VALIDATING_WEBHOOK_CONFIGURATION.in_namespace("");
        let path = format!("{collection}/{}", self.name);
        let found = self.api.get(&path, REQUEST_TIMEOUT).await.map_err(about)?;
        let Some(patch) = patch(&found, ca_bundle) else { return Ok(()) };
        let kind = "application/json-patch+json";
        let sent = self.api.send(Method::PATCH, &path, kind, &patch, REQUEST_TIMEOUT).await;
        sent.map_err(about)?;
        info!(configuration = self.name, "the API server trusts the webhook now");
        Ok(())
    }
}

/// The JSON patch (RFC 6902) that gives all its webhooks this CA; `None` if they have it.
fn patch(configuration: &Value, ca_bundle: &str) -> Option<Value> {
    let webhooks = configuration.get("webhooks").and_then(Value::as_array)?;
    let others = webhooks.iter().enumerate().filter(|(_, webhook)| {
        webhook.pointer("/clientConfig/caBundle").and_then(Value::as_str) != Some(ca_bundle)
    });
    let mut steps: Vec<Value> = others
        .map(|(position, _)| {
            let path = format!("/webhooks/{position}/clientConfig/caBundle");
            json!({ "op": "add", "path": path, "value": ca_bundle })
        })
        .collect();
    if steps.is_empty() {
        return None;
    }
    // The positions are valid for this version only.
    let version = configuration.pointer("/metadata/resourceVersion")?;
    let path = "/metadata/resourceVersion";
    steps.insert(0, json!({ "op": "test", "path": path, "value": version }));
    Some(steps.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_names_the_service_and_the_address() {
        let options = |listen: &str| WebhookOptions {
            listen: listen.parse().unwrap(),
            name: "fairway-webhook".to_owned(),
        };
        let service = "fairway-webhook.metallb-system.svc";
        assert_eq!(hosts(&options(":9443"), "metallb-system"), [service]);
        assert_eq!(hosts(&options("0.0.0.0:9443"), "metallb-system"), [service]);
        assert_eq!(hosts(&options("192.0.2.1:9443"), "metallb-system"), [service, "192.0.2.1"]);
    }

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
        assert_eq!(patch(&configuration, "bmV3"), Some(expected));
        let mut trusting = configuration;
        trusting["webhooks"][1]["clientConfig"]["caBundle"] = json!("bmV3");
        assert_eq!(patch(&trusting, "bmV3"), None);
        assert_eq!(patch(&json!({}), "bmV3"), None);
    }
}
