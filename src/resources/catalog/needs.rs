//! What peers need of Secrets, and what stays of a Secret that lost it.
//!
//! Knows no files; the rules between objects ask.

use std::sync::Arc;

use super::Version;
use super::resolve::Problem;
use super::topology::peer;
use crate::model::{AoKeyReference, Object, ObjectName, PeerPassword, Secret};
use crate::resources::field_path::FieldPath;

/// One thing that a peer takes from a Secret.
pub(super) struct Need<'a> {
    /// The Secret.
    pub(super) secret: &'a ObjectName,
    /// A key of TCP-AO and its position; `None` for the password.
    ao_key: Option<(usize, &'a AoKeyReference)>,
}

impl Need<'_> {
    /// Whether this version of the Secret has it.
    pub(super) fn is_met_by(&self, version: &Version) -> bool {
        secret(version).is_some_and(|secret| match self.ao_key {
            None => secret.password.is_some(),
            Some((_, reference)) => secret.values.contains_key(&reference.key),
        })
    }

    /// What to say when no Secret has it.
    pub(super) fn problem(&self) -> Problem {
        match self.ao_key {
            None => Problem {
                path: FieldPath::of("spec.passwordSecret.name"),
                message: format!(
                    "there is no usable Secret {}; expected one of type kubernetes.io/basic-auth \
                     with the key password",
                    self.secret
                ),
            },
            Some((position, reference)) => Problem {
                path: FieldPath::of("spec.tcpAO.keys").index(position).key("secret"),
                message: format!(
                    "there is no Secret {} with a usable key {}; expected 1 to 80 bytes, in \
                     base64 under data or as they are under stringData",
                    self.secret, reference.key
                ),
            },
        }
    }
}

/// What the peer needs; nothing where the object is none.
pub(super) fn needs(version: &Version) -> impl Iterator<Item = Need<'_>> {
    let peer = peer(version);
    let password = peer.and_then(|peer| match &peer.password {
        PeerPassword::Secret(secret) => Some(Need { secret, ao_key: None }),
        PeerPassword::None | PeerPassword::Text(_) => None,
    });
    let ao_keys = peer.map(|peer| peer.tcp_ao.as_slice()).unwrap_or_default().iter().enumerate();
    let ao_keys = ao_keys.map(|(position, reference)| Need {
        secret: &reference.secret,
        ao_key: Some((position, reference)),
    });
    password.into_iter().chain(ao_keys)
}

/// The Secret, if the object is one.
pub(super) fn secret(version: &Version) -> Option<&Secret> {
    match &version.object {
        Object::Secret(secret) => Some(secret),
        _ => None,
    }
}

/// What a Secret says now, and what it said before of which it says nothing now.
pub(super) fn united(current: &Arc<Version>, former: &Version) -> Arc<Version> {
    let (Some(now), Some(before)) = (secret(current), secret(former)) else {
        return Arc::clone(current);
    };
    let mut values = before.values.clone();
    values.extend(now.values.clone());
    Arc::new(Version {
        key: current.key.clone(),
        object: Object::Secret(Secret {
            name: now.name.clone(),
            password: now.password.clone().or_else(|| before.password.clone()),
            values,
        }),
        file: Arc::clone(&current.file),
        line: current.line,
        lines: current.lines.clone(),
        source: current.source.clone(),
    })
}
