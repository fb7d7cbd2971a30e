//! How is text of others printed? Names, values and messages come from files, from the API server and from neighbours, and
//! reach terminals, logs and CI systems.
//!
//! A character that moves the cursor, begins a line, is invisible, or turns the direction of text is written as its
//! number. Called wherever such text is printed; knows no place.

use std::borrow::Cow;

/// `text` on one line: with `\n` and other control characters as escapes.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// The same for several lines of our own: line ends and tabs stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |it| matches!(it, '\n' | '\t'))
}

/// The same for JSON, of which it stays.
pub fn printable_json(text: &str) -> Cow<'_, str> {
    let is_escaped = |it: char| acts(it) && it != '\n';
    escaped_by(text, is_escaped, |printed, it| {
        for unit in it.encode_utf16(&mut [0; 2]) {
            printed.push_str(&format!("\\u{unit:04x}"));
        }
    })
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_escaped = |it: char| acts(it) && !stays(it);
    escaped_by(text, is_escaped, |printed, it| printed.extend(it.escape_default()))
}

fn escaped_by(
    text: &str,
    is_escaped: impl Fn(char) -> bool,
    escape: impl Fn(&mut String, char),
) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut printed = String::with_capacity(text.len().saturating_add(16));
    for it in text.chars() {
        match is_escaped(it) {
            true => escape(&mut printed, it),
            false => printed.push(it),
        }
    }
    Cow::Owned(printed)
}

/// Whether a character does something to the text around it in place of being part of it.
fn acts(it: char) -> bool {
    it.is_control()
        || matches!(it,
            '\u{AD}' | '\u{61C}' | '\u{180E}'
            // Zero width, and the direction of text.
            | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
            | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_written_as_its_number() {
        let text = "a\u{1b}[31mred\r\n::error::\u{202e}txt\u{9b}2J\0\u{200b}";
        let expected = "a\\u{1b}[31mred\\r\\n::error::\\u{202e}txt\\u{9b}2J\\u{0}\\u{200b}";
        assert_eq!(printable(text), expected);
        assert_eq!(printable_lines("one\n\ttwo\r\n"), "one\n\ttwo\\r\n");
        assert_eq!(printable_json("{\n \"\u{9b}\u{e0001}\"}"), "{\n \"\\u009b\\udb40\\udc01\"}");
    }

    #[test]
    fn text_that_does_nothing_stays_as_it_is() {
        let text = "Zürich \"東京\" \\ ☃ 🛣";
        assert!(matches!(printable(text), Cow::Borrowed(it) if it == text));
    }
}
