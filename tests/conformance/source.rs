//! What is in a source file, as far as annotations need to know: its lines, its functions, which of
//! them are tests, and which test runs a table. Knows no annotation.

/// A source file that is laid out by rustfmt: a function ends at the brace below its first letter.
pub(crate) struct SourceFile {
    /// From the root of the repository.
    pub(crate) path: String,
    pub(crate) lines: Vec<String>,
    functions: Vec<Function>,
}

struct Function {
    name: String,
    is_test: bool,
    /// The first and the last line, counted from 0.
    span: (usize, usize),
}

impl SourceFile {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let starts = (0..lines.len()).filter_map(|at| Some((at, name_of(&lines[at])?)));
        let functions = starts
            .map(|(at, name)| Function {
                name,
                is_test: is_test(&lines, at),
                span: (at, end_of(&lines, at)),
            })
            .collect();
        Self { path: path.to_owned(), lines, functions }
    }

    /// The test that a comment in line `at` belongs to: the one around it, the one right below it,
    /// or the first one that calls the function around it.
    pub(crate) fn test_of(&self, at: usize) -> Option<&str> {
        if let Some(function) = self.around(at) {
            return self.first_test_that_runs(function, &mut Vec::new());
        }
        let below = self.functions.iter().find(|function| function.span.0 > at)?;
        let between = self.lines.get(at..below.span.0)?;
        let directly = between.iter().all(|line| line.trim().starts_with(['/', '#']));
        if directly { self.first_test_that_runs(below, &mut Vec::new()) } else { None }
    }

    /// The innermost function around a line.
    fn around(&self, at: usize) -> Option<&Function> {
        let inside = |it: &&Function| it.span.0 <= at && at <= it.span.1;
        self.functions.iter().filter(inside).max_by_key(|it| it.span.0)
    }

    fn first_test_that_runs<'a>(
        &'a self,
        function: &'a Function,
        seen: &mut Vec<&'a str>,
    ) -> Option<&'a str> {
        if function.is_test {
            return Some(&function.name);
        }
        if seen.contains(&function.name.as_str()) {
            return None;
        }
        seen.push(&function.name);
        let call = format!("{}(", function.name);
        let callers = self.functions.iter().filter(|it| {
            let (first, last) = it.span;
            it.name != function.name
                && self.lines[first + 1..=last].iter().any(|line| calls(line, &call))
        });
        callers.collect::<Vec<_>>().into_iter().find_map(|it| self.first_test_that_runs(it, seen))
    }
}

/// Whether `call` stands in `line` as a whole name.
fn calls(line: &str, call: &str) -> bool {
    let is_whole = |at: usize| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|it| !it.is_alphanumeric() && it != '_')
    };
    line.match_indices(call).any(|(at, _)| is_whole(at))
}

/// The name of the function that begins in this line.
fn name_of(line: &str) -> Option<String> {
    let mut words = line
        .trim_start()
        .split(' ')
        .skip_while(|word| word.starts_with("pub") || matches!(*word, "async" | "const"));
    if words.next() != Some("fn") {
        return None;
    }
    let name = words.next()?.split(['(', '<']).next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// A function with `#[test]` or `#[tokio::test]` above it, or a case of the interop matrix.
fn is_test(lines: &[String], at: usize) -> bool {
    let above = lines[..at].iter().rev();
    let mut decoration = above.map(|it| it.trim()).take_while(|it| it.starts_with(['#', '/']));
    decoration.any(|it| it.starts_with("#[test]") || it.starts_with("#[tokio::test"))
        || lines[at].starts_with("pub(super) fn") && lines[at].contains("(cell: &Cell)")
}

fn end_of(lines: &[String], at: usize) -> usize {
    if lines[at].ends_with('}') || lines[at].ends_with(';') {
        return at;
    }
    let indent = lines[at].len() - lines[at].trim_start().len();
    let end = format!("{}}}", " ".repeat(indent));
    let length = lines[at..].iter().position(|line| *line == end);
    length.map_or(lines.len() - 1, |length| at + length)
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
}

// stray

fn table() -> Vec<u8> {
    vec![
        // in the table
        row(\"a name\"),
    ]
}

fn check(rows: &[u8]) {}

fn nobody_calls_it() {
    // lost
}

/// Topology: two routers.
// above the case
pub(super) fn a_case(cell: &Cell) -> Result<()> {
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
        assert_eq!(test_of("// above the case").as_deref(), Some("a_case"));
        assert_eq!(test_of("// stray"), None);
        assert_eq!(test_of("// lost"), None);
    }
}
