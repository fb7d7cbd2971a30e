//! The keys that sign the packets of a BGPPeer: a TCP-MD5 key, or TCP-AO keys.
//!
//! Knows no Secret; whether one exists is for the catalog. `parse` calls it.

use fairway_ground::{AoAlgorithm, AoKey, AoKeys, Password};
use fairway_model::{AoKeyReference, ObjectName, PeerPassword};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::field_path::FieldPath;
use crate::fields::{KeyId, Text};
use crate::hidden::{HiddenList, HiddenMapping};
use crate::report::{Report, elements};
use crate::secret_key::{self, RawSecretKey};

/// The words of `algorithm`.
const ALGORITHM_WORDS: &str = "hmac-sha-1-96, aes-128-cmac-96 or hmac-sha-256-96";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub(super) struct RawSecretReference {
    /// A Secret of type kubernetes.io/basic-auth in the namespace of this object.
    name: Option<String>,
    /// Has no effect.
    namespace: Option<String>,
}

/// `spec.tcpAO`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawAuthenticationOption {
    /// The keys, the preferred one first.
    #[schemars(required)]
    keys: Option<HiddenList<HiddenMapping<RawAoKey>>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawAoKey {
    /// The key ID in our packets.
    #[schemars(required)]
    #[serde(rename = "sendID")]
    send_id: Option<KeyId>,
    /// The key ID in the peer's packets.
    #[schemars(required)]
    #[serde(rename = "recvID")]
    recv_id: Option<KeyId>,
    /// How packets are signed.
    #[schemars(required)]
    #[schemars(extend("enum" = ["hmac-sha-1-96", "aes-128-cmac-96", "hmac-sha-256-96"]))]
    algorithm: Option<Text<AoAlgorithm>>,
    /// Where the key is.
    #[schemars(required)]
    secret: Option<HiddenMapping<RawSecretKey>>,
}

/// The TCP-MD5 key, or where it is.
pub(super) fn password(
    text: Option<Password>,
    secret: Option<RawSecretReference>,
    namespace: &str,
    report: &mut Report<'_>,
) -> PeerPassword {
    let path = FieldPath::of("spec.passwordSecret");
    let present = |text: Option<String>| text.filter(|text| !text.is_empty());
    let secret = secret.map(|secret| RawSecretReference {
        name: present(secret.name),
        namespace: present(secret.namespace),
    });
    // MetalLB's own objects carry an empty reference where none is set.
    let secret = secret.filter(|secret| secret.name.is_some() || secret.namespace.is_some());
    if let Some(secret) = &secret {
        if secret.namespace.as_deref().is_some_and(|given| given != namespace) {
            report.warning(
                &path.key("namespace"),
                format_args!(
                    "has no effect: the Secret is read from the namespace of the peer, {namespace}"
                ),
            );
        }
        if text.is_some() {
            report.fault(&path, "and spec.password cannot both be set; remove one");
        }
    }
    match (text, secret) {
        (Some(password), _) => PeerPassword::Text(password),
        (None, None) => PeerPassword::None,
        (None, Some(secret)) => {
            match report.required(secret.name, &path.key("name"), "the name of a Secret") {
                Some(name) => PeerPassword::Secret(ObjectName::new(namespace, name)),
                None => PeerPassword::None,
            }
        }
    }
}

/// The keys of TCP-AO, and where their secrets are. They exclude a TCP-MD5 key (RFC 5925).
pub(super) fn tcp_ao(
    raw: Option<RawAuthenticationOption>,
    password: &PeerPassword,
    namespace: &str,
    report: &mut Report<'_>,
) -> Vec<AoKeyReference> {
    let Some(raw) = raw else { return Vec::new() };
    let path = FieldPath::of("spec.tcpAO");
    let other = match password {
        PeerPassword::None => None,
        PeerPassword::Text(_) => Some("password"),
        PeerPassword::Secret(_) => Some("passwordSecret"),
    };
    if let Some(other) = other {
        let message = format_args!("and spec.{other} cannot both be set; remove one");
        report.fault(&path, message);
    }
    let list = path.key("keys");
    let given = report.required(raw.keys, &list, "a list of keys, the preferred one first");
    let Some(HiddenList(given)) = given else { return Vec::new() };
    let count = given.len();
    let keys: Vec<_> = elements(Some(given))
        .filter_map(|(position, HiddenMapping(raw))| {
            key_reference(raw, &list.index(position), namespace, report)
        })
        .collect();
    // With a placeholder for each secret, so that the rule for lists of keys is in one place. Of a list
    // with faults, only the valid entries are checked.
    let stand_ins = keys
        .iter()
        .filter_map(|it| AoKey::new(it.send_id, it.recv_id, it.algorithm, "stand-in").ok());
    if (count == 0 || !keys.is_empty())
        && let Err(error) = AoKeys::new(stand_ins.collect())
    {
        report.fault(&list, error);
    }
    keys
}

fn key_reference(
    raw: RawAoKey,
    path: &FieldPath,
    namespace: &str,
    report: &mut Report<'_>,
) -> Option<AoKeyReference> {
    let number = "a number from 0 to 255";
    let send_id = report.required(raw.send_id, &path.key("sendID"), number);
    let recv_id = report.required(raw.recv_id, &path.key("recvID"), number);
    let algorithm = raw.algorithm.map(|Text(algorithm)| algorithm);
    let algorithm = report.required(algorithm, &path.key("algorithm"), ALGORITHM_WORDS);
    let secret = secret_key::required(raw.secret, &path.key("secret"), namespace, report);
    let (secret, key) = secret?;
    Some(AoKeyReference {
        send_id: send_id?.0,
        recv_id: recv_id?.0,
        algorithm: algorithm?,
        secret,
        key,
    })
}
