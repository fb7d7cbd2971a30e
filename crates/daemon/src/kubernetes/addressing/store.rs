//! Blocks, affinities and handles in the API server, as Calico's objects: its nodes may work on the same ones.
//!
//! A write carries the resourceVersion that it was decided by, and a deletion as well, so that the API server decides who
//! was first. What an object has that is unknown here stays in it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fairway_ipam::calico::{self, Cluster};
use fairway_ipam::{Key, Object, Owner, Selection, Store, StoreError, Version, Versioned};
use http::Method;
use kube::api::ListParams;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tracing::warn;

use super::super::api::{Api, LIST_TIMEOUT, Problem};
use super::super::page::ManagedFields;
use super::super::resource::{BLOCK_AFFINITY, IPAM_BLOCK, IPAM_HANDLE, Resource};

/// The time limit of one object: a runtime waits, and asks again.
const OBJECT_TIMEOUT: Duration = Duration::from_secs(10);
/// After an answer that did not come, the next question is asked so much later.
const AWAY: Duration = Duration::from_secs(2);
/// Objects of a page.
const PAGE_OBJECTS: u32 = 500;
/// Requests at the same time: each is a connection.
const REQUESTS_MAX: usize = 16;
/// Objects whose fields are remembered; those of others are read before a write.
const OBJECTS_MAX: usize = 256;

/// See the module.
pub(super) struct ApiStore {
    api: Api,
    turns: Semaphore,
    /// When the API server did not answer last, and how.
    failed: Mutex<Option<(Instant, String)>>,
    originals: Mutex<Originals>,
}

/// Blocks and affinities as the API server has them, in the order of their last use: text, which is a tenth of the memory.
#[derive(Default)]
struct Originals {
    texts: BTreeMap<Key, (Version, String)>,
    order: VecDeque<Key>,
}

impl Originals {
    fn put(&mut self, key: Key, version: Version, text: String) {
        if self.texts.insert(key.clone(), (version, text)).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > OBJECTS_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.texts.remove(&oldest);
            }
        }
    }

    fn remove(&mut self, key: &Key) {
        if self.texts.remove(key).is_some() {
            self.order.retain(|it| it != key);
        }
    }
}

fn resource(key: &Key) -> Resource {
    match key {
        Key::Block(_) => IPAM_BLOCK,
        Key::Affinity(..) => BLOCK_AFFINITY,
        Key::Handle(_) => IPAM_HANDLE,
    }
}

/// The path of an object.
fn path(key: &Key) -> Result<String, StoreError> {
    let name = calico::name(key).map_err(|it| StoreError::Unreadable(it.to_string()))?;
    Ok(format!("{}/{name}", resource(key).in_namespace("")))
}

fn failed(problem: Problem) -> StoreError {
    match problem.code {
        // 404: it is gone.
        Some(404 | 409) => StoreError::Conflict,
        // It is refused for what it is; anybody else may be served.
        Some(400 | 413 | 422) => StoreError::Unreadable(problem.to_string()),
        _ => StoreError::Unavailable(problem.to_string()),
    }
}

fn version(object: &Value) -> Result<Version, StoreError> {
    let text = |field: &str| Some(object.pointer(field)?.as_str()?.to_owned());
    let version = text("/metadata/uid").zip(text("/metadata/resourceVersion"));
    let unread = || StoreError::Unreadable("the answer has no uid and resourceVersion".to_owned());
    version.map(|(object, state)| Version { object, state }).ok_or_else(unread)
}

fn is_deleted(object: &Value) -> bool {
    match object.pointer("/spec/deleted") {
        Some(Value::Bool(it)) => *it,
        Some(Value::String(it)) => it == "true",
        _ => false,
    }
}

/// The object of an answer; `None` if it is marked as deleted.
pub(super) fn parse(
    resource: Resource,
    mut object: Value,
) -> Result<Option<Versioned<Object>>, StoreError> {
    if is_deleted(&object) {
        return Ok(None);
    }
    let version = version(&object)?;
    if let Some(fields) = object.as_object_mut() {
        // Those of a list lack them.
        fields.insert("apiVersion".to_owned(), resource.api_version.into());
        fields.insert("kind".to_owned(), resource.kind.into());
    }
    let mut cluster = Cluster::default();
    cluster.read(&object);
    let Cluster { blocks, affinities, handles, faults, .. } = cluster;
    let block = blocks.into_values().next().map(Object::Block);
    let affinity = || affinities.into_iter().next().map(Object::Affinity);
    let handle = || handles.into_values().next().map(Object::Handle);
    match block.or_else(affinity).or_else(handle) {
        Some(value) => Ok(Some(Versioned { value, version })),
        None => {
            let fault = faults.first().map(ToString::to_string).unwrap_or_default();
            Err(StoreError::Unreadable(format!("an object cannot be read: {fault}")))
        }
    }
}

