//! What is in a source file, as far as annotations need to know: its lines, its functions and
//! tables, which of them are tests, and which test runs a table. Knows no annotation.

/// Tables that are run from other files: where they are, their names, and what runs them.
pub(crate) const RUN_ELSEWHERE: &[(&str, &str, &str)] = &[
    ("tests/corpus/entries/", "entries", "the_corpus_of_bad_input"),
    (
        "crates/bgp/src/session/peer/tests/fsm_table.rs",
        "TABLE",
        "every_state_answers_every_event_as_the_table_says",
    ),
];

/// A source file that is laid out by rustfmt: an item ends at the bracket below its first letter.
pub(crate) struct SourceFile {
    /// From the root of the repository.
    pub(crate) path: String,
    pub(crate) lines: Vec<String>,
    items: Vec<Item>,
}

/// A function, or a constant, which may be a table.
struct Item {
    name: String,
    /// How others name it: `name(`, or `NAME`.
    mention: String,
    is_test: bool,
    /// The first and the last line, counted from 0.
    span: (usize, usize),
}

impl SourceFile {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut items: Vec<Item> = (0..lines.len()).filter_map(|at| item(&lines, at)).collect();
        for (files, table, test) in RUN_ELSEWHERE {
            let is_it = |item: &&mut Item| path.starts_with(files) && item.name == *table;
            for item in items.iter_mut().filter(is_it) {
                item.name = (*test).to_owned();
                item.is_test = true;
            }
        }
        Self { path: path.to_owned(), lines, items }
    }

    /// The test that a comment in line `at` belongs to: the one around it, the one right below it,
    /// or the first one that uses the function or table around it.
    pub(crate) fn test_of(&self, at: usize) -> Option<&str> {
        if let Some(item) = self.around(at) {
            return self.first_test_with(item, &mut Vec::new());
        }
        let below = self.items.iter().find(|item| item.span.0 > at)?;
        let between = self.lines.get(at..below.span.0)?;
        let directly = between.iter().all(|line| line.trim().starts_with(['/', '#']));
        if directly { self.first_test_with(below, &mut Vec::new()) } else { None }
    }

    /// The innermost item around a line.
    fn around(&self, at: usize) -> Option<&Item> {
        let inside = |it: &&Item| it.span.0 <= at && at <= it.span.1;
        self.items.iter().filter(inside).max_by_key(|it| it.span.0)
    }

    fn first_test_with<'a>(&'a self, item: &'a Item, seen: &mut Vec<&'a str>) -> Option<&'a str> {
        if item.is_test {
            return Some(&item.name);
        }
        if seen.contains(&item.name.as_str()) {
            return None;
        }
        seen.push(&item.name);
        let users = self.items.iter().filter(|user| {
            let (first, last) = user.span;
            let body = &self.lines[first + 1..=last];
            user.name != item.name && body.iter().any(|line| mentions(line, &item.mention))
        });
        users.collect::<Vec<_>>().into_iter().find_map(|user| self.first_test_with(user, seen))
    }
}

/// The function or constant that begins in line `at`.
fn item(lines: &[String], at: usize) -> Option<Item> {
    let words = lines.get(at)?.trim_start().split(' ');
    let mut words = words.skip_while(|word| word.starts_with("pub") || *word == "async");
    let (is_function, name) = match (words.next()?, words.next()?, words.next()) {
        ("fn", name, _) | ("const", "fn", Some(name)) => (true, name),
        ("const" | "static", name, _) => (false, name),
        _ => return None,
    };
    let name = name.split(['(', '<', ':']).next()?.to_owned();
    let mention = if is_function { format!("{name}(") } else { name.clone() };
    Some(Item { name, mention, is_test: is_test(lines, at), span: (at, end_of(lines, at)) })
}

/// Whether `mention` stands in `line` as a whole name.
fn mentions(line: &str, mention: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    line.match_indices(mention).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + mention.len()..]);
        let open = mention.ends_with('(') || !after.starts_with(is_part);
        !before.ends_with(is_part) && open
    })
}

/// A function with `#[test]` or `#[tokio::test]` above it, or a case of the interop matrix.
fn is_test(lines: &[String], at: usize) -> bool {
    let above = lines[..at].iter().rev();
    let mut decoration = above.map(|it| it.trim()).take_while(|it| it.starts_with(['#', '/']));
    decoration.any(|it| it.starts_with("#[test]") || it.starts_with("#[tokio::test"))
        || lines[at].starts_with("pub(super) fn") && takes_a_cell(lines, at)
}

/// Whether its parameter is a cell of the matrix; rustfmt may have put it into a line of its own.
fn takes_a_cell(lines: &[String], at: usize) -> bool {
    let below = lines.get(at + 1).map_or("", |line| line.trim());
    lines[at].contains("(cell: &Cell)") || lines[at].ends_with('(') && below == "cell: &Cell,"
}

fn end_of(lines: &[String], at: usize) -> usize {
    if lines[at].ends_with(['}', ';']) {
        return at;
    }
    let indent = lines[at].len() - lines[at].trim_start().len();
    let is_end = |line: &&String| {
        let closing = line.trim_start();
        line.len() - closing.len() == indent && matches!(closing, "}" | "];" | "};" | ");")
    };
    let end = lines.iter().skip(at + 1).position(|line| is_end(&line));
    end.map_or(at, |length| at + 1 + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
// above
#[test]
fn first() {
    // in the first
    check(&table());
    for cell in CELLS {}
}

// stray

const LIMIT: u8 = 3;

fn table() -> Vec<u8> {
    vec![
        // in the table
        row(\"a name\"),
    ]
}

const CELLS: &[&str] = &[
    // in the constant
    \"one\",
];

const fn check(rows: &[u8]) {}

fn nobody_calls_it() {
    // lost
}

/// Topology: two routers.
// above the case
pub(super) fn a_case(cell: &Cell) -> Result<()> {
    Ok(())
}

// above the long one
pub(super) fn a_case_of_a_long_name(
    cell: &Cell,
) -> Result<()> {
    Ok(())
}
";

    fn test_of(comment: &str) -> Option<String> {
        let file = SourceFile::new("tests/x.rs", TEXT);
        let at = file.lines.iter().position(|line| line.trim() == comment).unwrap();
        file.test_of(at).map(str::to_owned)
    }

    #[test]
    fn comments_find_the_test_that_they_are_about() {
        assert_eq!(test_of("// above").as_deref(), Some("first"));
        assert_eq!(test_of("// in the first").as_deref(), Some("first"));
        assert_eq!(test_of("// in the table").as_deref(), Some("first"));
        assert_eq!(test_of("// in the constant").as_deref(), Some("first"));
        assert_eq!(test_of("// above the case").as_deref(), Some("a_case"));
        assert_eq!(test_of("// above the long one").as_deref(), Some("a_case_of_a_long_name"));
        assert_eq!(test_of("// stray"), None);
        assert_eq!(test_of("// lost"), None);
    }

    #[test]
    fn tables_belong_to_who_runs_them_from_another_file() {
        let text = "pub(super) fn entries() -> Vec<Entry> {\n    // here\n}\n";
        let file = SourceFile::new("tests/corpus/entries/opens.rs", text);
        assert_eq!(file.test_of(1), Some("the_corpus_of_bad_input"));
        assert_eq!(SourceFile::new("tests/other/opens.rs", text).test_of(1), None);
    }
}
