//! The tables that can be looked at, one at a time.

/// One table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum View {
    /// Sessions.
    #[default]
    Neighbors,
    /// Services of type LoadBalancer.
    Services,
    /// Pools of addresses.
    Pools,
    /// Addresses on the local segment.
    Segment,
    /// Prefixes of the node that belong to no Service.
    Prefixes,
    /// What happened.
    Events,
}

impl View {
    /// All of them, in the order of their keys.
    pub(crate) const ALL: [Self; 6] =
        [Self::Neighbors, Self::Services, Self::Pools, Self::Segment, Self::Prefixes, Self::Events];

    /// Its title.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Neighbors => "Neighbors",
            Self::Services => "Services",
            Self::Pools => "Pools",
            Self::Segment => "Layer 2",
            Self::Prefixes => "Prefixes",
            Self::Events => "Events",
        }
    }

    /// The number of its key less one.
    pub(crate) fn position(self) -> usize {
        Self::ALL.iter().position(|it| *it == self).unwrap_or_default()
    }

    /// The one that is `steps` further, around the end.
    pub(crate) fn moved(self, steps: usize) -> Self {
        let at = self.position().saturating_add(steps) % Self::ALL.len();
        Self::ALL.get(at).copied().unwrap_or_default()
    }
}
