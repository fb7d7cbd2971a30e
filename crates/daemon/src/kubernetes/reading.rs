//! Sends a core's requests about kinds to the API server, and hands back the answers.
//!
//! One task per kind, replaced by the next request for it. The earlier request is dropped, and a late answer
//! to it is not handed in. Decides only what is logged: when a kind cannot be read, and when it can be read
//! again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairway_cluster::{ListedObject, PAGE_OBJECTS, Reply, Request, Trim};
use fairway_model::Kind;
use kube::api::{ListParams, WatchParams};
use serde::de::{DeserializeSeed, Deserializer};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::{info, warn};

use super::api::{Api, Event, LIST_TIMEOUT, Problem};
use super::page::Page;
use super::resource::Resource;
use crate::metrics::ClientCounters;

/// Answers in the queue for the core; a watch with more waits, and the server with it.
const NEWS_MAX: usize = 1024;
/// A watch ends after that, so that the load moves between API servers.
const WATCH_SECONDS: u32 = 290;
/// For how long a definition counts as there: of a thousand objects that a user deletes, not each one is a reason to
/// ask.
const DEFINITION_FRESH: Duration = Duration::from_millis(50);
/// A deletion waits for that long at most.
const DEFINITION_TIMEOUT: Duration = Duration::from_secs(5);

/// An answer about a kind.
pub(super) struct News {
    kind: Kind,
    serial: u64,
    reply: Reply,
    problem: Option<Problem>,
    /// When it arrived.
    pub(super) at: Instant,
}

/// Which objects of a kind are read; all of them by default.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    /// `fieldSelector`.
    pub(super) fields: Option<String>,
    /// `labelSelector`.
    pub(super) labels: Option<String>,
}

impl Selection {
    /// Objects with these values of fields.
    pub(super) fn of_fields(selector: &str) -> Self {
        Self { fields: Some(selector.to_owned()), labels: None }
    }
}

/// The requests in progress.
pub(super) struct Reading {
    api: Api,
    selections: BTreeMap<Kind, Selection>,
    trim: Trim,
    tell: mpsc::Sender<News>,
    asked: BTreeMap<Kind, (u64, AbortHandle)>,
    serial: u64,
    troubled: BTreeMap<Kind, Problem>,
}

impl Reading {
    /// No request yet. `selections` narrow the requests for a kind.
    pub(super) fn new(
        api: Api,
        selections: impl IntoIterator<Item = (Kind, Selection)>,
        trim: Trim,
    ) -> (Self, mpsc::Receiver<News>) {
        let (tell, news) = mpsc::channel(NEWS_MAX);
        let selections = selections.into_iter().collect();
        let (asked, troubled) = Default::default();
        (Self { api, selections, trim, tell, asked, serial: 0, troubled }, news)
    }

    /// The counters of requests and answers.
    pub(super) fn counters(&self) -> &Arc<ClientCounters> {
        &self.api.counters
    }

    /// Sends a request, in place of the earlier one for this kind.
    pub(super) fn ask(&mut self, kind: Kind, request: Request) {
        self.serial = self.serial.wrapping_add(1);
        let question = Question {
            api: self.api.clone(),
            kind,
            selection: self.selections.get(&kind).cloned().unwrap_or_default(),
            trim: self.trim,
            serial: self.serial,
            tell: self.tell.clone(),
        };
        let task = tokio::spawn(question.put(request)).abort_handle();
        if let Some((_, before)) = self.asked.insert(kind, (self.serial, task)) {
            before.abort();
        }
    }

    /// The reply for the core: none if a newer request replaced it.
    pub(super) fn accept(&mut self, news: News) -> Option<(Kind, Reply)> {
        let News { kind, serial, reply, problem, at: _ } = news;
        if self.asked.get(&kind).is_none_or(|(asked, _)| *asked != serial) {
            return None;
        }
        self.note(kind, problem, &reply);
        self.api.counters.updated(objects(&reply));
        Some((kind, reply))
    }

    /// Why requests for a kind fail, as it was logged.
    pub(super) fn problem(&self, kind: Kind) -> Option<String> {
        self.troubled.get(&kind).map(ToString::to_string)
    }

    fn note(&mut self, kind: Kind, problem: Option<Problem>, reply: &Reply) {
        let plural = Resource::read(kind).plural;
        match problem {
            Some(problem) => {
                if self.troubled.get(&kind).is_none_or(|it| !is_same(it, &problem)) {
                    let hint = hint(kind, &problem);
                    warn!(
                        "cannot read {plural}: {problem}{hint}; keeping what is known, trying again"
                    );
                    self.troubled.insert(kind, problem);
                }
            }
            None if matches!(reply, Reply::Gone | Reply::Closed | Reply::Undefined) => {}
            None => {
                if self.troubled.remove(&kind).is_some() {
                    info!("{plural} can be read again");
                }
            }
        }
    }
}

