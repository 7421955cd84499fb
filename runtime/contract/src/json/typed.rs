//! Reads a JSON value as a type, with objects only where the type is a struct.
//!
//! Serde's derived structs also take a list of their fields, in order. A list that was sent by mistake would
//! then be read as something else.

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Map, Value};

/// The message of the error for a list that stands where an object belongs.
pub const LIST_FOR_OBJECT: &str = "a list stands where an object belongs";

/// Reads a value as `T`. Unlike `serde_json::from_value`, it takes no list for a struct, on any level.
///
/// Serde keeps the content of tagged and untagged enums aside and reads it later without this rule. So a
/// tagged enum is read with [`read_object`], and a field with one uses [`object_field`].
///
/// # Errors
/// When the value does not fit the type. The message may quote the value.
pub fn read_typed<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    T::deserialize(ObjectsOnly(value))
}

/// Like [`read_typed`], for a type that is always an object, such as a tagged enum.
///
/// # Errors
/// When the value is no object or does not fit the type. The message may quote the value.
pub fn read_object<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    if value.is_object() { read_typed(value) } else { Err(Error::custom("not an object")) }
}

/// Reads a field that is always an object. For `#[serde(deserialize_with)]` inside a tagged enum.
pub(crate) fn object_field<'de, D: Deserializer<'de>, T: DeserializeOwned>(field: D) -> Result<T, D::Error> {
    let map = <Map<String, Value> as serde::Deserialize>::deserialize(field)?;
    read_typed(Value::Object(map)).map_err(D::Error::custom)
}

/// A value that gives no list to a struct.
struct ObjectsOnly(Value);

impl<'de> IntoDeserializer<'de, Error> for ObjectsOnly {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

type Entries = std::iter::Map<serde_json::map::IntoIter, fn((String, Value)) -> (ObjectsOnly, ObjectsOnly)>;

fn entries<'de>(map: Map<String, Value>) -> MapDeserializer<'de, Entries, Error> {
    let wrap: fn((String, Value)) -> (ObjectsOnly, ObjectsOnly) =
        |(key, value)| (ObjectsOnly(Value::String(key)), ObjectsOnly(value));
    MapDeserializer::new(map.into_iter().map(wrap))
}

impl<'de> Deserializer<'de> for ObjectsOnly {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => {
                SeqDeserializer::new(items.into_iter().map(ObjectsOnly)).deserialize_any(visitor)
            }
            Value::Object(map) => entries(map).deserialize_any(visitor),
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(map) => entries(map).deserialize_any(visitor),
            Value::Array(_) => Err(Error::custom(LIST_FOR_OBJECT)),
            other => other.deserialize_map(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            // The content of the variant goes through `deserialize_map` above.
            Value::Object(map) if map.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(entries(map)))
            }
            other => other.deserialize_enum(name, variants, visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::{read_object, read_typed};
    use crate::api::{CancelRequest, CheckRequest, DeployRequest, ResolveRequest, StartRequest};
    use crate::bridge::BridgeRequest;
    use crate::chat::ChatSend;
    use crate::stream::EventsRequest;
    use pretty_assertions::assert_eq;
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Error, Value, json};

    /// Every copy of an example in which one object is the list of its values, except objects at or below `open`.
    fn with_lists(example: &Value, open: &[&str]) -> Vec<(String, Value)> {
        let mut pointers = vec![String::new()];
        let mut copies = Vec::new();
        while let Some(pointer) = pointers.pop() {
            if open.contains(&pointer.as_str()) {
                continue;
            }
            match example.pointer(&pointer) {
                Some(Value::Object(map)) => {
                    pointers.extend(map.keys().map(|key| format!("{pointer}/{key}")));
                    for list in [map.values().cloned().collect(), Value::Array(Vec::new())] {
                        let mut copy = example.clone();
                        *copy.pointer_mut(&pointer).unwrap() = list;
                        copies.push((pointer.clone(), copy));
                    }
                }
                Some(Value::Array(items)) => {
                    pointers.extend((0..items.len()).map(|ix| format!("{pointer}/{ix}")));
                }
                _ => {}
            }
        }
        copies
    }

