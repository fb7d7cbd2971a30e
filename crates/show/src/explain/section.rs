//! The layout of an explanation: titles in a column of their own, and lines beside them.

/// The titles are a column of their own.
const TITLE_WIDTH: usize = 13;

/// A title, and the lines below it.
pub(super) type Section = (&'static str, Vec<String>);

/// The sections that have lines.
pub(super) fn sections(sections: impl IntoIterator<Item = Section>) -> String {
    let mut text = String::new();
    for (title, lines) in sections {
        let mut title = title;
        for line in lines {
            text.push_str(format!("{title:TITLE_WIDTH$}{line}").trim_end());
            text.push('\n');
            title = "";
        }
    }
    text
}
