//! YAML and JSON text into documents: trees in which each value has its line.
//!
//! A broken document reports where, keeps the part that can be read, and does not affect the other
//! documents of its file. Memory and time are bounded, whatever a file contains. Knows no kinds; the
//! catalog reads files with it.

pub(super) mod block;
pub(super) mod deserialize;
pub(super) mod node;
pub(super) mod scalar;
mod split;
mod tree;
pub(super) mod write;

use saphyr_parser::{Event, Parser, ScanError};

use self::node::Node;
use self::split::Part;
use self::tree::{TreeBuilder, TreeError};
use super::field_path::FieldPath;

/// The largest file that is read, in bytes.
pub const FILE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A fault in a document, found before its kind is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct YamlFault {
    /// The field, where that is known.
    pub(super) path: FieldPath,
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) message: String,
}

/// One document of a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Document {
    /// Its content; the readable part if it is broken.
    pub(super) root: Option<Node>,
    pub(super) faults: Vec<YamlFault>,
    /// Whether it was read to its end. If not, fields may be missing.
    pub(super) is_complete: bool,
}

/// Whether there is nothing in `text`, not even a comment.
pub(super) fn is_blank(text: &str) -> bool {
    without_mark(text).trim().is_empty()
}

/// The text without a byte order mark, which some editors write.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The documents of `text` in order, each parsed when it is asked for.
pub(super) fn documents(text: &str) -> impl Iterator<Item = Document> + '_ {
    let text = without_mark(text);
    let too_large = text.len() > FILE_BYTES_MAX;
    let text = if too_large { "" } else { text };
    let refusal = too_large.then(|| Document {
        root: None,
        faults: vec![YamlFault {
            path: FieldPath::default(),
            line: 1,
            message: format!(
                "the file is larger than {} MiB; split it into several",
                FILE_BYTES_MAX / 1024 / 1024
            ),
        }],
        is_complete: false,
    });
    refusal.into_iter().chain(split::parts(text).flat_map(parse))
}

fn parse(part: Part<'_>) -> Vec<Document> {
    let mut documents = Vec::new();
    let mut builder = TreeBuilder::default();
    let mut parser = Parser::new_from_str(part.text);
    loop {
        let (event, span) = match parser.next_event() {
            None => return documents,
            Some(Ok(event)) => event,
            Some(Err(error)) => {
                // What is open at the end is at fault on the last line, not after it.
                let lines = part.text.trim_end().lines().count().max(1);
                let line = part.lines_before + error.marker().line().clamp(1, lines);
                documents.push(broken(builder, line, syntax(&error, part)));
                return documents;
            }
        };
        let line = part.lines_before + span.start.line().max(1);
        match event {
            Event::StreamEnd => return documents,
            Event::DocumentStart(_) => builder = TreeBuilder::default(),
            Event::DocumentEnd => documents.push(complete(std::mem::take(&mut builder))),
            event => {
                if let Err(error) = builder.event(event, line) {
                    documents.push(broken(builder, line, error.to_string()));
                    return documents;
                }
            }
        }
    }
}

fn complete(builder: TreeBuilder) -> Document {
    let (root, duplicates) = builder.finish();
    let faults = duplicates
        .into_iter()
        .map(|duplicate| YamlFault {
            path: duplicate.path,
            line: duplicate.line,
            message: format!(
                "is given twice, on lines {} and {}; remove one",
                duplicate.line_first, duplicate.line
            ),
        })
        .collect();
    Document { root, faults, is_complete: true }
}

fn broken(builder: TreeBuilder, line: usize, message: String) -> Document {
    let mut document = complete(builder);
    document.faults.push(YamlFault { path: FieldPath::default(), line, message });
    document.is_complete = false;
    document
}

