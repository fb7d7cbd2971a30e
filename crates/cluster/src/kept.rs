//! An object is written as it is read, without what is not kept.
//!
//! Returns its text and its name in one pass, with no tree in between: of the thousands of objects of a first list, trees
//! are most of the work. Used by the tables of what is kept of each kind.

use std::borrow::Cow;
use std::fmt;

use fairway_model::{Kind, ObjectName};
use serde::Serialize;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Value, json};

use super::object_text::{ListedObject, ObjectText};

/// What is kept of a value. What is not of the form that it expects is kept whole.
#[derive(Debug, PartialEq)]
pub(crate) enum Kept {
    /// All of it.
    All,
    Nothing,
    /// All of it, which is the name of the object.
    Name,
    /// All of it, which is the namespace of the object.
    Namespace,
    /// Of an object these fields.
    Fields(&'static [(&'static str, &'static Kept)]),
    /// Of an object all fields, of these what they say.
    Without(&'static [(&'static str, &'static Kept)]),
    /// Of each element of a list.
    Each(&'static Kept),
    /// The first element of a list.
    First,
    /// Of a list of conditions type and status of those with these types.
    Conditions(&'static [&'static str]),
}

/// What is kept of `object`, with its kind and version if it is one of a list.
pub(crate) fn written<'de, D: Deserializer<'de>>(
    kept: &'static Kept,
    type_of_list: Option<(Kind, &str)>,
    object: D,
) -> Result<ListedObject, D::Error> {
    let mut into = Written { text: Vec::with_capacity(TYPICAL_BYTES), ..Written::default() };
    Part { kept, type_of_list, into: &mut into }.deserialize(object)?;
    let Written { text, namespace, name } = into;
    let text = String::from_utf8(text).map_err(Error::custom)?;
    Ok(ListedObject { name: ObjectName::new(namespace, name), text: ObjectText::from(text) })
}

/// Of an object after it was trimmed.
const TYPICAL_BYTES: usize = 1024;

#[derive(Default)]
struct Written {
    text: Vec<u8>,
    namespace: String,
    name: String,
}

impl Written {
    fn put<T: Serialize + ?Sized, E: Error>(&mut self, value: &T) -> Result<(), E> {
        serde_json::to_writer(&mut self.text, value).map_err(Error::custom)
    }

    /// Ends the element before the next one of a list or an object that began at `begin`.
    fn separate(&mut self, begin: usize) {
        if self.text.len() > begin {
            self.text.push(b',');
        }
    }
}

/// A value that is read, and written into the text.
struct Part<'a> {
    kept: &'static Kept,
    type_of_list: Option<(Kind, &'a str)>,
    into: &'a mut Written,
}

impl Part<'_> {
    fn of<'a>(kept: &'static Kept, into: &'a mut Written) -> Part<'a> {
        Part { kept, type_of_list: None, into }
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.into.put(&())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.into.put(&value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.into.put(&value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.into.put(&value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.into.put(&value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        match self.kept {
            Kept::Name => value.clone_into(&mut self.into.name),
            Kept::Namespace => value.clone_into(&mut self.into.namespace),
            _ => {}
        }
        self.into.put(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let (kept, into) = (self.kept, self.into);
        into.text.push(b'[');
        let begin = into.text.len();
        if let Kept::Conditions(types) = kept {
            while let Some(condition) = list.next_element::<Value>()? {
                if let Some(condition) = kept_condition(&condition, types) {
                    into.separate(begin);
                    into.put(&condition)?;
                }
            }
        } else {
            let of_each = if let Kept::Each(it) = kept { it } else { &Kept::All };
            // What stands behind the last element is not known before it is read.
            let mut end = begin;
            loop {
                into.separate(begin);
                if list.next_element_seed(Part::of(of_each, into))?.is_none() {
                    into.text.truncate(end);
                    break;
                }
                end = into.text.len();
                if *kept == Kept::First {
                    while list.next_element::<IgnoredAny>()?.is_some() {}
                    break;
                }
            }
        }
        into.text.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (fields, others) = match self.kept {
            Kept::Fields(fields) => (*fields, &Kept::Nothing),
            Kept::Without(fields) => (*fields, &Kept::All),
            _ => (&[][..], &Kept::All),
        };
        let Self { type_of_list, into, .. } = self;
        into.text.push(b'{');
        let begin = into.text.len();
        if let Some((kind, api_version)) = type_of_list {
            for (key, value) in [("kind", kind.to_string().as_str()), ("apiVersion", api_version)] {
                into.separate(begin);
                into.put(key)?;
                into.text.push(b':');
                into.put(value)?;
            }
        }
        while let Some(Key(key)) = map.next_key()? {
            let named = fields.iter().find(|(name, _)| *name == key);
            let mut kept = named.map_or(others, |(_, kept)| *kept);
            if type_of_list.is_some() && matches!(&*key, "kind" | "apiVersion") {
                kept = &Kept::Nothing;
            }
            if *kept == Kept::Nothing {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            into.separate(begin);
            into.put(&*key)?;
            into.text.push(b':');
            map.next_value_seed(Part::of(kept, into))?;
        }
        into.text.push(b'}');
        Ok(())
    }
}

fn kept_condition(condition: &Value, types: &[&str]) -> Option<Value> {
    let kind = condition.get("type")?.as_str().filter(|it| types.contains(it))?;
    Some(json!({"type": kind, "status": condition.get("status")?}))
}

/// The name of a field, which is copied only where it has escapes.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor).map(Self)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }

    fn visit_string<E: Error>(self, key: String) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_of_a_list_says_what_it_is_and_is_written_as_json_is() {
        let text = r#"{"kind":"x","metadata":{"namespace":"a","name":"b\u003cc"},"n":[1,-2,0.5,true,null,"\"\n"],"e":{},"l":[]}"#;
        let mut read = serde_json::Deserializer::from_str(text);
        let it = written(
            &Kept::Without(&[(
                "metadata",
                &Kept::Without(&[("name", &Kept::Name), ("namespace", &Kept::Namespace)]),
            )]),
            Some((Kind::Service, "v1")),
            &mut read,
        )
        .unwrap();
        assert_eq!(it.name, ObjectName::new("a", "b<c"));
        assert_eq!(
            it.text.as_str(),
            r#"{"kind":"Service","apiVersion":"v1","metadata":{"namespace":"a","name":"b<c"},"n":[1,-2,0.5,true,null,"\"\n"],"e":{},"l":[]}"#
        );
        assert_eq!(it, ListedObject::from(&it.text.value()));
    }

    #[test]
    fn lists_and_objects_of_which_nothing_is_kept_are_empty() {
        let object =
            json!({"a": [{"b": 1}, {"c": 2}], "d": [{"type": "x"}, 3], "e": [7, 8], "f": {"g": 1}});
        let kept = &Kept::Fields(&[
            ("a", &Kept::Each(&Kept::Fields(&[("b", &Kept::All)]))),
            ("d", &Kept::Conditions(&["y"])),
            ("e", &Kept::First),
        ]);
        let it = written(kept, None, &object).unwrap();
        assert_eq!(it.text.as_str(), r#"{"a":[{"b":1},{}],"d":[],"e":[7]}"#);
    }
}
