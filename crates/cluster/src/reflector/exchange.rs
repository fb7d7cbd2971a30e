//! What is asked of the API server about one kind, and what it answers.
//!
//! Values only; the reflector asks and understands, and the edge has the connection.

use std::sync::Arc;

use serde_json::Value;

use crate::object_text::ListedObject;

/// A request to the API server. It replaces the earlier one, which is to be cancelled; replies to that one
/// must not be handed in any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Objects as of now: no `resourceVersion`, and `limit` [`super::PAGE_OBJECTS`].
    List {
        /// The start of the page; `None`: the first page.
        continue_token: Option<String>,
    },
    /// What changes after this version, with bookmarks.
    Watch {
        /// The version to continue from.
        resource_version: String,
    },
}

/// A reply.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A page of a list, or all of it.
    Listed {
        /// The objects, each with the `apiVersion` and `kind` that lists leave out.
        items: Vec<ListedObject>,
        /// The version of the list.
        resource_version: String,
        /// The start of the next page; `None`: this is the last one.
        continue_token: Option<String>,
    },
    /// The server has accepted the watch; changes follow when there are any.
    Opened,
    /// ADDED or MODIFIED, while watching.
    Applied(Arc<Value>),
    /// DELETED: the last state of the object.
    Deleted(Arc<Value>),
    /// BOOKMARK: no other change up to here.
    Bookmark(String),
    /// 410: the version or the page is too old, or the server has forgotten it.
    Gone,
    /// The definition of the kind is gone, or is being removed: its objects are no longer what somebody wants.
    Undefined,
    /// The watch ended normally.
    Closed,
    /// Any other failure.
    Failed,
}
