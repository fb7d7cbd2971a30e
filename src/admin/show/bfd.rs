//! `show bfd peers`: nobody is watched by BFD here, and that is what is said, as FRR says it.

use serde_json::Value;

use super::BfdDetail;

/// The head of a list without rows.
pub(super) fn text(detail: BfdDetail) -> String {
    match detail {
        BfdDetail::Full | BfdDetail::Counters => "BFD Peers:\n".to_owned(),
        BfdDetail::Brief => {
            let row = |columns: [&str; 4]| {
                let [session, local, peer, status] = columns;
                format!("{session:<11}{local:<41}{peer:<40}{status:<15}\n")
            };
            let heads = ["SessionId", "LocalAddress", "PeerAddress", "Status"];
            let lines = ["=========", "============", "===========", "======"];
            format!("Session count: 0\n{}{}", row(heads), row(lines))
        }
    }
}

/// A list without items.
pub(super) fn json() -> Value {
    Value::Array(Vec::new())
}
