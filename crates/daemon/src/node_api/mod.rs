//! The questions of `kubectl fairway`, as a controller passes them on to the speakers.
//!
//! ```text
//!  kubectl fairway ─► API server ─► controller (kubernetes::aggregation: who may ask what)
//!                                      │ client ── POST, mutual TLS ──► server of each speaker ─► admin
//!                                      ◄──── text, JSON or why not ───┘
//! ```
//!
//! The port answers nobody but holders of a certificate that the CA of the controllers has signed. Questions are words,
//! as on the command line, so that controllers and speakers may differ in their version.

mod client;
mod server;

use std::path::PathBuf;

use http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::admin::drain::DrainRequest;
use crate::http_server::HttpListen;

pub(crate) use client::{Answered, LargeAnswers, Speakers, Unanswered};
pub(crate) use server::serve;

/// The name in the certificates of all speakers.
pub(crate) const SPEAKER: &str = "speaker.nodes.fairway.dev";

/// The path of questions.
const PATH: &str = "/v1/ask";

/// The status of an answer that says why there is none.
const REFUSED: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;

/// Where a speaker answers controllers.
#[derive(Debug, Clone)]
pub struct NodeApiOptions {
    /// The address to listen on.
    pub listen: HttpListen,
    /// The folder with its certificate and the CA of the controllers.
    pub certificate_folder: PathBuf,
}

/// What a controller asks a speaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum NodeQuestion {
    /// These words, behind `fairway`: `show` or `explain`, and the rest.
    Words(Vec<String>),
    /// `fairway drain`.
    Drain(DrainRequest),
}
