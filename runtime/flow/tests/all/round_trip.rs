//! Export gives back what was imported.

use proptest::prelude::*;
use redflow_contract::flow::FlowShape;
use redflow_contract::limits::FlowLimits;
use redflow_flow::RawFlow;
use serde_json::{Value, json};

fn export(text: &str) -> (FlowShape, Value) {
    let raw = RawFlow::parse(text.as_bytes(), &FlowLimits::default()).unwrap_or_else(|e| panic!("{e:?}"));
    (raw.shape(), raw.export())
}

#[test]
fn every_shape_keeps_keys_order_ids_and_unknown_properties() {
    let nodes = r#"[{"zeta":1,"id":"a b.c 🙂","type":"inject","alpha":{"y":2,"x":[null,1.5]},"wires":[[]]},{"type":"tab","id":"t"}]"#;
    let rows = [
        (FlowShape::Array, nodes.to_owned()),
        (FlowShape::Deployment, format!(r#"{{"credentials":{{}},"flows":{nodes},"rev":"x"}}"#)),
        (
            FlowShape::SingleFlow,
            format!(r#"{{"label":"L","nodes":{nodes},"id":"f","configs":[{{"id":"k","type":"c"}}]}}"#),
        ),
        (
            FlowShape::RedflowExport,
            format!(r#"{{"exportedAt":"now","flow":{{"nodes":{nodes},"label":"L"}},"extra":0}}"#),
        ),
    ];
    for (shape, text) in rows {
        let (found, value) = export(&text);
        assert_eq!(found, shape);
        assert_eq!(value.to_string(), text);
    }
}

#[test]
fn keeps_values_that_are_not_lists_of_nodes() {
    let text = r#"{"nodes":[],"configs":{"odd":true}}"#;
    assert_eq!(export(text).1.to_string(), text);
}

#[test]
fn writes_whole_floats_as_javascript_does() {
    let (_, value) = export(r#"[{"id":"a","type":"x","n":1e3,"m":1.10,"big":1e300,"neg":-0.0}]"#);
    assert_eq!(value.to_string(), r#"[{"id":"a","type":"x","n":1000,"m":1.1,"big":1e+300,"neg":0}]"#);
}

#[test]
fn ignores_a_byte_order_mark() {
    assert_eq!(export("\u{feff}[]"), (FlowShape::Array, json!([])));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,8}", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_properties_survive(props in prop::collection::vec(prop::collection::vec(("[a-z]{1,6}", any_json()), 0..5), 0..6)) {
        let nodes: Vec<Value> = props
            .into_iter()
            .enumerate()
            .map(|(ix, pairs)| {
                let mut map: serde_json::Map<String, Value> = pairs.into_iter().collect();
                map.insert("id".to_owned(), json!(format!("n{ix}")));
                map.insert("type".to_owned(), json!("function"));
                Value::Object(map)
            })
            .collect();
        let text = Value::Array(nodes).to_string();
        prop_assert_eq!(export(&text).1.to_string(), text);
    }
}
