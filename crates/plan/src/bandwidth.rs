//! The value of `linkBandwidth: auto`.
//!
//! Knows numbers only. Called by `routes`.

use fairway_ground::LinkBandwidth;

/// For each usable endpoint. Only the ratio between nodes counts, so the unit is a round number.
const BITS_PER_SECOND: u64 = 1_000_000_000;

/// For a node without any: little traffic while others have some, and equal parts if none has.
const BITS_PER_SECOND_WITHOUT: u64 = BITS_PER_SECOND / 10;

/// The weight of a node with this many usable endpoints; without a Service to count them for, as with
/// one. The number is rounded down to 1, 2, 3, 4, 6, 8, 12, 16 and so on, so that a node with many
/// does not send an UPDATE for each change.
pub(super) fn by_endpoints(endpoints: Option<u32>) -> LinkBandwidth {
    let bits_per_second = match endpoints.unwrap_or(1) {
        0 => BITS_PER_SECOND_WITHOUT,
        count => u64::from(step(count)).saturating_mul(BITS_PER_SECOND),
    };
    LinkBandwidth { bits_per_second }
}

/// The largest power of two, or one and a half times one, that is at most `count`, which is not
/// zero.
fn step(count: u32) -> u32 {
    let power = 1 << count.checked_ilog2().unwrap_or(0);
    let with_half = power + power / 2;
    if count < with_half { power } else { with_half }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_proportional_and_change_in_steps() {
        let gigabits = |count| by_endpoints(Some(count)).bits_per_second / BITS_PER_SECOND;
        let weights: Vec<_> = (1..=17).map(gigabits).collect();
        assert_eq!(weights, [1, 2, 3, 4, 4, 6, 6, 8, 8, 8, 8, 12, 12, 12, 12, 16, 16]);
        assert_eq!((gigabits(23), gigabits(24), gigabits(110)), (16, 24, 96));
        assert_eq!(by_endpoints(Some(u32::MAX)).bits_per_second, 3_221_225_472_000_000_000);
    }

    #[test]
    fn a_node_without_endpoints_gets_little_and_one_without_services_a_share() {
        assert_eq!(by_endpoints(Some(0)).bits_per_second, 100_000_000);
        assert_eq!(by_endpoints(None), by_endpoints(Some(1)));
    }
}
