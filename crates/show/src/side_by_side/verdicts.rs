//! The first line of an explanation, on which nodes.

use fairway_ground::columns::aligned;
use serde_json::Value;

use super::group::Groups;
use super::{NodeAnswers, list_at, text_at};

pub(super) fn text(answers: &NodeAnswers) -> String {
    let rows = answers.answers().flat_map(|(node, answer)| {
        verdicts_of(answer).into_iter().map(move |verdict| (node, verdict))
    });
    let groups = Groups::of(rows);
    if groups.is_empty() {
        return String::new();
    }
    let mut table = vec![["NODES".to_owned(), "VERDICT".to_owned()]];
    table.extend(groups.rows().map(|(verdict, nodes)| [nodes.cell(false), verdict.clone()]));
    aligned(&table)
}

/// Of one object, or of each of a list.
fn verdicts_of(answer: &Value) -> Vec<String> {
    let of =
        |it: &Value| Some(text_at(it, "verdict")).filter(|it| !it.is_empty()).map(str::to_owned);
    match of(answer) {
        Some(verdict) => vec![verdict],
        None => list_at(answer, "items").iter().filter_map(of).collect(),
    }
}
