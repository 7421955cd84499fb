//! The room that JSON needs is the room that it takes.

use super::{Layout, count_chars, write_within};
use proptest::prelude::*;
use serde_json::{Value, json};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!("\"\\/\n\r\t\u{8}\u{c}\u{1f}\u{7f}é😀")),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn a_value_fits_exactly_if_its_text_does(value in value()) {
        for (layout, text) in [
            (Layout::Compact, serde_json::to_string(&value).unwrap()),
            (Layout::Pretty, serde_json::to_string_pretty(&value).unwrap()),
        ] {
            let chars = count_chars(&text);
            prop_assert_eq!(write_within(&value, chars - 1, layout), None);
            prop_assert_eq!(write_within(&value, chars, layout), Some(text));
        }
    }
}
