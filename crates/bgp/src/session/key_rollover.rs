//! Which keys of TCP-AO a connection holds, and when an old one may go (RFC 5925 §6.1).
//!
//! Knows no socket: its input is what the kernel holds, its output is what to change. The edge calls it when
//! a connection begins, when the list of keys changes, and periodically while an old key is left.

use std::fmt;

use fairway_ground::{AoKey, AoKeys};

/// The kernel's state of one key of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldKey {
    /// See [`AoKey::send_id`].
    pub send_id: u8,
    /// See [`AoKey::recv_id`].
    pub recv_id: u8,
    /// What we send is signed with it: the neighbour requested that (Current_key).
    pub current: bool,
    /// The neighbour is asked to sign with it (RNext_key).
    pub asked: bool,
    /// How many segments of the neighbour were signed with it.
    pub segments: u64,
}

impl HeldKey {
    fn unused(key: &AoKey) -> Self {
        let (send_id, recv_id) = (key.send_id(), key.recv_id());
        Self { send_id, recv_id, current: false, asked: false, segments: 0 }
    }
}

/// One change to the keys of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyChange {
    /// Add this key.
    Add(AoKey),
    /// Request that the neighbour signs with this key.
    Ask(AoKey),
    /// Delete this key; should it be in use, the other one takes its place.
    Delete(AoKey, Option<AoKey>),
}

impl fmt::Display for KeyChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, key) = match self {
            Self::Add(key) => ("new key", key),
            Self::Ask(key) => ("the neighbor is asked to sign with key", key),
            Self::Delete(key, _) => ("deleted, no longer in use: key", key),
        };
        write!(f, "{what} {}/{}", key.send_id(), key.recv_id())
    }
}

/// The keys that a connection was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRing(Vec<Given>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Given {
    key: AoKey,
    /// How many segments the neighbour had signed with it at the last check.
    segments: u64,
}

/// A key that was given and that the kernel still holds.
struct Look {
    key: AoKey,
    held: HeldKey,
    /// The neighbour signed with it since the last check.
    heard: bool,
}

impl KeyRing {
    /// The keys of a new connection.
    pub fn new(keys: &AoKeys) -> Self {
        Self(keys.iter().map(|key| Given { key: key.clone(), segments: 0 }).collect())
    }

    /// Whether a key is left that is no longer in `wanted`.
    pub fn is_rolling(&self, wanted: &AoKeys) -> bool {
        self.0.iter().any(|given| !wanted.contains(&given.key))
    }

    /// What to change, in this order, so that the connection comes to hold `wanted` without ever
    /// missing a segment: new keys come first, then the neighbour is asked for the preferred one,
    /// and a key that is no longer wanted is deleted when neither side signs with it. `held` is the
    /// kernel's state; changes that the kernel did not accept are tried again.
    ///
    /// Ours: a key that was removed from the list stays for as long as the neighbour uses it on this
    /// connection, as RFC 5925 §3.1 presumes. No new connection can begin with it.
    pub fn follow(&mut self, wanted: &AoKeys, held: &[HeldKey]) -> Vec<KeyChange> {
        let mut looks: Vec<Look> = self.0.drain(..).filter_map(|it| it.look(held)).collect();
        let mut changes = Vec::new();
        for new in wanted {
            if looks.iter().any(|look| look.key == *new) {
                continue;
            }
            // A number that is wanted again is taken from the old key, used or not.
            while let Some(at) = looks.iter().position(|look| look.key.overlaps(new)) {
                let Look { key, held, .. } = looks.remove(at);
                let other = looks.iter().find(|look| wanted.contains(&look.key));
                let other = other.or(looks.first()).map(|look| look.key.clone());
                let in_use = held.current || held.asked;
                changes.push(KeyChange::Delete(key, other.filter(|_| in_use)));
            }
            changes.push(KeyChange::Add(new.clone()));
            looks.push(Look { key: new.clone(), held: HeldKey::unused(new), heard: false });
        }
        if let Some(preferred) = wanted.preferred() {
            let asked = looks.iter().any(|look| look.key == *preferred && look.held.asked);
            changes.extend((!asked).then(|| KeyChange::Ask(preferred.clone())));
        }
        // The neighbour signs with one key at a time, and while it is silent that key is not known.
        let spoke = looks.iter().any(|look| look.heard);
        let over = looks.iter().filter(|look| {
            spoke && !wanted.contains(&look.key) && !look.heard && !look.held.current
        });
        changes.extend(over.map(|look| KeyChange::Delete(look.key.clone(), None)));
        self.0 = looks
            .into_iter()
            .map(|look| Given { key: look.key, segments: look.held.segments })
            .collect();
        changes
    }
}

