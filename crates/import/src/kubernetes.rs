//! Objects of Cilium, Calico and frr-k8s, as kubectl prints them.
//!
//! Answers which project each object belongs to, and reports the fields that no translation has read. Knows no field
//! itself: the modules below do. Called by `crate::import`.

mod calico;
mod cilium;
mod field;
mod frr_k8s;
mod peers;
mod secrets;
mod selector;
mod work;

use std::rc::Rc;

use field::SourceObject;
use secrets::Secrets;
use serde_json::Value;
use work::Work;

use crate::outcome::Outcome;

/// Kinds of Kubernetes itself that Fairway reads as they are.
const READ_AS_THEY_ARE: &[&str] = &["Service", "EndpointSlice", "Node", "Namespace"];

pub(crate) fn import(text: &str, outcome: &mut Outcome) {
    let objects = objects(text, outcome);
    let mut work = Work::new(Secrets::of(&objects));
    let of = |project: Project| -> Vec<&SourceObject> {
        objects.iter().filter(|it| Project::of(it) == project).collect()
    };
    cilium::import(&of(Project::Cilium), &mut work);
    calico::import(&of(Project::Calico), &mut work);
    frr_k8s::import(&of(Project::FrrK8s), &mut work);
    for object in of(Project::Kubernetes) {
        object.skip();
        if READ_AS_THEY_ARE.contains(&object.kind()) {
            let why = "is not repeated in the result: Fairway reads it as it is";
            outcome.note(object.line(), &object.subject(), why);
        } else if object.kind() != "Secret" {
            let why =
                "is of no kind that is translated: expected objects of Cilium, Calico or frr-k8s";
            outcome.untranslated(object.line(), &object.subject(), why);
        }
    }
    for object in of(Project::MetalLb) {
        object.skip();
        let why = "is of MetalLB: Fairway reads it as it is, put it beside the result";
        outcome.note(object.line(), &object.subject(), why);
    }
    work.finish(outcome);
    for object in &objects {
        object.report(outcome);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Project {
    Cilium,
    Calico,
    FrrK8s,
    MetalLb,
    /// Kubernetes, and everything else.
    Kubernetes,
}

impl Project {
    fn of(object: &SourceObject) -> Self {
        match object.group() {
            "cilium.io" => Self::Cilium,
            "projectcalico.org" | "crd.projectcalico.org" => Self::Calico,
            "frrk8s.metallb.io" => Self::FrrK8s,
            "metallb.io" => Self::MetalLb,
            _ => Self::Kubernetes,
        }
    }
}

/// The objects of all documents; those of lists one by one.
fn objects(text: &str, outcome: &mut Outcome) -> Vec<SourceObject> {
    let mut objects = Vec::new();
    for document in fairway_resources::numbered_documents(text) {
        match document {
            Ok(document) => {
                let document = Rc::new(document);
                let items = document.value.get("items").and_then(Value::as_array);
                match items.filter(|_| is_list(&document.value)) {
                    Some(items) => {
                        let pointers = (0..items.len()).map(|it| format!("/items/{it}"));
                        objects
                            .extend(pointers.map(|it| SourceObject::new(Rc::clone(&document), it)));
                    }
                    None => objects.push(SourceObject::new(document, String::new())),
                }
            }
            Err(fault) => outcome.untranslated(fault.line(), "YAML", fault.message()),
        }
    }
    objects
}

/// `kind: List`, `BGPPeerList` and the like.
fn is_list(value: &Value) -> bool {
    value.get("kind").and_then(Value::as_str).is_some_and(|it| it.ends_with("List"))
}
