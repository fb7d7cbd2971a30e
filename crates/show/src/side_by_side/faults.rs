//! What is wrong with the resources, on which nodes.

use fairway_ground::columns::aligned;
use serde_json::Value;

use super::NodeAnswers;
use super::group::{Groups, Nodes};
use super::{list_at, text_at};

pub(super) fn text(answers: &NodeAnswers) -> String {
    let rows = answers
        .answers()
        .flat_map(|(node, answer)| faults_of(answer).into_iter().map(move |fault| (node, fault)));
    let groups = Groups::of(rows);
    let answering = answers.answers().count();
    match (groups.is_empty(), answering) {
        (true, 0) => return String::new(),
        (true, _) => return "No faults.\n".to_owned(),
        _ => {}
    }
    let nodes = |nodes: &Nodes<'_>| match nodes.count() == answering {
        true => "all".to_owned(),
        false => nodes.cell(false),
    };
    let mut table = vec![["NODES".to_owned(), "FAULT".to_owned()]];
    table.extend(groups.rows().map(|(fault, of)| [nodes(of), fault.clone()]));
    aligned(&table)
}

/// Of `show config json`: faults of objects, objects whose last version is not in force, and what the node could not do.
fn faults_of(answer: &Value) -> Vec<String> {
    let object = |it: &Value| {
        let names = ["kind", "namespace", "name"].map(|key| text_at(it, key));
        let [kind, namespace, name] = names;
        format!("{kind} {namespace}/{name}")
    };
    let is_stale = |it: &&Value| text_at(it, "state") == "stale";
    let stale = list_at(answer, "items").iter().filter(is_stale);
    let stale = stale.map(|it| format!("{}: an earlier version is in force", object(it)));
    let findings = list_at(answer, "findings").iter().map(finding);
    let texts = ["leftOut", "notInForce"].into_iter().flat_map(|key| list_at(answer, key));
    let texts = texts.filter_map(Value::as_str).map(str::to_owned);
    findings.chain(stale).chain(texts).collect()
}

/// `Kind/name: field: message`, as the node prints it.
fn finding(finding: &Value) -> String {
    let object = finding.get("object").filter(|it| it.is_object());
    let object = object.map(|it| format!("{}/{}", text_at(it, "kind"), text_at(it, "name")));
    let mark = if is_warning(finding) { "warning: " } else { "" };
    let field = Some(text_at(finding, "field").to_owned()).filter(|it| !it.is_empty());
    let parts = object.into_iter().chain(field).map(|it| it + ": ");
    format!("{}{mark}{}", parts.collect::<String>(), text_at(finding, "message"))
}

impl NodeAnswers {
    /// Whether any node has a fault, and not only warnings; for answers to [`super::Subject::Faults`].
    pub fn have_faults(&self) -> bool {
        let findings = |answer| list_at(answer, "findings").iter();
        self.answers().any(|(_, answer)| {
            let warnings = findings(answer).filter(|it| is_warning(it)).count();
            faults_of(answer).len() > warnings
        })
    }
}

fn is_warning(finding: &Value) -> bool {
    text_at(finding, "severity") == "warning"
}
