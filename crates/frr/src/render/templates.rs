//! The templates of the FRR configuration.
//!
//! They are part of the binary. Knows no resource: the templates receive words. Called by `render`.

use std::sync::LazyLock;

use tera::{Context, Tera};

use super::document::Document;

const MAIN: &str = "frr.conf";

static TEMPLATES: LazyLock<Result<Tera, tera::Error>> = LazyLock::new(|| {
    let mut tera = Tera::new();
    // The output is not HTML.
    tera.autoescape_on(Vec::<&str>::new());
    tera.add_raw_templates([
        (MAIN, include_str!("../../../../templates/frr.conf.tera")),
        ("filters.conf", include_str!("../../../../templates/filters.conf.tera")),
        ("rules.conf", include_str!("../../../../templates/rules.conf.tera")),
        ("instance.conf", include_str!("../../../../templates/instance.conf.tera")),
        ("neighbour.conf", include_str!("../../../../templates/neighbour.conf.tera")),
        ("bfd.conf", include_str!("../../../../templates/bfd.conf.tera")),
    ])?;
    Ok(tera)
});

/// The rendered text.
pub(super) fn render(document: &Document) -> Result<String, String> {
    let templates = TEMPLATES.as_ref().map_err(ToString::to_string)?;
    let rendered =
        Context::from_serialize(document).and_then(|context| templates.render(MAIN, &context));
    rendered.map_err(|error| error.to_string())
}
