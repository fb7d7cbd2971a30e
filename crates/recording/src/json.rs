//! One JSON object: the neighbour, and a line for each record.

use std::fmt::Write as _;

use fairway_seam::{Recorded, Recording};
use serde_json::json;

use crate::Stamp;

/// The names of the types of messages (RFC 4271 §4.1, RFC 2918).
const TYPES: [&str; 5] = ["OPEN", "UPDATE", "NOTIFICATION", "KEEPALIVE", "ROUTE-REFRESH"];

pub(crate) fn write(recording: &Recording, now: Stamp) -> String {
    let records: Vec<_> = recording
        .records
        .iter()
        .map(|record| {
            let at = now.of(record.at, recording.taken_at).rfc3339();
            let ends = record.ends.as_deref();
            let local = ends.map(|it| it.local.to_string());
            let remote = ends.map(|it| it.remote.to_string());
            match &record.what {
                Recorded::Message { is_received, bytes, .. } => json!({
                    "at": at, "local": local, "remote": remote,
                    "direction": if *is_received { "received" } else { "sent" },
                    "type": kind(bytes), "lengthBytes": bytes.len(), "hex": hex(bytes),
                }),
                Recorded::State { from, to, why } => json!({
                    "at": at, "local": local, "remote": remote,
                    "state": {"from": from.name(), "to": to.name()},
                    "why": (!why.is_empty()).then_some(why),
                }),
            }
        })
        .collect();
    let all = json!({
        "localAs": recording.local_asn.get(),
        "remoteAs": recording.remote_asn.map(|it| it.get()),
        "takenAt": now.rfc3339(),
        "overwritten": recording.overwritten,
        "records": records,
    });
    format!("{all:#}\n")
}

fn kind(message: &[u8]) -> &'static str {
    let code = message.get(18).and_then(|it| usize::from(*it).checked_sub(1));
    code.and_then(|it| TYPES.get(it)).copied().unwrap_or("unknown")
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().saturating_mul(2));
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
