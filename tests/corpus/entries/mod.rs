//! Which inputs are in the corpus? Each table answers for one kind of message or fault. Advisories
//! about what no BGP session can carry are not here; `document` names them.

mod attributes;
mod families;
mod headers;
mod incidents;
mod notifications;
mod opens;
mod paths;
mod updates;

use crate::entry::Entry;

/// The whole corpus, by chapter.
pub(crate) fn chapters() -> Vec<(&'static str, Vec<Entry>)> {
    vec![
        ("Headers, the stream, and the wrong state", headers::entries()),
        ("OPEN and capabilities", opens::entries()),
        ("NOTIFICATION and ROUTE-REFRESH", notifications::entries()),
        ("UPDATE: lengths and prefixes", updates::entries()),
        ("UPDATE: AS paths", paths::entries()),
        ("UPDATE: other attributes", attributes::entries()),
        ("UPDATE: MP_REACH and MP_UNREACH", families::entries()),
        ("UPDATE: attributes that we do not know", incidents::entries()),
    ]
}

/// The whole corpus.
pub(crate) fn all() -> Vec<Entry> {
    chapters().into_iter().flat_map(|(_, entries)| entries).collect()
}
