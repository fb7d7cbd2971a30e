//! References from objects to others by name: from peers to Secrets and BFDProfiles, from
//! advertisements to Community objects.
//!
//! Knows no files; used by the rules between objects.

use fairway_model::{
    AoKeyReference, BfdKeyReference, CommunityReference, ObjectName, PeerPassword,
};

use super::settle::Problem;
use super::version::Version;
use crate::field_path::FieldPath;
use crate::secret::PASSWORD_KEY;

/// One reference of an object to another.
pub(super) enum Need<'a> {
    /// The password of a Secret.
    Password(&'a ObjectName),
    /// A key of TCP-AO in a Secret, and its position.
    AoKey(usize, &'a AoKeyReference),
    /// A key of BFD in a Secret.
    BfdKey(&'a BfdKeyReference),
    /// A BFDProfile by name.
    Profile(&'a str),
    /// The community that has this name.
    Alias(&'a str),
}

impl Need<'_> {
    /// The problem of the referring object when no object satisfies the reference.
    pub(super) fn problem(&self, version: &Version) -> Problem {
        match self {
            Self::Password(secret) => Problem::new(
                FieldPath::of("spec.passwordSecret.name"),
                format!(
                    "there is no usable Secret {secret}; expected one of type \
                     kubernetes.io/basic-auth with the key password"
                ),
            ),
            Self::AoKey(position, reference) => Problem::new(
                FieldPath::of("spec.tcpAO.keys").index(*position).key("secret"),
                format!(
                    "there is no Secret {} with a usable key {}; expected 1 to 80 bytes, in \
                     base64 under data or as they are under stringData",
                    reference.secret, reference.key
                ),
            ),
            Self::BfdKey(reference) => Problem::new(
                FieldPath::of("spec.authentication.secret"),
                format!(
                    "there is no Secret {} with a usable key {}; expected 1 to 20 bytes, in base64 \
                     under data or as they are under stringData",
                    reference.secret, reference.key
                ),
            ),
            Self::Profile(name) => Problem::new(
                FieldPath::of("spec.bfdProfile"),
                format!("there is no BFDProfile {name}; expected the name of one"),
            ),
            Self::Alias(alias) => Problem::new(
                version.lines.find(&FieldPath::of("spec.communities"), alias),
                format!(
                    "{alias} is not defined; expected a community as in 65001:100, or a name that \
                     some Community object defines"
                ),
            ),
        }
    }
}

/// The Secrets that the object names, each with the key, whether they are required or not.
pub(super) fn keys_named(version: &Version) -> impl Iterator<Item = (&ObjectName, &str)> {
    needs(version).filter_map(|need| match need {
        Need::Password(secret) => Some((secret, PASSWORD_KEY)),
        Need::AoKey(_, reference) => Some((&reference.secret, &*reference.key)),
        Need::BfdKey(reference) => Some((&reference.secret, &*reference.key)),
        Need::Profile(_) | Need::Alias(_) => None,
    })
}

/// The references of the object.
pub(super) fn needs(version: &Version) -> impl Iterator<Item = Need<'_>> {
    let peer = version.peer();
    let password = peer.and_then(|peer| match &peer.password {
        PeerPassword::Secret(secret) => Some(Need::Password(secret)),
        PeerPassword::None | PeerPassword::Text(_) => None,
    });
    let ao_keys = peer.map(|peer| peer.tcp_ao.as_slice()).unwrap_or_default().iter().enumerate();
    let ao_keys = ao_keys.map(|(position, reference)| Need::AoKey(position, reference));
    let profile = peer.and_then(|peer| peer.bfd_profile.as_deref()).map(Need::Profile);
    let bfd_key = version.profile().and_then(|it| it.authentication.as_ref()).map(Need::BfdKey);
    let communities = version.advertisement().into_iter().flat_map(|it| &it.communities);
    let aliases = communities.filter_map(|community| match community {
        CommunityReference::Alias(alias) => Some(Need::Alias(alias)),
        CommunityReference::Value(_) => None,
    });
    password.into_iter().chain(ao_keys).chain(bfd_key).chain(profile).chain(aliases)
}
