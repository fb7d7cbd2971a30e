//! Get and list: the present state of the storage, or the cache of a replica.

use super::ApiServer;
use crate::definition::ResourceDefinition;
use crate::request::{Query, Request, Response, VersionMatch};
use crate::selector::Selector;
use crate::status::Status;
use crate::storage::Key;
use serde_json::{Value, json};

/// The content of a page's token: the version of the whole list, and the last returned object.
struct Token {
    revision: u64,
    namespace: String,
    name: String,
}

impl Token {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let revision = parts.next()?.parse().ok()?;
        let (namespace, name) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        Some(Self { revision, namespace, name })
    }

    fn write(&self) -> String {
        format!("{}:{}:{}", self.revision, self.namespace, self.name)
    }
}

impl ApiServer {
    pub(crate) fn get(
        &self,
        resource: usize,
        replica: usize,
        request: &Request,
    ) -> Result<Response, Status> {
        let key = Key::new(resource, &request.namespace, &request.name);
        let revision = match asked_version(&request.query)? {
            None => self.storage.revision(),
            Some(asked) => self.cached(replica, asked)?,
        };
        let object = self.storage.get_at(&key, revision);
        let object = object.ok_or_else(|| Status::not_found(&request.resource, &request.name))?;
        Ok(Response { code: 200, body: Value::clone(&object) })
    }

    pub(crate) fn list(
        &self,
        resource: usize,
        replica: usize,
        request: &Request,
    ) -> Result<Response, Status> {
        let selector = Selector::of(request)?;
        let (revision, after) = self.version_to_list(resource, replica, &request.query)?;
        let collection = self.storage.collection_at(resource, revision);
        let mut objects = collection.iter().filter(|(key, object)| {
            after.as_ref().is_none_or(|after| *key > after) && selector.matches(object)
        });
        let limit = if request.query.limit == 0 { usize::MAX } else { request.query.limit };
        let page: Vec<_> = objects.by_ref().take(limit).collect();
        let remaining = objects.count();
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if let (Some((key, _)), true, Some(metadata)) =
            (page.last(), remaining > 0, metadata.as_object_mut())
        {
            let (namespace, name) = (key.namespace.clone(), key.name.clone());
            let token = Token { revision, namespace, name }.write();
            metadata.insert("continue".to_owned(), json!(token));
            if selects_all(&request.query) {
                metadata.insert("remainingItemCount".to_owned(), json!(remaining));
            }
        }
        let definition = self.definitions.get(resource).ok_or_else(Status::unknown_resource)?;
        let items = page.into_iter().map(|(_, object)| item(definition, object)).collect();
        let body = json!({
            "kind": format!("{}List", definition.kind),
            "apiVersion": definition.resource.api_version(),
            "metadata": metadata,
            "items": Value::Array(items),
        });
        Ok(Response { code: 200, body })
    }

    /// The version to answer from, and the object after which to begin.
    fn version_to_list(
        &self,
        resource: usize,
        replica: usize,
        query: &Query,
    ) -> Result<(u64, Option<Key>), Status> {
        if let Some(token) = &query.continue_token {
            let invalid = || Status::bad_request("invalid continue token");
            let token = Token::parse(token).ok_or_else(invalid)?;
            if token.revision < self.replica(replica).oldest || token.revision > self.revision() {
                return Err(Status::continue_expired());
            }
            let after = Key::new(resource, &token.namespace, &token.name);
            return Ok((token.revision, Some(after)));
        }
        let asked = asked_version(query)?;
        match (asked, query.resource_version_match) {
            (None, Some(_)) => Err(Status::invalid_list_options(
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            )),
            (None, None) => Ok((self.storage.revision(), None)),
            (Some(0), Some(VersionMatch::Exact)) => Err(Status::invalid_list_options(
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            )),
            (Some(asked), Some(VersionMatch::Exact)) => {
                let (oldest, latest) = (self.replica(replica).oldest, self.revision());
                if asked < oldest {
                    return Err(Status::too_old(asked, oldest));
                }
                if asked > latest {
                    return Err(Status::too_large_exact(asked, latest));
                }
                Ok((asked, None))
            }
            // With a limit and a version, and without a match, the real server reads that exact
            // version where it still can; "not older than" covers both.
            (Some(asked), _) => Ok((self.cached(replica, asked)?, None)),
        }
    }

    /// The version of a replica's cache, if it is not older than `asked`. The real server waits
    /// three seconds for it, and then returns the same error.
    fn cached(&self, replica: usize, asked: u64) -> Result<u64, Status> {
        let seen = self.replica(replica).seen;
        if asked > seen { Err(Status::too_large(asked, seen)) } else { Ok(seen) }
    }
}

/// None: the latest.
pub(crate) fn asked_version(query: &Query) -> Result<Option<u64>, Status> {
    match query.resource_version.as_deref() {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            Status::bad_request(&format!(
                "invalid resource version: resourceVersion: Invalid value: \"{text}\": \
                 strconv.ParseUint: parsing \"{text}\": invalid syntax"
            ))
        }),
    }
}

const fn selects_all(query: &Query) -> bool {
    query.label_selector.is_none() && query.field_selector.is_none()
}

/// An item of a list: built-in kinds omit the type, which is that of the list.
fn item(definition: &ResourceDefinition, object: &Value) -> Value {
    let mut item = object.clone();
    if let (false, Some(fields)) = (definition.custom, item.as_object_mut()) {
        fields.shift_remove("kind");
        fields.shift_remove("apiVersion");
    }
    item
}
