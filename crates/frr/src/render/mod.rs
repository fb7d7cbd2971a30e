//! Which FRR configuration implements the desired state?
//!
//! A function of [`Desired`]: no clock, no socket, no memory of an earlier configuration; the same input
//! gives the same text. What FRR does not support is left out with a fault; everything else is rendered.
//! Knows no running configuration. Called by the backend and by `fairway render`.
//!
//! Announced routes need no prefix lists: `network P route-map fairway-OWNER-set-T` marks a route with the tag T of its
//! class, and each neighbour's outgoing route map has entries for the tags that it is sent.

mod attributes;
mod classes;
mod document;
mod filters;
mod names;
mod neighbour;
mod profiles;
mod rules;
mod shared;
mod templates;
mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::owner::{LEGACY_MARK, Owner, VIEW};
use attributes::Dialect;
use document::{Document, Instance, NeighbourSection, Places, RawLines};
use fairway_ground::{PeerKey, printable};
use fairway_seam::{Desired, DrainState};
use neighbour::Neighbour;
use profiles::Profiles;
use shared::Firsts;

/// The target of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// FRR's version, its first two numbers. If unknown: everything that 8.4 and later support, plus what
    /// only newer versions support where a resource asks for it.
    pub version: Option<(u8, u8)>,
    /// Passwords are masked. Such a configuration is for display only.
    pub hide_secrets: bool,
    /// The owner in all names.
    pub owner: Owner,
    /// Where the neighbours of the default VRF are.
    pub site: Site,
    /// As before names had an owner, to recognise what that version configured.
    pub is_legacy: bool,
    /// FRR does not reach a neighbour by a default route without being told so.
    pub needs_nht: bool,
}

impl Settings {
    /// How all names begin.
    fn mark(&self) -> String {
        if self.is_legacy { LEGACY_MARK.to_owned() } else { self.owner.mark() }
    }
}

/// The BGP instance for the neighbours of the default VRF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Site {
    /// The default one, which FRR has for nobody else.
    #[default]
    Alone,
    /// A view of our own. Somebody else has the default one, whose settings, routes and kernel are not ours.
    Beside,
}

/// The first version that resolves next hops by a default route unless it is told otherwise.
const NHT_SINCE: (u8, u8) = (9, 1);

/// Whether this version has to be told to reach a neighbour by a default route.
pub fn needs_nht(version: (u8, u8)) -> bool {
    version < NHT_SINCE
}

/// A configuration of FRR.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rendered {
    /// Its lines, in the order and form in which FRR shows them.
    pub text: String,
    /// Desired settings that it does not contain.
    pub faults: Vec<Fault>,
}

/// A setting that cannot be expressed in FRR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The resource, as in `BGPPeer tor-a`.
    pub subject: String,
    /// The setting, and why it is not possible.
    pub reason: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.subject, self.reason)
    }
}

/// Rendering failed, whatever the desired state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("internal error: cannot render the templates of the FRR configuration: {0}")]
pub struct RenderError(String);

/// The configuration that implements `desired`.
pub fn render(desired: &Desired, settings: &Settings) -> Result<Rendered, RenderError> {
    let Accepted { neighbours, profiles, mut faults } = Accepted::of(desired, settings);
    let (classes, surplus) = match desired.drain {
        DrainState::Drained => (Vec::new(), 0),
        DrainState::InService | DrainState::Draining => {
            classes::of_routes(&desired.routes, &neighbours)
        }
    };
    if surplus > 0 {
        let reason = format!(
            "{surplus} prefixes are not announced: too many different combinations of attributes and \
             peers for FRR"
        );
        faults.push(Fault { subject: "BGPAdvertisement".to_owned(), reason });
    }
    let tracked = neighbours.values().filter_map(|(neighbour, _)| neighbour.tracked());
    let is_tracking = settings.needs_nht && settings.site == Site::Alone;
    let tracked = tracked.filter(|_| is_tracking).map(filters::word).collect();
    let mut of_vrf: BTreeMap<_, Vec<NeighbourSection>> = BTreeMap::new();
    for (key, (neighbour, dialect)) in neighbours {
        let told = NeighbourSection::new(neighbour, &dialect, &classes, desired.drain);
        of_vrf.entry(key.vrf).or_default().push(told);
    }
    let mut tags: Vec<u32> = classes.iter().map(|class| class.tag).collect();
    tags.sort_unstable();
    let instances = of_vrf.into_values().filter_map(|told| Instance::new(told, &classes));
    let instances: Vec<Instance> = instances.collect();
    let own = instances.iter().find(|it| it.is_default()).filter(|_| settings.site == Site::Beside);
    let own_router = own.map(|it| it.router(VIEW));
    let document = Document {
        tags,
        instances,
        profiles: profiles.into_vec(),
        extras: desired.extras.as_deref().map(|it| RawLines::new(it, own_router.as_ref())),
        learned_tag: classes::LEARNED_TAG,
        tracked,
        mark: settings.mark(),
        view: (settings.site == Site::Beside).then_some(VIEW),
        places: Places::default(),
    };
    let text = templates::render(&document).map_err(RenderError)?;
    Ok(Rendered { text, faults })
}

/// The neighbours that FRR supports.
struct Accepted {
    neighbours: BTreeMap<PeerKey, (Neighbour, Dialect)>,
    profiles: Profiles,
    faults: Vec<Fault>,
}

impl Accepted {
    fn of(desired: &Desired, settings: &Settings) -> Self {
        let (mut neighbours, mut faults) = (BTreeMap::new(), Vec::new());
        let mut profiles = Profiles::default();
        let mut firsts: BTreeMap<_, Firsts> = BTreeMap::new();
        for peer in &desired.peers {
            let firsts = firsts.entry(peer.key.vrf).or_default();
            let neighbour = Neighbour::new(peer, settings).and_then(|neighbour| {
                firsts.admit(&peer.name, &neighbour)?;
                peer.bfd.iter().try_for_each(|bfd| profiles.add(bfd, &settings.mark()))?;
                Ok(neighbour)
            });
            match neighbour {
                Ok(neighbour) => {
                    let dialect = Dialect::new(peer, desired.drain, settings);
                    neighbours.insert(peer.key, (neighbour, dialect));
                }
                Err(refusal) => faults.push(Fault {
                    subject: format!("BGPPeer {}", printable(&peer.name)),
                    reason: refusal.to_string(),
                }),
            }
        }
        Self { neighbours, profiles, faults }
    }
}