/// Whether a problem is the one before: some contain the time.
fn is_same(one: &Problem, other: &Problem) -> bool {
    let words = |it: &Problem| it.to_string().replace(|it: char| it.is_ascii_digit(), "");
    one.code == other.code && words(one) == words(other)
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.asked.values().for_each(|(_, task)| task.abort());
    }
}

/// The number of objects.
fn objects(reply: &Reply) -> usize {
    match reply {
        Reply::Listed { items, .. } => items.len(),
        Reply::Applied(_) | Reply::Deleted(_) => 1,
        _ => 0,
    }
}

/// The most likely cause.
fn hint(kind: Kind, problem: &Problem) -> &'static str {
    match problem.code {
        Some(403) => "; check that the service account has the permissions of deploy/",
        Some(404) if kind.is_ours() => "; check that the CustomResourceDefinitions are installed",
        _ => "",
    }
}

/// One request, and the channel for its answers.
struct Question {
    api: Api,
    kind: Kind,
    selection: Selection,
    trim: Trim,
    serial: u64,
    tell: mpsc::Sender<News>,
}

impl Question {
    async fn put(self, request: Request) {
        match request {
            Request::List { continue_token } => {
                let (reply, problem) = match self.list(continue_token).await {
                    // What it lacks may have gone with the definition.
                    Ok(_) if self.is_being_removed().await => (Reply::Undefined, None),
                    Ok(reply) => (reply, None),
                    Err(problem) => self.failure(problem).await,
                };
                self.say(reply, problem).await;
            }
            Request::Watch { resource_version } => {
                let (reply, problem) = match self.watch(&resource_version).await {
                    Ok(reply) => (reply, None),
                    Err(problem) => self.failure(problem).await,
                };
                self.say(reply, problem).await;
            }
        }
    }

    /// Returns whether there is still a receiver.
    async fn say(&self, reply: Reply, problem: Option<Problem>) -> bool {
        let at = Instant::now();
        let news = News { kind: self.kind, serial: self.serial, reply, problem, at };
        self.tell.send(news).await.is_ok()
    }

    fn collection(&self) -> kube::core::Request {
        let path = Resource::read(self.kind).collection(&self.api.namespace);
        kube::core::Request::new(path)
    }

    async fn list(&self, continue_token: Option<String>) -> Result<Reply, Problem> {
        let parameters = ListParams {
            limit: Some(PAGE_OBJECTS),
            continue_token,
            field_selector: self.selection.fields.clone(),
            label_selector: self.selection.labels.clone(),
            ..ListParams::default()
        };
        let request = self.collection().list(&parameters).map_err(Problem::of_request)?;
        let listed = Listed { kind: self.kind, trim: self.trim };
        let page = self.api.list(request, listed, LIST_TIMEOUT).await?;
        let Page { items, resource_version, continue_token } = page;
        Ok(Reply::Listed { items, resource_version, continue_token })
    }

    /// Returns how it ended.
    async fn watch(&self, version: &str) -> Result<Reply, Problem> {
        let parameters = WatchParams {
            timeout: Some(WATCH_SECONDS),
            bookmarks: true,
            field_selector: self.selection.fields.clone(),
            label_selector: self.selection.labels.clone(),
            ..WatchParams::default()
        };
        let request = self.collection().watch(&parameters, version).map_err(Problem::of_request)?;
        let mut watch = self.api.watch(request).await?;
        if !self.say(Reply::Opened, None).await {
            return Ok(Reply::Closed);
        }
        let mut defined_at = None;
        while let Some(event) = watch.next().await? {
            if let Event::Deleted(_) = event
                && defined_at.is_none_or(|at: Instant| at.elapsed() > DEFINITION_FRESH)
            {
                if self.is_being_removed().await {
                    return Ok(Reply::Undefined);
                }
                defined_at = Some(Instant::now());
            }
            let kept = |object| Arc::new(self.trim.object(self.kind, &object));
            let reply = match event {
                Event::Applied(object) => Reply::Applied(kept(object)),
                Event::Deleted(object) => Reply::Deleted(kept(object)),
                Event::Bookmark(version) => Reply::Bookmark(version),
            };
            if !self.say(reply, None).await {
                break;
            }
        }
        Ok(Reply::Closed)
    }

