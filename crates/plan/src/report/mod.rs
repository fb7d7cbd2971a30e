//! What `fairway plan` prints: the effect of the facts, or of an edit.
//!
//! ```text
//!  ClusterPlan ─► routes ─► whole ─► text, JSON
//!  two of them ─► edit ──┬─► edit_text
//!                        └─► edit_json
//! ```
//!
//! Pure: plans in, text or JSON out. Knows no file, and never prints a password. The text suits a
//! change request: what changes, where, and at which cost.

mod edit;
mod edit_json;
mod edit_text;
mod routes;
mod sessions;
#[cfg(test)]
mod tests;
mod whole;

use serde_json::Value;

use super::ClusterPlan;
use edit::Edit;

/// A plan, for people.
pub fn text(plan: &ClusterPlan) -> String {
    whole::text(plan)
}

/// A plan, for programs.
pub fn json(plan: &ClusterPlan) -> Value {
    whole::json(plan)
}

/// The effect of replacing `before` by `after`, for people.
pub fn edit_text(before: &ClusterPlan, after: &ClusterPlan) -> String {
    edit_text::text(&Edit::new(before, after))
}

/// The effect of replacing `before` by `after`, for programs.
pub fn edit_json(before: &ClusterPlan, after: &ClusterPlan) -> Value {
    edit_json::json(&Edit::new(before, after))
}

/// Comma-separated names; of many, the first few and how many more.
fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 5;
    let names: Vec<&str> = names.into_iter().collect();
    match names.get(..MOST) {
        Some(first) if names.len() > MOST + 1 => {
            format!("{} and {} more", first.join(", "), names.len() - MOST)
        }
        _ => names.join(", "),
    }
}

/// A table under its title.
fn section<const COLUMNS: usize>(
    title: &str,
    heads: [&str; COLUMNS],
    rows: Vec<[String; COLUMNS]>,
) -> String {
    let heads = heads.map(str::to_owned);
    let rows: Vec<_> = std::iter::once(heads).chain(rows).collect();
    format!("{title}\n{}", crate::columns::aligned(&rows))
}
