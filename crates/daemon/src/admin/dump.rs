//! `fairway dump`: what was said on the sessions of one neighbor, in the format that was asked for.

use data_encoding::BASE64;
use fairway_recording::{DumpFormat, Stamp};
use fairway_seam::{Backend, PeerView, ViewScope};
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

/// The time, for [`DumpFormat::write`].
pub(crate) fn now() -> Stamp {
    Stamp { epoch_micros: epoch_milliseconds().saturating_mul(1000) }
}
