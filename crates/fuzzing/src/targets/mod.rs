//! One function for each kind of bytes that a neighbour can send.
//!
//! A target accepts any bytes, asserts what must hold for all of them, and returns how they were treated. It
//! reports a finding by a panic. The same functions serve the driver, the tests and libFuzzer.

pub mod attribute;
pub mod attribute_rules;
pub mod message;
pub mod nlri;
pub mod node;
pub mod pipeline;
pub mod router_discovery;
pub mod session;
pub mod speaker;
pub mod update;

pub use attributes::*;
pub use message::{capabilities, framing, notification, open, route_refresh};
pub use nlri::{add_path as nlri_add_path, ipv4 as nlri_ipv4, ipv6 as nlri_ipv6};
pub use pipeline::{
    add_path as pipeline_add_path, external as pipeline_external, internal as pipeline_internal,
    ipv6_only as pipeline_ipv6_only, receive, two_octet as pipeline_two_octet,
};
pub use router_discovery::router_discovery;
pub use session::handshake;
pub use update::{
    add_path as update_add_path, external as update_external, internal as update_internal,
    two_octet as update_two_octet,
};

use fairway_ground::AddressFamily;
use update::{ADD_PATH, EXTERNAL, INTERNAL, TWO_OCTET};

use crate::grammar::{open, prefix};
use crate::mutation::{self, Mutation};
use crate::stream;
use crate::{Dice, Outcome};

/// A target and its input.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, that of the function.
    pub name: &'static str,
    /// The function.
    pub run: fn(&[u8]) -> Outcome,
    /// Draws an input for it.
    pub draw: fn(&mut Dice) -> Vec<u8>,
    /// Its number of inputs, relative to the other targets.
    pub weight: usize,
    /// How many times the content of the input is stored: by the parser, in the tables of a node, and the
    /// same again by a second speaker. Each may allocate for it.
    pub copies: u64,
}

impl Target {
    /// The input for a seed.
    pub fn input(&self, seed: u64) -> Vec<u8> {
        (self.draw)(&mut Dice::seeded(seed))
    }
}

/// Finds a target by its name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

macro_rules! attribute_targets {
    ($($name:ident $code:literal)*) => {
        /// One target for each attribute: the input is its value.
        pub mod attributes {
            use super::{Outcome, attribute};
            $(
                /// The value of one attribute in an otherwise valid UPDATE.
                pub fn $name(input: &[u8]) -> Outcome {
                    attribute::value($code, input)
                }
            )*
        }

        const ATTRIBUTE_TARGETS: &[Target] = &[$(Target {
            name: stringify!($name),
            run: attributes::$name,
            draw: |dice| {
                let context = dice.pick(&[TWO_OCTET, EXTERNAL]);
                mutation::value(dice, $code, context)
            },
            weight: 1, copies: 1,
        }),*];
    };
}

attribute_targets! {
    attribute_origin 1
    attribute_as_path 2
    attribute_next_hop 3
    attribute_multi_exit_disc 4
    attribute_local_pref 5
    attribute_atomic_aggregate 6
    attribute_aggregator 7
    attribute_communities 8
    attribute_originator_id 9
    attribute_cluster_list 10
    attribute_mp_reach_nlri 14
    attribute_mp_unreach_nlri 15
    attribute_extended_communities 16
    attribute_as4_path 17
    attribute_as4_aggregator 18
    attribute_large_communities 32
    attribute_only_to_customer 35
    attribute_prefix_sid 40
    attribute_attr_set 128
}