/// The parser's message, or a better one for the most frequent errors.
fn syntax(error: &ScanError, part: Part<'_>) -> String {
    let line = part.text.lines().nth(error.marker().line().saturating_sub(1)).unwrap_or_default();
    let indentation = line.split(|c: char| !c.is_whitespace()).next().unwrap_or_default();
    if indentation.contains('\t') {
        return "the line is indented with a tab; YAML allows only spaces there".to_owned();
    }
    if error.info().contains("must be followed by a valid YAML whitespace") {
        return "a tab follows a colon or dash; expected a space".to_owned();
    }
    if error.info().contains("unknown anchor") {
        return "the alias has no anchor above it; expected one that &name defines".to_owned();
    }
    // The parser reads ahead, and has a limit of its own for `[[[[`.
    if error.info().contains("recursion limit") {
        return TreeError::Depth.to_string();
    }
    format!("is not valid YAML: {}", error.info())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> Document {
        let mut all: Vec<_> = documents(text).collect();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    fn written(text: &str) -> String {
        let document = only(text);
        assert_eq!(document.faults, []);
        write::flow(&document.root.unwrap(), &|_, _| false)
    }

    #[test]
    fn values_know_their_lines() {
        let document = only("# comment\na:\n  b:\n    - x\n    - y: 1\n");
        let root = document.root.unwrap();
        assert_eq!(root.line, 2);
        let path = FieldPath::of("a.b").index(1).key("y");
        assert_eq!((root.line_of(&path), root.line_of(&FieldPath::of("a.b"))), (5, 3));
        assert_eq!(root.line_of(&FieldPath::of("a.c")), 2);
    }

    #[test]
    fn a_broken_document_leaves_the_others_alone() {
        let all: Vec<_> = documents("a: 1\n---\nb: [1\n---\nc: 3\n").collect();
        assert_eq!(all.len(), 3);
        assert!(all[0].is_complete && all[2].is_complete && !all[1].is_complete);
        assert_eq!(all[1].faults.len(), 1);
        assert!(all[1].faults[0].line >= 3, "{:?}", all[1].faults);
        assert_eq!(all[2].root.as_ref().unwrap().line, 5);
    }

    #[test]
    fn what_came_before_a_syntax_error_can_still_be_read() {
        let document = only("kind: Node\nmetadata:\n  name: a\nspec:\n\tx: 1\n");
        let name = FieldPath::of("metadata.name");
        assert_eq!(document.root.unwrap().at(&name).and_then(Node::text), Some("a"));
        assert!(document.faults[0].message.contains("tab"), "{:?}", document.faults);
        assert_eq!(document.faults[0].line, 5);
    }

    #[test]
    fn aliases_and_merge_keys_are_expanded() {
        assert_eq!(
            written("a: &x {b: 1, c: 2}\nd: *x"),
            r#"{"a":{"b":1,"c":2},"d":{"b":1,"c":2}}"#
        );
        assert_eq!(
            written("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n"),
            r#"{"a":{"b":1,"c":2},"d":{"c":3,"b":1}}"#
        );
        assert_eq!(
            written("- &x {b: 1}\n- &y {b: 2, c: 3}\n- {<<: [*x, *y]}\n"),
            r#"[{"b":1},{"b":2,"c":3},{"b":1,"c":3}]"#
        );
        assert_eq!(written("{'<<': 1}"), r#"{"<<":1}"#);
    }

    #[test]
    fn a_key_that_is_given_twice_is_named_with_both_lines() {
        let document = only("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n");
        let [fault] = document.faults.as_slice() else { panic!("{:?}", document.faults) };
        assert_eq!((fault.path.to_string().as_str(), fault.line), ("b.c", 5));
        assert!(fault.message.contains("3 and 5"), "{}", fault.message);
    }

    #[test]
    fn hostile_documents_are_refused_before_they_cost_anything() {
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..40 {
            let before = format!("*a{}", level - 1);
            let list = vec![before; 10].join(",");
            bomb.push_str(&format!("a{level}: &a{level} [{list}]\n"));
        }
        for (text, expected) in [
            (bomb, "more than 1000000 values"),
            // Little more than that.
            (
                format!("a: &a [{}]\nb: [{}]", "x,".repeat(1_000), "*a,".repeat(1_000)),
                "more than 1000000 values",
            ),
            ("[".repeat(100_000), "levels deep"),
            ("- ".repeat(100_000), "levels deep"),
            (format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), "*a,".repeat(100)), "64 MiB"),
            ("a: &a [*a]".to_owned(), "contains it"),
            ("a: *b".to_owned(), "no anchor"),
            ("x".repeat(FILE_BYTES_MAX + 1), "larger than 16 MiB"),
            ("a: !local b".to_owned(), "tag"),
            ("{[a]: b}".to_owned(), "key"),
            ("<<: 5".to_owned(), "merge key"),
        ] {
            let faults = only(&text).faults;
            assert_eq!(faults.len(), 1, "{expected}: {faults:?}");
            assert!(faults[0].message.contains(expected), "{faults:?}");
        }
    }

    #[test]
    fn json_is_read_like_yaml() {
        let json = "{\n\t\"kind\": \"List\",\n\t\"items\": [\n\t\t{\"a\": 1.5, \"b\": \"\\u00e9\\/\"}\n\t]\n}";
        assert_eq!(written(json), r#"{"kind":"List","items":[{"a":1.5,"b":"é/"}]}"#);
    }

    #[test]
    fn files_from_other_systems_are_read() {
        assert_eq!(written("\u{feff}a: 1\r\nb: x\r\n"), r#"{"a":1,"b":"x"}"#);
        assert_eq!(documents("").count(), 0);
        assert_eq!(documents("# nothing\n").filter(|it| it.root.is_some()).count(), 0);
    }
}
