//! The bound of a validation's work, with hostile and with ordinary schemas and values.

use super::{SchemaProblem, SchemaRules, TooMuchWork, UntrustedSchema, Violations};
use serde_json::{Map, Value, json};

fn bounded(schema: &Value, value: &Value) -> Result<bool, TooMuchWork> {
    let compiled = UntrustedSchema::compile(schema, SchemaRules::Current);
    let schema = compiled.unwrap_or_else(|problem| panic!("{problem:.200?}"));
    let bytes = value.to_string().len();
    let violations = if bytes <= 32 * 1024 { Violations::All } else { Violations::First };
    schema.bounded(value, bytes, violations).map(|schema| schema.is_valid(value))
}

fn object(keys: usize) -> Value {
    (0..keys).map(|n| (n.to_string(), json!(n))).collect::<Map<_, _>>().into()
}

// SECURITY: schema-work
#[test]
fn refuses_work_that_grows_too_much() {
    let lists: Value = (0..30_000).map(|n| json!([n])).collect();
    let nested = |depth| (0..depth).fold(json!([]), |inner, _| json!([inner]));
    let text = json!("ab".repeat(450_000));
    let rows = [
        ("pattern", json!({"pattern": "[ab]*a[ab]{500}c"}), text.clone()),
        (
            "patterns",
            json!({"allOf": vec![json!({"pattern": "[ab]*a[ab]{40}c"}); 90]}),
            json!("ab".repeat(999)),
        ),
        ("enum", json!({"items": {"enum": lists}}), lists.clone()),
        (
            "const",
            json!({"items": {"anyOf": vec![json!({"const": lists}); 30]}}),
            json!([lists, lists, lists]),
        ),
        // All these lists have the same hash.
        ("uniqueItems", json!({"uniqueItems": true}), (0..100).flat_map(|_| (0..100).map(nested)).collect()),
        ("contains", json!({"items": {"contains": {"enum": lists}}}), json!([lists, lists])),
        (
            "property names",
            json!({"patternProperties": {"[0-9]*1[0-9]{200}x": {}}, "propertyNames": {"pattern": "[0-9]{9}x"}}),
            object(30_000),
        ),
        (
            "required",
            json!({"items": {"required": (0..10_000).map(|n| n.to_string()).collect::<Vec<_>>()}}),
            json!(vec![json!({}); 1_000]),
        ),
        (
            "violations",
            json!({"anyOf": [{"items": {"type": "string"}}, {"items": false}]}),
            json!(vec![1; 200_000]),
        ),
        (
            "unevaluated",
            (0..7).fold(json!({}), |inner, _| json!({"unevaluatedProperties": false, "anyOf": [inner]})),
            object(1_000),
        ),
        (
            "recursion",
            json!({"anyOf": [{"items": {"$ref": "#"}}, {"type": "string", "enum": lists}]}),
            (0..100).fold(json!(vec![1; 10_000]), |inner, _| json!([inner])),
        ),
        ("empty schemas", json!({"items": {"allOf": vec![json!({}); 9_990]}}), json!(vec![0; 400_000])),
        (
            "empty items",
            json!({"items": {"prefixItems": vec![json!({}); 900]}}),
            json!(vec![json!(vec![0; 900]); 900]),
        ),
        ("copies", json!({"anyOf": vec![json!({"type": "string"}); 3_000]}), json!(vec![0; 400_000])),
        (
            "long paths",
            json!({"anyOf": [{"additionalProperties": {"items": {"type": "string"}}}]}),
            json!({"k".repeat(600_000): vec![0; 100_000]}),
        ),
        (
            "a pattern as a value",
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "format": "regex"}),
            json!((0..60_000).map(|n| format!("(?<a{n}>)")).collect::<String>()),
        ),
        (
            "looks at each level",
            json!({"unevaluatedProperties": false, "allOf": [
                (0..40).fold(json!({"if": {"enum": lists}}), |inner, _| json!({"allOf": [inner]}))]}),
            object(3_000),
        ),
        (
            "encoding",
            json!({"$schema": "http://json-schema.org/draft-07/schema#",
                   "allOf": vec![json!({"contentMediaType": "application/json"}); 40]}),
            text,
        ),
    ];
    for (name, schema, value) in rows {
        assert_eq!(bounded(&schema, &value), Err(TooMuchWork), "{name}");
    }
}

