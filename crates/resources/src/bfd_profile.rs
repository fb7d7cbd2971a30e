//! BFDProfile (metallb.io/v1beta1): how fast a dead neighbour is detected.
//!
//! Answers which timers sessions have; fields that are not set have FRR's defaults. Knows no other
//! object; whether a Secret exists is for the catalog.

use std::num::NonZeroU8;
use std::str::FromStr;
use std::time::Duration;

use fairway_ground::{BfdAuthenticationKind, BfdSettings};
use fairway_model::{BfdKeyReference, BfdProfile, Object};
use schemars::JsonSchema;
use serde::Deserialize;

use super::field_path::FieldPath;
use super::fields::{DetectMultiplier, Hops, IntervalMilliseconds, KeyId, Text};
use super::hidden::HiddenMapping;
use super::metadata::Metadata;
use super::report::Report;
use super::secret_key::{self, RawSecretKey};

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RawSpec {
    /// The required minimum receive interval, in milliseconds. FRR's default: 300.
    receive_interval: Option<IntervalMilliseconds>,
    /// The desired minimum transmit interval, in milliseconds. FRR's default: 300.
    transmit_interval: Option<IntervalMilliseconds>,
    /// The required minimum echo receive interval, in milliseconds. FRR's default: 50.
    echo_interval: Option<IntervalMilliseconds>,
    /// How many consecutive packets may be missing before the neighbour is declared down. FRR's
    /// default: 3.
    detect_multiplier: Option<DetectMultiplier>,
    /// The lowest accepted TTL of packets of a neighbour several hops away. FRR's default: 254.
    minimum_ttl: Option<Hops>,
    /// Sends packets that the neighbour loops back. Not over several hops.
    echo_mode: Option<bool>,
    /// Waits for the neighbour to send first.
    passive_mode: Option<bool>,
    /// Signs the packets (RFC 5880 §6.7). Fairway only.
    authentication: Option<HiddenMapping<RawAuthentication>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawAuthentication {
    /// How packets are signed.
    #[schemars(required)]
    #[schemars(extend("enum" = ["sha1", "meticulous-sha1"]))]
    #[serde(rename = "type")]
    kind: Option<Text<KindName>>,
    /// The number of the key.
    #[schemars(required)]
    #[serde(rename = "keyID")]
    key_id: Option<KeyId>,
    /// Where the key is.
    #[schemars(required)]
    secret: Option<HiddenMapping<RawSecretKey>>,
}

#[derive(Debug, Clone, Copy)]
struct KindName(BfdAuthenticationKind);

impl FromStr for KindName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sha1" => Ok(Self(BfdAuthenticationKind::Sha1)),
            "meticulous-sha1" => Ok(Self(BfdAuthenticationKind::MeticulousSha1)),
            _ => Err(format!("{text:?} is not allowed; expected sha1 or meticulous-sha1")),
        }
    }
}

/// Parses the object; `None` if it has a fault.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let spec = FieldPath::of("spec");
    let raw: RawSpec =
        report.read(&spec).or_else(|| (!report.has_faults()).then(RawSpec::default))?;
    let interval = |given: Option<IntervalMilliseconds>, default| {
        given.map_or(default, |it| Duration::from_millis(u64::from(it.0)))
    };
    let authentication = raw
        .authentication
        .and_then(|HiddenMapping(raw)| authentication(raw, &metadata.name.namespace, report));
    Some(Object::from(BfdProfile {
        name: metadata.name,
        receive_interval: interval(raw.receive_interval, BfdSettings::INTERVAL_DEFAULT),
        transmit_interval: interval(raw.transmit_interval, BfdSettings::INTERVAL_DEFAULT),
        echo_interval: interval(raw.echo_interval, BfdSettings::ECHO_INTERVAL_DEFAULT),
        detect_multiplier: raw
            .detect_multiplier
            .and_then(|it| NonZeroU8::new(it.0))
            .unwrap_or(BfdSettings::DETECT_MULTIPLIER_DEFAULT),
        echo_mode: raw.echo_mode.unwrap_or(false),
        passive_mode: raw.passive_mode.unwrap_or(false),
        minimum_ttl: raw
            .minimum_ttl
            .and_then(|it| NonZeroU8::new(it.0))
            .unwrap_or(BfdSettings::MINIMUM_TTL_DEFAULT),
        authentication,
    }))
}

fn authentication(
    raw: RawAuthentication,
    namespace: &str,
    report: &mut Report<'_>,
) -> Option<BfdKeyReference> {
    let path = FieldPath::of("spec.authentication");
    let kind = report.required(raw.kind, &path.key("type"), "sha1 or meticulous-sha1");
    let key_id = report.required(raw.key_id, &path.key("keyID"), "a number from 0 to 255");
    let secret = secret_key::required(raw.secret, &path.key("secret"), namespace, report);
    let Text(KindName(kind)) = kind?;
    let (secret, key) = secret?;
    Some(BfdKeyReference { kind, key_id: key_id?.0, secret, key })
}
