use super::declaration::{Kind, Place, Property};
use super::{CONFIG_NODES, NODES, property_sets};
use crate::schemas;
use serde_json::Value;
use std::collections::BTreeMap;

fn schema(name: &str) -> Value {
    let text = schemas::find(name).unwrap_or_else(|| panic!("{name}: run `cargo xtask codegen`"));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn fixed_tools_have_a_json_schema() {
    for tool in NODES.iter().filter_map(|node| node.node_type.tool) {
        let schema: Value = serde_json::from_str(tool.input_schema).unwrap();
        assert_eq!(schema["type"], "object", "{}", tool.name);
    }
}

#[test]
fn a_set_declares_the_properties_of_its_schema() {
    for set in property_sets() {
        let schema = schema(set.schema);
        let names: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let declared: Vec<&str> = set.properties.iter().map(|property| property.name).collect();
        assert_eq!(declared, names, "{}", set.schema);
        for property in set.properties {
            let rule = &schema["properties"][property.name];
            let is = |kind: &str| {
                rule["type"] == kind || rule["type"].as_array().is_some_and(|all| all.contains(&kind.into()))
            };
            let place = format!("{}: {}", set.schema, property.name);
            let is_number = matches!(property.kind, Kind::Whole(_) | Kind::Decimal { .. });
            assert_eq!(is_number, is("integer") || is("number"), "{place}");
            assert_eq!(
                matches!(property.kind, Kind::Flag | Kind::OptionalFlag { .. }),
                is("boolean"),
                "{place}"
            );
            if let Kind::Choice { choices } = property.kind {
                let offered: Vec<&str> =
                    choices.iter().map(|choice| choice.value).filter(|value| !value.is_empty()).collect();
                assert_eq!(offered, values(rule, &schema), "{place}");
            }
        }
    }
}

/// A number outside its Rust type must be told by the checker, because no node can be built with it.
#[test]
fn every_integer_of_a_configuration_has_limits() {
    fn check(place: &str, rule: &Value) -> usize {
        let is = |kind: &Value| kind == "integer";
        let is_integer = is(&rule["type"]) || rule["type"].as_array().is_some_and(|all| all.iter().any(is));
        if is_integer {
            let greatest: i64 = match rule["format"].as_str() {
                Some("uint16") => u16::MAX.into(),
                Some("uint32") => u32::MAX.into(),
                _ => (1 << 53) - 1,
            };
            assert!(rule["maximum"].as_i64().is_some_and(|max| max <= greatest), "{place}: {rule}");
            let least = if rule["format"] == "int64" { -greatest } else { 0 };
            assert!(rule["minimum"].as_i64().is_some_and(|min| min >= least), "{place}: {rule}");
        }
        let inner = match rule {
            Value::Object(map) => map.values().map(|rule| check(place, rule)).sum(),
            Value::Array(items) => items.iter().map(|rule| check(place, rule)).sum(),
            _ => 0,
        };
        inner + usize::from(is_integer)
    }
    let integers: usize = property_sets().map(|set| check(set.schema, &schema(set.schema))).sum();
    assert!(integers > 30, "{integers}");
}

/// The values that a rule allows.
fn values<'a>(rule: &'a Value, root: &'a Value) -> Vec<&'a str> {
    if let Some(path) = rule["$ref"].as_str() {
        return root.pointer(&path[1..]).map(|inner| values(inner, root)).unwrap();
    }
    let lists = ["anyOf", "oneOf"].iter().filter_map(|key| rule[*key].as_array()).flatten();
    let inner = lists.flat_map(|one| values(one, root));
    let own =
        rule["enum"].as_array().into_iter().flatten().chain(rule.get("const")).filter_map(Value::as_str);
    own.chain(inner).collect()
}

#[test]
fn a_palette_shows_every_property_that_the_runtime_reads() {
    for node in NODES.iter().chain(CONFIG_NODES) {
        let Some(palette) = node.palette else { continue };
        let shown = |name: &str| palette.properties().any(|property| property.name == name);
        for property in node.property_sets.iter().flat_map(|set| set.properties) {
            assert!(shown(property.name), "{}: no field for {}", node.node_type.name, property.name);
        }
        assert!(palette.named_by.is_none_or(shown), "{}", node.node_type.name);
        let ports = node.node_type.outputs.map_or(0, <[_]>::len);
        assert_eq!(palette.outputs.len(), ports, "{}", node.node_type.name);
    }
}

#[test]
fn a_key_has_one_text() {
    let mut texts: BTreeMap<&str, &str> = BTreeMap::new();
    let palettes = NODES.iter().chain(CONFIG_NODES).filter_map(|node| node.palette);
    let seen = |property: &&Property| property.place != Place::Hidden;
    for property in palettes.flat_map(|palette| palette.properties().collect::<Vec<_>>()).filter(seen) {
        let label = property.label;
        assert!(!label.text.is_empty() || property.place == Place::Kept, "{}", property.name);
        assert_eq!(*texts.entry(label.key).or_insert(label.text), label.text, "{}", label.key);
        assert!(
            !property.help.is_empty() && property.help.ends_with('.'),
            "{}: {}",
            property.name,
            property.help
        );
    }
}
