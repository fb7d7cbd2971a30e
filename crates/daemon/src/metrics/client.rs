//! Counters of the source of the objects: the API server, or files.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fairway_resources::Finding;

use super::families::{
    CONFIG_LOADED, CONFIG_STALE, KUBERNETES_REQUESTS, LIST_HELD, UPDATE_ERRORS, UPDATES,
};
use super::page::Page;

/// A request to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiVerb {
    /// One object.
    Get,
    /// All objects of a kind, or a page of them.
    List,
    /// A watch; counted when it is opened.
    Watch,
    /// Anything that changes an object.
    Write,
}

impl ApiVerb {
    const ALL: [Self; 4] = [Self::Get, Self::List, Self::Watch, Self::Write];

    fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Write => "write",
        }
    }
}

/// The possible results of a request; see `code` for the rest.
const CODES: [&str; 8] = ["2xx", "404", "409", "410", "429", "4xx", "5xx", "none"];

/// The index in [`CODES`].
fn code(status: Option<u16>) -> usize {
    match status {
        Some(404) => 1,
        Some(409) => 2,
        Some(410) => 3,
        Some(429) => 4,
        Some(400..=499) => 5,
        Some(500..) => 6,
        None => 7,
        Some(_) => 0,
    }
}

/// Counted by the code that reads and writes objects, shown as metrics.
#[derive(Debug, Default)]
pub struct ClientCounters {
    updates: AtomicU64,
    update_errors: AtomicU64,
    is_loaded: AtomicBool,
    is_stale: AtomicBool,
    is_not_in_force: AtomicBool,
    is_list_held: AtomicBool,
    requests: [[AtomicU64; CODES.len()]; ApiVerb::ALL.len()],
}

impl ClientCounters {
    /// This many objects, or files, were received.
    pub fn updated(&self, objects: usize) {
        self.updates.fetch_add(u64::try_from(objects).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The findings after an update, and those before it.
    pub fn judged(&self, before: &[Finding], now: &[Finding]) {
        let is_new = |it: &&Finding| it.is_fault() && !before.contains(it);
        let errors = now.iter().filter(is_new).count();
        self.update_errors.fetch_add(u64::try_from(errors).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.is_stale.store(now.iter().any(Finding::is_fault), Ordering::Relaxed);
    }

    /// Whether the backend lacks something of what it is to do: FRR is down, or refused a line.
    pub fn in_force(&self, is_all: bool) {
        self.is_not_in_force.store(!is_all, Ordering::Relaxed);
    }

    /// Whether an answer of the API server is not trusted.
    pub fn list_held(&self, is_held: bool) {
        self.is_list_held.store(is_held, Ordering::Relaxed);
    }

    /// All objects have been read once: the daemon is ready.
    pub fn loaded(&self) {
        self.is_loaded.store(true, Ordering::Relaxed);
    }

    /// Whether all objects have been read once.
    pub fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::Relaxed)
    }

    /// The API server answered a request with this status, or not at all.
    pub fn request(&self, verb: ApiVerb, status: Option<u16>) {
        let row = self.requests.get(verb as usize);
        if let Some(counter) = row.and_then(|row| row.get(code(status))) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes all of them.
    pub(super) fn write(&self, page: &mut Page) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        page.number(&UPDATES, count(&self.updates));
        page.number(&UPDATE_ERRORS, count(&self.update_errors));
        page.number(&CONFIG_LOADED, u8::from(self.is_loaded()));
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let is_stale = is_set(&self.is_stale) || is_set(&self.is_not_in_force);
        page.number(&CONFIG_STALE, u8::from(is_stale));
        page.number(&LIST_HELD, u8::from(is_set(&self.is_list_held)));
        let mut samples = page.family(&KUBERNETES_REQUESTS);
        for (verb, row) in ApiVerb::ALL.iter().zip(&self.requests) {
            for (code, counter) in CODES.iter().zip(row) {
                // Combinations that never occurred are left out: there are many.
                if count(counter) > 0 {
                    samples.add(&[verb.word(), code], count(counter));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart_by_what_became_of_them() {
        let counters = ClientCounters::default();
        counters.request(ApiVerb::Write, Some(200));
        counters.request(ApiVerb::Write, Some(409));
        counters.request(ApiVerb::Write, Some(409));
        counters.request(ApiVerb::Watch, None);
        counters.request(ApiVerb::Get, Some(403));
        let mut page = Page::default();
        counters.write(&mut page);
        let text = page.into_text();
        let lines: Vec<&str> =
            text.lines().filter(|it| it.starts_with("fairway_kubernetes_requests")).collect();
        assert_eq!(
            lines,
            [
                "fairway_kubernetes_requests_total{verb=\"get\",code=\"4xx\"} 1",
                "fairway_kubernetes_requests_total{verb=\"watch\",code=\"none\"} 1",
                "fairway_kubernetes_requests_total{verb=\"write\",code=\"2xx\"} 1",
                "fairway_kubernetes_requests_total{verb=\"write\",code=\"409\"} 2",
            ]
        );
        assert!(text.contains("metallb_k8s_client_config_loaded_bool 0\n"), "{text}");
    }
}
