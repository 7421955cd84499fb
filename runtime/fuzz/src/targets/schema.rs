//! Schemas of tools, and inputs for them.

use super::{Outcome, Target};
use redflow_json_schema::{SchemaProblem, SchemaRules, UntrustedSchema, Violations};
use redflow_testkit::hostile;
use serde_json::{Value, json};

pub(super) struct ToolSchema;

impl Target for ToolSchema {
    fn name(&self) -> &'static str {
        "schema"
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let schemas = hostile::schemas().into_iter().map(|case| json!([case.value, {"a": [1, "b"]}]));
        let inputs = hostile::inputs().into_iter().map(|(_, schema, value)| json!([schema, value]));
        let all = schemas.chain(inputs).map(|value| value.to_string().into_bytes());
        // Smaller ones are changed in more interesting ways.
        all.filter(|text| text.len() <= 64 * 1024).collect()
    }

    fn run(&self, input: &[u8]) -> Outcome {
        let Ok(Value::Array(pair)) = serde_json::from_slice::<Value>(input) else {
            return Ok("-".to_owned());
        };
        let [schema, value] = pair.as_slice() else { return Ok("-".to_owned()) };
        let schema = match UntrustedSchema::compile(schema, SchemaRules::Current) {
            Ok(schema) => schema,
            Err(SchemaProblem::Cost(reason)) => return Ok(reason.to_owned()),
            Err(SchemaProblem::Invalid(error)) => return Ok(error.kind().keyword().to_owned()),
        };
        let Ok(schema) = schema.bounded(value, input.len(), Violations::All) else {
            return Ok("too much work".to_owned());
        };
        let is_valid = schema.is_valid(value);
        let mut rules: Vec<_> =
            schema.violations(value).map(|error| error.kind().keyword().to_owned()).collect();
        if is_valid != rules.is_empty() || is_valid != schema.first_violation(value).is_none() {
            return Err("the validator contradicts itself".to_owned());
        }
        rules.sort();
        rules.dedup();
        Ok(rules.join(" "))
    }
}
