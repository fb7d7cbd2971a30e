//! Where one YAML document of a file ends and the next begins.
//!
//! A line that begins with `---` separates documents wherever it is, even inside quotes
//! (YAML 1.2.2 §9.1.2), so a file can be split before it is parsed, and a broken document does not
//! affect the others. Knows nothing of what is between the lines.

/// A part of a file that holds one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'a> {
    /// How many lines of the file come before it.
    pub(super) lines_before: usize,
    pub(super) text: &'a str,
}

/// Splits `text` before `---` lines and after `...` lines.
pub(super) fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = text;
    let mut lines_before = 0;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (bytes, lines) = first_part(rest);
        let (part, behind) = rest.split_at_checked(bytes).unwrap_or((rest, ""));
        rest = behind;
        let part = Part { lines_before, text: part };
        lines_before += lines;
        Some(part)
    })
}

/// The bytes and the lines of the first part.
fn first_part(text: &str) -> (usize, usize) {
    let (mut bytes, mut lines) = (0, 0);
    // Directives and comments belong to the document after them.
    let mut only_preamble = true;
    for line in text.split_inclusive('\n') {
        if is_marker(line, "---") {
            if !only_preamble {
                return (bytes, lines);
            }
            only_preamble = false;
        } else if !is_preamble(line) {
            only_preamble = false;
        }
        bytes += line.len();
        lines += 1;
        if is_marker(line, "...") {
            return (bytes, lines);
        }
    }
    (bytes, lines)
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

fn is_preamble(line: &str) -> bool {
    let content = line.trim_start();
    content.is_empty() || content.starts_with('#') || line.starts_with('%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_cut_at_its_document_markers_only() {
        let text = "# head\n%YAML 1.2\n---\na: 1\n--- # two\nb: '\n---\nc: |\n  ---\n...\nd: 4\n";
        let parts: Vec<_> = parts(text).map(|part| (part.lines_before, part.text)).collect();
        assert_eq!(
            parts,
            [
                (0, "# head\n%YAML 1.2\n---\na: 1\n"),
                (4, "--- # two\nb: '\n"),
                (6, "---\nc: |\n  ---\n...\n"),
                (10, "d: 4\n"),
            ]
        );
    }
}
