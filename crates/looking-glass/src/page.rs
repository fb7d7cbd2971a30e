//! The page: its parts, the search, and what it found.

use fairway_ground::Utc;
use serde::Serialize;

use crate::fragment::Fragment;
use crate::search::{Found, Query};
use crate::templates::{TemplateError, render};

/// `style.css`.
pub const STYLE: &str = include_str!("../templates/style.css");
/// `icon.svg`.
pub const ICON: &str = include_str!("../templates/icon.svg");
/// `page.js`.
pub const SCRIPT: &str = include_str!("../templates/page.js");

#[derive(Serialize)]
struct Page<'a> {
    node: &'a str,
    parts: Vec<&'a str>,
    query: &'a str,
    found: Option<String>,
    at: String,
    seen: &'a str,
}

#[derive(Serialize)]
struct Answer<'a> {
    query: &'a str,
    found: Option<&'a Found>,
    failure: Option<&'a str>,
}

/// The whole page of `node` with these parts, as of `now_epoch_seconds`; events after `seen` are to follow. With a search it has
/// what that found, or why it found nothing.
pub fn page(
    node: &str,
    fragments: &[&Fragment],
    now_epoch_seconds: u64,
    seen: &str,
    search: Option<(&Query, Result<&Found, &str>)>,
) -> Result<String, TemplateError> {
    let found = search.map(|(query, outcome)| {
        let answer = Answer { query: query.text(), found: outcome.ok(), failure: outcome.err() };
        render("found.html", &answer)
    });
    render(
        "page.html",
        &Page {
            node,
            parts: fragments.iter().map(|it| it.html.as_str()).collect(),
            query: search.map_or("", |(query, _)| query.text()),
            found: found.transpose()?,
            at: Utc(now_epoch_seconds).rfc3339(),
            seen,
        },
    )
}