    fn check<T: DeserializeOwned + Serialize>(
        read: fn(Value) -> Result<T, Error>,
        example: &Value,
        open: &[&str],
    ) {
        let value = read(example.clone()).unwrap_or_else(|why| panic!("{why}: {example}"));
        assert_eq!(serde_json::to_value(&value).unwrap(), *example);
        for (pointer, copy) in with_lists(example, open) {
            assert!(read(copy.clone()).is_err(), "a list at `{pointer}`: {copy}");
        }
    }

    /// The bodies of the routes, and the messages that clients send on sockets.
    // SECURITY: strict-json
    #[test]
    fn no_list_is_read_as_an_object() {
        let message = json!({"payload": [1, {"a": null}], "topic": "t"});
        check::<DeployRequest>(
            read_typed,
            &json!({"flows": [message], "revision": "r", "force": true}),
            &["/flows"],
        );
        check::<CheckRequest>(read_typed, &json!({"flows": {}, "profile": "redflow"}), &["/flows"]);
        check::<StartRequest>(
            read_typed,
            &json!({"node": "n", "payload": {"a": [1]}, "wait": true}),
            &["/payload"],
        );
        check::<CancelRequest>(read_typed, &json!({"reason": "r"}), &[]);
        let result = json!({"success": true, "output": {"a": {}}});
        check::<ResolveRequest>(read_typed, &json!({"callId": "c", "result": result}), &["/result/output"]);
        let item = json!({"id": "i", "type": "user", "content": "c", "timestamp": 5});
        check::<ChatSend>(read_typed, &json!({"message": "m", "chatMessage": item}), &["/chatMessage"]);

        for example in [
            json!({"type": "hello", "protocol": "p", "instance": "i", "boot": "b", "nodeRed": "5", "bridge": "1",
                   "session": "s", "received": 0}),
            json!({"type": "ack", "seq": 1}),
            json!({"type": "flows", "seq": 1, "revision": "r", "flows": [{"id": "a"}],
                   "credentials": {"n": {"k": "v"}}}),
            json!({"type": "start", "seq": 1, "start": "s", "node": "n", "message": message}),
            json!({"type": "cancel", "seq": 1, "start": "s", "reason": "r"}),
            json!({"type": "tool_result", "seq": 1, "run": "r", "call": "c",
                   "reply": {"type": "returned", "output": {"a": 1}}}),
            json!({"type": "watch", "events": true}),
        ] {
            check::<BridgeRequest>(read_object, &example, &["/flows/0", "/message/payload", "/reply/output"]);
        }
        check::<EventsRequest>(
            read_object,
            &json!({"type": "subscribe", "after": "0", "runs": ["r"], "deltas": true}),
            &[],
        );
        check::<EventsRequest>(read_object, &json!({"type": "ping", "id": "i"}), &[]);
    }

    /// The body that once replaced a flow by nothing.
    #[test]
    fn serde_alone_reads_lists_as_structs() {
        let body = json!([[], null, true]);
        assert!(serde_json::from_value::<DeployRequest>(body.clone()).is_ok());
        let error = read_typed::<DeployRequest>(body).unwrap_err();
        assert_eq!(error.to_string(), super::LIST_FOR_OBJECT);
    }

    #[test]
    fn reads_other_types_as_serde_json_does() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        enum Shape {
            Dot,
            Line(u8, u8),
            Box { wide: u8 },
        }
        type Many =
            (Vec<Option<Shape>>, std::collections::BTreeMap<crate::id::NodeId, (u8, f64)>, Value, Box<str>);
        let value =
            json!([["Dot", null, {"Line": [1, 2]}, {"Box": {"wide": 3}}], {"n": [1, 2.5]}, {"a": [1]}, "é"]);
        let expected = serde_json::from_value::<Many>(value.clone()).unwrap();
        assert_eq!(read_typed::<Many>(value).unwrap(), expected);
        assert!(read_typed::<Shape>(json!({"Box": [3]})).is_err());
        assert!(read_typed::<Shape>(json!({"Box": {"wide": 3}, "Dot": null})).is_err());
        assert!(read_typed::<Vec<u8>>(json!([1, 300])).is_err());
        for wrong in [json!(null), json!(1), json!("a"), json!([])] {
            assert!(read_typed::<crate::Message>(wrong.clone()).is_err(), "{wrong}");
            assert!(read_typed::<CancelRequest>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
