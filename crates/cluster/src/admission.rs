//! Whether the API server should accept an object: the answers of a validating webhook.
//!
//! Takes an AdmissionReview (admission.k8s.io/v1) and returns it with the response. An object is refused for
//! its own faults, alone or beside what is in force, and never for something that another object may still
//! bring: a community, a BFDProfile or a Secret that is created a moment later; that is a warning. A BFDProfile
//! is not deleted while a BGPPeer names it, as in MetalLB. With a budget, a write that disrupts more is refused as
//! well. Safety does not depend on it: an object that gets past it, or was there before, keeps its last good version.
//! Pure; the edge has the connection.

use fairway_model::{Kind, ObjectKey, ObjectName};
use fairway_resources::{Finding, parse_value};
use serde_json::{Map, Value, json};

use super::controller::CONTROLLER_KINDS;
use super::foresight::{Forecast, Foresight, Late};
use super::in_force::InForce;
use super::references::{References, bfd_profile_of};
use super::write::shortened;

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";
/// The user reads it, and the API server logs it.
const MESSAGE_BYTES_MAX: usize = 8000;
/// Each is a header of the response to the user, who reads the first few.
const WARNINGS_MAX: usize = 20;

/// With this annotation, `"true"`, a write may disrupt any amount: on the new object, or on the one to be deleted.
const PERMIT_DISRUPTION: &str = "fairway.dev/permit-disruption";

/// What a written object is judged beside.
#[derive(Debug, Default)]
pub(super) struct Beside<'a> {
    /// The objects in force, once all are known; before that, objects are judged alone.
    pub(super) in_force: Option<&'a InForce>,
    /// BFDProfiles and who names them.
    pub(super) references: Option<&'a References>,
    /// What all speakers do, once all is known; `None` without a budget.
    pub(super) foresight: Option<&'a mut Foresight>,
}

/// The answer to a review.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The AdmissionReview with its response.
    pub review: Value,
    /// The object is refused for what it is beside others: the answer may be another one as soon as the last
    /// writes to those are seen. Faults of the object itself never go away.
    pub may_change: bool,
}

/// The answer, or the rest of the work.
#[derive(Debug)]
pub enum Judged {
    /// The answer.
    Now(Judgement),
    /// It is still to be foreseen what the write disrupts.
    Later(Box<Foreseeing>),
}

/// A review of an object without a fault, as long as it is unknown what the write disrupts.
#[derive(Debug)]
pub struct Foreseeing {
    uid: String,
    verdict: Verdict,
    forecast: Forecast,
    /// The object says that the write may disrupt any amount.
    is_permitted: bool,
}

/// The verdict on an object.
#[derive(Debug, Default)]
struct Verdict {
    refusal: Option<Refusal>,
    warnings: Vec<String>,
    /// See [`Judgement`].
    may_change: bool,
}

/// Why it is refused.
#[derive(Debug)]
struct Refusal {
    /// An HTTP status.
    code: u16,
    /// A `metav1.StatusReason`.
    reason: &'static str,
    message: String,
}

/// Answers an AdmissionReview. `namespace` is that of the objects that configure Fairway. Every input gets an answer.
pub(super) fn judge(beside: Beside<'_>, review: &Value, namespace: &str) -> Judged {
    let is_review = text(review, "apiVersion") == API_VERSION && text(review, "kind") == KIND;
    let request = review.get("request").filter(|it| is_review && it.is_object());
    let Some(request) = request else {
        let message =
            format!("is not a review; expected an {KIND} of {API_VERSION} with a request");
        return Judged::Now(Verdict::refused(400, "BadRequest", message).into_judgement(""));
    };
    let verdict = verdict(beside.in_force, beside.references, request, namespace);
    let uid = text(request, "uid").to_owned();
    let foresight = beside.foresight.filter(|_| verdict.refusal.is_none());
    let Some(forecast) = foresight.and_then(|it| forecast(it, request, namespace)) else {
        return Judged::Now(verdict.into_judgement(&uid));
    };
    let (old, new) = (object(request, "oldObject"), object(request, "object"));
    let is_permitted = new.or(old).is_some_and(permits_disruption);
    Judged::Later(Box::new(Foreseeing { uid, verdict, forecast, is_permitted }))
}

