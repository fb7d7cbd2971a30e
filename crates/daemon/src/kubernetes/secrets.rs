//! Reads single Secrets for a speaker's core, only by name.
//!
//! The core decides which and when; one task for each. Logs when one cannot be read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairway_cluster::{SecretReply, Trim};
use fairway_model::{Kind, ObjectName};
use serde_json::Value;
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::api::{Api, Problem};
use super::resource::Resource;

/// Answers in the queue for the core.
const ANSWERS_MAX: usize = 64;
/// A request that takes longer has failed.
const GET_TIMEOUT: Duration = Duration::from_secs(10);

/// The answer about a Secret.
pub(super) struct SecretAnswer {
    pub(super) name: ObjectName,
    answer: Result<Value, Problem>,
}

/// The requests in progress.
pub(super) struct Secrets {
    api: Api,
    tell: mpsc::Sender<SecretAnswer>,
    troubled: BTreeMap<ObjectName, Problem>,
}

impl Secrets {
    pub(super) fn new(api: Api) -> (Self, mpsc::Receiver<SecretAnswer>) {
        let (tell, answers) = mpsc::channel(ANSWERS_MAX);
        (Self { api, tell, troubled: BTreeMap::new() }, answers)
    }

    /// Requests a Secret.
    pub(super) fn get(&self, name: ObjectName) {
        let (api, tell) = (self.api.clone(), self.tell.clone());
        tokio::spawn(async move {
            let resource = Resource::read(Kind::Secret);
            let path = format!("{}/{}", resource.in_namespace(&name.namespace), name.name);
            let answer = api.get(&path, GET_TIMEOUT).await;
            // The receiver may be gone when the process ends.
            let _ = tell.send(SecretAnswer { name, answer }).await;
        });
    }

    /// The reply for the core.
    pub(super) fn accept(&mut self, answer: SecretAnswer) -> (ObjectName, SecretReply) {
        let SecretAnswer { name, answer } = answer;
        let reply = match answer {
            Ok(secret) => {
                if self.troubled.remove(&name).is_some() {
                    info!(secret = %name, "the Secret can be read again");
                }
                SecretReply::Is(Arc::new(Trim::ROUTING.object(Kind::Secret, &secret)))
            }
            Err(Problem { code: Some(404), .. }) => {
                self.troubled.remove(&name);
                SecretReply::Missing
            }
            Err(problem) => {
                if self.troubled.get(&name) != Some(&problem) {
                    warn!(
                        secret = %name,
                        "cannot read the Secret: {problem}; its last known version stays in use, \
                         and without one the peers that need it wait"
                    );
                    self.troubled.insert(name.clone(), problem);
                }
                SecretReply::Failed
            }
        };
        (name, reply)
    }
}
