//! The Kubernetes API server, as far as controllers depend on it: a pure model.
//!
//! It answers as the server does: create, get, list, update, patch, apply and delete with their
//! preconditions; watches with bookmarks, time-outs and 410; several replicas, some of which lag
//! behind. It refuses to know clocks, sockets and runtimes: `now` is an argument, requests and
//! answers are values, and watches are polled. Of HTTP it knows the status codes.
//!
//! Failures on the way (latency, an outage, a lost answer) are simulated by the caller. Failures and
//! delays of the server itself are operations here: [`ApiServer::compact`],
//! [`ApiServer::cut`], [`ApiServer::restart_replica`], [`ApiServer::restore`], and how far
//! [`ApiServer::catch_up`] lets a replica advance.
//!
//! Its answers are compared with those of kube-apiserver 1.36, answer by answer (`tests/conversation.rs`).
//!
//! `Ours:` where the model is smaller than the real server: no schemas, so no defaults, no pruning
//! and no validation of specs; lists are atomic for field managers; one version per resource; no
//! admission but that a namespace must exist; and no controllers, so nothing is collected when a
//! namespace or an owner goes.
//!
//! ```
//! use fairway_model_api::{ApiServer, Request, Resource, Settings, Timestamp};
//! use serde_json::json;
//!
//! let mut server = ApiServer::new(Settings::default());
//! let (now, maps) = (Timestamp::default(), Resource::core("configmaps"));
//! let body = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
//! let created = server.handle(now, 0, &Request::create(&maps, "default", body.clone()));
//! assert_eq!(created.code, 201);
//! let again = server.handle(now, 0, &Request::create(&maps, "default", body));
//! assert_eq!((again.code, again.reason()), (409, "AlreadyExists"));
//! ```

mod definition;
mod ownership;
mod patch;
mod request;
mod selector;
mod server;
mod status;
mod storage;
mod time;

pub use definition::ResourceDefinition;
pub use request::{Query, Request, Resource, Response, Verb, VersionMatch};
pub use server::{ApiServer, EventKind, Settings, WatchEvent, WatchId, WatchStep};
pub use status::Status;
pub use time::Timestamp;