impl ApiStore {
    pub(super) fn new(api: Api) -> Self {
        let (failed, originals) = Default::default();
        Self { api, turns: Semaphore::new(REQUESTS_MAX), failed, originals }
    }

    /// Waits for a turn to ask. While the API server does not answer, only one now and then does.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        let turn = self.turns.acquire().await;
        let turn = turn.map_err(|it| StoreError::Unavailable(it.to_string()))?;
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *failed {
            Some((at, reason)) if at.elapsed() < AWAY => {
                Err(StoreError::Unavailable(reason.clone()))
            }
            Some((at, _)) => {
                *at = Instant::now();
                Ok(turn)
            }
            None => Ok(turn),
        }
    }

    /// Notes whether the API server answers.
    fn heard<T>(&self, answer: Result<T, Problem>) -> Result<T, Problem> {
        let problem = answer.as_ref().err().filter(|it| it.code.is_none());
        let failed = problem.map(|it| (Instant::now(), it.to_string()));
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failed;
        answer
    }

    fn keep(&self, key: &Key, version: &Version, object: &Value) {
        if !matches!(key, Key::Handle(_)) {
            let mut originals = self.originals.lock().unwrap_or_else(PoisonError::into_inner);
            originals.put(key.clone(), version.clone(), object.to_string());
        }
    }

    fn forget(&self, key: &Key) {
        self.originals.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// The object as it is, marked as deleted or not.
    async fn original(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        let _turn = self.turn().await?;
        match self.heard(self.api.get(&path(key)?, OBJECT_TIMEOUT).await) {
            Ok(object) => Ok(Some(object)),
            Err(problem) if problem.code == Some(404) && is_of_object(&problem) => Ok(None),
            Err(problem) => Err(StoreError::Unavailable(problem.to_string())),
        }
    }

    /// The object of this version, with what is unknown here.
    async fn original_of(&self, key: &Key, expected: &Version) -> Result<Value, StoreError> {
        let kept = {
            let originals = self.originals.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = originals.texts.get(key).filter(|(version, _)| version == expected);
            kept.and_then(|(_, text)| serde_json::from_str(text).ok())
        };
        if let Some(object) = kept {
            return Ok(object);
        }
        let object = self.original(key).await?.ok_or(StoreError::Conflict)?;
        match version(&object)? == *expected {
            true => Ok(object),
            false => Err(StoreError::Conflict),
        }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value, Problem> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{separator}fieldManager={FIELD_MANAGER}");
        self.heard(self.api.send(method, &path, "application/json", body, OBJECT_TIMEOUT).await)
    }

    async fn create(&self, object: &Object) -> Result<Value, StoreError> {
        let key = object.key();
        let written =
            calico::write(object, None).map_err(|it| StoreError::Unreadable(it.to_string()))?;
        let collection = resource(&key).in_namespace("");
        let created = {
            let _turn = self.turn().await?;
            self.send(Method::POST, &collection, &written).await
        };
        match created {
            // Calico deletes in two steps, and may have died between them.
            Err(problem) if problem.code == Some(409) => match self.original(&key).await? {
                Some(before) if is_deleted(&before) => self.put(object, &before).await,
                _ => Err(StoreError::Conflict),
            },
            // The kind is not there.
            Err(problem) if problem.code == Some(404) => {
                Err(StoreError::Unavailable(problem.to_string()))
            }
            outcome => outcome.map_err(failed),
        }
    }

    async fn put(&self, object: &Object, before: &Value) -> Result<Value, StoreError> {
        let written = calico::write(object, Some(before))
            .map_err(|it| StoreError::Unreadable(it.to_string()))?;
        let _turn = self.turn().await?;
        self.send(Method::PUT, &path(&object.key())?, &written).await.map_err(failed)
    }
}