impl Foreseeing {
    /// Finds out what the write disrupts. Takes seconds in a large cluster, and ends soon after `is_late`.
    pub fn judgement(self, is_late: impl Fn() -> bool) -> Result<Judgement, Late> {
        let Self { uid, mut verdict, forecast, is_permitted } = self;
        match forecast.excess(is_late)? {
            None => {}
            Some(excess) if is_permitted => {
                verdict.warnings.truncate(WARNINGS_MAX - 1);
                let warning = format!("disrupts {excess}; {PERMIT_DISRUPTION} is \"true\"");
                verdict.warnings.push(warning);
            }
            Some(excess) => {
                let message = format!(
                    "disrupts more than the webhook permits: {excess}. `fairway plan --against` shows what; to write \
                     it nevertheless, annotate the object with {PERMIT_DISRUPTION}=true"
                );
                let refused = Verdict::refused(403, "Forbidden", message);
                verdict = Verdict { may_change: true, warnings: verdict.warnings, ..refused };
            }
        }
        Ok(verdict.into_judgement(&uid))
    }
}

/// What is to be foreseen of a write to an object of ours, if it can disrupt anything.
fn forecast(foresight: &mut Foresight, request: &Value, namespace: &str) -> Option<Forecast> {
    let kind = request.pointer("/kind/kind").and_then(Value::as_str)?;
    let kind = Kind::ALL.into_iter().find(|it| it.is_ours() && it.to_string() == kind)?;
    if text(request, "namespace") != namespace || !text(request, "subResource").is_empty() {
        return None;
    }
    let (old, new) = (object(request, "oldObject"), object(request, "object"));
    // The deletion of one that goes was judged when it began.
    if old.is_some_and(goes) || old.zip(new).is_some_and(|(old, new)| asks_the_same(old, new)) {
        return None;
    }
    let name = ObjectName::new(namespace, text(request, "name"));
    Some(foresight.of(ObjectKey { kind, name }, new))
}

/// An object of the request: `null` is none.
fn object<'a>(request: &'a Value, field: &str) -> Option<&'a Value> {
    request.get(field).filter(|it| it.is_object())
}

/// Whether its deletion has begun.
fn goes(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|it| !it.is_null())
}

fn permits_disruption(object: &Value) -> bool {
    let annotations = object.pointer("/metadata/annotations");
    annotations.and_then(|it| it.get(PERMIT_DISRUPTION)).and_then(Value::as_str) == Some("true")
}

fn verdict(
    in_force: Option<&InForce>,
    references: Option<&References>,
    request: &Value,
    namespace: &str,
) -> Verdict {
    let is_new = match text(request, "operation") {
        "CREATE" => true,
        "UPDATE" => false,
        "DELETE" => return deletion(references, request, namespace),
        _ => return Verdict::default(),
    };
    let Some(object) = request.get("object") else { return Verdict::default() };
    let parsed = parse_value(object);
    let kind = parsed.key.as_ref().map(|key| key.kind);
    if kind.is_some_and(|kind| !kind.is_ours()) || !text(request, "subResource").is_empty() {
        return Verdict::default();
    }
    let is_elsewhere = text(request, "namespace") != namespace;
    if is_elsewhere && is_new && kind.is_some() {
        let message = format!(
            "metadata.namespace: {} is not read; expected {namespace}",
            text(request, "namespace")
        );
        return Verdict::refused(422, "Invalid", message);
    }
    if is_elsewhere || goes(object) {
        return Verdict::default();
    }
    let is_broken = parsed.is_broken();
    let (findings, is_beside_others) = match (in_force, kind) {
        // The controller does not read peers, so it can judge only its own kinds beside others.
        (Some(in_force), Some(kind)) if !is_broken && CONTROLLER_KINDS.contains(&kind) => {
            (in_force.findings_if(kind, object), true)
        }
        _ => (parsed.findings, false),
    };
    let is_known = |finding: &Finding| finding.is_fault() || !is_about(finding, "spec.peers");
    let findings = findings.into_iter().filter(is_known);
    // An update without a change of spec or labels does not make a faulty object worse.
    let is_same = !is_new && request.get("oldObject").is_some_and(|old| asks_the_same(old, object));
    let is_awaited = |finding: &Finding| {
        kind == Some(Kind::BgpAdvertisement) && !is_broken && is_about(finding, "spec.communities")
    };
    let (faults, rest): (Vec<Finding>, Vec<Finding>) =
        findings.partition(|it| it.is_fault() && !is_same && !is_awaited(it));
    let profile = if is_same { None } else { missing_profile(references, kind, object) };
    let warnings = profile.into_iter().chain(rest.iter().map(warning));
    Verdict {
        refusal: (!faults.is_empty()).then(|| Refusal::of(&faults)),
        warnings: warnings.take(WARNINGS_MAX).collect(),
        may_change: is_beside_others && !faults.is_empty(),
    }
}

