//! Which fields a type reads, determined by reading it.
//!
//! For tests: a table about the fields of a kind must not miss one. serde passes the fields of a
//! structure to the deserializer that is asked for one, so this deserializer records them and
//! descends until it has visited every field. Knows no kinds.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Visitor};
use serde::forward_to_deserialize_any;

/// Types that count as one field, whatever they contain.
const WHOLE: &[&str] = &["RawLabelSelector"];

/// The fields of `T`, each as the path to it, with `[]` for any element of a list. A list of plain
/// values is a field itself.
pub(crate) fn of<T: for<'de> Deserialize<'de>>(at: &str) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        match look::<T>(&path) {
            Found::Fields(names) => waiting.extend(names.iter().map(|name| {
                let mut inner = path.clone();
                inner.push(Step::Field(name));
                inner
            })),
            Found::List => {
                waiting.push([path.as_slice(), &[Step::Element]].concat());
            }
            Found::Value => {
                fields.insert(written(at, &path));
            }
        }
    }
    fields
}

/// How the path is written; a plain value in a list stands for the list.
fn written(at: &str, path: &[Step]) -> String {
    let path = path.strip_suffix(&[Step::Element]).unwrap_or(path);
    let mut text = at.to_owned();
    for step in path {
        match step {
            Step::Field(name) if text.is_empty() => text.push_str(name),
            Step::Field(name) => text.extend([".", name]),
            Step::Element => text.push_str("[]"),
        }
    }
    text
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Field(&'static str),
    Element,
}

/// What a path leads to.
#[derive(Clone, Copy)]
enum Found {
    Fields(&'static [&'static str]),
    List,
    Value,
}

/// Types that accept anything show whether they are a mapping or a list only when they are given a
/// value, so both are offered.
fn look<T: for<'de> Deserialize<'de>>(path: &[Step]) -> Found {
    let offered = |offer| {
        let mut found = Found::Value;
        let _ = T::deserialize(Probe { path, offer, found: &mut found });
        found
    };
    match offered(Offer::Mapping) {
        Found::Value => offered(Offer::List),
        found => found,
    }
}

#[derive(Clone, Copy)]
enum Offer {
    Mapping,
    List,
}

/// Follows the path, and records what is requested at its end.
struct Probe<'a> {
    path: &'a [Step],
    offer: Offer,
    found: &'a mut Found,
}

/// There is never a value, so reading always ends with this error.
#[derive(Debug)]
enum Stop {
    Unknown(&'static [&'static str]),
    Other,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Stop {}

impl de::Error for Stop {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Other
    }

    fn unknown_field(_: &str, known: &'static [&'static str]) -> Self {
        Self::Unknown(known)
    }
}

impl<'de> de::Deserializer<'de> for Probe<'_> {
    type Error = Stop;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        let Self { path, offer, found } = self;
        match (path.split_first(), offer) {
            (Some((Step::Field(_), _)), _) => visitor.visit_map(Field { path, offer, found }),
            (Some((Step::Element, path)), _) => {
                visitor.visit_seq(Element(Some(Probe { path, offer, found })))
            }
            (None, Offer::Mapping) => match visitor.visit_map(Field { path, offer, found }) {
                Err(Stop::Unknown(known)) => {
                    *found = Found::Fields(known);
                    Err(Stop::Other)
                }
                outcome => outcome,
            },
            (None, Offer::List) => visitor.visit_seq(ListAsked(found)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        if !self.path.is_empty() {
            return self.deserialize_any(visitor);
        }
        if !WHOLE.contains(&name) {
            *self.found = Found::Fields(fields);
        }
        Err(Stop::Other)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        if !self.path.is_empty() {
            return self.deserialize_any(visitor);
        }
        *self.found = Found::List;
        Err(Stop::Other)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self)
    }

    /// A type with free keys, such as labels, is a value.
    fn deserialize_map<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
        Err(Stop::Other)
    }

    fn deserialize_str<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
        Err(Stop::Other)
    }

    fn deserialize_string<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
        Err(Stop::Other)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct
        tuple tuple_struct enum identifier ignored_any
    }
}

/// A mapping with the one field that the path names, or with a field that no type has.
struct Field<'a> {
    path: &'a [Step],
    offer: Offer,
    found: &'a mut Found,
}

impl<'de> de::MapAccess<'de> for Field<'_> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Stop> {
        let name = match self.path.first() {
            Some(Step::Field(name)) => *name,
            _ => "?",
        };
        seed.deserialize(StrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Stop> {
        let Some((_, path)) = self.path.split_first() else { return Err(Stop::Other) };
        seed.deserialize(Probe { path, offer: self.offer, found: self.found })
    }
}

/// A list with one element.
struct Element<'a>(Option<Probe<'a>>);

impl<'de> de::SeqAccess<'de> for Element<'_> {
    type Error = Stop;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Stop> {
        self.0.take().map(|probe| seed.deserialize(probe)).transpose()
    }
}

/// A list, to be looked into if a list was requested.
struct ListAsked<'a>(&'a mut Found);

impl<'de> de::SeqAccess<'de> for ListAsked<'_> {
    type Error = Stop;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        _: T,
    ) -> Result<Option<T::Value>, Stop> {
        *self.0 = Found::List;
        Err(Stop::Other)
    }
}
