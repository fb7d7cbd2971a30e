//! The seam between what a node should announce and the backend that announces it.
//!
//! [`Desired`] and commands go in, [`BgpView`] comes out. The values on both sides are here: settings of
//! neighbours, path attributes, capabilities, BFD's states, counters. Knows no byte of any protocol,
//! no socket and no clock: those are `fairway-sessions`' and `fairway-frr`'s; no Service, pool or file:
//! those are the daemon's.

mod attributes;
mod backend;
pub mod bfd;
mod bmp;
pub mod capability;
mod desired;
mod forwarding;
mod ineligible;
mod latencies;
mod layer2;
mod liveness;
mod members;
mod messages;
pub mod notification;
mod passage;
mod path;
mod peer_change;
mod peer_config;
mod recording;
mod refusal;
mod rpki;
mod session_state;
mod view;

pub use attributes::{Aggregator, Origin, PathAttributes, UnknownAttribute};
pub use backend::{
    AdvertisedScope, Backend, BackendError, Clear, ClearError, ClearFuture, ViewFuture, ViewScope,
};
pub use desired::{
    Announcements, Blackholes, Desired, DesiredRoute, DrainState, EarlierRun, Extras, Leave,
    RouteAttributes,
};

pub use bmp::BmpStationView;
pub use forwarding::{Forward, ForwardingChange, GATEWAYS_MAX, Gateway, TrackedNextHop};
pub use ineligible::Ineligible;
pub use latencies::Latencies;
pub use layer2::{AddressAnswer, AnsweredAddress, CheckedAddress, ForeignClaim, Layer2View};
pub use liveness::{DownCause, Liveness};
pub use members::MemberStatus;
pub use messages::{LastMalformed, MalformedCounters, MessageCounters, MessageCounts};
pub use passage::{Passage, RuleName, Withheld};
pub use path::{DecisionStep, Path, PathSource, RouteChange};
pub use peer_change::{ChangeEffect, PeerSetting};
pub use peer_config::{PeerBfd, PeerConfig};
pub use recording::{ConnectionEnds, Record, Recorded, Recording};
pub use refusal::Refusal;
pub use rpki::RpkiServerView;
pub use session_state::SessionState;
pub use view::{
    BgpView, LastReset, LearnedRoute, ListenRangeView, PeerRoute, PeerView, RefusedRoute,
    RefusedRoutes, RejectedSegments, ResetCause, SessionView, StalePhase, StaleView, Stall,
};
