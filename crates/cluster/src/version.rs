//! Which of two resource versions is the older one.
//!
//! Kubernetes promises since 1.35 that versions of one resource are decimal integers that grow, of any
//! length; etcd has always created them so.
//!
//! `Ours:` we rely on that promise with older servers as well, but only to refuse what is old: a version that
//! is not such a number has no age, and its object is accepted.

use std::cmp::Ordering;

/// None: at least one of them is not such a number.
pub(super) fn compare(one: &str, other: &str) -> Option<Ordering> {
    let is_number = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() && !text.starts_with('0')
    };
    (is_number(one) && is_number(other)).then(|| one.len().cmp(&other.len()).then(one.cmp(other)))
}

/// Whether `one` is certainly older than `other`.
pub(super) fn is_older(one: &str, other: &str) -> bool {
    compare(one, other) == Some(Ordering::Less)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers_of_any_length_and_not_text() {
        assert!(is_older("9", "10"));
        assert!(is_older("99999999999999999999998", "99999999999999999999999"));
        assert!(!is_older("10", "10"));
        assert!(!is_older("10", "9"));
    }

    #[test]
    fn of_a_version_that_is_no_number_nothing_is_known() {
        for odd in ["", "0", "012", "1a", "-1", "x"] {
            assert_eq!(compare(odd, "10"), None, "{odd}");
            assert_eq!(compare("10", odd), None, "{odd}");
        }
    }
}
