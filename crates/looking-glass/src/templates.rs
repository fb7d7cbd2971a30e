//! The templates of the page.
//!
//! They are part of the binary. Their names end with `.html`, so what they insert is escaped; characters that act on a text,
//! as those that turn its direction, are inserted as their numbers. Used by `fragment` and `page`.

use std::sync::LazyLock;

use fairway_ground::printable_lines;
use serde::Serialize;
use serde_json::Value;
use tera::{Context, Kwargs, State, Tera};

/// A template that cannot be rendered: a fault of this program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot render the looking glass: {0}")]
pub struct TemplateError(String);

static TEMPLATES: LazyLock<Result<Tera, tera::Error>> = LazyLock::new(|| {
    let mut tera = Tera::new();
    tera.register_filter("urlencoded", |text: &str, _: Kwargs, _: &State| -> String {
        form_urlencoded::byte_serialize(text.as_bytes()).collect()
    });
    tera.add_raw_templates([
        ("page.html", include_str!("../templates/page.html")),
        ("head.html", include_str!("../templates/head.html")),
        ("neighbors.html", include_str!("../templates/neighbors.html")),
        ("services.html", include_str!("../templates/services.html")),
        ("pools.html", include_str!("../templates/pools.html")),
        ("segment.html", include_str!("../templates/segment.html")),
        ("prefixes.html", include_str!("../templates/prefixes.html")),
        ("events.html", include_str!("../templates/events.html")),
        ("found.html", include_str!("../templates/found.html")),
    ])?;
    Ok(tera)
});

/// The template of this name with `values`.
pub(crate) fn render(name: &str, values: &impl Serialize) -> Result<String, TemplateError> {
    let failed = |error: &tera::Error| TemplateError(error.to_string());
    let templates = TEMPLATES.as_ref().map_err(failed)?;
    let mut values =
        serde_json::to_value(values).map_err(|error| TemplateError(error.to_string()))?;
    make_printable(&mut values);
    let context = Context::from_serialize(&values).map_err(|error| failed(&error))?;
    templates.render(name, &context).map_err(|error| failed(&error))
}

/// Whatever the field: none can be forgotten.
fn make_printable(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(printable) = printable_lines(text) {
                *text = printable;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_printable),
        Value::Object(fields) => fields.values_mut().for_each(make_printable),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
