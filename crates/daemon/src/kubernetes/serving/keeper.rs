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
    /// The certificate of the clients, whose CA the Secret holds as well.
    pub(in crate::kubernetes) clients: Option<watch::Receiver<Option<Identity>>>,
}

/// Never ends. Publishes each certificate as it comes.
pub(in crate::kubernetes) async fn keep(
    api: Api,
    kept: Kept,
    mut is_leading: watch::Receiver<bool>,
    tell: watch::Sender<Option<Identity>>,
) {
    let secrets = Resource::read(Kind::Secret).in_namespace(&api.namespace);
    let mut clients = kept.clients.clone();
    let keeper = Keeper { api, secrets, kept };
    let what = keeper.kept.what;
    let mut trouble = None;
    loop {
        let leads = *is_leading.borrow_and_update();
        let clients_now = clients.as_mut().and_then(|it| it.borrow_and_update().clone());
        let outcome = keeper.look(leads, clients_now.as_ref(), &tell).await;
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
        let other_clients = async {
            match &mut clients {
                Some(clients) => drop(clients.changed().await),
                None => std::future::pending().await,
            }
        };
        // Also woken by the end of the loop, which ends this task as well.
        let woken = async {
            tokio::select! {
                _ = is_leading.changed() => {}
                () = other_clients => {}
            }
        };
        let _ = timeout(pause, woken).await;
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
        clients: Option<&Identity>,
        tell: &watch::Sender<Option<Identity>>,
    ) -> Result<(), String> {
        let path = format!("{}/{}", self.secrets, self.kept.secret);
        let found = match self.api.get(&path, REQUEST_TIMEOUT).await {
            Ok(secret) => Some(secret),
            Err(Problem { code: Some(404), .. }) => None,
            Err(problem) => return Err(self.about_secret(problem)),
        };
        let identity = found.as_ref().map(Identity::of);
        let hosts = &self.kept.profile.hosts;
        let identity = match identity {
            Some(Ok(it)) if !leads || !it.is_to_be_replaced(hosts, epoch_seconds()) => {
                if leads && let (Some(found), Some(clients)) = (found, clients) {
                    self.follow_clients(found, clients).await?;
                }
                it
            }
            former if leads => {
                let former = former.and_then(Result::ok);
                self.replace(found, former.as_ref(), clients).await?
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
        match &self.kept.registration {
            Some(registration) if leads => self.vouch(registration, &ca_bundle).await,
            _ => Ok(()),
        }
    }

    fn about_secret(&self, problem: impl std::fmt::Display) -> String {
        format!("certificate in Secret {}: {problem}", self.kept.secret)
    }

    /// Writes a new certificate, into the Secret if it exists.
    async fn replace(
        &self,
        found: Option<Value>,
        former: Option<&Identity>,
        clients: Option<&Identity>,
    ) -> Result<Identity, String> {
        let mut data = issue(&self.kept.profile, former, epoch_seconds())
            .map_err(|error| self.about_secret(error))?;
        if let Some(clients) = clients {
            data.insert(CLIENT_AUTHORITIES.to_owned(), json!(clients.authorities));
        }
        let written = self.write(found, data.into()).await?;
        let (what, secret) = (self.kept.what, &self.kept.secret);
        info!(secret, hosts = ?self.kept.profile.hosts, "{what} has a new certificate");
        Identity::of(&written).map_err(|error| self.about_secret(error))
    }

    /// Writes the CA of the clients into the Secret, if it has another.
    async fn follow_clients(&self, found: Value, clients: &Identity) -> Result<(), String> {
        let stored = found.get("data").and_then(|it| it.get(CLIENT_AUTHORITIES)).cloned();
        let stored = stored.and_then(|it| serde_json::from_value::<ByteString>(it).ok());
        if stored.is_some_and(|it| it.0 == clients.authorities.as_bytes()) {
            return Ok(());
        }
        let data = json!({ CLIENT_AUTHORITIES: clients.authorities });
        self.write(Some(found), data).await.map(drop)
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
        let Some(patch) = registration.patch(&found, ca_bundle) else { return Ok(()) };
        let kind = "application/json-patch+json";
        let sent = self.api.send(Method::PATCH, &path, kind, &patch, REQUEST_TIMEOUT).await;
        sent.map_err(about)?;
        info!("the API server trusts {} now, by its {registration}", self.kept.what);
        Ok(())
    }
}
