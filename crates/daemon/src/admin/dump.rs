//! `fairway dump`: what was said on the sessions of one neighbor, or all routes, in the format that was asked for.

use data_encoding::BASE64;
use fairway_recording::{DumpFormat, RIB_SCOPE, RibFormat, RibPieces, Stamp};
use fairway_seam::{Backend, BgpView, PeerView, ViewScope};
use fairway_show::neighbors_called;
use serde::{Deserialize, Serialize};

use super::Answer;
use crate::host::epoch_milliseconds;

/// Which neighbor, and how.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DumpRequest {
    /// Its address, its interface, or the name of its BGPPeer.
    pub neighbor: String,
    /// `mrt`, `pcap` or `json`.
    pub format: String,
}

/// The recording of a neighbor, encoded for a line of text.
pub(super) async fn dump(backend: &dyn Backend, request: &DumpRequest) -> Answer {
    let format: DumpFormat = match request.format.parse() {
        Ok(format) => format,
        Err(why) => return Answer::Error(why),
    };
    let view = match backend.view(ViewScope::SESSIONS).await {
        Ok(view) => view,
        Err(error) => return Answer::Error(error.to_string()),
    };
    let called = neighbors_called(&view, Some(&request.neighbor));
    let key = match called.as_slice() {
        [one] => one.config.key,
        [] => {
            let known: Vec<_> = view.peers.iter().map(|it| it.config.key.to_string()).collect();
            let known =
                if known.is_empty() { "there are none".to_owned() } else { known.join(", ") };
            return Answer::Error(format!(
                "% No such neighbor: {}; known: {known}",
                request.neighbor
            ));
        }
        several => {
            let several: Vec<_> = several.iter().map(|it| it.config.key.to_string()).collect();
            let all = several.join(", ");
            return Answer::Error(format!("{} is the name of several: {all}", request.neighbor));
        }
    };
    let scope = ViewScope { recording: Some(key), ..ViewScope::SESSIONS };
    let now = now();
    let recording = match backend.view(scope).await {
        Ok(view) => view.peers.into_iter().find_map(|it: PeerView| it.recording),
        Err(error) => return Answer::Error(error.to_string()),
    };
    match recording {
        Some(recording) => Answer::Encoded(BASE64.encode(&format.write(&recording, now))),
        None => Answer::Error(
            "nothing is recorded: FRR is the speaker; `dump bgp all FILE` in its configuration writes MRT"
                .to_owned(),
        ),
    }
}

/// What `fairway dump` calls the routes; a neighbor of this name is asked for by its address.
pub const RIB: &str = "rib";

/// All routes, to be answered piece by piece.
pub(super) struct RibDump {
    view: BgpView,
    format: RibFormat,
    now: Stamp,
}

impl RibDump {
    /// The routes now. `format` is `mrt` or `json`.
    pub(super) async fn take(backend: &dyn Backend, format: &str) -> Result<Self, String> {
        let format = RibFormat::try_from(format.parse::<DumpFormat>()?)?;
        let view = backend.view(RIB_SCOPE).await.map_err(|it| it.to_string())?;
        Ok(Self { view, format, now: now() })
    }

    /// The answers with the routes, each made when it is asked for; the last one has what is left to be said.
    pub(super) fn answers(&self) -> impl Iterator<Item = Answer> + '_ {
        let mut pieces = Some(RibPieces::new(&self.view, self.format, self.now));
        std::iter::from_fn(move || {
            let routes = pieces.as_mut()?;
            if let Some(piece) = routes.next() {
                return Some(Answer::Encoded(BASE64.encode(&piece)));
            }
            let left_out = routes.left_out();
            pieces = None;
            Some(Answer::Output(self.notes(left_out)))
        })
    }

    fn notes(&self, left_out: u64) -> String {
        let mut notes = String::new();
        if left_out > 0 {
            notes.push_str(&format!(
                "{left_out} paths are left out: the format has no room for their attributes, or for so many neighbors\n"
            ));
        }
        for peer in neighbors_called(&self.view, Some(RIB)) {
            notes.push_str(&format!(
                "a neighbor is called {RIB}, too: its messages are `fairway dump {}`\n",
                peer.config.key.remote
            ));
        }
        notes
    }
}

/// The time, for [`DumpFormat::write`].
pub(crate) fn now() -> Stamp {
    Stamp { epoch_micros: epoch_milliseconds().saturating_mul(1000) }
}
