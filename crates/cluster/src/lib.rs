//! Fairway in a Kubernetes cluster, without Kubernetes: the machines of `fairway controller`,
//! `fairway speaker` and `fairway proxy`.
//!
//! ```text
//!  API server ─► Reflector (per kind) ─► Belief ─► ControllerCore ─► writes of Service status
//!             ─► Secrets (by name) ───────┘  │
//!                                            ├───► SpeakerCore ────► sessions, snapshot on disk
//!                                            └───► ProxyCore ──────► changed objects, snapshot on disk
//! ```
//!
//! Pure: time and replies come in, actions go out. Objects are JSON, read by the parsers that read files. The
//! edge with the connection to the API server drives them; `cluster-simulation` does so with a server, a
//! network and routers that fail in every way we know.

mod address_record;
mod admission;
mod belief;
mod budget;
mod claims;
mod configuration_state;
mod controller;
mod event_queue;
mod foresight;
mod in_force;
mod kept;
mod lease;
mod object_text;
mod proxy;
mod references;
mod reflector;
mod reports;
mod secrets;
mod speaker;
mod trim;
mod version;
mod write;
mod writes;

pub use admission::{Foreseeing, Judged, Judgement};
pub use belief::{Belief, Held, Outage};
pub use budget::Budget;
pub use claims::status_addresses;
pub use configuration_state::{
    Component, configuration_object, configuration_status, fault_summary,
};
pub use controller::{
    ADDRESS_CONDITION, CONTROLLER_KINDS, ControllerAction, ControllerCore, ControllerSettings,
    POOL_ANNOTATION, WITHDRAWAL_BOUND,
};
pub use event_queue::{EventQueue, QueuedEvent};
pub use foresight::{DisruptionLimit, Late};
pub use in_force::InForce;
pub use lease::{
    ADDRESSES_ANNOTATION, LEASE_DURATION, LeaseRecord, LeaseReply, LeaseRequest, RENEW_DEADLINE,
    WRITE_TIMEOUT,
};
pub use object_text::{ListedObject, ObjectText};
pub use proxy::{PROXY_KINDS, ProxyAction, ProxyCore, ProxySettings};
pub use references::{FORESIGHT_KINDS, REFERENCE_KINDS, References};
pub use reflector::{Delta, PAGE_OBJECTS, Reflector, Reply, Request, name_of, version_of};
pub use reports::{ListReply, ReportFacts, Reports, ReportsAction, ReportsSettings};
pub use secrets::SecretReply;
pub use speaker::{
    SPEAKER_KINDS, Snapshot, SpeakerAction, SpeakerCore, SpeakerSettings, UPDATES_MAX, Updates,
};
pub use trim::Trim;
pub use write::{EventRecord, EventSubject, ObjectWrite, OwnPod, WriteHow, WrittenKind};
pub use writes::{WINDOW, WRITES_MAX, WriteReply};