const MESSAGE_TARGETS: &[Target] = &[
    Target { name: "framing", run: message::framing, draw: draw::framing, weight: 4, copies: 1 },
    Target { name: "open", run: message::open, draw: draw::open, weight: 6, copies: 1 },
    Target {
        name: "capabilities",
        run: message::capabilities,
        draw: draw::capabilities,
        weight: 4,
        copies: 1,
    },
    Target {
        name: "notification",
        run: message::notification,
        draw: draw::notification,
        weight: 2,
        copies: 1,
    },
    Target {
        name: "route_refresh",
        run: message::route_refresh,
        draw: draw::route_refresh,
        weight: 1,
        copies: 1,
    },
    Target {
        name: "update_external",
        run: update::external,
        draw: |dice| mutation::update(dice, EXTERNAL).bytes,
        weight: 12,
        copies: 1,
    },
    Target {
        name: "update_internal",
        run: update::internal,
        draw: |dice| mutation::update(dice, INTERNAL).bytes,
        weight: 12,
        copies: 1,
    },
    Target {
        name: "update_two_octet",
        run: update::two_octet,
        draw: |dice| mutation::update(dice, TWO_OCTET).bytes,
        weight: 8,
        copies: 1,
    },
    Target {
        name: "update_add_path",
        run: update::add_path,
        draw: |dice| mutation::update(dice, ADD_PATH).bytes,
        weight: 8,
        copies: 1,
    },
    Target { name: "nlri_ipv4", run: nlri::ipv4, draw: draw::nlri_ipv4, weight: 2, copies: 1 },
    Target { name: "nlri_ipv6", run: nlri::ipv6, draw: draw::nlri_ipv6, weight: 2, copies: 1 },
    Target {
        name: "router_discovery",
        run: router_discovery::router_discovery,
        draw: draw::router_discovery,
        weight: 1,
        copies: 1,
    },
    Target {
        name: "nlri_add_path",
        run: nlri::add_path,
        draw: draw::nlri_add_path,
        weight: 2,
        copies: 1,
    },
    Target {
        name: "handshake",
        run: session::handshake,
        draw: draw::handshake,
        weight: 6,
        copies: 1,
    },
    Target {
        name: "receive",
        run: pipeline::receive,
        draw: |dice| stream::session(dice, EXTERNAL).bytes,
        weight: 4,
        copies: 2,
    },
    // A session of these takes as long as ten messages.
    Target {
        name: "pipeline_external",
        run: pipeline::external,
        draw: |dice| stream::session(dice, EXTERNAL).bytes,
        weight: 4,
        copies: 4,
    },
    Target {
        name: "pipeline_internal",
        run: pipeline::internal,
        draw: |dice| stream::session(dice, INTERNAL).bytes,
        weight: 4,
        copies: 4,
    },
    Target {
        name: "pipeline_two_octet",
        run: pipeline::two_octet,
        draw: |dice| stream::session(dice, TWO_OCTET).bytes,
        weight: 3,
        copies: 4,
    },
    Target {
        name: "pipeline_ipv6_only",
        run: pipeline::ipv6_only,
        draw: |dice| stream::session(dice, EXTERNAL).bytes,
        weight: 2,
        copies: 4,
    },
    Target {
        name: "pipeline_add_path",
        run: pipeline::add_path,
        draw: |dice| stream::session(dice, ADD_PATH).bytes,
        weight: 4,
        copies: 4,
    },
];

/// All targets.
pub const TARGETS: &[Target] = &{
    let nothing =
        Target { name: "", run: |_| Outcome::ACCEPTED, draw: |_| Vec::new(), weight: 0, copies: 1 };
    let mut all = [nothing; MESSAGE_TARGETS.len() + ATTRIBUTE_TARGETS.len()];
    let mut position = 0;
    while position < all.len() {
        all[position] = if position < MESSAGE_TARGETS.len() {
            MESSAGE_TARGETS[position]
        } else {
            ATTRIBUTE_TARGETS[position - MESSAGE_TARGETS.len()]
        };
        position += 1;
    }
    all
};

/// How the inputs of the targets are generated.
mod draw {
    use super::*;
    use crate::grammar::router_discovery;

    pub(super) fn router_discovery(dice: &mut Dice) -> Vec<u8> {
        bent(dice, router_discovery::packet)
    }

    fn bent(dice: &mut Dice, valid: fn(&mut Dice) -> crate::grammar::Draft) -> Vec<u8> {
        let (draft, other) = (valid(dice), valid(dice));
        mutation::bent(dice, &draft, &other, Mutation::Usual).bytes
    }