impl Given {
    fn look(self, held: &[HeldKey]) -> Option<Look> {
        let Self { key, segments } = self;
        let ids = (key.send_id(), key.recv_id());
        let held = *held.iter().find(|it| (it.send_id, it.recv_id) == ids)?;
        Some(Look { key, held, heard: held.segments > segments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairway_ground::AoAlgorithm;

    fn key(id: u8) -> AoKey {
        AoKey::new(id, id, AoAlgorithm::HmacSha1, vec![id]).unwrap()
    }

    fn keys<const N: usize>(ids: [u8; N]) -> AoKeys {
        AoKeys::new(ids.map(key).to_vec()).unwrap()
    }

    /// A kernel: it applies each change, and so does its neighbour if it has the key.
    struct Kernel {
        held: Vec<HeldKey>,
        neighbour: Vec<u8>,
        neighbour_signs_with: u8,
        neighbour_asks_for: u8,
    }

    impl Kernel {
        fn with<const N: usize>(ids: [u8; N], neighbour: &[u8]) -> Self {
            let held = ids.map(|id| HeldKey::unused(&key(id))).to_vec();
            let first = ids[0];
            let neighbour = neighbour.to_vec();
            let (neighbour_signs_with, neighbour_asks_for) = (first, first);
            let mut kernel = Self { held, neighbour, neighbour_signs_with, neighbour_asks_for };
            kernel.held[0].asked = true;
            kernel.held[0].current = true;
            kernel
        }

        fn make(&mut self, changes: &[KeyChange]) {
            for change in changes {
                match change {
                    KeyChange::Add(new) => {
                        assert!(self.held.iter().all(|it| it.send_id != new.send_id()));
                        self.held.push(HeldKey::unused(new));
                    }
                    KeyChange::Ask(key) => {
                        for it in &mut self.held {
                            it.asked = it.send_id == key.send_id();
                        }
                    }
                    KeyChange::Delete(old, other) => {
                        if let Some(other) = other {
                            for it in &mut self.held {
                                it.current = it.send_id == other.send_id();
                                it.asked = it.current;
                            }
                        }
                        let used = |it: &HeldKey| it.current || it.asked;
                        let old = self.held.iter().position(|it| it.send_id == old.send_id());
                        let old = self.held.remove(old.expect("only what is held is deleted"));
                        assert!(!used(&old), "what is in use is not deleted: {old:?}");
                    }
                }
            }
        }

        /// A segment each way. None may be lost.
        fn talk(&mut self) {
            let current = self.held.iter().find(|it| it.current).unwrap().send_id;
            assert!(self.neighbour.contains(&current), "the neighbor understands us");
            let asked = self.held.iter().find(|it| it.asked).unwrap().recv_id;
            if self.neighbour.contains(&asked) {
                self.neighbour_signs_with = asked;
            }
            let signed = self.neighbour_signs_with;
            let its = self.held.iter_mut().find(|it| it.recv_id == signed);
            its.expect("we understand the neighbor").segments += 1;
            let asks_for = self.neighbour_asks_for;
            if self.held.iter().any(|it| it.send_id == asks_for) {
                for it in &mut self.held {
                    it.current = it.send_id == asks_for;
                }
            }
        }

        fn ids(&self) -> Vec<u8> {
            self.held.iter().map(|it| it.send_id).collect()
        }
    }

    #[test]
    fn a_key_is_exchanged_whoever_of_the_two_begins() {
        for we_begin in [true, false] {
            let mut kernel = Kernel::with([1], &[1]);
            let mut ring = KeyRing::new(&keys([1]));
            let mut wanted = keys([1]);
            kernel.talk();
            for turn in 0..8 {
                if turn == if we_begin { 0 } else { 3 } {
                    wanted = keys([2]);
                }
                if turn == if we_begin { 3 } else { 0 } {
                    kernel.neighbour = vec![1, 2];
                    kernel.neighbour_asks_for = 2;
                }
                let changes = ring.follow(&wanted, &kernel.held);
                kernel.make(&changes);
                kernel.talk();
            }
            assert_eq!(kernel.ids(), [2], "we begin: {we_begin}");
            assert!(!ring.is_rolling(&wanted));
            assert_eq!(ring.follow(&wanted, &kernel.held), [], "nothing is left to do");
        }
    }

    #[test]
    fn an_old_key_stays_while_the_neighbour_knows_no_other() {
        let mut kernel = Kernel::with([1], &[1]);
        let mut ring = KeyRing::new(&keys([1]));
        let wanted = keys([2]);
        for _ in 0..5 {
            let changes = ring.follow(&wanted, &kernel.held);
            kernel.make(&changes);
            kernel.talk();
        }
        assert_eq!(kernel.ids(), [1, 2]);
        assert!(ring.is_rolling(&wanted));
    }

    #[test]
    fn silence_is_no_sign_that_the_neighbour_moved() {
        let mut kernel = Kernel::with([1, 2], &[1, 2]);
        let mut ring = KeyRing::new(&keys([1, 2]));
        // It signs with the first key and asks us for the second.
        kernel.neighbour_asks_for = 2;
        kernel.talk();
        ring.follow(&keys([1, 2]), &kernel.held);
        for _ in 0..3 {
            let changes = ring.follow(&keys([2]), &kernel.held);
            kernel.make(&changes);
        }
        assert_eq!(kernel.ids(), [1, 2]);
    }

    #[test]
    fn a_number_that_is_wanted_again_is_taken_from_the_old_key() {
        let mut kernel = Kernel::with([1], &[1]);
        let mut ring = KeyRing::new(&keys([1]));
        let changes = ring.follow(&keys([2]), &kernel.held);
        kernel.make(&changes);
        let again = AoKey::new(1, 1, AoAlgorithm::HmacSha1, "another").unwrap();
        let wanted = AoKeys::new(vec![again.clone()]).unwrap();
        let changes = ring.follow(&wanted, &kernel.held);
        let expected = [
            KeyChange::Delete(key(1), Some(key(2))),
            KeyChange::Add(again.clone()),
            KeyChange::Ask(again),
        ];
        assert_eq!(changes, expected);
        kernel.make(&changes);
        assert_eq!(kernel.ids(), [2, 1]);
    }

    #[test]
    fn what_the_kernel_did_not_take_is_tried_again() {
        let kernel = Kernel::with([1], &[1]);
        let mut ring = KeyRing::new(&keys([1]));
        let wanted = keys([1, 2]);
        let first = ring.follow(&wanted, &kernel.held);
        assert_eq!(first, [KeyChange::Add(key(2))]);
        assert_eq!(ring.follow(&wanted, &kernel.held), first);
    }
}
