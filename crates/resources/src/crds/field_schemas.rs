//! The schemas of single fields.
//!
//! Types with hand-written serde readers have hand-written schemas: beside the types of `fields` and
//! `hidden`, one line each. Knows no kinds.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::fields::{BandwidthValue, GoDuration, Text};
use crate::hidden::{HiddenList, HiddenMapping, KeyText};
use crate::report::List;

/// Defines the schema of a type that is part of other schemas.
macro_rules! schema {
    ([$($generic:tt)*] $type:ty, $name:literal, $generator:ident => $schema:expr) => {
        impl<$($generic)*> JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

schema!([T] Text<T>, "Text", _generator => json_schema!({ "type": "string" }));
schema!([] KeyText, "KeyText", _generator => json_schema!({ "type": "string" }));
schema!([] GoDuration, "GoDuration", _generator => json_schema!({ "type": "string" }));
schema!([T: JsonSchema] HiddenMapping<T>, "HiddenMapping", generator => T::json_schema(generator));
schema!([T: JsonSchema] HiddenList<T>, "HiddenList", generator => List::<T>::json_schema(generator));
schema!([] BandwidthValue, "BandwidthValue", _generator => json_schema!({
    "type": ["integer", "string"],
    "minimum": 1,
    "maximum": BandwidthValue::BITS_PER_SECOND_MAX,
    "pattern": "^auto$",
    "x-kubernetes-int-or-string": true,
}));
