use super::wrap_schema;
use pretty_assertions::assert_eq;
use serde_json::json;

#[test]
fn references_stay_valid_in_the_schema_of_the_finishing_tool() {
    let schema = json!({
        "type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "a:b",
        "$defs": {"part": {"properties": {"parts": {"items": {"$ref": "#/$defs/part"}}, "whole": {"$ref": "#"}}}},
        "definitions": {"other": {"enum": [{"$ref": "#/kept"}]}},
        "properties": {
            "part": {"$ref": "#/$defs/part"}, "same": {"$ref": "#/properties/part"}, "$ref": {"type": "string"},
        },
    });
    let expected = json!({
        "type": "object",
        "$defs": {"part": {"properties": {"parts": {"items": {"$ref": "#/$defs/part"}},
                                          "whole": {"$ref": "#/properties/result"}}}},
        "definitions": {"other": {"enum": [{"$ref": "#/kept"}]}},
        "properties": {"result": {"type": "object", "properties": {
            "part": {"$ref": "#/$defs/part"}, "same": {"$ref": "#/properties/result/properties/part"},
            "$ref": {"type": "string"},
        }}},
        "required": ["result"],
        "additionalProperties": false,
    });
    assert_eq!(wrap_schema(schema), expected);
}
