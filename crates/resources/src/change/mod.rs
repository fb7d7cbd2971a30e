//! The effect of a change of each field of each kind on routers, while the daemon runs.
//!
//! One table, for the documentation and for code that predicts the effect of a change. Holds
//! results only: `diff` computes what a change does to one node; tests make each change under
//! a running daemon and observe its neighbours. Tests of `resources` check that no field is missing.

mod announced;
mod peers;
mod services;

use fairway_model::Kind;
use fairway_seam::ChangeEffect;

/// What routers notice of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The effect on the session of the peer.
    Session(ChangeEffect),
    /// The peer is added or removed on this node.
    PeerComesOrGoes,
    /// BFD signs differently, or requires different signatures.
    ExchangesBfdKeys,
    /// BFD no longer accepts packets from farther away.
    HearsLess,
    /// The session ends, since there are more routes than the limit.
    TooManyPrefixes,
    /// The affected routes are announced or withdrawn.
    Routes,
    /// All routes of this node are announced or withdrawn.
    AllRoutes,
    /// The affected routes are sent again, replacing the earlier ones.
    Attributes,
    /// As `Attributes`, on iBGP only.
    AttributesInside,
    /// As `Attributes`, on eBGP only.
    AttributesOutside,
    /// The same addresses are announced with other prefixes.
    Prefixes,
    /// A Service gets other addresses, or more, or fewer.
    Addresses,
    /// Only later assignments change.
    LaterAddresses,
    /// Other RPKI caches are asked.
    Caches,
    /// Other BMP stations are told of sessions and routes, or they are told others.
    Stations,
    /// Received routes are chosen by other criteria.
    Choice,
    /// It is another object.
    OtherObject,
    /// The operator's lines in FRR's configuration change.
    FrrLines,
    /// A fault: the earlier version stays in force.
    Kept,
    /// Nothing.
    Nothing,
}

/// The part that changes.
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
    /// Its document is deleted.
    Vanishes,
    /// Its document becomes invalid.
    Breaks,
    /// Its document moves to another file, or to another place in its file.
    Moves,
}

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The part that changes.
    pub part: Part,
    /// Under which conditions this effect applies; empty for all, or all others.
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
            Kind::BgpConfiguration => peers::BGP_CONFIGURATION,
            Kind::Service => services::SERVICE,
            Kind::EndpointSlice => services::ENDPOINT_SLICE,
            Kind::Node => services::NODE,
            Kind::Namespace => services::NAMESPACE,
        }
    }
}

impl Effect {
    /// The effect in words, for operators.
    pub fn words(self) -> &'static str {
        match self {
            Self::Session(effect) => session_words(effect),
            Self::PeerComesOrGoes => {
                "the session of the peer starts, or ends with Peer De-configured (6/3); other \
                 sessions stay up"
            }
            Self::ExchangesBfdKeys => {
                "nothing, if both sides change within the detection time of BFD; else the session \
                 ends with BFD Down (6/10)"
            }
            Self::HearsLess => {
                "nothing, if multihop BFD packets still arrive with the new TTL; else the session \
                 ends with BFD Down (6/10)"
            }
            Self::TooManyPrefixes => {
                "the session ends with Maximum Number of Prefixes Reached (6/1), and is tried again \
                 after 30 s"
            }
            Self::Routes => "the affected routes are announced or withdrawn, and no others",
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
            Self::Stations => {
                "a station that is new, or is told something else, is connected to and told all; for \
                 adjRIBInPrePolicy routers are asked for their routes (RFC 2918); sessions and routes stay"
            }
            Self::Choice => {
                "routes are chosen again: where another one is the best now, one UPDATE in place of each; sessions \
                 stay up"
            }
            Self::Caches => {
                "routes whose state is another one are accepted, refused or changed by the rules that \
                 match it; sessions stay up, and no router is asked for its routes"
            }
            Self::Prefixes => "the new prefixes are announced, and the old ones withdrawn",
            Self::Addresses => {
                "addresses that are still allowed stay; others are released and withdrawn, and \
                 missing ones are assigned and announced; other Services keep theirs"
            }
            Self::LaterAddresses => {
                "nothing: assigned addresses stay, and only later assignments follow the change"
            }
            Self::FrrLines => {
                "with `--bgp frr` FRR gets the lines that differ, and a line that it refuses is a \
                 fault; else nothing"
            }
            Self::OtherObject => "it is another object: the old one is deleted, the new one added",
            Self::Kept => "a fault: the earlier version stays in force, and routers notice nothing",
            Self::Nothing => "nothing",
        }
    }
}

fn session_words(effect: ChangeEffect) -> &'static str {
    match effect {
        ChangeEffect::OtherPeer => {
            "it is another peer: the old session ends with Peer De-configured (6/3), the new one \
             starts"
        }
        ChangeEffect::NewSession => "a new session (6/6)",
        ChangeEffect::NewExternalSession => "a new session (6/6); for eBGP only",
        ChangeEffect::ExchangesKeys => {
            "the session stays up, if both sides change within the hold time"
        }
        ChangeEffect::Down => {
            "ends the session with Administrative Shutdown (6/2) and the text; another text while it \
             is down changes nothing; without `shutdown` it is dialled at once"
        }
        ChangeEffect::AsksAgain => {
            "routes that are no longer accepted are removed, and the router is asked for its \
             routes (ROUTE-REFRESH); without that capability it gets a new session (6/6)"
        }
        ChangeEffect::SaysAgain => "the affected routes are sent again or withdrawn",
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
            // It is followed by another field that decides.
            let names = written.split(" beside ").next().unwrap_or_default();
            for name in names.split('`').skip(1).step_by(2) {
                let path = if name.starts_with("metadata.") {
                    name.to_owned()
                } else {
                    format!("spec.{name}")
                };
                let fits = |change: &&Change| {
                    let is_it = matches!(change.part, Part::Field(it)
                        if it == path || it.strip_prefix(&path).is_some_and(|it| it.starts_with(['.', '['])));
                    let says = change.effect == Effect::Session(*effect)
                        || (*effect == ChangeEffect::Nothing && change.effect == Effect::Nothing)
                        // A field of a later version.
                        || change.effect == Effect::Kept;
                    is_it && says
                };
                let found = Change::all(Kind::BgpPeer).iter().find(fits);
                assert!(found.is_some(), "{field}: no line has {effect:?} for {path}");
            }
        }
    }
}
