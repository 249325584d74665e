//! JSON that is carried, not understood: raw values, and objects opened one level deep.
//!
//! Only the members the crib owns are read or replaced; all others keep their bytes and their order.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// One JSON value, as the bytes it came in.
pub type Raw = Box<RawValue>;

/// The members of one JSON object, in their order, values untouched. A repeated key is an error: two
/// readers of the same bytes must never see two different requests.
#[derive(Debug, Default, Clone)]
pub struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    pub fn parse(raw: &'a RawValue) -> Result<Self, serde_json::Error> {
        serde_json::from_str(raw.get())
    }

    /// The members, or none where the value is not an object.
    pub fn parse_lenient(raw: &'a RawValue) -> Self {
        Self::parse(raw).unwrap_or_default()
    }

    pub fn find(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| *v)
    }

    /// The member as text, if it is there and a string.
    pub fn text(&self, key: &str) -> Option<String> {
        self.find(key).and_then(text)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(k, v)| (k.as_ref(), *v))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Walk;
        impl<'de> Visitor<'de> for Walk {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members: Self::Value = Vec::new();
                while let Some((key, value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    if members.iter().any(|(k, _)| *k == key.0) {
                        return Err(A::Error::custom(format_args!("repeated key `{}`", key.0)));
                    }
                    members.push((key.0, value));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Walk).map(Members)
    }
}

/// A key, borrowed where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// Writes one JSON object member by member.
pub struct ObjectWriter {
    out: String,
}

impl Default for ObjectWriter {
    fn default() -> Self {
        Self::with_capacity(256)
    }
}

impl ObjectWriter {
    pub fn with_capacity(bytes: usize) -> Self {
        let mut out = String::with_capacity(bytes);
        out.push('{');
        Self { out }
    }

    fn key(&mut self, key: &str) {
        if self.out.len() > 1 {
            self.out.push(',');
        }
        push_quoted(&mut self.out, key);
        self.out.push(':');
    }

    /// `json` is one valid JSON value.
    pub fn raw(&mut self, key: &str, json: &str) -> &mut Self {
        self.key(key);
        self.out.push_str(json);
        self
    }

    pub fn member(&mut self, key: &str, value: &RawValue) -> &mut Self {
        self.raw(key, value.get())
    }

    pub fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        push_quoted(&mut self.out, value);
        self
    }

    /// The text, not read again: for what goes straight out. Valid if every part was.
    pub fn into_text(mut self) -> String {
        self.out.push('}');
        self.out
    }

    pub fn finish(mut self) -> Raw {
        self.out.push('}');
        // Every part was valid JSON, so the whole is; should a caller have broken that, say `null`.
        RawValue::from_string(self.out).unwrap_or_else(|_| null())
    }
}

/// Appends `text` as a JSON string.
pub fn push_quoted(out: &mut String, text: &str) {
    match serde_json::to_string(text) {
        Ok(quoted) => out.push_str(&quoted),
        Err(_) => out.push_str("\"\""),
    }
}

/// The value as text, if it is a JSON string.
pub fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str::<Cow<'_, str>>(raw.get()).ok().map(Cow::into_owned)
}

pub fn null() -> Raw {
    RawValue::NULL.to_owned()
}

pub fn empty_object() -> Raw {
    ObjectWriter::with_capacity(2).finish()
}

/// Any serialisable value as raw JSON.
pub fn from<T: serde::Serialize + ?Sized>(value: &T) -> Raw {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_bytes_and_order() {
        let raw =
            RawValue::from_string(r#"{"b": 1.50, "a\n": {"x" : 12345678901234567890123} }"#.into()).unwrap();
        let members = Members::parse(&raw).unwrap();
        let seen: Vec<_> = members.iter().map(|(k, v)| (k.to_owned(), v.get().to_owned())).collect();
        assert_eq!(
            seen,
            [("b".into(), "1.50".into()), ("a\n".into(), r#"{"x" : 12345678901234567890123}"#.into())]
        );
    }

    #[test]
    fn a_repeated_key_is_refused() {
        let raw = RawValue::from_string(r#"{"name":"a","name":"b"}"#.into()).unwrap();
        assert!(Members::parse(&raw).unwrap_err().to_string().contains("repeated key `name`"));
    }

    #[test]
    fn an_object_is_written_member_by_member() {
        let mut object = ObjectWriter::default();
        object.text("a\"", "é\n").raw("n", "1.0");
        assert_eq!(object.finish().get(), r#"{"a\"":"é\n","n":1.0}"#);
    }
}
