//! The interfaces that layer 2 leaves out: the file `excludel2.yaml` of MetalLB's ConfigMap `metallb-excludel2`.
//!
//! Answers the expressions as written, each with its line. What they mean is for layer 2. Called by the options.

use super::yaml::documents;
use super::yaml::node::{Node, Value};

/// The only field.
const FIELD: &str = "announcedInterfacesToExclude";
/// A list is a few lines; more than this is another file.
const EXPRESSIONS_MAX: usize = 1_024;

/// Why the file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ExclusionsError {
    line: usize,
    message: String,
}

/// A regular expression, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcludedExpression {
    /// Counted from 1.
    pub line: usize,
    /// Matches anywhere in the name of an interface.
    pub text: String,
}

/// The expressions in `text`; none if it is empty.
///
/// # Errors
/// It is not YAML, or has another form than `announcedInterfacesToExclude: ["^docker.*"]`.
pub fn interface_exclusions(text: &str) -> Result<Vec<ExcludedExpression>, ExclusionsError> {
    let mut found = Vec::new();
    for document in documents(text) {
        if let Some(fault) = document.faults.into_iter().next() {
            return Err(ExclusionsError { line: fault.line, message: fault.message });
        }
        for expression in document.root.iter().map(expressions) {
            found.extend(expression?);
        }
    }
    Ok(found)
}

fn expressions(root: &Node) -> Result<Vec<ExcludedExpression>, ExclusionsError> {
    let error = |line, message: String| Err(ExclusionsError { line, message });
    if root.is_null() {
        return Ok(Vec::new());
    }
    if !matches!(root.value, Value::Mapping(_)) {
        return error(root.line, format!("expected `{FIELD}:` with a list of regular expressions"));
    }
    let mut found = Vec::new();
    for entry in root.entries() {
        if &*entry.key != FIELD {
            return error(entry.line, format!("{:?} is not a field; expected {FIELD}", entry.key));
        }
        match &entry.value.value {
            Value::Sequence(elements) if elements.len() <= EXPRESSIONS_MAX => {
                for (position, element) in elements.iter().enumerate() {
                    let Some(text) = element.text().filter(|it| !it.is_empty()) else {
                        let place = format!("{FIELD}[{position}]");
                        return error(
                            element.line,
                            format!("{place}: expected a regular expression"),
                        );
                    };
                    found.push(ExcludedExpression { line: element.line, text: text.to_owned() });
                }
            }
            Value::Sequence(elements) => {
                let count = elements.len();
                return error(
                    entry.line,
                    format!("{FIELD}: {count} expressions; at most {EXPRESSIONS_MAX}"),
                );
            }
            _ if entry.value.is_null() => {}
            _ => {
                return error(
                    entry.line,
                    format!("{FIELD}: expected a list of regular expressions"),
                );
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(usize, String)>, String> {
        let pairs =
            |it: Vec<ExcludedExpression>| it.into_iter().map(|it| (it.line, it.text)).collect();
        interface_exclusions(text).map(pairs).map_err(|error| error.to_string())
    }

    #[test]
    fn the_list_of_metallb_is_read() {
        let text = "announcedInterfacesToExclude:\n- ^docker.*\n- \"^lo$\"\n";
        assert_eq!(read(text), Ok(vec![(2, "^docker.*".to_owned()), (3, "^lo$".to_owned())]));
        for empty in [
            "",
            "# nothing\n",
            "announcedInterfacesToExclude:\n",
            "announcedInterfacesToExclude: []\n",
        ] {
            assert_eq!(read(empty), Ok(Vec::new()), "{empty}");
        }
    }

    #[test]
    fn another_form_is_an_error_that_names_the_line() {
        for (text, expected) in [
            ("- ^docker.*\n", "line 1: expected `announcedInterfacesToExclude:`"),
            ("\nexclude: [a]\n", "line 2: \"exclude\" is not a field"),
            (
                "announcedInterfacesToExclude: eth0\n",
                "line 1: announcedInterfacesToExclude: expected a list",
            ),
            (
                "announcedInterfacesToExclude:\n- a\n- [b]\n",
                "line 3: announcedInterfacesToExclude[1]: expected",
            ),
            ("announcedInterfacesToExclude: [\n", "line "),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }
}
