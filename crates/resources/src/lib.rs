//! What users may write, and its parsing into valid values.
//!
//! ```text
//!  text ─► yaml (documents) ─► object (kind) ─► one parser per kind ─► model
//!                                                        │
//!                                     catalog (all files, cross-object rules, last good)
//! ```
//!
//! [`Catalog`] is the entry point for files, [`parse_value`] for objects of an API server. Pure: no
//! clock, socket, file or runtime; `source` reads the text, the daemon and `fairway check` use the
//! result.

mod backend;
mod bfd_profile;
mod bgp_advertisement;
mod bgp_configuration;
mod bgp_peer;
mod catalog;
pub mod change;
mod community;
mod config_map;
mod crds;
mod dns_name;
mod endpoint_slice;
mod field_lines;
mod field_path;
mod fields;
mod finding;
mod health_check;
mod hidden;
mod interface_exclusions;
mod ip_address_pool;
mod l2_advertisement;
mod label;
mod label_selector;
mod metadata;
mod namespace;
mod next_hops;
mod node;
mod object;
mod plain_documents;
mod prefix_range;
mod proxied;
mod report;
mod route_policy;
mod route_rules;
mod secret;
mod secret_key;
mod service;
mod service_words;
pub mod status;
mod suggest;
mod value;
mod yaml;

#[cfg(test)]
mod known_fields;
#[cfg(test)]
mod tests;

pub use backend::BackendKind;
pub use catalog::{Catalog, LastGood, Resolution, RestoreError, StaleObject};
pub use crds::{CustomResourceDefinition, fields_unknown_to_metallb};
pub use finding::{Finding, FindingObject, Severity};
pub use interface_exclusions::{ExcludedExpression, ExclusionsError, interface_exclusions};
pub use object::FRR_CONFIGURATION;
pub use plain_documents::{DocumentFault, PlainDocument, numbered_documents, plain_documents};
pub use proxied::{NetworkError, network};
pub use value::{ParsedValue, parse_text_for, parse_value, parse_value_for};
pub use yaml::FILE_BYTES_MAX;
pub use yaml::block::block as yaml_block;
