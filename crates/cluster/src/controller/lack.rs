//! What a Service lacks, in the words of its condition and its event.
//!
//! Turns a reason of the allocator, or a fault of the object, into MetalLB's words. Decides nothing. The
//! controller writes the condition into the status, where it also records what was reported: the next leader
//! does not report it again.

use fairway_allocator::Reason;
use fairway_model::ObjectName;
use fairway_resources::Finding;

use crate::write::shortened;

/// The type of the condition. It is present only while something is lacking: `False` without an address,
/// `True` with fewer than requested.
pub const ADDRESS_CONDITION: &str = "metallb.io/AddressAssigned";
/// Longer texts are shortened: an Event of `events.k8s.io` holds 1024 bytes.
pub(super) const MESSAGE_BYTES_MAX: usize = 1000;

/// Why a Service has no address, or fewer than requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lack {
    /// One of MetalLB's words.
    pub(super) reason: &'static str,
    /// A sentence.
    pub(super) message: String,
}

impl Lack {
    /// The text for the allocator's reason about `name`; `None` while it has not decided.
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

    /// The text for the faults of an object that cannot be used. MetalLB has one word for a Service that has
    /// addresses and another for one that waits for them.
    pub(super) fn of_broken(
        name: &ObjectName,
        findings: &[Finding],
        has_address: bool,
    ) -> Option<Self> {
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
        let faults = format!("{what}: {}", texts.join("; "));
        let (reason, message) = match has_address {
            true => ("LoadBalancerFailed", faults),
            false => {
                ("AllocationFailed", format!("Failed to allocate IP for \"{name}\": {faults}"))
            }
        };
        Some(Self { reason, message: shortened(message, MESSAGE_BYTES_MAX) })
    }

    /// Whether its event is a warning.
    pub(super) fn is_warning(&self) -> bool {
        self.reason != "AdditionalAssignFailed"
    }
}
