//! Is an output what a page prints? The printed lines occur in it, in their order, with other lines between; `...` stands for any
//! text. Pure. Used by the suites that type what pages say.

/// The first printed line that the output lacks, behind those before it.
pub fn lacking<'a>(output: &str, printed: &'a [String]) -> Option<&'a str> {
    let mut lines = output.lines();
    printed.iter().find(|expected| !lines.any(|line| is_like(line, expected))).map(String::as_str)
}

/// Whether a line has the words of the printed one.
fn is_like(line: &str, expected: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = plain(line);
    let mut rest = line.as_str();
    expected.split("...").all(|part| match rest.split_once(plain(part).as_str()) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_occur_in_their_order() {
        let printed = |lines: &[&str]| lines.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let output = "Name   State\ntor-1  Established 00:00:12\ntor-2  Idle\n";
        assert_eq!(lacking(output, &printed(&["tor-1 ... 00:...", "tor-2 Idle"])), None);
        assert_eq!(lacking(output, &printed(&["tor-2", "tor-1"])), Some("tor-1"));
        assert_eq!(lacking(output, &printed(&["tor-1 Idle"])), Some("tor-1 Idle"));
    }
}
