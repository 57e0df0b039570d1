//! From a parsed [`Json`] into types of our own, by serde.
//! It keeps D-10: a type with members is read from an object alone, at any depth. `serde_json` also takes an array
//! for one, member by member in the order of the source code, which no other reader of these drafts does.

use serde::de::value::{Error, MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::{Json, Number};

pub(super) fn read<T: DeserializeOwned>(value: &Json) -> Option<T> {
    T::deserialize(value).ok()
}

impl Number {
    /// As `serde_json` tells it: an integer that fits, else the nearest double.
    fn tell<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Error> {
        if let Some(value) = self.as_u64() {
            visitor.visit_u64(value)
        } else if let Some(value) = self.as_i64() {
            visitor.visit_i64(value)
        } else {
            visitor.visit_f64(self.as_f64().ok_or_else(|| Error::custom("number too large"))?)
        }
    }
}

impl<'de> IntoDeserializer<'de> for &'de Json {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for &'de Json {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Json::Null => visitor.visit_unit(),
            Json::Bool(value) => visitor.visit_bool(*value),
            Json::Number(number) => number.tell(visitor),
            Json::String(text) => visitor.visit_borrowed_str(text),
            Json::Array(elements) => {
                let mut elements = SeqDeserializer::new(elements.iter());
                let value = visitor.visit_seq(&mut elements)?;
                elements.end().map(|()| value)
            }
            Json::Object(members) => {
                let members = members.iter().map(|(name, value)| (name.as_str(), value));
                visitor.visit_map(MapDeserializer::new(members))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if *self == Json::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if let Json::Object(_) = self {
            self.deserialize_any(visitor)
        } else {
            Err(Error::invalid_type(Unexpected::Other("something else"), &"an object"))
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// Not even its numbers are looked at.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Json::Object(members) => {
                let members = members.iter().map(|(name, value)| (name.as_str(), value));
                MapAccessDeserializer::new(MapDeserializer::new(members))
                    .deserialize_enum(name, variants, visitor)
            }
            Json::String(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            _ => Err(Error::invalid_type(Unexpected::Other("something else"), &"a variant")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map identifier
    }
}
