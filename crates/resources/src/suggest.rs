//! The known word that a mistyped one was probably intended to be.
//!
//! Knows no fields; `report` and `object` call it for an unknown word.

/// The nearest of `known`, if it is near enough to be a typo.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Bounds the time; no field name is nearly as long.
    if word.len() > 64 {
        return None;
    }
    let letters = word.chars().count();
    // Two swapped letters are two replacements.
    let allowed = if letters < 4 { 1 } else { (letters / 3).clamp(2, 3) };
    let lower = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and replacements from one word to the other (Levenshtein), one row of
/// the table at a time.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (position, letter) in from.chars().enumerate() {
        let mut left = position + 1;
        let mut next = vec![left];
        for (other, above) in to.iter().zip(row.windows(2)) {
            let &[diagonal, above] = above else { continue };
            left = (diagonal + usize::from(letter != *other)).min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognized_and_other_words_are_not() {
        let known = ["peerASN", "peerAddress", "myASN", "holdTime"];
        assert_eq!(nearest("peerAsn", known), Some("peerASN"));
        assert_eq!(nearest("holdtimer", known), Some("holdTime"));
        assert_eq!(nearest("peerAdress", known), Some("peerAddress"));
        assert_eq!(nearest("sepc", ["kind", "spec"]), Some("spec"));
        assert_eq!(nearest("color", known), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
