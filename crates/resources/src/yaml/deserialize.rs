//! The bridge from trees to serde.
//!
//! Reads `null` as Kubernetes does: an absent field, empty text, an empty list. Errors are in words
//! for users, since serde's errors end up in findings. Knows no kinds.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::node::{Entry, Node, Value};
use super::scalar::{self, ScalarKind};

/// Why a value does not fit its field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    /// In words for the user.
    #[error("{0}")]
    Value(String),
    /// A field that the kind does not have.
    #[error("is not a known field")]
    UnknownField {
        /// What was written.
        name: String,
        /// The fields there are.
        known: &'static [&'static str],
    },
}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Value(message.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let given = match unexpected {
            Unexpected::Bool(value) => format!("{value} is a boolean"),
            Unexpected::Signed(value) => format!("{value} is a number"),
            Unexpected::Unsigned(value) => format!("{value} is a number"),
            Unexpected::Float(value) => format!("{value} is a number"),
            Unexpected::Str(value) => format!("{value:?} is text"),
            Unexpected::Seq => "is a list".to_owned(),
            Unexpected::Map => "is a mapping".to_owned(),
            Unexpected::Unit | Unexpected::Option => "is empty".to_owned(),
            // Integers beyond 64 bits arrive here, with their value.
            Unexpected::Other(value) => format!("is {value}"),
            _ => "is of the wrong kind".to_owned(),
        };
        Self::Value(format!("{given}; expected {}", plain_words(&expected.to_string())))
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Self::UnknownField { name: name.to_owned(), known }
    }
}

/// serde's names of types, in words for users.
fn plain_words(expected: &str) -> String {
    match expected {
        "a string" => "text (in quotes, if it looks like something else)".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a mapping".to_owned(),
        other if other.starts_with("struct ") => "a mapping".to_owned(),
        other => other.to_owned(),
    }
}

impl<'de> de::Deserializer<'de> for &'de Node {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.value {
            Value::Removed => visitor.visit_unit(),
            Value::Sequence(elements) => visitor.visit_seq(Elements(elements.iter())),
            Value::Mapping(entries) => {
                visitor.visit_map(Fields { entries: entries.iter(), value: None })
            }
            Value::Scalar(text, kind) => match kind {
                ScalarKind::Null => visitor.visit_unit(),
                ScalarKind::Boolean => visitor.visit_bool(scalar::boolean(text) == Some(true)),
                ScalarKind::Integer => visit_integer(text, visitor),
                ScalarKind::Float => visitor.visit_f64(scalar::float(text).unwrap_or(f64::NAN)),
                ScalarKind::Text | ScalarKind::SwitchWord => visitor.visit_borrowed_str(text),
            },
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.value {
            Value::Scalar(text, ScalarKind::SwitchWord) => {
                visitor.visit_bool(scalar::boolean(text) == Some(true))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.is_null() { visitor.visit_borrowed_str("") } else { self.deserialize_any(visitor) }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.is_null() || self.value == Value::Removed {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.is_null() {
            visitor.visit_seq(Elements([].iter()))
        } else {
            self.deserialize_any(visitor)
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.value {
            _ if self.is_null() => visitor.visit_map(Fields { entries: [].iter(), value: None }),
            // Structs would also accept lists, field by field; no manifest is meant that way.
            Value::Sequence(_) => Err(de::Error::invalid_type(Unexpected::Seq, &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct
        tuple tuple_struct enum identifier
    }
}

fn visit_integer<'de, V: Visitor<'de>>(text: &str, visitor: V) -> Result<V::Value, ReadError> {
    if scalar::is_octal_to_some(text) {
        return Err(ReadError::Value(format!(
            "{text} begins with 0, which kubectl reads as octal; remove the 0, or put text in \
             quotes"
        )));
    }
    match scalar::integer(text) {
        Some(value) => match i64::try_from(value) {
            Ok(value) => visitor.visit_i64(value),
            Err(_) => visitor.visit_i128(value),
        },
        None => visitor.visit_f64(scalar::float(text).unwrap_or(f64::INFINITY)),
    }
}

struct Elements<'de>(std::slice::Iter<'de, Node>);

impl<'de> de::SeqAccess<'de> for Elements<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        match self.0.next() {
            None => Ok(None),
            Some(node) => seed.deserialize(Element(node)).map(Some),
        }
    }
}

/// A list element: as the value itself, but `null` is not an element.
struct Element<'de>(&'de Node);

impl<'de> de::Deserializer<'de> for Element<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.0.is_null() {
            return Err(ReadError::Value("is empty; give it a value or remove it".to_owned()));
        }
        self.0.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.0.is_null() {
            return Err(ReadError::Value("is empty; give it a value or remove it".to_owned()));
        }
        self.0.deserialize_option(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Fields<'de> {
    entries: std::slice::Iter<'de, Entry>,
    value: Option<&'de Node>,
}

impl<'de> de::MapAccess<'de> for Fields<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        let Some(entry) = self.entries.next() else { return Ok(None) };
        self.value = Some(&entry.value);
        seed.deserialize(StrDeserializer::new(&entry.key)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, ReadError> {
        match self.value.take() {
            Some(node) => seed.deserialize(node),
            None => Err(ReadError::Value("has no value".to_owned())),
        }
    }
}
