//! Follows all objects of a kind: a list, then each change, and again from the start after an interruption that lost some.
//!
//! Knows no object. What is told stays true until something else is told, also while the API server is away.

use std::time::Duration;

use kube::api::{ListParams, WatchParams};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::super::api::{Api, Event, LIST_TIMEOUT, Problem};
use super::super::page::ManagedFields;
use super::super::reading::Selection;
use super::super::resource::Resource;
use crate::host::seed;

/// Objects of a page.
const PAGE_OBJECTS: u32 = 500;
/// A watch ends after that, so that the load moves between API servers.
const WATCH_SECONDS: u32 = 290;
/// The pause after the first failure; it doubles up to the longest one.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(32);

/// What became of a kind.
pub(super) enum Followed {
    /// These are all objects.
    All(Vec<Value>),
    /// An object is so now.
    Is(Value),
    /// An object is gone, which was so.
    Gone(Value),
}

/// Tells everything of a kind for as long as somebody listens.
pub(super) async fn follow(
    api: Api,
    resource: Resource,
    selection: Selection,
    tell: mpsc::Sender<(&'static str, Followed)>,
) {
    let following = Following { api, resource, selection, tell };
    let (mut version, mut pause, mut is_troubled) = (None, PAUSE_MIN, false);
    while !following.tell.is_closed() {
        let begun = Instant::now();
        let outcome = following.once(&mut version).await;
        if begun.elapsed() < PAUSE_MIN {
            // A server, or a proxy before it, that ends each watch at once.
            sleep(PAUSE_MIN).await;
        }
        match outcome {
            Ok(()) => {
                if std::mem::take(&mut is_troubled) {
                    info!("{} can be read again", resource.plural);
                }
                pause = PAUSE_MIN;
            }
            Err(problem) => {
                if problem.code == Some(410) {
                    version = None;
                    continue;
                }
                if !std::mem::replace(&mut is_troubled, true) {
                    let plural = resource.plural;
                    let hint = hint(&problem);
                    warn!(
                        "cannot read {plural}: {problem}{hint}; keeping what is known, trying again"
                    );
                }
                // All nodes lose the API server at the same moment.
                let part = seed() % 1000;
                let jitter =
                    pause.mul_f64(0.5 + f64::from(u32::try_from(part).unwrap_or(0)) / 2000.0);
                sleep(jitter).await;
                pause = pause.saturating_mul(2).min(PAUSE_MAX);
            }
        }
    }
}

fn hint(problem: &Problem) -> &'static str {
    match problem.code {
        Some(403) => "; check that the service account has the permissions of deploy/",
        Some(404) => "; check that the definitions are installed: fairway crds --ipam",
        _ => "",
    }
}

struct Following {
    api: Api,
    resource: Resource,
    selection: Selection,
    tell: mpsc::Sender<(&'static str, Followed)>,
}

impl Following {
    /// Lists, unless a watch can go on, and watches until that ends.
    async fn once(&self, version: &mut Option<String>) -> Result<(), Problem> {
        let from = match version {
            Some(version) => version.clone(),
            None => {
                let (items, listed) = self.list().await?;
                self.say(Followed::All(items)).await;
                version.insert(listed).clone()
            }
        };
        let parameters = WatchParams {
            timeout: Some(WATCH_SECONDS),
            bookmarks: true,
            field_selector: self.selection.fields.clone(),
            label_selector: self.selection.labels.clone(),
            ..WatchParams::default()
        };
        let request = self.collection().watch(&parameters, &from).map_err(Problem::of_request)?;
        let mut watch = self.api.watch(request).await?;
        while let Some(event) = watch.next().await? {
            let of = |object: &Value| {
                let text = object.pointer("/metadata/resourceVersion")?.as_str()?;
                Some(text.to_owned())
            };
            match event {
                Event::Applied(object) => {
                    *version = of(&object).or(version.take());
                    self.say(Followed::Is(object)).await;
                }
                Event::Deleted(object) => {
                    *version = of(&object).or(version.take());
                    self.say(Followed::Gone(object)).await;
                }
                Event::Bookmark(at) => *version = Some(at),
            }
        }
        Ok(())
    }

    async fn say(&self, followed: Followed) {
        // The receiver may be gone when the process ends.
        let _ = self.tell.send((self.resource.kind, followed)).await;
    }

    fn collection(&self) -> kube::core::Request {
        kube::core::Request::new(self.resource.in_namespace(""))
    }

    async fn list(&self) -> Result<(Vec<Value>, String), Problem> {
        let (mut items, mut continue_token) = (Vec::new(), None);
        loop {
            let parameters = ListParams {
                limit: Some(PAGE_OBJECTS),
                continue_token,
                field_selector: self.selection.fields.clone(),
                label_selector: self.selection.labels.clone(),
                ..ListParams::default()
            };
            let request = self.collection().list(&parameters).map_err(Problem::of_request)?;
            // A list of ten thousand is in memory at once.
            let page = self.api.list(request, ManagedFields::Skipped, LIST_TIMEOUT).await?;
            items.extend(page.items);
            continue_token = page.continue_token;
            if continue_token.is_none() {
                return Ok((items, page.resource_version));
            }
        }
    }
}
