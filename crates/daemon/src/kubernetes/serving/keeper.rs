//! Keeps a certificate: reads the Secret, and, in the leading controller, issues it, renews it and registers its
//! CA at the API server.
//!
//! Only the leader writes, so all controllers present the certificate that the API server knows. Failures are
//! retried; meanwhile the last certificate stays in use.

use std::time::Duration;

use fairway_model::Kind;
use http::Method;
use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};

use super::certificate::{Identity, Profile, issue};
use super::registration::Registration;
use crate::host::epoch_seconds;
use crate::kubernetes::api::{Api, Problem};
use crate::kubernetes::resource::Resource;

/// How often the state is checked, and how often while something is wrong.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The key of the Secret with the CA of the clients of its server.
const CLIENT_AUTHORITIES: &str = "client-ca.crt";

/// Which certificate is kept, and who is told of it.
pub(in crate::kubernetes) struct Kept {
    /// What it is of, for the log.
    pub(in crate::kubernetes) what: &'static str,
    /// The name of the Secret.
    pub(in crate::kubernetes) secret: String,
    pub(in crate::kubernetes) profile: Profile,
    /// Where the API server learns of its CA.
    pub(in crate::kubernetes) registration: Option<Registration>,
    /// The Secret with the certificate of the clients, whose CA this one holds as well.
    pub(in crate::kubernetes) clients: Option<String>,
}

/// Never ends. Publishes each certificate as it comes.
pub(in crate::kubernetes) async fn keep(
    api: Api,
    kept: Kept,
    mut is_leading: watch::Receiver<bool>,
    tell: watch::Sender<Option<Identity>>,
) {
    let secrets = Resource::read(Kind::Secret).in_namespace(&api.namespace);
    let keeper = Keeper { api, secrets, kept };
    let what = keeper.kept.what;
    let mut trouble = None;
    loop {
        let leads = *is_leading.borrow_and_update();
        let outcome = keeper.look(leads, &tell).await;
        let pause = if outcome.is_ok() { LOOK_INTERVAL } else { RETRY_INTERVAL };
        let problem = outcome.err();
        match &problem {
            Some(problem) if trouble.as_ref() != Some(problem) => warn!("{what}: {problem}"),
            None if trouble.is_some() => {
                info!("{what}: certificate and configuration are in order again");
            }
            _ => {}
        }
        trouble = problem;
        // Also woken by the end of the loop, which ends this task as well.
        let _ = timeout(pause, is_leading.changed()).await;
    }
}

struct Keeper {
    api: Api,
    /// The path of Secrets.
    secrets: String,
    kept: Kept,
}

impl Keeper {
    /// Checks the state and corrects it. Returns what is wrong.
    async fn look(
        &self,
        leads: bool,
        tell: &watch::Sender<Option<Identity>>,
    ) -> Result<(), String> {
        let found = self.find(&self.kept.secret).await?;
        let identity = found.as_ref().map(Identity::of);
        let hosts = &self.kept.profile.hosts;
        let (secret, identity) = match (found, identity) {
            (Some(found), Some(Ok(it)))
                if !leads || !it.is_to_be_replaced(hosts, epoch_seconds()) =>
            {
                (found, it)
            }
            (found, former) if leads => {
                self.replace(found, former.and_then(Result::ok).as_ref()).await?
            }
            (_, Some(Err(error))) => return Err(self.about_secret(error)),
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
        if !leads {
            return Ok(());
        }
        if let Some(clients) = &self.kept.clients {
            self.follow_clients(secret, clients).await?;
        }
        match &self.kept.registration {
            Some(registration) => self.vouch(registration, &ca_bundle).await,
            None => Ok(()),
        }
    }

    /// The Secret of this name, if there is one.
    async fn find(&self, name: &str) -> Result<Option<Value>, String> {
        match self.api.get(&format!("{}/{name}", self.secrets), REQUEST_TIMEOUT).await {
            Ok(secret) => Ok(Some(secret)),
            Err(Problem { code: Some(404), .. }) => Ok(None),
            Err(problem) => Err(self.about_secret(problem)),
        }
    }

    fn about_secret(&self, problem: impl std::fmt::Display) -> String {
        format!("certificate in Secret {}: {problem}", self.kept.secret)
    }

    /// Writes a new certificate, into the Secret if it exists. Returns the Secret with it.
    async fn replace(
        &self,
        found: Option<Value>,
        former: Option<&Identity>,
    ) -> Result<(Value, Identity), String> {
        let data = issue(&self.kept.profile, former, epoch_seconds())
            .map_err(|error| self.about_secret(error))?;
        let written = self.write(found, data.into()).await?;
        let (what, secret) = (self.kept.what, &self.kept.secret);
        info!(secret, hosts = ?self.kept.profile.hosts, "{what} has a new certificate");
        let identity = Identity::of(&written).map_err(|error| self.about_secret(error))?;
        Ok((written, identity))
    }

    /// Writes the CA of the clients, as it is stored now, into the Secret, if that has another.
    async fn follow_clients(&self, secret: Value, clients: &str) -> Result<(), String> {
        let of_clients = self.find(clients).await?.as_ref().map(Identity::of);
        let Some(Ok(identity)) = of_clients else {
            return Err(format!(
                "Secret {clients} has no certificate yet, whose holders may connect"
            ));
        };
        let stored = secret.get("data").and_then(|it| it.get(CLIENT_AUTHORITIES)).cloned();
        let stored = stored.and_then(|it| serde_json::from_value::<ByteString>(it).ok());
        if stored.is_some_and(|it| it.0 == identity.authorities.as_bytes()) {
            return Ok(());
        }
        let data = json!({ CLIENT_AUTHORITIES: identity.authorities });
        self.write(Some(secret), data).await.map(drop)
    }

    async fn write(&self, found: Option<Value>, data: Value) -> Result<Value, String> {
        let (method, path, mut secret) = match found {
            Some(Value::Object(secret)) => {
                (Method::PUT, format!("{}/{}", self.secrets, self.kept.secret), secret)
            }
            _ => (Method::POST, self.secrets.clone(), self.new_secret()),
        };
        secret.insert("stringData".to_owned(), data);
        let body = Value::Object(secret);
        let written =
            self.api.send(method, &path, "application/json", &body, REQUEST_TIMEOUT).await;
        written.map_err(|problem| self.about_secret(problem))
    }

    fn new_secret(&self) -> Map<String, Value> {
        let metadata = json!({ "name": self.kept.secret, "namespace": self.api.namespace });
        let fields = [
            ("apiVersion", json!("v1")),
            ("kind", json!("Secret")),
            ("metadata", metadata),
            ("type", json!("Opaque")),
        ];
        fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// Registers the CA at the API server.
    async fn vouch(&self, registration: &Registration, ca_bundle: &str) -> Result<(), String> {
        let about = |problem: Problem| format!("{registration}: {problem}; it is not called");
        let path = registration.path();
        let found = self.api.get(&path, REQUEST_TIMEOUT).await.map_err(about)?;
        let patch = registration.patch(&found, &self.api.namespace, ca_bundle);
        let Some(patch) = patch? else { return Ok(()) };
        let kind = "application/json-patch+json";
        let sent = self.api.send(Method::PATCH, &path, kind, &patch, REQUEST_TIMEOUT).await;
        sent.map_err(about)?;
        info!("the API server trusts {} now, by its {registration}", self.kept.what);
        Ok(())
    }
}
