//! Secret: keys that sign sessions.

use std::collections::BTreeMap;

use fairway_ground::Password;

use super::ObjectName;

/// The keys that a Secret holds. Its `Debug` form hides them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its name.
    pub name: ObjectName,
    /// The TCP-MD5 key, in a Secret of type `kubernetes.io/basic-auth`.
    pub password: Option<Password>,
    /// Every value that can be a key, by name: TCP-AO allows the same as TCP-MD5, 1 to 80 bytes.
    pub values: BTreeMap<String, Password>,
}