/// A deletion is allowed, since objects that refer to it keep the last good version; but not that of a
/// BFDProfile in use, which would be a fault of its peers only at the next restart.
fn deletion(references: Option<&References>, request: &Value, namespace: &str) -> Verdict {
    let name = text(request, "name");
    let is_profile = request.pointer("/kind/kind").and_then(Value::as_str) == Some("BFDProfile");
    let peers = match references {
        Some(references) if is_profile && text(request, "namespace") == namespace => {
            references.peers_with_profile(name)
        }
        _ => Vec::new(),
    };
    if peers.is_empty() {
        return Verdict::default();
    }
    let peers: Vec<String> = peers.iter().map(|peer| format!("BGPPeer/{peer}")).collect();
    let message =
        format!("is the bfdProfile of {}; delete or change these first", peers.join(", "));
    Verdict::refused(422, "Invalid", message)
}

/// The warning about a peer with a BFDProfile that does not exist yet.
fn missing_profile(
    references: Option<&References>,
    kind: Option<Kind>,
    object: &Value,
) -> Option<String> {
    let profile = bfd_profile_of(object).filter(|_| kind == Some(Kind::BgpPeer))?;
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    references.is_some_and(|it| it.lacks_profile(profile)).then(|| {
        format!(
            "BGPPeer/{name}: spec.bfdProfile: there is no BFDProfile {profile:?}; the peer is not \
             configured until it exists"
        )
    })
}

/// Whether an object of ours is unchanged for Fairway: its spec, and the labels that others select it by.
fn asks_the_same(old: &Value, new: &Value) -> bool {
    ["/spec", "/metadata/labels"].into_iter().all(|it| old.pointer(it) == new.pointer(it))
}

fn is_about(finding: &Finding, field: &str) -> bool {
    finding.field.as_deref().is_some_and(|it| it.starts_with(field))
}

/// The field and its fault.
fn said(finding: &Finding) -> String {
    match &finding.field {
        Some(field) => format!("{field}: {}", finding.message),
        None => finding.message.clone(),
    }
}

/// The same with the object: a user who applies a file with many objects gets the warnings of all.
fn warning(finding: &Finding) -> String {
    match &finding.object {
        Some(object) => format!("{}/{}: {}", object.kind, object.name, said(finding)),
        None => said(finding),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

impl Refusal {
    fn of(faults: &[Finding]) -> Self {
        let faults: Vec<String> = faults.iter().map(said).collect();
        let message = shortened(faults.join("; "), MESSAGE_BYTES_MAX);
        Self { code: 422, reason: "Invalid", message }
    }
}

impl Verdict {
    fn refused(code: u16, reason: &'static str, message: String) -> Self {
        let message = shortened(message, MESSAGE_BYTES_MAX);
        Self { refusal: Some(Refusal { code, reason, message }), ..Self::default() }
    }

    fn into_judgement(self, uid: &str) -> Judgement {
        Judgement { may_change: self.may_change, review: self.into_review(uid) }
    }

    /// The review with the response. `uid` is that of the request.
    fn into_review(self, uid: &str) -> Value {
        let mut response = Map::new();
        response.insert("uid".to_owned(), json!(uid));
        response.insert("allowed".to_owned(), json!(self.refusal.is_none()));
        if let Some(Refusal { code, reason, message }) = self.refusal {
            let status =
                json!({ "status": "Failure", "code": code, "reason": reason, "message": message });
            response.insert("status".to_owned(), status);
        }
        if !self.warnings.is_empty() {
            response.insert("warnings".to_owned(), json!(self.warnings));
        }
        json!({ "apiVersion": API_VERSION, "kind": KIND, "response": response })
    }
}

#[cfg(test)]
mod tests;
