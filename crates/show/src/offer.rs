//! Which of the two ends offered a capability, in FRR's words.

use fairway_ground::{AddressFamily, Role};
use fairway_seam::SessionView;
use fairway_seam::capability::Capability;

/// Which side offered something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) ours: bool,
    pub(super) theirs: bool,
}

impl Offer {
    pub(super) fn of(session: &SessionView, is_it: impl Fn(&Capability) -> bool) -> Self {
        Self {
            ours: session.capabilities_sent.iter().any(&is_it),
            theirs: session.capabilities_received.iter().any(&is_it),
        }
    }

    pub(super) fn with_code(session: &SessionView, code: u8) -> Self {
        Self::of(session, |capability| capability.code() == code)
    }

    pub(super) fn of_family(session: &SessionView, family: AddressFamily) -> Self {
        let wanted = Capability::Multiprotocol(family.into());
        Self::of(session, |capability| *capability == wanted)
    }

    pub(super) fn key(self) -> Option<&'static str> {
        match (self.ours, self.theirs) {
            (true, true) => Some("advertisedAndReceived"),
            (true, false) => Some("advertised"),
            (false, true) => Some("received"),
            (false, false) => None,
        }
    }

    pub(super) fn text(self) -> Option<&'static str> {
        match (self.ours, self.theirs) {
            (true, true) => Some("advertised and received"),
            (true, false) => Some("advertised"),
            (false, true) => Some("received"),
            (false, false) => None,
        }
    }
}

/// The neighbour's role (RFC 9234 §4.1), in FRR's word.
pub(super) fn remote_role(session: &SessionView) -> Option<&'static str> {
    let code = session.capabilities_received.iter().find_map(Capability::role)?;
    Role::from_code(code).map(Role::name)
}
