//! Which released addresses become available for other Services once a plan has reached every neighbour.
//!
//! Pure. The daemon records each plan that it hands to the backend, and reports when one has been written.
//! Two are remembered, the one that is awaited and the newest: so changes that come faster than neighbours
//! read neither pile up nor delay the awaited one.

use fairway_allocator::ReleaseMark;

/// A plan, and the releases before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Handed {
    generation: u64,
    released: ReleaseMark,
}

/// The plans that are not written yet.
#[derive(Debug, Clone, Default)]
pub struct Withdrawing {
    awaited: Option<Handed>,
    newest: Option<Handed>,
    done: ReleaseMark,
}

impl Withdrawing {
    /// The plan of this generation was handed over, and contains nothing that was released up to `released`.
    pub fn handed(&mut self, generation: u64, released: ReleaseMark) {
        let last = self.newest.or(self.awaited).map_or(self.done, |handed| handed.released);
        if released <= last {
            return;
        }
        let handed = Some(Handed { generation, released });
        if self.awaited.is_none() { self.awaited = handed } else { self.newest = handed }
    }

    /// The generation to wait for, if any.
    pub fn awaited(&self) -> Option<u64> {
        self.awaited.map(|handed| handed.generation)
    }

    /// The awaited plan has reached all neighbours: returns what is available now.
    pub fn reached(&mut self) -> Option<ReleaseMark> {
        let handed = self.awaited.take()?;
        self.awaited = self.newest.take();
        self.done = handed.released;
        Some(handed.released)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use fairway_allocator::Allocator;
    use fairway_ground::Instant;
    use fairway_model::ObjectName;

    use super::*;

    /// A sequence of marks.
    fn marks(count: u8) -> Vec<ReleaseMark> {
        let mut allocator = Allocator::default();
        let former = ObjectName::new("default", "web");
        let release = |number: u8| {
            allocator.note_released(Instant::ZERO, IpAddr::from([192, 0, 2, number]), &former);
            allocator.last_release()
        };
        (0..count).map(release).collect()
    }

    #[test]
    fn what_is_waited_for_is_not_put_off_and_the_newest_follows() {
        let marks = marks(4);
        let mut withdrawing = Withdrawing::default();
        withdrawing.handed(1, ReleaseMark::default());
        assert_eq!(withdrawing.awaited(), None, "nothing was released");
        withdrawing.handed(2, marks[0]);
        withdrawing.handed(3, marks[0]);
        withdrawing.handed(4, marks[1]);
        withdrawing.handed(5, marks[2]);
        assert_eq!(withdrawing.awaited(), Some(2));
        assert_eq!(withdrawing.reached(), Some(marks[0]));
        assert_eq!(withdrawing.awaited(), Some(5));
        withdrawing.handed(6, marks[2]);
        assert_eq!(withdrawing.reached(), Some(marks[2]));
        assert_eq!((withdrawing.awaited(), withdrawing.reached()), (None, None));
        withdrawing.handed(7, marks[2]);
        assert_eq!(withdrawing.awaited(), None, "that is known");
        withdrawing.handed(8, marks[3]);
        assert_eq!(withdrawing.awaited(), Some(8));
    }
}