    /// 410 is an answer, and so are 404 of a kind without a definition, and 403 of one that a cluster may be without; every
    /// other failure is a problem.
    async fn failure(&self, problem: Problem) -> (Reply, Option<Problem>) {
        match problem.code {
            Some(410) => (Reply::Gone, None),
            // An earlier release's definitions and permissions are in force.
            Some(403 | 404) if self.kind.is_optional() => (Reply::Undefined, Some(problem)),
            Some(404) if self.is_being_removed().await => (Reply::Undefined, Some(problem)),
            _ => (Reply::Failed, Some(problem)),
        }
    }

    /// Whether the definition of the kind is gone, or is being removed: the API server deletes all objects first.
    /// Without an answer, or the permission to ask, it is there.
    async fn is_being_removed(&self) -> bool {
        let resource = Resource::read(self.kind);
        let Some(path) = resource.definition().filter(|_| self.kind.is_ours()) else {
            return false;
        };
        match self.api.get_metadata(&path, DEFINITION_TIMEOUT).await {
            Ok(definition) => definition.pointer("/metadata/deletionTimestamp").is_some(),
            // A server without definitions at all is a wrong one, and says nothing about this one.
            Err(problem) => problem.code == Some(404) && problem.message.contains(resource.plural),
        }
    }
}

/// How the objects of a list are read.
#[derive(Clone, Copy)]
struct Listed {
    kind: Kind,
    trim: Trim,
}

impl<'de> DeserializeSeed<'de> for Listed {
    type Value = ListedObject;

    fn deserialize<D: Deserializer<'de>>(self, object: D) -> Result<ListedObject, D::Error> {
        self.trim.listed(self.kind, Resource::read(self.kind).api_version, object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::super::api::ConnectionOptions;
    use super::*;

    /// An API server that deletes the one BGPPeer, and lists none then: what is told of it, if its definition is so.
    async fn told(request: Request, definition: Value) -> Reply {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let kubeconfig = json!({
            "clusters": [{"name": "it", "cluster": {"server": format!("http://{}", server.local_addr().unwrap())}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "users": [{"name": "it", "user": {}}],
            "current-context": "it",
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), kubeconfig.to_string()).unwrap();
        let kubeconfig = Some(file.path().to_owned());
        let options = ConnectionOptions { kubeconfig, namespace: None };
        let (mut reading, mut news) =
            Reading::new(Api::connect(&options).await.unwrap(), [], Trim::ROUTING);
        reading.ask(Kind::BgpPeer, request);
        let answering = async {
            loop {
                let (mut stream, _) = server.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let body = match () {
                    () if head.contains("customresourcedefinitions") => definition.clone(),
                    () if head.contains("watch=true") => {
                        json!({"type": "DELETED", "object": {"metadata": {"name": "a"}}})
                    }
                    () => json!({"metadata": {"resourceVersion": "2"}, "items": []}),
                };
                let body = format!("{body}\n");
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        };
        tokio::select! {
            () = answering => panic!("the server has ended"),
            reply = answered(&mut reading, &mut news) => reply,
        }
    }

    /// The first reply that is more than an open watch.
    async fn answered(reading: &mut Reading, news: &mut mpsc::Receiver<News>) -> Reply {
        loop {
            let (_, reply) = reading.accept(news.recv().await.unwrap()).unwrap();
            if !matches!(reply, Reply::Opened) {
                return reply;
            }
        }
    }

    #[tokio::test]
    async fn objects_that_go_with_their_definition_are_not_told_as_deleted() {
        let list = || Request::List { continue_token: None };
        let watch = || Request::Watch { resource_version: "1".to_owned() };
        let stays = || json!({"metadata": {"name": "bgppeers.metallb.io"}});
        let goes = || json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert!(matches!(told(list(), stays()).await, Reply::Listed { .. }));
        assert!(matches!(told(watch(), stays()).await, Reply::Deleted(_)));
        assert!(matches!(told(list(), goes()).await, Reply::Undefined));
        assert!(matches!(told(watch(), goes()).await, Reply::Undefined));
    }

    #[test]
    fn objects_of_a_list_say_what_they_are() {
        let page = json!({
            "metadata": {"resourceVersion": "12", "continue": "more"},
            "items": [{"metadata": {"name": "a"}}],
        });
        let listed = Listed { kind: Kind::BgpPeer, trim: Trim::ROUTING };
        let page = Page::of(&page.to_string(), listed).unwrap();
        assert_eq!(page.resource_version, "12");
        let wanted = json!({
            "kind": "BGPPeer", "apiVersion": "metallb.io/v1beta2", "metadata": {"name": "a"},
        });
        assert_eq!(page.items, [ListedObject::from(&wanted)]);
    }
}
