//! `assignments.json`: which Service has which address, for the run after this one.
//!
//! Pure: values to text and back. Knows no allocator beyond what it remembers.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairway_allocator::{Assignment, Memory};
use fairway_model::ObjectName;
use serde::{Deserialize, Serialize};

use crate::document::{FormatError, decode_document, text};

/// The name of the file that holds the addresses of Services.
pub const ASSIGNMENTS_FILE: &str = "assignments.json";
/// The format that this build reads and writes. The number changes when an older build would misread the
/// file; a field that an older build can ignore (`released`) is not a new version.
const ASSIGNMENTS_VERSION: u64 = 1;

#[derive(Serialize, Deserialize)]
struct AssignmentsDocument {
    version: u64,
    services: Vec<ServiceRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    released: Vec<ReleasedRecord>,
}

#[derive(Serialize, Deserialize)]
struct ServiceRecord {
    namespace: String,
    name: String,
    pool: String,
    addresses: Vec<IpAddr>,
}

/// An address that was released not long ago, and the Service that had it.
#[derive(Serialize, Deserialize)]
struct ReleasedRecord {
    address: IpAddr,
    namespace: String,
    name: String,
}

/// The text of the assignments file, in order of age.
pub fn encode_assignments(memory: &Memory) -> String {
    let services = memory.assignments.iter().map(|(name, assignment)| ServiceRecord {
        namespace: name.namespace.clone(),
        name: name.name.clone(),
        pool: assignment.pool.clone(),
        addresses: assignment.addresses.clone(),
    });
    let released = memory.released.iter().map(|(address, former)| ReleasedRecord {
        address: *address,
        namespace: former.namespace.clone(),
        name: former.name.clone(),
    });
    text(&AssignmentsDocument {
        version: ASSIGNMENTS_VERSION,
        services: services.collect(),
        released: released.collect(),
    })
}

/// Parses the text of [`encode_assignments`].
pub fn decode_assignments(text: &str) -> Result<Memory, FormatError> {
    let document = decode_document(text, ASSIGNMENTS_VERSION)?;
    let document: AssignmentsDocument = serde_json::from_value(document)?;
    let mut seen = BTreeSet::new();
    let mut assignments = Vec::with_capacity(document.services.len());
    for ServiceRecord { namespace, name, pool, addresses } in document.services {
        let name = ObjectName::new(namespace, name);
        if !seen.insert(name.clone()) {
            return Err(FormatError::Duplicate(name));
        }
        assignments.push((name, Assignment { pool, addresses }));
    }
    let released = document.released.into_iter().map(|record| {
        let ReleasedRecord { address, namespace, name } = record;
        (address, ObjectName::new(namespace, name))
    });
    Ok(Memory { assignments, released: released.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        let addresses = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let assignments = vec![
            (
                ObjectName::new("prod", "web"),
                Assignment {
                    pool: "four,six".to_owned(),
                    addresses: addresses(&["192.0.2.1", "2001:db8::1"]),
                },
            ),
            (
                ObjectName::new("default", "dns"),
                Assignment { pool: "four".to_owned(), addresses: addresses(&["192.0.2.2"]) },
            ),
        ];
        let gone = ("192.0.2.9".parse().unwrap(), ObjectName::new("default", "gone"));
        Memory { assignments, released: vec![gone] }
    }

    /// The last assignment alone, as builds wrote it that knew no released addresses.
    fn short() -> Memory {
        Memory { assignments: memory().assignments.split_off(1), released: Vec::new() }
    }

    #[test]
    fn the_format_is_the_documented_one() {
        let text = encode_assignments(&short());
        let compact: String = text.split_whitespace().collect();
        assert_eq!(
            compact,
            r#"{"version":1,"services":[{"namespace":"default","name":"dns","pool":"four","addresses":["192.0.2.2"]}]}"#
        );
        assert_eq!(decode_assignments(&text).unwrap(), short());
        let text = encode_assignments(&Memory { assignments: Vec::new(), ..memory() });
        let compact: String = text.split_whitespace().collect();
        assert_eq!(
            compact,
            r#"{"version":1,"services":[],"released":[{"address":"192.0.2.9","namespace":"default","name":"gone"}]}"#
        );
    }

    #[test]
    fn texts_of_the_wrong_shape_are_refused() {
        for text in [
            "[]",
            r#"{"services":[]}"#,
            r#"{"version":"1","services":[]}"#,
            r#"{"version":1}"#,
            r#"{"version":1,"services":[{"namespace":"a","name":"b","pool":"p","addresses":["x"]}]}"#,
        ] {
            assert!(decode_assignments(text).is_err(), "{text}");
        }
        let mut twice = memory();
        twice.assignments.extend(memory().assignments);
        let error = decode_assignments(&encode_assignments(&twice)).unwrap_err();
        assert_eq!(error.to_string(), "damaged: it lists Service prod/web twice");
    }
}
