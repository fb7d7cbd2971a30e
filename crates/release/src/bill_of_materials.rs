//! A CycloneDX 1.6 document (ECMA-424) of what is linked.
//!
//! Refuses to know how that was found out: `linked` does, `main` calls both.

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::digest;
use crate::linked::{Key, Linked};
use crate::time::timestamp;

/// The document for a release at this time, in seconds since 1970.
pub(crate) fn bill(linked: &Linked, version: &str, seconds: u64) -> Result<Value> {
    let release = format!("fairway-{version}");
    let mut components: Vec<_> =
        linked.crates.keys().filter_map(|key| component(key, linked)).collect();
    let (rust, glibc) = (standard_library(&linked.rust), c_library(&linked.glibc));
    let below: Vec<_> = [&rust, &glibc].iter().map(|it| it["bom-ref"].clone()).collect();
    components.extend([rust, glibc]);

    let programs = linked.programs.iter().map(|it| Value::from(reference(it, linked)));
    let uses_of_release = programs.chain(below.iter().cloned()).collect::<Vec<_>>();
    let mut dependencies = vec![json!({"ref": release, "dependsOn": uses_of_release})];
    dependencies.extend(linked.crates.iter().map(|(key, it)| {
        let uses: Vec<_> = it.uses.iter().map(|used| reference(used, linked)).collect();
        json!({"ref": reference(key, linked), "dependsOn": uses})
    }));
    dependencies.extend(below.iter().map(|it| json!({"ref": it, "dependsOn": []})));

    let mut document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": timestamp(seconds)?,
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "application",
                "bom-ref": release,
                "name": "fairway",
                "version": version,
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": components,
        "dependencies": dependencies,
    });
    let number = serial_number(&serde_json::to_vec(&document)?);
    if let Some(document) = document.as_object_mut() {
        document.insert("serialNumber".to_owned(), number.into());
    }
    Ok(document)
}

/// What other parts of the document call a crate: its package URL, if crates.io has it.
fn reference(key: &Key, linked: &Linked) -> String {
    let is_published = linked.crates.get(key).is_some_and(|it| it.checksum.is_some());
    if is_published { package_url(key) } else { format!("{}@{}", key.0, key.1) }
}

/// A plus sign of a version stands for itself only when it is encoded.
fn package_url((name, version): &Key) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

fn component(key: &Key, linked: &Linked) -> Option<Value> {
    let (name, version) = key;
    let it = linked.crates.get(key)?;
    let mut fields = Map::new();
    let mut put = |field: &str, value: Value| fields.insert(field.to_owned(), value);
    put("type", "library".into());
    put("name", name.as_str().into());
    put("version", version.as_str().into());
    put("licenses", json!([{"expression": it.license}]));
    if let Some(description) = &it.description {
        put("description", description.as_str().into());
    }
    if let Some(repository) = &it.repository {
        put("externalReferences", json!([{"type": "vcs", "url": repository}]));
    }
    put("bom-ref", reference(key, linked).into());
    if let Some(checksum) = &it.checksum {
        put("purl", package_url(key).into());
        put("hashes", json!([{"alg": "SHA-256", "content": checksum}]));
    }
    Some(Value::Object(fields))
}

fn standard_library(version: &str) -> Value {
    json!({
        "type": "library",
        "bom-ref": format!("rust-std@{version}"),
        "name": "rust-std",
        "version": version,
        "description": "The standard library of Rust",
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
    })
}

fn c_library(version: &str) -> Value {
    json!({
        "type": "library",
        "bom-ref": format!("glibc@{version}"),
        "name": "glibc",
        "version": version,
        "description": "The GNU C library, linked statically",
        "licenses": [{"expression": "LGPL-2.1-or-later"}],
        "cpe": format!("cpe:2.3:a:gnu:glibc:{version}:*:*:*:*:*:*:*"),
    })
}

/// A UUID of version 8 (RFC 9562 §5.8), made of the content: another content has another number.
fn serial_number(content: &[u8]) -> String {
    let digits: Vec<_> = digest::hexadecimal(content).chars().collect();
    let take = |from: usize, count: usize| digits.iter().skip(from).take(count).collect::<String>();
    format!(
        "urn:uuid:{}-{}-8{}-8{}-{}",
        take(0, 8),
        take(8, 4),
        take(12, 3),
        take(15, 3),
        take(18, 12)
    )
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::linked::Crate;

    fn key(name: &str, version: &str) -> Key {
        (name.to_owned(), version.to_owned())
    }

    fn linked() -> Linked {
        let ours = Crate {
            license: "Apache-2.0".to_owned(),
            uses: BTreeSet::from([key("library", "2.0.0+rev.1")]),
            ..Crate::default()
        };
        let library = Crate {
            license: "MIT OR Apache-2.0".to_owned(),
            checksum: Some("ab".repeat(32)),
            ..Crate::default()
        };
        Linked {
            crates: BTreeMap::from([
                (key("fairway", "0.1.0"), ours),
                (key("library", "2.0.0+rev.1"), library),
            ]),
            programs: BTreeSet::from([key("fairway", "0.1.0")]),
            rust: "1.95.0".to_owned(),
            glibc: "2.36".to_owned(),
        }
    }

    #[test]
    fn each_crate_has_licence_checksum_and_package_url() {
        let bill = bill(&linked(), "0.1.0", 0).unwrap();
        let library = &bill["components"][1];
        assert_eq!(library["purl"], "pkg:cargo/library@2.0.0%2Brev.1");
        assert_eq!(library["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(library["hashes"][0]["content"], "ab".repeat(32));
        assert_eq!(bill["components"][0]["bom-ref"], "fairway@0.1.0");
        assert!(bill["components"][0].get("purl").is_none(), "it is not on crates.io");
    }

    #[test]
    fn each_reference_of_the_graph_is_a_component_and_each_component_is_reached() {
        let bill = bill(&linked(), "0.1.0", 0).unwrap();
        let mut known: BTreeSet<_> = bill["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["bom-ref"].clone().to_string())
            .collect();
        let root = bill["metadata"]["component"]["bom-ref"].to_string();
        let graph = bill["dependencies"].as_array().unwrap();
        let nodes: BTreeSet<_> = graph.iter().map(|it| it["ref"].to_string()).collect();
        let uses = graph.iter().flat_map(|it| it["dependsOn"].as_array().unwrap());
        let used: BTreeSet<_> = uses.map(ToString::to_string).collect();
        assert_eq!(used, known);
        known.insert(root);
        assert_eq!(nodes, known);
    }

    #[test]
    fn the_serial_number_is_a_uuid_that_follows_the_content() {
        let first = bill(&linked(), "0.1.0", 0).unwrap();
        assert_eq!(first, bill(&linked(), "0.1.0", 0).unwrap());
        let later = bill(&linked(), "0.1.0", 60).unwrap();
        assert_ne!(first["serialNumber"], later["serialNumber"]);
        let number = first["serialNumber"].as_str().unwrap().strip_prefix("urn:uuid:").unwrap();
        let lengths: Vec<_> = number.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        let digits: Vec<_> = number.chars().collect();
        assert_eq!((digits[14], digits[19]), ('8', '8'), "version and variant");
    }
}
