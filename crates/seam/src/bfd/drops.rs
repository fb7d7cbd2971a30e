//! BFD packets that no session accepted, counted by reason.

/// Why a packet was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The TTL or hop limit shows that the packet came from too far away.
    Ttl,
    /// The packet is not a valid control packet.
    Malformed,
    /// No session has the discriminator.
    UnknownDiscriminator,
    /// No session is configured with the sender.
    UnknownSender,
    /// The packet came in over another interface, VRF or kind of path than its session's.
    WrongWay,
    /// Only one of the two ends authenticates packets.
    AuthenticationPresence,
    /// The authentication section has another type, length or key ID than configured.
    AuthenticationSection,
    /// The authentication sequence number is out of order.
    AuthenticationSequence,
    /// The authentication hash does not match.
    AuthenticationHash,
    /// The session is administratively down.
    AdminDown,
    /// An echo packet that belongs to no session.
    Echo,
}

impl DropReason {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 11] = [
        Self::Ttl,
        Self::Malformed,
        Self::UnknownDiscriminator,
        Self::UnknownSender,
        Self::WrongWay,
        Self::AuthenticationPresence,
        Self::AuthenticationSection,
        Self::AuthenticationSequence,
        Self::AuthenticationHash,
        Self::AdminDown,
        Self::Echo,
    ];

    /// The label that metrics and `show` use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ttl => "ttl",
            Self::Malformed => "malformed",
            Self::UnknownDiscriminator => "unknown-discriminator",
            Self::UnknownSender => "unknown-sender",
            Self::WrongWay => "wrong-way",
            Self::AuthenticationPresence => "authentication-presence",
            Self::AuthenticationSection => "authentication-section",
            Self::AuthenticationSequence => "authentication-sequence",
            Self::AuthenticationHash => "authentication-hash",
            Self::AdminDown => "admin-down",
            Self::Echo => "echo",
        }
    }
}

/// Packets that were not accepted, by reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drops([u64; DropReason::ALL.len()]);

impl Drops {
    /// Counts one more for this reason.
    pub fn count(&mut self, reason: DropReason) {
        if let Some(place) = self.0.get_mut(reason as usize) {
            *place = place.saturating_add(1);
        }
    }

    /// Adds all counts of `other`.
    pub fn add(&mut self, other: &Self) {
        for (place, count) in self.0.iter_mut().zip(other.0) {
            *place = place.saturating_add(count);
        }
    }

    /// The count for this reason.
    pub fn of(&self, reason: DropReason) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or(0)
    }

    /// Each reason's label, and its count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        DropReason::ALL.into_iter().map(DropReason::name).zip(self.0)
    }

    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_count_of_its_own() {
        for reason in DropReason::ALL {
            let mut drops = Drops::default();
            drops.count(reason);
            assert_eq!((drops.of(reason), drops.total()), (1, 1));
            let counted: Vec<&str> = drops.iter().filter(|it| it.1 == 1).map(|it| it.0).collect();
            assert_eq!(counted, [reason.name()]);
        }
    }
}
