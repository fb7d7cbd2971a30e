//! What is FRR to be configured with, given what it has?
//!
//! The version, the instance that is free and older names of ours decide how the desired state is rendered. Called by
//! [`super::backend`] and [`super::preview`].

use fairway_seam::Desired;

use crate::application::{Application, Wanted};
use crate::configuration::Configuration;
use crate::owner::Owner;
use crate::render::{Settings, render};

/// How the desired state is rendered.
pub(super) struct Rendering {
    settings: Settings,
    /// FRR has names as they were before they had an owner.
    has_legacy: bool,
    /// What cannot be rendered.
    faults: Vec<String>,
}

impl Rendering {
    pub(super) fn new(owner: Owner) -> Self {
        let settings = Settings { owner, ..Settings::default() };
        Self { settings, has_legacy: false, faults: Vec::new() }
    }

    /// What could not be rendered at the last time.
    pub(super) fn faults(&self) -> &[String] {
        &self.faults
    }

    pub(super) fn has_legacy(&self) -> bool {
        self.has_legacy
    }

    /// Renders the desired state, and passes it to the state machine.
    pub(super) fn want(
        &mut self,
        desired: &Desired,
        application: &mut Application,
        version: Option<(u8, u8)>,
    ) {
        // What is ours in FRR decides on the instance, and the wanted state on what is ours.
        for _ in 0..2 {
            match render(desired, &self.settings) {
                Ok(rendered) => {
                    self.faults = rendered.faults.iter().map(ToString::to_string).collect();
                    application.want(Wanted {
                        generation: desired.generation,
                        configuration: Configuration::parse(&rendered.text),
                        is_partial: desired.awaits_sources,
                        legacy: self.legacy(desired),
                    });
                }
                Err(error) => self.faults = vec![error.to_string()],
            }
            if !self.is_outdated(application, version) {
                break;
            }
        }
    }

    /// Whether FRR turned out to need another configuration for the same state.
    pub(super) fn is_outdated(
        &mut self,
        application: &Application,
        version: Option<(u8, u8)>,
    ) -> bool {
        let settings = Settings {
            version,
            site: application.site().unwrap_or(self.settings.site),
            needs_nht: application.needs_nht(version).unwrap_or(self.settings.needs_nht),
            ..self.settings
        };
        let has_legacy = self.has_legacy || application.has_legacy();
        let is_outdated = (settings, has_legacy) != (self.settings, self.has_legacy);
        (self.settings, self.has_legacy) = (settings, has_legacy);
        is_outdated
    }

    /// What a Fairway from before names had an owner would have configured, where FRR has such names.
    fn legacy(&self, desired: &Desired) -> Configuration {
        if !self.has_legacy {
            return Configuration::default();
        }
        let version = self.settings.version;
        let settings = Settings { version, is_legacy: true, ..Settings::default() };
        let rendered = render(desired, &settings);
        rendered.map(|it| Configuration::parse(&it.text)).unwrap_or_default()
    }
}
