//! How many questions are answered at the same time, of all users and of each.
//!
//! Answers that a slow reader has not taken are in memory; one user who reads slowly leaves room for the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Questions to all nodes at the same time. With 32 small answers each, they take 32 MiB.
const SEATS_MAX: usize = 8;
const SEATS_OF_USER_MAX: usize = 2;

/// Who is being answered.
#[derive(Debug, Clone, Default)]
pub(super) struct Seats(Arc<Mutex<BTreeMap<String, usize>>>);

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Seats,
    user: String,
}

impl Seats {
    /// A place for this user, if there is one.
    pub(super) fn take(&self, user: &str) -> Option<Seat> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_user = taken.get(user).copied().unwrap_or_default();
        if taken.values().sum::<usize>() >= SEATS_MAX || of_user >= SEATS_OF_USER_MAX {
            return None;
        }
        taken.insert(user.to_owned(), of_user.saturating_add(1));
        Some(Seat { seats: self.clone(), user: user.to_owned() })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.user) {
            *count = count.saturating_sub(1);
        }
        taken.retain(|_, count| *count > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_reads_slowly_leaves_room_for_others() {
        let seats = Seats::default();
        let of_one: Vec<_> = (0..SEATS_OF_USER_MAX).map(|_| seats.take("a").unwrap()).collect();
        assert!(seats.take("a").is_none());
        let others: Vec<_> =
            (SEATS_OF_USER_MAX..SEATS_MAX).map(|it| seats.take(&it.to_string()).unwrap()).collect();
        assert!(seats.take("z").is_none());
        drop(others);
        assert!(seats.take("z").is_some());
        assert!(seats.take("a").is_none());
        drop(of_one);
        assert!(seats.take("a").is_some());
        assert!(seats.0.lock().unwrap().is_empty());
    }
}
