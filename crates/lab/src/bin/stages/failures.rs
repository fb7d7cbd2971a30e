//! What failed in a stage, in few lines? Read from its log, to be the last that a run prints: services that
//! run tests often keep no more than that. Pure. Used by main.

/// Tests that are named, lines of each and characters of a line: what fits on a screen below the table.
const TESTS_MAX: usize = 6;
const LINES_MAX: usize = 2;
const CHARACTERS_MAX: usize = 300;

/// The tests that failed with the first lines of their errors, as the test runners of Rust print them; the last
/// lines of a log that has none.
pub(crate) fn failures(log: &str) -> Vec<String> {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let is_heading = |line: &&str| line.starts_with("---- ") && line.ends_with(" ----");
    let mut found = Vec::new();
    for (place, heading) in
        lines.iter().enumerate().filter(|(_, line)| is_heading(line)).take(TESTS_MAX)
    {
        found.push(short(heading.trim_matches(['-', ' '])));
        let errors = lines.iter().skip(place + 1).take_while(|line| !is_heading(line));
        found.extend(errors.take(LINES_MAX).map(|line| format!("  {}", short(line.trim()))));
    }
    if found.is_empty() {
        let last = lines.len().saturating_sub(LINES_MAX);
        found.extend(lines.iter().skip(last).map(|line| short(line)));
    }
    found
}

fn short(line: &str) -> String {
    line.chars().take(CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_test_is_named_with_its_error() {
        let log = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b ----\n\
                   after 8.0 s: no address\n  the end of x.log:\n    line\n\nfailures:\n    b\n";
        assert_eq!(failures(log), ["b", "  after 8.0 s: no address", "  the end of x.log:"]);
    }

    #[test]
    fn the_end_stands_for_a_log_without_tests() {
        assert_eq!(failures("one\ntwo\n\nerror: three\n"), ["two", "error: three"]);
        assert_eq!(failures(""), [] as [&str; 0]);
    }
}
