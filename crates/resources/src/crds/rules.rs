//! CEL rules that the API server checks: constraints beyond the bounds of one number.
//!
//! MetalLB has the same rules, so the API server accepts and refuses the same objects. Knows no
//! kinds; the raw types name them.

use serde::Serialize;

/// One entry of `x-kubernetes-validations`.
#[derive(Debug, Serialize)]
pub(crate) struct Rule {
    rule: &'static str,
    message: &'static str,
}

/// `connectTime`; the parser of a BGPPeer requires the same.
pub(crate) const CONNECT_TIME: &[Rule] = &[
    Rule {
        rule: "duration(self).getSeconds() >= 1 && duration(self).getSeconds() <= 65535",
        message: "expected from 1s to 65535s",
    },
    Rule {
        rule: "duration(self).getMilliseconds() % 1000 == 0",
        message: "expected a whole number of seconds",
    },
];

/// A field that cannot change after creation.
pub(crate) const IMMUTABLE: &[Rule] =
    &[Rule { rule: "self == oldSelf", message: "cannot be changed after creation" }];

/// The spec of a BGPAdvertisement. Absent lengths have their defaults at that point.
pub(crate) const NO_AGGREGATION_OF_SELECTED_SERVICES: &[Rule] = &[Rule {
    rule: "!has(self.serviceSelectors) || size(self.serviceSelectors) == 0 || \
           ((!has(self.aggregationLength) || self.aggregationLength == 32) && \
           (!has(self.aggregationLengthV6) || self.aggregationLengthV6 == 128))",
    message: "serviceSelectors is allowed only with aggregationLength 32 and \
              aggregationLengthV6 128: a shorter prefix would hold other services too",
}];
