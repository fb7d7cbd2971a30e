//! How much of long work does one neighbour do in one turn? A million routes that a session leaves behind, or that RPKI or
//! another policy says something else about, are worked on in parts, so that no other neighbour waits for all of them. Knows
//! no route.

/// Routes of one turn: some milliseconds. About those of one read of a socket, which are worked on at once.
pub(super) const PART_MAX: usize = if cfg!(test) { 6 } else { 4096 };
/// Of each neighbour, as many in any case: of two hundred with long work, all go on.
const PART_MIN: usize = if cfg!(test) { 2 } else { 64 };

/// Routes of each neighbour, if so many neighbours have long work in this turn.
pub(super) fn share(neighbours: usize) -> usize {
    (PART_MAX / neighbours.max(1)).max(PART_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_neighbours_share_a_turn_and_each_of_them_goes_on() {
        assert_eq!([0, 1, 2, 1000].map(share), [PART_MAX, PART_MAX, PART_MAX / 2, PART_MIN]);
    }
}
