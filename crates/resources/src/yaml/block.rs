//! A value as readable YAML: block style, in the order of the value.
//!
//! The output reads back as the same value. Knows no kinds.

use std::fmt::Write as _;

use serde_json::Value;

/// Longer text is folded into lines of this many characters.
const WIDTH: usize = 100;

/// The value as a document of its own, without `---`.
pub fn block(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    // What follows a key begins after it; top-level values begin on a line of their own.
    out.trim_start_matches(['\n', ' ']).to_owned()
}

/// Writes what follows a key or a dash, to the end of its last line.
fn write(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            write_fields(fields, depth, out);
        }
        Value::Array(elements) if !elements.is_empty() => {
            out.push('\n');
            for element in elements {
                indent(depth, out);
                out.push('-');
                match element {
                    // The first field follows the dash.
                    Value::Object(fields) if !fields.is_empty() => {
                        let mut inner = String::new();
                        write_fields(fields, depth + 1, &mut inner);
                        out.push(' ');
                        out.push_str(inner.trim_start_matches(' '));
                    }
                    element => write(element, depth + 1, out),
                }
            }
        }
        Value::String(text) => write_text(text, depth, out),
        value => {
            let _ = writeln!(out, " {value}");
        }
    }
}

fn write_fields(fields: &serde_json::Map<String, Value>, depth: usize, out: &mut String) {
    for (key, value) in fields {
        indent(depth, out);
        out.push_str(&scalar(key));
        out.push(':');
        // Lists are below their key, further indented.
        write(value, depth + 1, out);
    }
}

fn write_text(text: &str, depth: usize, out: &mut String) {
    let words: Vec<&str> = text.split(' ').collect();
    let is_foldable = !text.contains(|c: char| c.is_control()) && !words.contains(&"");
    if text.chars().count() <= WIDTH || !is_foldable {
        let _ = writeln!(out, " {}", scalar(text));
        return;
    }
    out.push_str(" >-\n");
    let mut line_length = 0;
    for word in words {
        let length = word.chars().count();
        if line_length > 0 && line_length + 1 + length > WIDTH {
            out.push('\n');
            line_length = 0;
        }
        if line_length == 0 {
            indent(depth, out);
        } else {
            out.push(' ');
            line_length += 1;
        }
        out.push_str(word);
        line_length += length;
    }
    out.push('\n');
}

/// Plain where it can only be this text, else in quotes as in JSON.
fn scalar(text: &str) -> String {
    let word = text.strip_prefix('.').unwrap_or(text);
    let is_plain = word.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| matches!(c, ' '..='~'))
        && !text.ends_with([':', ' '])
        && ![": ", " #"].iter().any(|end| text.contains(end))
        && !is_word_of_yaml(word);
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

/// Words that some parsers do not read as text.
fn is_word_of_yaml(text: &str) -> bool {
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"];
    words.iter().any(|word| word.eq_ignore_ascii_case(text))
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::yaml::documents;
    use crate::yaml::write::flow;

    #[test]
    fn blocks_read_as_people_write_them() {
        let value = json!({
            "name": "bgppeers.metallb.io",
            "empty": {},
            "none": [],
            "columns": [{"name": "Age", "path": ".status.age"}, {"name": "BFD Profile"}],
            "rows": [["a", 1], "b"],
            "text": "one: two",
        });
        let expected = "\
name: bgppeers.metallb.io
empty: {}
none: []
columns:
  - name: Age
    path: .status.age
  - name: BFD Profile
rows:
  -
    - a
    - 1
  - b
text: \"one: two\"
";
        assert_eq!(block(&value), expected);
    }

    /// Text that some parsers do not read as text, one per line.
    const TEXTS: &str = r#"

a
a b
yes
No
null
~
1
1.5
0x1f
1e3
-
- a
a:
a: b
a #b
#a
&a
*a
!a
|
>
%a
@a
`a
'a'
"a"
{a}
[a]
a, b
a  b
 a
a 
é
.5
.inf
.nan
.status.node
<<
=
?a
true
\
---
...
^auto$
self == oldSelf
has(self.a) && self.a > 1
2026-01-01"#;

    #[test]
    fn what_is_written_reads_back() {
        let long = "word ".repeat(60);
        let others = [long.trim(), &long, " ", "a\nb", "\u{7f}", "\u{2028}", "\u{feff}", "tab\t"];
        for text in TEXTS.split('\n').chain(others) {
            for value in
                [json!({ "k": text }), json!([text, [text]]), json!({ text: [{ text: 1 }] })]
            {
                let written = block(&value);
                let read: Vec<_> = documents(&written).collect();
                assert!(read.len() == 1 && read[0].faults.is_empty(), "{written}");
                let root = read[0].root.as_ref().map(|root| flow(root, &|_, _| false));
                assert_eq!(root, Some(value.to_string()), "{written}");
            }
        }
    }
}
