//! Sends a core's writes to the API server, and hands back the results.
//!
//! One task per write, as many as the core has in progress. Decides nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use fairway_cluster::{ObjectWrite, WriteHow, WriteReply, WrittenKind};
use fairway_model::ObjectName;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::api::{Api, Problem};
use super::resource::Resource;

/// Answers in the queue for the core, which never has more in progress.
const WRITTEN_MAX: usize = 256;

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) kind: WrittenKind,
    pub(super) name: ObjectName,
    pub(super) reply: WriteReply,
    problem: Option<Problem>,
}

/// The writes in progress.
pub(super) struct Writing {
    api: Api,
    field_manager: &'static str,
    tell: mpsc::Sender<Written>,
    tasks: JoinSet<()>,
    troubled: BTreeMap<WrittenKind, Problem>,
}

impl Writing {
    /// Writes as `field_manager`.
    pub(super) fn new(api: Api, field_manager: &'static str) -> (Self, mpsc::Receiver<Written>) {
        let (tell, written) = mpsc::channel(WRITTEN_MAX);
        let (tasks, troubled) = Default::default();
        (Self { api, field_manager, tell, tasks, troubled }, written)
    }

    /// Sends a write with the time limit `limit`.
    pub(super) fn write(&mut self, write: ObjectWrite, limit: Duration) {
        while self.tasks.try_join_next().is_some() {}
        let (api, manager, tell) = (self.api.clone(), self.field_manager, self.tell.clone());
        self.tasks.spawn(async move {
            let (kind, name) = (write.kind, write.name.clone());
            let (reply, problem) = match carry_out(&api, manager, write, limit).await {
                Ok(_) => (WriteReply::Done, None),
                Err(problem) => (reply_to(&problem), Some(problem)),
            };
            // The receiver may be gone when the process ends.
            let _ = tell.send(Written { kind, name, reply, problem }).await;
        });
    }

    /// Logs what an administrator can correct.
    pub(super) fn note(&mut self, written: &Written) {
        let Written { kind, name, reply, problem } = written;
        let plural = Resource::written(*kind).plural;
        let is_news = || self.troubled.get(kind) != problem.as_ref();
        match (reply, problem) {
            (WriteReply::Failed, Some(problem)) if is_news() => {
                warn!("cannot write {plural} {name}: {problem}; trying again");
                self.troubled.insert(*kind, problem.clone());
            }
            (WriteReply::Done, _) if self.troubled.remove(kind).is_some() => {
                info!("{plural} can be written again");
            }
            _ => {}
        }
    }

    /// Waits until all are answered.
    pub(super) async fn finish(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

fn reply_to(problem: &Problem) -> WriteReply {
    match problem.code {
        Some(404) => WriteReply::Missing,
        Some(409) => WriteReply::Conflict,
        _ => WriteReply::Failed,
    }
}

async fn carry_out(
    api: &Api,
    manager: &str,
    write: ObjectWrite,
    limit: Duration,
) -> Result<Value, Problem> {
    let ObjectWrite { kind, name, how, .. } = write;
    let resource = Resource::written(kind);
    let path = format!("{}/{}", resource.in_namespace(&name.namespace), name.name);
    let (method, path, content_type, body) = match how {
        WriteHow::MergeStatus(patch) => (
            Method::PATCH,
            format!("{path}/status?fieldManager={manager}"),
            "application/merge-patch+json",
            patch,
        ),
        WriteHow::Apply(object) => (
            Method::PATCH,
            format!("{path}?fieldManager={manager}&force=true"),
            "application/apply-patch+yaml",
            object,
        ),
        WriteHow::ApplyStatus(object) => (
            Method::PATCH,
            format!("{path}/status?fieldManager={manager}&force=true"),
            "application/apply-patch+yaml",
            object,
        ),
        WriteHow::Delete => {
            let options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
            (Method::DELETE, path, "application/json", options)
        }
    };
    api.send(method, &path, content_type, &body, limit).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_told_what_it_can_act_upon() {
        let problem = |code| Problem { code, message: String::new() };
        assert_eq!(reply_to(&problem(Some(409))), WriteReply::Conflict);
        assert_eq!(reply_to(&problem(Some(404))), WriteReply::Missing);
        for other in [None, Some(403), Some(429), Some(500)] {
            assert_eq!(reply_to(&problem(other)), WriteReply::Failed);
        }
    }
}
