//! The types of fields that hold keys, or into which a user may write one by mistake.
//!
//! Their faults never repeat the value. Knows no kinds; the raw types of the kinds are made of
//! these.

use std::fmt;
use std::marker::PhantomData;

use fairway_ground::{Password, PasswordError};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::report::List;

/// Defines visitor methods that refuse plain values without repeating them.
macro_rules! refuse_plain_values {
    ($type:ty, $noun:literal) => {
        fn visit_str<E: Error>(self, _: &str) -> Result<$type, E> {
            Err(E::custom(concat!("is a plain value; expected ", $noun)))
        }

        fn visit_i64<E: Error>(self, _: i64) -> Result<$type, E> {
            self.visit_str("")
        }

        fn visit_i128<E: Error>(self, _: i128) -> Result<$type, E> {
            self.visit_str("")
        }

        fn visit_f64<E: Error>(self, _: f64) -> Result<$type, E> {
            self.visit_str("")
        }

        fn visit_bool<E: Error>(self, _: bool) -> Result<$type, E> {
            self.visit_str("")
        }
    };
}

/// A TCP-MD5 key, or empty text for none. Its faults never repeat the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyText(pub(crate) Option<Password>);

impl<'de> Deserialize<'de> for KeyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = HiddenText::deserialize(deserializer)?;
        if text.0.is_empty() {
            return Ok(Self(None));
        }
        let key = Password::new(text.0).map_err(|error: PasswordError| D::Error::custom(error))?;
        Ok(Self(Some(key)))
    }
}

/// Text that no fault repeats.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct HiddenText(pub(crate) String);

impl<'de> Deserialize<'de> for HiddenText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Hidden;

        impl Visitor<'_> for Hidden {
            type Value = HiddenText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<HiddenText, E> {
                Ok(HiddenText(text.to_owned()))
            }

            fn visit_unit<E: Error>(self) -> Result<HiddenText, E> {
                Ok(HiddenText(String::new()))
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<HiddenText, E> {
                Err(E::custom("reads as a number; expected text: put it in quotes"))
            }

            fn visit_i128<E: Error>(self, _: i128) -> Result<HiddenText, E> {
                self.visit_i64(0)
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<HiddenText, E> {
                self.visit_i64(0)
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<HiddenText, E> {
                Err(E::custom("reads as a boolean; expected text: put it in quotes"))
            }
        }

        deserializer.deserialize_any(Hidden)
    }
}

/// A mapping that a user may replace by a key by mistake: no fault repeats a plain value.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct HiddenMapping<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for HiddenMapping<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Mapping<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Mapping<T> {
            type Value = HiddenMapping<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HiddenMapping<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(HiddenMapping)
            }

            refuse_plain_values!(HiddenMapping<T>, "a mapping");
        }

        deserializer.deserialize_any(Mapping(PhantomData))
    }
}

/// A list that a user may replace by a key by mistake: no fault repeats a plain value.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct HiddenList<T>(pub(crate) List<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for HiddenList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Elements<T> {
            type Value = HiddenList<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<HiddenList<T>, A::Error> {
                List::deserialize(SeqAccessDeserializer::new(list)).map(HiddenList)
            }

            refuse_plain_values!(HiddenList<T>, "a list");
        }

        deserializer.deserialize_any(Elements(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IgnoredAny;

    use super::super::yaml::deserialize::ReadError;
    use super::super::yaml::documents;
    use super::*;

    /// What there may be where a key or what holds it is expected: all that YAML does not take for text, and text.
    const VALUES: [&str; 6] =
        ["7391846", "73918460000000000000000", "7391846.5", "true", "'7391846'", "[7391846]"];

    fn fault<T: for<'de> Deserialize<'de>>(text: &str) -> Option<String> {
        let root = documents(text).next().unwrap().root.unwrap();
        match T::deserialize(&root) {
            Ok(_) => None,
            Err(ReadError::Value(message)) => Some(message),
            Err(error) => panic!("{text}: {error:?}"),
        }
    }

    #[test]
    fn no_fault_repeats_a_value_in_the_place_of_a_key() {
        let faults = |text| {
            let faults = [
                fault::<HiddenText>(text),
                fault::<KeyText>(text),
                fault::<HiddenMapping<IgnoredAny>>(text),
                fault::<HiddenList<HiddenText>>(text),
            ];
            faults.into_iter().flatten()
        };
        let all: Vec<String> = VALUES.into_iter().flat_map(faults).collect();
        assert!(all.len() > 2 * VALUES.len(), "{all:?}");
        let repeats = |fault: &&String| fault.contains("7391846") || fault.contains("true");
        assert_eq!(all.iter().find(repeats), None);
    }
}
