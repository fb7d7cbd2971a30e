//! Which faults happen between the daemons and the model, and how many requests came? Set and read by the
//! test through the model's own socket, which has no faults.

use std::collections::BTreeMap;

use fairway_model_api::{Request, Verb};
use serde::{Deserialize, Serialize};

/// The faults from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Faults {
    /// Nothing listens, and all connections are closed.
    pub(crate) away: bool,
    /// Connections are accepted, and each answer is 503.
    pub(crate) unavailable: bool,
    /// How long each answer and each event of a watch takes.
    pub(crate) delay_milliseconds: u64,
    /// Before each of so many writes of a Service's status, another client writes the Service.
    pub(crate) conflicts: u64,
    /// So many writes are done, and the connection closed in place of an answer.
    pub(crate) lost_answers: u64,
    /// So many requests get 429.
    pub(crate) too_many: u64,
}

/// How often each request came: `speaker-a WATCH services`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counts(pub(crate) BTreeMap<String, u64>);

impl Counts {
    pub(super) fn note(&mut self, request: &Request) {
        let verb = match request.verb {
            Verb::Get => "GET",
            Verb::List => "LIST",
            Verb::Watch => "WATCH",
            Verb::Create => "CREATE",
            Verb::Update => "UPDATE",
            Verb::MergePatch => "PATCH",
            Verb::Apply => "APPLY",
            Verb::Delete => "DELETE",
        };
        let status = if request.status { "/status" } else { "" };
        let key = format!("{} {verb} {}{status}", request.user, request.resource.plural);
        *self.0.entry(key).or_default() += 1;
    }

    /// How often any daemon did this.
    pub(crate) fn of(&self, verb: &str, plural: &str) -> u64 {
        let what = format!(" {verb} {plural}");
        self.0.iter().filter(|(key, _)| key.ends_with(&what)).map(|(_, count)| count).sum()
    }
}
