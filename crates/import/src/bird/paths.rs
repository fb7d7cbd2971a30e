//! Regular expressions for what filters say of AS paths.
//!
//! Answers expressions of a rule (`asPath`), where one says exactly the same; an empty one stands for every path. A path is
//! written with one blank between numbers, and a set as one part: `65001 {65002,65003}`.

/// As many numbers and ranges are put into one expression.
const PARTS_MAX: usize = 200;

/// `[= 65001 * =]`: numbers in their order, with anything before or behind them.
pub(super) fn mask(parts: &[String]) -> Option<String> {
    let mut parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let begins_anywhere = parts.first() == Some(&"*");
    while parts.first() == Some(&"*") {
        parts.remove(0);
    }
    if parts.is_empty() {
        return Some(if begins_anywhere { String::new() } else { "^$".to_owned() });
    }
    let ends_anywhere = parts.last() == Some(&"*");
    while parts.last() == Some(&"*") {
        parts.pop();
    }
    let numbers: Option<Vec<u32>> = parts.iter().map(|it| it.parse().ok()).collect();
    let numbers: Vec<String> = numbers?.iter().map(ToString::to_string).collect();
    if numbers.len() > PARTS_MAX {
        return None;
    }
    let begin = if begins_anywhere { "_" } else { "^" };
    let end = if ends_anywhere { "_" } else { "$" };
    // A border is one character: two numbers side by side are parted by the blank.
    Some(format!("{begin}{}{end}", numbers.join(" ")))
}

/// One of the numbers is in the path.
pub(super) fn through(parts: &[Vec<String>]) -> Option<String> {
    one_of(parts).map(|it| format!("_{it}_"))
}

/// The path begins with one of the numbers.
pub(super) fn first(parts: &[Vec<String>]) -> Option<String> {
    one_of(parts).map(|it| format!("^{it}_"))
}

/// The path ends with one of the numbers.
pub(super) fn last(parts: &[Vec<String>]) -> Option<String> {
    one_of(parts).map(|it| format!("_{it}$"))
}

/// More than so many numbers.
pub(super) fn longer_than(count: u16) -> String {
    match count {
        0 => "^[^ ]".to_owned(),
        1 => "^[^ ]+ ".to_owned(),
        more => format!("^[^ ]+( [^ ]+){{{more}}}"),
    }
}

/// So many numbers.
pub(super) fn of_length(count: u16) -> String {
    match count {
        0 => "^$".to_owned(),
        1 => "^[^ ]+$".to_owned(),
        more => format!("^[^ ]+( [^ ]+){{{}}}$", more.saturating_sub(1)),
    }
}

/// Numbers, and ranges as in `64512..65534`.
fn one_of(parts: &[Vec<String>]) -> Option<String> {
    let mut all = Vec::new();
    for part in parts {
        let text = part.concat();
        let (from, to) = text.split_once("..").unwrap_or((&text, &text));
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        if from > to {
            return None;
        }
        all.extend(range(from.into(), to.into()));
        if all.len() > PARTS_MAX {
            return None;
        }
    }
    match all.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("({})", several.join("|"))),
    }
}

/// Expressions for the numbers from `from` to `to`: each is of numbers with the same count of digits that differ in digits
/// which take any value, but for the first of those.
fn range(from: u64, to: u64) -> Vec<String> {
    let mut ends = std::collections::BTreeSet::from([to]);
    let (mut power, mut end) = (10_u64, from / 10 * 10 + 9);
    while end < to {
        ends.insert(end);
        power = power.saturating_mul(10);
        end = from / power * power + (power - 1);
    }
    let mut power = 10_u64;
    loop {
        let end = (to + 1) / power * power;
        if end <= from {
            break;
        }
        ends.insert(end - 1);
        power = power.saturating_mul(10);
    }
    let mut begin = from;
    let mut all = Vec::new();
    for end in ends {
        all.push(between(begin, end));
        begin = end.saturating_add(1);
    }
    all
}

fn between(from: u64, to: u64) -> String {
    let digits = from.to_string().chars().zip(to.to_string().chars()).collect::<Vec<_>>();
    let digit = |(from, to): (char, char)| {
        if from == to { from.to_string() } else { format!("[{from}-{to}]") }
    };
    digits.into_iter().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairway_ground::AsPathPattern;

    #[test]
    fn a_range_of_numbers_is_matched_to_its_borders() {
        for (from, to) in
            [(0, 0), (1, 9), (7, 123), (64496, 131_071), (4_200_000_000, 4_294_967_295), (99, 100)]
        {
            let text = through(&[vec![format!("{from}..{to}")]]).unwrap();
            let pattern = AsPathPattern::new(&text).unwrap();
            let near = |at: u64| (at.saturating_sub(12)..at + 12).chain([at / 10, at * 10]);
            for number in near(from).chain(near(to)).chain(near((from + to) / 2)) {
                let is_inside = (from..=to).contains(&number);
                assert_eq!(pattern.is_in(&number.to_string()), is_inside, "{number} {text}");
            }
        }
    }

    #[test]
    fn masks_and_lengths_match_whole_paths() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (mask_text, path, matches) in [
            ("65001 *", "65001", true),
            ("65001 *", "65001 65002", true),
            ("65001 *", "65002 65001", false),
            ("* 65001 65002", "7 65001 65002", true),
            ("* 65001 65002", "65001 7 65002", false),
            ("* 65001 *", "1 65001 2", true),
            ("65001", "65001 65001", false),
        ] {
            let pattern = AsPathPattern::new(&mask(&words(mask_text)).unwrap()).unwrap();
            assert_eq!(pattern.is_in(path), matches, "{mask_text}: {path}");
        }
        assert_eq!(mask(&words("65001 * 65002")), None);
        for (pattern, counts) in [
            (longer_than(0), 1..5),
            (longer_than(2), 3..5),
            (of_length(2), 2..3),
            (of_length(0), 0..1),
        ] {
            let pattern = AsPathPattern::new(&pattern).unwrap();
            for count in 0..5 {
                let path = vec!["65001"; count].join(" ");
                assert_eq!(pattern.is_in(&path), counts.contains(&count), "{path}");
            }
        }
    }
}