/// Who writes, as the API server notes it.
const FIELD_MANAGER: &str = "fairway-ipam";

/// Whether it is the object that is missing, and not its kind.
fn is_of_object(problem: &Problem) -> bool {
    problem.message.contains("\" not found")
}

impl Store for ApiStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned<Object>>, StoreError> {
        if calico::name(key).is_err() {
            // Nobody can have written it.
            return Ok(None);
        }
        let Some(object) = self.original(key).await? else { return Ok(None) };
        self.keep(key, &version(&object)?, &object);
        parse(resource(key), object)
    }

    async fn list(&self, selection: &Selection) -> Result<Vec<Versioned<Object>>, StoreError> {
        let resource = match selection {
            Selection::Blocks => IPAM_BLOCK,
            Selection::Affinities | Selection::AffinitiesOf(_) => BLOCK_AFFINITY,
            Selection::Handles => IPAM_HANDLE,
        };
        // Rows from before Calico set labels lack them: all are read, and chosen here.
        let mut listed = list(&self.api, resource).await?;
        if let Selection::AffinitiesOf(owner) = selection {
            listed.retain(|it| is_affinity_of(&it.value, owner));
        }
        listed.sort_by_cached_key(|it| it.value.key());
        Ok(listed)
    }

    async fn each_block(
        &self,
        take: impl FnMut(Versioned<Object>) + Send,
    ) -> Result<(), StoreError> {
        each(&self.api, IPAM_BLOCK, take).await
    }

    async fn write(
        &self,
        object: Object,
        expected: Option<&Version>,
    ) -> Result<Version, StoreError> {
        let key = object.key();
        let outcome = match expected {
            None => self.create(&object).await,
            Some(expected) => {
                let before = self.original_of(&key, expected).await?;
                self.put(&object, &before).await
            }
        };
        match outcome {
            Ok(written) => {
                let version = version(&written)?;
                self.keep(&key, &version, &written);
                Ok(version)
            }
            Err(error) => {
                self.forget(&key);
                Err(error)
            }
        }
    }

    async fn delete(&self, key: &Key, expected: &Version) -> Result<(), StoreError> {
        self.forget(key);
        let Version { object, state } = expected;
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": object, "resourceVersion": state},
        });
        let _turn = self.turn().await?;
        self.send(Method::DELETE, &path(key)?, &options).await.map(|_| ()).map_err(failed)
    }
}

fn is_affinity_of(object: &Object, owner: &Owner) -> bool {
    matches!(object, Object::Affinity(it) if it.owner == *owner)
}

/// All objects of a kind but those that are marked as deleted.
async fn list(api: &Api, resource: Resource) -> Result<Vec<Versioned<Object>>, StoreError> {
    let mut listed = Vec::new();
    each(api, resource, |object| listed.push(object)).await?;
    Ok(listed)
}

/// The same, one after the other.
async fn each(
    api: &Api,
    resource: Resource,
    mut take: impl FnMut(Versioned<Object>),
) -> Result<(), StoreError> {
    let read = for_each(api, resource, |item| match parse(resource, item) {
        Ok(object) => object.into_iter().for_each(&mut take),
        // The others are read all the same; what is where it is fails when it is asked for.
        Err(error) => warn!("{}: {error}", resource.plural),
    });
    read.await.map_err(|it| StoreError::Unavailable(it.to_string()))
}

/// Lists a kind, page by page. Each object says what it is, which those of a list do not.
pub(super) async fn for_each(
    api: &Api,
    resource: Resource,
    mut take: impl FnMut(Value),
) -> Result<(), Problem> {
    let mut continue_token = None;
    loop {
        let parameters =
            ListParams { limit: Some(PAGE_OBJECTS), continue_token, ..ListParams::default() };
        let request = kube::core::Request::new(resource.in_namespace("")).list(&parameters);
        let request = request.map_err(Problem::of_request)?;
        let page = api.list(request, ManagedFields::Read, LIST_TIMEOUT).await?;
        for mut item in page.items {
            if let Some(fields) = item.as_object_mut() {
                fields.insert("apiVersion".to_owned(), resource.api_version.into());
                fields.insert("kind".to_owned(), resource.kind.into());
            }
            take(item);
        }
        continue_token = page.continue_token;
        if continue_token.is_none() {
            return Ok(());
        }
    }
}
