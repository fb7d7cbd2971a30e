//! Requests and answers as plain values, into which an HTTP layer converts its own.

use serde_json::Value;

/// A resource as in a URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// `metallb.io`; empty for the core group.
    pub group: String,
    /// `v1beta2`.
    pub version: String,
    /// `bgppeers`.
    pub plural: String,
}

impl Resource {
    /// A resource of a named group.
    pub fn new(group: &str, version: &str, plural: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), plural: plural.to_owned() }
    }

    /// A resource of the core group, version 1.
    pub fn core(plural: &str) -> Self {
        Self::new("", "v1", plural)
    }

    /// As in objects: `v1`, `metallb.io/v1beta2`.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// As in messages: `services`, `bgppeers.metallb.io`.
    pub fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }
}

/// The operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// One object.
    Get,
    /// All objects of a resource, in one namespace or in all.
    List,
    /// Their changes; goes to [`crate::ApiServer::watch`].
    Watch,
    /// A new object.
    Create,
    /// Replaces the whole object (PUT).
    Update,
    /// JSON merge patch (RFC 7396).
    MergePatch,
    /// Server-side apply: the fields that one field manager wants.
    Apply,
    /// Deletes one object.
    Delete,
}

/// The meaning of `resourceVersion` in a list (`resourceVersionMatch`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionMatch {
    /// At least as new.
    NotOlderThan,
    /// As it was at this version.
    Exact,
}

/// The query of a URL. The default has no options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// `None` and `""` mean the latest state; `"0"` any state that the replica has.
    pub resource_version: Option<String>,
    /// Without it: not older than.
    pub resource_version_match: Option<VersionMatch>,
    /// Objects per page; 0 means all in one.
    pub limit: usize,
    /// Where the next page begins, from the last answer.
    pub continue_token: Option<String>,
    /// `a=b,c!=d,e,!f,g in (h,i)`.
    pub label_selector: Option<String>,
    /// `metadata.name=x`; also `metadata.namespace`, and `type` and `spec.*` fields by path.
    pub field_selector: Option<String>,
    /// After how long a watch ends; the server's own limit without it.
    pub timeout_seconds: Option<u64>,
    /// BOOKMARK events are accepted.
    pub allow_watch_bookmarks: bool,
    /// The watch begins with the existing objects, and marks their end.
    pub send_initial_events: bool,
    /// The owner of what is written; without it, the user.
    pub field_manager: Option<String>,
    /// An apply takes fields from other owners.
    pub force: bool,
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The operation.
    pub verb: Verb,
    /// The resource.
    pub resource: Resource,
    /// Empty: all namespaces, or a resource without any.
    pub namespace: String,
    /// Empty for lists, watches and creations.
    pub name: String,
    /// The status subresource is meant.
    pub status: bool,
    /// The rest of the URL.
    pub query: Query,
    /// The object, the patch, or the options of a deletion; null without.
    pub body: Value,
    /// The user of the request.
    pub user: String,
}

impl Request {
    fn new(verb: Verb, resource: &Resource, namespace: &str, name: &str, body: Value) -> Self {
        Self {
            verb,
            resource: resource.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            status: false,
            query: Query::default(),
            body,
            user: "client".to_owned(),
        }
    }

    /// One object, as it is now.
    pub fn get(resource: &Resource, namespace: &str, name: &str) -> Self {
        Self::new(Verb::Get, resource, namespace, name, Value::Null)
    }

    /// All objects of a namespace, or of all (`""`), as they are now.
    pub fn list(resource: &Resource, namespace: &str) -> Self {
        Self::new(Verb::List, resource, namespace, "", Value::Null)
    }

    /// All changes after a resource version.
    pub fn watch(resource: &Resource, namespace: &str, resource_version: &str) -> Self {
        let mut request = Self::new(Verb::Watch, resource, namespace, "", Value::Null);
        request.query.resource_version = Some(resource_version.to_owned());
        request
    }

    /// A new object; its name is in the body.
    pub fn create(resource: &Resource, namespace: &str, body: Value) -> Self {
        Self::new(Verb::Create, resource, namespace, "", body)
    }

    /// Replaces the whole object; its name is in the body.
    pub fn update(resource: &Resource, namespace: &str, body: Value) -> Self {
        let name = body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let name = name.to_owned();
        Self::new(Verb::Update, resource, namespace, &name, body)
    }

    /// A JSON merge patch.
    pub fn merge_patch(resource: &Resource, namespace: &str, name: &str, patch: Value) -> Self {
        Self::new(Verb::MergePatch, resource, namespace, name, patch)
    }

    /// The fields that a field manager wants.
    pub fn apply(
        resource: &Resource,
        namespace: &str,
        name: &str,
        manager: &str,
        body: Value,
    ) -> Self {
        let mut request = Self::new(Verb::Apply, resource, namespace, name, body);
        request.query.field_manager = Some(manager.to_owned());
        request
    }

    /// Deletes an object.
    pub fn delete(resource: &Resource, namespace: &str, name: &str) -> Self {
        Self::new(Verb::Delete, resource, namespace, name, Value::Null)
    }

    /// The same request, for the status subresource.
    #[must_use]
    pub fn of_status(mut self) -> Self {
        self.status = true;
        self
    }

    /// The same request, by `user`.
    #[must_use]
    pub fn by(mut self, user: &str) -> Self {
        user.clone_into(&mut self.user);
        self
    }

    /// The same request, with another query.
    #[must_use]
    pub fn with(mut self, query: Query) -> Self {
        self.query = query;
        self
    }

    /// The owner of what this request writes.
    pub(crate) fn manager(&self) -> &str {
        self.query.field_manager.as_deref().unwrap_or(&self.user)
    }
}

/// The answer to the client.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The HTTP status code: 200, 201, 404, 409, ...
    pub code: u16,
    /// An object, a list, or a Status.
    pub body: Value,
}

impl Response {
    /// Whether the request succeeded.
    pub const fn is_success(&self) -> bool {
        self.code < 300
    }

    /// `reason` of a Status (`Conflict`); empty without one.
    pub fn reason(&self) -> &str {
        self.body.get("reason").and_then(Value::as_str).unwrap_or_default()
    }

    /// `metadata.resourceVersion` of the object or list; empty without one.
    pub fn resource_version(&self) -> &str {
        let version = self.body.pointer("/metadata/resourceVersion");
        version.and_then(Value::as_str).unwrap_or_default()
    }
}
