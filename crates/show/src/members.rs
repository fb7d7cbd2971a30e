//! `show members`: the machines that share layer 2 addresses, and which of them are alive.

use fairway_ground::Utc;
use fairway_seam::MemberStatus;
use serde_json::Value;

use super::Snapshot;
use super::columns::{aligned, or_none};
use super::object::Object;

fn since(snapshot: &Snapshot<'_>, member: &MemberStatus) -> Utc {
    Utc(snapshot.now_epoch_seconds.saturating_sub(member.age.as_secs()))
}

fn address(member: &MemberStatus) -> Option<String> {
    member.address.map(|it| it.to_string())
}

/// A row for each member.
pub(super) fn text(snapshot: &Snapshot<'_>) -> String {
    let Some(members) = snapshot.members else {
        return "No members: this machine shares layer 2 addresses with no other (--member-key-file).\n".to_owned();
    };
    let mut rows = vec![["NAME", "ADDRESS", "STATE", "SINCE"].map(str::to_owned)];
    rows.extend(members.iter().map(|member| {
        [
            member.name.clone(),
            or_none(address(member).unwrap_or_default()),
            member.state.to_owned(),
            since(snapshot, member).to_string(),
        ]
    }));
    aligned(&rows)
}

/// An object for each member.
pub(super) fn json(snapshot: &Snapshot<'_>) -> Object {
    let object = |member: &MemberStatus| -> Value {
        Object::new()
            .field("name", member.name.as_str())
            .field("address", address(member))
            .field("state", member.state)
            .field("since", since(snapshot, member).rfc3339())
            .into()
    };
    let members = snapshot.members.unwrap_or_default();
    Object::new().field("items", members.iter().map(object).collect::<Vec<Value>>())
}
