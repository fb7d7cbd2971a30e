//! What `fairway plan` prints: the effect of the facts, or of an edit.
//!
//! ```text
//!  ClusterPlan ─► routes ─► whole ─► text, JSON
//!  two of them ─► edit ──┬─► edit_text
//!                        ├─► edit_json
//!                        └─► budget: how much is disrupted
//! ```
//!
//! Pure: plans in, text or JSON out. Knows no file, and never prints a password. The text suits a
//! change request: what changes, where, and at which cost.

mod budget;
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
pub use budget::{DisruptionBudget, Disruptions};
pub use edit::Edit;

/// A plan, for people.
pub fn text(plan: &ClusterPlan) -> String {
    whole::text(plan)
}

/// A plan, for programs.
pub fn json(plan: &ClusterPlan) -> Value {
    whole::json(plan)
}

/// An edit, for people.
pub fn edit_text(edit: &Edit<'_>) -> String {
    edit_text::text(edit)
}

/// An edit, for programs.
pub fn edit_json(edit: &Edit<'_>) -> Value {
    edit_json::json(edit)
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
    format!("{title}\n{}", fairway_ground::columns::aligned(&rows))
}
