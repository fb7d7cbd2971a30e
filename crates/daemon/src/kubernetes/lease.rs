//! Reads and writes the Lease for a controller's core.
//!
//! The core decides which controller leads and for how long; this module has only the form of the object and
//! its timestamps, which are for people: no decision depends on a wall clock.

use fairway_cluster::{
    ADDRESSES_ANNOTATION, LEASE_DURATION, LeaseRecord, LeaseReply, LeaseRequest, WRITE_TIMEOUT,
};
use fairway_ground::Utc;
use http::Method;
use serde_json::{Value, json};
use tracing::{info, warn};

use super::api::{Api, Problem};
use super::resource::LEASE;

/// The name of the Lease, in the namespace of our objects.
const NAME: &str = "fairway-controller";

/// The requests for the Lease.
pub(super) struct LeaseEdge {
    api: Api,
    /// Since when the holder that was written last holds it, and its identity.
    acquired: Option<(String, String)>,
    troubled: Option<Problem>,
}

/// The answer to a request for the Lease.
pub(super) struct LeaseAnswer {
    reply: LeaseReply,
    problem: Option<Problem>,
}

impl LeaseEdge {
    pub(super) fn new(api: Api) -> Self {
        Self { api, acquired: None, troubled: None }
    }

    /// The request; nothing is sent before it is awaited. `epoch_seconds` is Unix time.
    pub(super) fn ask(
        &mut self,
        request: LeaseRequest,
        epoch_seconds: u64,
    ) -> impl Future<Output = LeaseAnswer> + Send + use<> {
        let api = self.api.clone();
        let now = Utc(epoch_seconds).rfc3339_micros();
        let write = match request {
            LeaseRequest::Read => None,
            LeaseRequest::Write { holder, transitions, resource_version, addresses } => {
                if self.acquired.as_ref().is_none_or(|(it, _)| *it != holder) {
                    self.acquired = Some((holder.clone(), now.clone()));
                }
                let since = self.acquired.as_ref().map(|(_, since)| since.as_str());
                let record = LeaseRecord {
                    holder,
                    transitions,
                    resource_version: resource_version.unwrap_or_default(),
                    addresses,
                };
                Some((document(&api.namespace, &record, since, &now), record))
            }
        };
        async move {
            let collection = LEASE.in_namespace(&api.namespace);
            let path = format!("{collection}/{NAME}");
            let answer = match write {
                None => api.get(&path, WRITE_TIMEOUT).await,
                Some((document, record)) => {
                    let (method, path) = match record.resource_version.as_str() {
                        "" => (Method::POST, collection),
                        _ => (Method::PUT, path),
                    };
                    api.send(method, &path, "application/json", &document, WRITE_TIMEOUT).await
                }
            };
            answered(answer)
        }
    }

    /// The reply for the core. A failure is logged once.
    pub(super) fn accept(&mut self, answer: LeaseAnswer) -> LeaseReply {
        let LeaseAnswer { reply, problem } = answer;
        match problem {
            Some(problem) if self.troubled.as_ref() != Some(&problem) => {
                warn!(
                    "cannot read or write the Lease {}/{NAME}: {problem}; trying again, a leader \
                     stops before the Lease expires",
                    self.api.namespace
                );
                self.troubled = Some(problem);
            }
            None if self.troubled.take().is_some() => {
                info!("the Lease can be read and written again")
            }
            _ => {}
        }
        reply
    }
}

fn document(namespace: &str, record: &LeaseRecord, since: Option<&str>, now: &str) -> Value {
    let mut metadata = json!({"name": NAME, "namespace": namespace});
    if let Some(metadata) = metadata.as_object_mut()
        && !record.resource_version.is_empty()
    {
        metadata.insert("resourceVersion".to_owned(), record.resource_version.clone().into());
    }
    if let Some(metadata) = metadata.as_object_mut()
        && let Some(addresses) = &record.addresses
    {
        metadata.insert("annotations".to_owned(), json!({ ADDRESSES_ANNOTATION: addresses }));
    }
    json!({
        "apiVersion": LEASE.api_version,
        "kind": LEASE.kind,
        "metadata": metadata,
        "spec": {
            "holderIdentity": record.holder,
            "leaseDurationSeconds": LEASE_DURATION.as_secs(),
            "leaseTransitions": record.transitions,
            "acquireTime": since,
            "renewTime": now,
        },
    })
}

fn answered(answer: Result<Value, Problem>) -> LeaseAnswer {
    let (reply, problem) = match answer {
        Ok(lease) => (record(&lease).map_or(LeaseReply::Failed, LeaseReply::Is), None),
        Err(problem) => match problem.code {
            Some(404) => (LeaseReply::Missing, None),
            Some(409) => (LeaseReply::Conflict, None),
            _ => (LeaseReply::Failed, Some(problem)),
        },
    };
    LeaseAnswer { reply, problem }
}

fn record(lease: &Value) -> Option<LeaseRecord> {
    let spec = lease.get("spec");
    let text = |field: &str| spec?.get(field)?.as_str();
    let resource_version = lease.get("metadata")?.get("resourceVersion")?.as_str()?.to_owned();
    let annotations = lease.get("metadata")?.get("annotations");
    let addresses = annotations.and_then(|it| it.get(ADDRESSES_ANNOTATION));
    Some(LeaseRecord {
        holder: text("holderIdentity").unwrap_or_default().to_owned(),
        transitions: spec.and_then(|it| it.get("leaseTransitions")?.as_u64()).unwrap_or_default(),
        resource_version,
        addresses: addresses.and_then(Value::as_str).map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_written_as_it_is_read() {
        let record_of = |lease: &Value| record(lease).unwrap();
        let written = LeaseRecord {
            holder: "pod_1".to_owned(),
            transitions: 3,
            resource_version: "12".to_owned(),
            addresses: Some("192.0.2.1-192.0.2.3".to_owned()),
        };
        let document = document("system", &written, Some("then"), "now");
        assert_eq!(record_of(&document), written);
        assert_eq!(document["spec"]["leaseDurationSeconds"], 15);
        let bare = json!({"metadata": {"resourceVersion": "1"}});
        let nobody = LeaseRecord {
            holder: String::new(),
            transitions: 0,
            resource_version: "1".to_owned(),
            addresses: None,
        };
        assert_eq!(record_of(&bare), nobody);
        assert_eq!(record(&json!({"spec": {}})), None);
    }

    #[test]
    fn only_what_a_core_cannot_act_upon_is_trouble() {
        let problem = |code| Problem { code, message: String::new() };
        let reply = |code| {
            let LeaseAnswer { reply, problem } = answered(Err(problem(code)));
            (reply, problem.is_some())
        };
        assert_eq!(reply(Some(404)), (LeaseReply::Missing, false));
        assert_eq!(reply(Some(409)), (LeaseReply::Conflict, false));
        assert_eq!(reply(Some(403)), (LeaseReply::Failed, true));
        assert_eq!(reply(None), (LeaseReply::Failed, true));
    }
}