// SECURITY: schema-work
#[test]
fn ordinary_work_is_done() {
    let text = json!("ab".repeat(450_000));
    let order = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{1,12}$"},
            "mail": {"type": "string", "format": "email", "maxLength": 200},
            "state": {"enum": ["new", "paid", "sent"]},
            "lines": {
                "type": "array", "uniqueItems": true,
                "items": {"type": "object", "properties": {"sku": {"type": "string"}, "count": {"minimum": 1}}},
            },
            "ship": {"oneOf": [{"const": "post"}, {"type": "object", "required": ["street"]}]},
        },
        "additionalProperties": false,
    });
    let lines: Vec<Value> = (0..300).map(|n| json!({"sku": format!("s{n}"), "count": n + 1})).collect();
    let tree = json!({"type": "object", "properties": {"name": {"type": "string"},
        "children": {"items": {"$ref": "#"}}}});
    let rows = [
        (order, json!({"id": "AB-12", "mail": "a@b.c", "state": "paid", "lines": lines, "ship": "post"})),
        (json!({"type": "string", "minLength": 1}), text.clone()),
        (json!({"pattern": "^[\\s\\S]+$"}), text.clone()),
        (json!({"pattern": "^\\S"}), text),
        (json!({"items": {"type": "integer", "minimum": 0}}), json!(vec![1; 400_000])),
        (json!({"additionalProperties": {"type": "integer"}}), object(50_000)),
        (tree, (0..40).fold(json!({}), |inner, _| json!({"name": "a", "children": [inner, {}]}))),
        // Patterns that many tools have.
        (json!({"pattern": "^.{1,4000}$"}), json!("text ".repeat(700))),
        (json!({"pattern": "^https?://.{1,2000}$"}), json!(format!("https://{}", "a".repeat(1_500)))),
        (
            json!({"items": {"pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"}}),
            json!(vec!["0197a7c2-5c1e-7d3a-9b61-3f0f5a1c2d4e"; 5_000]),
        ),
        (
            json!({"properties": {"first": {"pattern": "^\\p{L}{1,60}$"}, "last": {"pattern": "^\\p{L}{1,60}$"}}}),
            json!({"first": "Ada", "last": "Lovelace"}),
        ),
        (json!({"anyOf": [{"type": "string"}, {"items": {"type": "integer"}}]}), json!(vec![1; 10_000])),
        (json!({}), json!({"a": [1]})),
        (json!(true), json!(1)),
    ];
    for (schema, value) in rows {
        assert_eq!(bounded(&schema, &value), Ok(true), "{schema}");
    }
    assert_eq!(bounded(&json!(false), &json!(1)), Ok(false));
}

// SECURITY: schema-work
#[test]
fn tells_cost_from_form() {
    let problem = |schema| UntrustedSchema::compile(&schema, SchemaRules::Current).unwrap_err();
    assert!(matches!(problem(json!({"pattern": "(([a-z]{99}){99}){99}"})), SchemaProblem::Cost(_)));
    assert!(matches!(problem(json!({"type": 5})), SchemaProblem::Invalid(_)));
}

// SECURITY: schema-work
#[test]
fn schemas_of_recorded_runs_keep_their_limits() {
    let patterns = json!({"allOf": vec![json!({"pattern": "([a-z]{90}){330}"}); 8]});
    let with_id = json!({"$defs": {"a": {"$id": "http://a/"}}});
    for schema in [patterns, with_id] {
        assert!(UntrustedSchema::compile(&schema, SchemaRules::Current).is_err(), "{schema}");
        assert!(UntrustedSchema::compile(&schema, SchemaRules::Version1).is_ok(), "{schema}");
    }
}
