//! BFDProfile: how fast a dead neighbour is detected.

use std::num::NonZeroU8;
use std::time::Duration;

use fairway_ground::{BfdAuthentication, BfdAuthenticationKind, BfdSettings, Password};

use super::ObjectName;

/// `authentication`: a key, and where its secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BfdKeyReference {
    /// How packets are signed.
    pub kind: BfdAuthenticationKind,
    /// The Auth Key ID.
    pub key_id: u8,
    /// The Secret.
    pub secret: ObjectName,
    /// The key of the Secret.
    pub key: String,
}

/// A BFDProfile, with FRR's defaults for what is not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BfdProfile {
    /// Its name, which peers refer to.
    pub name: ObjectName,
    /// The required minimum receive interval, 10 ms to 60 s; 300 ms when unset.
    pub receive_interval: Duration,
    /// The desired minimum transmit interval, 10 ms to 60 s; 300 ms when unset.
    pub transmit_interval: Duration,
    /// The echo interval in both directions, 10 ms to 60 s; 50 ms when unset.
    pub echo_interval: Duration,
    /// How many missing packets end the session, 2 to 255; 3 when unset.
    pub detect_multiplier: NonZeroU8,
    /// Echo packets check the path, too.
    pub echo_mode: bool,
    /// Never sends first, only answers.
    pub passive_mode: bool,
    /// Packets over several hops with a lower TTL are dropped, 1 to 254; 254 when unset.
    pub minimum_ttl: NonZeroU8,
    /// Packets are signed.
    pub authentication: Option<BfdKeyReference>,
}

impl BfdKeyReference {
    /// The authentication with this key, if the key is valid for it.
    pub fn with(&self, key: &Password) -> Option<BfdAuthentication> {
        BfdAuthentication::new(self.kind, self.key_id, key.expose()).ok()
    }
}

impl BfdProfile {
    /// The settings of a session that signs with this key.
    pub fn settings(&self, authentication: Option<BfdAuthentication>) -> BfdSettings {
        BfdSettings {
            transmit_interval: self.transmit_interval,
            receive_interval: self.receive_interval,
            detect_multiplier: self.detect_multiplier,
            echo_interval: self.echo_mode.then_some(self.echo_interval),
            passive: self.passive_mode,
            minimum_ttl: self.minimum_ttl,
            authentication,
        }
    }
}
