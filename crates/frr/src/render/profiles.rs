//! How is BFD configured in FRR?
//!
//! The BFDProfiles of neighbours as FRR's profiles. Knows no session. Called by `render`.

use std::collections::BTreeMap;
use std::time::Duration;

use fairway_ground::BfdSettings;
use fairway_seam::PeerBfd;
use serde::Serialize;

use super::names;
use super::neighbour::{Refusal, resource};
use super::words::Words;

/// A profile. Values that are FRR's default are left out, as FRR does when it shows one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Profile {
    /// The resource.
    origin: Words,
    name: String,
    detect_multiplier: Option<u8>,
    transmit_milliseconds: Option<u128>,
    receive_milliseconds: Option<u128>,
    passive: bool,
    echo: bool,
    echo_milliseconds: Option<u128>,
    minimum_ttl: Option<u8>,
}

impl Profile {
    fn new(bfd: &PeerBfd, mark: &str) -> Result<Self, Refusal> {
        let BfdSettings {
            transmit_interval,
            receive_interval,
            detect_multiplier,
            echo_interval,
            passive,
            minimum_ttl,
            authentication: _,
        } = bfd.settings.clone();
        let other = |it: Duration, default| (it != default).then(|| it.as_millis().max(1));
        let multiplier = Some(detect_multiplier);
        let ttl = Some(minimum_ttl);
        Ok(Self {
            origin: resource("BFDProfile", &bfd.profile)?,
            name: names::of_profile(mark, &bfd.profile),
            detect_multiplier: multiplier
                .filter(|it| *it != BfdSettings::DETECT_MULTIPLIER_DEFAULT)
                .map(u8::from),
            transmit_milliseconds: other(transmit_interval, BfdSettings::INTERVAL_DEFAULT),
            receive_milliseconds: other(receive_interval, BfdSettings::INTERVAL_DEFAULT),
            passive,
            echo: echo_interval.is_some(),
            echo_milliseconds: echo_interval
                .and_then(|it| other(it, BfdSettings::ECHO_INTERVAL_DEFAULT)),
            minimum_ttl: ttl.filter(|it| *it != BfdSettings::MINIMUM_TTL_DEFAULT).map(u8::from),
        })
    }
}

/// The profiles by their names.
#[derive(Debug, Default)]
pub(super) struct Profiles(BTreeMap<String, Profile>);

impl Profiles {
    /// Adds the profile of a neighbour.
    pub(super) fn add(&mut self, bfd: &PeerBfd, mark: &str) -> Result<(), Refusal> {
        let profile = Profile::new(bfd, mark)?;
        self.0.entry(profile.name.clone()).or_insert(profile);
        Ok(())
    }

    pub(super) fn into_vec(self) -> Vec<Profile> {
        self.0.into_values().collect()
    }
}
