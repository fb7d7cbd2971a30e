//! What a change of each field of each kind does to routers, while the daemon runs.
//!
//! One table, for the documentation and for whoever says beforehand what a change would do. Holds
//! answers and finds none: `diff` says what a change does to one node; tests make each change under
//! a running daemon and look at its neighbours. Tests of `resources` see that no field is missing.

mod announced;
mod peers;
mod services;

use fairway_model::Kind;
use fairway_seam::ChangeEffect;

/// What routers notice of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// What happens to the session of the peer that it is about.
    Session(ChangeEffect),
    /// The peer begins or ends on this node.
    PeerComesOrGoes,
    /// BFD signs otherwise, or wants otherwise what it hears to be signed.
    ExchangesBfdKeys,
    /// BFD hears no longer what comes from afar.
    HearsLess,
    /// The session ends, for there are more routes than it may have.
    TooManyPrefixes,
    /// Routes that it is about are announced or withdrawn.
    Routes,
    /// All routes of this node are.
    AllRoutes,
    /// Routes that it is about are sent again, in place of what they were.
    Attributes,
    /// The same on iBGP alone.
    AttributesInside,
    /// The same on eBGP alone.
    AttributesOutside,
    /// Other prefixes stand for the same addresses.
    Prefixes,
    /// A Service has other addresses, or more, or fewer.
    Addresses,
    /// Addresses that are given out later.
    LaterAddresses,
    /// It is another object.
    OtherObject,
    /// FRR's configuration has other lines of the operator's.
    FrrLines,
    /// A fault: what was in force before stays.
    Kept,
    /// Nothing.
    Nothing,
}

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A field, as the path to it, with `[]` for any element of a list.
    Field(&'static str),
    /// A label or annotation, by the path to all of them and its key.
    Key(&'static str, &'static str),
    /// Fields that nothing here reads.
    OtherFields,
    /// A new object.
    Appears,
    /// Its document is gone.
    Vanishes,
    /// Its document is at fault.
    Breaks,
    /// Its document is in another file, or in another place of its file.
    Moves,
}

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// What is changed.
    pub part: Part,
    /// Under which circumstances the effect is this; empty for all, or all others.
    pub when: &'static str,
    /// What routers notice.
    pub effect: Effect,
}

impl Change {
    const fn of(part: Part, effect: Effect) -> Self {
        Self { part, when: "", effect }
    }

    const fn field(path: &'static str, effect: Effect) -> Self {
        Self::of(Part::Field(path), effect)
    }

    const fn when(self, when: &'static str) -> Self {
        Self { when, ..self }
    }

    /// The table of a kind.
    pub fn all(kind: Kind) -> &'static [Self] {
        match kind {
            Kind::BgpPeer => peers::BGP_PEER,
            Kind::Secret => peers::SECRET,
            Kind::ConfigMap => peers::CONFIG_MAP,
            Kind::BfdProfile => peers::BFD_PROFILE,
            Kind::IpAddressPool => announced::IP_ADDRESS_POOL,
            Kind::BgpAdvertisement => announced::BGP_ADVERTISEMENT,
            Kind::Layer2Advertisement => announced::LAYER2_ADVERTISEMENT,
            Kind::Community => announced::COMMUNITY,
            Kind::Service => services::SERVICE,
            Kind::EndpointSlice => services::ENDPOINT_SLICE,
            Kind::Node => services::NODE,
            Kind::Namespace => services::NAMESPACE,
        }
    }
}

impl Effect {
    /// What it is, for operators.
    pub fn words(self) -> &'static str {
        match self {
            Self::Session(effect) => session_words(effect),
            Self::PeerComesOrGoes => {
                "the peer is dialled, or told Peer De-configured (6/3); the sessions of others stay \
                 up"
            }
            Self::ExchangesBfdKeys => {
                "nothing, if both sides change within the detection time of BFD; else the session \
                 ends with BFD Down (6/10)"
            }
            Self::HearsLess => {
                "nothing, if what comes over several hops has the new TTL still; else the session ends \
                 with BFD Down (6/10)"
            }
            Self::TooManyPrefixes => {
                "the session ends with Maximum Number of Prefixes Reached (6/1), and is tried again \
                 after 30 s"
            }
            Self::Routes => "the routes that it is about are announced or withdrawn, and no others",
            Self::AllRoutes => {
                "all routes of the node are withdrawn, or announced again; sessions stay up"
            }
            Self::Attributes => "one UPDATE in place of each route: it is never withdrawn",
            Self::AttributesInside => {
                "iBGP: one UPDATE in place of each route, it is never withdrawn; eBGP: nothing"
            }
            Self::AttributesOutside => {
                "eBGP: one UPDATE in place of each route, it is never withdrawn; iBGP: nothing"
            }
            Self::Prefixes => "other prefixes are announced, and those of before withdrawn",
            Self::Addresses => {
                "addresses that still fit stay; what no longer fits is given up and withdrawn, and \
                 what is missing is given and announced; other Services keep theirs"
            }
            Self::LaterAddresses => {
                "nothing: what has been given out stays, and only addresses given out later follow it"
            }
            Self::FrrLines => {
                "with `--bgp frr` FRR is told the lines that differ, and what it refuses is a fault; \
                 else nothing"
            }
            Self::OtherObject => "it is another object: the old one is gone, the new one appears",
            Self::Kept => "a fault: what was in force before stays, and nothing is noticed",
            Self::Nothing => "nothing",
        }
    }
}

fn session_words(effect: ChangeEffect) -> &'static str {
    match effect {
        ChangeEffect::OtherPeer => {
            "it is another peer: the old one is told Peer De-configured (6/3), the new one is dialled"
        }
        ChangeEffect::NewSession => "a new session (6/6)",
        ChangeEffect::NewExternalSession => {
            "a new session (6/6); it is for routers in another AS only"
        }
        ChangeEffect::ExchangesKeys => {
            "the session stays up, if both sides change within the hold time"
        }
        ChangeEffect::Down => {
            "ends the session with Administrative Shutdown (6/2) and the text; another text while it \
             is down changes nothing; without `shutdown` it is dialled at once"
        }
        ChangeEffect::AsksAgain => {
            "what is no longer wanted goes, and the router is asked for its routes (ROUTE-REFRESH); \
             one that cannot be asked gets a new session (6/6)"
        }
        ChangeEffect::SaysAgain => "routes that change by it are sent again or withdrawn",
        ChangeEffect::Nothing => "nothing",
    }
}

#[cfg(test)]
mod tests {
    use fairway_seam::PeerSetting;

    use super::*;

    #[test]
    fn what_a_peer_changes_is_what_its_session_makes_of_it() {
        for PeerSetting { field, written, effect } in PeerSetting::ALL {
            // Behind it stands which other field decides.
            let names = written.split(" beside ").next().unwrap_or_default();
            for name in names.split('`').skip(1).step_by(2) {
                let path = if name.starts_with("metadata.") {
                    name.to_owned()
                } else {
                    format!("spec.{name}")
                };
                let fits = |change: &&Change| {
                    let is_it = matches!(change.part, Part::Field(it)
                        if it == path || it.starts_with(&format!("{path}.")));
                    let says = change.effect == Effect::Session(*effect)
                        || (*effect == ChangeEffect::Nothing && change.effect == Effect::Nothing)
                        // A field of a later version.
                        || change.effect == Effect::Kept;
                    is_it && says
                };
                let found = Change::all(Kind::BgpPeer).iter().find(fits);
                assert!(found.is_some(), "{field}: no line says {effect:?} of {path}");
            }
        }
    }
}