    pub(super) fn framing(dice: &mut Dice) -> Vec<u8> {
        if dice.chance(50) { stream::messages(dice).bytes } else { bent(dice, stream::messages) }
    }

    pub(super) fn open(dice: &mut Dice) -> Vec<u8> {
        bent(dice, open::body)
    }

    pub(super) fn capabilities(dice: &mut Dice) -> Vec<u8> {
        bent(dice, open::capabilities)
    }

    pub(super) fn notification(dice: &mut Dice) -> Vec<u8> {
        bent(dice, open::notification)
    }

    pub(super) fn route_refresh(dice: &mut Dice) -> Vec<u8> {
        bent(dice, open::route_refresh)
    }

    pub(super) fn nlri_ipv4(dice: &mut Dice) -> Vec<u8> {
        bent(dice, |dice| prefix::list(dice, EXTERNAL, AddressFamily::Ipv4Unicast, 12))
    }

    pub(super) fn nlri_ipv6(dice: &mut Dice) -> Vec<u8> {
        bent(dice, |dice| prefix::list(dice, EXTERNAL, AddressFamily::Ipv6Unicast, 12))
    }

    pub(super) fn nlri_add_path(dice: &mut Dice) -> Vec<u8> {
        let family = dice.pick(&AddressFamily::ALL);
        let list = |dice: &mut Dice| prefix::list(dice, ADD_PATH, family, 12);
        let (draft, other) = (list(dice), list(dice));
        mutation::bent(dice, &draft, &other, Mutation::Usual).bytes
    }

    pub(super) fn handshake(dice: &mut Dice) -> Vec<u8> {
        let stream = stream::handshake(dice);
        if dice.chance(70) {
            return stream.bytes;
        }
        let other = stream::messages(dice);
        mutation::bent(dice, &stream, &other, Mutation::Usual).bytes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Answer;

    #[test]
    fn every_target_is_reached_by_its_own_grammar() {
        for target in TARGETS {
            let mut accepted = 0;
            let mut outcomes = BTreeSet::new();
            for seed in 0..2_000 {
                let outcome = (target.run)(&target.input(seed));
                accepted += usize::from(outcome.is_accepted());
                outcomes.insert(outcome);
            }
            assert!(accepted > 100, "{}: only {accepted} of 2000 accepted", target.name);
            let always_accepts = matches!(
                target.name,
                "notification" | "attribute_prefix_sid" | "attribute_attr_set"
            );
            assert!(outcomes.len() > 1 || always_accepts, "{}: {outcomes:?}", target.name);
        }
    }

    #[test]
    fn the_update_targets_reach_every_disposition() {
        for name in ["update_external", "update_internal", "update_two_octet", "update_add_path"] {
            let target = target(name).unwrap();
            let outcomes: BTreeSet<Outcome> =
                (0..5_000).map(|seed| (target.run)(&target.input(seed))).collect();
            let answers: BTreeSet<Answer> = outcomes.iter().map(|it| it.answer).collect();
            for answer in [
                Answer::Accepted,
                Answer::AttributeDiscard,
                Answer::TreatAsWithdraw,
                Answer::Notification(3, 1),
                Answer::Notification(3, 2),
                Answer::Notification(3, 9),
                Answer::Notification(3, 10),
            ] {
                assert!(answers.contains(&answer), "{name} never reaches {answer:?}");
            }
            assert!(outcomes.len() > 25, "{name}: {} outcomes", outcomes.len());
        }
    }

    #[test]
    fn a_seed_is_an_input() {
        for target in TARGETS {
            assert_eq!(target.input(7), target.input(7), "{}", target.name);
        }
    }

    #[test]
    fn names_are_those_of_files() {
        let names: BTreeSet<&str> = TARGETS.iter().map(|target| target.name).collect();
        assert_eq!(names.len(), TARGETS.len());
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/fuzz_targets");
        let files = std::fs::read_dir(folder).expect("the folder of the libFuzzer targets");
        let files: BTreeSet<String> = files
            .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(files, names.iter().map(|name| (*name).to_owned()).collect());
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        for name in names {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not built");
        }
    }
}
