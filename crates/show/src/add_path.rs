//! Which side of a session offered several paths, of which family and in which direction
//! (RFC 7911), in FRR's words. Used by [`super::capabilities`].

use std::fmt::Write;

use fairway_ground::AddressFamily;
use fairway_seam::SessionView;
use fairway_seam::capability::{AddPathOffer, Capability};

use super::family_key::family_key;
use super::object::Object;
use super::offer::Offer;

/// FRR's name of a direction in JSON and in text, and what offers it.
type Direction = (&'static str, &'static str, fn(&AddPathOffer) -> bool);

const DIRECTIONS: [Direction; 2] = [("tx", "TX", |it| it.send), ("rx", "RX", |it| it.receive)];

/// Which side offered `is_it` for `family`.
fn offer(session: &SessionView, family: AddressFamily, is_it: fn(&AddPathOffer) -> bool) -> Offer {
    Offer::of(session, |capability| {
        let Capability::AddPath(offers) = capability else { return false };
        offers.iter().any(|it| it.family.family() == Some(family) && is_it(it))
    })
}

/// Whether everything that is offered is shown here.
pub(super) fn is_shown(offers: &[AddPathOffer]) -> bool {
    offers.iter().all(|offer| offer.family.family().is_some())
}

/// `addPath`: what was offered for each family, as FRR 8.4 has it.
pub(super) fn json(session: &SessionView) -> Option<Object> {
    let of_family = |family: AddressFamily| {
        let direction = |(name, _, is_it): Direction| {
            let key = match offer(session, family, is_it).key()? {
                "advertised" => "Advertised",
                "received" => "Received",
                _ => "AdvertisedAndReceived",
            };
            Some((format!("{name}{key}"), true.into()))
        };
        let offers: Object = DIRECTIONS.into_iter().filter_map(direction).collect();
        (!offers.is_empty()).then(|| (family_key(family).to_owned(), offers.into()))
    };
    let families: Object = AddressFamily::ALL.into_iter().filter_map(of_family).collect();
    (!families.is_empty()).then_some(families)
}

/// The `AddPath:` section; empty if neither side offered anything.
pub(super) fn text(session: &SessionView) -> String {
    let mut lines = String::new();
    for family in AddressFamily::ALL {
        for (_, name, is_it) in DIRECTIONS {
            if let Some(text) = offer(session, family, is_it).text() {
                let _ = writeln!(lines, "      {family}: {name} {text}");
            }
        }
    }
    if lines.is_empty() { lines } else { format!("    AddPath:\n{lines}") }
}
