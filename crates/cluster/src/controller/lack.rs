//! What a Service lacks, in the words of its condition and its event.
//!
//! Answers how a reason of the allocator, or a fault of the object, reads to people who know
//! MetalLB. Decides nothing. The controller writes the condition into the status, where it is also
//! the memory of what was said: whoever leads next does not say it again.

use fairway_allocator::Reason;
use fairway_model::ObjectName;
use fairway_resources::Finding;

use crate::write::shortened;

/// The type of the condition. It is there only while something is lacking: `False` without an
/// address, `True` with fewer than wished for.
pub const ADDRESS_CONDITION: &str = "metallb.io/AddressAssigned";
/// Longer texts end early: an Event of `events.k8s.io` holds 1024 bytes, and nobody reads more.
pub(super) const MESSAGE_BYTES_MAX: usize = 1000;

/// Why a Service has no address, or fewer than it wishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lack {
    /// One word, of MetalLB.
    pub(super) reason: &'static str,
    /// A sentence.
    pub(super) message: String,
}

impl Lack {
    /// What the allocator says of `name`; `None` while it has not decided.
    pub(super) fn of(name: &ObjectName, reason: &Reason) -> Option<Self> {
        let additional = |why: &str| Self {
            reason: "AdditionalAssignFailed",
            message: shortened(
                format!("cannot assign additional IP in PreferDualStack: {why}"),
                MESSAGE_BYTES_MAX,
            ),
        };
        match reason {
            Reason::NotYet => None,
            Reason::OneFamily { missing, .. } => Some(additional(&missing.to_string())),
            Reason::OneFamilyRequested(_) => {
                Some(additional("no address of the other family is requested"))
            }
            reason => {
                let message = format!("Failed to allocate IP for \"{name}\": {reason}");
                Some(Self {
                    reason: "AllocationFailed",
                    message: shortened(message, MESSAGE_BYTES_MAX),
                })
            }
        }
    }

    /// What is wrong with an object that cannot be used.
    pub(super) fn of_broken(findings: &[Finding]) -> Option<Self> {
        let faults: Vec<&Finding> = findings.iter().filter(|it| it.is_fault()).collect();
        let text = |fault: &&Finding| match &fault.field {
            Some(field) => format!("{field}: {}", fault.message),
            None => fault.message.clone(),
        };
        let texts: Vec<String> = faults.iter().map(text).collect();
        let asks = |it: &&Finding| {
            it.field.as_deref().is_some_and(|field| field.contains("loadBalancerIP"))
        };
        let what = match faults.first()? {
            first if asks(first) => "invalid requested loadbalancer IPs",
            _ => "the Service is not valid",
        };
        let message = format!("{what}: {}", texts.join("; "));
        let message = shortened(message, MESSAGE_BYTES_MAX);
        Some(Self { reason: "LoadBalancerFailed", message })
    }

    /// Whether its event is a warning.
    pub(super) fn is_warning(&self) -> bool {
        self.reason != "AdditionalAssignFailed"
    }
}
